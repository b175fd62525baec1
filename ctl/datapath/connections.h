// SPDX-License-Identifier: GPL-2.0-only
// The programs that count the connections of sources, and their table: `over N connections`.
//
// They belong to a generation, which has their links among its pins: a policy without such a rule
// runs no program at a socket, and a generation that is removed takes its programs along.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/datapath/generation.h"
#include "ctl/table/image.h"

// The object file of the programs.
const void *connections_object(size_t *ret_size);
// Elements of the table, at least 1.
size_t connections_elements(const struct image *image);
// Attaches the programs and counts the connections that exist. 0 or -errno with err set; then
// nothing is attached once the generation is freed.
int connections_begin(const struct instance *i, struct generation *g, const struct image *image,
		      struct err *err);
// Would the kernel accept the programs? Loads them for `g`, and attaches nothing. 0 or -errno with
// err set, also for a policy without such a rule.
int connections_try(const struct generation *g, const struct image *image, struct err *err);

struct connections_state {
	bool present;     // the policy has such a rule
	bool attached;    // both programs are
	uint64_t sources; // that have connections, each rule by itself
	uint64_t open;    // connections, each rule by itself
	uint64_t room;    // sources at most
	uint64_t full;    // connections that had no room, since the last count
	uint64_t missed;  // that the programs gave up, since the last count
};
int connections_read(const struct generation *g, struct connections_state *ret, struct err *err);
// Has its policy such a rule?
bool connections_are_counted(const struct generation *g);
// Counts the connections anew, in place of what the table has: it loses some if a program of others
// turns off the callbacks of a socket. In the network namespace of the instance. 0 or -errno with
// err set.
int connections_repeat(const struct generation *g, struct err *err);
