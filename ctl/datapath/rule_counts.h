// SPDX-License-Identifier: GPL-2.0-only
// How many packets and bytes a rule has counted, over all CPUs.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "ctl/base/err.h"
#include "ctl/datapath/instance.h"

// The counters with these indexes, in few calls; zero for an index that does not exist. 0 or -errno
// with err set.
int rule_counts_at(const struct instance *i, const uint32_t *indexes, size_t n, struct counter *ret,
		   struct err *err);
// The counter of an identity; zero when it has none. 0 or -errno with err set.
int rule_count(const struct instance *i, const char *identity, struct counter *ret,
	       struct err *err);
