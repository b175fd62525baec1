// SPDX-License-Identifier: GPL-2.0-only
// Lists of entries that follow a feed: `weir block --url URL --sync NAME`.
//
// /var/lib/weir/NAME/feeds/KEY.list has the list, its URL, and the options of its entries
// (state.h). KEY is a hash of verb, origin and name.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/vec.h"

struct feed_list {
	char *list, *origin, *note; // "" where not given
	char *url, *ca;             // ca NULL: not given
	bool allow, to, both, wide, mask;
	uint64_t every_ms, for_ms; // for_ms 0: permanent
};

// A file that could not be read.
struct feed_list_unread {
	char *path;
	int code; // of state_read
	struct err why;
};

struct feed_lists {
	struct feed_list *at;
	size_t n, cap;
	VEC(struct feed_list_unread) unread;
};

void feed_list_free(struct feed_list *l);
void feed_lists_free(struct feed_lists *lists);
#define CLEANUP_FEED_LISTS CLEANUP(feed_lists_free)

// The command that makes a text the content of the list, as words without NULL: at most
// FEED_LIST_WORDS, whose number is returned. They point to the list, to `path`, the file with the
// text, and to `time`.
#define FEED_LIST_WORDS 16
typedef char feed_list_time[32];
size_t feed_list_words(const struct feed_list *l, const char *path, feed_list_time time,
		       const char **ret);
// How many entries a text gives the list, as the command counts them. *ret_plain: the same text
// again changes nothing, since the entries have neither ends nor names.
uint64_t feed_list_entries(const struct feed_list *l, const char *text, size_t len,
			   bool *ret_plain);
// The name of the copy of its text (feeds.h). The caller frees it.
char *feed_list_key(const struct feed_list *l);
int feed_list_save(const char *instance, const struct feed_list *l, struct err *err);
// The last successful fetch by a command, changed or not: seconds since 1970; 0: not known. Fetches
// by the agent count if the text has changed.
uint64_t feed_list_good_s(const char *instance, const struct feed_list *l);
// All of an instance.
void feed_lists_read(const char *instance, struct feed_lists *ret);
// The list, or (list NULL) all of the origin, or (origin NULL) all follow no feed from now on. A
// file that cannot be read is removed with the list of that name, or with all.
void feed_lists_forget(const char *instance, bool allow, const char *origin, const char *list);
