// SPDX-License-Identifier: GPL-2.0-only
// Is a policy active already? Then nothing is switched, and rates and sets continue.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/sum.h"
#include "ctl/control/candidate.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/instance.h"

struct in_force {
	uint32_t generation;
	char revision[REVISION_ID];
};

// A sum of all that a policy is made of beside files and names: addresses of this host, numbers of
// devices, and the programs. It is written into the generation when the whole policy is active
// (generation_finish), so that the generation of an interrupted command is never considered
// complete.
void unchanged_sum(const struct candidate *c, sum_text ret);

// Compares the candidate with the policy in slot 0 and its record. `path`: of the candidate's
// policy file.
// fleeting: a policy that was not accepted counts as well. Also false if that is unknown; *ret is
// filled when true. The caller holds the lock, and no trial runs.
bool unchanged_find(const struct instance *i, const struct candidate *c, const char *path,
		    bool fleeting, struct in_force *ret);

// The record of the policy in slot 0 if it equals the candidate's: the same files and answers, also
// where addresses of this host, devices or programs have changed. False as well if the two cannot
// be compared; then *ret is empty.
bool unchanged_record(const struct instance *i, const struct candidate *c, const char *path,
		      bool fleeting, struct revision *ret);

// Is this revision active in the instance, with the inputs that it would have today? If not,
// `state` has the reason. c: the revision's policy as it would be today; NULL: the inputs are not
// compared.
bool unchanged_state(const char *instance, const char *revision, const struct candidate *c,
		     char *state, size_t size);
