// SPDX-License-Identifier: GPL-2.0-only
// The shards of the overlay's hosts: arrays in the kernel that are mapped into memory, and their
// slots.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/overlay.h"
#include "ctl/datapath/instance.h"

// A slot, by number in its shard; see common/overlay.h.
struct spot {
	uint32_t shard, slot;
};

struct shard {
	char *at;        // lines, big counters, small ones; NULL: not mapped
	uint64_t *times; // NULL: not mapped, or none
	bool timed;      // it has times
};

struct shards {
	const struct instance *instance;
	bool six;
	uint32_t cpus; // those that have small counters
	struct shard shard[OVERLAY_SHARDS];
};

struct shards *shards_new(const struct instance *i, bool six);
void shards_free(struct shards *s);

// How many there are.
uint32_t shards_n(const struct shards *s);
uint32_t shard_slots(const struct shards *s);  // numbers of slots in a shard
uint32_t line_slots(const struct shards *s);   // slots in a line
uint32_t line_numbers(const struct shards *s); // numbers from line to line

// Maps a shard. 0 or -errno with err set.
int shard_map(struct shards *s, uint32_t n, struct err *err);
void shard_unmap(struct shards *s, uint32_t n);
// Makes shards from..to-1 and publishes them; source: the shard whose expiries they will get, none
// if it has none.
int shards_make(struct shards *s, uint32_t from, uint32_t to, struct err *err);
// Makes expiries for the shards that `needs` names and that have none.
int shards_make_times(struct shards *s, const bool *needs, struct err *err);

// Access to mapped shards. A meta has no OVERLAY_META_MORE.
uint32_t slot_meta(const struct shards *s, struct spot at);
void slot_set_meta(struct shards *s, struct spot at, uint32_t meta);
void slot_key(const struct shards *s, struct spot at, uint64_t *ret_high, uint64_t *ret_low);
// The slot of a line that has the address and all of these kinds; UINT32_MAX: none.
uint32_t line_find(const struct shards *s, uint32_t shard, uint32_t line, uint64_t high,
		   uint64_t low, uint32_t kinds);
// Fills a free slot: the meta last, so that the entry appears at once.
void slot_put(struct shards *s, struct spot at, uint64_t high, uint64_t low, uint32_t meta);
bool line_more(const struct shards *s, uint32_t shard, uint32_t line);
void line_set_more(struct shards *s, uint32_t shard, uint32_t line, bool more);
uint64_t *slot_word(const struct shards *s, struct spot at, uint32_t region);
uint64_t *slot_expiry(const struct shards *s, struct spot at, bool side);

// The sum of a slot's counters; *ret_heard: the time of the newest small counter in its unit, 0:
// none. now: the same unit.
struct overlay_hits slot_hits(const struct shards *s, struct spot at, uint64_t now,
			      uint64_t *ret_heard);
// Adds the counters of a slot that no packet uses to another slot, which packets may use, and
// clears them.
void slot_fold(struct shards *s, struct spot from, struct spot to);
// The same without another one.
void slot_clear(struct shards *s, struct spot at);
// A slot that no packet uses yet was heard when the other one was.
void slot_hear(struct shards *s, struct spot at, struct spot from);
