// SPDX-License-Identifier: GPL-2.0-only
// Creates and removes an instance and attaches its interfaces.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/control/candidate.h"
#include "ctl/control/gate.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/attach.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/instance.h"

// The slow part of a restore: compiles the policy from its record, and requests next hops.
struct restore {
	struct candidate *candidate; // NULL: nothing is prepared
	struct revision revision;    // without id: only quick rules
	struct err left_out;         // why quick rules are left out; text "": they are not
};
void restore_free(struct restore *r);
#define CLEANUP_RESTORE CLEANUP(restore_free)

struct bringup {
	struct instance *instance;
	int lock;
	bool created;               // the instance is new
	bool trial;                 // interfaces that are attached now belong to the running trial
	size_t restored;            // overlay entries that were restored from the state folder
	struct err damaged;         // lines of a damaged file that were not restored; text "": none
	char revision[REVISION_ID]; // policy that was restored; "": none
	struct generation_cost cost; // cost of its load
};

// Takes the lock and opens the instance, after it has ended an expired trial, or creates an
// instance with the stored overlay and the accepted policy. new_policy: the caller applies another
// policy, so an accepted one that cannot be restored is not an error. max_entries: 0 for the
// default; a number that differs from a running instance's is refused. 0 or -errno with err set.
int bringup_open(const char *name, const char *command, uint32_t max_entries, bool new_policy,
		 struct bringup *ret, struct err *err);
// The same for an instance that exists; never creates one. -ENOENT: the instance does not exist.
int bringup_open_running(const char *name, const char *command, struct bringup *ret,
			 struct err *err);
void bringup_close(struct bringup *b);
#define CLEANUP_BRINGUP CLEANUP(bringup_close)

// Attaches one interface of this network namespace, after checking that it exists and is Ethernet.
// After an error it is attached or detached as before. generation: the policy that names it; 0:
// `weir attach`, which also adopts an interface of a policy. gate: asked first if the interface is
// not attached yet; NULL: the caller has asked.
int bringup_attach(struct bringup *b, const char *ifname, enum attach_mode mode,
		   uint32_t generation, const struct gate *gate, struct attach_result *ret,
		   struct err *err);

// Begins a trial of interfaces: unless it is confirmed, everything passes on those that are
// attached afterwards once trial_ms has expired. Refused while another trial runs.
int bringup_try(struct bringup *b, uint64_t trial_ms, struct err *err);
// Ends a trial that attached no interface, or whose interfaces are all detached again.
int bringup_end_try(struct bringup *b, struct err *err);
// Before an instance is removed in any state: completes or reverts what interrupted commands left
// in the state folder, as far as its maps can be read. The caller holds the lock.
void bringup_recover(const char *name);

// Removes the instance if no interface is left in its table; the records stay in the state folder.
int bringup_remove_if_idle(struct bringup *b, bool *ret_removed, struct err *err);
