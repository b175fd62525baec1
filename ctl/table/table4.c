// SPDX-License-Identifier: GPL-2.0-only
// Chooses and builds the table of the IPv4 addresses of a side.
#include "ctl/table/table4.h"

#include <errno.h>

#include "ctl/table/table4_parts.h"

// A table that a core's cache keeps in part is not compared with others.
#define RANGES_FIT (1u << 20)
// No kind has more parts than this, each of which begins at a multiple of TABLE_ALIGN.
#define PARTS 3

static void take_spans(const struct regions *r, struct spans4 *ret)
{
	vec_reserve(ret, r->n);
	for (size_t i = 0; i < r->n; i++)
		spans4_add(ret, (uint32_t)(r->at[i].hi >> 32), r->at[i].row);
}

// ---- tables -------------------------------------------------------------------------------------

static bool is_one(const struct spans4 *s)
{
	return s->n < 3 || (s->n == 3 && s->at[0].row == s->at[2].row);
}

static void one_build(const struct spans4 *s, struct tables *t, int side)
{
	if (s->n == 1) {
		tables_number(t, SIDE_CONSTANT(side, T4_IN), s->at[0].row);
		return;
	}
	tables_number(t, SIDE_CONSTANT(side, T4_NONE), s->at[0].row);
	tables_number(t, SIDE_CONSTANT(side, T4_IN), s->at[1].row);
	tables_number(t, SIDE_CONSTANT(side, T4_LOW), s->at[1].first);
	tables_number(t, SIDE_CONSTANT(side, T4_SPAN), span4_last(s, 1) - s->at[1].first);
}

// Chooses among the kinds that can hold the spans:
// - T4_ALL and T4_ONE take no memory.
// - T4_RANGES takes 130 to 400 KB, of which a core's cache keeps most; absent addresses mostly end
//   after one access.
// - For two rows, T4_BITS: 5 MB and more, but one access, or three within a /24 that has both, and
//   one branch that the processor may guess wrong. With 100,000 prefixes that is as fast as T4_LONG
//   for addresses inside and twice as fast outside; with a million four times as fast.
// - Else T4_LONG: 4 MB and more, a node or two for most addresses. With 16 bits it would have 1 MB
// for 100,000 prefixes, and half the speed: a look-up takes two nodes on average, and the processor
// cannot predict the last one. T4_RANGES may need a table at each of 30,000 slots; the others take
// less then.
static struct plan4 plan_of(const struct spans4 *s)
{
	struct plan4 small, large;

	if (is_one(s))
		return (struct plan4){.kind = s->n == 1 ? T4_ALL : T4_ONE};
	small = ranges4_plan(s, T4_RANGES);
	if (small.kind && small.bytes < RANGES_FIT)
		return small;
	large = bits4_plan(s);
	if (!large.kind)
		large = ranges4_plan(s, T4_LONG);
	if (!large.kind)
		large = ranges4_plan(s, T4_WIDE);
	return small.kind && small.bytes < large.bytes ? small : large;
}

static int fits(const struct tables *t, size_t bytes)
{
	return t->n + bytes + PARTS * TABLE_ALIGN > TABLES_BYTES_MAX ? -ENOSPC : 0;
}

static int plan_build(const struct spans4 *s, const struct plan4 *plan, struct tables *t, int side)
{
	int code = fits(t, plan->bytes);

	if (code)
		return code;
	tables_number(t, SIDE_CONSTANT(side, T4_KIND), plan->kind);
	if (plan->kind == T4_BITS)
		bits4_build(s, plan, t, side);
	else if (plan->kind == T4_ALL || plan->kind == T4_ONE)
		one_build(s, t, side);
	else
		ranges4_build(s, plan, t, side);
	return 0;
}

// ---- hosts --------------------------------------------------------------------------------------

// Buckets pay if all other addresses have one row: then one access is enough. Otherwise the table
// is looked up too, so buckets must halve the memory.
static bool lines_pay4(const struct spans4 *s, const struct hosts4 *h)
{
	if (is_one(s) || !h->list.n)
		return false;
	return h->rest.n == 1 || hosts4_bytes(h) + plan_of(&h->rest).bytes < plan_of(s).bytes / 2;
}

static int build_lines(const struct hosts4 *h, uint64_t seed, struct tables *t, int side)
{
	struct spans4 under = {0};
	int code = fits(t, hosts4_bytes(h));
	struct plan4 plan;

	if (code)
		return code;
	hosts4_build(h, seed, t, side, &under);
	plan = plan_of(&under);
	code = plan_build(&under, &plan, t, side);
	vec_free(&under);
	return code;
}

static int build(const struct spans4 *s, uint64_t seed, struct tables *t, int side)
{
	struct hosts4 hosts;
	struct plan4 plan;
	int code;

	hosts4_find(s, &hosts);
	if (lines_pay4(s, &hosts)) {
		code = build_lines(&hosts, seed, t, side);
	} else {
		plan = plan_of(s);
		tables_number(t, SIDE_CONSTANT(side, H4_KIND), HOSTS4_NONE);
		code = plan_build(s, &plan, t, side);
	}
	hosts4_free(&hosts);
	return code;
}

int table4_build(struct tables *t, enum table_side side, const struct regions *r, uint64_t seed)
{
	struct spans4 s = {0};
	int code;

	take_spans(r, &s);
	code = build(&s, seed, t, (int)side);
	vec_free(&s);
	return code;
}
