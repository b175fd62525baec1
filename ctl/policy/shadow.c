// SPDX-License-Identifier: GPL-2.0-only
// Compares rules field by field: does every packet of the later rule match the earlier one?
#include "ctl/policy/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/policy/edges.h"
#include "ctl/policy/fields.h"
#include "ctl/policy/intervals.h"
#include "ctl/policy/names.h"
#include "ctl/policy/ranges.h"

// Longer lists are compared only for equality: 4096 rules make eight million pairs.
#define COMPARED_MAX 128

struct family_intervals {
	bool filled;
	struct intervals v4, v6;
};

// Bounds of the values of a field, if these are known immediately: one comparison excludes most
// pairs.
struct hull {
	uint32_t first, last;
};
enum { HULL_FROM, HULL_TO, HULL_SPORT, HULL_DPORT, HULLS };

struct shadow_rule { // a rule, and a hash of each of its long lists
	struct resolved_rule *rule;
	uint64_t hash[AST_RULE_FIELDS];
	struct hull outer[HULLS],
		inner[HULLS]; // all values are in outer; the first and last of inner are values
};

struct shadow {
	const struct resolved *r;
	struct family_intervals *sets; // by address set
};

static uint64_t hash_of(const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	uint64_t h = n;

	for (size_t i = 0; i < n; i++)
		h = (h ^ at[i]) * 0x100000001b3; // FNV-1a
	return h;
}

static uint64_t hash_field(const struct resolved_rule *rule, size_t field)
{
	const struct resolved_ranges *ranges = field_at(rule, field);
	const struct resolved_types *types = field_at(rule, field);

	switch (fields[field].form) {
	case FORM_RANGES:
	case FORM_FRAMES:
		return hash_of(ranges->at, ranges->n * sizeof(*ranges->at));
	case FORM_TYPES:
		return hash_of(types->at, types->n * sizeof(*types->at));
	default:
		return 0;
	}
}

static const struct family_intervals *set_of(struct shadow *s, uint32_t index)
{
	struct family_intervals *f = &s->sets[index];

	if (!f->filled) {
		intervals_of(&s->r->addresses[index], 4, &f->v4);
		intervals_of(&s->r->addresses[index], 6, &f->v6);
		f->filled = true;
	}
	return f;
}

static bool is_comparable(const struct resolved_addresses *s)
{
	return s->fixed && s->n4 + s->n6 <= COMPARED_MAX;
}

// A cheap answer for most pairs: the sets are the same, can be compared by value, or are not
// restricted at all.
static bool may_cover(const struct shadow *s, const struct resolved_address *outer,
		      const struct resolved_address *inner)
{
	if (outer->kind == RESOLVED_ANY)
		return true;
	if (outer->kind != inner->kind)
		return false;
	return outer->index == inner->index ||
	       (outer->kind == RESOLVED_SET && is_comparable(&s->r->addresses[outer->index]) &&
		is_comparable(&s->r->addresses[inner->index]));
}

static bool covers_address(struct shadow *s, const struct resolved_address *outer,
			   const struct resolved_address *inner)
{
	const struct family_intervals *a, *b;

	if (outer->kind == RESOLVED_ANY || outer->index == inner->index)
		return true;
	a = set_of(s, outer->index);
	b = set_of(s, inner->index);
	return intervals_cover(a->v4.at, a->v4.n, b->v4.at, b->v4.n) &&
	       intervals_cover(a->v6.at, a->v6.n, b->v6.at, b->v6.n);
}

static const struct hull hull_all = {0, UINT32_MAX}, hull_none = {UINT32_MAX, 0};

// Only IPv4. Nothing is known of a set that is not compared by value.
static void put_address_hull(struct shadow *s, const struct resolved_address *address,
			     struct hull *outer, struct hull *inner)
{
	const struct intervals *v4;

	*outer = hull_all;
	*inner = address->kind == RESOLVED_ANY ? hull_all : hull_none;
	if (address->kind != RESOLVED_SET || !is_comparable(&s->r->addresses[address->index]))
		return;
	v4 = &set_of(s, address->index)->v4;
	*outer = hull_none;
	if (v4->n)
		*outer = (struct hull){(uint32_t)v4->at[0].first, (uint32_t)v4->at[v4->n - 1].last};
	*inner = *outer;
}

static void put_ports_hull(const struct resolved_ranges *ports, struct hull *outer,
			   struct hull *inner)
{
	*outer = *inner = hull_all;
	if (ports->given && ports->n)
		*outer = *inner = (struct hull){ports->at[0].first, ports->at[ports->n - 1].last};
}

static struct shadow_rule candidate_of(struct shadow *s, struct resolved_rule *rule)
{
	struct shadow_rule c = {.rule = rule};

	for (size_t field = 0; field < AST_RULE_FIELDS; field++)
		c.hash[field] = hash_field(rule, field);
	put_address_hull(s, &rule->from, &c.outer[HULL_FROM], &c.inner[HULL_FROM]);
	put_address_hull(s, &rule->to, &c.outer[HULL_TO], &c.inner[HULL_TO]);
	put_ports_hull(&rule->sport, &c.outer[HULL_SPORT], &c.inner[HULL_SPORT]);
	put_ports_hull(&rule->dport, &c.outer[HULL_DPORT], &c.inner[HULL_DPORT]);
	return c;
}

static bool may_cover_hulls(const struct shadow_rule *o, const struct shadow_rule *i)
{
	for (size_t h = 0; h < HULLS; h++)
		if (o->outer[h].first > i->inner[h].first || o->outer[h].last < i->inner[h].last)
			return false;
	return true;
}

static bool covers_ranges(const struct shadow_rule *o, const struct shadow_rule *i, size_t field)
{
	const struct resolved_ranges *outer = field_at(o->rule, field);
	const struct resolved_ranges *inner = field_at(i->rule, field);

	if (!outer->given || !inner->given)
		return !outer->given;
	if (outer->at == inner->at) // of one set
		return outer->n == inner->n;
	if (outer->n + inner->n > COMPARED_MAX)
		return outer->n == inner->n && o->hash[field] == i->hash[field] &&
		       !memcmp(outer->at, inner->at, inner->n * sizeof(*inner->at));
	return ranges_cover(outer->at, outer->n, inner->at, inner->n);
}

// A frame's rule and an IP rule see different packets: the first sees all, the second only IP
// packets.
static bool covers_frames(const struct shadow_rule *o, const struct shadow_rule *i, size_t field)
{
	static const struct range16 ip[] = {{0x0800, 0x0800}, {0x86dd, 0x86dd}};
	const struct resolved_ranges *outer = field_at(o->rule, field);
	const struct resolved_ranges *inner = field_at(i->rule, field);

	if (outer->given && !inner->given)
		return ranges_cover(outer->at, outer->n, ip, ARRAY_SIZE(ip)) &&
		       !o->rule->length.given; // it would be the frame's length
	return outer->given == inner->given && covers_ranges(o, i, field);
}

static bool covers_bits(const struct shadow_rule *o, const struct shadow_rule *i, size_t field)
{
	const struct resolved_bits *outer = field_at(o->rule, field);
	const struct resolved_bits *inner = field_at(i->rule, field);

	if (!outer->given || !inner->given)
		return !outer->given;
	for (size_t n = 0; n < ARRAY_SIZE(inner->bits); n++)
		if (inner->bits[n] & ~outer->bits[n])
			return false;
	return true;
}

static int compare_types(const struct resolved_icmp *a, const struct resolved_icmp *b)
{
	return a->family != b->family ? (int)a->family - b->family : (int)a->type - b->type;
}

// Both are sorted by family, type and code.
static bool covers_each_type(const struct resolved_types *outer, const struct resolved_types *inner)
{
	const struct resolved_icmp *o = outer->at, *end = o + outer->n;

	for (const struct resolved_icmp *i = inner->at; i < inner->at + inner->n; i++) {
		while (o < end && (compare_types(o, i) < 0 ||
				   (compare_types(o, i) == 0 && o->code_last < i->code_first)))
			o++;
		if (o == end || compare_types(o, i) != 0 || o->code_first > i->code_first ||
		    o->code_last < i->code_last)
			return false;
	}
	return true;
}

static bool has_neighbour_discovery(const struct resolved_types *types)
{
	for (size_t i = 0; i < types->n; i++)
		if (types->at[i].family == 6 && names_is_neighbour_discovery(types->at[i].type))
			return true;
	return false;
}

// A rule without types never matches neighbour discovery.
static bool covers_types(const struct shadow_rule *o, const struct shadow_rule *i, size_t field)
{
	const struct resolved_types *outer = field_at(o->rule, field);
	const struct resolved_types *inner = field_at(i->rule, field);

	if (!outer->given)
		return !inner->given || !has_neighbour_discovery(inner);
	if (!inner->given || outer->n + inner->n > 6 * COMPARED_MAX)
		return inner->given && outer->n == inner->n && o->hash[field] == i->hash[field] &&
		       !memcmp(outer->at, inner->at, inner->n * sizeof(*inner->at));
	return covers_each_type(outer, inner);
}

// (packet & mask) == set of the later rule implies the same of the earlier rule.
static bool covers_flags(const struct shadow_rule *o, const struct shadow_rule *i, size_t field)
{
	const struct resolved_flags *outer = field_at(o->rule, field);
	const struct resolved_flags *inner = field_at(i->rule, field);

	return !outer->given || (inner->given && !(outer->mask & ~inner->mask) &&
				 (inner->set & outer->mask) == outer->set);
}

static bool covers_span(const struct shadow_rule *o, const struct shadow_rule *i, size_t field)
{
	const struct resolved_span *outer = field_at(o->rule, field);
	const struct resolved_span *inner = field_at(i->rule, field);

	return !outer->given ||
	       (inner->given && outer->first <= inner->first && outer->last >= inner->last);
}

static bool covers_macs(const struct shadow *s, const struct shadow_rule *o,
			const struct shadow_rule *i)
{
	const struct resolved_macs *outer = &o->rule->mac, *inner = &i->rule->mac;
	const struct resolved_edges *a, *b;

	if (!outer->given || !inner->given)
		return !outer->given;
	a = &s->r->macs[outer->index];
	b = &s->r->macs[inner->index];
	return outer->index == inner->index ||
	       (a->n + b->n <= 2 * COMPARED_MAX && edges_cover(a->at, a->n, b->at, b->n));
}

static bool covers_pairs(const struct shadow_rule *o, const struct shadow_rule *i, size_t field)
{
	const struct resolved_pairs *outer = field_at(o->rule, field);
	const struct resolved_pairs *inner = field_at(i->rule, field);

	return !outer->given ||
	       (inner->given && inner->index == outer->index && inner->negated == outer->negated);
}

static bool covers_word(const struct shadow_rule *o, const struct shadow_rule *i, size_t field)
{
	const struct resolved_word *outer = field_at(o->rule, field);
	const struct resolved_word *inner = field_at(i->rule, field);

	return !outer->given || (inner->given && inner->negated == outer->negated);
}

// Does every packet that satisfies the field of the later rule also satisfy the field of the
// earlier rule? For sets of addresses the test is cheap and may say yes too often: see
// covers_address.
static bool covers_field(struct shadow *s, const struct shadow_rule *o, const struct shadow_rule *i,
			 size_t field)
{
	switch (fields[field].form) {
	case FORM_ADDRESS:
		return may_cover(s, field_at(o->rule, field), field_at(i->rule, field));
	case FORM_RANGES:
		return covers_ranges(o, i, field);
	case FORM_FRAMES:
		return covers_frames(o, i, field);
	case FORM_BITS:
		return covers_bits(o, i, field);
	case FORM_TYPES:
		return covers_types(o, i, field);
	case FORM_FLAGS:
		return covers_flags(o, i, field);
	case FORM_PAIRS:
		return covers_pairs(o, i, field);
	case FORM_MACS:
		return covers_macs(s, o, i);
	case FORM_SPAN:
		return covers_span(o, i, field);
	case FORM_WORD:
		return !field_given(o->rule, field) || field_given(i->rule, field);
	case FORM_EITHER:
		return covers_word(o, i, field);
	case FORM_PROBABILITY: // not even for an equal rule
	case FORM_LIMIT:
		return !field_given(o->rule, field);
	case FORMS:
		break;
	}
	return false;
}

static bool covers(struct shadow *s, const struct shadow_rule *o, const struct shadow_rule *i)
{
	if (!may_cover_hulls(o, i))
		return false;
	for (size_t field = 0; field < AST_RULE_FIELDS; field++)
		if (!covers_field(s, o, i, field))
			return false;
	return covers_address(s, &o->rule->from, &i->rule->from) &&
	       covers_address(s, &o->rule->to, &i->rule->to);
}

// Does the rule end the evaluation for every packet that matches its fields?
static bool is_final(const struct resolved_rule *rule)
{
	return rule->action != ACTION_COUNT && !rule->limit.given && !rule->probability.given &&
	       !rule->impossible && rule->from.kind != RESOLVED_DYNAMIC &&
	       rule->to.kind != RESOLVED_DYNAMIC;
}

static void warn(struct diag *diag, struct resolved_rule *rule, const struct resolved_rule *by)
{
	const char *place = diag_place(diag, by->at, false);
	bool named = !strcmp(place, by->identity); // a quick rule without a name

	rule->never = true;
	diag_warning(diag, rule->at, NULL,
		     "rule \"%.80s\" can never match: \"%.80s\"%s%s%s matches every packet first",
		     rule->identity, by->identity, named ? "" : " (", named ? "" : place,
		     named ? "" : ")");
}

// A quick rule is meant to take packets from the policy.
static bool may_take(const struct resolved_rule *by, const struct resolved_rule *rule)
{
	return !rule->impossible && (rule->quick || !by->quick);
}

static void compare(struct shadow *s, struct diag *diag)
{
	struct shadow_rule *finals = mem_zalloc(s->r->n_rules, sizeof(*finals));
	size_t n = 0;

	for (size_t i = 0; i < s->r->n_rules; i++) {
		struct shadow_rule rule = candidate_of(s, &s->r->rules[i]);
		size_t by = 0;

		while (by < n &&
		       (!may_take(finals[by].rule, rule.rule) || !covers(s, &finals[by], &rule)))
			by++;
		if (by < n)
			warn(diag, rule.rule, finals[by].rule);
		// what a covered rule covers, the rule that covers it covers too
		else if (is_final(rule.rule))
			finals[n++] = rule;
	}
	free(finals);
}

void shadow_warn(struct resolved *r, struct diag *diag)
{
	struct shadow s = {.r = r, .sets = mem_zalloc(r->n_addresses, sizeof(*s.sets))};

	compare(&s, diag);
	for (size_t i = 0; i < r->n_addresses; i++) {
		intervals_free(&s.sets[i].v4);
		intervals_free(&s.sets[i].v6);
	}
	free(s.sets);
}
