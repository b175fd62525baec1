// SPDX-License-Identifier: GPL-2.0-only
// Tells the datapath, by interface, which MAC addresses belong to this host.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/datapath/instance.h"

// The six bytes in the order of a frame, the first in the lowest bits.
uint64_t station_of(const uint8_t mac[6]);

struct stations {
	struct station {
		uint32_t number; // of the interface
		uint64_t mac;
	} * at;
	size_t n, cap;
};
void stations_free(struct stations *s);
#define CLEANUP_STATIONS CLEANUP(stations_free)

// What the datapath has been told, in no order; interfaces that take any frame have none.
int stations_read(const struct instance *i, struct stations *ret, struct err *err);
// Tells it. The first of an interface's is the one compared first; an interface without any takes every frame,
// and so does one whose addresses find no room. At no moment is an address missing that was there before and
// is there after. 0 or -errno with err set.
int stations_write(const struct instance *i, const struct stations *want, struct err *err);
// Do both say the same?
bool stations_equal(const struct stations *a, const struct stations *b);
