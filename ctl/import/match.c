// SPDX-License-Identifier: GPL-2.0-only
// Intersection and complement of interval lists, field by field.
#include "ctl/import/match.h"

#include <stdlib.h>

const struct match match_any = {.families = MATCH_BOTH, .on = ~0ull};

address_number match_max(enum match_field field, uint8_t families)
{
	switch (field) {
	case MATCH_SRC:
	case MATCH_DST:
		return families == MATCH_V4 ? UINT32_MAX : ~(address_number)0;
	case MATCH_SPORT:
	case MATCH_DPORT:
		return 65535;
	case MATCH_DSCP:
		return 63;
	case MATCH_MAC:
		return ((address_number)1 << 48) - 1;
	default:
		return 255;
	}
}

static int compare(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

size_t match_sort(struct interval *at, size_t n)
{
	size_t kept = 0;

	if (!n)
		return 0;
	qsort(at, n, sizeof(*at), compare);
	for (size_t i = 1; i < n; i++) {
		bool joins =
			at[kept].last == ~(address_number)0 || at[i].first <= at[kept].last + 1;

		if (!joins)
			at[++kept] = at[i];
		else if (at[i].last > at[kept].last)
			at[kept].last = at[i].last;
	}
	return kept + 1;
}

struct values match_complement(struct arena *arena, struct values v, address_number max)
{
	struct interval *at = arena_zalloc(arena, v.n + 1, sizeof(*at));
	address_number next = 0;
	size_t n = 0;
	bool over = false;

	for (size_t i = 0; i < v.n; i++) {
		if (v.at[i].first > next)
			at[n++] = (struct interval){next, v.at[i].first - 1};
		over = v.at[i].last >= max;
		next = v.at[i].last + 1;
	}
	if (!over)
		at[n++] = (struct interval){next, max};
	return (struct values){.at = at, .n = n};
}

void match_omit(struct match *m)
{
	m->loose = m->omitted = true;
}

size_t match_size(const struct match *m)
{
	size_t n = 1;

	for (int i = 0; i < MATCH_FIELDS; i++)
		n += m->f[i].n;
	return n;
}

static bool overlap(const struct interval *a, const struct interval *b)
{
	return a->first <= b->last && b->first <= a->last;
}

static struct values meet_values(struct arena *arena, struct values a, struct values b)
{
	struct interval *at = arena_zalloc(arena, a.n + b.n + 1, sizeof(*at));
	size_t n = 0;

	for (size_t i = 0, j = 0; i < a.n && j < b.n;) {
		const struct interval *x = &a.at[i], *y = &b.at[j];

		if (overlap(x, y))
			at[n++] = (struct interval){x->first > y->first ? x->first : y->first,
						    x->last < y->last ? x->last : y->last};
		if (x->last < y->last)
			i++;
		else
			j++;
	}
	return (struct values){.at = at, .n = n};
}

static bool same_values(const struct values *a, const struct values *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (a->at[i].first != b->at[i].first || a->at[i].last != b->at[i].last)
			return false;
	return true;
}

void match_narrow(struct arena *arena, struct match *m, enum match_field field, struct values v)
{
	struct values *have = &m->f[field];
	struct values met;

	if (!v.n) {
		m->never = true;
		return;
	}
	if (!have->n) {
		*have = v;
		return;
	}
	met = meet_values(arena, *have, v);
	if (!met.n)
		m->never = true;
	else if (same_values(&met, &v))
		*have = v;
	else if (!same_values(&met, have))
		*have = met;
}

static void meet_flags(struct match *m, const struct match *b)
{
	uint8_t common = m->mask & b->mask;

	if (!b->flagged)
		return;
	if (m->flagged && (m->flags & common) != (b->flags & common)) {
		m->never = true;
	} else {
		m->flags |= b->flags;
		m->mask |= b->mask;
		m->flagged = true;
	}
}

// A rule can ask one dynamic set for each address.
static void meet_sets(struct match *m, const struct match *b)
{
	for (int i = 0; i < 2; i++) {
		if (m->in[i] && b->in[i] && m->in[i] != b->in[i])
			match_omit(m);
		m->in[i] = b->in[i] ? b->in[i] : m->in[i];
	}
}

// Once for a list.
static void find_bounds(struct arena *arena, const struct pairs *p)
{
	struct pairs_use *use = p->use;

	if (use->addresses.at)
		return;
	use->addresses.at = arena_zalloc(arena, p->n, sizeof(*use->addresses.at));
	use->ports.at = arena_zalloc(arena, p->n, sizeof(*use->ports.at));
	for (size_t i = 0; i < p->n; i++) {
		use->addresses.at[i] = (struct interval){p->at[i].addr, p->at[i].addr};
		use->ports.at[i] = (struct interval){p->at[i].first, p->at[i].last};
	}
	use->addresses.n = match_sort(use->addresses.at, p->n);
	use->ports.n = match_sort(use->ports.at, p->n);
}

void match_narrow_pairs(struct arena *arena, struct match *m, int side, const struct pairs *pairs)
{
	const struct pairs_use *use = pairs->use;

	find_bounds(arena, pairs);
	match_narrow(arena, m, side ? MATCH_DST : MATCH_SRC,
		     (struct values){.at = use->addresses.at, .n = use->addresses.n});
	match_narrow(arena, m, side ? MATCH_DPORT : MATCH_SPORT,
		     (struct values){.at = use->ports.at, .n = use->ports.n});
	m->pairs[side] = pairs;
}

static struct intervals intervals_in(const struct values *v)
{
	return (struct intervals){.at = (struct interval *)v->at, .n = v->n};
}

bool match_pairs_are_folded(const struct match *m, int side)
{
	const struct pairs *p = m->pairs[side];

	return !p || m->never ||
	       (m->f[MATCH_SRC + side].at == p->use->addresses.at &&
		m->f[MATCH_SPORT + side].at == p->use->ports.at);
}

bool match_fold_pairs(struct arena *arena, struct match *m, int side, size_t max)
{
	const struct intervals addresses = intervals_in(&m->f[MATCH_SRC + side]);
	const struct intervals ports = intervals_in(&m->f[MATCH_SPORT + side]);
	const struct pairs *kept;

	if (match_pairs_are_folded(m, side))
		return true;
	if (!pairs_within(arena, m->pairs[side], &addresses, &ports, max, &kept))
		return false;
	if (!kept)
		m->never = true;
	else
		match_narrow_pairs(arena, m, side, kept);
	return true;
}

static void meet_pairs(struct arena *arena, struct match *m, const struct match *b)
{
	for (int i = 0; i < 2; i++) {
		const struct pairs *have = m->pairs[i], *more = b->pairs[i];

		if (!have || !more || have == more) {
			m->pairs[i] = have ? have : more;
			continue;
		}
		m->pairs[i] = pairs_meet(arena, have, more);
		m->never |= !m->pairs[i];
	}
}

struct match match_meet(struct arena *arena, const struct match *a, const struct match *b)
{
	struct match m = *a;

	m.families &= b->families;
	m.on &= b->on;
	m.established |= b->established;
	m.untracked |= b->untracked;
	m.fragment |= b->fragment;
	m.loose |= b->loose;
	m.omitted |= b->omitted;
	m.parts |= b->parts;
	m.rewrites |= b->rewrites;
	m.never |= b->never || !m.families || !m.on || (m.established && m.untracked);
	meet_flags(&m, b);
	meet_sets(&m, b);
	meet_pairs(arena, &m, b);
	for (int i = 0; i < MATCH_FIELDS && !m.never; i++)
		if (b->f[i].n)
			match_narrow(arena, &m, (enum match_field)i, b->f[i]);
	return m;
}

static bool values_meet(const struct values *a, const struct values *b)
{
	return !a->n || !b->n || intervals_meet(a->at, a->n, b->at, b->n);
}

bool match_meets(const struct match *a, const struct match *b)
{
	uint8_t common = a->mask & b->mask;

	if (a->never || b->never || !(a->families & b->families) || !(a->on & b->on) ||
	    (a->established && b->untracked) || (a->untracked && b->established))
		return false;
	if (a->flagged && b->flagged && (a->flags & common) != (b->flags & common))
		return false;
	for (int i = 0; i < MATCH_FIELDS; i++)
		if (!values_meet(&a->f[i], &b->f[i]))
			return false;
	return true;
}

static bool values_cover(const struct values *outer, const struct values *inner)
{
	return !outer->n || (inner->n && intervals_cover(outer->at, outer->n, inner->at, inner->n));
}

static bool has_pairs(const struct match *m, int side, const struct pairs *p)
{
	return m->pairs[side] == p || (m->pairs[side] && pairs_equal(m->pairs[side], p));
}

bool match_covers(const struct match *outer, const struct match *inner)
{
	if ((inner->families & ~outer->families) || (inner->on & ~outer->on) ||
	    (outer->established && !inner->established) || (outer->fragment && !inner->fragment) ||
	    (outer->untracked && !inner->untracked))
		return false;
	for (int i = 0; i < 2; i++)
		if ((outer->in[i] && outer->in[i] != inner->in[i]) ||
		    (outer->pairs[i] && !has_pairs(inner, i, outer->pairs[i])))
			return false;
	if (outer->flagged && (!inner->flagged || (outer->mask & ~inner->mask) ||
			       (inner->flags & outer->mask) != outer->flags))
		return false;
	for (int i = 0; i < MATCH_FIELDS; i++)
		if (!values_cover(&outer->f[i], &inner->f[i]))
			return false;
	return true;
}

bool values_have(const struct values *v, address_number n)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->at[i].first <= n && n <= v->at[i].last)
			return true;
	return !v->n;
}
