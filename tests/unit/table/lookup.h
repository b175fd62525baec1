// SPDX-License-Identifier: GPL-2.0-only
// Looks a packet up in the tables of an image, by the readers of the datapath.
#pragma once

#include <string.h>

#include "common/table4.h"
#include "common/table6.h"
#include "ctl/table/fields.h"
#include "ctl/table/image.h"

// Addresses are in network order.
struct image_packet {
	uint8_t family; // 4, 6, 0: not IP (only VLAN, IFACE and ETHERTYPE are looked up)
	uint8_t source[16], destination[16];
	// Within the field: port, fragment * 256 + proto, POLICY_L4_*, …
	uint32_t index[POLICY_FIELDS];
};

static inline uint64_t image_load64(const uint8_t *bytes)
{
	uint64_t n = 0;

	for (int b = 0; b < 8; b++)
		n = n << 8 | bytes[b];
	return n;
}

static inline policy_row image_address_row(const struct image *i, enum table_side side, int family,
					   const uint8_t *addr)
{
	if (family == 4)
		return (policy_row)table4_row(&i->tables, side,
					      (uint32_t)(image_load64(addr) >> 32), false);
	return (policy_row)table6_row(&i->tables, side, image_load64(addr), image_load64(addr + 8),
				      false);
}

static inline policy_row image_row_of(const struct image *i, enum table_matrix matrix,
				      enum policy_field field, const struct image_packet *p)
{
	if (field == FIELD_SOURCE)
		return image_address_row(i, SIDE_SOURCE, p->family, p->source);
	if (field == FIELD_DESTINATION)
		return image_address_row(i,
					 matrix == MATRIX_MEMBERS ? SIDE_MEMBER : SIDE_DESTINATION,
					 p->family, p->destination);
	return image_field_row(i, matrix, field, p->index[field]);
}

static inline bool image_looks_up(const struct matrix_built *m, const struct image_packet *p,
				  int field)
{
	return m->use[field] && (p->family || matrix_fields[field].frame);
}

// common/fields.h, FIELD_L4 and FIELD_ETHERTYPE.
static inline bool image_matchable(const struct matrix_built *m, const struct image_packet *p)
{
	if (p->family && p->index[FIELD_L4] >= POLICY_L4_NEIGHBOUR)
		return m->use[FIELD_L4];
	return p->family || m->use[FIELD_ETHERTYPE];
}

// Finds the rules whose fields match: fills ret_words[words of the matrix]. False when a look-up
// yields row 0.
static inline bool image_match(const struct image *i, enum table_matrix matrix,
			       const struct image_packet *p, uint64_t *ret_words)
{
	const struct matrix_built *m = &i->matrix[matrix];
	size_t bits = matrix == MATRIX_RULES ? i->n_rules : i->n_services;

	memset(ret_words, 0, m->words * sizeof(*ret_words));
	if (!m->words || !image_matchable(m, p))
		return true;
	for (size_t n = 0; n < bits; n++)
		ret_words[n / 64] |= 1ull << (n % 64);
	for (int field = 0; field < POLICY_FIELDS; field++) {
		policy_row number;
		const __u64 *row;

		if (!image_looks_up(m, p, field))
			continue;
		number = image_row_of(i, matrix, (enum policy_field)field, p);
		row = matrix_row(&i->tables, matrix, number);
		if (!number || !row)
			return false;
		for (uint32_t w = 0; w < m->words; w++)
			ret_words[w] &= row[matrix_place(w, m->words)];
	}
	return true;
}
