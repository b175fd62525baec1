/* SPDX-License-Identifier: GPL-2.0-only */
/* When several notices of routers agree that a path carries less than a single notice may claim.
 *
 * One forged notice must not take a protocol from a backend whose packets may not be shorter: QUIC
 * (RFC 9000 section 14.1), IPv6 (RFC 8200 section 5). So a notice of a smaller size counts only if
 * it quotes a flow with a living pin to the backend. The third flow within a minute decides; the
 * largest of the three sizes counts. A sender that sees no packets does not know what to quote; a
 * client with three pinned connections can still do it (docs/balancer.md). */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp/pins.bpf.h"

/* By number of the backend: the reports of flows so far, {mtu 16, flow 16, flow 16, time 16}; a
 * flow is a part of its hash, 0: none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SERVICE_BACKENDS);
	__type(key, __u32);
	__type(value, __u64);
} pathvotes SEC(".maps");

#define PATH_MTU_SHIFT 8 /* of {mtu, proto} below */

/* The least MTU that notices can set. */
static __always_inline __u32 path_least_ever(__u32 family)
{
	return family == 4 ? SERVICE_PATH_MIN4 : SERVICE_PATH_MIN6;
}

/* Does the flow have a living pin to this backend? */
static __always_inline bool flow_is_pinned(const struct service *s, __u32 service, __u32 backend,
					   __u64 hash, __u32 proto, __u32 time)
{
	struct pin_bucket *bucket = bucket_at(s, service, hash);
	__u32 life = proto == IPPROTO_UDP ? s->life_udp : s->life_tcp;

	return bucket && pin_backend(pin_find(s, bucket, pin_flow_of(hash), time, life)) == backend;
}

static __always_inline __u64 vote_pack(__u64 mtu, __u64 first, __u64 second, __u32 time)
{
	return mtu << 48 | first << 32 | second << 16 | (time & 0xffff);
}

/* A notice of {mtu, proto} quotes the flow with this hash of its tuple. The size that its third
 * flow agrees to; 0: not yet. Global: verified once. */
__noinline int path_agree(__u32 service, __u32 backend, __u64 hash, __u32 said)
{
	const struct service *s = service_at(service);
	__u64 *vote = bpf_map_lookup_elem(&pathvotes, &backend), old;
	__u32 mtu = said >> PATH_MTU_SHIFT, time, before, first, second, flow = hash >> 32 & 0xffff;

	if (!s || !vote || is_test())
		return 0;
	time = pin_time(now_jiffies(), s->pin_shift & 31);
	if (!flow_is_pinned(s, service, backend, hash, said & 0xff, time))
		return 0;
	old = *(volatile __u64 *)vote;
	first = old >> 32 & 0xffff;
	second = old >> 16 & 0xffff;
	before = old >> 48;
	flow |= !flow; /* 0 is no flow */
	if (!first || path_age(old & 0xffff, time) > s->linger) {
		__sync_val_compare_and_swap(vote, old, vote_pack(mtu, flow, 0, time));
		return 0;
	}
	if (mtu < before)
		mtu = before;
	if (flow == first || flow == second)
		return 0;
	if (!second) {
		__sync_val_compare_and_swap(vote, old, vote_pack(mtu, first, flow, old & 0xffff));
		return 0;
	}
	return __sync_val_compare_and_swap(vote, old, 0) == old ? (int)mtu : 0;
}
