// SPDX-License-Identifier: GPL-2.0-only
// Builds Ethernet frames from a description; knows nothing of how they are read.
#ifndef REF_BUILD_H
#define REF_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "addr.h"

#define BUILD_TAGS_MAX  8
#define BUILD_EXT_MAX   32
#define BUILD_FRAME_MAX 65600

enum build_fragment { BUILD_WHOLE, BUILD_FIRST, BUILD_LATER, BUILD_ATOMIC };

struct build_tag {
	uint16_t type;
	uint16_t tci;
};

/* An IPv6 extension header; a fragment header (44) comes from the field `fragment` instead. */
struct build_ext {
	uint8_t type;
	uint8_t words; /* units of 8 bytes beyond the first */
};

struct build_spec {
	unsigned int tags_len;
	struct build_tag tags[BUILD_TAGS_MAX];
	unsigned int family; /* 4, 6 or 0: ethertype and length bytes of payload */
	uint16_t ethertype;
	struct addr src;
	struct addr dst;
	uint8_t proto;
	uint8_t ttl;
	uint8_t dscp;
	unsigned int options; /* IPv4: words of no-operation options */
	unsigned int ext_len;
	struct build_ext ext[BUILD_EXT_MAX];
	enum build_fragment fragment;
	uint16_t offset;          /* of a later fragment, in units of 8 */
	unsigned int fragment_at; /* IPv6: so many extension headers stand before the fragment's */
	uint16_t sport;
	uint16_t dport;
	uint8_t flags;
	unsigned int tcp_options; /* words */
	uint8_t type;
	uint8_t code;
	uint32_t length;      /* to reach with payload: IP length, or the frame's for family 0 */
	unsigned int padding; /* bytes behind the packet */
};

/* The frame and where its parts begin. */
struct build_frame {
	size_t len;
	size_t ip;
	size_t transport;
	uint8_t bytes[BUILD_FRAME_MAX];
};

void build_frame(const struct build_spec *spec, struct build_frame *ret_frame);

#endif
