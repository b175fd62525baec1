/* SPDX-License-Identifier: GPL-2.0-only */
/* Dynamic sets: addresses that rules and `weir block --set` add, each with an expiry. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/policy.h"
#include "xdp/marker.bpf.h"
#include "xdp/packet.bpf.h"
#include "xdp/tables.bpf.h"
#include "xdp/test.bpf.h"

/* The sets outlive the policy, so each is a separate map; an element without a set stays empty. If
 * a set is full, the least recently used address is removed. */
struct set_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(struct policy_set_key));
	__uint(value_size, sizeof(struct policy_set_value));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, POLICY_SETS_MAX);
	__type(key, __u32);
	__array(values, struct set_map);
} sets SEC(".maps");

/* The first `bits` bits of a word of an address, at most 32. */
static __always_inline __u32 first_bits(__u32 word, int bits)
{
	return bits >= 32 ? word : bits > 0 ? word & bpf_htonl(~0u << ((32 - bits) & 31)) : 0;
}

static __always_inline void set_key(const struct packet *pkt, __u32 set, bool source,
				    struct policy_set_key *key)
{
	const __u32 *addr = source ? pkt->src : pkt->dst;
	int len;

	set &= POLICY_SETS_MAX - 1;
	key->family = pkt->family;
	if (pkt->family == 4) {
		key->addr[0] = first_bits(addr[0], policy.set_mask4[set]);
		key->addr[1] = key->addr[2] = key->addr[3] = 0;
		return;
	}
	len = policy.set_mask6[set];
#pragma unroll
	for (int i = 0; i < 4; i++)
		key->addr[i] = first_bits(addr[i], len - 32 * i);
}

/* set_contains() of a policy with sets that count. Neither expired entries nor test packets
 * count. */
__noinline int counting_set_contains(struct packet *pkt, __u32 set, __u32 source)
{
	struct policy_set_key key;
	struct policy_set_value *value;
	void *map = bpf_map_lookup_elem(&sets, &set);

	if (!map || !pkt || !pkt->family)
		return 0;
	set_key(pkt, set, source, &key);
	value = bpf_map_lookup_elem(map, &key);
	if (!value || bpf_jiffies64() >= value->until)
		return 0;
	if (!is_test() && policy.set_counts[set & (POLICY_SETS_MAX - 1)])
		__sync_fetch_and_add(&value->packets, 1);
	return 1;
}

/* Global, as set_add: their keys would make the stack of the rules' callers too large (kernel 6.1
 * counts 512 bytes over the whole chain of calls). 1 or 0. */
__noinline int set_contains(struct packet *pkt, __u32 set, __u32 source)
{
	struct policy_set_key key;
	struct policy_set_value *value;
	void *map;

	if (marker_is(MARK_SET_COUNTS, 1))
		return counting_set_contains(pkt, set, source);
	map = bpf_map_lookup_elem(&sets, &set);
	if (!map || !pkt || !pkt->family)
		return 0;
	set_key(pkt, set, source, &key);
	value = bpf_map_lookup_elem(map, &key);
	return value && bpf_jiffies64() < value->until;
}

/* Adds the address or renews its expiry. */
__noinline int set_add(struct packet *pkt, __u32 set, __u32 source, __u64 ticks)
{
	__u64 until = ticks ? bpf_jiffies64() + ticks : ~0ull;
	struct policy_set_value *value;
	struct policy_set_key key;
	void *map = bpf_map_lookup_elem(&sets, &set);

	if (!map || !pkt || !pkt->family)
		return 0;
	set_key(pkt, set, source, &key);
	value = bpf_map_lookup_elem(map, &key);
	if (value) {
		value->until = until;
	} else {
		struct policy_set_value fresh = {.until = until};

		bpf_map_update_elem(map, &key, &fresh, BPF_ANY);
	}
	return 0;
}
