// SPDX-License-Identifier: GPL-2.0-only
// Compares rules field by field: does every packet of the later rule match the earlier one?
#include "ctl/policy/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/policy/intervals.h"
#include "ctl/policy/names.h"
#include "ctl/policy/ranges.h"

// Longer lists are only compared for equality: 4096 rules make eight million pairs.
#define COMPARED_MAX 128

struct family_intervals {
	bool filled;
	struct intervals v4, v6;
};

struct candidate { // a rule, and a hash of each of its long lists
	const struct resolved_rule *rule;
	uint64_t sport, dport, vlan, ethertype, icmp;
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

static uint64_t hash_ranges(const struct resolved_ranges *r)
{
	return hash_of(r->at, r->n * sizeof(*r->at));
}

static struct candidate candidate_of(const struct resolved_rule *rule)
{
	return (struct candidate){
		.rule = rule,
		.sport = hash_ranges(&rule->sport),
		.dport = hash_ranges(&rule->dport),
		.vlan = hash_ranges(&rule->vlan),
		.ethertype = hash_ranges(&rule->ethertype),
		.icmp = hash_of(rule->icmp, rule->icmps * sizeof(*rule->icmp)),
	};
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

// A cheap answer to most pairs: the sets can be compared by value, or are the same, or there is none.
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
	return intervals_cover(&a->v4, &b->v4) && intervals_cover(&a->v6, &b->v6);
}

static bool covers_ranges(const struct resolved_ranges *outer, uint64_t outer_hash,
			  const struct resolved_ranges *inner, uint64_t inner_hash)
{
	if (!outer->given || !inner->given)
		return !outer->given;
	if (outer->n + inner->n > COMPARED_MAX)
		return outer->n == inner->n && outer_hash == inner_hash &&
		       !memcmp(outer->at, inner->at, inner->n * sizeof(*inner->at));
	return ranges_cover(outer->at, outer->n, inner->at, inner->n);
}

static bool covers_bits(bool outer_given, const uint64_t *outer, bool inner_given,
			const uint64_t *inner, size_t n)
{
	if (!outer_given)
		return true;
	for (size_t i = 0; i < n; i++)
		if (!inner_given || inner[i] & ~outer[i])
			return false;
	return true;
}

static int compare_types(const struct resolved_icmp *a, const struct resolved_icmp *b)
{
	return a->family != b->family ? (int)a->family - b->family : (int)a->type - b->type;
}

// Both are sorted by family, type and code.
static bool covers_types(const struct resolved_rule *outer, const struct resolved_rule *inner)
{
	const struct resolved_icmp *o = outer->icmp, *end = o + outer->icmps;

	for (const struct resolved_icmp *i = inner->icmp; i < inner->icmp + inner->icmps; i++) {
		while (o < end && (compare_types(o, i) < 0 ||
				   (compare_types(o, i) == 0 && o->code_last < i->code_first)))
			o++;
		if (o == end || compare_types(o, i) != 0 || o->code_first > i->code_first ||
		    o->code_last < i->code_last)
			return false;
	}
	return true;
}

static bool has_neighbour_discovery(const struct resolved_rule *rule)
{
	for (size_t i = 0; i < rule->icmps; i++)
		if (rule->icmp[i].family == 6 && names_is_neighbour_discovery(rule->icmp[i].type))
			return true;
	return false;
}

// A rule without types never matches neighbour discovery.
static bool covers_icmp(const struct candidate *o, const struct candidate *i)
{
	const struct resolved_rule *outer = o->rule, *inner = i->rule;

	if (!outer->icmp_given)
		return !inner->icmp_given || !has_neighbour_discovery(inner);
	if (!inner->icmp_given || outer->icmps + inner->icmps > 6 * COMPARED_MAX)
		return inner->icmp_given && outer->icmps == inner->icmps && o->icmp == i->icmp &&
		       !memcmp(outer->icmp, inner->icmp, inner->icmps * sizeof(*inner->icmp));
	return covers_types(outer, inner);
}

// (packet & mask) == set of the later rule implies that of the earlier one.
static bool covers_flags(const struct resolved_flags *outer, const struct resolved_flags *inner)
{
	return !outer->given || (inner->given && !(outer->mask & ~inner->mask) &&
				 (inner->set & outer->mask) == outer->set);
}

static bool covers_span(const struct resolved_span *outer, const struct resolved_span *inner)
{
	return !outer->given ||
	       (inner->given && outer->first <= inner->first && outer->last >= inner->last);
}

// Ends the evaluation for every packet that has its fields.
static bool is_final(const struct resolved_rule *rule)
{
	return rule->action != ACTION_COUNT && !rule->limit.given && !rule->probability_given &&
	       !rule->impossible && rule->from.kind != RESOLVED_DYNAMIC &&
	       rule->to.kind != RESOLVED_DYNAMIC;
}

// A frame's rule and an IP rule see different packets: the first sees all, the second no other frames.
static bool covers_frames(const struct candidate *o, const struct candidate *i)
{
	static const struct range16 ip[] = {{0x0800, 0x0800}, {0x86dd, 0x86dd}};
	const struct resolved_ranges *outer = &o->rule->ethertype, *inner = &i->rule->ethertype;

	if (outer->given && !inner->given)
		return ranges_cover(outer->at, outer->n, ip, ARRAY_SIZE(ip)) &&
		       !o->rule->length.given; // it would be the frame's length
	return outer->given == inner->given &&
	       covers_ranges(outer, o->ethertype, inner, i->ethertype);
}

static bool covers_lists(const struct candidate *o, const struct candidate *i)
{
	const struct resolved_rule *outer = o->rule, *inner = i->rule;

	return covers_ranges(&outer->dport, o->dport, &inner->dport, i->dport) &&
	       covers_ranges(&outer->sport, o->sport, &inner->sport, i->sport) &&
	       covers_ranges(&outer->vlan, o->vlan, &inner->vlan, i->vlan);
}

static bool covers(struct shadow *s, const struct candidate *o, const struct candidate *i)
{
	const struct resolved_rule *outer = o->rule, *inner = i->rule;

	return may_cover(s, &outer->from, &inner->from) && may_cover(s, &outer->to, &inner->to) &&
	       covers_frames(o, i) &&
	       covers_bits(outer->proto.given, outer->proto.bits, inner->proto.given,
			   inner->proto.bits, 4) &&
	       covers_bits(outer->on_given, &outer->on, inner->on_given, &inner->on, 1) &&
	       covers_flags(&outer->flags, &inner->flags) &&
	       covers_bits(outer->dscp_given, &outer->dscp, inner->dscp_given, &inner->dscp, 1) &&
	       covers_span(&outer->length, &inner->length) &&
	       covers_span(&outer->ttl, &inner->ttl) && (!outer->fragment || inner->fragment) &&
	       (!outer->established || inner->established) && covers_lists(o, i) &&
	       covers_address(s, &outer->from, &inner->from) &&
	       covers_address(s, &outer->to, &inner->to) && covers_icmp(o, i);
}

static void warn(struct diag *diag, const struct resolved_rule *rule,
		 const struct resolved_rule *by)
{
	diag_warning(diag, rule->at, NULL,
		     "rule \"%.80s\" can never match: \"%.80s\" (%s) takes every packet before it",
		     rule->identity, by->identity, diag_place(diag, by->at, false));
}

static void compare(struct shadow *s, struct diag *diag)
{
	struct candidate *finals = mem_zalloc(s->r->n_rules, sizeof(*finals));
	size_t n = 0;

	for (size_t i = 0; i < s->r->n_rules; i++) {
		struct candidate rule = candidate_of(&s->r->rules[i]);
		size_t by = 0;

		while (by < n && (rule.rule->impossible || !covers(s, &finals[by], &rule)))
			by++;
		if (by < n)
			warn(diag, rule.rule, finals[by].rule);
		else if (is_final(rule.rule))
			finals[n++] = rule; // what a shadowed rule covers, its shadow covers too
	}
	free(finals);
}

void shadow_warn(const struct resolved *r, struct diag *diag)
{
	struct shadow s = {.r = r, .sets = mem_zalloc(r->n_addresses, sizeof(*s.sets))};

	compare(&s, diag);
	for (size_t i = 0; i < r->n_addresses; i++) {
		intervals_free(&s.sets[i].v4);
		intervals_free(&s.sets[i].v6);
	}
	free(s.sets);
}
