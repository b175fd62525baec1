// SPDX-License-Identifier: GPL-2.0-only
// Makes and removes instances.
//
// A new instance is built completely in NAME+new and becomes visible by one rename. A kill before
// that leaves a folder that no command uses ('+' is in no name of an instance; '.' is not allowed
// in the BPF file system); the next attach or detach removes it. Removal is the reverse: a rename
// to NAME+old, then the deletion.
#pragma once

#include "ctl/datapath/generation.h"
#include "ctl/datapath/instance.h"

// Makes an instance, with the empty policy as active and previous program. The caller restores
// policy and overlay and then calls instance_publish. The caller holds the lock. max_entries: of
// each overlay map, 1 … WEIR_OVERLAY_MAX. 0 or -errno with err set.
int instance_create(const char *name, uint32_t max_entries, struct instance **ret, struct err *err);
// Makes it visible.
int instance_publish(struct instance *i, struct err *err);

// An instance without a name and not in bpffs, for tests; it ends with its descriptors. So does its
// policy, the empty one: the caller keeps it while it is active.
int instance_create_private(uint32_t max_entries, struct instance **ret,
			    struct generation **ret_first, struct err *err);

// Removes an instance of any layout version from bpffs; attached programs continue until they are
// detached. The caller holds the lock.
int instance_remove(const char *name, struct err *err);

// Removes what a killed instance_create or instance_remove left. The caller holds the lock.
int instance_sweep(const char *name, struct err *err);
