// SPDX-License-Identifier: GPL-2.0-only
// Switches a bypass on and off, without a lock.
//
// It is one store for each word of the knobs, because it must work while another command holds the
// lock and is stopped.
#pragma once

#include "ctl/datapath/instance.h"

// Interface `number`, or all of them with 0, lets everything pass until that jiffy (0: not any more). Two
// callers at once: each number has the end of one of them, and no end is missed by the programs.
void bypass_set(const struct instance *i, uint32_t number, uint64_t until);
