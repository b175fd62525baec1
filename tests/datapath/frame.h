// SPDX-License-Identifier: GPL-2.0-only
// Ethernet frames for the tests in C. Checksums are zero: the datapath does not read them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"

#define FRAME_MAX 9216

struct frame {
	size_t len;
	uint8_t at[FRAME_MAX];
};

// UDP between two addresses of one family, with `payload` bytes that count up.
void frame_udp(struct frame *f, const char *src, const char *dst, size_t payload);
// From this address, without a payload; until the next call.
struct frame *frame_source(const char *src);
void frame_udp_between(struct frame *f, const struct addr *src, const struct addr *dst,
		       size_t payload);
// IPv6 with these extension headers, each `ext_bytes` long, and UDP after them.
void frame_udp_behind(struct frame *f, const uint8_t *kinds, size_t n, size_t ext_bytes);
// `len` bytes with an ethertype that is not IP.
void frame_not_ip(struct frame *f, size_t len);
// A frame that ends inside its IPv4 header.
void frame_malformed(struct frame *f);

// Lower-case digits, two a byte. False: not digits, or too many.
bool frame_read_hex(const char *hex, struct frame *f);
