// SPDX-License-Identifier: GPL-2.0-only
// One printer for each form of a field.
#include "ctl/policy/rule_text.h"

#include <inttypes.h>

#include "common/limits-policy.h"
#include "ctl/base/mac.h"
#include "ctl/base/mem.h"
#include "ctl/policy/fields.h"
#include "ctl/policy/intervals.h"
#include "ctl/policy/names.h"
#include "ctl/policy/words.h"

#define NAMED_RUN 4 // shorter runs are named

struct printer {
	struct text *t;
	const struct resolved *r;
	const struct resolved_rule *rule;
	const char *gap; // before the next item of a list
};

static void add_item(struct printer *p)
{
	text_add(p->t, p->gap);
	p->gap = ",";
}

// ---- addresses ----------------------------------------------------------------------------------

static void add_prefix(struct printer *p, struct addr addr, uint8_t len, bool in)
{
	struct prefix prefix = prefix_of(&addr, len);
	addr_text text;

	add_item(p);
	text_addf(p->t, "%s%s", in ? "" : "not ", prefix_format(&prefix, text));
}

static void add_list(struct printer *p, const struct resolved_addresses *s)
{
	for (size_t i = 0; i < s->n4; i++)
		add_prefix(p, interval_addr(s->v4[i].addr, 4), s->v4[i].len, s->v4[i].in);
	for (size_t i = 0; i < s->n6; i++)
		add_prefix(p, interval_addr((address_number)s->v6[i].hi << 64 | s->v6[i].lo, 6),
			   s->v6[i].len, s->v6[i].in);
	if (s->empty)
		text_add(p->t, "nothing");
}

static void add_address(struct printer *p, const struct resolved_address *a)
{
	if (a->kind == RESOLVED_DYNAMIC)
		text_addf(p->t, "@%s", p->r->dynamics[a->index].name);
	else if (p->r->addresses[a->index].name)
		text_addf(p->t, "@%s", p->r->addresses[a->index].name);
	else
		add_list(p, &p->r->addresses[a->index]);
}

// ---- numbers ------------------------------------------------------------------------------------

static void add_number(struct printer *p, const struct field *f, unsigned value)
{
	if (f->domain->print)
		f->domain->print(p->t, p->r, value);
	else
		text_addf(p->t, "%u", value);
}

static void add_ranges(struct printer *p, const struct field *f,
		       const struct resolved_ranges *ranges)
{
	for (size_t i = 0; i < ranges->n; i++) {
		add_item(p);
		add_number(p, f, ranges->at[i].first);
		if (ranges->at[i].last == ranges->at[i].first)
			continue;
		text_addc(p->t, '-');
		add_number(p, f, ranges->at[i].last);
	}
}

// Where a run of numbers ends that is printed as one item. A few with names are named one by one.
static unsigned run_end(const struct field *f, const uint64_t bits[4], unsigned first)
{
	unsigned last = first;

	while (f->domain != &domain_on && last < f->domain->last && bits_has(bits, last + 1))
		last++;
	return f->domain->print && last - first < NAMED_RUN ? first : last;
}

static void add_bits(struct printer *p, const struct field *f, const uint64_t bits[4])
{
	for (unsigned first = 0, last; first <= f->domain->last; first = last + 1) {
		last = first;
		if (!bits_has(bits, first))
			continue;
		last = run_end(f, bits, first);
		add_item(p);
		if (last == first)
			add_number(p, f, first);
		else
			text_addf(p->t, "%u-%u", first, last);
	}
}

static void add_macs(struct printer *p, const struct resolved_edges *macs)
{
	mac_text first, last;

	for (size_t i = 0; i < macs->n; i += 2) {
		add_item(p);
		text_add(p->t, mac_format(macs->at[i], first));
		if (macs->at[i + 1] - macs->at[i] > 1)
			text_addf(p->t, "-%s", mac_format(macs->at[i + 1] - 1, last));
	}
}

static void add_flag_names(struct text *t, uint8_t flags)
{
	const char *gap = "";

	for (unsigned flag = 1; flag < 256; flag <<= 1)
		if (flags & flag) {
			text_addf(t, "%s%s", gap, names_of_flag((uint8_t)flag));
			gap = ",";
		}
	if (!flags)
		text_add(t, "none");
}

static void add_flags(struct text *t, const struct resolved_flags *flags)
{
	add_flag_names(t, flags->set);
	text_addc(t, '/');
	add_flag_names(t, flags->mask);
}

// ---- ICMP types ---------------------------------------------------------------------------------

static bool is_next(const struct resolved_icmp *at, const struct resolved_icmp *next)
{
	return next->family == at->family && next->type == at->type + 1 &&
	       at->code_last - at->code_first == 255 && next->code_last - next->code_first == 255;
}

// A type, or a run of types with all their codes; returns the last one.
static const struct resolved_icmp *add_type(struct printer *p, const struct resolved_icmp *at,
					    const struct resolved_icmp *end)
{
	const struct resolved_icmp *last = at;
	const char *name;

	while (last + 1 < end && is_next(last, last + 1))
		last++;
	name = last == at ? names_of_icmp(at->type, at->family) : NULL;
	add_item(p);
	if (name)
		text_add(p->t, name);
	else
		text_addf(p->t, "%u", at->type);
	if (last > at)
		text_addf(p->t, "-%u", last->type);
	if (at->code_first == at->code_last)
		text_addf(p->t, " code %u", at->code_first);
	else if (at->code_first || at->code_last < 255)
		text_addf(p->t, " code %u-%u", at->code_first, at->code_last);
	return last;
}

// Has a type of IPv4 the same name and codes? The name then stands for both.
static bool is_named(const struct resolved_types *types, const struct resolved_icmp *at)
{
	const char *name = names_of_icmp(at->type, 6);
	uint8_t type4;

	if (at->family != 6 || !name || names_icmp(name, 4, &type4) < 0)
		return false;
	for (size_t i = 0; i < types->n; i++)
		if (types->at[i].family == 4 && types->at[i].type == type4 &&
		    types->at[i].code_first == at->code_first &&
		    types->at[i].code_last == at->code_last)
			return true;
	return false;
}

static void add_types(struct printer *p, const struct resolved_types *types)
{
	const struct resolved_icmp *end = types->at + types->n;

	for (const struct resolved_icmp *at = types->at; at < end; at++)
		if (!is_named(types, at))
			at = add_type(p, at, end);
}

// ---- limits -------------------------------------------------------------------------------------

static void add_count(struct text *t, uint64_t count, bool bits)
{
	static const char *const units[] = {"bit", "kbit", "mbit", "gbit"};
	unsigned unit = 0;

	while (bits && unit + 1 < ARRAY_SIZE(units) && count && count % 1000 == 0) {
		count /= 1000;
		unit++;
	}
	text_addf(t, "%" PRIu64 "%s", count, bits ? units[unit] : "");
}

static const char *period(uint32_t ms)
{
	return ms == 1000 ? "s" : ms == 60000 ? "min" : "h";
}

static void add_limit(struct text *t, const struct resolved_limit *limit)
{
	add_count(t, limit->count, limit->bits);
	if (limit->connections)
		text_add(t, limit->count == 1 ? " connection" : " connections");
	else
		text_addf(t, "/%s", period(limit->period_ms));
	if (limit->burst != limit->count)
		text_addf(t, " burst %" PRIu64, limit->burst);
	if (limit->per == PER_RULE)
		return;
	text_addf(t, " per %s", choice_word(&choice_pers, limit->per));
	if (limit->mask4 != 32 || limit->mask6 != 64)
		text_addf(t, " mask %u/%u", limit->mask4, limit->mask6);
	if (limit->max != POLICY_RATE_DEFAULT)
		text_addf(t, " max %" PRIu32, limit->max);
}

// ---- fields -------------------------------------------------------------------------------------

static const char *keyword_of(const struct printer *p, size_t field)
{
	if (fields[field].form == FORM_LIMIT && p->rule->limit.under)
		return "under";
	return fields[field].keyword;
}

// The text after the keyword.
static void add_value(struct printer *p, size_t field)
{
	const struct field *f = &fields[field];
	const void *at = field_at(p->rule, field);
	const struct resolved_bits *bits = at;
	const struct resolved_span *span = at;
	const struct resolved_macs *macs = at;
	const struct resolved_pairs *pairs = at;

	switch (f->form) {
	case FORM_ADDRESS:
		add_address(p, at);
		return;
	case FORM_RANGES:
		add_ranges(p, f, at);
		return;
	case FORM_FRAMES:
		if (p->rule->ethertype.n == 1 && p->rule->ethertype.at[0].last == UINT16_MAX &&
		    !p->rule->ethertype.at[0].first)
			text_add(p->t, "any");
		else
			add_ranges(p, f, at);
		return;
	case FORM_BITS:
		add_bits(p, f, bits->bits);
		return;
	case FORM_TYPES:
		add_types(p, at);
		return;
	case FORM_FLAGS:
		add_flags(p->t, at);
		return;
	case FORM_PAIRS:
		text_addf(p->t, "%s %s@%s", field == AST_FROM_PAIRS ? "from" : "to",
			  pairs->negated ? "not " : "", p->r->pairs[pairs->index].name);
		return;
	case FORM_MACS:
		add_macs(p, &p->r->macs[macs->index]);
		return;
	case FORM_SPAN:
		text_addf(p->t, "%" PRIu32, span->first);
		if (span->last != span->first)
			text_addf(p->t, "-%" PRIu32, span->last);
		return;
	case FORM_PROBABILITY:
		text_addf(p->t, "%.4g%%", (double)p->rule->probability.share * 100 / 4294967296.0);
		return;
	case FORM_LIMIT:
		add_limit(p->t, at);
		return;
	case FORM_WORD:
	case FORM_EITHER:
	case FORMS:
		return;
	}
}

static bool is_word(size_t field)
{
	return fields[field].form == FORM_WORD || fields[field].form == FORM_EITHER;
}

void rule_text_field(struct text *t, const struct resolved *r, const struct resolved_rule *rule,
		     size_t field)
{
	struct printer p = {.t = t, .r = r, .rule = rule, .gap = ""};
	const struct resolved_word *word = field_at(rule, field);
	const char *keyword = keyword_of(&p, field);

	if (fields[field].form == FORM_EITHER && word->negated)
		text_add(t, "not ");
	if (keyword)
		text_add(t, keyword);
	if (is_word(field))
		return;
	if (keyword)
		text_addc(t, ' ');
	add_value(&p, field);
}

void rule_text_conditions(struct text *t, const struct resolved *r,
			  const struct resolved_rule *rule)
{
	size_t start = t->len;

	for (size_t field = 0; field < AST_RULE_FIELDS; field++) {
		if (!field_is_condition(rule, field))
			continue;
		if (t->len > start)
			text_add(t, ", ");
		rule_text_field(t, r, rule, field);
	}
}
