// SPDX-License-Identifier: GPL-2.0-only
// Options of an apply, and the result that it reports.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/control/candidate.h"
#include "ctl/control/detach_stale.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/attach.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/net/dns.h"
#include "ctl/net/session.h"

struct apply_options {
	const char *instance, *command; // command: recorded as the owner of the lock
	const char *path;               // of the policy; NULL: `revision`
	const char *staged;             // the file that has its text; NULL: path
	struct text *standard;          // what "-" had, once it is read; NULL: it is not kept
	const char *revision;           // an accepted one to go back to
	const char *const *ifaces;      // -i
	size_t n_ifaces;
	struct dns_options dns;
	uint64_t trial_ms;       // --confirm; 0: no trial
	const char *if_revision; // refuse unless this one is active; NULL: any
	const char *note, *by;
	const struct session *session; // whose packets come through this namespace; NULL: none
	bool force, fleeting, dry_run;
	bool offline;            // feeds are not fetched: their copies are used
	bool patient;            // the last load has taken too long (lb_apply_options)
	bool quick;              // only quick rules change: apply_same()
	struct quick_wait *wait; // with `quick`: the rules of others among them; NULL: none
	bool answers;            // only answers for names change: apply_same()
	bool unattended; // refuse a text that has lost most of the accepted policy (unchanged.h)
};

struct apply_iface {
	char name[16];
	struct attach_result attach;
};

struct apply_result {
	bool unchanged;  // it was active already: nothing was switched
	size_t nexthops; // next hops of backends that have changed, where nothing was switched
	char revision[REVISION_ID]; // of the active policy
	uint32_t generation;
	bool switched;                    // an error is about what follows the switch
	size_t rules, services, expects;  // of the policy
	size_t quick;                     // quick rules in front of it
	size_t ended;                     // quick rules whose time had come
	VEC(struct apply_iface) attached; // interfaces that were attached, or with dry_run would be
	struct ifnames left;              // interfaces that it no longer names: detached
	struct ifnames tried;             // interfaces of a trial without a policy, which has ended
	struct ifnames entries_only;      // attached interfaces on which the policy does not apply
	VEC(char *) absent;               // optional interfaces and patterns without a device
	VEC(char *) warnings;             // of the guard; what `weir restore` does not know
	VEC(char *) notices;              // about new quick rules
	uint64_t culprit;                 // new quick rule that a failure is about; 0: not known
	struct generation_cost cost;
	// the switch is done, but an interface could not be attached or detached
	bool attach_failed;
};
void apply_result_free(struct apply_result *r);
#define CLEANUP_APPLY_RESULT CLEANUP(apply_result_free)
