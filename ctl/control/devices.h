// SPDX-License-Identifier: GPL-2.0-only
// All interfaces of an instance, compared with the devices of the kernel by one dump of these.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/datapath/device.h"

struct link;

struct devices {
	struct link *links; // links of this network namespace, without drivers, by ifindex
	size_t n_links;
	struct err unlisted; // why there are no links; kind 0: there are
	struct device at[WEIR_IFACES];
	struct err unknown; // why the first one that is DEVICE_UNKNOWN is; kind 0: none is
};

// `unlisted` and `unknown` have the requests that the kernel did not answer. 0 or -errno with err
// set: the table cannot be read. The caller frees *ret in either case.
int devices_read(const struct instance *i, struct devices *ret, struct err *err);
void devices_free(struct devices *d);
#define CLEANUP_DEVICES CLEANUP(devices_free)

// Reads, and updates the table and what the datapath knows of the indexes of devices and of their
// MTUs. The caller holds the lock. 0 or -errno with err set.
int devices_sync(const struct instance *i, struct devices *ret, struct err *err);
// Has the datapath another device or MTU of an interface?
bool devices_stale(const struct instance *i, const struct devices *devices);
