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
	bool known; // there was an egress_forget with it: what may be wrong has been told
};
struct egresses { // interfaces of the instance first
	struct egress *at;
	size_t n, cap;
};

// As they are now, without devices that no longer exist. The caller frees ret with egress_free.
void egress_find(const struct pool *f, struct egresses *ret);
void egress_free(struct egresses *a);
#define CLEANUP_EGRESSES CLEANUP(egress_free)

// From now on lost frames count from here. No error: what is lost with /run counts again.
void egress_forget(const char *instance, const struct egresses *a);

// What is known against a device.
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

// Why frames get lost, by what the kernel says of the devices; not what has been lost. `again`:
// what only may be wrong is told also of devices that are known.
void egress_check(const struct egresses *a, bool again, struct egress_findings *ret);
void egress_findings_free(struct egress_findings *list);
#define CLEANUP_EGRESS_FINDINGS CLEANUP(egress_findings_free)

// Is what goes to this backend dropped because its device cannot send it? In generic mode the stack
// sends it, and what goes back where it came from is not redirected.
bool egress_cannot_send(const struct pool *f, const struct backend *backend);
