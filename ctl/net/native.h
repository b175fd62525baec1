// SPDX-License-Identifier: GPL-2.0-only
// Properties that a device reports and that decide whether native mode works. Properties that it
// does not report are in net/driver.
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
	enum native_headroom headroom; // for a device of Xen
};

// Asks ethtool, netlink, /sys and XenStore. Properties that they do not report are 0, false or
// unknown.
void native_facts(const struct link *link, struct native_facts *ret);

// Does the driver send redirected frames only while its device has a program in native mode?
bool native_sends_with_program(const char *driver);
bool native_carries(const struct link *link);

// Bits of NETDEV_A_DEV_XDP_FEATURES (generic netlink family "netdev", Linux 6.3); the headers of
// Linux 6.1 do not have them.
#define XDP_FEATURE_NDO_XMIT (1u << 2) // frames can be redirected to it
#define XDP_FEATURE_RX_SG    (1u << 5) // packets in several buffers

// Reads these features of an interface in the current network namespace. 0; -EOPNOTSUPP: the kernel
// does not support the request; other -errno. No message.
int xdp_features(uint32_t ifindex, uint64_t *ret);
