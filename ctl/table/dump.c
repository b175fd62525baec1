// SPDX-License-Identifier: GPL-2.0-only
// Prints an image as text: sorted, one fact a line, the same for every seed.
#include <stdlib.h>

#include "ctl/base/addr.h"
#include "ctl/policy/words.h"
#include "ctl/table/image.h"
#include "ctl/table/rules.h"
#include "ctl/table/walk.h"

static const char *const field_name[POLICY_FIELDS] = {
	[FIELD_SOURCE] = "source",       [FIELD_DESTINATION] = "destination",
	[FIELD_SPORT] = "sport",         [FIELD_DPORT] = "dport",
	[FIELD_PROTO] = "proto",         [FIELD_L4] = "l4",
	[FIELD_VLAN] = "vlan",           [FIELD_IFACE] = "iface",
	[FIELD_ETHERTYPE] = "ethertype",
};

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
			fprintf(f, " %s", field_name[field]);
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
	fprintf(f, "%s ipv%d regions %zu lines %u\n", field_name[field], family, r.n, lines);
	for (size_t n = 0; n < r.n; n++)
		dump_region(region_first(&r.at[n]), region_end(&r, n), family, r.at[n].row, f);
	vec_free(&r);
}

// ---- small fields -------------------------------------------------------------------------------

// Runs of equal entries; `part` names what the first entry stands for.
static void dump_runs(const struct image *i, int field, size_t offset, size_t size,
		      const char *part, const char *format, FILE *f)
{
	const uint32_t *row = i->fields + i->config.base[field] + offset;

	fprintf(f, "%s%s%s\n", field_name[field], *part ? " " : "", part);
	for (size_t first = 0, last; first < size; first = last + 1) {
		for (last = first; last + 1 < size && row[last + 1] == row[first];)
			last++;
		fputs("  ", f);
		fprintf(f, format, (unsigned)first);
		if (last > first) {
			fputc('-', f);
			fprintf(f, format, (unsigned)last);
		}
		fprintf(f, " r%u\n", row[first]);
	}
}

// Of packets that do not have the field.
static void dump_none(const struct image *i, int field, size_t offset, FILE *f)
{
	fprintf(f, "%s none r%u\n", field_name[field], i->fields[i->config.base[field] + offset]);
}

static void dump_l4(const struct image *i, FILE *f)
{
	dump_runs(i, FIELD_L4, POLICY_L4_FLAGS, 256, "flags", "0x%02x", f);
	dump_none(i, FIELD_L4, POLICY_L4_NONE, f);
	dump_runs(i, FIELD_L4, POLICY_L4_ICMP, 65536, "icmp type and code", "0x%04x", f);
	dump_runs(i, FIELD_L4, POLICY_L4_ICMP6, 65536, "icmp6 type and code", "0x%04x", f);
	dump_runs(i, FIELD_L4, POLICY_L4_NEIGHBOUR, (size_t)4 * 256, "neighbour discovery",
		  "0x%04x", f);
}

static void dump_field(const struct image *i, int field, FILE *f)
{
	switch (field) {
	case FIELD_SOURCE:
	case FIELD_DESTINATION:
		dump_family(i, field, 4, f);
		dump_family(i, field, 6, f);
		return;
	case FIELD_SPORT:
	case FIELD_DPORT:
		dump_runs(i, field, 0, POLICY_NO_PORT, "", "%u", f);
		dump_none(i, field, POLICY_NO_PORT, f);
		return;
	case FIELD_PROTO:
		dump_runs(i, field, 0, 256, "whole", "%u", f);
		dump_runs(i, field, 256, 256, "first fragment", "%u", f);
		dump_runs(i, field, 512, 256, "later fragment", "%u", f);
		return;
	case FIELD_L4:
		dump_l4(i, f);
		return;
	case FIELD_VLAN:
		dump_runs(i, field, 0, POLICY_VLANS, "", "%u", f);
		return;
	case FIELD_IFACE:
		dump_runs(i, field, 0, POLICY_IFACES, "", "%u", f);
		return;
	default:
		dump_runs(i, field, 0, POLICY_ETHERTYPES, "", "0x%04x", f);
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
