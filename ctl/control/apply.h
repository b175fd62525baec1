// SPDX-License-Identifier: GPL-2.0-only
// `apply`, and the way back: the whole order of events, in one place.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/control/bringup.h"
#include "ctl/control/candidate.h"
#include "ctl/control/detach_stale.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/commit.h"
#include "ctl/net/session.h"

struct apply_options {
	const char *instance, *command; // command: for the lock's holder
	const char *path;               // of the policy; NULL: `revision`
	const char *revision;           // an accepted one to go back to
	const char *const *ifaces;      // -i
	size_t n_ifaces;
	struct dns_options dns;
	uint64_t trial_ms;       // --confirm; 0: for good
	const char *if_revision; // refuse unless this one is in force; NULL: whatever
	const char *note, *by;
	const struct session *session; // whose packets come through this namespace; NULL: nobody's
	bool force, fleeting, dry_run;
};

struct apply_iface {
	char name[16];
	struct attach_result attach;
};

struct apply_result {
	bool unchanged;  // it was in force already: nothing was switched
	size_t nexthops; // next hops of backends that are others now, where nothing was switched
	char revision[REVISION_ID]; // of the policy in force
	uint32_t generation;
	size_t rules, services, expects;
	VEC(struct apply_iface) attached; // interfaces that got Weir now, or with dry_run would
	struct ifnames left;              // interfaces that it does not name any more: detached
	struct ifnames tried;             // a trial of these alone ended, not of a policy
	struct ifnames entries_only;      // that the instance keeps and the policy does not hold on
	VEC(char *) absent;               // optional interfaces and patterns without a device
	VEC(char *) warnings;             // of the guard
	struct generation_cost cost;
	bool attach_failed; // the switch is done, but an interface could not be attached or detached
};
void apply_result_free(struct apply_result *r);
#define CLEANUP_APPLY_RESULT CLEANUP(apply_result_free)

// parse, check, resolve, compile; then under the lock load beside the running one, prove, guard, pin,
// record, switch, attach what is new, detach what is named no more (unless on trial). Any failure before the switch changes nothing. What is in
// force already is not switched to again, unless forced; interfaces and next hops are brought in order all
// the same. The candidate keeps what it found for messages. 0, or -errno with err set (-EINVAL and errors in c->diag).
int apply(struct candidate *c, const struct apply_options *options, struct apply_result *ret,
	  struct err *err);

// Of a trial of interfaces alone both set tried.
// Makes a running trial final: the revision becomes the accepted one, and interfaces are detached that only
// the policy before it named. Sets revision and left of *ret, which the caller frees.
int apply_confirm(const char *instance, const char *command, struct apply_result *ret,
		  struct err *err);
// Ends a trial by going back to the policy before it; interfaces that the trial brought are detached, and
// an instance that has none then is removed. ERR_REFUSED when there is no trial. *ret as for confirm.
int apply_abandon(const char *instance, const char *command, struct apply_result *ret,
		  struct err *err);
