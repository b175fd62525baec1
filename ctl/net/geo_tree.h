// SPDX-License-Identifier: GPL-2.0-only
// The tree of one database of countries or autonomous systems.
#pragma once

#include <maxminddb.h>

#include "ctl/base/geo.h"
#include "ctl/net/geo_ranges.h"

struct geo_tree {
	MMDB_s db;
	const char *path;
};

// 0 or -errno with err set.
int geo_tree_open(const char *path, struct geo_tree *ret, struct err *err);
void geo_tree_close(struct geo_tree *t);
// Does one of its first records have a value of this kind? -errno with err set: the tree is
// damaged.
int geo_tree_has(struct geo_tree *t, enum geo_kind kind, bool *ret, struct err *err);
// The value of this kind of an address. False: it has none, or the record is damaged.
bool geo_tree_find(const struct geo_tree *t, enum geo_kind kind, const struct addr *a,
		   struct geo *ret);
// Adds the prefixes of each wanted[i] of this kind to ret[i]. 0 or -errno with err set.
int geo_tree_walk(struct geo_tree *t, enum geo_kind kind, const struct geo *wanted, size_t n,
		  struct geo_ranges *ret, struct err *err);
