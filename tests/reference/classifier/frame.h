// SPDX-License-Identifier: GPL-2.0-only
// The fields of an Ethernet frame that a filter can use.
#ifndef REF_FRAME_H
#define REF_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "addr.h"

enum fragment { FRAGMENT_NONE, FRAGMENT_FIRST, FRAGMENT_LATER };

struct frame {
	const char *malformed; /* the word, or NULL; then nothing else counts */
	uint32_t frame_len;
	uint64_t mac;        /* of the source */
	uint16_t ethertype;  /* after the tags */
	uint16_t vlan;       /* outermost VID; 0 = none */
	unsigned int family; /* 4, 6, or 0 = not IP: nothing below counts */
	struct addr src;
	struct addr dst;
	uint32_t ip_len;
	uint8_t proto;
	uint8_t ttl;
	uint8_t dscp;
	enum fragment fragment;
	bool fragment_header; /* IPv6: there is one, even an atomic one */
	bool routed;          /* IPv6: a routing header has segments left */
	bool has_ports;
	uint16_t sport;
	uint16_t dport;
	bool has_flags;
	uint8_t flags;
	bool has_type;
	uint8_t type;
	uint8_t code;
};

void frame_parse(const uint8_t *bytes, size_t len, struct frame *ret_frame);

/* Neighbour discovery: weir-policy(5), ORDER OF DECISIONS. */
bool frame_is_nd(const struct frame *frame);

#endif
