// SPDX-License-Identifier: GPL-2.0-only
// What a policy asks of the world: names, own addresses, files; and a record of the answers, so that the
// same policy can be resolved again from its record alone.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/json.h"
#include "ctl/base/vec.h"
#include "ctl/net/dns.h"
#include "ctl/policy/resolve.h"

struct world_file {
	char *path; // as the reader was asked
	char *text;
	size_t len;
};

struct world_name {
	char *name;
	struct addr *addrs;
	size_t n;
	uint32_t ttl_s;
};

// Addresses of this host that the policy asked for by a word.
struct world_addresses {
	enum policy_addresses which;
	struct addr *addrs;
	size_t n;
};

// Everything that was read and answered while a policy was loaded.
struct world {
	struct policy_env env; // to hand to policy_load; points into this struct: do not copy
	struct source_reader reader;
	struct dns_options dns;
	VEC(struct world_file) files;
	VEC(struct world_name) names;
	VEC(struct world_addresses) addresses; // not on disk: each time they are what they are then
	const struct world *last; // last good answers (names that fail now), may be NULL
	bool replay;              // answers come from the record only
};

// The living world. last: a loaded record whose answers stand in for names that fail; may be NULL.
void world_live(struct world *w, const struct dns_options *dns, const struct world *last);
// A record to be filled with world_load; then env answers from it alone.
void world_replay(struct world *w);
void world_free(struct world *w);

const struct world_file *world_find_file(const struct world *w, const char *path);
// Does a name have the same addresses in both?
bool world_same_answer(const struct world_name *a, const struct world_name *b);
// Were the same files read and the same answers given? What stands in the policy file itself counts, not where
// it lies: path_a in a is path_b in b.
bool world_same(const struct world *a, const char *path_a, const struct world *b,
		const char *path_b);
#define CLEANUP_WORLD CLEANUP(world_free)

// The record in a folder: numbered files and an index. world_save makes the folder (absent before) and
// fsyncs what is in it. meta: further keys for the index, taken over; world_load hands them back.
int world_save(const struct world *w, const char *folder, struct json *meta, struct err *err);
int world_load(struct world *w, const char *folder, struct json **ret_meta, struct err *err);
// The index alone. -EBADMSG, as world_load, when a file is not as it was written.
int world_load_index(const char *folder, struct json **ret, struct err *err);
