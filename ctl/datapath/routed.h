// SPDX-License-Identifier: GPL-2.0-only
// Tells the datapath by which devices the frames of an interface reach the stack.
//
// `unroutable` compares them with the device of the route to the source.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/abi.h"
#include "ctl/datapath/instance.h"

// Sorted by number of the interface, then by ifindex.
struct routes {
	struct route_device {
		struct routed_key key;
		struct routed frames; // that reach it
	} * at;
	size_t n, cap;
	uint64_t known; // bit: number of an interface with all its devices here
};
void routes_free(struct routes *r);
#define CLEANUP_ROUTES CLEANUP(routes_free)

// Those in the map. 0 or -errno with err set.
int routes_read(const struct instance *i, struct routes *ret, struct err *err);
// Tells the datapath. An interface whose devices find no room is not known. A device that is both
// in the old and in the new list is never missing in between. 0 or -errno with err set.
int routes_write(const struct instance *i, const struct routes *want, struct err *err);
// Do both have the same devices and know the same interfaces? Only the interfaces in `numbers`
// count, a bit for each.
bool routes_equal(const struct routes *a, const struct routes *b, uint64_t numbers);
