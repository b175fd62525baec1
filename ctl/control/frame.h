// SPDX-License-Identifier: GPL-2.0-only
// Test packets: turns an `expect` line or the question of `weir explain` into an Ethernet frame.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/policy/resolved.h"

#define FRAME_MAX 9216

// Can the packet exist? 0, or -EINVAL with the error of frame_build().
int frame_check(const struct resolved_packet *p, struct err *err);

// Writes the frame of p: from p->mac (if not given: 02:00:00:00:00:01) to
// 02:00:00:00:00:02, a VLAN tag where p->vlan is
// not 0, right lengths and checksums (IP, TCP, UDP, ICMP, SCTP's CRC32c), payload zero. A later
// fragment has offset 64 and no transport header. p->length 0: the smallest that holds the headers.
// 0 and *ret_length, or -EINVAL with err set when the length is too small or too large for the
// packet.
int frame_build(const struct resolved_packet *p, uint8_t ret[FRAME_MAX], size_t *ret_length,
		struct err *err);
