// SPDX-License-Identifier: GPL-2.0-only
// IPv4 addresses with two rows (T4_BITS): a bit for each /24, and a leaf for each /24 that has both
// rows.
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
