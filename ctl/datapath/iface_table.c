// SPDX-License-Identifier: GPL-2.0-only
// The table of interfaces: a multiplier that separates all interfaces, for the copy that is not in
// use.
//
// A table this sparse has one (Fredman, Komlós, Szemerédi 1984).
#include "ctl/datapath/iface_table.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Fibonacci hashing (Knuth, volume 3, 6.4): consecutive numbers, which is what ifindexes are, never
// meet.
#define MULTIPLIER 0x9e3779b1u
// 63 random numbers need 4,000 attempts on average, a millisecond.
#define ATTEMPTS (1u << 20)

struct iface_key {
	uint32_t ifindex, number;
};

struct iface_keys {
	struct iface_key at[WEIR_IFACES];
	size_t n;
};

static uint64_t make_hash(uint32_t multiplier, uint32_t table)
{
	return (uint64_t)multiplier << 32 | table;
}

void iface_table_begin(struct knobs *knobs)
{
	memset(knobs->iface_buckets, 0, sizeof(knobs->iface_buckets));
	knobs->iface_hash = make_hash(MULTIPLIER, 0);
}

static uint32_t table_in_use(const struct knobs *knobs)
{
	return knobs->iface_hash & WEIR_IFACE_BUCKETS;
}

static uint32_t ifindex_of(uint64_t bucket)
{
	return (uint32_t)bucket;
}

static uint32_t number_of(uint64_t bucket)
{
	return (uint32_t)(bucket >> 32);
}

uint32_t iface_table_find(const struct knobs *knobs, uint32_t ifindex)
{
	uint64_t bucket = knobs->iface_buckets[iface_bucket(knobs->iface_hash, ifindex)];

	return ifindex && ifindex_of(bucket) == ifindex ? number_of(bucket) : 0;
}

static void store(__u64 *bucket, uint64_t value)
{
	__atomic_store_n(bucket, value, __ATOMIC_RELEASE);
}

static int collect(const struct knobs *knobs, const struct iface_key *fresh, struct iface_keys *ret)
{
	const __u64 *buckets = knobs->iface_buckets + table_in_use(knobs);

	*ret = (struct iface_keys){.at = {*fresh}, .n = 1};
	for (uint32_t s = 0; s < WEIR_IFACE_BUCKETS; s++) {
		if (!buckets[s])
			continue;
		if (ret->n == WEIR_IFACES - 1)
			return -ENOSPC;
		ret->at[ret->n++] = (struct iface_key){.ifindex = ifindex_of(buckets[s]),
						       .number = number_of(buckets[s])};
	}
	return 0;
}

static bool keeps_apart(const struct iface_keys *keys, uint64_t hash)
{
	uint64_t used[WEIR_IFACE_BUCKETS / 64] = {0};

	for (size_t k = 0; k < keys->n; k++) {
		uint32_t place = iface_bucket(hash, keys->at[k].ifindex) & (WEIR_IFACE_BUCKETS - 1);

		if (used[place / 64] >> place % 64 & 1)
			return false;
		used[place / 64] |= 1ull << place % 64;
	}
	return true;
}

// Odd numbers without a pattern: the finisher of MurmurHash3.
static uint32_t candidate(uint32_t attempt)
{
	uint32_t h = MULTIPLIER * (attempt + 1);

	h = (h ^ h >> 16) * 0x85ebca6bu;
	h = (h ^ h >> 13) * 0xc2b2ae35u;
	return (h ^ h >> 16) | 1;
}

static int find_hash(const struct iface_keys *keys, uint32_t table, uint64_t *ret)
{
	uint64_t hash = make_hash(MULTIPLIER, table);

	for (uint32_t a = 0; a < ATTEMPTS; a++) {
		if (keeps_apart(keys, hash)) {
			*ret = hash;
			return 0;
		}
		hash = make_hash(candidate(a), table);
	}
	return -ENOSPC;
}

// Waits until no packet is processed that has read the hash before the last change, and so may read
// the other table: the kernel waits for an RCU grace period. Without membarrier(), sleeping is
// enough: no program runs for that long.
static void wait_for_readers(void)
{
	const struct timespec long_enough = {.tv_nsec = 20000000};

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		nanosleep(&long_enough, NULL);
}

static int rebuild(struct knobs *knobs, const struct iface_key *fresh)
{
	uint32_t table = table_in_use(knobs) ^ WEIR_IFACE_BUCKETS;
	struct iface_keys keys;
	uint64_t hash;
	int code = collect(knobs, fresh, &keys);

	if (code || (code = find_hash(&keys, table, &hash)))
		return code;
	wait_for_readers();
	memset(knobs->iface_buckets + table, 0, WEIR_IFACE_BUCKETS * sizeof(*knobs->iface_buckets));
	for (size_t k = 0; k < keys.n; k++)
		knobs->iface_buckets[iface_bucket(hash, keys.at[k].ifindex)] =
			IFACE_BUCKET(keys.at[k].ifindex, keys.at[k].number);
	store(&knobs->iface_hash, hash);
	return 0;
}

int iface_table_set(struct knobs *knobs, uint32_t ifindex, uint32_t number)
{
	__u64 *bucket = &knobs->iface_buckets[iface_bucket(knobs->iface_hash, ifindex)];
	const struct iface_key fresh = {.ifindex = ifindex, .number = number};

	if (!number && ifindex_of(*bucket) == ifindex)
		store(bucket, 0);
	else if (number && (!*bucket || ifindex_of(*bucket) == ifindex))
		store(bucket, IFACE_BUCKET(ifindex, number));
	else if (number)
		return rebuild(knobs, &fresh);
	return 0;
}

void iface_table_clear(struct knobs *knobs, uint32_t ifindex, uint32_t number)
{
	if (iface_table_find(knobs, ifindex) == number)
		iface_table_set(knobs, ifindex, 0);
}
