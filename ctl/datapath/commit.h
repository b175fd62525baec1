// SPDX-License-Identifier: GPL-2.0-only
// Which policy is in force, and the switch to another: one write into a slot.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/datapath/generation.h"

struct commit_state {
	uint32_t active, previous; // generation numbers, 0: unknown program
	uint64_t deadline;         // jiffies64 of a trial's end; 0: no trial
	bool expired;              // the kernel has gone back: `previous` is what packets meet
};

// From the slots themselves. 0 or -errno with err set.
int commit_read(const struct instance *i, struct commit_state *ret, struct err *err);

// The number the next generation gets.
int commit_next_number(const struct instance *i, uint32_t *ret, struct err *err);

// Makes generation `number` (pinned) the active one: previous = the one in force, then the deadline, then
// the one write that commits. trial_ms 0: for good. The caller holds the lock and has called
// commit_settle. 0 or -errno with err set; then the old one is in force.
int commit_switch(const struct instance *i, const struct generation *g, uint64_t trial_ms,
		  struct err *err);

// Ends a trial for good. ERR_REFUSED when there is none or when it has run out.
int commit_confirm(const struct instance *i, struct err *err);

// Back to the previous generation, for good; ends a trial.
int commit_back(const struct instance *i, struct err *err);

// What every writing command does first: makes an expired trial's way back real, and removes the
// generations that are in neither slot. *ret_reverted (may be NULL): a trial had run out.
int commit_settle(const struct instance *i, bool *ret_reverted, struct err *err);
