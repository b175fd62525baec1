// SPDX-License-Identifier: GPL-2.0-only
// Lists of entries that follow a feed: `weir block --url URL --sync NAME`.
//
// /var/lib/weir/NAME/feeds/KEY.list says which list follows which URL, and how its entries are made: JSON and a sum
// (base/sum.h). KEY is a hash of verb, origin and name.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/vec.h"

struct feed_list {
	char *list, *origin, *note; // "" where not given
	char *url, *ca;             // ca NULL: not given
	bool allow, to, both, wide;
	uint64_t every_ms, for_ms; // for_ms 0: permanent
};

struct feed_lists {
	struct feed_list *at;
	size_t n, cap;
};

void feed_list_free(struct feed_list *l);
void feed_lists_free(struct feed_lists *lists);
#define CLEANUP_FEED_LISTS CLEANUP(feed_lists_free)

// What the copy of its text is called (feeds.h). The caller frees it.
char *feed_list_key(const struct feed_list *l);
int feed_list_save(const char *instance, const struct feed_list *l, struct err *err);
// All of an instance; damaged files are left out.
void feed_lists_read(const char *instance, struct feed_lists *ret);
// The list, or (list NULL) all of the origin, or (origin NULL) all follow no feed from now on.
void feed_lists_forget(const char *instance, bool allow, const char *origin, const char *list);
