/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "overlay": what `weir allow` and `weir block` put before the policy. Any allow, host or prefix,
 * beats any block. Only the kinds of entries that exist are looked up. */
#pragma once

#include <bpf/bpf_helpers.h>

#include "xdp/maps.bpf.h"
#include "xdp/packet.bpf.h"
#include "xdp/twin.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_OVERLAY_MAX);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct overlay_host));
} hosts4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_OVERLAY_MAX);
	__uint(key_size, 16);
	__uint(value_size, sizeof(struct overlay_host));
} hosts6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WEIR_OVERLAY_MAX);
	__uint(key_size, sizeof(struct overlay_net4_key));
	__uint(value_size, sizeof(struct overlay_net));
} nets4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WEIR_OVERLAY_MAX);
	__uint(key_size, sizeof(struct overlay_net6_key));
	__uint(value_size, sizeof(struct overlay_net));
} nets6 SEC(".maps");

/* The entries that know this packet; NULL where none does or none was looked for. */
struct overlay_found {
	struct overlay_host *src, *dst;
	struct overlay_net *net[OVERLAY_KINDS];
};

/* One reading of clock and epoch decides the whole packet: a commit in the middle of it must not let it
 * fall between two entries. */
struct overlay_moment {
	__u64 now, epoch;
};

static __always_inline bool committed(__u64 epoch, const struct overlay_moment *at)
{
	return epoch && epoch <= at->epoch;
}

static __always_inline bool host_in_force(const struct overlay_host *host, int kind,
					  const struct overlay_moment *at)
{
	return host && at->now < (committed(host->epoch, at) ? host->next[kind] : host->now[kind]);
}

static __always_inline bool net_in_force(const struct overlay_net *net,
					 const struct overlay_moment *at)
{
	return net && at->now < (committed(net->epoch, at) ? net->next : net->now);
}

static __always_inline void hit(struct overlay_hits *hits, __u64 *seen, __u32 bytes, __u64 now)
{
	if (config.twin)
		return;
	__sync_fetch_and_add(&hits->packets, 1);
	__sync_fetch_and_add(&hits->bytes, bytes);
	*seen = now;
}

/* Does an entry of this kind decide? Then it is counted there. */
static __always_inline bool kind_decides(const struct overlay_found *found, int kind, __u32 bytes,
					 const struct overlay_moment *at)
{
	bool from = kind == OVERLAY_BLOCK_FROM || kind == OVERLAY_ALLOW_FROM;
	struct overlay_host *host = from ? found->src : found->dst;
	struct overlay_net *net = found->net[kind];

	if (host_in_force(host, kind, at))
		hit(&host->hits[kind], &host->seen, bytes, at->now);
	else if (net_in_force(net, at))
		hit(&net->hits, &net->seen, bytes, at->now);
	else
		return false;
	return true;
}

static __always_inline void find4(const struct packet *pkt, __u32 want, struct overlay_found *found)
{
	if (want & OVERLAY_HOSTS4_FROM)
		found->src = bpf_map_lookup_elem(&hosts4, &pkt->src[0]);
	if (want & OVERLAY_HOSTS4_TO)
		found->dst = bpf_map_lookup_elem(&hosts4, &pkt->dst[0]);
#pragma unroll
	for (int kind = 0; kind < OVERLAY_KINDS; kind++) {
		bool from = kind == OVERLAY_BLOCK_FROM || kind == OVERLAY_ALLOW_FROM;
		struct overlay_net4_key key = {.prefixlen = OVERLAY_NET_KIND_BITS + 32,
					       .kind = kind};

		if (!(want & OVERLAY_NETS4 << kind))
			continue;
		__builtin_memcpy(key.addr, from ? pkt->src : pkt->dst, sizeof(key.addr));
		found->net[kind] = bpf_map_lookup_elem(&nets4, &key);
	}
}

static __always_inline void find6(const struct packet *pkt, __u32 want, struct overlay_found *found)
{
	if (want & OVERLAY_HOSTS6_FROM)
		found->src = bpf_map_lookup_elem(&hosts6, pkt->src);
	if (want & OVERLAY_HOSTS6_TO)
		found->dst = bpf_map_lookup_elem(&hosts6, pkt->dst);
#pragma unroll
	for (int kind = 0; kind < OVERLAY_KINDS; kind++) {
		bool from = kind == OVERLAY_BLOCK_FROM || kind == OVERLAY_ALLOW_FROM;
		struct overlay_net6_key key = {.prefixlen = OVERLAY_NET_KIND_BITS + 128,
					       .kind = kind};

		if (!(want & OVERLAY_NETS6 << kind))
			continue;
		__builtin_memcpy(key.addr, from ? pkt->src : pkt->dst, sizeof(key.addr));
		found->net[kind] = bpf_map_lookup_elem(&nets6, &key);
	}
}

/* REASON_PASS_ALLOW, REASON_DROP_BLOCK_*, or GO_ON. Neighbour discovery is never cut here. */
static __always_inline int overlay(const struct packet *pkt)
{
	struct overlay_found found = {};
	__u32 want = knobs.overlay;
	struct overlay_moment at;

	if (!want || !pkt->family || pkt->neighbour)
		return GO_ON;
	if (config.twin && !twin_is_live())
		return GO_ON; /* an expect line sees the policy alone */
	if (pkt->family == 4)
		find4(pkt, want, &found);
	else
		find6(pkt, want, &found);
	at.now = bpf_jiffies64();
	at.epoch = *(volatile __u64 *)&knobs.epoch;
	if (kind_decides(&found, OVERLAY_ALLOW_FROM, pkt->length, &at) ||
	    kind_decides(&found, OVERLAY_ALLOW_TO, pkt->length, &at))
		return REASON_PASS_ALLOW;
	if (kind_decides(&found, OVERLAY_BLOCK_FROM, pkt->length, &at))
		return REASON_DROP_BLOCK_FROM;
	if (kind_decides(&found, OVERLAY_BLOCK_TO, pkt->length, &at))
		return REASON_DROP_BLOCK_TO;
	return GO_ON;
}
