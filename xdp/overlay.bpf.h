/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "overlay": looks up the entries of `weir block` and `weir allow`.
 *
 * Any allow, host or prefix, beats any block. Only the kinds of entries that exist are looked up.
 * overlay4 and overlay6 decide by the hosts, for packets that no prefix is near; overlay() decides
 * all. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/bounds.h"
#include "xdp/lines.bpf.h"
#include "xdp/lpm.bpf.h"
#include "xdp/maps.bpf.h"
#include "xdp/marker.bpf.h"
#include "xdp/order.bpf.h"
#include "xdp/packet.bpf.h"
#include "xdp/test.bpf.h"

struct {
	LPM_MAP(struct overlay_net4_key, struct overlay_net);
	__uint(max_entries, WEIR_OVERLAY_MAX);
} nets4 SEC(".maps");

struct {
	LPM_MAP(struct overlay_net6_key, struct overlay_net);
	__uint(max_entries, WEIR_OVERLAY_MAX);
} nets6 SEC(".maps");

/* The map keeps its content when it is reused. */
struct overlay_near near SEC(".data.near");

/* A packet that overlay4 and overlay6 do not decide. */
#define OVERLAY_ASK (-2)

/* An address by value. IPv4: only `low`, in network order; IPv6: both halves in host order. */
struct overlay_addr {
	__u64 high, low;
};

/* The source and the destination of a packet. */
struct overlay_ends {
	struct overlay_addr src, dst;
};

/* The deciding entry: of a host, or of a prefix. */
struct overlay_found {
	__u64 host;
	struct overlay_net *net;
};

/* Read after what was seen. */
static __always_inline __u64 epoch_after(__u64 seen)
{
	return *(volatile const __u64 *)&knobs_after(seen)->epoch;
}

static __always_inline __u64 epoch_now(void)
{
	return *(volatile __u64 *)&knobs.epoch;
}

static __always_inline __u64 find_kinds(const struct overlay_addr *a, int family, __u32 kinds,
					__u64 epoch)
{
	return family == 4 ? overlay_find4(a->low, kinds, epoch)
			   : overlay_find6(a->high, a->low, kinds, epoch);
}

/* The entry of the address itself, of one direction: an allow before a block. */
static __always_inline __u64 find_host(const struct overlay_addr *a, int family, __u32 kinds,
				       __u64 epoch)
{
	__u64 found = find_kinds(a, family, kinds, epoch), seen;

	if (likely(!(found & FOUND_PAIRED)))
		return found;
	found = find_kinds(a, family, kinds & OVERLAY_KINDS_ALLOW, epoch);
	seen = BOUND_HIDE(found);
	if (found)
		return found;
	return find_kinds(a, family, kinds & ~OVERLAY_KINDS_ALLOW, AFTER(epoch, seen));
}

/* Read after *epoch, and before later reads that follow *epoch. */
static __always_inline bool bit_is_set(const __u64 *bits, __u32 n, __u64 *epoch)
{
	__u64 word = *(volatile const __u64 *)&bits[n >> 6 & (OVERLAY_NEAR_WORDS - 1)];

	*epoch = AFTER(*epoch, word);
	return word >> (n & 63) & 1;
}

/* Can there be a prefix around the address? */
static __always_inline bool is_near(const struct overlay_addr *a, int family, bool from,
				    __u64 *epoch)
{
	const struct overlay_near *n = AFTER(&near, *epoch);

	if (family == 4)
		return bit_is_set(from ? n->from4 : n->to4, bpf_ntohl(a->low) >> 16, epoch);
	return bit_is_set(from ? n->from6 : n->to6, overlay_near6(a->high >> 32), epoch);
}

static __always_inline struct overlay_net *net_around(const struct overlay_addr *a, int family,
						      int kind)
{
	if (family == 4) {
		struct overlay_net4_key key = {.prefixlen = OVERLAY_NET_KIND_BITS + 32,
					       .kind = kind};
		__u32 addr = a->low;

		__builtin_memcpy(key.addr, &addr, sizeof(key.addr));
		return bpf_map_lookup_elem(&nets4, &key);
	} else {
		struct overlay_net6_key key = {.prefixlen = OVERLAY_NET_KIND_BITS + 128,
					       .kind = kind};
		__u64 addr[2] = {bpf_cpu_to_be64(a->high), bpf_cpu_to_be64(a->low)};

		__builtin_memcpy(key.addr, addr, sizeof(key.addr));
		return bpf_map_lookup_elem(&nets6, &key);
	}
}

/* Is an entry of this kind active for a prefix around the address? */
static __always_inline bool net_decides(const struct overlay_addr *a, int family, __u32 want,
					int kind, __u64 epoch, struct overlay_found *found)
{
	struct overlay_net *net;

	if (!(want & (family == 4 ? OVERLAY_NETS4 : OVERLAY_NETS6) << kind))
		return false;
	net = net_around(a, family, kind);
	if (!net)
		return false;
	if (bpf_jiffies64() >= overlay_net_until(net, epoch))
		return false;
	*found = (struct overlay_found){.net = net};
	return true;
}

#define WANT_FROM(family)  ((family) == 4 ? OVERLAY_HOSTS4_FROM : OVERLAY_HOSTS6_FROM)
#define WANT_TO(family)    ((family) == 4 ? OVERLAY_HOSTS4_TO : OVERLAY_HOSTS6_TO)
#define WANT_NETS(family)  (((family) == 4 ? OVERLAY_NETS4 : OVERLAY_NETS6) * 15)
#define FOUND_ALLOW(found) ((found)&OVERLAY_KINDS_ALLOW)

/* ---- only hosts ------------------------------------------------------------------------------ */

static __always_inline void hit_host(const struct line_host *h, int family, __u32 bytes)
{
	if (is_test())
		return;
	if (likely(h->counter))
		count_small(family == 6, h->found, h->counter, bytes);
	else
		overlay_count(family == 6, h->found, bytes);
}

/* Counts and returns the entry's decision. An allowed packet may be for a service: nothing is
 * counted before that is known. */
static __always_inline int decided_by(const struct line_host *h, int family, int block,
				      __u32 length)
{
	if (!h->found)
		return GO_ON;
	if (!marker_is(MARK_BALANCES, 0) && FOUND_ALLOW(h->found))
		return OVERLAY_ASK;
	hit_host(h, family, length);
	return FOUND_ALLOW(h->found) ? REASON_PASS_ALLOW : block;
}

/* Decides by entries of one direction. */
static __always_inline int decide_side(const struct overlay_addr *a, int family, __u32 kinds,
				       int block, const struct knobs *k, __u64 epoch, __u32 length)
{
	struct line_host h =
		family == 4 ? look4(a->low, kinds, k) : look6(a->high, a->low, kinds, k);

	if (unlikely(h.ask)) {
		h = (struct line_host){.found = find_host(a, family, kinds, epoch)};
		h.absent = BOUND_HIDE(h.found);
	}
	if (!h.found)
		return likely(epoch_after(h.absent) == epoch) ? GO_ON : OVERLAY_ASK;
	return likely(epoch_after(h.found) == epoch) ? decided_by(&h, family, block, length)
						     : OVERLAY_ASK;
}

/* Decides by entries of both. */
static __always_inline int decide_sides(const struct overlay_ends *ends, int family, __u64 epoch,
					__u32 length)
{
	__u64 from = find_host(&ends->src, family, OVERLAY_KINDS_FROM, epoch), to = 0;
	struct line_host h;

	if (!FOUND_ALLOW(from))
		to = find_host(&ends->dst, family, OVERLAY_KINDS_TO, epoch);
	if (unlikely(epoch_after(AFTER(to, from)) != epoch))
		return OVERLAY_ASK;
	h = (struct line_host){.found = FOUND_ALLOW(to) || !from ? to : from};
	return decided_by(&h, family, from ? REASON_DROP_BLOCK_FROM : REASON_DROP_BLOCK_TO, length);
}

/* One reading of the epoch decides the whole packet: after a commit in between, it must not fall
 * between two entries. The epoch is read before the kinds that exist, and those before the entries:
 * as the command writes them, the other way round. It is read again after all look-ups. */
static __always_inline int decide_hosts(const struct overlay_ends *ends, int family, __u32 length)
{
	__u64 epoch = epoch_now();
	const struct knobs *k = knobs_after(epoch);
	__u32 want = *(volatile const __u32 *)&k->overlay;
	const __u32 from = WANT_FROM(family), to = WANT_TO(family);

	epoch = AFTER(epoch, want);
	if (want & WANT_NETS(family) && (is_near(&ends->src, family, true, &epoch) ||
					 is_near(&ends->dst, family, false, &epoch)))
		return OVERLAY_ASK;
	k = AFTER(k, epoch);
	if (unlikely((want & from) && (want & to)))
		return decide_sides(ends, family, epoch, length);
	if (want & from)
		return decide_side(&ends->src, family, OVERLAY_KINDS_FROM, REASON_DROP_BLOCK_FROM,
				   k, epoch, length);
	if (want & to)
		return decide_side(&ends->dst, family, OVERLAY_KINDS_TO, REASON_DROP_BLOCK_TO, k,
				   epoch, length);
	return GO_ON;
}

/* The short ways: REASON_PASS_ALLOW or REASON_DROP_BLOCK_*, counted; GO_ON: no entry is active;
 * OVERLAY_ASK: overlay() must decide. Addresses are as in struct overlay_addr; length is the IP
 * packet's. */
__noinline int overlay4(__u32 src, __u32 dst, __u32 length)
{
	const struct overlay_ends ends = {{0, src}, {0, dst}};

	return decide_hosts(&ends, 4, length);
}

__noinline int overlay6(__u64 src_high, __u64 src_low, __u64 dst_high, __u64 dst_low, __u32 length)
{
	const struct overlay_ends ends = {{src_high, src_low}, {dst_high, dst_low}};

	return decide_hosts(&ends, 6, length);
}

/* ---- all entries ----------------------------------------------------------------------------- */

/* Bits of knobs.overlay: entries of both directions, or those for a destination. */
#define WANT_ALL (~0u)
#define WANT_TO_ONLY                                           \
	(OVERLAY_HOSTS4_TO | OVERLAY_HOSTS6_TO |               \
	 (OVERLAY_NETS4 | OVERLAY_NETS6) << OVERLAY_BLOCK_TO | \
	 (OVERLAY_NETS4 | OVERLAY_NETS6) << OVERLAY_ALLOW_TO)

/* Decides by all entries of `only`. A host precedes a prefix. */
static __always_inline int decide_all(const struct overlay_ends *ends, int family, __u32 only,
				      __u64 epoch, struct overlay_found *found)
{
	const struct overlay_addr *src = &ends->src, *dst = &ends->dst;
	__u32 want = *(volatile __u32 *)&knobs.overlay & only;
	bool near_src = want & WANT_NETS(family) && is_near(src, family, true, &epoch);
	bool near_dst = want & WANT_NETS(family) && is_near(dst, family, false, &epoch);
	__u64 from = 0, to = 0;

	if (want & WANT_FROM(family))
		from = find_host(src, family, OVERLAY_KINDS_FROM, epoch);
	if (want & WANT_TO(family))
		to = find_host(dst, family, OVERLAY_KINDS_TO, epoch);
	if (FOUND_ALLOW(from)) {
		found->host = from;
		return REASON_PASS_ALLOW;
	}
	if (near_src && net_decides(src, family, want, OVERLAY_ALLOW_FROM, epoch, found))
		return REASON_PASS_ALLOW;
	if (FOUND_ALLOW(to)) {
		found->host = to;
		return REASON_PASS_ALLOW;
	}
	if (near_dst && net_decides(dst, family, want, OVERLAY_ALLOW_TO, epoch, found))
		return REASON_PASS_ALLOW;
	if (from) {
		found->host = from;
		return REASON_DROP_BLOCK_FROM;
	}
	if (near_src && net_decides(src, family, want, OVERLAY_BLOCK_FROM, epoch, found))
		return REASON_DROP_BLOCK_FROM;
	if (to) {
		found->host = to;
		return REASON_DROP_BLOCK_TO;
	}
	if (near_dst && net_decides(dst, family, want, OVERLAY_BLOCK_TO, epoch, found))
		return REASON_DROP_BLOCK_TO;
	return GO_ON;
}

static __always_inline void hit(const struct overlay_found *found, int family, __u32 bytes)
{
	if (is_test())
		return;
	if (found->host) {
		overlay_count(family == 6, found->host, bytes);
	} else if (found->net) {
		__sync_fetch_and_add(&found->net->hits.packets, 1);
		__sync_fetch_and_add(&found->net->hits.bytes, bytes);
		found->net->seen = bpf_jiffies64();
	}
}

/* The whole overlay. A commit between the reading of the epoch and the look-ups, some of which may
 * have met what the command did after it: once more, with the new epoch. No address orders what the
 * helper reads in a trie, so there are barriers. */
static __always_inline int overlay_whole(__u32 length, int family, __u32 only,
					 const struct overlay_ends *ends)
{
	struct overlay_found found = {};
	__u64 epoch = epoch_now();
	int reason;

	read_barrier();
	reason = decide_all(ends, family, only, epoch, &found);
	read_barrier();
	if (unlikely(epoch_now() != epoch)) {
		found = (struct overlay_found){};
		epoch = epoch_now();
		read_barrier();
		reason = decide_all(ends, family, only, epoch, &found);
	}
	hit(&found, family, length);
	return reason;
}

__noinline int overlay_whole4(struct packet *pkt)
{
	struct overlay_ends ends = {};

	if (!pkt)
		return REASON_DROP_INTERNAL;
	ends.src.low = pkt->src[0];
	ends.dst.low = pkt->dst[0];
	return overlay_whole(pkt->length, 4, WANT_ALL, &ends);
}

static __always_inline struct overlay_addr addr6(const __u32 *words)
{
	return (struct overlay_addr){
		.high = (__u64)bpf_ntohl(words[0]) << 32 | bpf_ntohl(words[1]),
		.low = (__u64)bpf_ntohl(words[2]) << 32 | bpf_ntohl(words[3]),
	};
}

__noinline int overlay_whole6(struct packet *pkt)
{
	struct overlay_ends ends;

	if (!pkt)
		return REASON_DROP_INTERNAL;
	ends.src = addr6(pkt->src);
	ends.dst = addr6(pkt->dst);
	return overlay_whole(pkt->length, 6, WANT_ALL, &ends);
}

/* Only entries for the destination: REASON_PASS_ALLOW, REASON_DROP_BLOCK_TO, or GO_ON. Addresses
 * are as in struct overlay_addr. */
__noinline int overlay_to4(__u32 dst, __u32 length)
{
	const struct overlay_ends ends = {.dst = {0, dst}};

	return overlay_whole(length, 4, WANT_TO_ONLY, &ends);
}

__noinline int overlay_to6(__u64 dst_high, __u64 dst_low, __u32 length)
{
	const struct overlay_ends ends = {.dst = {dst_high, dst_low}};

	return overlay_whole(length, 6, WANT_TO_ONLY, &ends);
}

/* REASON_PASS_ALLOW, REASON_DROP_BLOCK_*, or GO_ON. Neighbour discovery is never cut here. */
static __always_inline int overlay(struct packet *pkt)
{
	if (!knobs.overlay || !pkt->family || pkt->neighbour)
		return GO_ON;
	if (is_test() && !test_is_live())
		return GO_ON; /* an expect line sees only the policy */
	return pkt->family == 4 ? overlay_whole4(pkt) : overlay_whole6(pkt);
}
