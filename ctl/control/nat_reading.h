// SPDX-License-Identifier: GPL-2.0-only
// The connections of nat and fullnat at one moment, with their blocks, for commands that show them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/err.h"
#include "ctl/datapath/instance.h"
#include "ctl/table/nat_walk.h"

struct nat_block_reading {
	uint8_t family;
	uint32_t block;     // its number, in the family
	struct addr source; // family 0: a block of nat
	size_t living;      // connections
	size_t newest;      // cells in which it takes the new connections; 0: a former block
};

struct nat_reading {
	struct nat_census census;
	struct {
		struct nat_block_reading *at;
		size_t n, cap;
	} blocks; // IPv4 first, by number
};

// Changes nothing, and needs no lock. All 0 without a block. 0 or -errno with err set.
int nat_read(const struct instance *i, struct nat_reading *ret, struct err *err);
void nat_reading_free(struct nat_reading *r);
#define CLEANUP_NAT_READING CLEANUP(nat_reading_free)

// The connections of a service: of all its backends, also removed ones.
struct lb_state;
struct lb_service;
struct nat_sum {
	size_t living, opening;
};
struct nat_sum nat_of_service(const struct nat_reading *r, const struct lb_state *b,
			      const struct lb_service *s);

// Blocks that take new connections, and their connections. fullnat: of this mode.
struct nat_use_of_places {
	size_t blocks, living;
};
struct nat_use_of_places nat_used(const struct nat_reading *r, bool fullnat, uint8_t family);
