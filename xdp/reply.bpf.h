/* SPDX-License-Identifier: GPL-2.0-only */
/* Answers that are sent back: a reset or an error for `reject`, and "too big" and "time exceeded"
 * for services.
 *
 * `reject` sends a TCP reset (RFC 9293 section 3.10.7.1) or ICMP "administratively prohibited" (RFC
 * 1812 section 5.2.7.1, RFC 4443 section 3.1). No answer goes to an error, a multicast or a later
 * fragment (RFC 1122 section 3.2.2, RFC 4443 section 2.4), and none of `reject` to any fragment.
 * Each kind has budgets of its own, by receiver; the kinds that anybody can ask for have one for
 * all receivers too, and no such answer goes to an address of this host or to a subnet's broadcast.
 * The packet is rewritten in place: fields that are needed are read first. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/bounds.h"
#include "common/hash.h"
#include "xdp/csum.bpf.h"
#include "xdp/parse.bpf.h"
#include "xdp/rate.bpf.h"
#include "xdp/station.bpf.h"
#include "xdp/test.bpf.h"

/* Bytes that an ICMP error quotes of the packet after its IP header, at most (RFC 792: 8 bytes are
 * enough). */
#define QUOTE_BYTES 8
#define REPLY_TTL   64

/* Kinds of answers. A flood that meets one kind leaves the others their budgets. */
enum reply_kind { REPLY_REJECT, REPLY_TOO_BIG, REPLY_TTL_EXCEEDED, REPLY_ECHO, REPLY_KINDS };

/* For each kind so many budgets, each for the receivers that a keyed hash puts there: who forges
 * one address spends the budget of that address, who forges many spends little of each. After
 * these, one budget of each kind for all receivers. A budget is a theoretical arrival time (GCRA,
 * as in rate.bpf.h). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WEIR_REPLY_WORDS(REPLY_KINDS));
	__type(key, __u32);
	__type(value, __u64);
} budgets SEC(".maps");

/* Addresses of this host, and the broadcast addresses of its subnets: ctl/datapath/stations.h. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_OWN);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct own_key);
	__type(value, __u32);
} own SEC(".maps");

/* A second, in the unit of rates: HZ << RATE_SHIFT. */
const volatile __u64 reply_second = 1ull << RATE_SHIFT;

/* The receiver of the answer: an address of IPv4; of IPv6 its /64, all of which one host may
 * have. */
static __always_inline __u64 receiver_hash(const struct packet *pkt)
{
	const struct hash_key key = {{knobs.seed, ~knobs.seed}};
	struct hash_state s;

	hash_begin(&s, &key);
	hash_add(&s, hash_pair(pkt->src[0], pkt->src[1]));
	return hash_done(&s, 8);
}

/* Is the source an address of this host, or a broadcast address of a subnet? */
__noinline int is_from_here(struct packet *pkt)
{
	struct own_key key = {};

	if (!pkt)
		return false;
	key.family = pkt->family;
	__builtin_memcpy(key.addr, pkt->src, sizeof(key.addr));
	return bpf_map_lookup_elem(&own, &key) != NULL;
}

/* Anybody can ask for these, with a packet of any length to any address. */
static __always_inline bool is_for_anybody(__u32 kind)
{
	return kind == REPLY_REJECT || kind == REPLY_ECHO;
}

/* Spends an answer of a budget that has so many a second, and so many at once; or tests it. */
static __always_inline bool budget_spend(__u32 index, __u64 per_s, __u64 burst, const bool spend)
{
	__u64 cost = reply_second / per_s, *budget = bpf_map_lookup_elem(&budgets, &index);

	return budget && !meter_charge(budget, cost, cost * burst, rate_now(), spend);
}

/* The budget of a kind that anybody can ask for, for all receivers. */
static __always_inline bool budget_spend_all(__u32 kind, const bool spend)
{
	return budget_spend(REPLY_KINDS * WEIR_REPLY_BUDGETS + kind,
			    WEIR_REPLIES_ALL_S - WEIR_REPLY_BURST_ALL, WEIR_REPLY_BURST_ALL, spend);
}

/* Is it used up? Then no answer of this kind is allowed now. */
__noinline int replies_are_spent(__u32 kind)
{
	return kind >= REPLY_KINDS || !budget_spend_all(kind, false);
}

__noinline int reply_allowed(struct packet *pkt, __u32 kind)
{
	__u32 receiver;

	if (!pkt || kind >= REPLY_KINDS)
		return false;
	receiver = receiver_hash(pkt) & (WEIR_REPLY_BUDGETS - 1);
	if (!budget_spend(kind * WEIR_REPLY_BUDGETS + receiver, WEIR_REPLIES_S, WEIR_REPLY_BURST,
			  true))
		return false;
	if (!is_for_anybody(kind) || budget_spend_all(kind, true))
		return true;
	tally(TALLY_REPLY_LIMIT);
	return false;
}

static __always_inline bool is_multicast(const struct packet *pkt)
{
	__u32 first = bpf_ntohl(pkt->dst[0]);

	return pkt->family == 4 ? first >> 28 == 14 || first == 0xffffffff : first >> 24 == 0xff;
}

/* Unspecified, multicast and loopback sources have no host to answer; ::1 differs from :: in one
 * bit. Host order. */
static __always_inline bool is_answerable4(__u32 src)
{
	return src - 1 < 0xe0000000 - 1 && src >> 24 != 127;
}

static __always_inline bool is_answerable6(__u64 hi, __u64 lo)
{
	return hi >> 56 != 0xff && (hi | (lo & ~1ull));
}

static __always_inline bool is_answerable(const struct packet *pkt)
{
	const __be64 *half = (const void *)pkt->src;

	if (pkt->family == 4)
		return is_answerable4(bpf_ntohl(pkt->src[0]));
	return is_answerable6(bpf_be64_to_cpu(half[0]), bpf_be64_to_cpu(half[1]));
}

/* Protocol 58 in IPv4 is not ICMPv6, nor 1 in IPv6 ICMP. */
static __always_inline bool is_icmp_error(const struct packet *pkt)
{
	if (pkt->family != 4)
		return pkt->proto == IPPROTO_ICMPV6 &&
		       (pkt->icmp_type < 128 || pkt->icmp_type == 137);
	return pkt->proto == IPPROTO_ICMP &&
	       (pkt->icmp_type == 3 || pkt->icmp_type == 4 || pkt->icmp_type == 5 ||
		pkt->icmp_type == 11 || pkt->icmp_type == 12);
}

static __always_inline void swap_macs(struct ethhdr *eth)
{
	__u8 mac[ETH_ALEN];

	__builtin_memcpy(mac, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, mac, ETH_ALEN);
}

/* From whom the packet was to, to whom it was from. */
static __always_inline void write_ip4(struct iphdr *ip, const struct packet *pkt, __u16 length,
				      __u8 proto)
{
	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tot_len = bpf_htons(length),
		.frag_off = bpf_htons(0x4000),
		.ttl = REPLY_TTL,
		.protocol = proto,
		.saddr = pkt->dst[0],
		.daddr = pkt->src[0],
	};
	ip->check = csum_fold(csum_add(0, ip, sizeof(*ip) / 2));
}

static __always_inline void write_ip6(struct ipv6hdr *ip, const struct packet *pkt, __u16 payload,
				      __u8 proto)
{
	*ip = (struct ipv6hdr){
		.version = 6,
		.payload_len = bpf_htons(payload),
		.nexthdr = proto,
		.hop_limit = REPLY_TTL,
	};
	__builtin_memcpy(&ip->saddr, pkt->dst, sizeof(ip->saddr));
	__builtin_memcpy(&ip->daddr, pkt->src, sizeof(ip->daddr));
}

/* Sequence numbers of a reset: the ones the packet acknowledges, or an acknowledgement of all of
 * it. */
static __always_inline void write_reset(struct tcphdr *tcp, const struct packet *pkt)
{
	bool ack = pkt->tcp_flags & 0x10;
	__u32 length = pkt->end - pkt->l4_offset - pkt->tcp_header;
	__u32 covers = length + (pkt->tcp_flags & 1) + (pkt->tcp_flags >> 1 & 1);

	*tcp = (struct tcphdr){
		.source = bpf_htons(pkt->dport),
		.dest = bpf_htons(pkt->sport),
		.seq = ack ? pkt->tcp_ack : 0,
		.ack_seq = ack ? 0 : bpf_htonl(bpf_ntohl(pkt->tcp_seq) + covers),
		.doff = 5,
		.rst = 1,
		.ack = !ack,
	};
	tcp->check = csum_fold(
		csum_add(pseudo_sum(pkt->family, pkt->src, pkt->dst, sizeof(*tcp), IPPROTO_TCP),
			 tcp, sizeof(*tcp) / 2));
}

/* Resizes the frame to `length` bytes after l3_offset. */
static __always_inline bool resize(struct xdp_md *ctx, const struct packet *pkt, __u32 length)
{
	int want = pkt->l3_offset + length;

	return !bpf_xdp_adjust_tail(ctx, want - (int)bpf_xdp_get_buff_len(ctx));
}

static __always_inline int send_reset(struct xdp_md *ctx, struct packet *pkt)
{
	__u32 l3 = pkt->l3_offset & L3_OFFSET_MAX;
	__u32 header = pkt->family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	struct ethhdr *eth;
	struct tcphdr *tcp;

	if (!resize(ctx, pkt, header + sizeof(*tcp)))
		return REASON_DROP_REJECT;
	if (!(eth = header_at(ctx, 0, sizeof(*eth))))
		return REASON_DROP_REJECT;
	swap_macs(eth);
	if (pkt->family == 4) {
		struct iphdr *ip = header_at(ctx, l3, sizeof(*ip) + sizeof(*tcp));

		if (!ip)
			return REASON_DROP_REJECT;
		write_ip4(ip, pkt, sizeof(*ip) + sizeof(*tcp), IPPROTO_TCP);
		write_reset((void *)(ip + 1), pkt);
	} else {
		struct ipv6hdr *ip = header_at(ctx, l3, sizeof(*ip) + sizeof(*tcp));

		if (!ip)
			return REASON_DROP_REJECT;
		write_ip6(ip, pkt, sizeof(*tcp), IPPROTO_TCP);
		write_reset((void *)(ip + 1), pkt);
	}
	return REASON_PASS_REPLY;
}

struct quote {
	__u32 length;
	__u8 bytes[128]; /* zero after length: the checksum covers them all */
};

/* The IP header and the first bytes after it. */
static __always_inline bool take_quote(struct xdp_md *ctx, const struct packet *pkt,
				       struct quote *q)
{
	__u32 length = pkt->family == 4 ? pkt->l4_offset - pkt->l3_offset + QUOTE_BYTES
					: sizeof(struct ipv6hdr) + QUOTE_BYTES;

	if (length > pkt->length)
		length = pkt->length;
	length = BOUND_LENGTH(length, sizeof(q->bytes));
	q->length = length;
	return !bpf_xdp_load_bytes(ctx, pkt->l3_offset, q->bytes, length);
}

static __always_inline void write_icmp(struct icmp_head *icmp, const struct packet *pkt,
				       const struct icmp_head *error, const struct quote *q)
{
	__u64 sum = pkt->family == 4 ? 0
				     : pseudo_sum(pkt->family, pkt->src, pkt->dst,
						  sizeof(*icmp) + q->length, IPPROTO_ICMPV6);

	*icmp = *error;
	sum = csum_add(sum, icmp, sizeof(*icmp) / 2);
	icmp->checksum = csum_fold(csum_add(sum, q->bytes, sizeof(q->bytes) / 2));
}

/* The error quotes the packet itself, so the new headers are written before the packet. There is
 * always room there, while veth and many drivers leave none after a short packet. The link header
 * moves along. */
static __always_inline bool make_room(struct xdp_md *ctx, const struct packet *pkt, __u32 quoted,
				      __u32 headers)
{
	__u32 l2 = BOUND_LENGTH(pkt->l3_offset, 32);
	__u8 link[32] = {};

	return !bpf_xdp_load_bytes(ctx, 0, link, l2) && resize(ctx, pkt, quoted) &&
	       !bpf_xdp_adjust_head(ctx, -(int)headers) && !bpf_xdp_store_bytes(ctx, 0, link, l2);
}

/* The ICMP error of this type, code and rest. False: there was no room for it; the packet may be
 * changed. */
static __always_inline bool send_error(struct xdp_md *ctx, struct packet *pkt,
				       const struct icmp_head *error)
{
	__u32 l3 = pkt->l3_offset & L3_OFFSET_MAX;
	__u32 outer = pkt->family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	struct quote q = {};
	struct ethhdr *eth;

	if (!take_quote(ctx, pkt, &q) ||
	    !make_room(ctx, pkt, q.length, outer + sizeof(struct icmp_head)))
		return false;
	if (!(eth = header_at(ctx, 0, sizeof(*eth))))
		return false;
	swap_macs(eth);
	if (pkt->family == 4) {
		struct iphdr *ip = header_at(ctx, l3, sizeof(*ip) + sizeof(struct icmp_head));

		if (!ip)
			return false;
		write_ip4(ip, pkt, outer + sizeof(struct icmp_head) + q.length, IPPROTO_ICMP);
		write_icmp((void *)(ip + 1), pkt, error, &q);
	} else {
		struct ipv6hdr *ip = header_at(ctx, l3, sizeof(*ip) + sizeof(struct icmp_head));

		if (!ip)
			return false;
		write_ip6(ip, pkt, sizeof(struct icmp_head) + q.length, IPPROTO_ICMPV6);
		write_icmp((void *)(ip + 1), pkt, error, &q);
	}
	return true;
}

/* Is there anybody to answer, and is it allowed now? */
static __always_inline bool may_reply(struct xdp_md *ctx, struct packet *pkt, enum reply_kind kind)
{
	return pkt->fragment != FRAGMENT_LATER && !is_multicast(pkt) && is_answerable(pkt) &&
	       !is_icmp_error(pkt) && is_for_one(ctx) && (is_test() || reply_allowed(pkt, kind));
}

/* REASON_PASS_REPLY when the frame is now the answer and has to go back, else
 * REASON_DROP_REJECT. */
__noinline int reply(struct xdp_md *ctx, struct packet *pkt)
{
	struct icmp_head error = {};

	if (!pkt)
		return REASON_DROP_REJECT;
	if (pkt->proto == IPPROTO_TCP && pkt->tcp_flags & 4)
		return REASON_DROP_REJECT; /* a reset is not answered */
	if (unlikely(!is_for_us(ctx))) {
		tally(TALLY_FOREIGN);
		return REASON_DROP_REJECT;
	}
	if (pkt->fragment || is_from_here(pkt) || !may_reply(ctx, pkt, REPLY_REJECT))
		return REASON_DROP_REJECT;
	if (pkt->proto == IPPROTO_TCP)
		return send_reset(ctx, pkt);
	/* Destination unreachable, communication administratively prohibited. */
	error.type = pkt->family == 4 ? 3 : 1;
	error.code = pkt->family == 4 ? 13 : 1;
	return send_error(ctx, pkt, &error) ? REASON_PASS_REPLY : REASON_DROP_REJECT;
}

/* Sends an error for a service, to the sender of a packet that is too big for the path to the
 * backend, also without DF (RFC 1191, RFC 8201; `rest` is what fits), or has no hop left (RFC 792,
 * RFC 4443 section 3.3). False: no answer is sent. */
__noinline int reply_error(struct xdp_md *ctx, struct packet *pkt, __u32 kind, __u32 rest)
{
	struct icmp_head error = {.rest = bpf_htonl(rest)};
	bool v4;

	if (!pkt || pkt->quoted || !may_reply(ctx, pkt, kind))
		return false;
	v4 = pkt->family == 4;
	if (kind == REPLY_TOO_BIG) {
		error.type = v4 ? 3 : 2;
		error.code = v4 ? 4 : 0;
	} else {
		error.type = v4 ? 11 : 3;
	}
	return send_error(ctx, pkt, &error);
}
