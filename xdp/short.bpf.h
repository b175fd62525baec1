/* SPDX-License-Identifier: GPL-2.0-only */
/* The short way: what most packets are, from the frame to the verdict.
 *
 * Common is Ethernet with at most one tag; IPv4 without options, not a fragment, or IPv6 without
 * extension headers; TCP, UDP or ICMP, but not neighbour discovery; whole and well-formed, its
 * headers in the first buffer. One stage reads all of it into registers; the others work on these
 * values, on the same tables and to the same end as those of the general program. Nothing is
 * written and nothing counted before the last point where a stage can leave the packet to the
 * general program, so that the packet begins there anew.
 *
 * The family is a constant in every function: what the other family needs is never in a
 * register. */
#pragma once

#include "xdp/answer.bpf.h"
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
	__u32 number;  /* of the interface in the instance */
	__u32 class;   /* in the policy, and 1; 0: it does not name it */
	__u32 vlan;    /* number; 0: no tag */
	bool balances; /* a constant: the policy has services */
	const __u8 *frame;
};

/* ---- read ------------------------------------------------------------------------------------ */

/* A common packet: where it is, and what the first look at it has told. The stages read the rest
 * where they need it: a load takes less than a place on the stack. */
struct view {
	const __u8 *ip; /* the header of IP; the 8 bytes after it are there too */
	__u32 base;     /* enum matrix_base, TCP's with the flags */
};

#define NOT_COMMON (-1)

static __always_inline __u32 read16(const __u8 *at)
{
	return bpf_ntohs(*(const volatile __be16 *)at);
}

static __always_inline __u32 read32(const __u8 *at)
{
	return bpf_ntohl(*(const volatile __be32 *)at);
}

/* Of processors that read words from anywhere, as BPF takes it for granted of those with fewer
 * bytes. */
static __always_inline __u64 read64(const __u8 *at)
{
	return bpf_be64_to_cpu(*(const volatile __be64 *)at);
}

/* All ones if a tag follows, else 0. Without a branch: the verifier would follow the whole balancer
 * for either side. */
static __always_inline __u64 is_tagged(__be16 ethertype)
{
	return if_zero32(ethertype ^ bpf_htons(ETH_P_8021Q)) |
	       if_zero32(ethertype ^ bpf_htons(ETHERTYPE_QINQ));
}

static __always_inline int header_of(const int family)
{
	return family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
}

static __always_inline __u32 read_length(const __u8 *ip, const int family)
{
	return family == 4 ? read16(ip + 2) : header_of(6) + read16(ip + 4);
}

/* The rest of a packet from `l4` on, `size` bytes, is in the buffer; 8 bytes at least. Returned is
 * the place in M_BASE, or NOT_COMMON, also of what is malformed in a way that the general program
 * tells. */
static __always_inline int read_tcp(const __u8 *l4, const __u8 *end, __s32 size)
{
	__s32 header;

	if (l4 + sizeof(struct tcphdr) > end)
		return NOT_COMMON;
	header = l4[12] >> 2 & 0x3c;
	if (header < (__s32)sizeof(struct tcphdr) || header > size)
		return NOT_COMMON;
	return BASE_TCP + l4[13];
}

/* 0, which the verifier does not know: a byte in the frame that is `value`, less that. With it what
 * differs by constants is the same for the verifier, which then follows the rest of the program
 * once. */
static __always_inline __u32 unknown_zero(const __u8 *at, const __u8 value)
{
	return *(const volatile __u8 *)at - value;
}

/* at: the protocol, which is `proto`. The balancer must know it, as less of UDP is known to be
 * there. */
static __always_inline int base_of(const __u8 *at, const __u8 proto, const int base, bool balances)
{
	__u64 unknown = base + unknown_zero(at, proto);

	return balances ? base : (int)BOUND(unknown, MATRIX_BASES - 1);
}

static __always_inline bool is_udp(const __u8 *l4, __s32 size)
{
	__s32 length = read16(l4 + 4);

	return length >= (__s32)sizeof(struct udphdr) && length <= size;
}

/* Neighbour discovery is told by more than its type. */
static __always_inline bool is_icmp_common(const __u8 *l4, const int family, __s32 size)
{
	return size >= (__s32)sizeof(struct icmp_head) &&
	       !(family == 6 && l4[0] >= 133 && l4[0] <= 136);
}

static __always_inline int read_l4(const __u8 *ip, const __u8 *end, const int family, __s32 size,
				   bool balances)
{
	const int icmp = family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	const __u8 *l4 = ip + header_of(family), *at = ip + (family == 4 ? 9 : 6);
	__u8 proto = *at;

	if (likely(proto == IPPROTO_TCP))
		return read_tcp(l4, end, size);
	if (proto == IPPROTO_UDP)
		return is_udp(l4, size) ? base_of(at, IPPROTO_UDP, BASE_UDP, balances) : NOT_COMMON;
	return proto == icmp && is_icmp_common(l4, family, size)
		       ? base_of(at, icmp, BASE_ICMP, balances)
		       : NOT_COMMON;
}

/* The whole packet is in the buffer, of which the header and 8 bytes are known to be there. */
static __always_inline int read_packet(const __u8 *ip, const __u8 *end, const int family,
				       bool balances)
{
	__s32 length = read_length(ip, family);

	if (length > end - ip)
		return NOT_COMMON;
	return read_l4(ip, end, family, length - header_of(family), balances);
}

static __always_inline int read_ip4(const __u8 *ip, const __u8 *end, bool balances)
{
	if (ip[0] != 0x45 || *(const __be16 *)(ip + 6) & bpf_htons(IP4_MORE | IP4_OFFSET))
		return NOT_COMMON;
	return read_packet(ip, end, 4, balances);
}

static __always_inline int read_ip6(const __u8 *ip, const __u8 *end, bool balances)
{
	if (ip + sizeof(struct ipv6hdr) + sizeof(struct udphdr) > end || ip[0] >> 4 != 6)
		return NOT_COMMON;
	return read_packet(ip, end, 6, balances);
}

static __always_inline bool is_icmp_view(const struct view v)
{
	return v.base == BASE_ICMP;
}

/* Network order; POLICY_NO_PORT. */
static __always_inline __u64 port_of(const struct view v, const int family, const int offset)
{
	if (unlikely(is_icmp_view(v)))
		return POLICY_NO_PORT;
	return *(const volatile __be16 *)(v.ip + header_of(family) + offset);
}

static __always_inline __u64 sport_of(const struct view v, const int family)
{
	return port_of(v, family, 0);
}

static __always_inline __u64 dport_of(const struct view v, const int family)
{
	return port_of(v, family, 2);
}

/* Type and code. */
static __always_inline __u64 icmp_of(const struct view v, const int family)
{
	return read16(v.ip + header_of(family));
}

/* For those who need most of it. */
static __always_inline struct key key_of(const struct view v, const int family)
{
	const __u8 *ip = v.ip;
	struct key k = {
		.base = v.base,
		.length = read_length(ip, family),
	};

	if (family == 4) {
		k.src_hi = read32(ip + 12);
		k.dst_hi = read32(ip + 16);
	} else {
		k.src_hi = read64(ip + 8);
		k.src_lo = read64(ip + 16);
		k.dst_hi = read64(ip + 24);
		k.dst_lo = read64(ip + 32);
	}
	return k;
}

static __always_inline const __u8 *address_at(const struct view v, const int family, const int side)
{
	if (family == 4)
		return v.ip + (side == SIDE_SOURCE ? 12 : 16);
	return v.ip + (side == SIDE_SOURCE ? 8 : 24);
}

static __always_inline __u64 address_row_of(const struct view v, const int family, const int side,
					    const bool small)
{
	const __u8 *at = address_at(v, family, side);

	return family == 4 ? table4_row(NULL, side, read32(at), small)
			   : table6_row(NULL, side, read64(at), read64(at + 8), small);
}

/* ---- classify -------------------------------------------------------------------------------- */

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
static __always_inline bool add_base(struct matrix *m, const struct view v, const int family)
{
	const __u8 *at = TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_BASE));
	__u64 index = BOUND(v.base, MATRIX_BASES - 1) + (family == 6 ? MATRIX_BASES : 0);
	const __u64 *row;

	if (RULES_ARE(M_WORDS, 1)) {
		m->word = ((const __u64 *)at)[index];
		return true;
	}
	row = matrix_row(NULL, MATRIX_RULES, ((const __u32 *)at)[index]);
	m->row[FIELD_PROTO] = m->row[FIELD_L4] = m->row[FIELD_ETHERTYPE] = row;
	return row != NULL;
}

/* Type and code of ICMP are not in the base. */
static __always_inline __u64 icmp_cell(const struct view v, const int family)
{
	return (family == 4 ? POLICY_L4_ICMP : POLICY_L4_ICMP6) + BOUND(icmp_of(v, family), 0xffff);
}

static __always_inline bool add_icmp(struct matrix *m, const struct view v, const int family)
{
	return !is_icmp_view(v) || add_cell(m, FIELD_L4, M_L4, icmp_cell(v, family));
}

/* A row that is a constant and one that is not would be two states at the words. */
static __always_inline bool add_address(struct matrix *m, const struct view v, const int family,
					const int side)
{
	__u64 row = address_row_of(v, family, side, false);

	return matrix_add(m, MATRIX_RULES, side == SIDE_SOURCE ? FIELD_SOURCE : FIELD_DESTINATION,
			  BOUND_FORGET(row, read32(v.ip + 12)));
}

/* false: a look-up has failed that cannot. */
static __always_inline bool add_all(struct matrix *m, const struct view v, const int family,
				    const struct arrival p)
{
	return add_base(m, v, family) && (!uses(FIELD_L4) || add_icmp(m, v, family)) &&
	       (!uses(FIELD_VLAN) ||
		add_cell(m, FIELD_VLAN, M_VLAN, BOUND(p.vlan, MATRIX_VLANS - 1))) &&
	       (!uses(FIELD_IFACE) ||
		add_cell(m, FIELD_IFACE, M_IFACE, BOUND(p.class, MATRIX_IFACES - 1))) &&
	       (!uses(FIELD_SPORT) || add_cell(m, FIELD_SPORT, M_SPORT, sport_of(v, family))) &&
	       (!uses(FIELD_DPORT) || add_cell(m, FIELD_DPORT, M_DPORT, dport_of(v, family))) &&
	       (!uses(FIELD_SOURCE) || add_address(m, v, family, SIDE_SOURCE)) &&
	       (!uses(FIELD_DESTINATION) || add_address(m, v, family, SIDE_DESTINATION));
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

/* word & bits, in the register of `word`. */
static __always_inline __u64 and_bits(__u64 word, __u64 bits)
{
	asm("%0 &= %1" : "+r"(word) : "r"(bits));
	return word;
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

	b->word[0] = and_bits(b->word[0], row[0]);
	b->word[1] = and_bits(b->word[1], row[1]);
	b->word[2] = and_bits(b->word[2], row[2]);
	b->word[3] = and_bits(b->word[3], row[3]);
}

/* The words from `place` on. A field at a time, so that they stay in registers. */
static __always_inline struct and_block block_at(const struct matrix *m, __u32 place)
{
	const __u64 *base = m->row[FIELD_PROTO] + place;
	struct and_block b = {{base[0], base[1], base[2], base[3]}};

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

/* A word of the AND that is not 0, and its number. */
struct and_found {
	__u64 word; /* 0: no rule matches */
	__u32 number;
};

/* Are there no more words? Apart from what follows: the compiler would put the result of the search
 * before the marker. */
static __always_inline bool is_end(const int number)
{
	if (!RULES_ARE(M_WORDS, number))
		return false;
	asm volatile("");
	return true;
}

/* Is the search at its end, with this word or after the last one? */
static __always_inline bool is_word_found(__u64 word, const int number, struct and_found *f)
{
	if (is_end(number))
		return true;
	if (!word)
		return false;
	f->word = word;
	f->number = number;
	return true;
}

static __always_inline bool is_last_block(const int first)
{
	return is_end(first + 1) || is_end(first + 2) || is_end(first + 3) || is_end(first + 4);
}

/* The same with the four words from `first` on. some: the summary, with bits for those that may be
 * not 0. */
static __always_inline bool is_block_found(const struct matrix *m, const int first, __u64 some,
					   struct and_found *f)
{
	struct and_block b;

	if (some >> first & ((1 << SHORT_BLOCK) - 1)) {
		b = block_at(m, first + 1);
		if (is_word_found(b.word[0], first, f) || is_word_found(b.word[1], first + 1, f) ||
		    is_word_found(b.word[2], first + 2, f) ||
		    is_word_found(b.word[3], first + 3, f))
			return true;
	}
	return is_last_block(first);
}

/* The first word of the AND that is not 0; its summary is `some`. Written out: where a word is is a
 * constant then, and so is the number of the marker that ends the search; and at the head of a loop
 * the verifier keeps few states, so that it would follow each way through a block to the end of
 * all. */
static __always_inline struct and_found search_words(const struct matrix *m, __u64 some)
{
	struct and_found f = {};

#define BLOCK(n) is_block_found(m, (n)*SHORT_BLOCK, some, &f)
	_Static_assert(POLICY_WORDS_MAX == 16 * SHORT_BLOCK, "each block is written out");
	(void)(BLOCK(0) || BLOCK(1) || BLOCK(2) || BLOCK(3) || BLOCK(4) || BLOCK(5) || BLOCK(6) ||
	       BLOCK(7) || BLOCK(8) || BLOCK(9) || BLOCK(10) || BLOCK(11) || BLOCK(12) ||
	       BLOCK(13) || BLOCK(14) || BLOCK(15));
#undef BLOCK
	return f;
}

/* The first word of the AND that is not 0, and its number; 0: no rule matches. More than one word
 * of rules. A bit of the summary can be set without a match; if there is one bit, it leads straight
 * to the word. */
static __always_inline __u64 first_word(const struct matrix *m, __u32 *ret_number)
{
	__u64 some = word_at(m, 0);
	struct and_found f;

	*ret_number = 0;
	if (!some)
		return 0;
	if (!(some & (some - 1))) {
		*ret_number = lowest_bit(some);
		return *ret_number < RULES(M_WORDS) ? word_at(m, *ret_number + 1) : 0;
	}
	f = search_words(m, some);
	/* Else what follows would be verified for each word. */
	*ret_number = BOUND_FORGET(f.number, some);
	return f.word;
}

/* ---- one word, few rows ---------------------------------------------------------------------- */

/* The same for most policies, without tests that they need not: no row can be out of bounds. */
static __always_inline __u64 small_row(__u64 row)
{
	return ((const __u64 *)TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_ROWS)))[row];
}

static __always_inline __u64 small_cell(const int name, __u64 index)
{
	return small_row(TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, name))[index]);
}

static __always_inline __u64 small_address(const struct view v, const int family, const int side)
{
	return small_row(address_row_of(v, family, side, true));
}

/* The row of an address is not read from a table. */
static __always_inline bool is_address_plain(const int family, const int side)
{
	if (family == 4)
		return TABLE_IS(NULL, SIDE_CONSTANT(side, H4_KIND), HOSTS4_NONE) &&
		       (TABLE_IS(NULL, SIDE_CONSTANT(side, T4_KIND), T4_ALL) ||
			TABLE_IS(NULL, SIDE_CONSTANT(side, T4_KIND), T4_ONE));
	return TABLE_IS(NULL, SIDE_CONSTANT(side, H6_LINES_N), 0) &&
	       TABLE_IS(NULL, SIDE_CONSTANT(side, T6_KIND), TABLE6_ONE);
}

/* Has a policy with few rows tables of these addresses? Kernel 6.1 verifies what nothing calls,
 * too. */
static __always_inline bool is_address_small(const int family, const int side)
{
	return !RULES_ARE(M_SMALL, 0) &&
	       uses(side == SIDE_SOURCE ? FIELD_SOURCE : FIELD_DESTINATION) &&
	       !is_address_plain(family, side);
}

/* With services these ways through the tables are verified once: not for each protocol, nor with
 * all that services do after them. Global; the address is in host order. */
__noinline __u64 small_source4(__u64 addr)
{
	if (!is_address_small(4, SIDE_SOURCE))
		return 0;
	return small_row(table4_row(NULL, SIDE_SOURCE, addr, true));
}

__noinline __u64 small_destination4(__u64 addr)
{
	if (!is_address_small(4, SIDE_DESTINATION))
		return 0;
	return small_row(table4_row(NULL, SIDE_DESTINATION, addr, true));
}

__noinline __u64 small_source6(__u64 hi, __u64 lo)
{
	if (!is_address_small(6, SIDE_SOURCE))
		return 0;
	return small_row(table6_row(NULL, SIDE_SOURCE, hi, lo, true));
}

__noinline __u64 small_destination6(__u64 hi, __u64 lo)
{
	if (!is_address_small(6, SIDE_DESTINATION))
		return 0;
	return small_row(table6_row(NULL, SIDE_DESTINATION, hi, lo, true));
}

static __always_inline __u64 small_by_call(const struct view v, const int family, const int side)
{
	const __u8 *at = address_at(v, family, side);

	if (family == 4)
		return side == SIDE_SOURCE ? small_source4(read32(at))
					   : small_destination4(read32(at));
	return side == SIDE_SOURCE ? small_source6(read64(at), read64(at + 8))
				   : small_destination6(read64(at), read64(at + 8));
}

static __always_inline __u64 small_side(const struct view v, const int family, const int side,
					bool balances)
{
	if (balances && !is_address_plain(family, side))
		return small_by_call(v, family, side);
	return small_address(v, family, side);
}

static __always_inline __u64 small_word(const struct view v, const int family,
					const struct arrival p)
{
	const __u64 *base = (const void *)TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_BASE));
	__u64 word = base[BOUND(v.base, MATRIX_BASES - 1) + (family == 6 ? MATRIX_BASES : 0)];

	if (uses(FIELD_L4) && is_icmp_view(v))
		word = and_bits(word, small_cell(M_L4, icmp_cell(v, family)));
	if (uses(FIELD_VLAN))
		word = and_bits(word, small_cell(M_VLAN, BOUND(p.vlan, MATRIX_VLANS - 1)));
	if (uses(FIELD_IFACE))
		word = and_bits(word, small_cell(M_IFACE, BOUND(p.class, MATRIX_IFACES - 1)));
	if (uses(FIELD_SPORT))
		word = and_bits(word, small_cell(M_SPORT, sport_of(v, family)));
	if (uses(FIELD_DPORT))
		word = and_bits(word, small_cell(M_DPORT, dport_of(v, family)));
	if (uses(FIELD_SOURCE))
		word = and_bits(word, small_side(v, family, SIDE_SOURCE, p.balances));
	if (uses(FIELD_DESTINATION))
		word = and_bits(word, small_side(v, family, SIDE_DESTINATION, p.balances));
	return word;
}

/* ---- decide ---------------------------------------------------------------------------------- */

/* Where the action of the first rule in `word` is, the word of this number. */
static __always_inline __u64 action_place(__u64 word, __u32 number)
{
	const struct matrix_action *actions =
		(const void *)TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_ACTIONS));
	__u64 place = matrix_action_place(word);

	/* Masked: kernel 6.1 does not connect a number with its copy on the stack. */
	if (!RULES_ARE(M_WORDS, 1))
		place = BOUND(place + number * 64, POLICY_WORDS_MAX * 64 - 1);
	if (is_test() && actions[place].reason >= 0)
		test_rule(number * 64 + lowest_bit(word));
	return place;
}

/* The length is known to who asks. */
static __always_inline struct fate act_at(__u64 place)
{
	const struct matrix_action *action =
		(const void *)TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_ACTIONS));

	action += place;
	return (struct fate){.reason = action->reason, .counter = action->counter};
}

/* The first rule in `word`, the word of this number. */
static __always_inline struct fate act_common(__u64 word, __u32 number)
{
	return act_at(action_place(word, number));
}

static __always_inline bool drops_by_default(__u32 class)
{
	return !marker_is(MARK_DEFAULT_DROP, 0) &&
	       SHIFT_RIGHT(MARKER(MARK_DEFAULT_DROP), class) & 1;
}

/* What may be essential is left to the general program. */
static __always_inline bool may_be_essential(const struct view v, const int family)
{
	__u32 ports = *(const volatile __u32 *)(v.ip + header_of(family));

	if (is_icmp_view(v))
		return true;
	if (v.base != BASE_UDP)
		return false;
	return family == 4 ? ports == (bpf_htons(67) | bpf_htons(68) << 16)
			   : ports == (bpf_htons(547) | bpf_htons(546) << 16);
}

static __always_inline struct fate decided(int reason)
{
	return (struct fate){.reason = reason, .counter = EVENT_NO_RULE};
}

static __always_inline struct fate default_common(const struct view v, const int family,
						  __u32 class)
{
	if (!drops_by_default(class))
		return decided(REASON_PASS_DEFAULT);
	return may_be_essential(v, family) ? ASK : decided(REASON_DROP_DEFAULT);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* May the packet at `ip` be essential? The header is read again. */
static __always_inline bool may_be_essential_at(const __u8 *ip, const __u8 *end, const int family)
{
	struct view v = {.ip = ip};
	int base;

	if (ip + sizeof(struct iphdr) + sizeof(struct udphdr) > end)
		return true;
	base = family == 4 ? read_ip4(ip, end, false) : read_ip6(ip, end, false);
	v.base = base;
	return base == NOT_COMMON || may_be_essential(v, family);
}

/* What follows the first rule of the only word. ip: the header. */
static __always_inline struct fate after_first(__u64 word, const __u8 *ip, const __u8 *end,
					       __u32 class, __u32 family)
{
	word &= word - 1;
	if (word)
		return act_common(word, 0);
	if (!drops_by_default(class))
		return decided(REASON_PASS_DEFAULT);
	if (family == 4 ? may_be_essential_at(ip, end, 4) : may_be_essential_at(ip, end, 6))
		return ASK;
	return decided(REASON_DROP_DEFAULT);
}

/* The fate by the first rule of the only word, which has a limit; its counter in the upper half,
 * the reason in the lower one. What follows must be known before: the limit charges the packet,
 * which cannot begin anew after that. Global, and it reads the frame again: so other packets keep
 * nothing in registers for it. */
__noinline __u64 decide_limited(struct xdp_md *ctx, __u64 word, __u32 class, __u32 family)
{
	const __u8 *at = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	struct fate first, next = ASK;
	__u32 l3 = ETH_HLEN;

	/* Kernel 6.1 verifies what nothing calls, too: without rules there are no actions. */
	if (RULES_ARE(M_WORDS, 0) || at + ETH_HLEN + sizeof(struct vlan_tag) > end)
		return (__u32)GO_ON;
	first = act_common(word, 0);
	l3 += BOUND(is_tagged(*(const __be16 *)(at + 12)), sizeof(struct vlan_tag));
	if (!is_test())
		next = after_first(word, at + l3, end, class, family);
	if (next.reason < 0)
		return (__u32)GO_ON;
	if (!limit_holds(ctx, matrix_limit_rule(first.reason), l3, family))
		return (__u64)next.counter << 32 | (__u32)next.reason;
	return (__u64)first.counter << 32 | (__u32)matrix_limit_reason(first.reason);
}

/* ---- decide ---------------------------------------------------------------------------------- */

/* By the first word that is not 0, and its number. With services no action is a limit: what comes
 * after it is not known before. */
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

/* By a matrix of any size. Kernel 6.1 allows no read of what was not written, not even of what is
 * not used. */
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

/* What a matrix says: where the action of the first match is, or one of these. */
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
	p.vlan = read16(ip) & tagged;
	ip += BOUND(tagged, sizeof(struct vlan_tag));
	if (ip + header_of(family) + sizeof(struct udphdr) > end)
		return MATCH_FAILED;
	if (!find_word((struct view){.ip = ip, .base = base}, family, p, &word, &number))
		return MATCH_FAILED;
	return word ? (__s64)action_place(word, number) : MATCH_NONE;
}

/* Global, because they are verified once: not for each protocol, nor with all that services do
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
	/* On an interface that the policy does not name entries alone hold. */
	if (RULES_ARE(M_WORDS, 0) || (!marker_is(MARK_NAMED, 0) && !p.class))
		return default_common(v, family, p.class);
	if (RULES_ARE(M_SMALL, 0))
		return decide_by_matrix(ctx, v, family, p);
	return decide_by_word(ctx, small_word(v, family, p), 0, v, family, p);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Entries of hosts; where a prefix may be around an address the general program is asked. */
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

/* What passes on an interface of the policy may be for a service. */
static __always_inline struct fate continue_common(struct xdp_md *ctx, const struct view v,
						   const int family, const struct arrival p,
						   struct fate f)
{
	const struct vip_place at = {.frame = p.frame, .ip = v.ip};
	__u32 zero;

	if (!p.balances || !for_services(f.reason))
		return f;
	/* The class first: the compiler is not to make one test of both. */
	if (!p.class && !marker_is(MARK_NAMED, 0))
		return f;
	/* The verifier shall not take any other number for a protocol. */
	if (v.base >= BASE_ICMP)
		return ASK;
	zero = family == 4 ? unknown_zero(v.ip, 0x45)
			   : (__u32)(*(const volatile __u8 *)v.ip >> 4) - 6;
	f.reason += zero;
	f.counter += zero;
	return balance_common(ctx, key_of(v, family), family, at, p.number, f);
}

static __always_inline struct fate way_of(struct xdp_md *ctx, const __u8 *ip, const int family,
					  int base, const struct arrival p)
{
	const struct view v = {.ip = ip, .base = base};
	struct fate f = decide_common(ctx, v, family, p);

	/* The same for each decision: not to be kept for each. */
	f.length = read_length(ip, family);
	f.verdict = XDP_PASS;
	return continue_common(ctx, v, family, p, f);
}

/* Perhaps an answer to a check via path. */
static __always_inline bool is_for_check(const __u8 *ip, const int family, const struct arrival p)
{
	return p.balances && may_be_answer(*(const volatile __be16 *)(ip + header_of(family) + 2));
}

static __always_inline struct fate way4(struct xdp_md *ctx, const __u8 *ip, const __u8 *end,
					const struct arrival p)
{
	int base = read_ip4(ip, end, p.balances);

	return base == NOT_COMMON || is_for_check(ip, 4, p) ? ASK : way_of(ctx, ip, 4, base, p);
}

static __always_inline struct fate way6(struct xdp_md *ctx, const __u8 *ip, const __u8 *end,
					const struct arrival p)
{
	int base = read_ip6(ip, end, p.balances);

	return base == NOT_COMMON || is_for_check(ip, 6, p) ? ASK : way_of(ctx, ip, 6, base, p);
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
	/* Where the header of IP is, if no tag is in front of it. One register for the check and
	 * every access. */
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
		p.vlan = read16(ip) & tagged;
		ip += BOUND(tagged, sizeof(struct vlan_tag));
		if (ip + LEAST > end)
			return ASK;
	}
	return way_past_link(ctx, ip, end, p);
}

static __always_inline void count_common(__u32 number, const struct fate f)
{
	__u32 index = f.counter;

	if (index != EVENT_NO_RULE)
		counter_add(bpf_map_lookup_elem(&rulecounters, &index), f.length);
	count_at(number, f.reason, f.length);
}

/* The verdict of a packet that is counted here; GO_ON: nothing is counted or written, the general
 * program begins. */
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
