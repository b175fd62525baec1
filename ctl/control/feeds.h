// SPDX-License-Identifier: GPL-2.0-only
// Feeds: lists that are fetched, and their last good copies.
//
// /var/lib/weir/NAME/feeds/KEY has the copy of one URL (state.h): URL, ETag, time of modification,
// when it was fetched, entries, and the text. KEY is a hash of the URL.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/net/fetch.h"
#include "ctl/policy/env.h"

struct feed {
	char *url;
	char *etag, *modified; // NULL: the server sent none
	uint64_t fetched_s;    // wall clock: when this text was fetched
	uint64_t entries;      // good lines
	char *text;
	size_t len;
};

void feed_free(struct feed *f);
#define CLEANUP_FEED CLEANUP(feed_free)

// The copy of a URL. -ENOENT: none; -EBADMSG: a damaged one. err may be NULL.
int feed_load(const char *instance, const char *url, struct feed *ret, struct err *err);
// When the file was written, in nanoseconds; 0: no file. Another copy has another time.
uint64_t feed_time(const char *instance, const char *url);
int feed_save(const char *instance, const struct feed *f, struct err *err);
void feed_forget(const char *instance, const char *url);
// The copies whose name begins so; NULL: those of the policy, whose name is a URL, and damaged
// ones. The folder is removed with its last file.
void feeds_forget(const char *instance, const char *start);
// Where a text waits until it is known to be good; the caller frees it.
char *feed_path(const char *instance, const char *url, const char *suffix);

// The URL without what may be secret: the user, and all from '?' or '#' on. The caller frees it.
char *feed_public_url(const char *url);

// The request for a URL of which there is perhaps a copy.
struct fetch_request feed_request(const struct policy_url *url, const struct feed *copy,
				  const struct dns_options *dns);
// Does a new text satisfy the conditions of `url`, and is it more than half of the copy (`force`
// ignores that)? 0, or -errno with err set. Invalid lines are ignored.
int feed_check(const struct policy_url *url, const char *text, size_t len, const struct feed *copy,
	       bool force, struct err *err);
// The same, and that its lines are good. *ret_entries: how many are.
int feed_check_lines(const struct policy_url *url, const char *text, size_t len,
		     uint64_t *ret_entries, struct err *err);
// The feed that a new text makes: takes the text over.
struct feed feed_of(const char *url, struct fetch_result *r, uint64_t entries);
