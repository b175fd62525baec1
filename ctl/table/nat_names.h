// SPDX-License-Identifier: GPL-2.0-only
// How packets find the ends and sources of nat and fullnat by their addresses (docs/nat.md).
//
// Cuckoo hashing (Pagh and Rodler, Journal of Algorithms 51, 2004): each has a cell in one of two
// tables. Others move to their second cell to make room; they are written there before their first
// cell changes, so a packet finds them at every moment. Pure.
#pragma once

#include <stdint.h>

#include "common/nat.h"

// The end must be complete in t->end[number], 1 … NAT_ENDS - 1; the block in t->block. From then on
// packets find it. -ENOSPC: no room, nothing has changed.
int nat_end_put(struct nat_table *t, uint32_t number);
int nat_source_put(struct nat_table *t, int family, uint32_t block);

// Packets no longer find it. Its element is unchanged.
void nat_end_take(struct nat_table *t, uint32_t number);
void nat_source_take(struct nat_table *t, int family, uint32_t block);
