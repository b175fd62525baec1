// SPDX-License-Identifier: GPL-2.0-only
// Sets and rules as they apply to an address.
#include "ctl/control/explain_rules.h"

#include "ctl/base/num.h"

static struct prefix prefix_of4(const struct resolved_prefix4 *p)
{
	struct prefix result = {.addr.family = 4, .len = p->len};

	for (int i = 0; i < 4; i++)
		result.addr.bytes[i] = (uint8_t)(p->addr >> (24 - 8 * i));
	return result;
}

static struct prefix prefix_of6(const struct resolved_prefix6 *p)
{
	struct prefix result = {.addr.family = 6, .len = p->len};

	for (int i = 0; i < 8; i++) {
		result.addr.bytes[i] = (uint8_t)(p->hi >> (56 - 8 * i));
		result.addr.bytes[8 + i] = (uint8_t)(p->lo >> (56 - 8 * i));
	}
	return result;
}

// Keeps the longest: the lists are in preorder, so the last one that contains p.
static void see(const struct prefix *outer, const struct prefix *p, bool in, struct place place,
		bool *held, struct explain_entry *found)
{
	if (!prefix_contains(outer, p))
		return;
	found->prefix = *outer;
	found->place = place;
	*held = in;
}

bool explain_holds(const struct resolved_addresses *list, const struct prefix *p,
		   struct explain_entry *ret)
{
	struct explain_entry found = {.list = list};
	bool held = false;

	for (size_t i = 0; p->addr.family == 4 && i < list->n4; i++) {
		struct prefix outer = prefix_of4(&list->v4[i]);
		struct place place = {list->v4[i].file, list->v4[i].line};

		see(&outer, p, list->v4[i].in, place, &held, &found);
	}
	for (size_t i = 0; p->addr.family == 6 && i < list->n6; i++) {
		struct prefix outer = prefix_of6(&list->v6[i]);
		struct place place = {list->v6[i].file, list->v6[i].line};

		see(&outer, p, list->v6[i].in, place, &held, &found);
	}
	if (held)
		*ret = found;
	return held;
}

void explain_add_place(struct text *t, const struct resolved *r, struct place place)
{
	if (place.line && place.file < r->n_files)
		text_addf(t, "%s:%u", r->files[place.file].name, place.line);
	else
		text_add(t, "command line");
}

void explain_add_entry(struct text *t, const struct resolved *r, const struct explain_entry *e)
{
	addr_text prefix;

	if (e->list->name)
		text_addf(t, "@%s ", e->list->name);
	explain_add_place(t, r, e->place);
	text_addf(t, " %s", prefix_format(&e->prefix, prefix));
}

// ---- rules ----------------------------------------------------------------------------------------

static bool has_fields(const struct resolved_rule *rule)
{
	return rule->sport.given || rule->dport.given || rule->proto.given || rule->icmp_given ||
	       rule->flags.given || rule->vlan.given || rule->on_given || rule->ethertype.given ||
	       rule->fragment;
}

static bool has_conditions(const struct resolved_rule *rule)
{
	return rule->length.given || rule->ttl.given || rule->dscp_given || rule->established ||
	       rule->probability_given || rule->limit.given ||
	       rule->from.kind == RESOLVED_DYNAMIC || rule->to.kind == RESOLVED_DYNAMIC;
}

enum explain_scope explain_scope(const struct resolved *r, const struct resolved_rule *rule,
				 const struct prefix *p, bool to, struct explain_entry *ret)
{
	const struct resolved_address *side = to ? &rule->to : &rule->from;
	const struct resolved_address *other = to ? &rule->from : &rule->to;

	ret->list = NULL;
	if (rule->impossible)
		return EXPLAIN_NONE;
	if (side->kind == RESOLVED_SET && !explain_holds(&r->addresses[side->index], p, ret))
		return EXPLAIN_NONE;
	if (other->kind != RESOLVED_ANY || has_fields(rule) || has_conditions(rule))
		return EXPLAIN_SOME;
	return EXPLAIN_ALL;
}

size_t explain_decider(const struct resolved *r, size_t first, size_t last, const struct prefix *p,
		       bool to, size_t *ret_before)
{
	size_t before = 0, i;

	for (i = first; i < last; i++) {
		const struct resolved_rule *rule = &r->rules[i];
		struct explain_entry entry;
		enum explain_scope scope = EXPLAIN_NONE;

		if (rule->action != ACTION_COUNT)
			scope = explain_scope(r, rule, p, to, &entry);
		if (scope == EXPLAIN_ALL)
			break;
		before += scope == EXPLAIN_SOME;
	}
	*ret_before = before;
	return i;
}

// ---- conditions -----------------------------------------------------------------------------------

static void add_gap(struct text *t, size_t start)
{
	if (t->len > start)
		text_add(t, ", ");
}

static void add_set(struct text *t, size_t start, const struct resolved *r,
		    const struct resolved_address *side, const char *word)
{
	if (side->kind != RESOLVED_DYNAMIC)
		return;
	add_gap(t, start);
	text_addf(t, "%s @%s", word, r->dynamics[side->index].name);
}

static void add_span(struct text *t, size_t start, const struct resolved_span *span,
		     const char *word)
{
	if (!span->given)
		return;
	add_gap(t, start);
	text_addf(t, "%s %u", word, span->first);
	if (span->last != span->first)
		text_addf(t, "-%u", span->last);
}

static void add_dscp(struct text *t, size_t start, const struct resolved_rule *rule)
{
	const char *gap = " ";

	if (!rule->dscp_given)
		return;
	add_gap(t, start);
	text_add(t, "dscp");
	for (unsigned value = 0; value < 64; value++)
		if (rule->dscp >> value & 1) {
			text_addf(t, "%s%u", gap, value);
			gap = ",";
		}
}

static void add_rate(struct text *t, const struct resolved_limit *limit)
{
	static const char *const units[] = {"bit", "kbit", "mbit", "gbit"};
	uint64_t count = limit->count;
	unsigned unit = 0;

	while (limit->bits && unit < 3 && count && count % 1000 == 0) {
		count /= 1000;
		unit++;
	}
	text_addf(t, " %llu%s/%s", (unsigned long long)count, limit->bits ? units[unit] : "",
		  limit->period_ms == 1000    ? "s"
		  : limit->period_ms == 60000 ? "min"
					      : "h");
}

static void add_limit(struct text *t, size_t start, const struct resolved_limit *limit)
{
	static const char *const pers[] = {"", " per source", " per destination"};

	if (!limit->given)
		return;
	add_gap(t, start);
	text_add(t, limit->under ? "under" : "over");
	add_rate(t, limit);
	text_add(t, pers[limit->per]);
}

void explain_add_conditions(struct text *t, const struct resolved *r,
			    const struct resolved_rule *rule)
{
	size_t start = t->len;

	add_set(t, start, r, &rule->from, "from");
	add_set(t, start, r, &rule->to, "to");
	add_span(t, start, &rule->length, "length");
	add_span(t, start, &rule->ttl, "ttl");
	add_dscp(t, start, rule);
	if (rule->established) {
		add_gap(t, start);
		text_add(t, "established");
	}
	if (rule->probability_given) {
		add_gap(t, start);
		text_addf(t, "probability %.4g%%", (double)rule->probability * 100 / 4294967296.0);
	}
	add_limit(t, start, &rule->limit);
}
