// SPDX-License-Identifier: GPL-2.0-only
// Compares the interface table with the devices of the kernel.
//
// The table has {ifindex, name} of each interface in the namespace of the instance, as last seen.
// Nothing reads it without this comparison:
//
// - A link has a device: that is the device. If index or program differ in this namespace, it has
//   been moved to another one.
// - A link has no device: the device no longer exists, and another one has its index or name.
// - No link (libxdp): the program is searched at the index, then on all devices, then in all
//   other network namespaces that have a name or a process, as long as the program exists. Without
//   the program, a device with the index counts, unless its name belongs to a device not in the
//   table.
//
// Commands with the lock also write what they find (device_sync), so that the datapath knows a
// device that returned with another index. A new device with the name of one that no longer exists
// gets its number.
#pragma once

#include <stddef.h>

#include "ctl/datapath/instance.h"

enum device_state {
	DEVICE_FREE,  // no device has this number
	DEVICE_HELD,  // our program is on it
	DEVICE_MOVED, // the same, in another network namespace
	DEVICE_OPEN,  // it is here without our program
	// the device no longer exists; another one has its name, without our program
	DEVICE_ANOTHER,
	DEVICE_GONE,    // no device
	DEVICE_UNKNOWN, // the kernel does not tell; only of device_read_all
};

#define DEVICE_NETNS 64

struct device {
	enum device_state state;
	struct iface iface;       // name and ifindex as they are now
	char netns[DEVICE_NETNS]; // moved: to this namespace, for -N; "": not known
	char there[16];           // moved: its name there
};

// Asks the kernel. 0, or -errno with err set: the kernel does not tell.
int device_read(const struct instance *i, uint32_t number, struct device *ret, struct err *err);

// The state of a device in this network namespace, from rtnetlink.
struct device_shown {
	uint32_t ifindex, prog_id; // ID of its XDP program; 0: none
	const char *name;
};

// The whole table. `shown`: all devices of this namespace, in the order of their ifindex. A device
// is held if its only program is ours and index and name are as in the table: no further request is
// needed. So the calls do not grow with the interfaces. All others are read by device_read(); where
// that fails the device is DEVICE_UNKNOWN, as it was stored, and *ret_why has the reason of the
// first. 0 or -errno with err set.
int device_read_all(const struct instance *i, const struct device_shown *shown, size_t n,
		    struct device ret[WEIR_IFACES], struct err *ret_why, struct err *err);

// The same for the table itself, and for the datapath, which knows interfaces by their ifindex:
// `devices` as device_read_all() has read them. The caller holds the lock. 0 or -errno with err
// set.
int device_sync(const struct instance *i, const struct device devices[WEIR_IFACES],
		struct err *err);

// "held", "moved", "open", "another", "gone", "unknown".
const char *device_state_name(enum device_state state);
// Do packets pass there that Weir would drop?
bool device_is_open(const struct device *d);

// An element of the interface table, 1 … WEIR_IFACES - 1, with the name and ifindex that the device
// has now. 0 or -errno with err set.
int instance_iface(const struct instance *i, uint32_t number, struct iface *ret, struct err *err);
// The interfaces of the table in the order of their numbers, without those that cannot be read:
// for (uint32_t n = 0; instance_next_iface(i, &n, &iface);)
bool instance_next_iface(const struct instance *i, uint32_t *n, struct iface *ret);
// The number of the attached interface whose device has this ifindex and runs our program; 0: no
// interface does. 0 or -errno with err set.
int device_find_held(const struct instance *i, uint32_t ifindex, uint32_t *ret, struct err *err);
// The number of the interface with this name in any state but IFACE_FREE; if there are several, of
// the one whose device is here. 0: no such interface. 0 or -errno with err set.
int instance_find_iface(const struct instance *i, const char *name, uint32_t *ret, struct err *err);
