// SPDX-License-Identifier: GPL-2.0-only
// Attaches the root program to interfaces. Detaching: attach_remove.h.
//
// Order of an attach, under the lock (control/bringup does 1 and 2):
//
//   1. The interface must exist and be Ethernet.
//   2. Open or make the instance. A new one gets the accepted policy and the overlay, committed,
//      before it becomes visible. Unless our program is on the interface already, a test program
//      finds out whether the login would be cut off there (control/lockout).
//   3. Interface table: attaching. The number goes into the table that packets read.
//   4. If our program is on the interface already (a command was killed after 5), continue with 6.
//   5. Attach: through libxdp if the instance shares interfaces, else held by a link, in native
//      mode; in mode auto then the same in generic mode, with the reasons in the notice.
//   6. Ask the kernel for its programs. Interface table: attached, with mode, program and form.
//
// So no packet meets the program before its entries. If a step fails, our program is detached, the
// number is freed, and an instance that was made for it is removed. A foreign program is never
// replaced: ours is recognised by its use of the progs map of the instance, and without a link the
// kernel itself compares (old_prog_fd). A kill in state "attaching" or "detaching" leaves open
// whether the program is there: `status` reports it, the next attach or detach repairs it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/words.h"
#include "ctl/base/err.h"
#include "ctl/datapath/attach_query.h"
#include "ctl/datapath/hook.h"
#include "ctl/datapath/instance.h"

struct attach_result {
	uint32_t number; // number of the interface in the instance
	bool changed;    // false: it was attached already
	enum iface_mode mode;
	bool shared;              // under libxdp's dispatcher
	char notice[HOOK_NOTICE]; // why not native, why not shared; "": no notice
};

// Gives a device its number in the instance before it is attached, so that policies can learn it
// first. A failed attach_interface() frees the number. A device keeps its number under every name;
// a new device gets the number of the one that had its name.
int attach_reserve(const struct instance *i, const char *name, uint32_t ifindex,
		   uint32_t *ret_number, struct err *err);

// Attaches the root program to a device. AUTO takes native mode, else generic mode with the reason
// in the notice. unfit: why native mode does not work here although the driver accepts it; NULL: it
// does. The caller holds the lock. 0, or -errno with err set and no program of ours left there.
int attach_interface(const struct instance *i, const struct hook_target *target,
		     enum attach_mode mode, const struct err *unfit, struct attach_result *ret,
		     struct err *err);
