// SPDX-License-Identifier: GPL-2.0-only
// The environment of a policy: names, own addresses and files, and a record of the answers.
//
// From the record the same policy can be resolved again, without a name server.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/json.h"
#include "ctl/base/sum.h"
#include "ctl/base/vec.h"
#include "ctl/control/feeds.h"
#include "ctl/control/guard.h"
#include "ctl/net/dns.h"
#include "ctl/policy/resolve.h"

struct environment_file {
	char *path; // as the reader was asked
	char *text; // NULL: not read yet (environment_load_known)
	size_t len;
	sum_text sum; // in a record; "": not known
};

// An address that is in no answer any more, and stays until then (wall clock).
struct environment_leaving {
	struct addr addr;
	uint64_t until_s;
};

struct environment_addrs {
	struct addr *at;
	size_t n, cap;
};

struct environment_name {
	char *name;
	enum policy_use use;
	struct addr *addrs; // addresses of the last good answer, sorted
	size_t n;
	VEC(struct environment_leaving) leaving; // still matched
	struct environment_addrs
		left_out; // excluded from both, sorted: drop and reject rules do not have these
	// wall clock: since when its answers leave such rules nothing; 0: they do not
	uint64_t refused_s;
	uint32_t ttl_s;
	uint64_t answered_s; // wall clock: time of the answer, 0: not known
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

// Everything that was read and answered while a policy was loaded.
struct environment {
	struct policy_env env; // to hand to policy_load; points into this struct: do not copy
	struct source_reader reader;
	struct dns_options dns;
	VEC(struct environment_file) files;
	VEC(struct environment_name) names;
	VEC(struct environment_geo) geos;
	struct environment_addrs own; // not on disk: each time they are what they are then
	VEC(struct environment_fetched) fetched;
	// whose copies of feeds are used; NULL: none. To be set before env is used
	const char *instance;
	bool offline; // feeds are not fetched: the copies are used
	bool force;   // a feed may shrink
	bool again;   // files come from `last`, which is the active policy; feeds do not
	bool overlap; // addresses of `last` that are in no answer any more stay for a grace time
	const char *staged; // the file that has the text of the policy file; NULL: that file itself
	const char *staged_as;          // path of the policy file
	struct text *standard;          // what standard input had; NULL: it is not kept
	const struct environment *last; // last good answers (names that fail now), may be NULL
	bool replay;                    // answers come from the record only
	// folder of the record whose files are read on request; NULL: all are read
	char *folder;
	struct known *known;           // what its list files have, NULL: they are to be read
	const struct session *session; // whose peer is protected; NULL: none
	bool must_guard;      // without knowing what is protected no name is used in drop rules
	bool guard_again;     // replay: what is protected now counts, not what the record has
	bool guard_collected; // as far as possible
	struct guard guard;
};

// The live environment. last: a loaded record whose answers are used for names that fail; may be
// NULL.
void environment_live(struct environment *w, const struct dns_options *dns,
		      const struct environment *last);
// A record to be filled with environment_load; then env answers only from it.
void environment_replay(struct environment *w);
void environment_free(struct environment *w);
// The policy is active: keeps the new texts of its feeds. 0 or -errno with err set.
int environment_keep_feeds(const struct environment *w, struct err *err);

const struct environment_file *environment_find_file(const struct environment *w, const char *path);
// environment_names.c
#define NAME_GRACE_S 60   // at least; twice the TTL if that is more
#define NAME_TTL_S   3600 // maximum TTL that counts for the grace time
#define NAME_LEAVING_MAX \
	1024 // addresses of a name in it: a zone of its own must not fill the tables
struct environment_followed {
	size_t added, leaving, back, released;
	size_t decided; // left out of drop and reject rules now, or no more
};
struct environment_name *environment_find_name(const struct environment *w, const char *name);
struct environment_name environment_copy_name(const struct environment_name *name);
void environment_free_name(struct environment_name *name);
// False: a name of a lax list that has had no answer yet.
bool environment_has_addresses(const struct environment_name *name);
// All addresses of a name that are matched, those that leave too; the caller frees them.
struct addr *environment_name_addresses(const struct environment_name *name, size_t *ret_n);
// Takes a good answer: addresses that it has no more leave. A family that it knows nothing about
// stays as it is.
void environment_follow(struct environment_name *name, const struct dns_answer *answer,
			uint64_t now_s, struct environment_followed *ret);
// Seconds until the first address of the name is to be released; UINT64_MAX: none leaves.
uint64_t environment_name_ends(const struct environment_name *name, uint64_t now_s);
// Forgets the addresses whose grace time has ended.
void environment_release(struct environment *w, uint64_t now_s);
// Does a name have the same addresses in both? Those that leave do not count.
bool environment_same_answer(const struct environment_name *a, const struct environment_name *b);
// Are they also used for the same, with the same ones left out?
bool environment_same_name(const struct environment_name *a, const struct environment_name *b);
// What drop and reject rules must not get by a name: collected once. 0, or -errno with err set if
// it must be known.
int environment_guard(struct environment *w, const struct guard **ret, struct err *err);
// Does the answer count as none, because no address can be used? g: for POLICY_DROPPED.
bool environment_refuses(enum policy_use use, const struct dns_answer *answer,
			 const struct guard *g);
// Decides which addresses drop and reject rules leave out. Returns for how many that is another
// decision than before.
size_t environment_protect(struct environment_name *name, const struct guard *g);
bool environment_leaves_out(const struct environment_name *name, const struct addr *a);
// With the reasons, if g is not NULL.
void environment_give_left_out(const struct environment_name *name, const struct guard *g,
			       struct policy_answer *answer);
// environment_feeds.c: fetches lists, and returns their texts or their copies.
void environment_fetch(void *environment, const struct policy_url *urls, size_t n);
int environment_read_fetched(struct environment *w, const char *url, char **ret_text,
			     size_t *ret_len, struct err *err);
int environment_read_copy(struct environment *w, const char *url, char **ret_text, size_t *ret_len);
// Is it what the policy's sha256 asks for, where it has one?
bool environment_fits(const struct environment *w, const char *url, const char *text, size_t len);
void environment_free_fetched(struct environment *w);
// Whether the same files were read and the same answers given. The content of the policy file
// counts, not its path: path_a in a corresponds to path_b in b, and so do the files beside it.
bool environment_same(const struct environment *a, const char *path_a, const struct environment *b,
		      const char *path_b);
#define CLEANUP_ENVIRONMENT CLEANUP(environment_free)

// The record in a folder: numbered files and an index. environment_save makes the folder (absent
// before) and fsyncs what is in it. meta: further keys for the index, taken over; environment_load
// hands them back.
int environment_save(const struct environment *w, const char *folder, struct json *meta,
		     struct err *err);
int environment_load(struct environment *w, const char *folder, struct json **ret_meta,
		     struct err *err);
// The same for commands that only ask: where the addresses of lists are known (control/known), a
// file is read when it is asked for. whole: as of known_read.
int environment_load_known(struct environment *w, const char *folder, bool whole,
			   struct json **ret_meta, struct err *err);
int environment_read_late(const struct environment *w, struct environment_file *file,
			  struct err *err);
// Replaces the names in a record, atomically; `number` goes into the index as "answers".
int environment_save_names(const struct environment *w, const char *folder, uint64_t number,
			   struct err *err);
// The index and its names, without the files.
int environment_load_names(struct environment *w, const char *folder, struct json **ret_meta,
			   struct err *err);
// Only the index. -EBADMSG, like environment_load, if a file differs from the written one.
int environment_load_index(const char *folder, struct json **ret, struct err *err);
