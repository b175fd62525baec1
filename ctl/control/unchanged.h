// SPDX-License-Identifier: GPL-2.0-only
// Is a policy active already? Then nothing is switched, and rates and sets continue.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/sum.h"
#include "ctl/control/candidate.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/instance.h"

struct in_force {
	uint32_t generation;
	char revision[REVISION_ID];
};

// A sum of all that a policy is made of beside files and names: addresses of this host, numbers of
// devices, and the programs. It is written into the generation when all of it is in force
// (generation_finish), so that one whose command was cut short is never taken for whole.
void unchanged_sum(const struct candidate *c, sum_text ret);

// Compares the candidate with the policy in slot 0 and its record. `path`: of the candidate's
// policy file.
// fleeting: a policy that was not accepted counts as well. False as well when that cannot be told;
// *ret is filled when true. The caller holds the lock, and no trial runs.
bool unchanged_find(const struct instance *i, const struct candidate *c, const char *path,
		    bool fleeting, struct in_force *ret);

// The record of the policy in slot 0 if it equals the candidate's: the same files and answers, also
// where addresses of this host, devices or programs are others now. False as well if the two cannot
// be compared; then *ret is empty.
bool unchanged_record(const struct instance *i, const struct candidate *c, const char *path,
		      bool fleeting, struct revision *ret);

// Is this revision what packets of the instance meet now, made of what it would be made of today?
// Where not, `state` says what is in the way.
bool unchanged_state(const char *instance, const char *revision, const struct candidate *c,
		     char *state, size_t size);
