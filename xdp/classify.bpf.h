/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "classify": looks up a row of the bit matrix for each field and finds the first match in
 * their AND. */
#pragma once

#include "xdp/act.bpf.h"
#include "xdp/matrix.bpf.h"

#define RULES(name)         TABLE_NUMBER(NULL, MATRIX_CONSTANT(MATRIX_RULES, name))
#define RULES_ARE(name, is) TABLE_IS(NULL, MATRIX_CONSTANT(MATRIX_RULES, name), is)

/* Through the map: otherwise the verifier would follow the code after the look-ups once for each
 * pair of their paths. */
static __always_inline policy_row address_row(struct packet *pkt, const int side)
{
	volatile __u32 *row = &pkt->row;

	*row = pkt->family ? side_row(side, pkt->family, side == SIDE_SOURCE ? pkt->src : pkt->dst)
			   : POLICY_ROW_ALL;
	return *row;
}

static __always_inline __u32 l4_index(const struct packet *pkt)
{
	__u32 icmp = pkt->icmp_type << 8 | pkt->icmp_code;

	if (!pkt->has_l4)
		return POLICY_L4_NONE;
	if (pkt->proto == IPPROTO_TCP)
		return POLICY_L4_FLAGS + pkt->tcp_flags;
	if (pkt->neighbour)
		return POLICY_L4_NEIGHBOUR + icmp - (133 << 8);
	if (pkt->proto == IPPROTO_ICMPV6)
		return POLICY_L4_ICMP6 + icmp;
	return pkt->proto == IPPROTO_ICMP ? POLICY_L4_ICMP + icmp : POLICY_L4_NONE;
}

static __always_inline bool has_ports(const struct packet *pkt)
{
	return pkt->has_l4 && (pkt->proto == IPPROTO_TCP || pkt->proto == IPPROTO_UDP ||
			       pkt->proto == IPPROTO_SCTP);
}

/* port: host order. */
static __always_inline policy_row port_row(const struct packet *pkt, const int matrix,
					   const int name, __u16 port)
{
	/* Kernel 6.1 does not know that a port in network order has 16 bits. */
	return matrix_cell(NULL, matrix, name,
			   has_ports(pkt) ? BOUND(bpf_htons(port), 0xffff) : POLICY_NO_PORT);
}

static __always_inline policy_row sport_row(const struct packet *pkt, const int matrix)
{
	return port_row(pkt, matrix, M_SPORT, pkt->sport);
}

static __always_inline policy_row dport_row(const struct packet *pkt, const int matrix)
{
	return port_row(pkt, matrix, M_DPORT, pkt->dport);
}

static __always_inline policy_row proto_row(const struct packet *pkt, const int matrix)
{
	__u64 index = pkt->fragment * 256 + pkt->proto;

	return matrix_cell(NULL, matrix, M_PROTO, BOUND(index, ROOM_PROTO - 1));
}

static __always_inline policy_row l4_row(const struct packet *pkt, const int matrix)
{
	/* In one register, whose bound is followed. */
	__u64 index = BOUND(l4_index(pkt), 0x3ffff);

	return index < ROOM_L4 ? matrix_cell(NULL, matrix, M_L4, index) : 0;
}

static __always_inline policy_row vlan_row(const struct packet *pkt, const int matrix)
{
	return matrix_cell(NULL, matrix, M_VLAN, BOUND(pkt->vlan, ROOM_VLAN - 1));
}

static __always_inline policy_row iface_row(const struct packet *pkt, const int matrix)
{
	return matrix_cell(NULL, matrix, M_IFACE, BOUND(pkt->iface, ROOM_IFACE - 1));
}

static __always_inline policy_row ethertype_row(const struct packet *pkt, const int matrix)
{
	return matrix_cell(NULL, matrix, M_ETHERTYPE, BOUND(pkt->ethertype, ROOM_ETHERTYPE - 1));
}

/* field is a constant: only its case is left. */
static __always_inline policy_row field_row(struct packet *pkt, const int matrix, const int field)
{
#define SIDE_ROW(field)     \
	case FIELD_##field: \
		return address_row(pkt, SIDE_##field);
#define CELL_ROW(field, room, row, ...) \
	case FIELD_##field:             \
		return row(pkt, matrix);
	switch (field) {
		MATRIX_SIDES(SIDE_ROW)
		MATRIX_CELLS(CELL_ROW)
	}
	return 0;
#undef SIDE_ROW
#undef CELL_ROW
}

/* Can any rule match this packet at all? (common/fields.h, FIELD_L4 and FIELD_ETHERTYPE.) */
static __always_inline bool matchable(const struct packet *pkt)
{
	if (!policy_holds(pkt))
		return false;
	if (pkt->neighbour)
		return matrix_uses(NULL, MATRIX_RULES, FIELD_L4);
	return pkt->family || matrix_uses(NULL, MATRIX_RULES, FIELD_ETHERTYPE);
}

static __always_inline bool fill_field(struct packet *pkt, struct matrix *m, const int field)
{
	policy_row row;

	if (!matrix_uses(NULL, MATRIX_RULES, field))
		return true;
	row = field_row(pkt, MATRIX_RULES, field);
	return row && matrix_add(m, MATRIX_RULES, field, row);
}

/* False when a look-up fails that cannot. */
static __always_inline bool matrix_fill(struct packet *pkt, struct matrix *m)
{
#define FILL_FIELD(field, ...) &&fill_field(pkt, m, FIELD_##field)
	m->word = ~0ull;
	return true MATRIX_FIELDS(FILL_FIELD);
#undef FILL_FIELD
}

/* Bits of the rules first … last - 1 in word w, which has some. The end is found without a branch,
 * of which the verifier would follow both sides in each turn of the loop over words. */
static __always_inline __u64 range_bits(__u32 w, __u32 first, __u32 last)
{
	__u64 left = last - w * 64;
	__u64 bits = SHIFT_RIGHT(~0ull, (64 - left) * is_less(left, 64));

	if (w * 64 < first)
		bits &= first - w * 64 < 64 ? ~0ull << (first - w * 64) : 0;
	return bits;
}

/* The rule among those in `word` that decides; GO_ON when none does. */
static __always_inline int match_word(struct xdp_md *ctx, struct packet *pkt, __u64 word, __u32 w)
{
	if (!word)
		return GO_ON;
	return policy.conditions ? try_word(ctx, pkt, word, w * 64)
				 : (int)(w * 64 + lowest_bit(word));
}

/* The first of the rules first … last - 1 that matches and decides; GO_ON when none does. */
static __always_inline int match(struct xdp_md *ctx, struct packet *pkt, const struct matrix *m,
				 __u32 first, __u32 last)
{
	/* Known to the verifier, which walks no more words than there are. */
	__u32 words = (last + 63) / 64 - first / 64;
	__u64 some;

	if (RULES_ARE(M_WORDS, 1))
		return match_word(ctx, pkt, m->word & range_bits(0, first, last), 0);
	if (words == 1)
		return match_word(ctx, pkt,
				  matrix_word(m, first / 64 + 1) &
					  range_bits(first / 64, first, last),
				  first / 64);
	some = matrix_word(m, 0) & range_bits(0, first / 64, (last + 63) / 64);
	for (__u32 i = 0; i < POLICY_WORDS_MAX && i < words && some; i++) {
		__u32 w = lowest_bit(some);
		int rule;

		some &= some - 1;
		if (w >= RULES(M_WORDS))
			break;
		rule = match_word(ctx, pkt, matrix_word(m, w + 1) & range_bits(w, first, last), w);
		if (rule != GO_ON)
			return rule;
	}
	return GO_ON;
}

/* Looks up the rows; false when that fails. */
static __always_inline bool classify_prepare(struct packet *pkt, struct matrix *m)
{
	m->filled = matchable(pkt);
	return !m->filled || matrix_fill(pkt, m);
}

/* The first of the rules first … last - 1 that matches and decides, once the rows are there; GO_ON
 * when none does. */
static __always_inline int classify(struct xdp_md *ctx, struct packet *pkt, const struct matrix *m,
				    __u32 first, __u32 last)
{
	return m->filled ? match(ctx, pkt, m, first, last) : GO_ON;
}
