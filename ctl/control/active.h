// SPDX-License-Identifier: GPL-2.0-only
// The active policy, as it was recorded when it was applied.
#pragma once

#include "ctl/control/candidate.h"
#include "ctl/datapath/instance.h"

// How much of the record is loaded: all texts; or, for candidate_name(), list files only where the
// record does not have what is in them (control/known): their addresses as well, or only what is
// named and where.
enum active_part { ACTIVE_ALL, ACTIVE_KNOWN, ACTIVE_NAMES };

// Loads its files and answers into c, which is from candidate_new_replay(); then
// candidate_compile(), candidate_resolve() or candidate_name() with ret->path follows. Returns 0;
// -ENOENT without err set if no policy is active; else -errno with err set.
int active_record(const struct instance *i, enum active_part part, struct candidate *c,
		  struct generation_about *ret, struct err *err);
// The error of a record that does not compile.
int active_broken(const struct generation_about *about, struct err *err);
