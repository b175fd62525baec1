// SPDX-License-Identifier: GPL-2.0-only
// Changes which blocks the cells of the table of connections name.
#include "ctl/table/nat_cells.h"

#include <errno.h>
#include <string.h>

#define NONE 0 // in a cell: no block

static uint8_t name_in(uint64_t cell, unsigned int depth)
{
	return (uint8_t)(cell >> 8 * depth);
}

// Packets read the cell at any time.
static void store(uint64_t *cell, uint64_t value)
{
	__atomic_store_n(cell, value, __ATOMIC_RELEASE);
}

// The names from `depth` on without the block, if it is there, and without empty places; later ones
// move up.
static uint64_t without(uint64_t cell, uint8_t name, unsigned int depth)
{
	uint64_t left = cell & ((1ull << 8 * depth) - 1);

	for (unsigned int d = depth, n = depth; d < NAT_DEPTH; d++)
		if (name_in(cell, d) != NONE && name_in(cell, d) != name)
			left |= (uint64_t)name_in(cell, d) << 8 * n++;
	return left;
}

// The same for the newest block; false: there is no room.
static bool put_first(uint64_t *cell, uint8_t name)
{
	uint64_t rest = without(*cell, name, 0);

	if (name_in(rest, NAT_DEPTH - 1) != NONE)
		return false;
	*cell = rest << 8 | name;
	return true;
}

// How many more cells each block is to be the newest in, by its number; 0 for blocks that are not
// in the list. Blocks that have the most keep the cells that are left over.
static void count_wanted(const uint64_t cells[NAT_CELLS], const uint8_t *at, size_t n,
			 size_t ret_share[NAT_BLOCKS])
{
	size_t share = NAT_CELLS / n, over = NAT_CELLS % n;

	memset(ret_share, 0, NAT_BLOCKS * sizeof(*ret_share));
	for (size_t i = 0; i < n; i++)
		ret_share[at[i]] = share;
	for (size_t i = 0; i < n && over; i++)
		if (nat_cells_newest(cells, at[i]) > share) {
			ret_share[at[i]]++;
			over--;
		}
	for (size_t i = 0; i < n && over; i++)
		if (ret_share[at[i]] == share) {
			ret_share[at[i]]++;
			over--;
		}
}

// Does the cell keep its newest block? Then the block has one cell less to get.
static bool keeps(uint64_t cell, size_t share[NAT_BLOCKS])
{
	uint8_t name = name_in(cell, 0);

	if (name == NONE || !share[name - 1])
		return false;
	share[name - 1]--;
	return true;
}

int nat_cells_change(uint64_t cells[NAT_CELLS], const uint8_t *at, size_t n)
{
	uint64_t changed[NAT_CELLS];
	bool kept[NAT_CELLS];
	size_t share[NAT_BLOCKS], next = 0;

	memcpy(changed, cells, sizeof(changed));
	count_wanted(cells, at, n, share);
	for (size_t c = 0; c < NAT_CELLS; c++)
		kept[c] = keeps(cells[c], share);
	for (size_t c = 0; c < NAT_CELLS; c++) {
		if (kept[c])
			continue;
		while (!share[at[next]])
			next = (next + 1) % n;
		share[at[next]]--;
		if (!put_first(&changed[c], (uint8_t)(at[next] + 1)))
			return -ENOSPC;
		next = (next + 1) % n;
	}
	for (size_t c = 0; c < NAT_CELLS; c++)
		store(&cells[c], changed[c]);
	return 0;
}

void nat_cells_force(uint64_t cells[NAT_CELLS], const uint8_t *at, size_t n)
{
	if (!nat_cells_change(cells, at, n))
		return;
	for (size_t c = 0; c < NAT_CELLS; c++)
		if (name_in(cells[c], NAT_DEPTH - 1) != NONE)
			store(&cells[c], cells[c] << 8 >> 8);
	nat_cells_change(cells, at, n);
}

void nat_cells_end(uint64_t cells[NAT_CELLS])
{
	for (size_t c = 0; c < NAT_CELLS; c++)
		if (name_in(cells[c], 0) != NONE && name_in(cells[c], NAT_DEPTH - 1) == NONE)
			store(&cells[c], cells[c] << 8);
}

size_t nat_cells_walk(uint64_t cells[NAT_CELLS],
		      bool (*lives)(const void *arg, uint32_t cell, uint8_t block), const void *arg)
{
	size_t removed = 0;

	for (uint32_t c = 0; c < NAT_CELLS; c++)
		for (unsigned int d = NAT_DEPTH - 1; d > 0; d--) {
			uint8_t name = name_in(cells[c], d);

			if (name == NONE || lives(arg, c, (uint8_t)(name - 1)))
				continue;
			store(&cells[c], without(cells[c], name, 1));
			removed++;
		}
	return removed;
}

size_t nat_cells_newest(const uint64_t cells[NAT_CELLS], uint8_t block)
{
	size_t n = 0;

	for (size_t c = 0; c < NAT_CELLS; c++)
		n += name_in(cells[c], 0) == block + 1;
	return n;
}

size_t nat_cells_named(const uint64_t cells[NAT_CELLS], uint8_t block)
{
	size_t n = 0;

	for (size_t c = 0; c < NAT_CELLS; c++)
		for (unsigned int d = 0; d < NAT_DEPTH; d++)
			n += name_in(cells[c], d) == block + 1;
	return n;
}
