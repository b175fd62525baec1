// SPDX-License-Identifier: GPL-2.0-only
// The key of the rings of an instance, for policies without `seed`.
//
// It is drawn once and kept in /var/lib/weir/NAME/seed and, while the instance exists, in its map
// `meta`.
#pragma once

#include "common/hash.h"
#include "ctl/base/err.h"

// Reads the file, or draws *ret if there is no file (or no name); writes nothing. 0 or -errno with
// err set.
int seed_read(const char *instance, struct hash_key *ret, struct err *err);
// Writes the file if it does not exist.
int seed_keep(const char *instance, const struct hash_key *key, struct err *err);
