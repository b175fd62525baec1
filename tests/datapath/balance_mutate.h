// SPDX-License-Identifier: GPL-2.0-only
// Invalid frames.
#pragma once

#include "ctl/base/text.h"
#include "tests/datapath/balance_rig.h"

// Sends the frame with bytes changed by `seed` (0 … for all frames), and some frames truncated
// after every byte. Adds a sentence to `why` for the first frame that the datapath, its test
// program and the general program by itself do not treat in the same way, or that has a reason that
// no frame should have.
void balance_mutate(struct balance_rig *b, const struct frame *f, uint64_t seed, struct text *why);
