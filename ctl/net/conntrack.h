// SPDX-License-Identifier: GPL-2.0-only
// Is the kernel's connection tracking active in this network namespace?
#pragma once

#include <stdint.h>

// Tracking is idle until some rule of nftables or iptables asks for it: an idle one knows no
// connection. Each family has its own.
#define CONNTRACK_4 1u
#define CONNTRACK_6 2u
// The families in which tracking is off, found out by sending datagrams to itself over loopback and
// checking whether /proc/sys/net/netfilter/nf_conntrack_count grows. Without such a file tracking
// is off in both. A family in which nothing can be sent is not off, and none is while the table of
// connections is nearly full. One that does not track the loopback device is taken for off.
uint32_t conntrack_off(void);
// The commands that start it.
#define CONNTRACK_START                                                                        \
	"nft add table inet weir-track; nft add chain inet weir-track in '{ type filter hook " \
	"prerouting priority 0; }'; nft add rule inet weir-track in ct state new accept"
