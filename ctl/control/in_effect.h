// SPDX-License-Identifier: GPL-2.0-only
// The policy in effect: its record, and the interfaces that it was applied to.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/control/environment.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/generation.h"

struct in_effect {
	bool trial; // one runs, and nothing else is filled in
	struct generation_about
		about; // its revision is "" without a policy, or without a record of it
	struct environment record;
	struct revision revision;
};

struct in_effect *in_effect_new(void);
void in_effect_cleanup(struct in_effect **e);
#define CLEANUP_IN_EFFECT CLEANUP(in_effect_cleanup)

// What is in effect: `trial` and `about`. 0 or -errno with err set.
int in_effect_find(const char *instance, struct in_effect *e, struct err *err);
// Its record, with its files; about.revision is not "". 0 or -errno with err set.
int in_effect_load(const char *instance, struct in_effect *e, struct err *err);
// The interfaces that a revision has in effect, if they are not those of its text (it was applied
// with -i); else none. They point into `about`.
int in_effect_ifaces(const char *instance, const char *revision,
		     const struct generation_about *about, const char **ret, size_t *ret_n,
		     struct err *err);
