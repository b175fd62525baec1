/* SPDX-License-Identifier: GPL-2.0-only */
/* Dynamic sets: addresses that rules and `weir block --set` add, each with an expiry. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/policy.h"
#include "xdp/packet.bpf.h"
#include "xdp/tables.bpf.h"

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

static __always_inline void set_key(const struct packet *pkt, __u32 set, bool source,
				    struct policy_set_key *key)
{
	const __u32 *addr = source ? pkt->src : pkt->dst;
	__u8 len = pkt->family == 4 ? policy.set_mask4[set & (POLICY_SETS_MAX - 1)]
				    : policy.set_mask6[set & (POLICY_SETS_MAX - 1)];

	key->family = pkt->family;
#pragma unroll
	for (int i = 0; i < 4; i++) {
		int bits = len - 32 * i;

		key->addr[i] = bits >= 32 ? addr[i]
			       : bits > 0 ? addr[i] & bpf_htonl(~0u << ((32 - bits) & 31))
					  : 0;
	}
}

/* Global, as set_add: their keys would make the stack of the rules' callers too large (kernel 6.1
 * counts 512 bytes over the whole chain of calls). 1 or 0. */
__noinline int set_contains(struct packet *pkt, __u32 set, __u32 source)
{
	struct policy_set_key key;
	struct policy_set_value *value;
	void *map = bpf_map_lookup_elem(&sets, &set);

	if (!map || !pkt || !pkt->family)
		return 0;
	set_key(pkt, set, source, &key);
	value = bpf_map_lookup_elem(map, &key);
	return value && bpf_jiffies64() < value->until;
}

/* Adds the address or renews its expiry. */
__noinline int set_add(struct packet *pkt, __u32 set, __u32 source, __u64 ticks)
{
	struct policy_set_value fresh = {.until = ticks ? bpf_jiffies64() + ticks : ~0ull};
	struct policy_set_value *value;
	struct policy_set_key key;
	void *map = bpf_map_lookup_elem(&sets, &set);

	if (!map || !pkt || !pkt->family)
		return 0;
	set_key(pkt, set, source, &key);
	value = bpf_map_lookup_elem(map, &key);
	if (value)
		value->until = fresh.until;
	else
		bpf_map_update_elem(map, &key, &fresh, BPF_ANY);
	return 0;
}
