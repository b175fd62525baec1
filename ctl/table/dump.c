// SPDX-License-Identifier: GPL-2.0-only
// Prints an image as text: sorted, one fact a line, the same for every seed.
#include <stdlib.h>

#include "common/matrix.h"
#include "ctl/base/addr.h"
#include "ctl/base/mem.h"
#include "ctl/policy/words.h"
#include "ctl/table/fields.h"
#include "ctl/table/image.h"
#include "ctl/table/rules.h"
#include "ctl/table/rules_dump.h"

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

	fprintf(f, "rules %u always %u meters %u bucket-lines %u logs %u\n", c->rules, c->always,
		i->n_meters, i->n_bucket_lines, i->n_logs);
	fprintf(f, "default-drop 0x%llx%s%s%s%s%s\n", (unsigned long long)c->default_drop,
		c->named ? " named" : "", c->essentials_filter ? " essentials-filter" : "",
		c->conditions ? " conditions" : "", c->rejects ? " rejects" : "",
		c->redirects ? " redirects" : "");
	if (c->services)
		fprintf(f, "services %u modes 0x%x\n", c->services, c->modes);
	dump_treatment(c, f);
	for (int set = 0; set < POLICY_SETS_MAX; set++)
		if (c->set_mask4[set] || c->set_mask6[set])
			fprintf(f, "dynamic %d mask %u/%u%s\n", set, c->set_mask4[set],
				c->set_mask6[set], c->set_counts[set] ? " count" : "");
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

// A host, a prefix where the region is one, else first and last address. size is 0 for all
// addresses.
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

static void dump_family(const struct matrix_built *m, int field, int family, FILE *f)
{
	const struct regions *r = &m->space[field * 2 + (family == 6)];

	fprintf(f, "%s ipv%d regions %zu\n", matrix_fields[field].name, family, r->n);
	for (size_t n = 0; n < r->n; n++)
		dump_region(region_first(&r->at[n]), region_end(r, n), family, r->at[n].row, f);
}

// ---- small fields -------------------------------------------------------------------------------

static void dump_index(const struct matrix_part *part, size_t index, FILE *f)
{
	if (part->hex)
		fprintf(f, "0x%0*x", part->hex, (unsigned)index);
	else
		fprintf(f, "%zu", index);
}

// A field of a matrix, and the value with which a part begins.
struct dumped {
	const struct image *image;
	enum table_matrix matrix;
	enum policy_field field;
	uint32_t first;
};

static policy_row row_of(const struct dumped *d, size_t index)
{
	return image_field_row(d->image, d->matrix, d->field, d->first + (uint32_t)index);
}

// Runs of equal elements.
static void dump_part(const struct dumped *d, const struct matrix_part *part, FILE *f)
{
	const char *name = matrix_fields[d->field].name;

	if (!part->name) {
		fprintf(f, "%s none r%u\n", name, row_of(d, 0));
		return;
	}
	fprintf(f, "%s%s%s\n", name, *part->name ? " " : "", part->name);
	for (size_t first = 0, last; first < part->size; first = last + 1) {
		for (last = first;
		     last + 1 < part->size && row_of(d, last + 1) == row_of(d, first);)
			last++;
		fputs("  ", f);
		dump_index(part, first, f);
		if (last > first) {
			fputc('-', f);
			dump_index(part, last, f);
		}
		fprintf(f, " r%u\n", row_of(d, first));
	}
}

static void dump_field(const struct image *i, enum table_matrix matrix, int number, FILE *f)
{
	const struct matrix_field *field = &matrix_fields[number];
	struct dumped d = {i, matrix, (enum policy_field)number, 0};

	if (!field->build) {
		dump_family(&i->matrix[matrix], number, 4, f);
		dump_family(&i->matrix[matrix], number, 6, f);
		return;
	}
	for (size_t p = 0; p < ARRAY_SIZE(field->parts) && field->parts[p].size; p++) {
		dump_part(&d, &field->parts[p], f);
		d.first += field->parts[p].size;
	}
}

// ---- rows ---------------------------------------------------------------------------------------

static bool row_bit(const struct image *i, enum table_matrix matrix, policy_row number, size_t bit)
{
	const __u64 *row = matrix_row(&i->tables, matrix, number);

	return row[matrix_place((uint32_t)(bit / 64), i->matrix[matrix].words)] >> (bit % 64) & 1;
}

static void dump_row(const struct image *i, enum table_matrix matrix, policy_row number, FILE *f)
{
	size_t n = matrix == MATRIX_RULES ? i->n_rules : i->n_services;

	fprintf(f, "r%u:", number);
	for (size_t first = 0, last; first < n; first = last + 1) {
		last = first;
		if (!row_bit(i, matrix, number, first))
			continue;
		while (last + 1 < n && row_bit(i, matrix, number, last + 1))
			last++;
		fprintf(f, " %zu", first);
		if (last > first)
			fprintf(f, "-%zu", last);
	}
	fputc('\n', f);
}

static void dump_matrix(const struct image *i, enum table_matrix matrix, FILE *f)
{
	const struct matrix_built *m = &i->matrix[matrix];

	if (!m->words)
		return;
	fprintf(f, "matrix of %s: words %u rows %zu fields",
		matrix == MATRIX_RULES ? "rules" : "services", m->words, m->n_rows);
	for (int field = 0; field < POLICY_FIELDS; field++)
		if (m->use[field])
			fprintf(f, " %s", matrix_fields[field].name);
	fputc('\n', f);
	for (int field = 0; field < POLICY_FIELDS; field++)
		if (m->use[field])
			dump_field(i, matrix, field, f);
	for (size_t n = 1; n < m->n_rows; n++)
		dump_row(i, matrix, (policy_row)n, f);
}

void image_dump(const struct image *i, FILE *f)
{
	dump_config(i, f);
	for (size_t n = 0; n < i->n_rules; n++)
		dump_rule(i, n, f);
	for (size_t n = 0; n < i->n_services; n++)
		fprintf(f, "service %zu %s '%s'\n", n, i->services[n].place, i->services[n].name);
	for (int m = 0; m < TABLE_MATRICES; m++)
		dump_matrix(i, (enum table_matrix)m, f);
}
