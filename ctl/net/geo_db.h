// SPDX-License-Identifier: GPL-2.0-only
// Address ranges of countries and autonomous systems, from MaxMind databases (.mmdb).
//
// A database is a tree over the bits of addresses, whose leaves are records
// (https://maxmind.github.io/MaxMind-DB/). It is found by what its records have, not by its name.
#pragma once

#include "ctl/base/geo.h"
#include "ctl/base/vec.h"
#include "ctl/net/geo_ranges.h"

// Where databases are, for the whole process: files and folders with commas between them. NULL:
// /var/lib/GeoIP and /usr/share/GeoIP. Of several databases that fit, the first one by this order,
// and in a folder by name, is used.
void geo_db_use(const char *paths);
const char *geo_db_used(void); // what it was called with
struct geo_paths {
	VEC(char *) paths;
};
// Paths and patterns to watch: of the files that geo_find opens, and of those that a folder may
// get.
void geo_db_patterns(struct geo_paths *ret);
void geo_paths_free(struct geo_paths *paths);

// Fills ret[i] for wanted[i]; each database is read once. 0, or -errno with err set and ret empty:
// no database has such records, or it is damaged.
int geo_find(const struct geo *wanted, size_t n, struct geo_ranges *ret, struct err *err);

// The databases for addresses one by one.
struct geo_look;
// Opens the database of this kind. 0 or -errno with err set, as geo_find().
int geo_look_open(enum geo_kind kind, struct geo_look **ret, struct err *err);
// False: the database does not know the address.
bool geo_look_find(const struct geo_look *look, const struct addr *a, struct geo *ret);
void geo_look_close(struct geo_look *look); // NULL is allowed
void geo_ranges_free(struct geo_ranges *ranges, size_t n);
