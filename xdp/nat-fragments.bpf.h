/* SPDX-License-Identifier: GPL-2.0-only */
/* Later fragments of nat and fullnat: they have no ports, so the connection is known by their first
 * one.
 *
 * A later fragment that comes before the first one finds nothing. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "common/policy.h"
#include "xdp/jiffies.bpf.h"
#include "xdp/nat-frame.bpf.h"
#include "xdp/reply.bpf.h"

#define NAT_FRAGMENTS   4096
#define NAT_FRAGMENTS_S 5

/* All fragments of a packet have this in common (RFC 791 section 3.2, RFC 8200 section 4.5), as
 * they arrive. */
struct nat_fragment_key {
	__u32 src[4], dst[4];
	__u32 id;   /* network order */
	__u8 proto; /* IPv4 only: in IPv6 it may differ between fragments */
	__u8 back;  /* an answer */
	__u16 pad;
};

struct nat_fragment {
	struct nat_key key; /* of the connection */
	__u64 place;
	__u64 until; /* jiffies */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, NAT_FRAGMENTS);
	__type(key, struct nat_fragment_key);
	__type(value, struct nat_fragment);
} nat_fragments SEC(".maps");

/* false: the header that has the number is out of reach. */
static __always_inline bool nat_fragment_id(const struct xdp_md *ctx, const struct packet *pkt,
					    __u32 *ret)
{
	const struct ip6_ext *ext;
	const struct iphdr *ip;

	if (pkt->family == 4) {
		if (!(ip = header_at(ctx, pkt->l3_offset & L3_OFFSET_MAX, sizeof(*ip))))
			return false;
		*ret = ip->id;
		return true;
	}
	if (!(ext = nat_bytes_at(ctx, pkt->fragment_at, sizeof(*ext))))
		return false;
	*ret = ext->id;
	return true;
}

static __always_inline bool nat_fragment_key_of(const struct xdp_md *ctx, const struct packet *pkt,
						bool back, struct nat_fragment_key *ret)
{
	__builtin_memcpy(ret->src, pkt->src, sizeof(ret->src));
	__builtin_memcpy(ret->dst, pkt->dst, sizeof(ret->dst));
	ret->proto = pkt->family == 4 ? pkt->proto : 0;
	ret->back = back;
	return nat_fragment_id(ctx, pkt, &ret->id);
}

/* Remembers the connection of a first fragment. back: 1: of an answer. */
__noinline int nat_fragment_note(struct xdp_md *ctx, struct packet *pkt, __u32 back)
{
	const struct nat_course *c = nat_course_get();
	struct nat_fragment_key key = {};
	struct nat_fragment first;

	if (!pkt || !c || is_test() || !nat_fragment_key_of(ctx, pkt, back, &key))
		return 0;
	first.key = c->held.key;
	first.place = c->place;
	first.until = now_jiffies() + NAT_FRAGMENTS_S * (reply_second >> RATE_SHIFT);
	bpf_map_update_elem(&nat_fragments, &key, &first, BPF_ANY);
	return 0;
}

/* The connection of a later fragment in the course. 0: its first one has not come, or the
 * connection has ended. */
__noinline int nat_fragment_find(struct xdp_md *ctx, struct packet *pkt, __u32 back)
{
	struct nat_course *c = nat_course_get();
	const struct nat_fragment *first;
	struct nat_fragment_key key = {};

	if (!pkt || !c || !nat_fragment_key_of(ctx, pkt, back, &key))
		return 0;
	first = bpf_map_lookup_elem(&nat_fragments, &key);
	if (!first || (__s64)(now_jiffies() - first->until) >= 0)
		return 0;
	c->place = first->place;
	if (!(pkt->family == 4 ? nat_hold(4, c->place, &c->held) : nat_hold(6, c->place, &c->held)))
		return 0;
	c->end = c->held.key.last >> NAT_END_SHIFT;
	return !nat_keys_differ(&c->held.key, &first->key, ~0ull);
}
