// SPDX-License-Identifier: GPL-2.0-only
// The state of rates: a limit per rule is a word of the map `meters`, one per address a table below
// gen/N/rates/, and the pace of a rule's records a word of `logpace`.
//
// A rule of a new generation has the state of the active rule with the same identity and rate, so a
// switch refills no limit; generations that share state also share it during a trial. If there are
// several such rules, the first has the state of the first. A limit is the same if rate, burst,
// `per`, `mask` and the size of its table are, a pace if its rate is.
#pragma once

#include "ctl/datapath/parts.h"
#include "ctl/table/image.h"

// Gives each rate of `rules`, the rules of the image on their way into generation g, its state:
// what generation `previous` (0: none) has for it, else fresh state. Sets `meter` and `log` of the
// rules. i NULL: the maps are private and empty. Nothing that packets use is changed. The caller
// holds the lock. 0 or -errno with err set.
int rates_provide(const struct instance *i, uint32_t previous, const struct image *image,
		  struct policy_rule *rules, struct generation *g, struct err *err);
