// SPDX-License-Identifier: GPL-2.0-only
// An instance: its pinned maps and programs, which each command finds by their names.
//
// A new instance is built completely in NAME+new and becomes visible by one rename. A kill before
// that leaves a folder that no command looks for ('+' is in no name of an instance; '.' is not
// allowed in the BPF file system); the next attach or detach removes it. Removal is the reverse: a
// rename to NAME+old, then the deletion.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/abi.h"
#include "common/config.h"
#include "ctl/base/err.h"
#include "ctl/datapath/clock.h"

struct instance {
	char name[WEIR_NAME_MAX];
	char *folder; // /sys/fs/bpf/weir/NAME
	struct meta meta;
	struct knobs *knobs; // mapped, shared with the programs
	int knobs_fd, progs, ifaces, counters, events, hosts4, hosts6, nets4, nets6, rulecounters,
		identities, stations; // maps
	int clock_prog;
	uint32_t progs_id; // map id: by it our root programs are recognised on an interface
};

// Opens the instance's pins. -ENOENT with err set (ERR_INPUT) when there is none, ERR_REFUSED when it
// was made by a Weir with another layout version or belongs to another network namespace; both name
// the way out. 0 or -errno.
int instance_open(const char *name, struct instance **ret, struct err *err);

// Makes an instance with an empty policy, active and previous, in NAME+new; instance_publish() makes it visible
// once the stored state is back in it. The caller holds the lock. max_entries: of each overlay map, 1 … 16 Mi.
// 0 or -errno with err set.
int instance_create(const char *name, uint32_t max_entries, struct instance **ret, struct err *err);

// The same without a name and without pins, for tests: needs no bpffs, and ends with its descriptors.
int instance_create_private(uint32_t max_entries, struct instance **ret, struct err *err);

int instance_publish(struct instance *i, struct err *err);

// Removes the pins, of any layout version. Programs that are still attached run until they are detached. The
// caller holds the lock.
int instance_remove(const char *name, struct err *err);

// Removes what a killed instance_create or instance_remove left behind. The caller holds the lock.
int instance_sweep(const char *name, struct err *err);

void instance_free(struct instance *i);
#define CLEANUP_INSTANCE CLEANUP(instance_cleanup)
void instance_cleanup(struct instance **i);

// One reading of the clocks.
int instance_clock(const struct instance *i, struct clock *ret, struct err *err);

// An element of the interface table, 1 … WEIR_IFACES - 1, with the present name and ifindex of the device.
int instance_iface(const struct instance *i, uint32_t number, struct iface *ret, struct err *err);
// The same as it was written.
int instance_iface_stored(const struct instance *i, uint32_t number, struct iface *ret,
			  struct err *err);
int instance_set_iface(const struct instance *i, uint32_t number, const struct iface *row,
		       struct err *err);
// The number of the interface with this name in any state but IFACE_FREE, preferably of a device that is here; 0:
// none. 0 or -errno with err set.
int instance_find_iface(const struct instance *i, const char *name, uint32_t *ret, struct err *err);
// Are there interfaces in the table, or is it unreadable?
bool instance_has_ifaces(const struct instance *i);
