// SPDX-License-Identifier: GPL-2.0-only
// Tells the datapath, by interface, which MAC addresses belong to this host.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
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

// The stations that the datapath knows, in no order. Interfaces that accept any frame have no
// station.
int stations_read(const struct instance *i, struct stations *ret, struct err *err);
// Tells the datapath. The first station of an interface is compared first. An interface without
// stations accepts every frame, and so does one whose addresses find no room. An address that is
// both in the old and in the new list is never missing in between. 0 or -errno with err set.
int stations_write(const struct instance *i, const struct stations *want, struct err *err);
// Do both have the same stations?
bool stations_equal(const struct stations *a, const struct stations *b);

// Writes these n addresses, and removes the others. Addresses without room are left out. An address
// that is both in the old and in the new list is never missing in between. 0 or -errno with err
// set.
int own_write(const struct instance *i, const struct addr *addrs, size_t n, struct err *err);
