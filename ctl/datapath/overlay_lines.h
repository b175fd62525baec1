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
#include "ctl/datapath/instance.h"

struct overlay_lines;

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

// An entry that changes; until 0: it ends.
struct lines_change {
	struct lines_key key;
	uint64_t until;
};

// Makes room for `more` entries beside the `present` ones, with expiries for those changes that
// have one, while packets are looked up. 0 or -errno with err set.
int lines_reserve(struct overlay_lines *l, size_t present, size_t more, struct err *err);
// Stages the changes for the epoch; each differs from the present entry. Makes more room where
// addresses collide.
int lines_stage(struct overlay_lines *l, const struct lines_change *changes, size_t n,
		uint64_t epoch, struct err *err);
// Gives what was staged its final form, after the commit. Cannot fail.
void lines_settle(struct overlay_lines *l, const struct lines_change *changes, size_t n);

// After a killed command: everything that is staged, committed or not, gets its final form, and
// what was being moved is moved. Counts the entries by kind. 0 or -errno with err set.
int lines_recover(struct overlay_lines *l, uint32_t ret_n[OVERLAY_KINDS], struct err *err);
