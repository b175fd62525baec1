/* SPDX-License-Identifier: GPL-2.0-only */
/* `over N connections per source`: reads how many connections the source of a packet has. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/connections.h"
#include "xdp/limit.bpf.h"
#include "xdp/marker.bpf.h"
#include "xdp/packet.bpf.h"

/* xdp/connections.bpf.c writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct connections_line);
} connections SEC(".maps");

static __always_inline __u32 connections_in(__u32 element, __u64 tag)
{
	const struct connections_line *line = bpf_map_lookup_elem(&connections, &element);
	__u32 n = 0;

	if (!line)
		return 0;
#pragma unroll
	for (int i = 0; i < CONNECTION_WORDS; i++) {
		__u64 word = *(volatile const __u64 *)&line->word[i];

		n += connection_tag(word) == tag ? word & ((1 << CONNECTION_COUNT) - 1) : 0;
	}
	return n;
}

static __always_inline __u32 connections_of(const struct packet *pkt,
					    const struct policy_rule *rule)
{
	const struct connection_rule by = {
		.mask4 = rule->mask4, .mask6 = rule->mask6, .ports = rule->per == PER_SOURCE_PORT};
	const struct connections_head *head;
	__u64 high = bpf_ntohl(pkt->src[0]), hash;
	__u32 zero = 0, from;

	head = bpf_map_lookup_elem(&connections, &zero);
	if (!head)
		return 0;
	high = pkt->family == 4 ? high << 32 : address_half(pkt->src);
	hash = connection_hash(head->seed, by, rule->connection_rule, pkt->family, high,
			       pkt->family == 4 ? 0 : address_half(pkt->src + 2),
			       by.ports ? pkt->dport : 0);
	from = 1 + (head->active & 1) * (__u32)head->lines;
	return connections_in(from + (__u32)connection_line(hash, head->lines, 0),
			      connection_tag(hash)) +
	       connections_in(from + (__u32)connection_line(hash, head->lines, 1),
			      connection_tag(hash));
}

/* Only the first packet of a connection gets here: the rule matches no other flags. Global: the
 * verifier takes it once. */
__noinline int connections_hold(struct packet *pkt, __u32 index)
{
	const struct policy_rule *rule = bpf_map_lookup_elem(&rules, &index);

	if (!rule || !pkt || !pkt->family)
		return 0;
	return connections_of(pkt, rule) >= rule->connections == !(rule->flags & RULE_UNDER);
}
