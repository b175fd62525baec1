// SPDX-License-Identifier: GPL-2.0-only
// `apply`, `confirm` and `rollback`: the order of their steps.
//
// Order of an apply:
//
//   1. Compile. Find the next hops of backends, the interfaces, and offloads that hide VLAN tags.
//      No lock so far.
//   2. Lock. Recover: make the end of an expired trial permanent, remove unused generations.
//   3. Refuse during a trial, for another revision than --if-revision, for `established` without
//      connection tracking, and with --unattended what has lost most of the accepted policy. If the
//      same policy is active and complete (control/unchanged), only interfaces and next hops are
//      updated.
//   4. Tidy up the running balancer and plan the new one around it. Load, prove, test the login.
//      Refuse addresses of services that would go to another service. Select the counters of rules,
//      by reading only.
//   5. Write the record of the revision, which no list shows yet. Pin the generation, enter the
//      identities. With a trial, prepare the running rings for its end.
//   6. progs[PREVIOUS] = the active policy; the deadline of a trial; progs[ACTIVE] = the new one:
//      the commit.
//   7. Write next hops and states of backends; the time of changing slots begins.
//   8. Without a trial: the revision becomes the current one. Mark the generation as complete,
//      attach new interfaces, detach those that the policy no longer names.
//
// A kill or failure before the last store of 6 leaves the old policy active, after it the new one.
// If the record of the new one did not become the current one, the next command that changes
// policies, or `detach`, makes it so (control/recover). The next apply removes records that were
// not accepted.
#pragma once

#include "ctl/control/apply_result.h"
#include "ctl/control/candidate.h"

// The steps above. A failure before the switch changes nothing. A policy that is active already is
// not switched to again, unless forced. The candidate keeps its findings for messages. 0, or -errno
// with err set (-EINVAL: errors are in c->diag).
int apply(struct candidate *c, const struct apply_options *options, struct apply_result *ret,
	  struct err *err);

// Applies the active policy (`same`, whose record is in c->environment) with other answers for its
// names, or with the quick rules in c->quick (options->quick): steps 1, 4 and 6, under the same
// revision, whose record gets the answers after the switch. Interfaces do not change. -EBUSY during
// a trial; -ESTALE if another command has changed the policy, its answers or its quick rules
// before; -EAGAIN as lock_take. ret->generation is 0 without a switch; an error after the switch is
// about the record.
int apply_same(struct candidate *c, const struct apply_options *options, struct revision *same,
	       struct apply_result *ret, struct err *err);

// Makes a running trial permanent: the revision becomes the accepted one, and interfaces that only
// the previous policy named are detached. Sets revision and left of *ret, or, for a trial of
// interfaces only, tried and warnings: they are noted for `weir restore`. The caller frees it.
int apply_confirm(const char *instance, const char *command, struct apply_result *ret,
		  struct err *err);
// Ends a trial and returns to the previous policy. Interfaces that the trial attached are detached,
// and an instance without interfaces is removed. ERR_REFUSED if there is no trial. *ret as for
// apply_confirm().
int apply_abandon(const char *instance, const char *command, struct apply_result *ret,
		  struct err *err);
// Makes the end of an expired trial permanent. *ret_ended: there was one; *ret as for
// apply_abandon().
int apply_end_expired(const char *instance, const char *command, bool *ret_ended,
		      struct apply_result *ret, struct err *err);
