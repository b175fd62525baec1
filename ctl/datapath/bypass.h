// SPDX-License-Identifier: GPL-2.0-only
// Switches a bypass on and off, without a lock.
//
// It is one store for each word of the knobs, because it must work while another command holds the
// lock and is stopped.
#pragma once

#include "ctl/datapath/instance.h"

// Everything passes on interface `number`, or on all with 0, until that jiffy (0: the bypass ends).
// If two processes call it at once, each interface gets the end of either, and the programs miss no
// end.
void bypass_set(const struct instance *i, uint32_t number, uint64_t until);
