// SPDX-License-Identifier: GPL-2.0-only
// The frame of a packet to a backend, as the datapath makes it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/service.h"

// The most that is put before a packet: Ethernet with a tag, IPv6, UDP.
#define WRAP_MOST 66

// Takes a hop from the packet, whole IPv4 or IPv6 without options, and puts the headers of the mode
// (enum service_mode) before it: they end where it begins. WRAP_MOST bytes are free there. hash: of
// the flow. Returns where the frame begins;
// NULL: the mode has no such frame.
uint8_t *wrap_packet(const struct backend *to, uint32_t mode, uint64_t hash, uint8_t *packet,
		     size_t length);
