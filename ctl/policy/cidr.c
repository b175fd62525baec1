// SPDX-License-Identifier: GPL-2.0-only
// Walks over sorted prefixes as a tree in preorder.
//
// The prefixes around the present one are on a stack, so all of this is linear, except the sort.
#include "ctl/policy/cidr.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/policy/intervals.h"

#define DEPTH 129 // prefixes within each other: lengths 0 .. 128

static uint64_t read64(const uint8_t *at)
{
	uint64_t n;

	memcpy(&n, at, sizeof(n));
	return __builtin_bswap64(n);
}

void cidr_add(struct cidr_set *s, const struct prefix *p, bool negated, struct place place)
{
	struct cidrs *family = p->addr.family == 4 ? &s->v4 : &s->v6;

	vec_push(family, ((struct cidr){
				 .hi = read64(p->addr.bytes),
				 .lo = read64(p->addr.bytes + 8),
				 .line = place.line,
				 .file = place.file,
				 .rank = (uint16_t)(1 + 2 * p->len + negated),
				 .len = p->len,
			 }));
}

// ---- order --------------------------------------------------------------------------------------

static inline bool same_prefix(const struct cidr *a, const struct cidr *b)
{
	return a->hi == b->hi && a->lo == b->lo && a->len == b->len;
}

// Does a precede b? Of equal prefixes, the one with the higher rank is first.
static inline bool before(const struct cidr *a, const struct cidr *b)
{
	if (a->hi != b->hi)
		return a->hi < b->hi;
	if (a->lo != b->lo)
		return a->lo < b->lo;
	return a->len != b->len ? a->len < b->len : a->rank > b->rank;
}

struct starts { // starts of sorted runs; the last element is the end of all
	size_t *at;
	size_t n, cap;
};

static void find_runs(const struct cidrs *v, struct starts *ret)
{
	vec_push(ret, 0);
	for (size_t i = 1; i < v->n; i++)
		if (before(&v->at[i], &v->at[i - 1]))
			vec_push(ret, i);
	vec_push(ret, v->n);
}

static void merge_runs(const struct cidr *a, const struct cidr *a_end, const struct cidr *b,
		       const struct cidr *b_end, struct cidr *to)
{
	while (a < a_end && b < b_end)
		*to++ = before(b, a) ? *b++ : *a++;
	memcpy(to, a, (size_t)(a_end - a) * sizeof(*a));
	memcpy(to + (a_end - a), b, (size_t)(b_end - b) * sizeof(*b));
}

// Merges each two neighbouring runs into one.
static void merge_pass(const struct cidr *from, struct cidr *to, struct starts *runs)
{
	size_t n = 0;

	for (size_t i = 0; i + 1 < runs->n; i += 2) {
		size_t start = runs->at[i], middle = runs->at[i + 1];
		size_t end = i + 2 < runs->n ? runs->at[i + 2] : middle;

		merge_runs(from + start, from + middle, from + middle, from + end, to + start);
		runs->at[n++] = start;
	}
	runs->at[n++] = runs->at[runs->n - 1];
	runs->n = n;
}

// A natural merge sort: lists are often sorted, and a set's items are few runs.
static void sort_all(struct cidrs *v)
{
	struct starts runs = {0};
	struct cidr *other = NULL;

	find_runs(v, &runs);
	if (runs.n > 2)
		other = mem_realloc(NULL, v->n, sizeof(*other));
	while (runs.n > 2) {
		struct cidr *sorted = other;

		merge_pass(v->at, sorted, &runs);
		other = v->at;
		v->at = sorted;
		v->cap = v->n;
	}
	free(other);
	vec_free(&runs);
}

static void sort(struct cidrs *v)
{
	size_t n = 0;

	if (v->n > 1)
		sort_all(v);
	for (size_t i = 0; i < v->n; i++)
		if (!n || !same_prefix(&v->at[n - 1], &v->at[i]))
			v->at[n++] = v->at[i];
	v->n = n;
}

void cidr_sort(struct cidr_set *s)
{
	sort(&s->v4);
	sort(&s->v6);
}

// ---- walks --------------------------------------------------------------------------------------

static inline bool contains(const struct cidr *outer, const struct cidr *inner)
{
	unsigned len = outer->len;

	if (len <= 64)
		return !len || (outer->hi ^ inner->hi) >> (64 - len) == 0;
	return outer->hi == inner->hi &&
	       (len == 128 ? outer->lo == inner->lo : (outer->lo ^ inner->lo) >> (128 - len) == 0);
}

// A prefix of the walk, and the rank of each set there.
struct level {
	struct cidr self; // the merged one
	struct cidr a, b;
};

static bool is_not(uint16_t rank)
{
	return rank && !(rank & 1);
}

static const struct cidr *stronger(const struct cidr *a, const struct cidr *b)
{
	return b->rank > a->rank ? b : a;
}

static struct cidrs merge(const struct cidrs *a, const struct cidrs *b)
{
	struct cidrs ret = {0};
	struct level stack[DEPTH + 1] = {0}; // [0]: outside of every prefix
	size_t depth = 0;

	vec_reserve(&ret, a->n + b->n);
	for (size_t i = 0, j = 0; i < a->n || j < b->n;) {
		bool from_a = i < a->n && (j == b->n || !before(&b->at[j], &a->at[i]) ||
					   same_prefix(&a->at[i], &b->at[j]));
		bool from_b = j < b->n && (!from_a || same_prefix(&a->at[i], &b->at[j]));
		const struct cidr *next = from_a ? &a->at[i] : &b->at[j];
		struct level level;
		const struct cidr *decides;

		while (depth && !contains(&stack[depth].self, next))
			depth--;
		level.a = from_a ? a->at[i++] : stack[depth].a;
		level.b = from_b ? b->at[j++] : stack[depth].b;
		decides = stronger(&level.a, &level.b);
		level.self = *next;
		level.self.rank = decides->rank;
		level.self.file = decides->file;
		level.self.line = decides->line;
		if (level.self.rank != stack[depth].self.rank)
			vec_push(&ret, level.self);
		stack[++depth] = level;
	}
	return ret;
}

struct cidr_set cidr_merge(struct cidr_set *a, struct cidr_set *b)
{
	struct cidr_set ret = {merge(&a->v4, &b->v4), merge(&a->v6, &b->v6)};

	cidr_free(a);
	cidr_free(b);
	return ret;
}

static struct cidrs member(const struct cidrs *v, bool negated)
{
	struct cidrs ret = {0};

	vec_reserve(&ret, v->n);
	vec_each (v, c) {
		struct cidr *copy = vec_add(&ret);

		*copy = *c;
		if (!c->rank || is_not(c->rank))
			copy->rank = 0;
		else
			copy->rank = (uint16_t)(c->rank + negated);
	}
	return ret;
}

struct cidr_set cidr_member(const struct cidr_set *s, bool negated)
{
	return (struct cidr_set){member(&s->v4, negated), member(&s->v6, negated)};
}

size_t cidr_count(const struct cidr_set *s)
{
	return s->v4.n + s->v6.n;
}

bool cidr_is_empty(const struct cidr_set *s)
{
	struct resolved_addresses value = {0};
	struct arena arena = {0};

	cidr_resolve(s, false, &arena, &value);
	arena_free(&arena);
	return value.empty;
}

void cidr_free(struct cidr_set *s)
{
	vec_free(&s->v4);
	vec_free(&s->v6);
}

// ---- the result ---------------------------------------------------------------------------------

struct decision {
	struct cidr at;
	bool in;
};

// Calls back for each prefix that decides differently from the prefix around it.
typedef void decide_fn(void *ctx, const struct cidr *at, bool in);

static void decide(const struct cidrs *v, bool negated, struct place place, decide_fn *fn,
		   void *ctx)
{
	struct decision stack[DEPTH + 1] = {0};
	size_t depth = 0;

	// The complement begins with all addresses, unless the set itself has a prefix of length 0.
	if (negated && (!v->n || v->at[0].len)) {
		stack[++depth].in = true;
		stack[depth].at.file = place.file;
		stack[depth].at.line = place.line;
		fn(ctx, &stack[depth].at, true);
	}
	vec_each (v, c) {
		bool in = (c->rank && !is_not(c->rank)) != negated;

		while (depth && !contains(&stack[depth].at, c))
			depth--;
		if (in != stack[depth].in)
			fn(ctx, c, in);
		stack[++depth] = (struct decision){.at = *c, .in = in};
	}
}

static void count(void *ctx, const struct cidr *at, bool in)
{
	++*(size_t *)ctx;
}

static void put4(void *ctx, const struct cidr *at, bool in)
{
	struct resolved_prefix4 **to = ctx;

	*(*to)++ = (struct resolved_prefix4){
		.addr = (uint32_t)(at->hi >> 32),
		.line = at->line,
		.file = at->file,
		.len = at->len,
		.in = in,
	};
}

static void put6(void *ctx, const struct cidr *at, bool in)
{
	struct resolved_prefix6 **to = ctx;

	*(*to)++ = (struct resolved_prefix6){
		.hi = at->hi,
		.lo = at->lo,
		.line = at->line,
		.file = at->file,
		.len = at->len,
		.in = in,
	};
}

void cidr_resolve(const struct cidr_set *s, bool negated, struct arena *arena,
		  struct resolved_addresses *ret)
{
	struct resolved_prefix4 *at4;
	struct resolved_prefix6 *at6;

	ret->n4 = ret->n6 = 0;
	decide(&s->v4, negated, ret->place, count, &ret->n4);
	decide(&s->v6, negated, ret->place, count, &ret->n6);
	ret->v4 = at4 = arena_zalloc(arena, ret->n4, sizeof(*at4));
	ret->v6 = at6 = arena_zalloc(arena, ret->n6, sizeof(*at6));
	decide(&s->v4, negated, ret->place, put4, &at4);
	decide(&s->v6, negated, ret->place, put6, &at6);
	ret->empty = !intervals_any(ret);
	if (ret->empty) // exceptions may remove everything
		ret->n4 = ret->n6 = 0;
}
