// SPDX-License-Identifier: GPL-2.0-only
// Changes quick rules: the record of the active policy is applied with other rules in front, under
// the same revision.
#pragma once

#include "ctl/control/apply_result.h"
#include "ctl/control/candidate.h"
#include "ctl/control/quick_wait.h"

// Changes the list that it is given, and calls quick_change() if it did. 0 or -errno with err set.
typedef int quick_edit(void *ctx, struct quick_rules *q, struct err *err);

// Ends the rules whose time has come, calls `edit` (NULL: nothing else changes), and switches if
// the list has changed; without a policy the rules are the policy. Waits for the lock only.
// -ESTALE: another command came first, and the whole can be repeated with another candidate; -EBUSY
// during a trial; -EAGAIN as lock_take. c: made by candidate_new_replay(), for its findings. 0 or
// -errno with err set.
int quick_apply(struct candidate *c, const struct apply_options *options, quick_edit *edit,
		void *ctx, struct apply_result *ret, struct err *err);
// May the change be repeated after this -errno?
bool quick_is_other_command(int code);

// Calls `edit` with the saved rules of an instance that is not attached, and writes them unless it
// is a dry run. -ESTALE: it is attached meanwhile. 0 or -errno with err set.
int quick_edit_saved(const struct apply_options *options, quick_edit *edit, void *ctx,
		     struct err *err);

// Steps of apply_same(): refuses, unless forced, a new rule that no packet can match, and always
// one with a name of the policy.
int quick_judge_rules(const struct candidate *c, const struct apply_options *o,
		      struct apply_result *ret, struct err *err);
// With another policy: warns about rules with `established` if connection tracking is idle, and
// about those with `unroutable` if the loopback device does not forward.
void quick_note_tracking(const struct candidate *c, struct apply_result *ret);
// Refuses, unless forced, a new rule that breaks an expect line; each is a warning.
int quick_judge_expects(const struct candidate *c, const struct apply_options *o,
			struct apply_result *ret, struct err *err);
// Is a warning or notice of the result about the rule with this label?
bool quick_is_about(const char *label, const char *notice);
// Right before the switch: takes the rules of others (quick_wait_take). 0 or -ESTALE with err set.
int quick_share(const struct candidate *c, const struct apply_options *o,
		const struct apply_result *result, struct err *err);
