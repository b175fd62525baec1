// SPDX-License-Identifier: GPL-2.0-only
// Builds poptries from sorted regions: a node costs as many steps as it has boundaries.
//
// Asai and Ohara, "Poptrie: A Compressed Trie with Population Count for Fast and Scalable Software
// IP Routing Table Lookup", SIGCOMM 2015.
#include "ctl/table/trie.h"

#include <string.h>

#define CHUNKS (1u << POLICY_STRIDE)

struct trie {
	const struct regions *regions;
	struct table_arrays *out;
};

struct child {
	unsigned chunk;
	size_t region; // that covers its first address
};

// What a node covers: CHUNKS ranges of 2^shift addresses. In the last stride of IPv6 shift is negative:
// each address takes several chunks, of which a look-up meets the first.
struct span {
	address_key first;
	int shift;
};

// The region that covers the address `at`, from region i on; at == 0 is after the last one.
static size_t region_at(const struct trie *t, size_t i, address_key at)
{
	while (i + 1 < t->regions->n && region_end(t->regions, i) <= at)
		i++;
	return i;
}

// The chunk in which region i ends, and whether at its beginning; CHUNKS if that is beyond the span.
static unsigned end_chunk(const struct trie *t, const struct span *s, size_t i, bool *ret_exact)
{
	address_key end = region_end(t->regions, i), offset = end - s->first;

	if (!end || offset >> (s->shift + POLICY_STRIDE))
		return CHUNKS;
	*ret_exact = s->shift <= 0 || !(offset & (((address_key)1 << s->shift) - 1));
	return (unsigned)(s->shift >= 0 ? offset >> s->shift : offset << -s->shift);
}

// A run of leaves; leaves of one node are adjacent in fields.
static void leaf_add(struct trie *t, struct policy_node *node, unsigned chunk, policy_row row)
{
	if (node->leaves && *vec_last(&t->out->fields) == row)
		return;
	node->leaves |= 1ull << chunk;
	vec_push(&t->out->fields, row);
}

// Bits and leaves of a node; its children are only noted.
static unsigned node_scan(struct trie *t, const struct span *s, size_t i, struct policy_node *node,
			  struct child child[CHUNKS])
{
	unsigned n = 0;

	for (unsigned chunk = 0; chunk < CHUNKS;) {
		bool exact = false;
		unsigned end = end_chunk(t, s, i, &exact);

		if (end > chunk)
			leaf_add(t, node, chunk, t->regions->at[i].row);
		chunk = end;
		if (chunk == CHUNKS)
			break;
		if (exact) {
			i++;
			continue;
		}
		node->children |= 1ull << chunk;
		child[n++] = (struct child){chunk, i};
		chunk++;
		i = region_at(t, i, s->first + ((address_key)chunk << s->shift));
	}
	return n;
}

static uint32_t nodes_reserve(struct table_arrays *out, unsigned n)
{
	size_t first = out->nodes.n;

	vec_reserve(&out->nodes, n);
	memset(out->nodes.at + first, 0, n * sizeof(*out->nodes.at));
	out->nodes.n += n;
	return (uint32_t)first;
}

static void node_fill(struct trie *t, uint32_t index, const struct span *s, size_t i)
{
	struct policy_node node = {.leaf_base = (uint32_t)t->out->fields.n};
	struct child child[CHUNKS];
	unsigned n = node_scan(t, s, i, &node, child);

	if (n)
		node.child_base = nodes_reserve(t->out, n);
	t->out->nodes.at[index] = node;
	for (unsigned c = 0; c < n; c++) {
		struct span below = {
			.first = s->first + ((address_key)child[c].chunk << s->shift),
			.shift = s->shift - POLICY_STRIDE,
		};

		node_fill(t, node.child_base + c, &below, child[c].region);
	}
}

static void direct_leaves(struct table_arrays *out, size_t first, size_t end, policy_row row)
{
	for (size_t i = first; i < end; i++)
		out->fields.at[i] = row | POLICY_LEAF;
}

uint32_t trie_build(const struct regions *regions, int family, struct table_arrays *out)
{
	struct trie t = {regions, out};
	int bits = family == 4 ? POLICY_DIRECT4_BITS : POLICY_DIRECT6_BITS, shift = 128 - bits;
	size_t direct = out->fields.n, size = (size_t)1 << bits, i = 0;

	vec_reserve(&out->fields, size);
	out->fields.n += size;
	for (size_t slot = 0; slot < size;) {
		address_key end = region_end(regions, i);
		size_t last = end ? (size_t)(end >> shift) : size;
		struct span s = {(address_key)last << shift, shift - POLICY_STRIDE};
		uint32_t node;

		direct_leaves(out, direct + slot, direct + last, regions->at[i].row);
		slot = last;
		if (slot == size)
			break;
		if (end == s.first) { // the slot begins with the next region
			i++;
			continue;
		}
		node = nodes_reserve(out, 1);
		node_fill(&t, node, &s, i);
		out->fields.at[direct + slot++] = node;
		i = region_at(&t, i, (address_key)slot << shift);
	}
	return (uint32_t)direct;
}
