// SPDX-License-Identifier: GPL-2.0-only
// One interface to the four maps of the overlay, whatever the key of a map is.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/overlay.h"
#include "ctl/base/addr.h"
#include "ctl/datapath/instance.h"

enum overlay_table {
	TABLE_HOSTS4,
	TABLE_HOSTS6,
	TABLE_NETS4,
	TABLE_NETS6,
	TABLES,
};

union overlay_key {
	uint8_t host[16];
	struct overlay_net4_key net4;
	struct overlay_net6_key net6;
};

union overlay_value {
	struct overlay_host host;
	struct overlay_net net;
};

// An element of a map. Only prefixes have a kind; the value of a host holds all kinds.
struct overlay_raw {
	struct prefix prefix;
	uint8_t kind;
	union overlay_value value;
};
struct overlay_raws {
	struct overlay_raw *at;
	size_t n, cap;
};
void overlay_raws_free(struct overlay_raws *raws);
#define CLEANUP_RAWS CLEANUP(overlay_raws_free)

static inline bool table_is_hosts(enum overlay_table t)
{
	return t == TABLE_HOSTS4 || t == TABLE_HOSTS6;
}

enum overlay_table table_of(const struct prefix *p);
// Is this the map for the prefix's family and length?
bool table_holds(enum overlay_table t, const struct prefix *p);
int table_fd(const struct instance *i, enum overlay_table t);
size_t table_value_size(enum overlay_table t);
size_t table_key_size(enum overlay_table t);
void table_key(enum overlay_table t, const struct prefix *p, uint8_t kind, union overlay_key *ret);

// Hands over each element, in the order of the map, a batch at a time. visit returns 0, or a code at which the reading
// ends. 0, that code, or -errno with err set.
int table_each(const struct instance *i, enum overlay_table t,
	       int (*visit)(void *ctx, enum overlay_table t, const struct overlay_raw *raw),
	       void *ctx, struct err *err);
// All elements, sorted by prefix_compare, then kind. The caller frees ret->at. 0 or -errno with err set.
int table_read(const struct instance *i, enum overlay_table t, struct overlay_raws *ret,
	       struct err *err);
