// SPDX-License-Identifier: GPL-2.0-only
// Finds and reads the hosts of the overlay.
#include "ctl/datapath/overlay_lines.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

struct overlay_lines *lines_open(const struct instance *i, uint8_t family)
{
	struct overlay_lines *l = mem_new(struct overlay_lines);

	l->instance = i;
	l->six = family == 6;
	l->shards = shards_new(i, l->six);
	return l;
}

void lines_free(struct overlay_lines *l)
{
	if (!l)
		return;
	shards_free(l->shards);
	vec_free(&l->moved);
	free(l);
}

void lines_cleanup(struct overlay_lines **l)
{
	lines_free(*l);
}

// ---- keys ---------------------------------------------------------------------------------------

struct lines_key lines_key(const struct prefix *host, uint8_t kind)
{
	struct lines_key key = {.kind = kind};
	uint64_t half[2];
	uint32_t addr;

	if (host->addr.family == 4) {
		memcpy(&addr, host->addr.bytes, sizeof(addr));
		key.low = addr;
	} else {
		memcpy(half, host->addr.bytes, sizeof(half));
		key.high = be64toh(half[0]);
		key.low = be64toh(half[1]);
	}
	return key;
}

struct prefix lines_prefix(const struct overlay_lines *l, const struct lines_key *key)
{
	struct addr addr = addr_from_v4((uint32_t)key->low);
	uint64_t half[2] = {htobe64(key->high), htobe64(key->low)};

	if (l->six)
		addr = addr_from_v6((const uint8_t *)half);
	return prefix_of(&addr, l->six ? 128 : 32);
}

uint64_t lines_hash(const struct overlay_lines *l, uint64_t high, uint64_t low)
{
	uint64_t seed = l->instance->knobs->seed;

	return l->six ? overlay_hash6(high, low, seed) : overlay_hash4((uint32_t)low, seed);
}

uint32_t lines_shard_for(uint64_t hash, uint32_t shards)
{
	return (uint32_t)hash & (shards - 1);
}

uint8_t lines_kind(uint32_t meta)
{
	return (uint8_t)__builtin_ctz(meta & OVERLAY_META_KINDS);
}

uint8_t lines_was_kind(uint32_t meta)
{
	return meta >> OVERLAY_META_WAS & 3;
}

// ---- finding ------------------------------------------------------------------------------------

struct spot lines_spot(const struct overlay_lines *l, uint32_t shard, uint32_t line, uint32_t n)
{
	return (struct spot){shard, line * line_numbers(l->shards) + n};
}

static bool find_in(const struct overlay_lines *l, uint32_t shard, uint32_t line,
		    const struct lines_key *key, struct spot *ret)
{
	ret->shard = shard;
	ret->slot = line_find(l->shards, shard, line, key->high, key->low, 1u << key->kind);
	return ret->slot != NO_SLOT;
}

bool lines_find_mapped(const struct overlay_lines *l, const struct lines_key *key, struct spot *ret)
{
	uint64_t hash = lines_hash(l, key->high, key->low);
	uint32_t n = shards_n(l->shards), shard = lines_shard_for(hash, n);

	if (!n)
		return false;
	return find_in(l, shard, overlay_first(hash), key, ret) ||
	       (line_more(l->shards, shard, overlay_first(hash)) &&
		find_in(l, shard, overlay_second(hash), key, ret));
}

uint32_t lines_shard(const struct overlay_lines *l, const struct lines_key *key)
{
	uint32_t n = shards_n(l->shards);

	return n ? lines_shard_for(lines_hash(l, key->high, key->low), n) : 0;
}

void lines_unmap(struct overlay_lines *l, uint32_t shard)
{
	shard_unmap(l->shards, shard);
}

int lines_find(struct overlay_lines *l, const struct lines_key *key, struct spot *ret,
	       struct err *err)
{
	uint32_t n = shards_n(l->shards);
	int code;

	if (!n)
		return -ENOENT;
	code = shard_map(l->shards, lines_shard_for(lines_hash(l, key->high, key->low), n), err);
	if (code)
		return code;
	return lines_find_mapped(l, key, ret) ? 0 : -ENOENT;
}

uint64_t lines_until_of(const struct overlay_lines *l, struct spot at, uint32_t meta,
			bool committed)
{
	bool side = meta & OVERLAY_META_SIDE;

	if (meta & OVERLAY_META_TIMED)
		return l->shards->shard[at.shard].times
			       ? *slot_expiry(l->shards, at, side ^ committed)
			       : 0;
	if (!(meta & OVERLAY_META_STAGED))
		return OVERLAY_FOREVER;
	return committed != !!(meta & OVERLAY_META_ENDS) ? OVERLAY_FOREVER : 0;
}

static uint64_t until_now(const struct overlay_lines *l, struct spot at)
{
	uint32_t meta = slot_meta(l->shards, at);

	return lines_until_of(l, at, meta, overlay_committed(meta, l->instance->knobs->epoch));
}

int lines_until(struct overlay_lines *l, const struct lines_key *key, uint64_t *ret,
		struct err *err)
{
	struct spot at;
	int code = lines_find(l, key, &at, err);

	*ret = code ? 0 : until_now(l, at);
	return code == -ENOENT ? 0 : code;
}

static struct lines_entry entry_at(const struct overlay_lines *l, struct spot at, uint8_t kind,
				   uint64_t until, uint64_t now)
{
	struct lines_entry entry = {.key.kind = kind, .until = until};
	uint64_t heard;

	slot_key(l->shards, at, &entry.key.high, &entry.key.low);
	entry.hits = slot_hits(l->shards, at, now >> OVERLAY_HEARD_UNIT, &heard);
	entry.seen = heard << OVERLAY_HEARD_UNIT;
	return entry;
}

int lines_read(struct overlay_lines *l, const struct lines_key *key, uint64_t now,
	       struct lines_entry *ret, struct err *err)
{
	struct spot at;
	uint64_t until;
	int code = lines_find(l, key, &at, err);

	if (code)
		return code;
	if (!(until = until_now(l, at)))
		return -ENOENT;
	*ret = entry_at(l, at, key->kind, until, now);
	return 0;
}

// The slot has the entry, but packets find it in another one.
static bool is_copy(const struct overlay_lines *l, struct spot at, const struct lines_key *key)
{
	uint64_t hash = lines_hash(l, key->high, key->low);
	struct spot first;

	if (lines_shard_for(hash, shards_n(l->shards)) != at.shard)
		return true;
	return overlay_first(hash) != at.slot / line_numbers(l->shards) &&
	       lines_find_mapped(l, key, &first) && first.slot != at.slot;
}

static int each_in_shard(struct overlay_lines *l, uint32_t shard, uint64_t now,
			 int (*visit)(void *ctx, const struct overlay_lines *l,
				      const struct lines_entry *entry),
			 void *ctx)
{
	for (uint32_t slot = 0; slot < shard_slots(l->shards); slot++) {
		struct spot at = {shard, slot};
		uint32_t meta;
		uint64_t until, high, low;
		struct lines_entry entry;
		int code;

		if (slot % line_numbers(l->shards) >= line_slots(l->shards))
			continue;
		meta = slot_meta(l->shards, at);
		if (!(meta & OVERLAY_META_KINDS) || !(until = until_now(l, at)))
			continue;
		slot_key(l->shards, at, &high, &low);
		// It moves to here or has moved from here, and the command that moves it has not
		// come to this one yet.
		if (is_copy(l, at, &(struct lines_key){high, low, lines_kind(meta)}))
			continue;
		entry = entry_at(l, at, lines_kind(meta), until, now);
		if ((code = visit(ctx, l, &entry)))
			return code;
	}
	return 0;
}

int lines_each(struct overlay_lines *l, uint64_t now,
	       int (*visit)(void *ctx, const struct overlay_lines *l,
			    const struct lines_entry *entry),
	       void *ctx, struct err *err)
{
	for (uint32_t n = 0; n < shards_n(l->shards); n++) {
		int code = shard_map(l->shards, n, err);

		if (code || (code = each_in_shard(l, n, now, visit, ctx)))
			return code;
	}
	return 0;
}
