/* SPDX-License-Identifier: GPL-2.0-only */
/* The short way: decides common packets, from the frame to the verdict.
 *
 * Common is Ethernet with at most one tag; IPv4 without options, not a fragment, or IPv6 without
 * extension headers; TCP, UDP or ICMP, but not neighbour discovery; whole and well-formed, its
 * headers in the first buffer. `short-read` finds out whether a packet is common, `short-match`
 * looks its rows up, `short-limit` charges limits and applies the default, `short-service` chooses
 * a backend, with the same tables and the same result as the stages of the general program. This
 * file has their order. Nothing is written or counted before the last point where a stage can leave
 * the packet to the general program, which then starts from the beginning.
 *
 * Of common packets, the general program gets those
 *
 * - near a prefix of the overlay, or with a commit during their look-ups, and packets that an allow
 *   entry passes in a policy with services;
 * - to a port of checks via path;
 * - whose first matching rule logs, adds to a set, rejects, redirects or has conditions
 *   (MATRIX_ASK), unless its only condition is a limit (matrix_limit);
 * - that may be essential, under `default drop`;
 * - for services, if they need more than their slot and pin (short-service.bpf.h);
 * - that may be answers to connections of nat or fullnat, and change these (nat-steady.bpf.h). */
#pragma once

#include "xdp/answer.bpf.h"
#include "xdp/finish.bpf.h"
#include "xdp/iface.bpf.h"
#include "xdp/nat-near.bpf.h"
#include "xdp/overlay.bpf.h"
#include "xdp/short-limit.bpf.h"
#include "xdp/short-match.bpf.h"
#include "xdp/short-read.bpf.h"
#include "xdp/short-service.bpf.h"

/* ---- decide ---------------------------------------------------------------------------------- */

/* Decides by the first word that is not 0, and its number. With services no action is a limit: the
 * next step is not known before. */
static __always_inline struct fate decide_by_word(struct xdp_md *ctx, __u64 word, __u32 number,
						  const struct view v, const int family,
						  const struct arrival p)
{
	struct fate f;
	__u64 limited;

	if (!word)
		return default_common(v, family, p.class);
	f = act_common(word, number);
	if (p.balances || likely(f.reason >= MATRIX_ASK))
		return f;
	limited = decide_limited(ctx, word, p.class, family);
	return (struct fate){.reason = (__s32)limited, .counter = limited >> 32};
}

/* Decides by a matrix of any size. Kernel 6.1 allows no read of stack that was not written, not
 * even of unused bytes. */
static __always_inline bool find_word(const struct view v, const int family, const struct arrival p,
				      __u64 *ret_word, __u32 *ret_number)
{
	struct matrix m = {};

	*ret_number = 0;
	if (!add_all(&m, v, family, p))
		return false;
	*ret_word = RULES_ARE(M_WORDS, 1) ? m.word : first_word(&m, ret_number);
	return true;
}

/* The result of a matrix: the position of the first match's action, or one of these. */
enum { MATCH_NONE = -1, MATCH_FAILED = -2 };

/* They read the frame again. */
static __always_inline __s64 find_place(const struct xdp_md *ctx, const int family, __u32 base,
					__u32 class)
{
	const __u8 *ip = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	struct arrival p = {.class = class};
	__u64 tagged, word;
	__u32 number;

	ip += ETH_HLEN;
	asm volatile("" : "+r"(ip));
	if (ip + sizeof(struct vlan_tag) > end)
		return MATCH_FAILED;
	tagged = is_tagged(*(const __be16 *)(ip - 2));
	ip = read_tag(ip, tagged, &p);
	if (ip + header_of(family) + sizeof(struct udphdr) > end)
		return MATCH_FAILED;
	if (!find_word((struct view){.ip = ip, .base = base}, family, p, &word, &number))
		return MATCH_FAILED;
	return word ? (__s64)action_place(word, number) : MATCH_NONE;
}

/* Global, so that they are verified once: not for each protocol, nor with the code of services
 * after them. */
__noinline __s64 find_place4(struct xdp_md *ctx, __u32 base, __u32 class)
{
	return find_place(ctx, 4, base, class);
}

__noinline __s64 find_place6(struct xdp_md *ctx, __u32 base, __u32 class)
{
	return find_place(ctx, 6, base, class);
}

static __always_inline struct fate decide_by_call(struct xdp_md *ctx, const struct view v,
						  const int family, __u32 class)
{
	__s64 place =
		family == 4 ? find_place4(ctx, v.base, class) : find_place6(ctx, v.base, class);

	if (place == MATCH_FAILED)
		return ASK;
	if (place == MATCH_NONE)
		return default_common(v, family, class);
	return act_at(BOUND(place, POLICY_WORDS_MAX * 64 - 1));
}

static __always_inline struct fate decide_by_matrix(struct xdp_md *ctx, const struct view v,
						    const int family, const struct arrival p)
{
	__u32 number;
	__u64 word;

	if (p.balances)
		return decide_by_call(ctx, v, family, p.class);
	if (!find_word(v, family, p, &word, &number))
		return ASK;
	return decide_by_word(ctx, word, number, v, family, p);
}

static __always_inline struct fate decide_by_rules(struct xdp_md *ctx, const struct view v,
						   const int family, const struct arrival p)
{
	/* On an interface that the policy does not name, only entries apply. */
	if (RULES_ARE(M_WORDS, 0) || (!marker_is(MARK_NAMED, 0) && !p.class))
		return default_common(v, family, p.class);
	if (RULES_ARE(M_SMALL, 0))
		return decide_by_matrix(ctx, v, family, p);
	return decide_by_word(ctx, small_word(v, family, p), 0, v, family, p);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Entries of hosts; if a prefix may contain an address, the general program decides. */
static __always_inline int overlay_common(const struct view v, const int family)
{
	const __u8 *ip = v.ip;
	__u32 length;

	if (likely(!*(const volatile __u32 *)&knobs.overlay) || (is_test() && !test_is_live()))
		return GO_ON;
	length = read_length(ip, family);
	return family == 4
		       ? overlay4(*(const __be32 *)(ip + 12), *(const __be32 *)(ip + 16), length)
		       : overlay6(read64(ip + 8), read64(ip + 16), read64(ip + 24), read64(ip + 32),
				  length);
}

/* Entries, then rules, then the default. */
static __always_inline struct fate decide_common(struct xdp_md *ctx, const struct view v,
						 const int family, const struct arrival p)
{
	int reason = overlay_common(v, family);

	if (reason == OVERLAY_ASK)
		return ASK;
	return reason == GO_ON ? decide_by_rules(ctx, v, family, p) : decided(reason);
}

/* Packets that pass on an interface of the policy may be for a service. */
static __always_inline struct fate continue_common(struct xdp_md *ctx, const struct view v,
						   const int family, const struct arrival p,
						   struct fate f)
{
	const struct vip_place at = {.frame = p.frame, .ip = v.ip};
	const struct nat_use *use;
	__u32 zero;
	__u64 end;

	if (!p.balances || !for_services(f.reason))
		return f;
	/* The class first, so that the compiler does not combine both tests. */
	if (!p.class && !marker_is(MARK_NAMED, 0))
		return f;
	/* The verifier must not consider other numbers as a protocol. */
	if (v.base >= BASE_ICMP)
		return ASK;
	zero = family == 4 ? unknown_zero(v.ip, 0x45)
			   : (__u32)(*(const volatile __u8 *)v.ip >> 4) - 6;
	f.reason += zero;
	f.counter += zero;
	if (p.nats && (use = nat_use_for(v.ip, family, &end)))
		return translate_common(ctx, v, family, at, p, end, use, f);
	return balance_common(ctx, key_of(v, family), family, at, p, f);
}

static __always_inline struct fate way_of(struct xdp_md *ctx, const __u8 *ip, const int family,
					  int base, const struct arrival p)
{
	const struct view v = {.ip = ip, .base = base};
	struct fate f = decide_common(ctx, v, family, p);

	/* The same for each decision, so that it is not kept for each. */
	f.length = read_length(ip, family);
	f.verdict = XDP_PASS;
	return continue_common(ctx, v, family, p, f);
}

/* May it be an answer to a check via path? */
static __always_inline bool is_expected(const __u8 *ip, const int family, const struct arrival p)
{
	return p.balances && may_be_answer(*(const volatile __be16 *)(ip + header_of(family) + 2));
}

/* A packet that may be of a backend to its client; may: of nat_may_answer(). */
static __always_inline struct fate answer_common(struct xdp_md *ctx, const __u8 *ip,
						 const int family, int base, __u64 may,
						 const struct arrival p)
{
	struct fate f = {.counter = EVENT_NO_RULE, .length = read_length(ip, family)};
	const struct nat_packet packet = {
		.at = {.frame = p.frame, .ip = ip},
		.k = {.base = base, .length = f.length},
		.from = p,
	};

	f.reason = nat_answer_steady(ctx, family, packet, may, &f.verdict);
	return f.reason == NAT_LEAVE ? ASK : f;
}

static __always_inline struct fate way4(struct xdp_md *ctx, const __u8 *ip, const __u8 *end,
					const struct arrival p)
{
	int base = read_ip4(ip, end, p.balances);
	__u64 may;

	if (base == NOT_COMMON || is_expected(ip, 4, p))
		return ASK;
	if (p.nats && (may = nat_may_answer(ip, 4, base)))
		return answer_common(ctx, ip, 4, base, may, p);
	return way_of(ctx, ip, 4, base, p);
}

static __always_inline struct fate way6(struct xdp_md *ctx, const __u8 *ip, const __u8 *end,
					const struct arrival p)
{
	int base = read_ip6(ip, end, p.balances);
	__u64 may;

	if (base == NOT_COMMON || is_expected(ip, 6, p))
		return ASK;
	if (p.nats && (may = nat_may_answer(ip, 6, base)))
		return answer_common(ctx, ip, 6, base, may, p);
	return way_of(ctx, ip, 6, base, p);
}

#define LEAST (sizeof(struct iphdr) + sizeof(struct udphdr))

static __always_inline struct fate way_past_link(struct xdp_md *ctx, const __u8 *ip,
						 const __u8 *end, const struct arrival p)
{
	__be16 ethertype = *(const __be16 *)(ip - 2);

	if (likely(ethertype == bpf_htons(ETH_P_IP)))
		return way4(ctx, ip, end, p);
	return ethertype == bpf_htons(ETH_P_IPV6) ? way6(ctx, ip, end, p) : ASK;
}

/* In a program with services without a branch for the tag. */
static __always_inline struct fate way(struct xdp_md *ctx, struct arrival p)
{
	/* The IP header, if no tag precedes it. One register for the check and every access. */
	const __u8 *ip = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	__be16 ethertype;
	__u64 tagged = ~0ull;

	p.frame = ip;
	ip += ETH_HLEN;
	asm volatile("" : "+r"(ip));
	if (ip + LEAST > end)
		return ASK;
	ethertype = *(const __be16 *)(ip - 2);
	if (p.balances)
		tagged = is_tagged(ethertype);
	if (p.balances || unlikely(ethertype == bpf_htons(ETH_P_8021Q) ||
				   ethertype == bpf_htons(ETHERTYPE_QINQ))) {
		ip = read_tag(ip, tagged, &p);
		if (ip + LEAST > end)
			return ASK;
	}
	return way_past_link(ctx, ip, end, p);
}

/* Returns the reason, as count() does. */
static __always_inline int count_common(struct xdp_md *ctx, __u32 number, const struct fate f)
{
	__u64 bytes = f.length; /* once, in one register */
	__u32 index = f.counter;

	if (index != EVENT_NO_RULE)
		counter_add(bpf_map_lookup_elem(&rulecounters, &index), bytes);
	return count(ctx, number, f.reason, index, bytes);
}

/* The verdict of a packet that is counted here; GO_ON: nothing is counted or written, and the
 * general program starts. */
static __always_inline int short_way(struct xdp_md *ctx, bool balances, bool nats)
{
	__u32 number = iface_number(ctx);
	const struct arrival p = {.number = number,
				  .class = policy_class(number),
				  .balances = balances,
				  .nats = nats};
	struct fate f = way(ctx, p);

	if (f.reason == GO_ON)
		return GO_ON;
	if (is_test())
		test_answer(f.reason);
	else
		f.reason = count_common(ctx, number, f);
	if (f.reason < REASON_DROP_FIRST)
		return f.verdict;
	/* A rule that passed the packet to a service is not the one that dropped it. */
	if (!is_test())
		event(ctx, f.reason, f.reason == REASON_DROP_RULE ? f.counter : EVENT_NO_RULE);
	return XDP_DROP;
}
