// SPDX-License-Identifier: GPL-2.0-only
// Offload features, channels and driver name of an interface (SIOCETHTOOL).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"

enum ethtool_state { ETHTOOL_OFF, ETHTOOL_ON, ETHTOOL_UNKNOWN };

struct ethtool {
	char driver[32]; // "" when the device has no ethtool
	enum ethtool_state gro, lro, rx_vlan, tx_vlan, tx_checksum, tso, rx_gro_hw;
	uint32_t combined, combined_max; // channels; 0 when the driver does not say
};

// In the current network namespace. 0 or -errno with err set (-ENODEV: no such interface). A
// feature that the driver lacks is ETHTOOL_OFF, one that the kernel does not know or cannot tell
// ETHTOOL_UNKNOWN, never an error.
int ethtool_get(const char *ifname, struct ethtool *ret, struct err *err);

// The driver's name alone. 0 or -errno; ret is untouched on failure.
int ethtool_driver(const char *ifname, char *ret, size_t size);
