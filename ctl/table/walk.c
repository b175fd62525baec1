// SPDX-License-Identifier: GPL-2.0-only
// Reads tries from left to right, and inserts the hosts of the lines in their places.
#include "ctl/table/walk.h"

#include <stdlib.h>
#include <string.h>

struct trie_walk {
	const struct image *image;
	struct regions *out;
};

static void walk_node(struct trie_walk *w, uint32_t index, address_key first, int shift)
{
	const struct policy_node *node = &w->image->nodes[index];
	uint32_t child = node->child_base, leaf = node->leaf_base;

	for (unsigned chunk = 0; chunk < 1u << POLICY_STRIDE; chunk++) {
		address_key at = first + (shift >= 0 ? (address_key)chunk << shift
						     : (address_key)chunk >> -shift);

		if (node->leaves >> chunk & 1)
			leaf++;
		if (node->children >> chunk & 1)
			walk_node(w, child++, at, shift - POLICY_STRIDE);
		else
			regions_add(w->out, at, w->image->fields[leaf - 1]);
	}
}

static void walk_trie(struct trie_walk *w, uint32_t direct, int bits)
{
	for (size_t slot = 0; slot < (size_t)1 << bits; slot++) {
		address_key at = (address_key)slot << (128 - bits);
		uint32_t entry = w->image->fields[direct + slot];

		if (entry & POLICY_LEAF)
			regions_add(w->out, at, entry & ~POLICY_LEAF);
		else
			walk_node(w, entry, at, 128 - bits - POLICY_STRIDE);
	}
}

// ---- hosts --------------------------------------------------------------------------------------

static void hosts4(const struct image *i, const struct policy_side *side, struct regions *hosts)
{
	for (uint32_t n = side->first4; n < side->first4 + side->count4; n++)
		for (int k = 0; k < POLICY_LINE4 && i->lines[n].row[k]; k++)
			vec_push(hosts, ((struct region){(uint64_t)i->lines[n].key[k] << 32, 0,
							 i->lines[n].row[k]}));
}

static void hosts6(const struct image *i, const struct policy_side *side, struct regions *hosts)
{
	for (uint32_t n = side->first6; n < side->first6 + side->count6; n++) {
		struct policy_line6 line;

		memcpy(&line, &i->lines[n], sizeof(line));
		for (int k = 0; k < POLICY_LINE6 && line.row[k]; k++)
			vec_push(hosts,
				 ((struct region){line.key[k][0], line.key[k][1], line.row[k]}));
	}
}

static int region_compare(const void *a, const void *b)
{
	address_key x = region_first(a), y = region_first(b);

	return (x > y) - (x < y);
}

static void overlay(const struct regions *under, const struct regions *hosts, int family,
		    struct regions *ret)
{
	address_key at = 0, host = (address_key)1 << key_host_shift(family);
	size_t u = 0, h = 0;

	do {
		address_key next = region_end(under, u);

		if (h < hosts->n && region_first(&hosts->at[h]) == at) {
			regions_add(ret, at, hosts->at[h++].row);
			at += host;
		} else {
			regions_add(ret, at, under->at[u].row);
			at = next;
			if (h < hosts->n && (!next || region_first(&hosts->at[h]) < next))
				at = region_first(&hosts->at[h]);
		}
		while (next && at >= next) {
			u++;
			next = region_end(under, u);
		}
	} while (at);
}

void walk_side(const struct image *i, const struct policy_side *side, int family,
	       struct regions *ret)
{
	struct regions under = {0}, hosts = {0};
	struct trie_walk w = {i, &under};

	if (family == 4 ? side->trie4 : side->trie6)
		walk_trie(&w, family == 4 ? side->direct4 : side->direct6,
			  family == 4 ? POLICY_DIRECT4_BITS : POLICY_DIRECT6_BITS);
	else
		regions_add(&under, 0, family == 4 ? side->none4 : side->none6);
	if (family == 4 && side->lines4)
		hosts4(i, side, &hosts);
	if (family == 6 && side->lines6)
		hosts6(i, side, &hosts);
	if (hosts.n)
		qsort(hosts.at, hosts.n, sizeof(*hosts.at), region_compare);
	overlay(&under, &hosts, family, ret);
	vec_free(&under);
	vec_free(&hosts);
}
