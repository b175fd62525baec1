// SPDX-License-Identifier: GPL-2.0-only
// What a device reports that decides whether native mode works on it; net/driver has what it does
// not report.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/net/ethtool.h"
#include "ctl/net/link.h"

enum native_headroom {
	HEADROOM_UNKNOWN, // XenStore cannot be read
	HEADROOM_NO, // the backend does not offer it, or driver and backend have not agreed on it
	HEADROOM_YES,
};

struct native_facts {
	char name[IF_NAMESIZE], driver[32];
	uint32_t mtu;
	bool attached;    // it carries a program in native mode
	bool buffers;     // under XDP, the driver takes a packet into several buffers
	struct ethtool e; // offloads and channels
	enum ethtool_state hds;
	uint32_t vfs;                  // virtual functions in use (SR-IOV)
	uint32_t cpus;                 // that may exist
	uint32_t cpus_online;          // the highest number of a CPU that runs, plus one
	enum native_headroom headroom; // of a device of Xen
};

// Asks ethtool, netlink, /sys and XenStore. What they do not tell is 0, false or unknown.
void native_facts(const struct link *link, struct native_facts *ret);

// Does the driver send what is redirected to its device only while that carries a program in native
// mode?
bool native_sends_with_program(const char *driver);
bool native_carries(const struct link *link);
