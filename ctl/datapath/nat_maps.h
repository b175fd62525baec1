// SPDX-License-Identifier: GPL-2.0-only
// The table of connections of nat and fullnat in the kernel, mapped into memory, and its blocks
// (docs/nat.md).
//
// All generations of an instance have the same table. A block is a map in an element of an array of
// maps; an empty element is a block that does not exist.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/datapath/instance.h"
#include "ctl/table/nat_walk.h"

struct nat_maps;

// Maps the table and all blocks, to read and write: what is written there is what packets find.
// Under the lock no block is created or removed by others. The instance must remain open. 0 or
// -errno with err set.
int nat_maps_open(const struct instance *i, struct nat_maps **ret, struct err *err);
void nat_maps_close(struct nat_maps *m);
#define CLEANUP_NAT_MAPS CLEANUP(nat_maps_cleanup)
void nat_maps_cleanup(struct nat_maps **m);

// With the blocks that exist.
const struct nat_tables *nat_maps_tables(const struct nat_maps *m);
bool nat_maps_has(const struct nat_maps *m, int family, uint32_t block);

// Adds the backends of a generation to the tables, the first call for the policy that packets meet;
// 0 is no generation. 0 or -errno with err set.
int nat_maps_add_backends(struct nat_maps *m, uint32_t generation, struct err *err);

// Creates a block of free places, NAT_PLACES × 16 bytes, for IPv6 × 32. -EEXIST: it exists. 0 or
// -errno with err set.
int nat_maps_create(struct nat_maps *m, int family, uint32_t block, struct err *err);
// Removes a block. Packets that have found it before are through when the call returns. -ENOENT: it
// does not exist. 0 or -errno with err set.
int nat_maps_remove(struct nat_maps *m, int family, uint32_t block, struct err *err);

// Has a policy ever used the table? 0 or -errno with err set.
int nat_maps_used(const struct instance *i, bool *ret, struct err *err);
// Does the instance have a block? 0 or -errno with err set.
int nat_maps_any(const struct instance *i, bool *ret, struct err *err);
