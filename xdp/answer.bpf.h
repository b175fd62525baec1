/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "answer": takes the answers of backends to checks through the path (common/answer.h),
 * before any rule. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/answer.h"
#include "xdp/jiffies.bpf.h"
#include "xdp/marker.bpf.h"
#include "xdp/packet.bpf.h"
#include "xdp/parse.bpf.h"
#include "xdp/station.bpf.h"
#include "xdp/test.bpf.h"

/* Flows of checks, and until when they are awaited: an agent that was killed awaits nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ANSWER_PORTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct answer_key);
	__type(value, __u64);
} answers SEC(".maps");

/* May the packet be an answer? The port in network order. */
static __always_inline bool may_be_answer(__u32 dport)
{
	return !marker_is(MARK_ANSWERS, 0) &&
	       (dport & bpf_htons(ANSWER_PORT_MASK)) == bpf_htons(ANSWER_PORT_FIRST);
}

static __always_inline bool is_awaited(const struct packet *pkt)
{
	struct answer_key key = {.sport = pkt->sport, .dport = pkt->dport, .proto = pkt->proto};
	const __u64 *until;

	__builtin_memcpy(key.source, pkt->src, sizeof(key.source));
	__builtin_memcpy(key.dest, pkt->dst, sizeof(key.dest));
	until = bpf_map_lookup_elem(&answers, &key);
	return until && now_jiffies() < *(const volatile __u64 *)until;
}

/* Global: verified once. */
__noinline int answer_take(struct xdp_md *ctx, struct packet *pkt)
{
	__be16 *ethertype;

	if (!pkt || !is_awaited(pkt) || !is_for_us(ctx))
		return GO_ON;
	ethertype = header_at(ctx, (pkt->l3_offset - sizeof(*ethertype)) & L3_OFFSET_MAX,
			      sizeof(*ethertype));
	if (!ethertype)
		return GO_ON;
	*ethertype = bpf_htons(ANSWER_ETHERTYPE);
	return REASON_PASS_ANSWER;
}

static __always_inline int answer(struct xdp_md *ctx, struct packet *pkt)
{
	if (likely(!may_be_answer(bpf_htons(pkt->dport))) || !pkt->has_l4 || pkt->fragment ||
	    is_test())
		return GO_ON;
	return answer_take(ctx, pkt);
}
