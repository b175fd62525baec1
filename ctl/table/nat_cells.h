// SPDX-License-Identifier: GPL-2.0-only
// The cells of the table of connections: which blocks the connections of each hash are in
// (docs/nat.md).
//
// A cell is a word of up to NAT_DEPTH numbers of blocks, each plus 1, the newest one in the lowest
// byte.
// New connections take places in the newest block, so a change of blocks moves no connection: the
// former block stays in the cell until a walk finds no living connection there. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/nat.h"

// The blocks at[0 … n - 1], each once and n at least 1, take the new connections from now on, each
// in an equal number of cells or one more. As few cells as possible get another newest block.
// -ENOSPC: a cell would name more blocks than it has room for; cells is unchanged then.
int nat_cells_change(uint64_t cells[NAT_CELLS], const uint8_t *at, size_t n);
// The same; cells without room forget their oldest block, and its connections are no longer found.
void nat_cells_force(uint64_t cells[NAT_CELLS], const uint8_t *at, size_t n);
// No block takes new connections from now on, and a walk can remove each; all are looked up. A cell
// without room stays as it is.
void nat_cells_end(uint64_t cells[NAT_CELLS]);

// Removes the blocks from all cells, except newest ones, for which `lives` returns false. Returns
// how many names of blocks were removed.
size_t nat_cells_walk(uint64_t cells[NAT_CELLS],
		      bool (*lives)(const void *arg, uint32_t cell, uint8_t block),
		      const void *arg);

// In how many cells a block is the newest one, and in how many it is named at all.
size_t nat_cells_newest(const uint64_t cells[NAT_CELLS], uint8_t block);
size_t nat_cells_named(const uint64_t cells[NAT_CELLS], uint8_t block);
