// SPDX-License-Identifier: GPL-2.0-only
// The XDP features of a device's driver (generic netlink family "netdev", Linux 6.3).
#pragma once

#include <stdint.h>

// Bits of NETDEV_A_DEV_XDP_FEATURES; the headers of Linux 6.1 do not have them.
#define XDP_FEATURE_NDO_XMIT (1u << 2) // frames can be redirected to it
#define XDP_FEATURE_RX_SG    (1u << 5) // packets in several buffers

// Reads the features of an interface in the current network namespace. 0; -EOPNOTSUPP: the kernel
// does not support the request; other -errno. No message.
int xdp_features(uint32_t ifindex, uint64_t *ret);
