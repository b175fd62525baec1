// SPDX-License-Identifier: GPL-2.0-only
// The hosts of one family: their lines, counters and expiries in memory, mapped as far as they are
// used.
//
// common/overlay.h has the layout. A counter that a packet may still add to is never cleared: a
// slot that was active and is no longer needed becomes DEAD, or MOVED if its entry is now in
// another spot. Both are free again, with zeros for counters, only after an RCU grace period: a
// program that has found the slot then has counted and ended.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/overlay.h"
#include "ctl/base/addr.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/overlay_shards.h"

struct overlay_lines {
	struct shards *shards;
	const struct instance *instance;
	bool six;
	VEC(struct spot) moved; // MOVED: to be added to where the entry is now
};

// Nothing is mapped yet. family: 4 or 6.
struct overlay_lines *lines_open(const struct instance *i, uint8_t family);
void lines_free(struct overlay_lines *l);
#define CLEANUP_LINES CLEANUP(lines_cleanup)
void lines_cleanup(struct overlay_lines **l);

// An address as the datapath has it, and a kind.
struct lines_key {
	uint64_t high, low;
	uint8_t kind;
};
struct lines_key lines_key(const struct prefix *host, uint8_t kind);
struct prefix lines_prefix(const struct overlay_lines *l, const struct lines_key *key);

// An entry as committed.
struct lines_entry {
	struct lines_key key;
	uint64_t until; // jiffies64 or OVERLAY_FOREVER
	struct overlay_hits hits;
	uint64_t seen; // jiffies64, or 0
};

// 0, -ENOENT (without err) if there is no such entry, or -errno with err set. now: jiffies64.
int lines_read(struct overlay_lines *l, const struct lines_key *key, uint64_t now,
	       struct lines_entry *ret, struct err *err);
// For reading many entries: the shard of an address, and an end of the mapping of one, which is 2
// MB and more.
uint32_t lines_shard(const struct overlay_lines *l, const struct lines_key *key);
void lines_unmap(struct overlay_lines *l, uint32_t shard);
// Only its end; *ret 0: no such entry.
int lines_until(struct overlay_lines *l, const struct lines_key *key, uint64_t *ret,
		struct err *err);
// All entries, in any order. visit returns 0, or a code at which the reading ends.
int lines_each(struct overlay_lines *l, uint64_t now,
	       int (*visit)(void *ctx, const struct overlay_lines *l,
			    const struct lines_entry *entry),
	       void *ctx, struct err *err);

// ---- for overlay_hosts.c ------------------------------------------------------------------------

#define NO_SLOT UINT32_MAX

// A mapped shard.
bool lines_find_mapped(const struct overlay_lines *l, const struct lines_key *key,
		       struct spot *ret);
// 0, -ENOENT without err, or -errno with err set.
int lines_find(struct overlay_lines *l, const struct lines_key *key, struct spot *ret,
	       struct err *err);
uint64_t lines_hash(const struct overlay_lines *l, uint64_t high, uint64_t low);
uint8_t lines_kind(uint32_t meta);
uint32_t lines_shard_for(uint64_t hash, uint32_t shards);
struct spot lines_spot(const struct overlay_lines *l, uint32_t shard, uint32_t line, uint32_t n);
// The committed end of the entry; 0: it is not active.
uint64_t lines_until_of(const struct overlay_lines *l, struct spot at, uint32_t meta,
			bool committed);
uint8_t lines_was_kind(uint32_t meta);
