// SPDX-License-Identifier: GPL-2.0-only
// Driver, offloads, channels and statistics of an interface (SIOCETHTOOL).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"

enum ethtool_state { ETHTOOL_OFF, ETHTOOL_ON, ETHTOOL_UNKNOWN };

struct ethtool {
	char driver[32]; // "" when the device has no ethtool
	enum ethtool_state gro, lro, rx_vlan, tx_vlan, tx_checksum, tso, rx_gro_hw;
	// Channels; 0 if the driver does not report them, or has none of this kind.
	uint32_t combined, combined_max, rx, rx_max, tx, tx_max;
};

// In the current network namespace. 0 or -errno with err set (-ENODEV: no such interface). A
// feature that the driver lacks is ETHTOOL_OFF, one that the kernel does not know or cannot tell
// ETHTOOL_UNKNOWN, never an error.
int ethtool_get(const char *ifname, struct ethtool *ret, struct err *err);

// Frames that XDP was to send and that the driver lost, by its statistics, since the device exists.
// Nothing else reports them: the kernel does not follow a frame after the verdict of XDP.
struct ethtool_lost {
	bool known; // the driver counts them
	uint64_t frames;
	char counter[40]; // the greatest of those that count them; "" without any frame
};

// 0 or -errno; a driver without such statistics is not an error.
int ethtool_lost(const char *ifname, struct ethtool_lost *ret);
// The pure part: does this statistic count such frames? Not what a program has dropped by its
// verdict, which many drivers call "xdp_drop".
bool ethtool_counts_lost(const char *driver, const char *counter);

// Header-data split ("TCP data split" of ethtool -g), by generic netlink (Linux 5.17).
enum ethtool_state ethtool_hds(uint32_t ifindex);

// Only the name of the driver. 0 or -errno; ret is untouched on failure.
int ethtool_driver(const char *ifname, char *ret, size_t size);
