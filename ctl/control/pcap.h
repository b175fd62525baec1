// SPDX-License-Identifier: GPL-2.0-only
// Frames of a capture file: classic pcap with Ethernet, either byte order, micro- or nanoseconds.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"

struct pcap {
	char *text; // the whole file
	size_t length, at;
	bool swapped;    // the other byte order than this machine's
	uint64_t number; // packets read so far
};

struct pcap_packet {
	uint64_t number; // from 1, as other tools count
	const uint8_t *bytes;
	size_t captured; // that are in the file
	size_t length;   // that were on the wire, at least `captured`
};

// 0, or -errno with err set; other formats and link types are refused by name, with the way out.
int pcap_open(const char *path, struct pcap *ret, struct err *err);
// 1 and the next packet, whose bytes stay valid until pcap_free; 0 at the end; -EINVAL with err set
// where the file is damaged.
int pcap_next(struct pcap *p, struct pcap_packet *ret, struct err *err);
void pcap_free(struct pcap *p);
#define CLEANUP_PCAP CLEANUP(pcap_free)
