// SPDX-License-Identifier: GPL-2.0-only
// Builds nodes and cells from sorted regions. Few ranges within a block become a chain of nodes;
// more become one node for the smallest prefix that has all their edges, divided into cells by
// their number. So empty levels cost nothing, and every table of cells separates at least two
// edges.
//
// A node holds 2^shift keys from anywhere on, not a prefix: two that overlap are any range, and one
// is a range that ends with its block, because keys outside of the block never come there.
#include "ctl/table/table6_nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHAIN     4 // nodes that follow one another at most
#define FEW_EDGES 8 // that may make a chain
#define BITS_MIN  4 // bits of a table of cells
#define BITS_MAX  20
// From so many nodes on each further node decides at least 8 bits of an address. This keeps the way
// to any row below TABLE6_STEPS: 4 nodes for 16 bits, 4 for the rest of the high word, a chain, 9
// for the low word, a chain: 25.
#define STEPS_FEW     4
#define BITS_MIN_DEEP 8
// Sets of up to so many regions get tables that leave every second cell without an edge; larger
// ones save memory.
#define REGIONS_MANY (1u << 18)

struct building {
	const struct regions *r;
	struct table6_nodes out;
	size_t room;   // bytes
	size_t factor; // cells for each edge
	bool full;
};

// 2^size addresses, at least one /64 while the key is the high word.
struct block {
	address_key first;
	unsigned size;
	bool high;         // the key is the high word of the address
	size_t begin, end; // the regions of its first and last address
	unsigned steps;    // nodes above
};

static address_key block_last(const struct block *b)
{
	return b->first + (((address_key)1 << b->size) - 1);
}

// The bits of an address below its key.
static unsigned key_shift(const struct block *b)
{
	return b->high ? 64 : 0;
}

static policy_row row_at(const struct building *t, size_t region)
{
	return t->r->at[region].row;
}

// The last address of a region.
static address_key region_last(const struct building *t, size_t region)
{
	return region_end(t->r, region) - 1;
}

// Finds the regions of a block; `region` begins at or before it.
static void block_regions(const struct building *t, struct block *b, size_t region)
{
	while (region_last(t, region) < b->first)
		region++;
	b->begin = region;
	while (region_last(t, region) < block_last(b))
		region++;
	b->end = region;
}

static uint32_t nodes_add(struct building *t, size_t n)
{
	size_t first = t->out.nodes.n;

	vec_reserve(&t->out.nodes, n);
	t->out.nodes.n += n;
	return (uint32_t)first;
}

// Without room, sets t->full: the caller then writes no node.
static uint32_t cells_add(struct building *t, size_t n)
{
	size_t first = t->out.cells.n;
	size_t bytes =
		(first + n) * sizeof(*t->out.cells.at) + t->out.nodes.n * sizeof(*t->out.nodes.at);

	if (bytes > t->room) {
		t->full = true;
		return 0;
	}
	vec_reserve(&t->out.cells, n);
	t->out.cells.n += n;
	return (uint32_t)first;
}

static uint32_t block_fill(struct building *t, const struct block *b);

// A table of 2^bits cells over a block, each with what lies in its part of the block.
static uint32_t table_fill(struct building *t, const struct block *b, unsigned bits)
{
	uint32_t base = cells_add(t, (size_t)1 << bits), cell;
	struct block part = *b;

	part.size -= bits;
	part.end = b->begin;
	for (size_t c = 0; c < (size_t)1 << bits && !t->full; c++) {
		part.first = b->first + ((address_key)c << part.size);
		block_regions(t, &part, part.end);
		if (part.begin == part.end)
			cell = row_at(t, part.begin) | TABLE6_WIDE_LEAF;
		else
			cell = block_fill(t, &part);
		t->out.cells.at[base + c] = cell;
	}
	return base;
}

static unsigned table_bits(const struct building *t, const struct block *b)
{
	unsigned bits = b->steps < STEPS_FEW ? BITS_MIN : BITS_MIN_DEEP;
	unsigned keys = b->size - key_shift(b);

	while (bits < BITS_MAX && (size_t)1 << bits < (b->end - b->begin) * t->factor)
		bits++;
	return bits < keys ? bits : keys;
}

// ---- chains -------------------------------------------------------------------------------------

// Nodes for the parts of a block whose row is not `out`. Parts of a /64 are its low words: one such
// /64 at most, `split`.
struct chain {
	policy_row out;
	unsigned n; // nodes of ranges
	struct {
		uint64_t low;
		uint8_t shift;
		policy_row in;
	} at[CHAIN];
	unsigned splits; // the node of `split` is the last one; more than 1: there are others
	address_key split;
};

static bool chain_is_short(const struct chain *c)
{
	return c->splits < 2 && c->n + c->splits <= CHAIN;
}

static void chain_add(struct chain *c, uint64_t low, unsigned shift, policy_row in)
{
	if (c->n < CHAIN) {
		c->at[c->n].low = low;
		c->at[c->n].shift = (uint8_t)shift;
		c->at[c->n].in = in;
	}
	c->n++;
}

static unsigned log2_floor(uint64_t n)
{
	return 63 - (unsigned)__builtin_clzll(n);
}

// The keys first … last of a block of 2^bits keys.
static void chain_add_range(struct chain *c, const struct block *b, uint64_t first, uint64_t last,
			    policy_row in)
{
	unsigned bits = b->size - key_shift(b);
	uint64_t block_first = (uint64_t)(b->first >> key_shift(b));
	uint64_t block_last_key = (uint64_t)(block_last(b) >> key_shift(b));
	unsigned down = log2_floor(last - first + 1);
	bool exact = last - first + 1 == 1ull << down;

	if (exact)
		chain_add(c, first, down, in);
	else if (bits < 64 && last == block_last_key)
		chain_add(c, first, down + 1, in);
	else if (bits < 64 && first == block_first)
		chain_add(c, last + 1 - (1ull << (down + 1)), down + 1, in);
	else {
		chain_add(c, first, down, in);
		chain_add(c, last + 1 - (1ull << down), down, in);
	}
}

static void chain_split(struct chain *c, address_key addr)
{
	address_key split = addr >> 64 << 64;

	if (c->splits && c->split == split)
		return;
	c->splits++;
	c->split = split;
}

// The part of a region in a block: whole keys, and the keys at its ends that it shares with other
// regions.
static void chain_add_region(const struct building *t, struct chain *c, const struct block *b,
			     size_t region)
{
	unsigned shift = key_shift(b);
	address_key below = ((address_key)1 << shift) - 1;
	address_key first = region == b->begin ? b->first : region_first(&t->r->at[region]);
	address_key last = region == b->end ? block_last(b) : region_last(t, region);
	bool shares_first = first & below, shares_last = ~last & below;

	if (shares_first)
		chain_split(c, first);
	if (shares_last)
		chain_split(c, last);
	if (row_at(t, region) == c->out ||
	    (first >> shift) + shares_first + shares_last > last >> shift)
		return;
	chain_add_range(c, b, (uint64_t)((first >> shift) + shares_first),
			(uint64_t)((last >> shift) - shares_last), row_at(t, region));
}

static struct chain chain_with(const struct building *t, const struct block *b, policy_row out)
{
	struct chain c = {.out = out};

	for (size_t region = b->begin; region <= b->end && chain_is_short(&c); region++)
		chain_add_region(t, &c, b, region);
	return c;
}

// The shortest chain, if there is a short one.
static bool chain_best(const struct building *t, const struct block *b, struct chain *ret)
{
	bool found = false;

	if (b->end - b->begin > FEW_EDGES)
		return false;
	for (size_t region = b->begin; region <= b->end; region++) {
		struct chain c = chain_with(t, b, row_at(t, region));

		if (!chain_is_short(&c) || (found && c.n >= ret->n))
			continue;
		*ret = c;
		found = true;
	}
	return found;
}

// The smallest prefix that has all regions of a block but the first and the last one.
static struct block block_narrow(const struct building *t, const struct block *b)
{
	address_key first = region_first(&t->r->at[b->begin + 1]);
	address_key differ = first ^ region_last(t, b->end - 1);
	struct block narrow = *b;

	narrow.size = key_shift(b);
	while (differ >> narrow.size)
		narrow.size++;
	narrow.first = first >> narrow.size << narrow.size;
	return narrow;
}

// The part of a block that a table of cells is for. To skip a few bits is not worth the nodes
// before it.
static struct block block_to_divide(const struct building *t, const struct block *b)
{
	struct block narrow = block_narrow(t, b);

	if (row_at(t, b->begin) != row_at(t, b->end) && narrow.first != b->first &&
	    block_last(&narrow) != block_last(b) && b->size - narrow.size < BITS_MIN_DEEP)
		return *b;
	return narrow;
}

// ---- nodes --------------------------------------------------------------------------------------

// The node that leads from one /64 to the low words. `region` begins at or before it.
static void lower_fill(struct building *t, uint32_t node, struct block b, policy_row out)
{
	struct table6_wide_node n = {
		.low = (uint64_t)(b.first >> 64), .out = out, .down = TABLE6_LOWER};
	struct chain c;

	b.size = 64;
	b.high = false;
	b.steps++;
	block_regions(t, &b, b.begin);
	if (!chain_best(t, &b, &c) && block_to_divide(t, &b).size == b.size) {
		unsigned bits = table_bits(t, &b);

		n.next = table_fill(t, &b, bits);
		n.down = (uint8_t)(TABLE6_LOWER + b.size - bits);
	} else {
		n.next = block_fill(t, &b);
	}
	t->out.nodes.at[node] = n;
}

// The nodes of a chain's ranges; a node more follows them if `more`.
static uint32_t ranges_fill(struct building *t, const struct chain *c, bool more)
{
	uint32_t first = nodes_add(t, c->n + more);

	for (unsigned i = 0; i < c->n; i++) {
		bool last = i + 1 == c->n && !more;

		t->out.nodes.at[first + i] = (struct table6_wide_node){
			.low = c->at[i].low,
			.next = last ? 0 : first + i + 1,
			.in = c->at[i].in,
			.out = last ? c->out : 0,
			.shift = c->at[i].shift,
		};
	}
	return first;
}

static uint32_t chain_fill(struct building *t, const struct block *b, const struct chain *c)
{
	uint32_t first = ranges_fill(t, c, c->splits);
	struct block split = *b;

	if (!c->splits)
		return first;
	split.first = c->split;
	split.steps += c->n;
	lower_fill(t, first + c->n, split, c->out);
	return first;
}

// A node for a prefix, divided into cells.
static void table_node_fill(struct building *t, uint32_t node, const struct block *b,
			    policy_row out)
{
	unsigned shift = key_shift(b), bits = table_bits(t, b);
	struct table6_wide_node n = {
		.low = (uint64_t)(b->first >> shift),
		.out = out,
		.shift = (uint8_t)(b->size - shift),
		.down = (uint8_t)(b->size - shift - bits),
	};

	n.next = table_fill(t, b, bits);
	t->out.nodes.at[node] = n;
}

// A node for the part of a block that is to be divided. Where the regions before and after it have
// different rows, nodes before it have the keys after it.
static uint32_t divide_fill(struct building *t, const struct block *b)
{
	struct block part = block_to_divide(t, b);
	bool from_first = part.first == b->first;
	struct chain c = {.out = row_at(t, from_first ? b->end : b->begin)};
	uint32_t first;

	if (row_at(t, b->end) != c.out && block_last(&part) != block_last(b))
		chain_add_range(&c, b, (uint64_t)((block_last(&part) + 1) >> key_shift(b)),
				(uint64_t)(block_last(b) >> key_shift(b)), row_at(t, b->end));
	first = ranges_fill(t, &c, true);
	part.steps += c.n;
	if (part.size == key_shift(b)) {
		lower_fill(t, first + c.n, part, c.out);
	} else {
		part.steps++;
		table_node_fill(t, first + c.n, &part, c.out);
	}
	return first;
}

// The first node of a block of at least two regions.
static uint32_t block_fill(struct building *t, const struct block *b)
{
	struct chain c;
	uint32_t node;

	if (b->high && b->size == 64) {
		node = nodes_add(t, 1);
		lower_fill(t, node, *b, row_at(t, b->begin));
		return node;
	}
	return chain_best(t, b, &c) ? chain_fill(t, b, &c) : divide_fill(t, b);
}

int table6_nodes_build(const struct regions *r, size_t room_bytes, struct table6_nodes *ret)
{
	struct building t = {
		.r = r,
		.room = room_bytes,
		.factor = r->n <= REGIONS_MANY ? 2 : 1,
	};
	struct block all = {.size = 128, .high = true};

	vec_push(&t.out.nodes,
		 (struct table6_wide_node){0}); // programs find one even if no cell names it
	table_fill(&t, &all, 16);
	if (t.full) {
		table6_nodes_free(&t.out);
		return -ENOSPC;
	}
	*ret = t.out;
	return 0;
}

void table6_nodes_free(struct table6_nodes *n)
{
	vec_free(&n->nodes);
	vec_free(&n->cells);
}

// ---- what programs read -------------------------------------------------------------------------

bool table6_nodes_are_narrow(const struct table6_nodes *n)
{
	if (n->nodes.n > TABLE6_LEAF)
		return false;
	for (size_t i = 0; i < n->nodes.n; i++)
		if (n->nodes.at[i].in > UINT8_MAX || n->nodes.at[i].out > UINT8_MAX)
			return false;
	for (size_t i = 0; i < n->cells.n; i++)
		if (n->cells.at[i] & TABLE6_WIDE_LEAF &&
		    (uint8_t)n->cells.at[i] != (n->cells.at[i] & ~TABLE6_WIDE_LEAF))
			return false;
	return true;
}

static void write_narrow(const struct table6_nodes *n, struct table6_node *nodes, uint16_t *cells)
{
	for (size_t i = 0; i < n->nodes.n; i++) {
		const struct table6_wide_node *from = &n->nodes.at[i];

		nodes[i] = (struct table6_node){
			.low = from->low,
			.next = from->next,
			.in = (uint8_t)from->in,
			.out = (uint8_t)from->out,
			.shift = from->shift,
			.down = from->down,
		};
	}
	for (size_t i = 0; i < n->cells.n; i++) {
		uint32_t cell = n->cells.at[i];
		uint32_t leaf = cell & TABLE6_WIDE_LEAF ? TABLE6_LEAF : 0;

		cells[i] = (uint16_t)(leaf | (cell & ~TABLE6_WIDE_LEAF));
	}
}

static void write_wide(const struct table6_nodes *n, uint8_t *nodes, uint8_t *cells)
{
	memcpy(nodes, n->nodes.at, n->nodes.n * sizeof(*n->nodes.at));
	memcpy(cells, n->cells.at, n->cells.n * sizeof(*n->cells.at));
}

static size_t power_of_two(size_t n)
{
	size_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

// Masked numbers up to the next power of two must lie within the tables. Another table may be
// there, because no cell or node has such a number.
static void extend(struct tables *t, size_t end)
{
	size_t at = tables_add(t, 0);

	if (at < end)
		tables_add(t, end - at);
}

int table6_nodes_add(const struct table6_nodes *n, struct tables *t, enum table_side side,
		     enum table6_kind kind)
{
	bool wide = kind == TABLE6_WIDE;
	size_t cell = wide ? sizeof(*n->cells.at) : sizeof(uint16_t);
	size_t node = wide ? sizeof(*n->nodes.at) : sizeof(struct table6_node);
	size_t n_cells = power_of_two(n->cells.n), n_nodes = power_of_two(n->nodes.n), cells, nodes;

	if (t->n + n_cells * cell + n_nodes * node + (size_t)3 * TABLE_ALIGN > TABLES_BYTES_MAX)
		return -ENOSPC;
	cells = tables_add(t, n->cells.n * cell);
	nodes = tables_add(t, n->nodes.n * node);
	extend(t, cells + n_cells * cell);
	extend(t, nodes + n_nodes * node);
	if (wide)
		write_wide(n, t->at + nodes, t->at + cells);
	else
		write_narrow(n, (struct table6_node *)(t->at + nodes), (uint16_t *)(t->at + cells));
	tables_number(t, SIDE_CONSTANT(side, T6_KIND), kind);
	tables_address(t, SIDE_CONSTANT(side, T6_CELLS), cells);
	tables_number(t, SIDE_CONSTANT(side, T6_CELLS_MASK), n_cells - 1);
	tables_address(t, SIDE_CONSTANT(side, T6_NODES), nodes);
	tables_number(t, SIDE_CONSTANT(side, T6_NODES_MASK), n_nodes - 1);
	return 0;
}
