// SPDX-License-Identifier: GPL-2.0-only
// The active policy, as it was recorded when it was applied.
#pragma once

#include "ctl/control/candidate.h"
#include "ctl/datapath/instance.h"

// Loads its files and answers into c, which is from candidate_new_replay(); then candidate_compile() or
// candidate_resolve() with ret->path follows. Returns 0; -ENOENT without err set if no policy is active; else -errno
// with err set.
int active_record(const struct instance *i, struct candidate *c, struct generation_about *ret,
		  struct err *err);
// The error of a record that does not compile.
int active_broken(const struct generation_about *about, struct err *err);
