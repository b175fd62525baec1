/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "classify": looks up a row of the bit matrix for each field and finds the first match in their AND. */
#pragma once

#include "xdp/act.bpf.h"
#include "xdp/trie.bpf.h"

struct policy_words {
	__u64 word[POLICY_WORDS_MAX + 1];
};

/* value_size is set at load to POLICY_ROW_WORDS(policy.words) words. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct policy_words));
} rows SEC(".maps");

static __always_inline bool rows_find(struct trie_tables *t)
{
	__u32 zero = 0;

	return (t->rows = bpf_map_lookup_elem(&rows, &zero));
}

static __always_inline const struct policy_words *row_at(const struct trie_tables *t,
							 policy_row row)
{
	return table_at(t->rows, policy.flat.rows, 8 * POLICY_ROW_WORDS(policy.words), &rows, row);
}

/* The packet's rows by field. Only those with policy.use[] are set and looked at; where a row has one word,
 * their AND is all there is to know. */
struct matrix {
	const struct policy_words *row[POLICY_FIELDS];
	__u64 word;
	__u64 filled; /* eight bytes: the verifier follows those when they are spilled */
};

static __always_inline policy_row address_row(const struct trie_tables *t, const struct packet *pkt,
					      int field)
{
	const volatile struct policy_side *side = &policy.side[field];
	const __u32 *addr = field == FIELD_SOURCE ? pkt->src : pkt->dst;

	if (pkt->family == 4)
		return side4(t, side, addr[0]);
	if (pkt->family == 6)
		return side6(t, side, addr);
	return POLICY_ROW_ALL;
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

static __always_inline __u32 vlan_index(const struct packet *pkt)
{
	return pkt->vlan & (POLICY_VLANS - 1);
}

/* field is a constant: only its case is left. */
static __always_inline policy_row field_row(const struct trie_tables *t, const struct packet *pkt,
					    int field)
{
	__u32 index = 0;

	switch (field) {
	case FIELD_SOURCE:
	case FIELD_DESTINATION:
		return address_row(t, pkt, field);
	case FIELD_SPORT:
		index = has_ports(pkt) ? pkt->sport : POLICY_NO_PORT;
		break;
	case FIELD_DPORT:
		index = has_ports(pkt) ? pkt->dport : POLICY_NO_PORT;
		break;
	case FIELD_PROTO:
		index = pkt->fragment * 256 + pkt->proto;
		break;
	case FIELD_L4:
		index = l4_index(pkt);
		break;
	case FIELD_VLAN:
		index = vlan_index(pkt);
		break;
	case FIELD_IFACE:
		index = pkt->iface;
		break;
	case FIELD_ETHERTYPE:
		index = pkt->ethertype;
		break;
	}
	return field_at(t, policy.base[field] + index);
}

/* Can any rule match this packet at all? (common/policy.h, FIELD_L4 and FIELD_ETHERTYPE.) */
static __always_inline bool matchable(const struct packet *pkt)
{
	if (!policy_holds(pkt))
		return false;
	if (pkt->neighbour)
		return policy.use[FIELD_L4];
	return pkt->family || policy.use[FIELD_ETHERTYPE];
}

/* False when a look-up fails that cannot. */
static __always_inline bool matrix_fill(const struct packet *pkt, struct matrix *m)
{
	struct trie_tables t = {};
	__u64 word = ~0ull;

	if (!tables_find(&t) || (policy.flat.rows && !rows_find(&t)))
		return false;
#pragma unroll
	for (int field = 0; field < POLICY_FIELDS; field++) {
		const struct policy_words *words;
		policy_row row;

		if (!policy.use[field])
			continue;
		row = field_row(&t, pkt, field);
		words = row_at(&t, row);
		if (!row || !words)
			return false;
		if (policy.words == 1)
			word &= words->word[0];
		else
			m->row[field] = words;
	}
	m->word = word;
	return true;
}

static __always_inline __u64 matrix_word(const struct matrix *m, __u32 w)
{
	__u64 word = ~0ull;

#pragma unroll
	for (int field = 0; field < POLICY_FIELDS; field++)
		if (policy.use[field])
			word &= m->row[field]->word[w];
	return word;
}

static __always_inline __u32 lowest_bit(__u64 word)
{
	return __builtin_popcountll(word ^ (word - 1)) - 1;
}

/* Bits of the rules first … last - 1 in word w. */
static __always_inline __u64 range_bits(__u32 w, __u32 first, __u32 last)
{
	__u64 bits = ~0ull;

	if (w * 64 < first)
		bits &= first - w * 64 < 64 ? ~0ull << (first - w * 64) : 0;
	if (w * 64 + 64 > last)
		bits &= last > w * 64 ? ~0ull >> (w * 64 + 64 - last) : 0;
	return bits;
}

/* The rule among those in `word` that decides; GO_ON when none does. */
static __always_inline int match_word(struct xdp_md *ctx, struct packet *pkt, __u64 word, __u32 w,
				      bool conditions)
{
	if (!word)
		return GO_ON;
	return conditions ? try_word(ctx, pkt, word, w * 64) : (int)(w * 64 + lowest_bit(word));
}

/* The first of the bits first … last - 1 that is set and, with `conditions`, whose rule decides; GO_ON when
 * none is. */
static __always_inline int match(struct xdp_md *ctx, struct packet *pkt, const struct matrix *m,
				 __u32 first, __u32 last, bool conditions)
{
	/* Known to the verifier, which walks no more words than there are. */
	__u32 words = (last + 63) / 64 - first / 64;
	__u64 some;

	if (policy.words == 1)
		return match_word(ctx, pkt, m->word & range_bits(0, first, last), 0, conditions);
	if (words == 1)
		return match_word(ctx, pkt,
				  matrix_word(m, first / 64) & range_bits(first / 64, first, last),
				  first / 64, conditions);
	/* The summary follows the words. */
	some = matrix_word(m, policy.words) & range_bits(0, first / 64, (last + 63) / 64);
	for (__u32 i = 0; i < POLICY_WORDS_MAX && i < words && some; i++) {
		__u32 w = lowest_bit(some);
		int rule;

		some &= some - 1;
		if (w >= policy.words)
			break;
		rule = match_word(ctx, pkt, matrix_word(m, w) & range_bits(w, first, last), w,
				  conditions);
		if (rule != GO_ON)
			return rule;
	}
	return GO_ON;
}

/* Looks up the rows; false when that fails. */
static __always_inline bool classify_prepare(const struct packet *pkt, struct matrix *m)
{
	m->filled = matchable(pkt);
	return !m->filled || matrix_fill(pkt, m);
}

/* The first of the rules first … last - 1 that matches and decides, once the rows are there; GO_ON when none
 * does. */
static __always_inline int classify(struct xdp_md *ctx, struct packet *pkt, const struct matrix *m,
				    __u32 first, __u32 last)
{
	return m->filled ? match(ctx, pkt, m, first, last, policy.conditions) : GO_ON;
}

/* The number of the service that the packet belongs to, or NO_SERVICE. */
static __always_inline int classify_service(struct xdp_md *ctx, struct packet *pkt,
					    const struct matrix *m)
{
	int bit = m->filled
			  ? match(ctx, pkt, m, policy.rules, policy.rules + policy.services, false)
			  : GO_ON;

	return bit == GO_ON ? NO_SERVICE : bit - (int)policy.rules;
}
