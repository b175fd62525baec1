// SPDX-License-Identifier: GPL-2.0-only
// The switch that lets everything pass: one store a word in the knobs, so that it needs no lock. It has to
// work while another command holds the lock and is stopped.
#pragma once

#include "ctl/datapath/instance.h"

// Interface `number`, or all of them with 0, lets everything pass until that jiffy (0: not any more). Two
// callers at once: each number has the end of one of them, and no end is missed by the programs.
void bypass_set(const struct instance *i, uint32_t number, uint64_t until);
