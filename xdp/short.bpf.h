/* SPDX-License-Identifier: GPL-2.0-only */
/* The short way: what most packets are, from the frame to the verdict.
 *
 * Common is Ethernet with at most one tag; IPv4 without options, not a fragment, or IPv6 without extension
 * headers; TCP, UDP or ICMP, but not neighbour discovery; whole and well-formed, its headers in the first buffer.
 * One stage reads all of it into registers; the others work on these values, on the same tables and to the
 * same end as those of the general program. Nothing is written and nothing counted before the last point where a
 * stage can leave the packet to the general program, so that the packet begins there anew.
 *
 * The family is a constant in every function: what the other family needs is never in a register. */
#pragma once

#include "xdp/classify.bpf.h"
#include "xdp/default.bpf.h"
#include "xdp/finish.bpf.h"
#include "xdp/iface.bpf.h"
#include "xdp/limit.bpf.h"
#include "xdp/overlay.bpf.h"
#include "xdp/parse.bpf.h"
#include "xdp/service.bpf.h"
#include "xdp/short-service.bpf.h"

/* Where a packet came in, and where in the frame it is. */
struct arrival {
	__u32 number; /* of the interface in the instance */
	__u32 class;  /* in the policy, and 1; 0: it does not name it */
	__u32 vlan;
	bool balances; /* a constant: the policy has services */
	const __u8 *frame;
};

/* ---- read ---------------------------------------------------------------------------------------- */

static __always_inline __u32 read16(const __u8 *at)
{
	return bpf_ntohs(*(const __be16 *)at);
}

static __always_inline __u64 read64(const __u8 *at)
{
	return address_half((const __u32 *)at);
}

/* All ones if a tag follows, else 0. Without a branch: the verifier would follow the whole balancer for either side. */
static __always_inline __u64 is_tagged(__be16 ethertype)
{
	return if_zero32(ethertype ^ bpf_htons(ETH_P_8021Q)) |
	       if_zero32(ethertype ^ bpf_htons(ETHERTYPE_QINQ));
}

static __always_inline void read_ports(const __u8 *l4, struct key *k)
{
	__u32 ports = *(const __u32 *)l4;

	k->sport = ports & 0xffff;
	k->dport = ports >> 16;
}

static __always_inline bool read_tcp(const __u8 *l4, const __u8 *end, __s32 size, struct key *k)
{
	__s32 header;

	if (l4 + sizeof(struct tcphdr) > end)
		return false;
	header = l4[12] >> 2 & 0x3c;
	if (header < (__s32)sizeof(struct tcphdr) || header > size)
		return false;
	k->base = BASE_TCP + l4[13];
	read_ports(l4, k);
	return true;
}

static __always_inline bool read_udp(const __u8 *l4, __s32 size, struct key *k)
{
	__s32 length = read16(l4 + 4);

	if (length < (__s32)sizeof(struct udphdr) || length > size)
		return false;
	k->base = BASE_UDP;
	read_ports(l4, k);
	return true;
}

/* Neighbour discovery is told by more than its type. */
static __always_inline bool read_icmp(const __u8 *l4, const int family, __s32 size, struct key *k)
{
	if (size < (__s32)sizeof(struct icmp_head) || (family == 6 && l4[0] >= 133 && l4[0] <= 136))
		return false;
	k->base = BASE_ICMP;
	k->icmp = l4[0] << 8 | l4[1];
	k->sport = k->dport = POLICY_NO_PORT;
	return true;
}

/* l4: 8 bytes are there, and the `size` bytes of the packet from there on are in the buffer, which ends at `end`.
 * false: not common, or malformed in a way that the general program tells. */
static __always_inline bool read_l4(const __u8 *l4, const __u8 *end, const int family, __u8 proto,
				    __s32 size, struct key *k)
{
	if (likely(proto == IPPROTO_TCP))
		return read_tcp(l4, end, size, k);
	if (proto == IPPROTO_UDP)
		return read_udp(l4, size, k);
	return proto == (family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) &&
	       read_icmp(l4, family, size, k);
}

static __always_inline bool read_ip4(const __u8 *ip, const __u8 *end, struct key *k)
{
	const __u32 header = sizeof(struct iphdr);

	if (ip[0] != 0x45 || *(const __be16 *)(ip + 6) & bpf_htons(IP4_MORE | IP4_OFFSET))
		return false;
	k->length = read16(ip + 2);
	k->src_hi = bpf_ntohl(*(const __be32 *)(ip + 12));
	k->dst_hi = bpf_ntohl(*(const __be32 *)(ip + 16));
	return k->length <= end - ip && read_l4(ip + header, end, 4, ip[9], k->length - header, k);
}

static __always_inline bool read_ip6(const __u8 *ip, const __u8 *end, struct key *k)
{
	const __u32 header = sizeof(struct ipv6hdr);

	if (ip + header + sizeof(struct udphdr) > end || ip[0] >> 4 != 6)
		return false;
	k->length = header + read16(ip + 4);
	k->src_hi = read64(ip + 8);
	k->src_lo = read64(ip + 16);
	k->dst_hi = read64(ip + 24);
	k->dst_lo = read64(ip + 32);
	return k->length <= end - ip && read_l4(ip + header, end, 6, ip[6], k->length - header, k);
}

/* ---- classify ------------------------------------------------------------------------------------ */

static __always_inline bool uses(const int field)
{
	return matrix_uses(NULL, MATRIX_RULES, field);
}

/* Adds the row that a cell of a small field has. */
static __always_inline bool add_cell(struct matrix *m, const int field, const int name, __u64 index)
{
	return matrix_add(m, MATRIX_RULES, field, matrix_cell(NULL, MATRIX_RULES, name, index));
}

/* Protocol, flags and ethertype at once: the fields that are in it have no rows of their own. */
static __always_inline bool add_base(struct matrix *m, const struct key *k, const int family)
{
	const __u8 *at = TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_BASE));
	__u64 index = BOUND(k->base, MATRIX_BASES - 1) + (family == 6 ? MATRIX_BASES : 0);
	const __u64 *row;

	if (RULES(M_WORDS) == 1) {
		m->word = ((const __u64 *)at)[index];
		return true;
	}
	row = matrix_row(NULL, MATRIX_RULES, ((const __u32 *)at)[index]);
	m->row[FIELD_PROTO] = m->row[FIELD_L4] = m->row[FIELD_ETHERTYPE] = row;
	return row != NULL;
}

/* Type and code of ICMP are not in the base. */
static __always_inline bool add_icmp(struct matrix *m, const struct key *k, const int family)
{
	__u64 first = family == 4 ? POLICY_L4_ICMP : POLICY_L4_ICMP6;

	return k->base != BASE_ICMP || add_cell(m, FIELD_L4, M_L4, first + BOUND(k->icmp, 0xffff));
}

static __always_inline bool add_port(struct matrix *m, const int field, const int name, __u64 port)
{
	return port <= POLICY_NO_PORT && add_cell(m, field, name, port);
}

/* A row that is a constant and one that is not would be two states at the words. */
static __always_inline bool add_address(struct matrix *m, const int family, const int side,
					__u64 hi, __u64 lo)
{
	__u64 row = family == 4 ? table4_row(NULL, side, hi) : table6_row(NULL, side, hi, lo);

	return matrix_add(m, MATRIX_RULES, side == SIDE_SOURCE ? FIELD_SOURCE : FIELD_DESTINATION,
			  BOUND_FORGET(row, hi));
}

/* false: a look-up has failed that cannot. class: number of the interface in the policy + 1. */
static __always_inline bool add_all(struct matrix *m, const struct key *k, const int family,
				    __u32 class)
{
	return add_base(m, k, family) && (!uses(FIELD_L4) || add_icmp(m, k, family)) &&
	       (!uses(FIELD_VLAN) ||
		add_cell(m, FIELD_VLAN, M_VLAN, BOUND(k->vlan, MATRIX_VLANS - 1))) &&
	       (!uses(FIELD_IFACE) ||
		add_cell(m, FIELD_IFACE, M_IFACE, BOUND(class, MATRIX_IFACES - 1))) &&
	       (!uses(FIELD_SPORT) || add_port(m, FIELD_SPORT, M_SPORT, k->sport)) &&
	       (!uses(FIELD_DPORT) || add_port(m, FIELD_DPORT, M_DPORT, k->dport)) &&
	       (!uses(FIELD_SOURCE) || add_address(m, family, SIDE_SOURCE, k->src_hi, k->src_lo)) &&
	       (!uses(FIELD_DESTINATION) ||
		add_address(m, family, SIDE_DESTINATION, k->dst_hi, k->dst_lo));
}

/* The AND in word `place`. The fields of the base have its row, but type and code of ICMP. */
static __always_inline __u64 word_at(const struct matrix *m, __u32 place)
{
	__u64 word = m->row[FIELD_PROTO][place];

	word = matrix_and(m, FIELD_L4, place, word);
	word = matrix_and(m, FIELD_VLAN, place, word);
	word = matrix_and(m, FIELD_IFACE, place, word);
	word = matrix_and(m, FIELD_SPORT, place, word);
	word = matrix_and(m, FIELD_DPORT, place, word);
	word = matrix_and(m, FIELD_SOURCE, place, word);
	return matrix_and(m, FIELD_DESTINATION, place, word);
}

#define SHORT_BLOCK 4

/* Four words of the AND. */
struct and_block {
	__u64 word[SHORT_BLOCK];
};

static __always_inline void and_row(const struct matrix *m, const int field, __u32 place,
				    struct and_block *b)
{
	const __u64 *row = m->row[field] + place;

	b->word[0] &= row[0];
	b->word[1] &= row[1];
	b->word[2] &= row[2];
	b->word[3] &= row[3];
}

/* The words from `place` on. A field at a time, so that they stay in registers. */
static __always_inline struct and_block block_at(const struct matrix *m, __u32 place)
{
	struct and_block b = {{~0ull, ~0ull, ~0ull, ~0ull}};

	and_row(m, FIELD_PROTO, place, &b);
	if (uses(FIELD_L4))
		and_row(m, FIELD_L4, place, &b);
	if (uses(FIELD_VLAN))
		and_row(m, FIELD_VLAN, place, &b);
	if (uses(FIELD_IFACE))
		and_row(m, FIELD_IFACE, place, &b);
	if (uses(FIELD_SPORT))
		and_row(m, FIELD_SPORT, place, &b);
	if (uses(FIELD_DPORT))
		and_row(m, FIELD_DPORT, place, &b);
	if (uses(FIELD_SOURCE))
		and_row(m, FIELD_SOURCE, place, &b);
	if (uses(FIELD_DESTINATION))
		and_row(m, FIELD_DESTINATION, place, &b);
	return b;
}

/* The first word of a block that is not 0, and its number; 0: all are. first: the number of its first one. */
static __always_inline __u64 first_of_block(const struct and_block b, __u32 first,
					    __u32 *ret_number)
{
	*ret_number = first;
	if (b.word[0])
		return b.word[0];
	*ret_number = first + 1;
	if (b.word[1])
		return b.word[1];
	*ret_number = first + 2;
	if (b.word[2])
		return b.word[2];
	*ret_number = first + 3;
	return b.word[3];
}

/* The first word of the AND that is not 0, and its number; 0: no rule matches. More than one word of rules. A bit of
 * the summary can be set without a match; if there is one bit, it leads straight to the word. */
static __always_inline __u64 first_word(const struct matrix *m, __u32 *ret_number)
{
	__u64 some = word_at(m, 0), word = 0;

	*ret_number = 0;
	if (!some)
		return 0;
	if (!(some & (some - 1))) {
		*ret_number = lowest_bit(some);
		return *ret_number < RULES(M_WORDS) ? word_at(m, *ret_number + 1) : 0;
	}
	for (__u32 first = 0; first < POLICY_WORDS_MAX; first += SHORT_BLOCK) {
		if (first >= RULES(M_WORDS))
			break;
		if (some & ((1 << SHORT_BLOCK) - 1) &&
		    (word = first_of_block(block_at(m, first + 1), first, ret_number)))
			break;
		some >>= SHORT_BLOCK;
	}
	/* The last block may end in the next row. */
	return word && *ret_number < RULES(M_WORDS) ? word : 0;
}

/* ---- one word, few rows --------------------------------------------------------------------------- */

/* The same for most policies, without tests that they need not: no row can be out of bounds. */
static __always_inline __u64 small_row(__u64 row)
{
	const __u64 *words = (const void *)TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_ROWS));

	return words[BOUND(row, MATRIX_SMALL - 1)];
}

static __always_inline __u64 small_cell(const int name, __u64 index)
{
	return small_row(TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, name))[index]);
}

static __always_inline __u64 small_port(const int name, __u64 port)
{
	return port <= POLICY_NO_PORT ? small_cell(name, port) : 0;
}

static __always_inline __u64 small_address(const int family, const int side, __u64 hi, __u64 lo)
{
	return small_row(family == 4 ? table4_row(NULL, side, hi) : table6_row(NULL, side, hi, lo));
}

static __always_inline __u64 small_word(const struct key k, const int family, __u32 class)
{
	const __u64 *base = (const void *)TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_BASE));
	__u64 word = base[BOUND(k.base, MATRIX_BASES - 1) + (family == 6 ? MATRIX_BASES : 0)];

	if (uses(FIELD_L4) && k.base == BASE_ICMP)
		word &= small_cell(M_L4, (family == 4 ? POLICY_L4_ICMP : POLICY_L4_ICMP6) +
						 BOUND(k.icmp, 0xffff));
	if (uses(FIELD_VLAN))
		word &= small_cell(M_VLAN, BOUND(k.vlan, MATRIX_VLANS - 1));
	if (uses(FIELD_IFACE))
		word &= small_cell(M_IFACE, BOUND(class, MATRIX_IFACES - 1));
	if (uses(FIELD_SPORT))
		word &= small_port(M_SPORT, k.sport);
	if (uses(FIELD_DPORT))
		word &= small_port(M_DPORT, k.dport);
	if (uses(FIELD_SOURCE))
		word &= small_address(family, SIDE_SOURCE, k.src_hi, k.src_lo);
	if (uses(FIELD_DESTINATION))
		word &= small_address(family, SIDE_DESTINATION, k.dst_hi, k.dst_lo);
	return word;
}

/* ---- decide -------------------------------------------------------------------------------------- */

/* Where the action of the first rule in `word` is, the word of this number. */
static __always_inline __u64 action_place(__u64 word, __u32 number)
{
	const struct matrix_action *actions =
		(const void *)TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_ACTIONS));
	__u64 place = matrix_action_place(word);

	/* Masked: kernel 6.1 does not connect a number with its copy on the stack. */
	if (RULES(M_WORDS) > 1)
		place = BOUND(place + number * 64, POLICY_WORDS_MAX * 64 - 1);
	if (is_test() && actions[place].reason >= 0)
		test_rule(number * 64 + lowest_bit(word));
	return place;
}

static __always_inline struct fate act_at(__u64 place, __u32 length)
{
	const struct matrix_action *action =
		(const void *)TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_ACTIONS));

	action += place;
	return (struct fate){action->reason, action->counter, length, XDP_PASS};
}

/* The first rule in `word`, the word of this number. */
static __always_inline struct fate act_common(__u64 word, __u32 number, __u32 length)
{
	return act_at(action_place(word, number), length);
}

static __always_inline bool drops_by_default(__u32 class)
{
	return MARKER(MARK_DEFAULT_DROP) >> (class & 63) & 1;
}

/* What may be essential is left to the general program. */
static __always_inline bool may_be_essential(const struct key k, const int family)
{
	if (k.base == BASE_ICMP)
		return true;
	if (k.base != BASE_UDP)
		return false;
	return family == 4 ? k.sport == bpf_htons(67) && k.dport == bpf_htons(68)
			   : k.sport == bpf_htons(547) && k.dport == bpf_htons(546);
}

static __always_inline struct fate default_common(const struct key k, const int family, __u32 class)
{
	if (!drops_by_default(class))
		return (struct fate){REASON_PASS_DEFAULT, EVENT_NO_RULE, k.length, XDP_PASS};
	if (may_be_essential(k, family))
		return ASK;
	return (struct fate){REASON_DROP_DEFAULT, EVENT_NO_RULE, k.length, XDP_PASS};
}

/* ---- limits --------------------------------------------------------------------------------------- */

/* May the packet at `ip` be essential? The header is read again. */
static __always_inline bool may_be_essential_at(const __u8 *ip, const __u8 *end, const int family)
{
	struct key k = {};

	return ip + sizeof(struct iphdr) + sizeof(struct udphdr) > end ||
	       !(family == 4 ? read_ip4(ip, end, &k) : read_ip6(ip, end, &k)) ||
	       may_be_essential(k, family);
}

/* What follows the first rule of the only word. ip: the header. */
static __always_inline struct fate after_first(__u64 word, const __u8 *ip, const __u8 *end,
					       __u32 class, __u32 family)
{
	word &= word - 1;
	if (word)
		return act_common(word, 0, 0);
	if (!drops_by_default(class))
		return (struct fate){.reason = REASON_PASS_DEFAULT, .counter = EVENT_NO_RULE};
	if (family == 4 ? may_be_essential_at(ip, end, 4) : may_be_essential_at(ip, end, 6))
		return ASK;
	return (struct fate){.reason = REASON_DROP_DEFAULT, .counter = EVENT_NO_RULE};
}

/* The fate by the first rule of the only word, which has a limit; its counter in the upper half, the reason in the lower
 * one. What follows must be known before: the limit charges the packet, which cannot begin anew after that. Global, and
 * it reads the frame again: so other packets keep nothing in registers for it. */
__noinline __u64 decide_limited(struct xdp_md *ctx, __u64 word, __u32 class, __u32 family)
{
	const __u8 *at = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	struct fate first, next = ASK;
	__u32 l3 = ETH_HLEN;

	/* Kernel 6.1 verifies what nothing calls, too: without rules there are no actions. */
	if (!RULES(M_WORDS) || at + ETH_HLEN + sizeof(struct vlan_tag) > end)
		return (__u32)GO_ON;
	first = act_common(word, 0, 0);
	l3 += BOUND(is_tagged(*(const __be16 *)(at + 12)), sizeof(struct vlan_tag));
	if (!is_test())
		next = after_first(word, at + l3, end, class, family);
	if (next.reason < 0)
		return (__u32)GO_ON;
	if (!limit_holds(ctx, matrix_limit_rule(first.reason), l3, family))
		return (__u64)next.counter << 32 | (__u32)next.reason;
	return (__u64)first.counter << 32 | (__u32)matrix_limit_reason(first.reason);
}

/* ---- decide -------------------------------------------------------------------------------------- */

/* By the first word that is not 0, and its number. With services no action is a limit: what comes after it is not known
 * before. */
static __always_inline struct fate decide_by_word(struct xdp_md *ctx, __u64 word, __u32 number,
						  const struct key k, const int family,
						  const struct arrival p)
{
	struct fate f;
	__u64 limited;

	if (!word)
		return default_common(k, family, p.class);
	f = act_common(word, number, k.length);
	if (p.balances || likely(f.reason >= MATRIX_ASK))
		return f;
	limited = decide_limited(ctx, word, p.class, family);
	return (struct fate){(__s32)limited, limited >> 32, k.length, XDP_PASS};
}

/* By a matrix of any size. Kernel 6.1 allows no read of what was not written, not even of what is not used. */
static __always_inline bool find_word(const struct key *k, const int family, __u32 class,
				      __u64 *ret_word, __u32 *ret_number)
{
	struct matrix m = {};

	*ret_number = 0;
	if (!add_all(&m, k, family, class))
		return false;
	*ret_word = RULES(M_WORDS) == 1 ? m.word : first_word(&m, ret_number);
	return true;
}

/* What a matrix says: where the action of the first match is, or one of these. */
enum { MATCH_NONE = -1, MATCH_FAILED = -2 };

static __always_inline __s64 find_place(const struct key *k, const int family, __u32 class)
{
	__u32 number;
	__u64 word;

	if (!find_word(k, family, class, &word, &number))
		return MATCH_FAILED;
	return word ? (__s64)action_place(word, number) : MATCH_NONE;
}

/* Global, because they are verified once: not for each protocol, nor with all that services do after them. */
__noinline __s64 find_place4(struct key *k, __u32 class)
{
	return k ? find_place(k, 4, class) : MATCH_FAILED;
}

__noinline __s64 find_place6(struct key *k, __u32 class)
{
	return k ? find_place(k, 6, class) : MATCH_FAILED;
}

static __always_inline struct fate decide_by_call(struct key k, const int family, __u32 class)
{
	__s64 place = family == 4 ? find_place4(&k, class) : find_place6(&k, class);

	if (place == MATCH_FAILED)
		return ASK;
	if (place == MATCH_NONE)
		return default_common(k, family, class);
	return act_at(BOUND(place, POLICY_WORDS_MAX * 64 - 1), k.length);
}

static __always_inline struct fate decide_by_matrix(struct xdp_md *ctx, const struct key k,
						    const int family, const struct arrival p)
{
	__u32 number;
	__u64 word;

	if (p.balances)
		return decide_by_call(k, family, p.class);
	if (!find_word(&k, family, p.class, &word, &number))
		return ASK;
	return decide_by_word(ctx, word, number, k, family, p);
}

static __always_inline struct fate decide_by_rules(struct xdp_md *ctx, const struct key k,
						   const int family, const struct arrival p)
{
	/* On an interface that the policy does not name entries alone hold. */
	if (!RULES(M_WORDS) || (MARKER(MARK_NAMED) && !p.class))
		return default_common(k, family, p.class);
	if (!RULES(M_SMALL))
		return decide_by_matrix(ctx, k, family, p);
	return decide_by_word(ctx, small_word(k, family, p.class), 0, k, family, p);
}

/* ---- all ----------------------------------------------------------------------------------------- */

/* Entries of hosts; where a prefix may be around an address the general program is asked. */
static __always_inline int overlay_common(const struct key k, const int family)
{
	if (likely(!*(const volatile __u32 *)&knobs.overlay) || (is_test() && !test_is_live()))
		return GO_ON;
	return family == 4 ? overlay4(bpf_htonl(k.src_hi), bpf_htonl(k.dst_hi), k.length)
			   : overlay6(k.src_hi, k.src_lo, k.dst_hi, k.dst_lo, k.length);
}

/* Entries, then rules, then the default. */
static __always_inline struct fate decide_common(struct xdp_md *ctx, const struct key k,
						 const int family, const struct arrival p)
{
	int reason = overlay_common(k, family);

	if (reason == OVERLAY_ASK)
		return ASK;
	if (reason != GO_ON)
		return (struct fate){reason, EVENT_NO_RULE, k.length, XDP_PASS};
	return decide_by_rules(ctx, k, family, p);
}

/* What passes on an interface of the policy may be for a service. */
static __always_inline struct fate continue_common(struct xdp_md *ctx, const struct key k,
						   const int family, const __u8 *ip,
						   const struct arrival p, struct fate f)
{
	const struct place at = {.frame = p.frame, .ip = ip};

	/* The same for each decision: not to be kept for each. */
	f.length = k.length;
	f.verdict = XDP_PASS;
	if (!p.balances || !for_services(f.reason))
		return f;
	/* The class first: the compiler is not to make one test of both. */
	if (!p.class && MARKER(MARK_NAMED))
		return f;
	return balance_common(ctx, k, family, at, p.number, f);
}

static __always_inline struct fate way4(struct xdp_md *ctx, const __u8 *ip, const __u8 *end,
					const struct arrival p)
{
	struct key k = {.vlan = p.vlan};

	if (!read_ip4(ip, end, &k))
		return ASK;
	return continue_common(ctx, k, 4, ip, p, decide_common(ctx, k, 4, p));
}

static __always_inline struct fate way6(struct xdp_md *ctx, const __u8 *ip, const __u8 *end,
					const struct arrival p)
{
	struct key k = {.vlan = p.vlan};

	if (!read_ip6(ip, end, &k))
		return ASK;
	return continue_common(ctx, k, 6, ip, p, decide_common(ctx, k, 6, p));
}

/* Steps over a tag; returns where the frame would begin without it. In a program with services without a branch. */
static __always_inline const __u8 *step_over_tag(const __u8 *at, struct arrival *p)
{
	__be16 ethertype = *(const __be16 *)(at + 12);
	__u64 tagged = ~0ull;

	if (p->balances)
		tagged = is_tagged(ethertype);
	else if (likely(ethertype != bpf_htons(ETH_P_8021Q) &&
			ethertype != bpf_htons(ETHERTYPE_QINQ)))
		return at;
	p->vlan = read16(at + 14) & tagged;
	return at + BOUND(tagged, sizeof(struct vlan_tag));
}

static __always_inline struct fate way(struct xdp_md *ctx, struct arrival p)
{
	const __u8 *at = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	const __u32 least = ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr);
	__be16 ethertype;

	/* One register for the check and every access. */
	asm volatile("" : "+r"(at));
	if (at + least > end)
		return ASK;
	p.frame = at;
	at = step_over_tag(at, &p);
	if (at + least > end)
		return ASK;
	ethertype = *(const __be16 *)(at + 12);
	if (likely(ethertype == bpf_htons(ETH_P_IP)))
		return way4(ctx, at + ETH_HLEN, end, p);
	return ethertype == bpf_htons(ETH_P_IPV6) ? way6(ctx, at + ETH_HLEN, end, p) : ASK;
}

static __always_inline void count_common(__u32 number, const struct fate f)
{
	__u32 index = f.counter;

	if (index != EVENT_NO_RULE)
		counter_add(bpf_map_lookup_elem(&rulecounters, &index), f.length);
	count_at(number, f.reason, f.length);
}

/* The verdict of a packet that is counted here; GO_ON: nothing is counted or written, the general program begins. */
static __always_inline int short_way(struct xdp_md *ctx, bool balances)
{
	__u32 number = iface_number(ctx);
	const struct arrival p = {
		.number = number, .class = policy_class(number), .balances = balances};
	struct fate f = way(ctx, p);

	if (f.reason == GO_ON)
		return GO_ON;
	if (is_test())
		test_answer(f.reason);
	else
		count_common(number, f);
	if (f.reason < REASON_DROP_FIRST)
		return f.verdict;
	/* A rule that let the packet pass to a service is not the one that dropped it. */
	if (!is_test())
		event(ctx, f.reason, f.reason == REASON_DROP_RULE ? f.counter : EVENT_NO_RULE);
	return XDP_DROP;
}
