// SPDX-License-Identifier: GPL-2.0-only
// Blocks of a pcapng file (draft-ietf-opsawg-pcapng), in the byte order of this machine.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/base/text.h"

struct pcapng_packet {
	uint32_t interface; // number of its interface block, from 0
	uint32_t captured;  // bytes that follow
	uint32_t length;    // bytes that the frame had, at least `captured`
	uint64_t time_ns;   // since 1970
	const uint8_t *bytes;
	const char *comment; // UTF-8, cut off at 65,535 bytes; NULL: none
};

struct pcapng_statistics {
	uint32_t interface;
	uint64_t begin_ns, end_ns; // when the capture ran, since 1970
	uint64_t received;         // packets, including the lost ones
	uint64_t lost;             // for want of room between kernel and reader
};

// Each adds one block to `ret`. A file has a section, then the block of each interface before its
// first packet.
void pcapng_section(struct text *ret, const char *application, const char *comment);
void pcapng_interface(struct text *ret, const char *name, uint32_t snap);
void pcapng_packet(struct text *ret, const struct pcapng_packet *p);
void pcapng_statistics(struct text *ret, const struct pcapng_statistics *s);
