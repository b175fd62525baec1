/* SPDX-License-Identifier: GPL-2.0-only */
/* The hosts of the overlay: finds the entry of an address in its lines, and counts a packet for it.
 *
 * common/overlay.h has the layout. Each step is a global function: the verifier walks the eight ways through a line
 * once, and they are one for what follows. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp/maps.bpf.h"
#include "xdp/packet.bpf.h"

/* A shard; its true number of elements depends on the CPUs. */
struct overlay_shard4 {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, OVERLAY_ELEMENTS4(1));
	__uint(key_size, 4);
	__uint(value_size, OVERLAY_ELEMENT);
};

struct overlay_shard6 {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, OVERLAY_ELEMENTS6(1));
	__uint(key_size, 4);
	__uint(value_size, OVERLAY_ELEMENT);
};

/* Expiries of a shard; only a shard with an entry that ends has them. */
struct overlay_shard_times4 {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, OVERLAY_TIMES4);
	__uint(key_size, 4);
	__uint(value_size, OVERLAY_ELEMENT);
};

struct overlay_shard_times6 {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, OVERLAY_TIMES6);
	__uint(key_size, 4);
	__uint(value_size, OVERLAY_ELEMENT);
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

/* What is found: kinds in the lowest bits, PAIRED, the slot's number and the shard's. 0: no entry in force. */
#define FOUND_PAIRED OVERLAY_META_PAIRED
#define FOUND_SLOT   16
#define FOUND_SHARD  32

static __always_inline __u64 found_at(__u32 meta, __u32 slot, __u32 shard)
{
	return (meta & (OVERLAY_META_KINDS | OVERLAY_META_PAIRED)) | slot << FOUND_SLOT |
	       (__u64)shard << FOUND_SHARD;
}

static __always_inline __u32 shard_of(__u64 hash, __u32 family)
{
	__u32 shards = *(volatile __u32 *)&knobs.shards[family];

	return hash & (shards - 1) & (OVERLAY_SHARDS - 1);
}

/* An element of a shard, or of its times. */
static __always_inline void *element_of(void *maps, __u32 shard, __u32 element)
{
	void *map = bpf_map_lookup_elem(maps, &shard);

	return map ? bpf_map_lookup_elem(map, &element) : NULL;
}

/* The expiry of a timed slot, `word` counting the slots of its sides. */
static __always_inline __u64 overlay_time(__u32 family, __u32 shard, __u32 word)
{
	const struct overlay_words *times =
		family ? element_of(&times6, shard, 0)
		       : element_of(&times4, shard, word >> OVERLAY_SLOTS4_LOG2 & 1);

	return times ? *(volatile const __u64 *)&times->word[word & (OVERLAY_WORDS - 1)] : 0;
}

/* Is an entry in force that ends, or waits for its epoch? */
__noinline int overlay_in_force(__u32 family, __u32 shard, __u32 slot, __u32 meta, __u64 epoch)
{
	bool committed = overlay_committed(meta, epoch);
	__u32 side = !!(meta & OVERLAY_META_SIDE) ^ committed;

	if (!(meta & OVERLAY_META_TIMED))
		return committed ^ !!(meta & OVERLAY_META_ENDS);
	slot |= side << (family ? OVERLAY_SLOTS6_LOG2 : OVERLAY_SLOTS4_LOG2);
	return bpf_jiffies64() < overlay_time(family, shard, slot);
}

/* A slot that has the address. Where the address has a slot of the other verdict too, both are looked for again, one
 * after the other. */
static __always_inline __u64 judge(__u32 family, __u32 shard, __u32 slot, __u32 meta, __u32 kinds,
				   __u64 epoch)
{
	const __u32 plain = OVERLAY_META_TIMED | OVERLAY_META_STAGED | OVERLAY_META_PAIRED;

	if (likely(!(meta & plain)))
		return found_at(meta, slot, shard);
	if (meta & OVERLAY_META_PAIRED && kinds & (kinds - 1))
		return found_at(meta, slot, shard);
	if (!(meta & (OVERLAY_META_TIMED | OVERLAY_META_STAGED)) ||
	    overlay_in_force(family, shard, slot, meta, epoch))
		return found_at(meta & ~OVERLAY_META_PAIRED, slot, shard);
	return 0;
}

/* Does a line have the address? Without a branch for each slot: which one it is cannot be foretold, but whether there is
 * one can, and then the counters are on their way before the line is there. The sign of the result tells. */
static __always_inline __s64 holds4(const struct overlay_line4 *line, __u32 addr)
{
	__u64 any = 0;

#pragma unroll
	for (int n = 0; n < OVERLAY_LINE4; n++) {
		__u64 apart = *(volatile const __u32 *)&line->slot[n] ^ addr;

		any |= apart - 1;
	}
	return any;
}

static __always_inline __s64 holds6(const struct overlay_line6 *line, __u64 high, __u64 low)
{
	__u64 any = 0;

#pragma unroll
	for (int n = 0; n < OVERLAY_LINE6; n++) {
		const volatile __u64 *key = line->key[n];
		__u64 apart = (key[0] ^ high) | (key[1] ^ low);

		any |= (apart - 1) & ~apart;
	}
	return any;
}

/* The word of an element at a number. The compiler must not know how the number came about: it would put it together
 * with |, after which kernel 6.1 knows no bound. */
static __always_inline __u64 *element_word(struct overlay_words *words, __u64 at)
{
	asm("" : "+r"(at));
	return &words->word[at & (OVERLAY_WORDS - 1)];
}

/* Fetches the line of small counters that belongs to a slot. */
static __always_inline void fetch_counters(__u32 family, void *map, __u32 slot)
{
	__u32 region = OVERLAY_CPUS + bpf_get_smp_processor_id();
	__u32 at = (family ? overlay_region6(region) : overlay_region4(region)) + slot;
	__u32 element = 1 + (at >> OVERLAY_SLOTS4_LOG2);
	struct overlay_words *words = bpf_map_lookup_elem(map, &element);

	if (words)
		(void)*(volatile __u64 *)element_word(words, at);
}

#define NOT_HERE (-1)

/* The slot of a line that has the address and one of the kinds, and its meta. */
static __always_inline int scan4(const struct overlay_line4 *line, __u32 addr, __u32 kinds,
				 __u32 *ret_meta)
{
#pragma unroll
	for (int n = 0; n < OVERLAY_LINE4; n++) {
		__u64 slot = *(volatile const __u64 *)&line->slot[n];

		if ((__u32)slot == addr && slot >> 32 & kinds) {
			*ret_meta = slot >> 32;
			return n;
		}
	}
	return NOT_HERE;
}

static __always_inline int scan6(const struct overlay_line6 *line, __u64 high, __u64 low,
				 __u32 kinds, __u32 *ret_meta)
{
#pragma unroll
	for (int n = 0; n < OVERLAY_LINE6; n++) {
		const volatile __u64 *key = line->key[n];

		if (key[1] == low && key[0] == high) {
			__u32 meta = *(volatile const __u32 *)&line->meta[n];

			if (meta & kinds) {
				*ret_meta = meta;
				return n;
			}
		}
	}
	return NOT_HERE;
}

/* The entry in force of an IPv4 address (network order) among the kinds, which are of one direction. */
__noinline __u64 overlay_find4(__u32 addr, __u32 kinds, __u64 epoch)
{
	__u64 hash = overlay_hash4(addr, knobs.seed);
	__u32 shard = shard_of(hash, 0), index = overlay_first(hash), zero = 0, meta;
	void *map = bpf_map_lookup_elem(&hosts4, &shard);
	const struct overlay_lines4 *lines = map ? bpf_map_lookup_elem(map, &zero) : NULL;
	int slot;

	if (!lines)
		return 0;
	if (holds4(&lines->line[index], addr) < 0) {
		fetch_counters(0, map, index * 8);
		slot = scan4(&lines->line[index], addr, kinds, &meta);
		if (slot != NOT_HERE)
			return judge(0, shard, index * 8 + slot, meta, kinds, epoch);
	}
	if (likely(!(lines->line[index].slot[0] >> 32 & OVERLAY_META_MORE)))
		return 0;
	index = overlay_second(hash);
	slot = scan4(&lines->line[index], addr, kinds, &meta);
	return slot == NOT_HERE ? 0 : judge(0, shard, index * 8 + slot, meta, kinds, epoch);
}

/* The same for IPv6, whose halves are in host order. */
__noinline __u64 overlay_find6(__u64 high, __u64 low, __u32 kinds, __u64 epoch)
{
	__u64 hash = overlay_hash6(high, low, knobs.seed);
	__u32 shard = shard_of(hash, 1), index = overlay_first(hash), zero = 0, meta;
	void *map = bpf_map_lookup_elem(&hosts6, &shard);
	const struct overlay_lines6 *lines = map ? bpf_map_lookup_elem(map, &zero) : NULL;
	int slot;

	if (!lines)
		return 0;
	if (holds6(&lines->line[index], high, low) < 0) {
		fetch_counters(1, map, index * 4);
		slot = scan6(&lines->line[index], high, low, kinds, &meta);
		if (slot != NOT_HERE)
			return judge(1, shard, index * 4 + slot, meta, kinds, epoch);
	}
	if (likely(!(*(volatile const __u32 *)&lines->line[index].line & OVERLAY_META_MORE)))
		return 0;
	index = overlay_second(hash);
	slot = scan6(&lines->line[index], high, low, kinds, &meta);
	return slot == NOT_HERE ? 0 : judge(1, shard, index * 4 + slot, meta, kinds, epoch);
}

/* A word of a region of the shard. */
static __always_inline __u64 *region_word(__u32 family, __u32 shard, __u32 slot, __u32 region)
{
	__u32 at = (family ? overlay_region6(region) : overlay_region4(region)) + slot;
	struct overlay_words *words =
		family ? element_of(&hosts6, shard, 1 + (at >> OVERLAY_SLOTS4_LOG2))
		       : element_of(&hosts4, shard, 1 + (at >> OVERLAY_SLOTS4_LOG2));

	return words ? element_word(words, at) : NULL;
}

/* Adds to the big counters, which all CPUs and commands share. */
__noinline int overlay_count_big(__u32 family, __u32 shard, __u32 slot, __u32 packets, __u32 bytes)
{
	__u64 *word = region_word(family, shard, slot, OVERLAY_PACKETS);

	if (word)
		__sync_fetch_and_add(word, packets);
	word = region_word(family, shard, slot, OVERLAY_BYTES);
	if (word)
		__sync_fetch_and_add(word, bytes);
	return 0;
}

static __always_inline void count_host(__u32 family, __u64 found, __u32 bytes)
{
	const __u64 counts = (1ull << OVERLAY_SMALL_HEARD) - 1;
	__u32 slot = found >> FOUND_SLOT & (OVERLAY_WORDS - 1);
	__u32 shard = found >> FOUND_SHARD & (OVERLAY_SHARDS - 1);
	__u32 region = OVERLAY_CPUS + bpf_get_smp_processor_id();
	__u64 *word = region_word(family, shard, slot, region), count;

	/* A CPU that was not there when the shard was made. */
	if (unlikely(!word)) {
		overlay_count_big(family, shard, slot, 1, bytes);
		return;
	}
	count = *word & counts;
	if (likely(bytes <= OVERLAY_SMALL_LENGTH))
		count += (1ull << OVERLAY_SMALL_BYTES) + bytes;
	else /* merged by the stack */
		overlay_count_big(family, shard, slot, 1, bytes);
	if (unlikely((count >> OVERLAY_SMALL_BYTES) == OVERLAY_SMALL_FULL)) {
		overlay_count_big(family, shard, slot, OVERLAY_SMALL_FULL,
				  count & ((1u << OVERLAY_SMALL_BYTES) - 1));
		count = 0;
	}
	*word = count | bpf_jiffies64() >> OVERLAY_HEARD_UNIT << OVERLAY_SMALL_HEARD;
}

__noinline int overlay_count4(__u64 found, __u32 bytes)
{
	count_host(0, found, bytes);
	return 0;
}

__noinline int overlay_count6(__u64 found, __u32 bytes)
{
	count_host(1, found, bytes);
	return 0;
}
