// SPDX-License-Identifier: GPL-2.0-only
// The tables of the IPv4 addresses of a side: the kind that takes the least, and a bit for each
// address.
#include "ctl/table/table4.h"

#include <errno.h>

#include "ctl/table/table4_parts.h"

#define CHUNKS (1u << (32 - T4_BITS_SHIFT))

// Does span i begin inside of a /24?
static bool begins_inside(const struct spans4 *s, size_t i)
{
	return s->at[i].first & 255;
}

// As many leaves as there are /24 with more than one span: counted at the first edge inside.
static size_t count_leaves(const struct spans4 *s)
{
	size_t n = 0;

	for (size_t i = 1; i < s->n; i++)
		n += begins_inside(s, i) &&
		     !(begins_inside(s, i - 1) && s->at[i].first >> 8 == s->at[i - 1].first >> 8);
	return n;
}

// The row that is not the one of address 0; 0: no such row, or several.
static policy_row other_row(const struct spans4 *s)
{
	policy_row other = s->n > 1 ? s->at[1].row : 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->at[i].row != s->at[0].row && s->at[i].row != other)
			return 0;
	return other;
}

struct plan4 bits4_plan(const struct spans4 *s)
{
	struct plan4 plan = {.kind = T4_BITS};

	if (!other_row(s))
		return (struct plan4){0};
	plan.tables = count_leaves(s);
	plan.bytes = CHUNKS * (sizeof(struct table4_bits) + sizeof(uint32_t)) +
		     plan.tables * sizeof(struct table4_leaf);
	return plan;
}

struct bits4 {
	struct table4_bits *chunk;
	uint32_t *base;
	struct table4_leaf *leaf;
};

static void mark_mixed(const struct spans4 *s, struct bits4 *b)
{
	uint32_t n = 0;

	for (size_t i = 1; i < s->n; i++)
		if (begins_inside(s, i))
			b->chunk[s->at[i].first >> T4_BITS_SHIFT].mixed |=
				1ull << (s->at[i].first >> 8 & 63);
	for (uint32_t c = 0; c < CHUNKS; c++) {
		b->base[c] = n;
		n += (uint32_t)__builtin_popcountll(b->chunk[c].mixed);
	}
}

static struct table4_leaf *leaf_of(const struct bits4 *b, uint32_t addr)
{
	const struct table4_bits *chunk = &b->chunk[addr >> T4_BITS_SHIFT];
	uint64_t bit = 1ull << (addr >> 8 & 63);

	if (!(chunk->mixed & bit))
		return NULL;
	return &b->leaf[b->base[addr >> T4_BITS_SHIFT] +
			(uint32_t)__builtin_popcountll(chunk->mixed & (bit - 1))];
}

// The bits from … to of a word.
static uint64_t run(uint32_t from, uint32_t to)
{
	return ~0ull >> (63 - (to - from)) << from;
}

// Bits of the /24 that has both addresses.
static void mark_leaf(const struct bits4 *b, uint32_t first, uint32_t last)
{
	struct table4_leaf *leaf = leaf_of(b, first);

	for (uint32_t w = first >> 6 & 3; leaf && w <= (last >> 6 & 3); w++)
		leaf->in[w] |= run(w == (first >> 6 & 3) ? first & 63 : 0,
				   w == (last >> 6 & 3) ? last & 63 : 63);
}

static void mark_in(const struct bits4 *b, uint32_t first, uint32_t last)
{
	uint32_t from = first >> 8, to = last >> 8;

	for (uint32_t c = from >> 6; c <= to >> 6; c++)
		b->chunk[c].in |= run(c == from >> 6 ? from & 63 : 0, c == to >> 6 ? to & 63 : 63);
	mark_leaf(b, first, from == to ? last : first | 255);
	if (from != to)
		mark_leaf(b, last & ~255u, last);
}

void bits4_build(const struct spans4 *s, const struct plan4 *plan, struct tables *t, int side)
{
	size_t chunk = tables_add(t, CHUNKS * sizeof(struct table4_bits));
	size_t base = tables_add(t, CHUNKS * sizeof(uint32_t));
	size_t leaf = tables_add(t, plan->tables * sizeof(struct table4_leaf));
	struct bits4 b = {(void *)(t->at + chunk), (void *)(t->at + base), (void *)(t->at + leaf)};
	policy_row row1 = other_row(s);

	mark_mixed(s, &b);
	for (size_t i = 0; i < s->n; i++)
		if (s->at[i].row == row1)
			mark_in(&b, s->at[i].first, span4_last(s, i));
	tables_address(t, SIDE_CONSTANT(side, T4_DIRECT), chunk);
	tables_address(t, SIDE_CONSTANT(side, T4_NODES), base);
	tables_address(t, SIDE_CONSTANT(side, T4_CELLS), leaf);
	tables_number(t, SIDE_CONSTANT(side, T4_CELLS_N), plan->tables);
	tables_number(t, SIDE_CONSTANT(side, T4_ROW0), s->at[0].row);
	tables_number(t, SIDE_CONSTANT(side, T4_ROW1), row1);
}

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
