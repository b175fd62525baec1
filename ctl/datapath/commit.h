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
	uint32_t in_force;         // the one that packets meet; 0: its pins are lost
	uint64_t brought;          // bit: number of an interface that came with the trial
};
// Is it a trial of interfaces alone, the policy being the same before and after?
bool commit_tries_interfaces(const struct commit_state *state);

// From the slots themselves. 0 or -errno with err set.
int commit_read(const struct instance *i, struct commit_state *ret, struct err *err);
// The number of the generation in force alone; that its pins are lost is an error.
int commit_in_force(const struct instance *i, struct commit_state *ret, uint32_t *ret_number,
		    struct err *err);

// The number the next generation gets.
int commit_next_number(const struct instance *i, uint32_t *ret, struct err *err);

// Makes generation `number` (pinned) the active one: previous = the one in force, then the deadline, then
// the one write that commits. trial_ms 0: for good. The caller holds the lock and has called
// commit_recover. 0 or -errno with err set; then the old one is in force.
int commit_switch(const struct instance *i, const struct generation *g, uint64_t trial_ms,
		  struct err *err);

// A trial of the interfaces that commit_bring() names from now on: the policy stays. The caller holds the lock
// and has called commit_recover; no trial is running. 0 or -errno with err set.
int commit_try_interfaces(const struct instance *i, uint64_t trial_ms, struct err *err);
// The interface comes with the running trial: when that has run out, the kernel lets everything pass there.
void commit_bring(const struct instance *i, uint32_t number);
// It is there for good, or not at all.
void commit_unbring(const struct instance *i, uint32_t number);

// Ends a trial for good. ERR_REFUSED when there is none or when it has run out.
int commit_confirm(const struct instance *i, struct err *err);

// Back to the previous generation, for good; ends a trial. What it brought has been detached before, or would
// meet the policy again.
int commit_back(const struct instance *i, struct err *err);

// What every writing command does first: makes an expired trial's way back real, and removes the
// generations that are in neither slot. *ret_reverted (may be NULL): a trial had run out.
int commit_recover(const struct instance *i, bool *ret_reverted, struct err *err);
