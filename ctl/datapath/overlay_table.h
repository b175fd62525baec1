// SPDX-License-Identifier: GPL-2.0-only
// The tables of the overlay, and the maps of prefixes among them by one interface.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/overlay.h"
#include "ctl/base/addr.h"
#include "ctl/datapath/instance.h"

// In the order of knobs.entries.
enum overlay_table {
	TABLE_HOSTS4,
	TABLE_HOSTS6,
	TABLE_NETS4,
	TABLE_NETS6,
	TABLE_OUT4, // hosts and prefixes
	TABLE_OUT6,
	TABLES,
};
enum overlay_table table_of(const struct prefix *p, uint8_t kind);

static inline bool table_is_hosts(enum overlay_table t)
{
	return t == TABLE_HOSTS4 || t == TABLE_HOSTS6;
}

static inline bool table_is_out(enum overlay_table t)
{
	return t == TABLE_OUT4 || t == TABLE_OUT6;
}

static inline uint8_t table_family(enum overlay_table t)
{
	return t == TABLE_HOSTS4 || t == TABLE_NETS4 || t == TABLE_OUT4 ? 4 : 6;
}

// An entry of one kind: as it is in the maps, or as a change wants it, without counters.
struct overlay_entry {
	struct prefix prefix;
	uint8_t kind;   // enum overlay_kind
	uint64_t until; // jiffies64 or OVERLAY_FOREVER; may have expired. A change: 0 ends it
	struct overlay_hits hits;
	uint64_t seen; // jiffies64 of the last packet; 0: none
};
struct overlay_entries {
	struct overlay_entry *at;
	size_t n, cap;
};
// Order of prefix_compare, then kind.
int overlay_compare(const struct overlay_entry *a, const struct overlay_entry *b);

// Everything below is only for tables that are not of hosts.

union net_key {
	struct overlay_net4_key net4;
	struct overlay_net6_key net6;
};

// An element of a map, or its change.
struct net_element {
	struct prefix prefix;
	uint8_t kind;
	// Only of a change:
	bool old;     // the map has it: only next and own_next of its value are set
	bool added;   // an entry begins
	bool dead;    // to be removed after the commit
	bool expired; // to be removed at once: it has no effect
	struct overlay_net value;
};
struct net_elements {
	struct net_element *at;
	size_t n, cap;
};
void net_elements_free(struct net_elements *raws);
#define CLEANUP_NET_ELEMENTS CLEANUP(net_elements_free)

int net_fd(const struct instance *i, enum overlay_table t);
size_t net_key_size(enum overlay_table t);
void net_key(const struct prefix *p, uint8_t kind, union net_key *ret);

// The element of this prefix. 0, -ENOENT (without err), or -errno with err set.
int net_lookup(const struct instance *i, const struct prefix *p, uint8_t kind,
	       struct overlay_net *ret, struct err *err);
// The narrowest one that contains it and is wider; the same codes.
int net_lookup_wider(const struct instance *i, const struct prefix *p, uint8_t kind,
		     struct overlay_net *ret, struct err *err);
// Hands over each element, in the order of the map, a batch at a time. visit returns 0, or a code
// at which the reading ends. 0, that code, or -errno with err set.
int nets_each(const struct instance *i, enum overlay_table t,
	      int (*visit)(void *ctx, const struct net_element *raw), void *ctx, struct err *err);
// All elements, sorted by prefix_compare, then kind. The caller frees ret->at. 0 or -errno with err
// set.
int nets_read(const struct instance *i, enum overlay_table t, struct net_elements *ret,
	      struct err *err);
