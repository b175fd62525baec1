/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "overlay": looks up the entries of `weir block` and `weir allow`.
 *
 * Any allow, host or prefix, beats any block. Only the kinds of entries that exist are looked up. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp/maps.bpf.h"
#include "xdp/packet.bpf.h"
#include "xdp/test.bpf.h"

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

/* The counters of the entry that decided; NULL where none did. */
struct overlay_found {
	struct overlay_hits *hits;
	__u64 *seen;
};

/* One reading of clock and epoch decides the whole packet: a commit in the middle of it must not let it
 * fall between two entries. */
struct overlay_moment {
	__u64 now, epoch;
};

static __always_inline __u64 epoch_now(void)
{
	return *(volatile __u64 *)&knobs.epoch;
}

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

static __always_inline struct overlay_net *net4(const __u32 *addr, int kind)
{
	struct overlay_net4_key key = {.prefixlen = OVERLAY_NET_KIND_BITS + 32, .kind = kind};

	__builtin_memcpy(key.addr, addr, sizeof(key.addr));
	return bpf_map_lookup_elem(&nets4, &key);
}

static __always_inline struct overlay_net *net6(const __u32 *addr, int kind)
{
	struct overlay_net6_key key = {.prefixlen = OVERLAY_NET_KIND_BITS + 128, .kind = kind};

	__builtin_memcpy(key.addr, addr, sizeof(key.addr));
	return bpf_map_lookup_elem(&nets6, &key);
}

/* Is an entry of this kind in force for the address, the host or a network around it? */
static __always_inline bool kind_decides(const __u32 *addr, int family, __u32 want, int kind,
					 struct overlay_host *host, const struct overlay_moment *at,
					 struct overlay_found *found)
{
	struct overlay_net *net;

	if (host_in_force(host, kind, at)) {
		*found = (struct overlay_found){&host->hits[kind], &host->seen};
		return true;
	}
	if (!(want & (family == 4 ? OVERLAY_NETS4 : OVERLAY_NETS6) << kind))
		return false;
	net = family == 4 ? net4(addr, kind) : net6(addr, kind);
	if (!net_in_force(net, at))
		return false;
	*found = (struct overlay_found){&net->hits, &net->seen};
	return true;
}

static __always_inline struct overlay_host *find_host(const __u32 *addr, int family)
{
	return family == 4 ? bpf_map_lookup_elem(&hosts4, addr)
			   : bpf_map_lookup_elem(&hosts6, addr);
}

/* Whom a packet is from and to. */
struct overlay_ends {
	const __u32 *src, *dst;
	int family; /* 4 or 6 */
};

/* One kind after the other, so that the verifier follows one entry at a time. */
static __always_inline int decide_family(const struct overlay_ends *ends, int family, __u32 want,
					 const struct overlay_moment *at,
					 struct overlay_found *found)
{
	__u32 from = family == 4 ? OVERLAY_HOSTS4_FROM : OVERLAY_HOSTS6_FROM;
	__u32 to = family == 4 ? OVERLAY_HOSTS4_TO : OVERLAY_HOSTS6_TO;
	struct overlay_host *src = want & from ? find_host(ends->src, family) : NULL;
	struct overlay_host *dst = want & to ? find_host(ends->dst, family) : NULL;

	if (kind_decides(ends->src, family, want, OVERLAY_ALLOW_FROM, src, at, found) ||
	    kind_decides(ends->dst, family, want, OVERLAY_ALLOW_TO, dst, at, found))
		return REASON_PASS_ALLOW;
	if (kind_decides(ends->src, family, want, OVERLAY_BLOCK_FROM, src, at, found))
		return REASON_DROP_BLOCK_FROM;
	if (kind_decides(ends->dst, family, want, OVERLAY_BLOCK_TO, dst, at, found))
		return REASON_DROP_BLOCK_TO;
	return GO_ON;
}

/* The epoch is read before the kinds that exist, and those before the entries: as the command writes them,
 * the other way round. */
static __always_inline int decide_moment(const struct overlay_ends *ends, struct overlay_moment *at,
					 struct overlay_found *found)
{
	__u32 want;

	at->now = bpf_jiffies64();
	at->epoch = epoch_now();
	want = *(volatile __u32 *)&knobs.overlay;
	return ends->family == 4 ? decide_family(ends, 4, want, at, found)
				 : decide_family(ends, 6, want, at, found);
}

static __always_inline void hit(const struct overlay_found *found, __u32 bytes, __u64 now)
{
	if (config.test || !found->hits)
		return;
	__sync_fetch_and_add(&found->hits->packets, 1);
	__sync_fetch_and_add(&found->hits->bytes, bytes);
	*found->seen = now;
}

/* A commit came between the reading of the epoch and the look-ups, some of which may have met what the
 * command did after it: once more, with the new epoch. Kernel 6.1 takes keys from the stack only, not from
 * what a global function is handed. */
__noinline int overlay_again(struct packet *pkt)
{
	struct overlay_found found = {};
	struct overlay_moment at;
	__u32 src[4], dst[4];
	int reason;

	if (!pkt)
		return REASON_DROP_INTERNAL;
	__builtin_memcpy(src, pkt->src, sizeof(src));
	__builtin_memcpy(dst, pkt->dst, sizeof(dst));
	reason = decide_moment(&(struct overlay_ends){src, dst, pkt->family}, &at, &found);
	hit(&found, pkt->length, at.now);
	return reason;
}

/* REASON_PASS_ALLOW, REASON_DROP_BLOCK_*, or GO_ON. Neighbour discovery is never cut here. */
static __always_inline int overlay(struct packet *pkt)
{
	struct overlay_ends ends = {pkt->src, pkt->dst, pkt->family};
	struct overlay_found found = {};
	struct overlay_moment at;
	int reason;

	if (!knobs.overlay || !pkt->family || pkt->neighbour)
		return GO_ON;
	if (config.test && !test_is_live())
		return GO_ON; /* an expect line sees the policy alone */
	reason = decide_moment(&ends, &at, &found);
	if (unlikely(epoch_now() != at.epoch))
		return overlay_again(pkt);
	hit(&found, pkt->length, at.now);
	return reason;
}
