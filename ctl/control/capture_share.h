// SPDX-License-Identifier: GPL-2.0-only
// Which share of packets a capture takes: all of them, fewer as its ring fills or by a rate. Pure.
#pragma once

#include <stdint.h>

#define CAPTURE_ALL UINT32_MAX // of 2^32

struct capture_share {
	uint32_t share;  // at present, of 2^32
	uint64_t rate;   // packets per second that are wanted at most; 0: any number
	double arriving; // per second, of which the share is taken
};

// Figures of a reader since its last look.
struct capture_seen {
	double full;      // the part of the ring that it found taken, 0 … 1
	uint64_t lost;    // packets for which the ring had no room
	uint64_t packets; // records
	uint64_t span_ns;
};

// The first share: all, or where so many packets arrive as `rate` wants.
void capture_share_begin(struct capture_share *s, double packets_per_s);
// Sets the share for the packets that arrive from now on.
void capture_share_next(struct capture_share *s, const struct capture_seen *seen);
// "1 of 1", "1 of 1.042", "1 of 80.0", "1 of 4711": within 0.5 %.
typedef char capture_share_text[32];
const char *capture_share_format(uint32_t share, capture_share_text buf);
