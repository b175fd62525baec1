// SPDX-License-Identifier: GPL-2.0-only
// The environment of a policy: names, own addresses and files, and a record of the answers.
//
// From the record the same policy can be resolved again, without a name server.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/json.h"
#include "ctl/base/vec.h"
#include "ctl/control/feeds.h"
#include "ctl/net/dns.h"
#include "ctl/policy/resolve.h"

struct environment_file {
	char *path; // as the reader was asked
	char *text;
	size_t len;
};

struct environment_name {
	char *name;
	struct addr *addrs;
	size_t n;
	uint32_t ttl_s;
};

// A country or an autonomous system: its prefixes, which a database had.
struct environment_geo {
	struct geo geo;
	struct prefix *prefixes;
	size_t n;
};

// A list that was fetched.
struct environment_fetched {
	struct policy_url url; // its strings are owned
	struct fetch_result result;
	struct feed copy; // the last good one before it
	bool refused;     // by the policy: its last good content is used
};

// Addresses of this host that the policy asked for by a word.
struct environment_addresses {
	enum policy_addresses which;
	struct addr *addrs;
	size_t n;
};

// Everything that was read and answered while a policy was loaded.
struct environment {
	struct policy_env env; // to hand to policy_load; points into this struct: do not copy
	struct source_reader reader;
	struct dns_options dns;
	VEC(struct environment_file) files;
	VEC(struct environment_name) names;
	VEC(struct environment_geo) geos;
	VEC(struct environment_addresses)
	addresses; // not on disk: each time they are what they are then
	VEC(struct environment_fetched) fetched;
	const char *
		instance; // whose copies of feeds are used; NULL: none. To be set before env is used
	bool offline;     // feeds are not fetched: the copies are used
	bool force;       // a feed may shrink
	const struct environment *last; // last good answers (names that fail now), may be NULL
	bool replay;                    // answers come from the record only
};

// The live environment. last: a loaded record whose answers are used for names that fail; may be NULL.
void environment_live(struct environment *w, const struct dns_options *dns,
		      const struct environment *last);
// A record to be filled with environment_load; then env answers from it alone.
void environment_replay(struct environment *w);
void environment_free(struct environment *w);
// The policy is in effect: keeps the new texts of its feeds. 0 or -errno with err set.
int environment_keep_feeds(const struct environment *w, struct err *err);

const struct environment_file *environment_find_file(const struct environment *w, const char *path);
// Does a name have the same addresses in both?
bool environment_same_answer(const struct environment_name *a, const struct environment_name *b);
// environment_feeds.c: fetches lists, and gives their texts or the copies of them.
void environment_fetch(void *environment, const struct policy_url *urls, size_t n);
int environment_read_fetched(struct environment *w, const char *url, char **ret_text,
			     size_t *ret_len, struct err *err);
int environment_read_copy(struct environment *w, const char *url, char **ret_text, size_t *ret_len);
// Is it what the policy's sha256 asks for, where it has one?
bool environment_fits(const struct environment *w, const char *url, const char *text, size_t len);
void environment_free_fetched(struct environment *w);
// Whether the same files were read and the same answers given. The content of the policy file counts, not its
// path: path_a in a corresponds to path_b in b.
bool environment_same(const struct environment *a, const char *path_a, const struct environment *b,
		      const char *path_b);
#define CLEANUP_ENVIRONMENT CLEANUP(environment_free)

// The record in a folder: numbered files and an index. environment_save makes the folder (absent before) and
// fsyncs what is in it. meta: further keys for the index, taken over; environment_load hands them back.
int environment_save(const struct environment *w, const char *folder, struct json *meta,
		     struct err *err);
int environment_load(struct environment *w, const char *folder, struct json **ret_meta,
		     struct err *err);
// The index alone. -EBADMSG, as environment_load, when a file is not as it was written.
int environment_load_index(const char *folder, struct json **ret, struct err *err);
