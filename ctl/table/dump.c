// SPDX-License-Identifier: GPL-2.0-only
// Prints an image as text: sorted, one fact a line, the same for every seed.
#include <stdlib.h>

#include "ctl/base/addr.h"
#include "ctl/base/mem.h"
#include "ctl/policy/words.h"
#include "ctl/table/fields.h"
#include "ctl/table/image.h"
#include "ctl/table/rules.h"
#include "ctl/table/walk.h"

// ---- the head -----------------------------------------------------------------------------------

static void dump_treatment(const struct policy_config *c, FILE *f)
{
	for (int first = 0, last; first < 256; first = last + 1) {
		for (last = first; last < 255 && c->treatment[last + 1] == c->treatment[first];)
			last++;
		if (c->treatment[first] != TREAT_FILTER)
			fprintf(f, "fragments proto %d-%d %s\n", first, last,
				choice_word(&choice_treatments, c->treatment[first]));
	}
	if (c->treatment6 != TREAT_FILTER)
		fprintf(f, "fragments ip6 %s\n", choice_word(&choice_treatments, c->treatment6));
}

static void dump_config(const struct image *i, FILE *f)
{
	const struct policy_config *c = &i->config;

	fprintf(f, "rules %u always %u words %u rows %zu meters %u bucket-lines %u logs %u\n",
		c->rules, c->always, c->words, i->n_rows, i->n_meters, i->n_bucket_lines,
		i->n_logs);
	fputs("fields", f);
	for (int field = 0; field < POLICY_FIELDS; field++)
		if (c->use[field])
			fprintf(f, " %s", matrix_fields[field].name);
	fprintf(f, "\ndefault-drop 0x%llx%s%s%s%s%s\n", (unsigned long long)c->default_drop,
		c->named ? " named" : "", c->essentials_filter ? " essentials-filter" : "",
		c->conditions ? " conditions" : "", c->rejects ? " rejects" : "",
		c->redirects ? " redirects" : "");
	if (c->services)
		fprintf(f, "services %u modes 0x%x\n", c->services, c->modes);
	dump_treatment(c, f);
	for (int set = 0; set < POLICY_SETS_MAX; set++)
		if (c->set_mask4[set] || c->set_mask6[set])
			fprintf(f, "dynamic %d mask %u/%u\n", set, c->set_mask4[set],
				c->set_mask6[set]);
}

// ---- rules --------------------------------------------------------------------------------------

static void dump_rule(const struct image *i, size_t n, FILE *f)
{
	const struct policy_rule *r = &i->rules[n];
	const struct image_rule *about = &i->about[n];

	fprintf(f, "rule %zu %s '%s' %s", n, about->place, about->identity,
		choice_word(&choice_actions, r->action));
	if (r->action == ACTION_REDIRECT)
		fprintf(f, " %u (%s)", r->redirect, about->redirect);
	rules_dump_conditions(r, f);
	if (r->flags & RULE_LOG)
		fprintf(f, " log %u every %u snap %u", r->log, r->log_interval, r->log_snap);
	if (r->flags & RULE_ADD)
		fprintf(f, " add-%s %u for %llu",
			r->flags & RULE_ADD_DEST ? "destination" : "source", r->add_set,
			(unsigned long long)r->add_ticks);
	fputc('\n', f);
}

// ---- addresses ----------------------------------------------------------------------------------

static struct addr addr_of_key(address_key key, int family)
{
	struct addr a = {.family = (uint8_t)family};

	for (int b = 0; b < (family == 4 ? 4 : 16); b++)
		a.bytes[b] = (uint8_t)(key >> (120 - 8 * b));
	return a;
}

// A host, a prefix where the region is one, else first and last address. size is 0 for all addresses.
static void dump_region(address_key first, address_key end, int family, policy_row row, FILE *f)
{
	address_key size = end - first, host = (address_key)1 << key_host_shift(family);
	struct addr from = addr_of_key(first, family), to = addr_of_key(end - host, family);
	bool prefix = !(size & (size - 1)) && !(first & (size - 1));
	addr_text text;
	int len = 0;

	while (size && len < 128 && (address_key)1 << (127 - len) >= size)
		len++;
	fprintf(f, "  %s", addr_format(&from, text));
	if (prefix && size != host)
		fprintf(f, "/%d", len);
	if (!prefix)
		fprintf(f, "-%s", addr_format(&to, text));
	fprintf(f, " r%u\n", row);
}

static void dump_family(const struct image *i, int field, int family, FILE *f)
{
	struct regions r = {0};
	const struct policy_side *side = &i->config.side[field];
	uint32_t lines = family == 4 ? side->count4 : side->count6;

	walk_side(i, side, family, &r);
	fprintf(f, "%s ipv%d regions %zu lines %u\n", matrix_fields[field].name, family, r.n,
		lines);
	for (size_t n = 0; n < r.n; n++)
		dump_region(region_first(&r.at[n]), region_end(&r, n), family, r.at[n].row, f);
	vec_free(&r);
}

// ---- small fields -------------------------------------------------------------------------------

static void dump_index(const struct matrix_part *part, size_t index, FILE *f)
{
	if (part->hex)
		fprintf(f, "0x%0*x", part->hex, (unsigned)index);
	else
		fprintf(f, "%zu", index);
}

// Runs of equal elements.
static void dump_part(const struct matrix_field *field, const struct matrix_part *part,
		      const uint32_t *row, FILE *f)
{
	if (!part->name) {
		fprintf(f, "%s none r%u\n", field->name, row[0]);
		return;
	}
	fprintf(f, "%s%s%s\n", field->name, *part->name ? " " : "", part->name);
	for (size_t first = 0, last; first < part->size; first = last + 1) {
		for (last = first; last + 1 < part->size && row[last + 1] == row[first];)
			last++;
		fputs("  ", f);
		dump_index(part, first, f);
		if (last > first) {
			fputc('-', f);
			dump_index(part, last, f);
		}
		fprintf(f, " r%u\n", row[first]);
	}
}

static void dump_field(const struct image *i, int number, FILE *f)
{
	const struct matrix_field *field = &matrix_fields[number];
	const uint32_t *row = i->fields + i->config.base[number];

	if (!field->build) {
		dump_family(i, number, 4, f);
		dump_family(i, number, 6, f);
		return;
	}
	for (size_t p = 0; p < ARRAY_SIZE(field->parts) && field->parts[p].size; p++) {
		dump_part(field, &field->parts[p], row, f);
		row += field->parts[p].size;
	}
}

// ---- rows ---------------------------------------------------------------------------------------

static bool row_bit(const uint64_t *row, size_t rule)
{
	return row[rule / 64] >> (rule % 64) & 1;
}

// The bits base … base + n - 1, numbered from 0.
static void dump_bits(const uint64_t *row, size_t base, size_t n, const char *prefix, FILE *f)
{
	for (size_t first = 0, last; first < n; first = last + 1) {
		last = first;
		if (!row_bit(row, base + first))
			continue;
		while (last + 1 < n && row_bit(row, base + last + 1))
			last++;
		fprintf(f, " %s%zu", prefix, first);
		if (last > first)
			fprintf(f, "-%zu", last);
	}
}

static void dump_row(const struct image *i, size_t number, FILE *f)
{
	const uint64_t *row = i->rows + number * POLICY_ROW_WORDS(i->config.words);

	fprintf(f, "r%zu:", number);
	dump_bits(row, 0, i->n_rules, "", f);
	dump_bits(row, i->n_rules, i->n_services, "s", f);
	fputc('\n', f);
}

void image_dump(const struct image *i, FILE *f)
{
	dump_config(i, f);
	for (size_t n = 0; n < i->n_rules; n++)
		dump_rule(i, n, f);
	for (size_t n = 0; n < i->n_services; n++)
		fprintf(f, "service %zu %s '%s'\n", n, i->services[n].place, i->services[n].name);
	for (int field = 0; field < POLICY_FIELDS; field++)
		if (i->config.use[field])
			dump_field(i, field, f);
	for (size_t n = 1; n < i->n_rows; n++)
		dump_row(i, n, f);
}
