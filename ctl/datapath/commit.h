// SPDX-License-Identifier: GPL-2.0-only
// Which generation is active, and the switch to another one: one store into progs[ACTIVE].
//
// A trial is a deadline in jiffies, knobs.deadline. The root program compares it for each packet
// and takes progs[PREVIOUS] once it has expired, so the kernel ends a trial by itself. The next
// command that writes makes that permanent.
//
// knobs.brought marks the interfaces that the running trial attached, by `apply --confirm` or by
// `attach --confirm`, which is a trial with the same policy in both elements of progs[]. The mark
// is set before the program is attached. After the deadline everything passes on these interfaces:
// the previous policy may hold on all interfaces, and must not cut off anyone there. The end of a
// trial detaches them first and clears the deadline afterwards.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/datapath/generation.h"

struct commit_state {
	uint32_t active, previous; // numbers of generations; 0: unknown program
	uint64_t deadline;         // jiffies64, end of the trial; 0: no trial
	bool expired;              // packets meet `previous`
	uint32_t in_force;         // the generation that packets meet; 0: it is not in bpffs
	uint32_t program;          // its ID, which another generation with this number has not
	uint64_t brought;          // bit: number of an interface that the trial attached
};
// Is it a trial of interfaces only, with the same policy before and after?
bool commit_tries_interfaces(const struct commit_state *state);

// Reads progs[] and the knobs. 0 or -errno with err set.
int commit_read(const struct instance *i, struct commit_state *ret, struct err *err);
// The same, with the number of the generation that packets meet; an error if it is not in bpffs.
int commit_in_force(const struct instance *i, struct commit_state *ret, uint32_t *ret_number,
		    struct err *err);

// The number of the next generation.
int commit_next_number(const struct instance *i, uint32_t *ret, struct err *err);

// Makes g, which is pinned, the active generation: previous = active, then the deadline, then the
// store that commits. trial_ms 0: no trial. The caller holds the lock and has called
// commit_recover. 0, or -errno with err set and the old one active.
int commit_switch(const struct instance *i, const struct generation *g, uint64_t trial_ms,
		  struct err *err);

// Begins a trial of the interfaces that commit_bring() names afterwards; the policy stays. The
// caller holds the lock and has called commit_recover; no trial is running. 0 or -errno with err
// set.
int commit_try_interfaces(const struct instance *i, uint64_t trial_ms, struct err *err);
// Marks an interface as attached by the running trial: all packets pass there after the deadline.
void commit_bring(const struct instance *i, uint32_t number);
// The interface is permanent, or detached.
void commit_unbring(const struct instance *i, uint32_t number);

// Makes the policy and the interfaces on trial permanent. ERR_REFUSED if there is no trial or it
// has expired.
int commit_confirm(const struct instance *i, struct err *err);

// Makes the previous generation active, permanently, and ends a trial. The caller has detached the
// interfaces of the trial: their packets would meet the policy again.
int commit_back(const struct instance *i, struct err *err);

// Called first by commands that write: makes the end of an expired trial permanent, and removes the
// generations that are not in progs[]. *ret_reverted (may be NULL): a trial had expired.
int commit_recover(const struct instance *i, bool *ret_reverted, struct err *err);
