// SPDX-License-Identifier: GPL-2.0-only
// Finishes or reverts what an interrupted command left; each command that changes policies calls it
// first.
#pragma once

#include "ctl/control/revisions.h"
#include "ctl/datapath/instance.h"

// Revision of progs[ACTIVE]; "" for the empty policy and one without a record. 0 or -errno with err
// set.
int recover_in_force(const struct instance *i, char ret[REVISION_ID], struct err *err);

// If a trial has expired, detaches its interfaces and makes the kernel's return to the previous
// policy permanent. The caller holds the lock. 0 or -errno with err set.
int recover_trial(const struct instance *i, struct err *err);
// Refuses while a trial runs, and names it. The caller has called recover_trial.
int recover_check(const struct instance *i, struct err *err);

// The record follows the kernel: a policy that is active without a trial becomes the accepted one,
// if the command that switched to it was interrupted. The caller holds the lock and has called
// recover_trial. 0 or -errno with err set.
int recover_record(const struct instance *i, struct err *err);
