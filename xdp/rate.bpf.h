/* SPDX-License-Identifier: GPL-2.0-only */
/* Rate limits by GCRA (ATM Forum TM 4.1 section 4.4.2, ITU-T I.371).
 *
 * A limit is one theoretical arrival time for a rule, or one for each address in lines of five,
 * changed by compare-and-swap. Time is jiffies64 << RATE_SHIFT. Both outlive the policy:
 * ctl/datapath/rates.h. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/limits.h"
#include "common/policy.h"
#include "xdp/count.bpf.h"
#include "xdp/jiffies.bpf.h"
#include "xdp/tables.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WEIR_RATES);
	__type(key, __u32);
	__type(value, __u64);
} meters SEC(".maps");

/* The table of one rule. */
struct bucket_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct policy_bucket_line));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct bucket_map);
} buckets SEC(".maps");

#define RATE_TRIES 4

/* How far an arrival time is ahead of now; 0 when it is not. Both are below 2^63. */
static __always_inline __u64 time_ahead(__u64 time, __u64 now)
{
	__s64 ahead = (__s64)(time - now);

	return ahead > 0 ? (__u64)ahead : 0;
}

static __always_inline __u64 rate_cost(struct xdp_md *ctx, const struct policy_rule *rule)
{
	__u64 units = rule->flags & RULE_BITS ? bpf_xdp_get_buff_len(ctx) * 8 : 1;
	__u64 cost = units * rule->cost_mult >> (rule->cost_shift & 63);

	/* Computed here: else its three parts wait on the stack. */
	asm volatile("" : "+r"(cost));
	return cost;
}

static __always_inline __u64 rate_now(void)
{
	return now_jiffies() << RATE_SHIFT;
}

/* Is the cost more than the limit leaves? Charges it when it is not. */
static __always_inline bool meter_charge(__u64 *meter, __u64 cost, __u64 tolerance, __u64 now,
					 bool charge)
{
#pragma unroll
	for (int i = 0; i < RATE_TRIES; i++) {
		__u64 old = *(volatile __u64 *)meter, charged = time_ahead(old, now) + cost;

		if (charged > tolerance)
			return true;
		if (!charge || __sync_val_compare_and_swap(meter, old, now + charged) == old)
			return false;
	}
	return true; /* many CPUs at once charge the same limit: it is busy */
}

/* Does the packet exceed the rule's limit? Charges it when it does not. */
static __always_inline bool meter_exceeds(struct xdp_md *ctx, const struct policy_rule *rule,
					  bool charge)
{
	__u64 cost = rate_cost(ctx, rule), now = rate_now();
	__u32 index = rule->meter;
	__u64 *meter = bpf_map_lookup_elem(&meters, &index);

	return !meter || meter_charge(meter, cost, rule->tolerance, now, charge);
}

/* The address that a limit is kept for, in host order; of IPv4 in `high`. By value. */
struct rate_addr {
	__u64 high, low;
	__u32 family;
};

static __always_inline struct rate_addr rate_addr4(const __u32 *be)
{
	return (struct rate_addr){bpf_ntohl(*be), 0, 4};
}

static __always_inline struct rate_addr rate_addr6(const __u32 *be)
{
	return (struct rate_addr){address_half(be), address_half(be + 2), 6};
}

/* 64 bits of a keyed hash of its first bits and of the port. The port joins after the first
 * rounds, where no sender knows which bits of an address it would cancel. */
static __always_inline __u64 rate_hash(const struct rate_addr a, __u32 port,
				       const struct policy_rule *rule)
{
	__u64 high = a.high, low = 0, h;

	if (a.family == 6) {
		__u8 len = rule->mask6;

		low = a.low & (len > 64 ? ~0ull << ((128 - len) & 63) : 0);
		high &= len > 64 ? ~0ull : len ? ~0ull << ((64 - len) & 63) : 0;
	} else {
		high &= rule->mask4 ? ~0u << ((32 - rule->mask4) & 31) : 0;
	}
	h = (high ^ knobs.seed ^ a.family) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 32 ^ low) * (knobs.seed | 1);
	h = (h ^ h >> 29 ^ port) * 0xbf58476d1ce4e5b9ull;
	return h ^ h >> 32;
}

static __always_inline int bucket_idlest(const struct policy_bucket_line *line, __u64 now)
{
	__u64 least = ~0ull;
	int idlest = 0;

#pragma unroll
	for (int i = 0; i < POLICY_BUCKETS; i++) {
		__u64 ahead = time_ahead(line->time[i], now);

		if (ahead < least) {
			least = ahead;
			idlest = i;
		}
	}
	return idlest;
}

/* The place of the tag in the line, else the idlest one. */
static __always_inline int bucket_find(const struct policy_bucket_line *line, __u32 tag, __u64 now)
{
#pragma unroll
	for (int i = 0; i < POLICY_BUCKETS; i++)
		if (line->tag[i] == tag)
			return i;
	return bucket_idlest(line, now);
}

/* Writes a bucket that was {was, old}; false when another CPU was faster. The time is written
 * first: otherwise the new address would be seen with the time of the one that it replaces. */
static __always_inline bool bucket_write(struct policy_bucket_line *line, int place, __u32 was,
					 __u64 old, __u32 tag, __u64 time)
{
	if (__sync_val_compare_and_swap(&line->time[place], old, time) != old)
		return false;
	return was == tag || __sync_val_compare_and_swap(&line->tag[place], was, tag) == was;
}

/* One attempt to charge a bucket of the line: 1: the limit is exceeded, 0: it is not, -1: another
 * CPU was faster. */
static __always_inline int bucket_charge(struct policy_bucket_line *line, __u32 tag, __u64 cost,
					 __u64 now, __u64 tolerance, bool charge)
{
	int place = bucket_find(line, tag, now);
	__u32 was = line->tag[place];
	__u64 old = line->time[place], ahead = time_ahead(old, now), charged = cost;

	if (was == tag)
		charged += ahead;
	if (charged > tolerance)
		return 1;
	if (!charge)
		return 0;
	if (!bucket_write(line, place, was, old, tag, now + charged))
		return -1;
	if (was != tag && ahead)
		tally(TALLY_LIMIT_PUSHED);
	return 0;
}

/* The line of the table of the rule where the bucket of the hash is. */
static __always_inline struct policy_bucket_line *bucket_line(const struct policy_rule *rule,
							      __u64 hash)
{
	__u32 number = rule->meter, index = hash & (rule->meter_lines - 1);
	void *table = bpf_map_lookup_elem(&buckets, &number);

	return table ? bpf_map_lookup_elem(table, &index) : NULL;
}

/* The same for the bucket of an address and a port; port 0: of the address. */
static __always_inline bool bucket_exceeds(struct xdp_md *ctx, const struct rate_addr a, __u32 port,
					   const struct policy_rule *rule, bool charge)
{
	__u64 cost = rate_cost(ctx, rule), now = rate_now();
	__u64 hash = rate_hash(a, port, rule);
	__u32 tag = hash >> 32 | 1;
	struct policy_bucket_line *line = bucket_line(rule, hash);

	if (!line)
		return true;
#pragma unroll
	for (int i = 0; i < RATE_TRIES; i++) {
		int exceeds = bucket_charge(line, tag, cost, now, rule->tolerance, charge);

		if (exceeds >= 0)
			return exceeds;
	}
	return true;
}
