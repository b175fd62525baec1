// SPDX-License-Identifier: GPL-2.0-only
// The devices that carry the traffic of services, in or out, and how frames get lost in them.
//
// A frame that XDP sends and the device does not take is lost without a trace, except in the
// statistics of the driver.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/net/ethtool.h"
#include "ctl/net/link.h"

struct backend;
struct pool;

struct egress {
	struct link link;
	bool in, out;
	bool tunnels;             // out: to backends in mode ipip or gue
	bool native;              // in: our program is there, in native mode
	struct ethtool_lost lost; // since the last egress_forget, else since the device exists
	bool known; // egress_forget was called with it: possible problems were reported
};
struct egresses { // interfaces of the instance first
	struct egress *at;
	size_t n, cap;
};

// The present devices, without those that no longer exist. The caller frees ret with egress_free.
void egress_find(const struct pool *f, struct egresses *ret);
void egress_free(struct egresses *a);
#define CLEANUP_EGRESSES CLEANUP(egress_free)

// Restarts the count of lost frames. No error: if /run is lost, old frames count again.
void egress_forget(const char *instance, const struct egresses *a);

// Known problems of a device.
struct egress_finding {
	char about[IF_NAMESIZE];
	bool problem; // false: possibly no problem; this host cannot tell
	char *text;   // a sentence
	char *mend;   // what to do
};
struct egress_findings {
	struct egress_finding *at;
	size_t n, cap;
};

// Reasons why frames get lost, from the kernel's properties of the devices; not the number of lost
// frames. `again`: also reports possible problems of known devices.
void egress_check(const struct egresses *a, bool again, struct egress_findings *ret);
void egress_findings_free(struct egress_findings *list);
#define CLEANUP_EGRESS_FINDINGS CLEANUP(egress_findings_free)

// Are packets for this backend dropped because its device cannot send them? In generic mode the
// stack sends them, and frames sent back on the interface of arrival are not redirected.
bool egress_cannot_send(const struct pool *f, const struct backend *backend);
