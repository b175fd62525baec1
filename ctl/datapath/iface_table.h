// SPDX-License-Identifier: GPL-2.0-only
// The table by which the datapath finds the number of an interface: perfect hashing, changed under
// traffic.
//
// There are two tables of 256 buckets. If the bucket of a new interface is taken, another
// multiplier is searched, the second table is filled, and one store switches to it. Packets that
// still read the other table are waited for (an RCU grace period, by membarrier()) before that
// table is filled again.
#pragma once

#include <stdint.h>

#include "common/config.h"

// An empty table.
void iface_table_begin(struct knobs *knobs);

// The number of the interface with this ifindex; 0: it has none.
uint32_t iface_table_find(const struct knobs *knobs, uint32_t ifindex);

// Sets the number of an ifindex, or removes it (number 0). Packets of the other interfaces find
// their numbers all the time. 0, or -ENOSPC: the table has no room, since it holds WEIR_IFACES - 1
// or more. The caller holds the lock of the instance.
int iface_table_set(struct knobs *knobs, uint32_t ifindex, uint32_t number);

// Removes an ifindex if its number is this one.
void iface_table_clear(struct knobs *knobs, uint32_t ifindex, uint32_t number);
