// SPDX-License-Identifier: GPL-2.0-only
// The memory of an image, and the look-up of a packet in it, step by step as xdp/trie.bpf.h does it.
#include "ctl/table/image.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/table/fields.h"

void image_free(struct image *i)
{
	if (!i)
		return;
	for (size_t n = 0; i->about && n < i->n_rules; n++) {
		free(i->about[n].identity);
		free(i->about[n].place);
		free(i->about[n].redirect);
	}
	for (size_t n = 0; i->services && n < i->n_services; n++) {
		free(i->services[n].name);
		free(i->services[n].place);
	}
	free(i->services);
	free(i->about);
	free(i->rules);
	free(i->fields);
	free(i->nodes);
	free(i->lines);
	free(i->rows);
	free(i);
}

void image_cleanup(struct image **i)
{
	image_free(*i);
}

size_t image_bytes(const struct image *i)
{
	size_t row = POLICY_ROW_WORDS(i->config.words) * sizeof(*i->rows);

	return i->n_fields * sizeof(*i->fields) + i->n_nodes * sizeof(*i->nodes) +
	       i->n_lines * sizeof(*i->lines) + i->n_rows * row + i->n_rules * sizeof(*i->rules) +
	       i->n_meters * sizeof(uint64_t) +
	       i->n_bucket_lines * sizeof(struct policy_bucket_line) + i->n_logs * sizeof(uint64_t);
}

// ---- looking up ---------------------------------------------------------------------------------

static uint32_t cell_at(const struct image *i, size_t index)
{
	return index < i->n_fields ? i->fields[index] : 0;
}

static uint64_t load64(const uint8_t *bytes)
{
	uint64_t n = 0;

	for (int b = 0; b < 8; b++)
		n = n << 8 | bytes[b];
	return n;
}

// hi, lo: the rest of the address after the bits of the direct table.
static policy_row trie_walk(const struct image *i, uint32_t next, uint64_t hi, uint64_t lo,
			    int depth)
{
	if (next & POLICY_LEAF)
		return next & ~POLICY_LEAF;
	while (depth--) {
		uint64_t bit = 1ull << (hi >> (64 - POLICY_STRIDE));
		const struct policy_node *node;

		if (next >= i->n_nodes)
			return 0;
		node = &i->nodes[next];
		if (!(node->children & bit)) {
			int run = __builtin_popcountll(node->leaves & ((bit << 1) - 1)) - 1;

			return cell_at(i, (size_t)node->leaf_base + (size_t)run);
		}
		next = node->child_base +
		       (uint32_t)__builtin_popcountll(node->children & (bit - 1));
		hi = hi << POLICY_STRIDE | lo >> (64 - POLICY_STRIDE);
		lo <<= POLICY_STRIDE;
	}
	return 0;
}

static policy_row line4_row(const struct policy_line4 *line, uint32_t addr)
{
	policy_row row = 0;

	for (int n = 0; n < POLICY_LINE4; n++)
		row |= line->key[n] == addr ? line->row[n] : 0;
	return row;
}

static policy_row line6_row(const struct policy_line4 *place, uint64_t hi, uint64_t lo)
{
	struct policy_line6 line;
	policy_row row = 0;

	memcpy(&line, place, sizeof(line));
	for (int n = 0; n < POLICY_LINE6; n++)
		row |= line.key[n][0] == hi && line.key[n][1] == lo ? line.row[n] : 0;
	return row;
}

static policy_row side4(const struct image *i, const struct policy_side *side, uint32_t addr)
{
	uint64_t rest = (uint64_t)addr << (32 + POLICY_DIRECT4_BITS);
	policy_row row = 0;

	if (side->lines4)
		row = line4_row(&i->lines[side->first4 +
					  policy_line_of4(addr, i->config.line_seed, side->count4)],
				addr);
	if (row || !side->trie4)
		return row ? row : side->none4;
	return trie_walk(i,
			 cell_at(i, side->direct4 + (size_t)(addr >> (32 - POLICY_DIRECT4_BITS))),
			 rest, 0, 3);
}

static policy_row side6(const struct image *i, const struct policy_side *side, uint64_t hi,
			uint64_t lo)
{
	uint64_t rest = hi << POLICY_DIRECT6_BITS | lo >> (64 - POLICY_DIRECT6_BITS);
	policy_row row = 0;

	if (side->lines6)
		row = line6_row(
			&i->lines[side->first6 +
				  policy_line_of6(hi, lo, i->config.line_seed, side->count6)],
			hi, lo);
	if (row || !side->trie6)
		return row ? row : side->none6;
	return trie_walk(i, cell_at(i, side->direct6 + (size_t)(hi >> (64 - POLICY_DIRECT6_BITS))),
			 rest, lo << POLICY_DIRECT6_BITS, 19);
}

static policy_row address_row(const struct image *i, const struct image_packet *p, int field)
{
	const uint8_t *addr = field == FIELD_SOURCE ? p->source : p->destination;
	const struct policy_side *side = &i->config.side[field];

	if (p->family == 4)
		return side4(i, side, (uint32_t)(load64(addr) >> 32));
	return side6(i, side, load64(addr), load64(addr + 8));
}

static bool looked_up(const struct image *i, const struct image_packet *p, int field)
{
	return i->config.use[field] && (p->family || matrix_fields[field].frame);
}

// common/policy.h, FIELD_L4 and FIELD_ETHERTYPE.
static bool matchable(const struct image *i, const struct image_packet *p)
{
	if (p->family && p->index[FIELD_L4] >= POLICY_L4_NEIGHBOUR)
		return i->config.use[FIELD_L4];
	return p->family || i->config.use[FIELD_ETHERTYPE];
}

bool image_match(const struct image *i, const struct image_packet *p, uint64_t *ret_words)
{
	uint32_t words = i->config.words;

	memset(ret_words, 0, words * sizeof(*ret_words));
	if (!words || !matchable(i, p))
		return true;
	for (size_t n = 0; n < i->n_rules + i->n_services; n++)
		ret_words[n / 64] |= 1ull << (n % 64);
	for (int field = 0; field < POLICY_FIELDS; field++) {
		policy_row row;

		if (!looked_up(i, p, field))
			continue;
		row = field <= FIELD_DESTINATION
			      ? address_row(i, p, field)
			      : cell_at(i, (size_t)i->config.base[field] + p->index[field]);
		if (!row || row >= i->n_rows)
			return false;
		for (uint32_t w = 0; w < words; w++)
			ret_words[w] &= i->rows[row * POLICY_ROW_WORDS(words) + w];
	}
	return true;
}
