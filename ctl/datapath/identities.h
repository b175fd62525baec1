// SPDX-License-Identifier: GPL-2.0-only
// Which row of the rule counters belongs to which rule: rows follow the rules' identities over every
// apply, so that counters survive it.
#pragma once

#include "common/counters.h"
#include "ctl/datapath/instance.h"
#include "ctl/table/image.h"

// Gives every rule of the image its row: the one its identity has, else a fresh one, zeroed. Rows that
// neither the image nor a generation in the slots uses are taken back when they run short. The caller
// holds the lock. 0 or -errno with err set.
int identities_assign(const struct instance *i, struct image *image, struct err *err);

// The row of an identity; -ENOENT when it has none.
int identities_row(const struct instance *i, const char *identity, uint32_t *ret_row);
// Its packets and bytes over all CPUs; zero when it has no row.
int identities_count(const struct instance *i, const char *identity, struct counter *ret,
		     struct err *err);
