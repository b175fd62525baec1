// SPDX-License-Identifier: GPL-2.0-only
// Is the kernel's connection tracking active in this network namespace?
#pragma once

#include <stdbool.h>

// Tracking is idle until some rule of nftables or iptables asks for it: an idle one knows no
// connection. Finds out by sending a datagram to itself over loopback and checking whether
// /proc/sys/net/netfilter/nf_conntrack_count grows. False where the kernel has no tracking at all.
bool conntrack_active(void);
