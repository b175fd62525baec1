/* SPDX-License-Identifier: GPL-2.0-only */
/* `established`: asks the kernel's connection tracking about the flow of a packet. */
#pragma once

#include <linux/bpf.h>
#include <linux/in.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "xdp/marker.bpf.h"
#include "xdp/packet.bpf.h"

struct nf_conn;

/* The kernel's options struct; only this prefix is ABI. */
struct bpf_ct_opts {
	__s32 netns_id;
	__s32 error;
	__u8 l4proto;
	__u8 dir;
	__u8 reserved[2];
};

static struct nf_conn *(*const bpf_xdp_ct_lookup)(struct xdp_md *ctx, struct bpf_sock_tuple *tuple,
						  __u32 tuple_size, struct bpf_ct_opts *opts,
						  __u32 opts_size) = (void *)MARKER_CALL_LOOKUP;
static void (*const bpf_ct_release)(struct nf_conn *ct) = (void *)MARKER_CALL_RELEASE;

static __always_inline void ct_tuple(const struct packet *pkt, struct bpf_sock_tuple *tuple)
{
	if (pkt->family == 4) {
		tuple->ipv4.saddr = pkt->src[0];
		tuple->ipv4.daddr = pkt->dst[0];
		tuple->ipv4.sport = bpf_htons(pkt->sport);
		tuple->ipv4.dport = bpf_htons(pkt->dport);
		return;
	}
	__builtin_memcpy(tuple->ipv6.saddr, pkt->src, sizeof(tuple->ipv6.saddr));
	__builtin_memcpy(tuple->ipv6.daddr, pkt->dst, sizeof(tuple->ipv6.daddr));
	tuple->ipv6.sport = bpf_htons(pkt->sport);
	tuple->ipv6.dport = bpf_htons(pkt->dport);
}

static __always_inline int is_tracked(struct xdp_md *ctx, const struct packet *pkt)
{
	struct bpf_ct_opts opts = {.netns_id = -1};
	struct bpf_sock_tuple tuple = {};
	struct nf_conn *ct;

	if (!pkt->has_l4)
		return 0;
	if (pkt->proto != IPPROTO_TCP && pkt->proto != IPPROTO_UDP)
		return 0;
	opts.l4proto = pkt->proto;
	ct_tuple(pkt, &tuple);
	if (pkt->family == 4) /* the verifier wants the size as a constant */
		ct = bpf_xdp_ct_lookup(ctx, &tuple, sizeof(tuple.ipv4), &opts, sizeof(opts));
	else
		ct = bpf_xdp_ct_lookup(ctx, &tuple, sizeof(tuple.ipv6), &opts, sizeof(opts));
	if (!ct)
		return 0;
	bpf_ct_release(ct);
	return 1;
}

/* 1 or 0. TCP and UDP only; later fragments have no ports. Where no rule asks, the program that is
 * loaded has no call of the module: the kernel would refuse one that its JIT compiler cannot reach,
 * as on arm64 where modules are far away. */
__noinline int established(struct xdp_md *ctx, struct packet *pkt)
{
	if (!marker_is(MARK_ESTABLISHED, 1))
		return 0;
	asm volatile(
		""); /* the compiler would test the marker and pkt at once, which keeps the call */
	return pkt ? is_tracked(ctx, pkt) : 0;
}
