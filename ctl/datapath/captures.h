// SPDX-License-Identifier: GPL-2.0-only
// Reads whole frames that the datapath has captured, for one reader at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/capture.h"
#include "ctl/datapath/instance.h"

// The packets that the datapath copies.
struct captures_wish {
	uint64_t reasons[2]; // bit: enum weir_reason
	uint32_t iface;      // number of the interface; 0: any
	uint32_t rule;       // index of its counter; EVENT_NO_RULE: any
	uint32_t snap;       // bytes of a frame
};

struct captures;

// frame: the captured bytes. Not 0: no further one is wanted now.
typedef int captures_visit(void *ctx, const struct captured *packet, const uint8_t *frame);

// Opens the ring without its old records; no packet is captured yet. -EBUSY with err set
// (ERR_REFUSED, with the pid) when another process reads it.
int captures_open(const struct instance *i, const struct captures_wish *wish, captures_visit *visit,
		  void *ctx, struct captures **ret, struct err *err);
// From now on this share of all packets, of 2^32, is captured if the wish has it, for the next
// three seconds; to be called repeatedly. If the process dies, the datapath stops by itself.
// 0 or -errno with err set.
int captures_want(struct captures *c, uint32_t share, struct err *err);
// Visits what has arrived, at most as much as the ring has room for. *ret_bytes: of the ring that
// these records took. 0 or -errno with err set.
int captures_take(struct captures *c, size_t *ret_bytes, struct err *err);
// Ends the capture in the datapath; what the ring has can still be taken.
void captures_stop(struct captures *c);
void captures_close(struct captures *c);
