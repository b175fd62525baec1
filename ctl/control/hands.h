// SPDX-License-Identifier: GPL-2.0-only
// What the balancer keeps on disk: the seed of its rings, and what was set by hand.
#pragma once

#include <stddef.h>

#include "ctl/base/err.h"
#include "ctl/base/vec.h"
#include "ctl/table/balancer.h"

// Of an instance without `seed` in its policy: drawn once, /var/lib/weir/NAME/seed. *ret is drawn where there
// is no file; nothing is written. 0 or -errno with err set.
int seed_read(const char *instance, struct hash_key *ret, struct err *err);
// Writes it where it is not yet.
int seed_keep(const char *instance, const struct hash_key *key, struct err *err);

struct hands {
	struct balancer_hand *at;
	size_t n, cap;
};

// /var/lib/weir/NAME/drains; no file: none. 0 or -errno with err set.
int hands_read(const char *instance, struct hands *ret, struct err *err);
// Replaces the file. The caller holds the lock.
int hands_write(const char *instance, const struct hands *hands, struct err *err);
// Those of a running balancer.
void hands_of(const struct balancer *b, struct hands *ret);
