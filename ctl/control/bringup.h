// SPDX-License-Identifier: GPL-2.0-only
// From nothing to an instance with interfaces, and back.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/control/gate.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/attach.h"

struct bringup {
	struct instance *instance;
	int lock;
	bool created;               // the instance is new
	bool trial;                 // interfaces that are attached now come with the running trial
	size_t restored;            // overlay entries that came back from the state folder
	char revision[REVISION_ID]; // policy that came back; "" none
};

// Takes the lock and opens the instance, with a trial that ran out made real, or makes one with the overlay that was kept and the accepted
// policy. new_policy: the caller brings another one, so an accepted one that cannot be restored is no
// reason to fail. max_entries: 0 for the default; another number than a running instance's is refused.
// 0 or -errno with err set.
int bringup_open(const char *name, const char *command, uint32_t max_entries, bool new_policy,
		 struct bringup *ret, struct err *err);
void bringup_close(struct bringup *b);
#define CLEANUP_BRINGUP CLEANUP(bringup_close)

// Attaches one interface of this network namespace, after checking that it exists and is Ethernet.
// generation: number of the policy that brings it, 0: by hand, which also adopts one that a policy brought.
// gate: asked first where it is not attached yet; NULL: the caller has.
int bringup_attach(struct bringup *b, const char *ifname, enum attach_mode mode,
		   uint32_t generation, const struct gate *gate, struct attach_result *ret,
		   struct err *err);

// A trial of interfaces begins: those that are attached from now on are there for trial_ms, unless it is
// confirmed; then the kernel lets everything pass on them. Refused while another trial runs.
int bringup_try(struct bringup *b, uint64_t trial_ms, struct err *err);
// It has brought nothing, or that is detached again.
int bringup_end_try(struct bringup *b, struct err *err);
// Before an instance goes whatever its state is: what commands that were cut short left in the state folder is
// decided, as far as its maps can be read. The caller holds the lock.
void bringup_recover(const char *name);

// Removes the pins when no interface is left in the table; what is blocked stays in the state folder.
int bringup_remove_if_idle(struct bringup *b, bool *ret_removed, struct err *err);
