/* SPDX-License-Identifier: GPL-2.0-only */
/* Look-ups that yield numbers of rows: small fields, host lines, and poptries for prefixes. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/policy.h"
#include "xdp/packet.bpf.h"

/* Read-only data: the verifier removes what the policy does not use. */
const volatile struct policy_config policy = {};

/* Does the policy hold on the interface that the packet came in on? Else entries alone do. */
static __always_inline bool policy_holds(const struct packet *pkt)
{
	/* Read each time: two values that the verifier knows would make it walk what is between twice. */
	return !policy.named || *(const volatile __u8 *)&pkt->iface;
}

/* Sizes are set at load. Flat arrays, so that look-ups are inlined, and mapped to be filled. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct policy_cells));
} fields SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct policy_node));
} nodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct policy_line4));
} lines SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct policy_ifclass);
} ifclass SEC(".maps");

/* Where the tables begin, looked up once a packet, for those that are one value of their map. */
struct trie_tables {
	const void *fields, *nodes, *lines, *rows;
};

/* Element `index` of a table: relative to its beginning, or a look-up. `n` is read-only data, so that the
 * verifier knows the bound and keeps one of the two. */
#define table_at(begin, n, size, map, index)                                              \
	((n) ? ((index) < (n) ? (const void *)((begin) + (__u64)(index) * (size)) : NULL) \
	     : bpf_map_lookup_elem(map, &(index)))

static __always_inline bool tables_find(struct trie_tables *t)
{
	__u32 zero = 0;

	if (policy.flat.fields && !(t->fields = bpf_map_lookup_elem(&fields, &zero)))
		return false;
	if (policy.flat.nodes && !(t->nodes = bpf_map_lookup_elem(&nodes, &zero)))
		return false;
	if (policy.flat.lines && !(t->lines = bpf_map_lookup_elem(&lines, &zero)))
		return false;
	return true;
}

static __always_inline __u32 field_at(const struct trie_tables *t, __u32 index)
{
	const struct policy_cells *cells;
	__u32 line = index / POLICY_CELLS;

	if (policy.flat.fields)
		return index < policy.flat.fields ? ((const __u32 *)t->fields)[index] : 0;
	cells = bpf_map_lookup_elem(&fields, &line);
	return cells ? cells->cell[index % POLICY_CELLS] : 0;
}

static __always_inline const struct policy_node *node_at(const struct trie_tables *t, __u32 index)
{
	return table_at(t->nodes, policy.flat.nodes, sizeof(struct policy_node), &nodes, index);
}

static __always_inline const void *line_at(const struct trie_tables *t, __u32 index)
{
	return table_at(t->lines, policy.flat.lines, sizeof(struct policy_line4), &lines, index);
}

static __always_inline policy_row trie_leaf(const struct trie_tables *t,
					    const struct policy_node *node, __u64 bit)
{
	/* bit << 1 of the last chunk is 0, and 0 - 1 all ones: the mask is right there too. */
	__u64 below = (bit << 1) - 1;

	return field_at(t, node->leaf_base + __builtin_popcountll(node->leaves & below) - 1);
}

/* addr in host order. */
static __always_inline policy_row trie4(const struct trie_tables *t, __u32 direct, __u32 addr)
{
	__u32 next = field_at(t, direct + (addr >> (32 - POLICY_DIRECT4_BITS)));
	__u64 rest = (__u64)addr << (32 + POLICY_DIRECT4_BITS);

#pragma unroll
	for (int depth = 0; depth < 3; depth++) {
		__u64 bit = 1ull << (rest >> (64 - POLICY_STRIDE));
		const struct policy_node *node;

		if (next & POLICY_LEAF)
			return next & ~POLICY_LEAF;
		node = node_at(t, next);
		if (!node)
			return 0;
		if (!(node->children & bit))
			return trie_leaf(t, node, bit);
		next = node->child_base + __builtin_popcountll(node->children & (bit - 1));
		rest <<= POLICY_STRIDE;
	}
	return 0;
}

/* hi and lo in host order. */
static __always_inline policy_row trie6(const struct trie_tables *t, __u32 direct, __u64 hi,
					__u64 lo)
{
	__u32 next = field_at(t, direct + (hi >> (64 - POLICY_DIRECT6_BITS)));

	if (next & POLICY_LEAF)
		return next & ~POLICY_LEAF;
	hi = hi << POLICY_DIRECT6_BITS | lo >> (64 - POLICY_DIRECT6_BITS);
	lo <<= POLICY_DIRECT6_BITS;
	for (int depth = 0; depth < 19; depth++) {
		__u64 bit = 1ull << (hi >> (64 - POLICY_STRIDE));
		const struct policy_node *node = node_at(t, next);

		if (!node)
			return 0;
		if (!(node->children & bit))
			return trie_leaf(t, node, bit);
		next = node->child_base + __builtin_popcountll(node->children & (bit - 1));
		hi = hi << POLICY_STRIDE | lo >> (64 - POLICY_STRIDE);
		lo <<= POLICY_STRIDE;
	}
	return 0;
}

/* All ones where x is 0: without a branch. */
static __always_inline __u64 if_zero(__u64 x)
{
	return ((x | -x) >> 63) - 1;
}

/* The row of a host, or 0. */
static __always_inline policy_row line4(const struct trie_tables *t, __u32 first, __u32 count,
					__u32 addr)
{
	__u32 index = first + policy_line_of4(addr, policy.line_seed, count);
	const struct policy_line4 *line = line_at(t, index);
	__u64 row = 0;

	if (!line)
		return 0;
#pragma unroll
	for (int i = 0; i < POLICY_LINE4; i++)
		/* A difference of two 32-bit numbers below 2^32 borrows only where it was 0. */
		row |= line->row[i] & -(((__u64)(line->key[i] ^ addr) - 1) >> 63);
	return row;
}

static __always_inline policy_row line6(const struct trie_tables *t, __u32 first, __u32 count,
					__u64 hi, __u64 lo)
{
	__u32 index = first + policy_line_of6(hi, lo, policy.line_seed, count);
	const struct policy_line6 *line = line_at(t, index);
	__u64 row = 0;

	if (!line)
		return 0;
#pragma unroll
	for (int i = 0; i < POLICY_LINE6; i++)
		row |= line->row[i] & if_zero((line->key[i][0] ^ hi) | (line->key[i][1] ^ lo));
	return row;
}

static __always_inline policy_row side4(const struct trie_tables *t,
					const volatile struct policy_side *side, __be32 addr_be)
{
	__u32 addr = bpf_ntohl(addr_be);
	policy_row row = 0;

	if (side->lines4)
		row = line4(t, side->first4, side->count4, addr);
	if (row)
		return row;
	return side->trie4 ? trie4(t, side->direct4, addr) : side->none4;
}

static __always_inline policy_row side6(const struct trie_tables *t,
					const volatile struct policy_side *side,
					const __u32 *addr_be)
{
	__u64 hi = (__u64)bpf_ntohl(addr_be[0]) << 32 | bpf_ntohl(addr_be[1]);
	__u64 lo = (__u64)bpf_ntohl(addr_be[2]) << 32 | bpf_ntohl(addr_be[3]);
	policy_row row = 0;

	if (side->lines6)
		row = line6(t, side->first6, side->count6, hi, lo);
	if (row)
		return row;
	return side->trie6 ? trie6(t, side->direct6, hi, lo) : side->none6;
}
