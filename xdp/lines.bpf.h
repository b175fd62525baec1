/* SPDX-License-Identifier: GPL-2.0-only */
/* The hosts of the overlay: the entry of an address in its buckets, with its counters.
 *
 * common/overlay.h has the layout. A bucket is searched without branches: the slot of an address
 * cannot be predicted, and a misprediction discards the CPU's work for the next packets; and the
 * verifier follows all slots once.
 *
 * The caller reads the epoch, then an entry, then the epoch again. So the number of shards is read
 * after the epoch, and then a bucket through it; a result, even that there is no entry, depends on
 * the values read for it. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "common/bounds.h"
#include "xdp/maps.bpf.h"
#include "xdp/marker.bpf.h"
#include "xdp/order.bpf.h"
#include "xdp/packet.bpf.h"

/* A shard, one value; its true size depends on meta.cpus. */
struct overlay_shard4 {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, OVERLAY_BYTES4(1));
};

struct overlay_shard6 {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, OVERLAY_BYTES6(1));
};

/* Expiries of a shard; only a shard with an entry that ends has them. */
struct overlay_shard_times4 {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, OVERLAY_ELEMENT *OVERLAY_TIMES4);
};

struct overlay_shard_times6 {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, OVERLAY_ELEMENT *OVERLAY_TIMES6);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, OVERLAY_SHARDS);
	__uint(key_size, 4);
	__array(values, struct overlay_shard4);
} hosts4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, OVERLAY_SHARDS);
	__uint(key_size, 4);
	__array(values, struct overlay_shard6);
} hosts6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, OVERLAY_SHARDS);
	__uint(key_size, 4);
	__array(values, struct overlay_shard_times4);
} times4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, OVERLAY_SHARDS);
	__uint(key_size, 4);
	__array(values, struct overlay_shard_times6);
} times6 SEC(".maps");

/* The result: kinds in the lowest bits, PAIRED, the numbers of slot and shard. 0: no active
 * entry. */
#define FOUND_PAIRED OVERLAY_META_PAIRED
#define FOUND_SLOT   16
#define FOUND_SHARD  32

static __always_inline __u64 found_at(__u32 meta, __u32 slot, __u32 shard)
{
	return (meta & (OVERLAY_META_KINDS | OVERLAY_META_PAIRED)) | slot << FOUND_SLOT |
	       (__u64)shard << FOUND_SHARD;
}

/* The knobs, read after `seen` was. */
static __always_inline const struct knobs *knobs_after(__u64 seen)
{
	return AFTER(&knobs, seen);
}

static __always_inline __u32 shard_of(__u64 hash, __u32 family, const struct knobs *k)
{
	__u32 shards = *(volatile const __u32 *)&k->shards[family];

	return hash & (shards - 1) & (OVERLAY_SHARDS - 1);
}

/* The only value of the map in an element of an array of maps. */
static __always_inline void *value_of(void *maps, __u32 number)
{
	void *map = bpf_map_lookup_elem(maps, &number);
	__u32 zero = 0;

	return map ? bpf_map_lookup_elem(map, &zero) : NULL;
}

/* The words of a region that belong to the bucket with this number, in a shard; NULL if the shard
 * does not have the region. One piece of assembly for the test and the sum, as in
 * MARKER_ELEMENT. */
#define REGION_LINE(shard, at, end)                       \
	({                                                \
		__u64 *line_ = (void *)(shard);           \
		__u64 at_ = (at);                         \
                                                          \
		asm("if %1 < %2 goto +2\n"                \
		    "%0 = 0\n"                            \
		    "goto +1\n"                           \
		    "%0 += %1"                            \
		    : "+r"(line_)                         \
		    : "r"(at_), "r"((__u64)MARKER(end))); \
		line_;                                    \
	})

static __always_inline __u64 *region_line(__u32 family, void *shard, __u32 region, __u32 line)
{
	__u64 at = OVERLAY_ELEMENT;

	if (family)
		return REGION_LINE(shard, at + overlay_region6(region) * 8ull + line * 32ull,
				   MARK_SHARD6_END);
	return REGION_LINE(shard, at + overlay_region4(region) * 8ull + line * 64ull,
			   MARK_SHARD4_END);
}

static __always_inline __u32 region_of_cpu(void)
{
	return OVERLAY_CPUS + bpf_get_smp_processor_id();
}

/* Fetches the cache line of small counters that belongs to a bucket. */
static __always_inline __u64 *fetch_counters(__u32 family, void *shard, __u32 line)
{
	__u64 *counters = region_line(family, shard, region_of_cpu(), line);

	if (counters)
		(void)*(volatile __u64 *)counters;
	return counters;
}

/* The expiry of a timed slot, `word` counting the slots of its sides. */
static __always_inline __u64 overlay_time(__u32 family, __u32 shard, __u32 word)
{
	const volatile __u64 *times;

	if (family) {
		times = value_of(&times6, shard);
		return times ? times[BOUND(word, OVERLAY_TIMES6 * OVERLAY_WORDS - 1)] : 0;
	}
	times = value_of(&times4, shard);
	return times ? times[BOUND(word, OVERLAY_TIMES4 * OVERLAY_WORDS - 1)] : 0;
}

/* Is an entry active that expires, or waits for its epoch? *seen: the expiry, which was written
 * before the meta. */
static __always_inline bool is_in_force(__u32 family, __u32 shard, __u32 slot, __u32 meta,
					__u64 epoch, __u64 *seen)
{
	bool committed = overlay_committed(meta, epoch);
	__u32 side = !!(meta & OVERLAY_META_SIDE) ^ committed;

	if (!(meta & OVERLAY_META_TIMED))
		return committed ^ !!(meta & OVERLAY_META_ENDS);
	slot |= side << (family ? OVERLAY_SLOTS6_LOG2 : OVERLAY_SLOTS4_LOG2);
	*seen = overlay_time(family, (__u32)AFTER((__u64)shard, meta), slot);
	return bpf_jiffies64() < *seen;
}

/* A slot that has the address. Where the address has a slot of the other verdict too, both are
 * looked for again, one after the other. */
static __always_inline __u64 judge(__u32 family, __u32 shard, __u32 slot, __u32 meta, __u32 kinds,
				   __u64 epoch)
{
	const __u32 plain = OVERLAY_META_TIMED | OVERLAY_META_STAGED | OVERLAY_META_PAIRED;
	__u64 seen = meta;

	if (likely(!(meta & plain)))
		return found_at(meta, slot, shard);
	if (meta & OVERLAY_META_PAIRED && kinds & (kinds - 1))
		return found_at(meta, slot, shard);
	if (!(meta & (OVERLAY_META_TIMED | OVERLAY_META_STAGED)) ||
	    is_in_force(family, shard, slot, meta, epoch, &seen))
		return found_at(meta & ~OVERLAY_META_PAIRED, slot,
				(__u32)AFTER((__u64)shard, seen));
	return AFTER(0ull, seen);
}

/* ---- one entry among the slots of an address ------------------------------------------------- */

/* The place + OVERLAY_LINE4 of the first slot that has the address and one of the kinds; 0: none
 * has. Without a branch: the verifier would follow each place to the end. */
static __always_inline __u64 scan4(const struct overlay_line4 *line, __u32 addr, __u32 kinds)
{
	__u64 place = 0;

#pragma unroll
	for (int n = OVERLAY_LINE4 - 1; n >= 0; n--) {
		__u64 slot = *(volatile const __u64 *)&line->slot[n];
		__u64 is = if_zero32((__u32)slot ^ addr) & ~if_zero32(slot >> 32 & kinds);

		place = (place & ~is) | (is & (OVERLAY_LINE4 + n));
	}
	return place;
}

/* The same for IPv6: the place + 4. A meta is read before its key. */
static __always_inline __u64 scan6(const struct overlay_line6 *line, __u64 high, __u64 low,
				   __u32 kinds)
{
	__u64 place = 0;

#pragma unroll
	for (int n = OVERLAY_LINE6 - 1; n >= 0; n--) {
		__u32 meta = *(volatile const __u32 *)&line->meta[n] & kinds;
		const volatile __u64 *key = AFTER((const __u64 *)line->key[n], meta);
		__u64 is = if_zero64((key[0] ^ high) | (key[1] ^ low)) & ~if_zero32(meta);

		place = (place & ~is) | (is & (4 + n));
	}
	return place;
}

/* The active entry of an IPv4 address (network order) among the kinds, which have one direction. */
__noinline __u64 overlay_find4(__u32 addr, __u32 kinds, __u64 epoch)
{
	const struct knobs *k = knobs_after(epoch);
	__u64 hash = overlay_hash4(addr, k->seed), place;
	__u32 shard = shard_of(hash, 0, k), index = overlay_first(hash);
	const struct overlay_lines4 *lines = value_of(&hosts4, shard);
	const struct overlay_line4 *line;

	if (!lines)
		return 0;
	line = &lines->line[index];
	place = scan4(line, addr, kinds);
	if (is_none(place)) {
		if (!(line->slot[0] >> 32 & OVERLAY_META_MORE))
			return AFTER(0ull, place);
		index = overlay_second(hash);
		line = &lines->line[index];
		place = scan4(line, addr, kinds);
		if (is_none(place))
			return AFTER(0ull, place);
	}
	place = BOUND(place, OVERLAY_LINE4 - 1);
	return judge(0, shard, index * 8 + place, *(volatile __u64 *)&line->slot[place] >> 32,
		     kinds, epoch);
}

static __always_inline bool has_more6(const struct overlay_line6 *line)
{
	return *(volatile const __u32 *)&line->line & OVERLAY_META_MORE;
}

/* The same for IPv6, whose halves are in host order. */
__noinline __u64 overlay_find6(__u64 high, __u64 low, __u32 kinds, __u64 epoch)
{
	const struct knobs *k = knobs_after(epoch);
	__u64 hash = overlay_hash6(high, low, k->seed), place;
	__u32 shard = shard_of(hash, 1, k), index = overlay_first(hash);
	const struct overlay_lines6 *lines = value_of(&hosts6, shard);
	const struct overlay_line6 *line;

	if (!lines)
		return 0;
	line = &lines->line[index];
	place = scan6(line, high, low, kinds);
	if (is_none(place)) {
		if (!has_more6(line))
			return AFTER(0ull, place);
		index = overlay_second(hash);
		line = &lines->line[index];
		place = scan6(line, high, low, kinds);
		if (is_none(place))
			return AFTER(0ull, place);
	}
	place = BOUND(place, 3);
	return judge(1, shard, index * 4 + place, *(volatile __u32 *)&line->meta[place], kinds,
		     epoch);
}

/* ---- the usual entry: the only slot of its address, in the first bucket ---------------------- */

/* The result of reading the first bucket. */
struct line_host {
	__u64 found;
	__u64 *counter; /* the small one of this CPU; NULL: it is looked up */
	/* if none is found: a value read in the bucket, on which the 0 depends */
	__u64 absent;
	bool ask; /* it takes more than that: overlay_find4 or overlay_find6 */
};

#define HOST_ABSENT(read) ((struct line_host){.absent = (read)})
#define HOST_ASK          ((struct line_host){.ask = true})

/* Is it an active entry of these kinds, and the only one of the address? */
static __always_inline bool is_plain(__u32 meta, __u32 kinds)
{
	return meta & kinds &&
	       !(meta & (OVERLAY_META_TIMED | OVERLAY_META_STAGED | OVERLAY_META_PAIRED));
}

static __always_inline struct line_host host_at(__u32 family, __u32 shard, __u32 line, __u64 place,
						__u32 meta, __u64 *counters)
{
	return (struct line_host){.found = found_at(meta, line * (family ? 4 : 8) + place, shard),
				  .counter = counters ? counters + place : NULL};
}

/* 3 n + 2 ones if slot n has the address; else 0. */
#define SLOT_ONES(line, n, addr)                                                  \
	({                                                                        \
		__u64 ones_ = *(volatile const __u32 *)&(line)->slot[n] ^ (addr); \
                                                                                  \
		ones_--;                                                          \
		asm("%0 >>= %1" : "+r"(ones_) : "i"(64 - (3 * (n) + 2)));         \
		ones_;                                                            \
	})

/* The ones of the slot that has the address; 0: none has it. If several slots have it, the ones of
 * one slot. Without a branch for each slot: the slot cannot be predicted, but its existence can,
 * and then the counters are fetched before the bucket has arrived. */
static __always_inline __u64 ones4(const struct overlay_line4 *line, __u32 addr)
{
	_Static_assert(OVERLAY_LINE4 == 8, "each slot is written out");
	return SLOT_ONES(line, 0, addr) | SLOT_ONES(line, 1, addr) | SLOT_ONES(line, 2, addr) |
	       SLOT_ONES(line, 3, addr) | SLOT_ONES(line, 4, addr) | SLOT_ONES(line, 5, addr) |
	       SLOT_ONES(line, 6, addr) | SLOT_ONES(line, 7, addr);
}

/* Slot n, of 3 n + 2 ones. They are a power of two less 1, so the product is the factor moved up by
 * 3 n + 2 bits, less the factor: its digits of 3 bits are such that the one which then is at bit 29
 * is n. */
#define PLACE_FACTOR 0x14e5dd9
#define PLACE_SHIFT  29

#define PLACE_IS(n) ((((1ull << (3 * (n) + 2)) - 1) * PLACE_FACTOR >> PLACE_SHIFT & 7) == (n))
_Static_assert(PLACE_IS(0) && PLACE_IS(1) && PLACE_IS(2) && PLACE_IS(3) && PLACE_IS(4) &&
		       PLACE_IS(5) && PLACE_IS(6) && PLACE_IS(7),
	       "a product for each slot");

static __always_inline __u64 place_of_ones(__u64 ones)
{
	return BOUND(ones * PLACE_FACTOR >> PLACE_SHIFT, OVERLAY_LINE4 - 1);
}

static __always_inline struct line_host look4(__u32 addr, __u32 kinds, const struct knobs *k)
{
	__u64 hash = overlay_hash4(addr, k->seed), ones, place, slot, *counters;
	__u32 shard = shard_of(hash, 0, k), index = overlay_first(hash);
	struct overlay_lines4 *lines = value_of(&hosts4, shard);
	const struct overlay_line4 *line;

	if (!lines)
		return HOST_ABSENT(shard);
	line = &lines->line[index];
	ones = ones4(line, addr);
	if (is_none(ones))
		return line->slot[0] >> 32 & OVERLAY_META_MORE ? HOST_ASK : HOST_ABSENT(ones);
	counters = fetch_counters(0, lines, index);
	place = place_of_ones(ones);
	slot = *(volatile const __u64 *)&line->slot[place];
	if ((__u32)slot != addr || !is_plain(slot >> 32, kinds))
		return HOST_ASK;
	return host_at(0, shard, index, place, slot >> 32, counters);
}

/* The same for IPv6: the place + 4. */
static __always_inline __u64 place6(const struct overlay_line6 *line, __u64 high, __u64 low)
{
	__u64 place = 0;

#pragma unroll
	for (int n = 0; n < OVERLAY_LINE6; n++) {
		const volatile __u64 *key = line->key[n];

		place |= is_zero64((key[0] ^ high) | (key[1] ^ low)) * (4 + n);
	}
	return place;
}

static __always_inline struct line_host look6(__u64 high, __u64 low, __u32 kinds,
					      const struct knobs *k)
{
	__u64 hash = overlay_hash6(high, low, k->seed), place, *counters;
	__u32 shard = shard_of(hash, 1, k), index = overlay_first(hash), meta;
	struct overlay_lines6 *lines = value_of(&hosts6, shard);
	const struct overlay_line6 *line;
	const volatile __u64 *key;

	if (!lines)
		return HOST_ABSENT(shard);
	line = &lines->line[index];
	place = place6(line, high, low);
	if (is_none(place))
		return has_more6(line) ? HOST_ASK : HOST_ABSENT(place);
	counters = fetch_counters(1, lines, index);
	place = BOUND(place, 3);
	meta = *(volatile const __u32 *)&line->meta[place];
	key = AFTER((const __u64 *)line->key[place], meta);
	if (key[0] != high || key[1] != low || !is_plain(meta, kinds))
		return HOST_ASK;
	return host_at(1, shard, index, place, meta, counters);
}

/* ---- counters -------------------------------------------------------------------------------- */

/* A word of a region of the shard. */
static __always_inline __u64 *region_word(__u32 family, __u32 shard, __u32 slot, __u32 region)
{
	const __u32 log2 = family ? 2 : 3; /* slots of a bucket */
	void *at = family ? value_of(&hosts6, shard) : value_of(&hosts4, shard);
	__u64 *line = at ? region_line(family, at, region, slot >> log2) : NULL;

	return line ? line + (slot & ((1 << log2) - 1)) : NULL;
}

static __always_inline __u32 found_slot(__u64 found)
{
	return found >> FOUND_SLOT & (OVERLAY_WORDS - 1);
}

static __always_inline __u32 found_shard(__u64 found)
{
	return found >> FOUND_SHARD & (OVERLAY_SHARDS - 1);
}

/* Adds to the big counters, which all CPUs and commands share. */
__noinline int overlay_count_big(__u32 family, __u64 found, __u32 packets, __u32 bytes)
{
	__u32 slot = found_slot(found), shard = found_shard(found);
	__u64 *word = region_word(family, shard, slot, OVERLAY_PACKETS);

	if (word)
		__sync_fetch_and_add(word, packets);
	word = region_word(family, shard, slot, OVERLAY_BYTES);
	if (word)
		__sync_fetch_and_add(word, bytes);
	return 0;
}

static __always_inline __u64 heard_now(void)
{
	return bpf_jiffies64() >> OVERLAY_HEARD_UNIT << OVERLAY_SMALL_HEARD;
}

/* A packet on a CPU without small counters. When the entry was heard is in the word of CPU 0, which
 * changes it without an atomic: that CPU or this one writes the whole word, and a count is never
 * lost. */
__noinline int overlay_count_late(__u32 family, __u64 found, __u32 bytes)
{
	const __u64 counts = (1ull << OVERLAY_SMALL_HEARD) - 1;
	__u64 *word = region_word(family, found_shard(found), found_slot(found), OVERLAY_CPUS);
	__u64 now = heard_now(), before;

	overlay_count_big(family, found, 1, bytes);
	if (!word)
		return 0;
	before = *(volatile __u64 *)word;
	if ((before & ~counts) != now)
		__sync_val_compare_and_swap(word, before, (before & counts) | now);
	return 0;
}

/* word: the small counter; NULL: the CPU has none. */
static __always_inline void count_small(__u32 family, __u64 found, __u64 *word, __u32 bytes)
{
	const __u64 counts = (1ull << OVERLAY_SMALL_HEARD) - 1;
	const __u64 full = (__u64)OVERLAY_SMALL_FULL << OVERLAY_SMALL_BYTES;
	__u64 count;

	if (unlikely(!word)) {
		overlay_count_late(family, found, bytes);
		return;
	}
	count = *word & counts;
	if (likely(bytes <= OVERLAY_SMALL_LENGTH))
		count += (1ull << OVERLAY_SMALL_BYTES) + bytes;
	else /* merged by the stack */
		overlay_count_big(family, found, 1, bytes);
	if (unlikely(count >= full)) {
		overlay_count_big(family, found, OVERLAY_SMALL_FULL,
				  count & ((1u << OVERLAY_SMALL_BYTES) - 1));
		count = 0;
	}
	*word = count | heard_now();
}

/* An entry whose counter is not at hand. */
__noinline int overlay_count(__u32 family, __u64 found, __u32 bytes)
{
	__u32 slot = found_slot(found), shard = found_shard(found);
	__u64 *word = family ? region_word(1, shard, slot, region_of_cpu())
			     : region_word(0, shard, slot, region_of_cpu());

	count_small(family, found, word, bytes);
	return 0;
}
