// SPDX-License-Identifier: GPL-2.0-only
// Places, moves, stages and settles the hosts of the overlay.
#include "ctl/datapath/overlay_hosts.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/maps.h"

// Percentage of slots in use at which the shards are doubled. Most addresses are then in their
// first bucket, and one displacement makes room for the others.
#define FULL4 75
#define FULL6 68
#define DEPTH 3 // so many displacements in a row, each of which may be another round

// ---- moving -------------------------------------------------------------------------------------

// From the first line of the entry to a free slot of its second, of which a packet finds the first
// one: leave_moved() ends that.
static void move(struct overlay_lines *l, struct spot from, struct spot to)
{
	uint32_t meta = slot_meta(l->shards, from);
	uint64_t high, low;

	slot_key(l->shards, from, &high, &low);
	if (meta & OVERLAY_META_TIMED)
		for (int side = 0; side < 2; side++)
			*slot_expiry(l->shards, to, side) = *slot_expiry(l->shards, from, side);
	slot_hear(l->shards, to, from);
	line_set_more(l->shards, to.shard, overlay_first(lines_hash(l, high, low)), true);
	slot_put(l->shards, to, high, low, meta);
	slot_set_meta(l->shards, from, meta | OVERLAY_META_MOVED);
	vec_push(&l->moved, from);
}

static void mark_moved(struct overlay_lines *l, struct spot at, uint8_t kind)
{
	slot_set_meta(l->shards, at, OVERLAY_META_MOVED | (uint32_t)kind << OVERLAY_META_WAS);
}

// A packet reads the first line, then the second. Where a machine reorders these reads, it could
// miss an entry that moves between them. A grace period orders them: a packet that reads anything
// written after it reads all that was written before it (Linux:
// tools/memory-model/Documentation/explanation.txt, "RCU relations").
static int leave_moved(struct overlay_lines *l, struct err *err)
{
	int code = l->moved.n ? grace_wait(err) : 0;

	if (code)
		return code;
	vec_each (&l->moved, from)
		mark_moved(l, *from, lines_kind(slot_meta(l->shards, *from)));
	return 0;
}

static uint32_t free_in(const struct overlay_lines *l, uint32_t shard, uint32_t line)
{
	for (uint32_t n = 0; n < line_slots(l->shards); n++) {
		struct spot at = lines_spot(l, shard, line, n);

		if (!slot_meta(l->shards, at))
			return at.slot;
	}
	return NO_SLOT;
}

// The second line of an entry that is in its first; the same line if there is no such entry in the
// slot.
static uint32_t way_out(const struct overlay_lines *l, struct spot at)
{
	uint32_t line = at.slot / line_numbers(l->shards);
	uint64_t high, low, hash;

	if (!(slot_meta(l->shards, at) & OVERLAY_META_KINDS) ||
	    slot_meta(l->shards, at) & OVERLAY_META_MOVED)
		return line;
	slot_key(l->shards, at, &high, &low);
	hash = lines_hash(l, high, low);
	return overlay_first(hash) == line ? overlay_second(hash) : line;
}

// Moves one entry out of a line, or out of a line into which one could then move. The slot is free
// in the next round.
static bool relieve(struct overlay_lines *l, uint32_t shard, uint32_t line, int depth)
{
	for (uint32_t n = 0; n < line_slots(l->shards); n++) {
		struct spot from = lines_spot(l, shard, line, n);
		uint32_t other = way_out(l, from), to;

		if (other == line || (to = free_in(l, shard, other)) == NO_SLOT)
			continue;
		move(l, from, (struct spot){shard, to});
		return true;
	}
	for (uint32_t n = 0; depth > 1 && n < line_slots(l->shards); n++) {
		uint32_t other = way_out(l, lines_spot(l, shard, line, n));

		if (other != line && relieve(l, shard, other, depth - 1))
			return true;
	}
	return false;
}

// Adds what was counted at former places, after a grace period.
static void fold_moved(struct overlay_lines *l)
{
	vec_each (&l->moved, from) {
		struct lines_key key = {.kind = lines_was_kind(slot_meta(l->shards, *from))};
		struct spot to;

		slot_key(l->shards, *from, &key.high, &key.low);
		if (lines_find_mapped(l, &key, &to))
			slot_fold(l->shards, *from, to);
		slot_clear(l->shards, *from);
		slot_set_meta(l->shards, *from, 0);
	}
	l->moved.n = 0;
}

static bool has_dead(const struct overlay_lines *l, uint32_t shard, uint32_t line)
{
	for (uint32_t n = 0; n < line_slots(l->shards); n++)
		if (slot_meta(l->shards, lines_spot(l, shard, line, n)) & OVERLAY_META_DEAD)
			return true;
	return false;
}

// After a grace period.
static void bury_dead(struct overlay_lines *l, uint32_t shard, uint32_t line)
{
	for (uint32_t n = 0; n < line_slots(l->shards); n++) {
		struct spot at = lines_spot(l, shard, line, n);

		if (!(slot_meta(l->shards, at) & OVERLAY_META_DEAD))
			continue;
		slot_clear(l->shards, at);
		slot_set_meta(l->shards, at, 0);
	}
}

// ---- growing ------------------------------------------------------------------------------------

static void copy_slot(struct overlay_lines *l, struct spot from, struct spot to)
{
	uint32_t meta = slot_meta(l->shards, from), line = from.slot / line_numbers(l->shards);
	uint64_t high, low, hash;

	slot_key(l->shards, from, &high, &low);
	hash = lines_hash(l, high, low);
	if (meta & OVERLAY_META_TIMED)
		for (int side = 0; side < 2; side++)
			*slot_expiry(l->shards, to, side) = *slot_expiry(l->shards, from, side);
	slot_hear(l->shards, to, from);
	if (line == overlay_second(hash))
		line_set_more(l->shards, to.shard, overlay_first(hash), true);
	slot_put(l->shards, to, high, low, meta);
}

// Calls visit for each entry of a shard that belongs into another one of `to` shards.
static void each_stranger(struct overlay_lines *l, uint32_t shard, uint32_t to,
			  void (*visit)(struct overlay_lines *l, struct spot from, struct spot to))
{
	for (uint32_t slot = 0; slot < shard_slots(l->shards); slot++) {
		struct spot at = {shard, slot};
		uint64_t high, low;
		uint32_t target;

		if (slot % line_numbers(l->shards) >= line_slots(l->shards) ||
		    !(slot_meta(l->shards, at) & OVERLAY_META_KINDS))
			continue;
		slot_key(l->shards, at, &high, &low);
		target = lines_shard_for(lines_hash(l, high, low), to);
		if (target != shard)
			visit(l, at, (struct spot){target, slot});
	}
}

// Its counters follow; packets already use the counters of the new spot.
static void fold_slot(struct overlay_lines *l, struct spot from, struct spot to)
{
	slot_fold(l->shards, from, to);
	slot_set_meta(l->shards, from, 0);
}

// Which lines have addresses in their second one; all slots are in their shards, and no packet uses
// the dead.
static void tidy_shard(struct overlay_lines *l, uint32_t shard)
{
	CLEANUP_FREE bool *more = mem_zalloc(OVERLAY_LINES, sizeof(*more));

	for (uint32_t slot = 0; slot < shard_slots(l->shards); slot++) {
		struct spot at = {shard, slot};
		uint32_t line = slot / line_numbers(l->shards), meta;
		uint64_t high, low, hash;

		if (slot % line_numbers(l->shards) >= line_slots(l->shards))
			continue;
		meta = slot_meta(l->shards, at);
		if (meta & OVERLAY_META_DEAD) {
			slot_clear(l->shards, at);
			slot_set_meta(l->shards, at, 0);
		}
		if (!(meta & OVERLAY_META_KINDS))
			continue;
		slot_key(l->shards, at, &high, &low);
		hash = lines_hash(l, high, low);
		if (overlay_second(hash) == line)
			more[overlay_first(hash)] = true;
	}
	for (uint32_t line = 0; line < OVERLAY_LINES; line++)
		if (line_more(l->shards, shard, line) != more[line])
			line_set_more(l->shards, shard, line, more[line]);
}

static void set_shards(struct overlay_lines *l, uint32_t n)
{
	__atomic_store_n(&l->instance->knobs->shards[l->six], n, __ATOMIC_SEQ_CST);
}

static void set_moving(const struct overlay_lines *l, uint32_t moving)
{
	__atomic_store_n(&l->instance->knobs->moving, moving, __ATOMIC_SEQ_CST);
}

static int no_room(const struct overlay_lines *l, struct err *err)
{
	err_refused(err, "there is no more room for IPv%d hosts", l->six ? 6 : 4);
	return -ENOSPC;
}

// The entries that belong into a new shard are copied to it, to the same slot; then one store lets
// packets look for them there; and after a grace period what was counted at the former places is
// added.
static int grow(struct overlay_lines *l, uint32_t to, struct err *err)
{
	uint32_t from = shards_n(l->shards);
	int code;

	if (to > OVERLAY_SHARDS)
		return no_room(l, err);
	for (uint32_t n = 0; n < from; n++)
		if ((code = shard_map(l->shards, n, err)))
			return code;
	if ((code = shards_make(l->shards, from, to, err)))
		return code;
	for (uint32_t n = 0; n < from; n++)
		each_stranger(l, n, to, copy_slot);
	set_moving(l, 1);
	set_shards(l, to);
	if (!from)
		return 0;
	if ((code = grace_wait(err)))
		return code;
	for (uint32_t n = 0; n < from; n++) {
		each_stranger(l, n, to, fold_slot);
		tidy_shard(l, n);
	}
	return 0;
}

static uint64_t capacity(const struct overlay_lines *l, uint32_t shards)
{
	uint64_t slots = (uint64_t)shards * OVERLAY_LINES * line_slots(l->shards);

	return slots * (l->six ? FULL6 : FULL4) / 100;
}

int lines_reserve(struct overlay_lines *l, size_t present, size_t more, struct err *err)
{
	uint32_t to = shards_n(l->shards) ? shards_n(l->shards) : 1;
	int code;

	if (!more)
		return 0;
	while (to < OVERLAY_SHARDS && capacity(l, to) < present + more)
		to *= 2;
	if (to == shards_n(l->shards))
		return 0;
	if ((code = grow(l, to, err)))
		return code;
	set_moving(l, 0);
	return 0;
}

// ---- staging ------------------------------------------------------------------------------------

static uint32_t staged(uint64_t epoch, uint32_t flags)
{
	return OVERLAY_META_STAGED | flags | (uint32_t)epoch << OVERLAY_META_EPOCH;
}

// The address may have an entry of the other verdict: packets then look for both.
static uint32_t pair(struct overlay_lines *l, const struct lines_key *key)
{
	struct lines_key other = *key;
	struct spot at;

	other.kind ^= 1;
	if (!lines_find_mapped(l, &other, &at))
		return 0;
	slot_set_meta(l->shards, at, slot_meta(l->shards, at) | OVERLAY_META_PAIRED);
	return OVERLAY_META_PAIRED;
}

static void put(struct overlay_lines *l, const struct lines_change *change, struct spot at,
		uint64_t epoch)
{
	uint32_t flags = 0;

	if (change->until != OVERLAY_FOREVER) {
		flags = OVERLAY_META_TIMED;
		*slot_expiry(l->shards, at, 0) = 0;
		*slot_expiry(l->shards, at, 1) = change->until;
	}
	slot_put(l->shards, at, change->key.high, change->key.low,
		 1u << change->key.kind | staged(epoch, flags) | pair(l, &change->key));
}

// A new entry, in a free slot of one of its lines. false: both are full.
static bool place(struct overlay_lines *l, const struct lines_change *change, uint64_t epoch)
{
	uint64_t hash = lines_hash(l, change->key.high, change->key.low);
	struct spot at = {.shard = lines_shard_for(hash, shards_n(l->shards))};

	if ((at.slot = free_in(l, at.shard, overlay_first(hash))) != NO_SLOT) {
		put(l, change, at, epoch);
		return true;
	}
	if ((at.slot = free_in(l, at.shard, overlay_second(hash))) == NO_SLOT)
		return false;
	line_set_more(l->shards, at.shard, overlay_first(hash), true);
	put(l, change, at, epoch);
	return true;
}

// An entry that is there.
static void restage(struct overlay_lines *l, const struct lines_change *change, struct spot at,
		    uint64_t epoch)
{
	uint32_t meta = slot_meta(l->shards, at);
	bool timed = meta & OVERLAY_META_TIMED, side = timed && meta & OVERLAY_META_SIDE;
	uint32_t kept = meta & (OVERLAY_META_KINDS | OVERLAY_META_PAIRED);

	if (!timed && !change->until) {
		slot_set_meta(l->shards, at, kept | staged(epoch, OVERLAY_META_ENDS));
		return;
	}
	if (!timed)
		*slot_expiry(l->shards, at, 0) = OVERLAY_FOREVER;
	*slot_expiry(l->shards, at, !side) = change->until;
	slot_set_meta(l->shards, at,
		      kept | staged(epoch, OVERLAY_META_TIMED | (side ? OVERLAY_META_SIDE : 0)));
}

struct hard_list {
	const struct lines_change **at;
	size_t n, cap;
};

static void hard_free(struct hard_list *hard)
{
	vec_free(hard);
}

static int stage_one(struct overlay_lines *l, const struct lines_change *change, uint64_t epoch,
		     struct hard_list *hard, struct err *err)
{
	struct spot at;
	int code = lines_find(l, &change->key, &at, err);

	if (code == -ENOENT) {
		if (!place(l, change, epoch))
			vec_push(hard, change);
		return 0;
	}
	if (code)
		return code;
	restage(l, change, at, epoch);
	return 0;
}

// Where the address of a change is, or would be.
struct lines_of {
	uint32_t shard, first, second;
};

static struct lines_of lines_of(const struct overlay_lines *l, const struct lines_change *change)
{
	uint64_t hash = lines_hash(l, change->key.high, change->key.low);

	return (struct lines_of){
		.shard = lines_shard_for(hash, shards_n(l->shards)),
		.first = overlay_first(hash),
		.second = overlay_second(hash),
	};
}

// Makes room in the lines of those that have found none: from the dead, else by moving an entry.
// *ret_gained: there is some. 0 or -errno with err set.
static int relieve_hard(struct overlay_lines *l, const struct hard_list *hard, bool *ret_gained,
			struct err *err)
{
	bool gained = false;
	int code;

	vec_each (hard, change) {
		struct lines_of of = lines_of(l, *change);

		gained |= has_dead(l, of.shard, of.first) || has_dead(l, of.shard, of.second) ||
			  relieve(l, of.shard, of.first, DEPTH) ||
			  relieve(l, of.shard, of.second, DEPTH);
	}
	*ret_gained = gained;
	if (!gained)
		return 0;
	if ((code = leave_moved(l, err)) || (code = grace_wait(err)))
		return code;
	fold_moved(l);
	vec_each (hard, change) {
		struct lines_of of = lines_of(l, *change);

		bury_dead(l, of.shard, of.first);
		bury_dead(l, of.shard, of.second);
	}
	return 0;
}

static int place_hard(struct overlay_lines *l, struct hard_list *hard, uint64_t epoch,
		      struct err *err)
{
	for (int round = 0; hard->n; round++) {
		bool gained = false;
		size_t left = 0;
		int code;

		set_moving(l, 1);
		if (round <= 2 * DEPTH && (code = relieve_hard(l, hard, &gained, err)))
			return code;
		if (!gained && (code = grow(l, shards_n(l->shards) * 2, err)))
			return code;
		for (size_t h = 0; h < hard->n; h++)
			if (!place(l, hard->at[h], epoch))
				hard->at[left++] = hard->at[h];
		hard->n = left;
	}
	return 0;
}

static int make_times(struct overlay_lines *l, const struct lines_change *changes, size_t n,
		      struct err *err)
{
	CLEANUP_FREE bool *needs = mem_zalloc(OVERLAY_SHARDS, sizeof(*needs));
	bool any = false;

	for (size_t c = 0; c < n; c++) {
		const struct lines_key *key = &changes[c].key;

		if (!changes[c].until || changes[c].until == OVERLAY_FOREVER)
			continue;
		needs[lines_shard_for(lines_hash(l, key->high, key->low), shards_n(l->shards))] =
			true;
		any = true;
	}
	return any ? shards_make_times(l->shards, needs, err) : 0;
}

int lines_stage(struct overlay_lines *l, const struct lines_change *changes, size_t n,
		uint64_t epoch, struct err *err)
{
	CLEANUP(hard_free) struct hard_list hard = {0};
	int code = make_times(l, changes, n, err);

	if (code)
		return code;
	for (size_t c = 0; c < n; c++)
		if ((code = stage_one(l, &changes[c], epoch, &hard, err)))
			return code;
	if (!hard.n)
		return 0;
	if ((code = place_hard(l, &hard, epoch, err)))
		return code;
	set_moving(l, 0);
	return 0;
}

// ---- settling -----------------------------------------------------------------------------------

// The other verdict's entry is now the only one of the address.
static void unpair(struct overlay_lines *l, struct lines_key key)
{
	struct spot at;

	key.kind ^= 1;
	if (lines_find_mapped(l, &key, &at))
		slot_set_meta(l->shards, at, slot_meta(l->shards, at) & ~OVERLAY_META_PAIRED);
}

static void settle(struct overlay_lines *l, struct spot at)
{
	uint32_t meta = slot_meta(l->shards, at);
	bool committed = overlay_committed(meta, l->instance->knobs->epoch);
	uint64_t until = lines_until_of(l, at, meta, committed);
	uint32_t kept = meta & (OVERLAY_META_KINDS | OVERLAY_META_PAIRED);

	if (!(meta & OVERLAY_META_STAGED))
		return;
	if (until == OVERLAY_FOREVER) {
		slot_set_meta(l->shards, at, kept);
	} else if (until) {
		bool side = !!(meta & OVERLAY_META_SIDE) ^ committed;

		slot_set_meta(l->shards, at,
			      kept | OVERLAY_META_TIMED | (side ? OVERLAY_META_SIDE : 0));
	} else {
		struct lines_key key = {.kind = lines_kind(meta)};

		slot_key(l->shards, at, &key.high, &key.low);
		if (meta & OVERLAY_META_PAIRED)
			unpair(l, key);
		slot_set_meta(l->shards, at, OVERLAY_META_DEAD);
	}
}

void lines_settle(struct overlay_lines *l, const struct lines_change *changes, size_t n)
{
	struct spot at;

	for (size_t c = 0; c < n; c++)
		if (lines_find_mapped(l, &changes[c].key, &at))
			settle(l, at);
}

// ---- recovery -----------------------------------------------------------------------------------

// One slot. Of an entry that is twice there, the copy that packets do not find first is the former
// one.
static void recover_slot(struct overlay_lines *l, struct spot at, uint32_t ret_n[OVERLAY_KINDS])
{
	uint32_t meta = slot_meta(l->shards, at);
	struct lines_key key = {.kind = lines_was_kind(meta)};
	struct spot first;

	if (!(meta & OVERLAY_META_KINDS)) {
		if (meta & OVERLAY_META_MOVED)
			vec_push(&l->moved, at);
		return;
	}
	key.kind = lines_kind(meta);
	slot_key(l->shards, at, &key.high, &key.low);
	if (lines_find_mapped(l, &key, &first) &&
	    (first.shard != at.shard || first.slot != at.slot)) {
		mark_moved(l, at, key.kind);
		vec_push(&l->moved, at);
		return;
	}
	if (meta & OVERLAY_META_MOVED)
		slot_set_meta(l->shards, at, meta & ~OVERLAY_META_MOVED);
	settle(l, at);
	if (slot_meta(l->shards, at) & OVERLAY_META_KINDS)
		ret_n[key.kind]++;
}

int lines_recover(struct overlay_lines *l, uint32_t ret_n[OVERLAY_KINDS], struct err *err)
{
	uint32_t shards = shards_n(l->shards);
	int code;

	memset(ret_n, 0, OVERLAY_KINDS * sizeof(*ret_n));
	if (!shards)
		return 0;
	for (uint32_t n = 0; n < shards; n++)
		if ((code = shard_map(l->shards, n, err)))
			return code;
	for (uint32_t n = 0; n < shards; n++)
		for (uint32_t slot = 0; slot < shard_slots(l->shards); slot++)
			if (slot % line_numbers(l->shards) < line_slots(l->shards))
				recover_slot(l, (struct spot){n, slot}, ret_n);
	if ((code = grace_wait(err)))
		return code;
	fold_moved(l);
	for (uint32_t n = 0; n < shards; n++)
		tidy_shard(l, n);
	return 0;
}
