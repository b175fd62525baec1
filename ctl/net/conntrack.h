// SPDX-License-Identifier: GPL-2.0-only
// Is the kernel's connection tracking active in this network namespace?
#pragma once

#include <stdbool.h>

// Tracking is idle until some rule of nftables or iptables asks for it: an idle one knows no
// connection. Finds out by sending datagrams to itself over loopback and checking whether
// /proc/sys/net/netfilter/nf_conntrack_count grows. False where the kernel has no tracking at all,
// or does not track the loopback device.
bool conntrack_active(void);
// The commands that start it.
#define CONNTRACK_START                                                                        \
	"nft add table inet weir-track; nft add chain inet weir-track in '{ type filter hook " \
	"prerouting priority 0; }'; nft add rule inet weir-track in ct state new accept"
