// SPDX-License-Identifier: GPL-2.0-only
// Maintains the table of connections of nat and fullnat (docs/nat.md).
#pragma once

#include <stddef.h>

#include "ctl/base/err.h"
#include "ctl/datapath/instance.h"
#include "ctl/table/lb_state.h"
#include "ctl/table/nat_walk.h"

struct nat_tidied {
	struct nat_census census; // after the walk; all 0 without a block
	size_t removed;           // blocks
	size_t ended;             // connections of backends that are down
};

// A walk, which frees what has expired and the connections of the backends `down` (NULL: none),
// removes blocks that no cell names any more, and clears the bits of sources and backends that no
// answer has any more (nat_near.h). To be called under the lock, before the caller creates blocks.
// unused: of the caller's previous walk. Without a block nothing is done. 0 or -errno with err set.
int nat_tidy(const struct instance *i, const struct lb_ids *down, struct nat_unused *unused,
	     struct nat_tidied *ret, struct err *err);

// The same under the lock of the instance, with the backends that are down in the active policy,
// after the work of an interrupted apply was completed (control/nat_settle). command: its line, for
// the lock.
int nat_tidy_now(const char *instance, const char *command, struct nat_unused *unused,
		 struct nat_tidied *ret, struct err *err);

// Frees the connections with these backends, whatever their state. To be called under the lock,
// after no slot leads to the backends any more. *ret: how many. 0 or -errno with err set.
int nat_drop(const struct instance *i, const struct lb_ids *backends, size_t *ret, struct err *err);
