// SPDX-License-Identifier: GPL-2.0-only
// Tables of cells by the first bits of an address, and ranges of the lower 16 bits.
#include "ctl/table/table4_parts.h"

// Ranges that T4_DEPTH nodes can distinguish: a chain of n nodes for n ranges, else two halves
// below one node.
#define RANGES_MAX (1u << (T4_DEPTH - 1))
// Neighbours differ, so no row has more than half of the spans of a slot: of more spans than these,
// too many are not of the most frequent row.
#define SPANS_MAX (2 * RANGES_MAX + 1)

struct ranges4 {
	const struct spans4 *spans;
	const struct plan4 *plan;
	struct tables *to; // NULL: nodes and tables are only counted
	size_t at_nodes, at_cells;
	size_t nodes, tables;
};

// A range of a slot whose row is not the one of the rest of the slot.
struct range4 {
	uint16_t first, last;
	policy_row row;
};

// `rest`: the row outside of the ranges.
struct slot4 {
	struct range4 range[SPANS_MAX];
	unsigned n;
	policy_row rest;
};

// ---- nodes --------------------------------------------------------------------------------------

static uint32_t leaf_of(bool wide, policy_row row)
{
	return (wide ? T4_LEAF32 : T4_LEAF16) | row;
}

static void node_put(struct ranges4 *t, size_t index, uint16_t low, uint16_t span, uint32_t in,
		     uint32_t next)
{
	uint8_t *nodes = t->to ? t->to->at + t->at_nodes : NULL;

	if (!nodes)
		return;
	if (t->plan->kind == T4_WIDE)
		((struct table4_wide *)nodes)[index] =
			(struct table4_wide){.low = low, .span = span, .in = in, .next = next};
	else
		((struct table4_node *)nodes)[index] =
			(struct table4_node){low, span, (uint16_t)in, (uint16_t)next};
}

static void put_chain(struct ranges4 *t, const struct range4 *r, unsigned n, policy_row rest)
{
	bool wide = t->plan->kind == T4_WIDE;

	for (unsigned i = 0; i < n; i++)
		node_put(t, t->nodes++, r[i].first, (uint16_t)(r[i].last - r[i].first),
			 leaf_of(wide, r[i].row), i + 1 < n ? 1 : leaf_of(wide, rest));
}

// Nodes for n ranges; a look-up takes at most `depth` nodes.
static void put_nodes(struct ranges4 *t, const struct range4 *r, unsigned n, unsigned depth,
		      policy_row rest)
{
	unsigned half = n / 2;
	size_t own = t->nodes;
	uint32_t next;

	if (n <= depth) {
		put_chain(t, r, n, rest);
		return;
	}
	t->nodes++;
	put_nodes(t, r, half, depth - 1, rest);
	next = (uint32_t)(t->nodes - own);
	put_nodes(t, r + half, n - half, depth - 1, rest);
	node_put(t, own, r[0].first, (uint16_t)(r[half - 1].last - r[0].first), 1, next);
}

// ---- slots --------------------------------------------------------------------------------------

// The most frequent row of the spans i … end.
static policy_row frequent_row(const struct spans4 *s, size_t i, size_t end)
{
	policy_row best = 0;
	unsigned most = 0;

	for (size_t k = i; k <= end; k++) {
		unsigned n = 0;

		for (size_t j = k; j <= end; j++)
			n += s->at[j].row == s->at[k].row;
		if (n > most) {
			most = n;
			best = s->at[k].row;
		}
	}
	return best;
}

// The ranges of first … last, which the spans i … end cover; false: too many.
static bool slot_ranges(const struct spans4 *s, uint32_t first, uint32_t last, size_t i, size_t end,
			struct slot4 *ret)
{
	if (end - i >= SPANS_MAX)
		return false;
	ret->n = 0;
	ret->rest = frequent_row(s, i, end);
	for (size_t k = i; k <= end; k++) {
		uint32_t from = k == i ? first : s->at[k].first;
		uint32_t to = k == end ? last : span4_last(s, k);

		if (s->at[k].row != ret->rest)
			ret->range[ret->n++] =
				(struct range4){(uint16_t)from, (uint16_t)to, s->at[k].row};
	}
	return ret->n <= RANGES_MAX;
}

static void cell_put(struct ranges4 *t, size_t at, size_t index, uint32_t value)
{
	if (!t->to)
		return;
	if (t->plan->kind == T4_RANGES)
		((uint16_t *)(t->to->at + at))[index] = (uint16_t)value;
	else
		((uint32_t *)(t->to->at + at))[index] = value;
}

static uint32_t put_table(struct ranges4 *t, uint32_t first, unsigned shift, size_t i);

// The cell for the 2^shift addresses from `first` on. *span: the span of an earlier address;
// becomes the span of `first`.
static uint32_t put_slot(struct ranges4 *t, uint32_t first, unsigned shift, size_t *span)
{
	const struct spans4 *s = t->spans;
	uint32_t last = first + (uint32_t)((1ull << shift) - 1), node = (uint32_t)t->nodes;
	struct slot4 slot;
	size_t end;

	while (span4_last(s, *span) < first)
		++*span;
	for (end = *span; span4_last(s, end) < last;)
		end++;
	if (end == *span)
		return leaf_of(t->plan->kind != T4_RANGES, s->at[end].row);
	if (!slot_ranges(s, first, last, *span, end, &slot))
		return put_table(t, first, shift, *span);
	put_nodes(t, slot.range, slot.n, T4_DEPTH, slot.rest);
	return node;
}

// A table by 8 bits of the address: those after the first ones, or else the last 8. The latter may
// be for fewer than 256 addresses, all other cells are not used.
static uint32_t put_table(struct ranges4 *t, uint32_t first, unsigned shift, size_t i)
{
	unsigned below = shift > 8 ? shift - 8 : 0;
	size_t table = t->tables++, cell = table * 256 + (below ? 0 : first & 255);
	size_t n = (size_t)1 << (shift - below);

	for (size_t c = 0; c < n; c++) {
		uint32_t at = first + (uint32_t)(c << below);

		cell_put(t, t->at_cells, cell + c, put_slot(t, at, below, &i));
	}
	return (uint32_t)(t->plan->nodes + table);
}

// A cell of T4_RANGES has no room for more.
static bool too_many(const struct ranges4 *t)
{
	return t->plan->kind == T4_RANGES && t->nodes + t->tables > T4_LEAF16;
}

static void put_all(struct ranges4 *t, size_t at_direct)
{
	unsigned shift = T4_SHIFT(t->plan->kind);
	size_t span = 0;

	for (uint64_t slot = 0; slot < 1ull << (32 - shift) && !too_many(t); slot++)
		cell_put(t, at_direct, slot, put_slot(t, (uint32_t)(slot << shift), shift, &span));
}

// ---- kinds --------------------------------------------------------------------------------------

static size_t cell_bytes(enum table4_kind kind)
{
	return kind == T4_RANGES ? 2 : 4;
}

static size_t node_bytes(enum table4_kind kind)
{
	return kind == T4_WIDE ? sizeof(struct table4_wide) : sizeof(struct table4_node);
}

static bool rows_fit(const struct spans4 *s, enum table4_kind kind)
{
	if (kind == T4_WIDE)
		return true;
	for (size_t i = 0; i < s->n; i++)
		if (s->at[i].row >= T4_LEAF16)
			return false;
	return true;
}

struct plan4 ranges4_plan(const struct spans4 *s, enum table4_kind kind)
{
	struct plan4 plan = {.kind = kind};
	struct ranges4 t = {.spans = s, .plan = &plan};

	if (!rows_fit(s, kind))
		return (struct plan4){0};
	put_all(&t, 0);
	if (too_many(&t))
		return (struct plan4){0};
	plan.nodes = t.nodes;
	plan.tables = t.tables;
	plan.bytes = (cell_bytes(kind) << (32 - T4_SHIFT(kind))) + t.nodes * node_bytes(kind) +
		     t.tables * 256 * cell_bytes(kind);
	return plan;
}

void ranges4_build(const struct spans4 *s, const struct plan4 *plan, struct tables *t, int side)
{
	size_t cell = cell_bytes(plan->kind);
	size_t direct = tables_add(t, cell << (32 - T4_SHIFT(plan->kind)));
	struct ranges4 r = {
		.spans = s,
		.plan = plan,
		.to = t,
		.at_nodes = tables_add(t, (plan->nodes + !plan->nodes) * node_bytes(plan->kind)),
		.at_cells = tables_add(t, plan->tables * 256 * cell),
	};

	put_all(&r, direct);
	tables_address(t, SIDE_CONSTANT(side, T4_DIRECT), direct);
	tables_address(t, SIDE_CONSTANT(side, T4_NODES), r.at_nodes);
	tables_number(t, SIDE_CONSTANT(side, T4_NODES_N), plan->nodes);
	tables_address(t, SIDE_CONSTANT(side, T4_CELLS), r.at_cells);
	tables_number(t, SIDE_CONSTANT(side, T4_CELLS_N), plan->tables * 256);
}
