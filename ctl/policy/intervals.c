// SPDX-License-Identifier: GPL-2.0-only
// Walks over nested prefixes and returns each stretch between two borders.
#include "ctl/policy/intervals.h"

#include <stdlib.h>

#include "ctl/base/mem.h"

#define DEPTH 129

struct open {
	address_number last;
	bool in;
};

struct interval_merge {
	struct intervals *ret;
	struct open stack[DEPTH + 1];
	size_t depth;
	address_number next; // first address that is not given out yet
	bool over;           // no address remains
};

// Everything from `next` to `last` is decided by the innermost open prefix.
static void give(struct interval_merge *w, address_number last)
{
	bool in = w->depth && w->stack[w->depth - 1].in;

	if (w->over || w->next > last)
		return;
	if (in && w->ret->n && vec_last(w->ret)->last + 1 == w->next)
		vec_last(w->ret)->last = last;
	else if (in)
		vec_push(w->ret, ((struct interval){w->next, last}));
	w->next = last + 1;
	w->over = w->next == 0;
}

static void enter(struct interval_merge *w, address_number first, address_number last, bool in)
{
	while (w->depth && w->stack[w->depth - 1].last < first) {
		give(w, w->stack[w->depth - 1].last);
		w->depth--;
	}
	if (first)
		give(w, first - 1);
	w->stack[w->depth++] = (struct open){.last = last, .in = in};
}

static address_number host_bits(unsigned bits)
{
	return bits ? ~(address_number)0 >> (128 - bits) : 0;
}

void intervals_of(const struct resolved_addresses *s, uint8_t family, struct intervals *ret)
{
	struct interval_merge w = {.ret = ret};

	for (size_t i = 0; family == 4 && i < s->n4; i++) {
		const struct resolved_prefix4 *p = &s->v4[i];

		enter(&w, p->addr, p->addr | host_bits(32u - p->len), p->in);
	}
	for (size_t i = 0; family == 6 && i < s->n6; i++) {
		const struct resolved_prefix6 *p = &s->v6[i];
		address_number first = (address_number)p->hi << 64 | p->lo;

		enter(&w, first, first | host_bits(128u - p->len), p->in);
	}
	while (w.depth) {
		give(&w, w.stack[w.depth - 1].last);
		w.depth--;
	}
}

static bool has_exceptions(const struct resolved_addresses *s)
{
	for (size_t i = 0; i < s->n4; i++)
		if (!s->v4[i].in)
			return true;
	for (size_t i = 0; i < s->n6; i++)
		if (!s->v6[i].in)
			return true;
	return false;
}

bool intervals_any(const struct resolved_addresses *s)
{
	struct intervals v = {0};
	bool any;

	if (!has_exceptions(s))
		return s->n4 || s->n6;
	intervals_of(s, 4, &v);
	intervals_of(s, 6, &v);
	any = v.n;
	intervals_free(&v);
	return any;
}

bool intervals_cover(const struct interval *outer, size_t n_outer, const struct interval *inner,
		     size_t n_inner)
{
	for (size_t i = 0, j = 0; i < n_inner; i++) {
		while (j < n_outer && outer[j].last < inner[i].first)
			j++;
		if (j == n_outer || outer[j].first > inner[i].first ||
		    outer[j].last < inner[i].last)
			return false;
	}
	return true;
}

bool intervals_meet(const struct interval *a, size_t n_a, const struct interval *b, size_t n_b)
{
	for (size_t i = 0, j = 0; i < n_a && j < n_b;) {
		if (a[i].last < b[j].first)
			i++;
		else if (b[j].last < a[i].first)
			j++;
		else
			return true;
	}
	return false;
}

struct addr interval_addr(address_number n, uint8_t family)
{
	struct addr a = {.family = family};

	for (unsigned i = family == 4 ? 4 : 16; i-- > 0; n >>= 8)
		a.bytes[i] = (uint8_t)n;
	return a;
}

void intervals_free(struct intervals *v)
{
	vec_free(v);
}
