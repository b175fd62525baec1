// SPDX-License-Identifier: GPL-2.0-only
// Puts hosts into lines of 64 bytes by a keyed hash; hosts that find no room are left to the trie.
#include "ctl/table/lines.h"

#include <string.h>

// Hosts of a line on average, in hundredths. IPv4: two thirds full, 2 % of the hosts find no room.
// IPv6: a host that finds none costs up to 19 nodes, about 800 bytes, so that lines a third full (2.3 %
// find none) take the least memory in all.
#define LINES_LOAD4 650
#define LINES_LOAD6 100

_Static_assert(sizeof(struct policy_line4) == sizeof(struct policy_line6), "lines are of one size");

size_t lines_count(const struct regions *r, int family)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += lines_hosts(r, i, family);
	return n;
}

// Is everything but the hosts one row, so that no trie is needed beside the lines?
static bool is_flat(const struct regions *r, int family)
{
	policy_row row = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (lines_hosts(r, i, family))
			continue;
		if (row && r->at[i].row != row)
			return false;
		row = r->at[i].row;
	}
	return true;
}

bool lines_pay(const struct regions *r, int family, size_t hosts)
{
	return hosts && (family == 6 || hosts > LINES_FEW4 || is_flat(r, family));
}

static bool place4(struct policy_line4 *line, uint32_t addr, uint16_t row)
{
	for (int i = 0; i < POLICY_LINE4; i++) {
		if (line->row[i])
			continue;
		line->key[i] = addr;
		line->row[i] = row;
		return true;
	}
	return false;
}

static bool place6(struct policy_line4 *place, uint64_t hi, uint64_t lo, uint16_t row)
{
	struct policy_line6 line;

	memcpy(&line, place, sizeof(line));
	for (int i = 0; i < POLICY_LINE6; i++) {
		if (line.row[i])
			continue;
		line.key[i][0] = hi;
		line.key[i][1] = lo;
		line.row[i] = row;
		memcpy(place, &line, sizeof(line));
		return true;
	}
	return false;
}

struct host_lines {
	struct policy_line4 *at;
	uint32_t n;
	int family;
	uint64_t seed;
};

static bool place(const struct host_lines *l, address_key key, policy_row row)
{
	uint64_t hi = (uint64_t)(key >> 64), lo = (uint64_t)key;

	if (row > UINT16_MAX)
		return false;
	if (l->family == 4) {
		uint32_t addr = (uint32_t)(hi >> 32);

		return place4(&l->at[policy_line_of4(addr, l->seed, l->n)], addr, (uint16_t)row);
	}
	return place6(&l->at[policy_line_of6(hi, lo, l->seed, l->n)], hi, lo, (uint16_t)row);
}

static struct host_lines lines_new(struct table_arrays *t, int family, size_t hosts, uint64_t seed)
{
	size_t load = family == 4 ? LINES_LOAD4 : LINES_LOAD6, first = t->lines.n;
	size_t n = (hosts * 100 + load - 1) / load;

	vec_reserve(&t->lines, n);
	memset(t->lines.at + first, 0, n * sizeof(*t->lines.at));
	t->lines.n += n;
	return (struct host_lines){t->lines.at + first, (uint32_t)n, family, seed};
}

void lines_build(const struct regions *r, int family, size_t hosts, uint64_t seed,
		 struct table_arrays *t, struct regions *ret_rest, uint32_t *ret_first,
		 uint32_t *ret_lines)
{
	address_key host = (address_key)1 << key_host_shift(family);
	size_t first = t->lines.n;
	struct host_lines lines = lines_new(t, family, hosts, seed);
	struct regions rest = {0};

	for (size_t i = 0; i < r->n; i++) {
		unsigned n = lines_hosts(r, i, family);
		address_key key = region_first(&r->at[i]);
		policy_row row = r->at[i].row;

		if (!n || !rest.n) // the rest begins at 0 in any case
			regions_add(&rest, key, row);
		for (; n; n--, key += host) {
			if (!place(&lines, key, row))
				regions_add(&rest, key, row);
		}
	}
	*ret_first = (uint32_t)first;
	*ret_lines = lines.n;
	*ret_rest = rest;
}
