// SPDX-License-Identifier: GPL-2.0-only
// Frames that nobody should send.
#pragma once

#include "ctl/base/text.h"
#include "tests/datapath/balance_rig.h"

// Sends the frame with bytes changed that `seed`, 0 … for all frames, says, and some of the frames cut off
// behind every byte. Adds a sentence to `why` for the first that the datapath and its test program do not agree
// about, or that came to what no frame should.
void balance_mutate(struct balance_rig *b, const struct frame *f, uint64_t seed, struct text *why);
