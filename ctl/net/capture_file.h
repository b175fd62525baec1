// SPDX-License-Identifier: GPL-2.0-only
// Frames of a capture file, pcap or pcapng with Ethernet, read by libpcap.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/mem.h"
#include "ctl/net/pcapng_notes.h"

struct capture_file {
	char *text;                // the whole file
	struct pcap *opened;       // by libpcap, which reads `text`
	uint64_t number;           // packets read so far
	struct pcapng_notes notes; // at the end, `lost` has the packets that were lost
};

struct captured_packet {
	uint64_t number; // from 1, as other tools count
	const uint8_t *bytes;
	size_t captured;  // that are in the file
	size_t length;    // that were on the wire, at least `captured`
	uint64_t time_us; // since 1970
	struct pcapng_note note;
};

// 0, or -errno with err set: other formats and link types are refused with the way out; without
// libpcap no file is read.
int capture_file_open(const char *path, struct capture_file *ret, struct err *err);
// 1 and the next packet, whose bytes stay valid until the next call; 0 at the end; -EINVAL with err
// set where the file is damaged.
int capture_file_next(struct capture_file *f, struct captured_packet *ret, struct err *err);
void capture_file_close(struct capture_file *f);
#define CLEANUP_CAPTURE_FILE CLEANUP(capture_file_close)
