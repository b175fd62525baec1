/* SPDX-License-Identifier: GPL-2.0-only */
/* Packets of nat and fullnat that change nothing, in the short program.
 *
 * Most packets are of a connection that talks, is in a newest block, has the same peer as before,
 * and was written a short time ago. They are sent here, in both directions, with few instructions.
 * All others are left, before anything is written: NAT_LEAVE. */
#pragma once

#include "xdp/nat-ways.bpf.h"

/* ---- the connection -------------------------------------------------------------------------- */

/* TCP with ACK, without SYN, FIN and RST; UDP. */
static __always_inline bool nat_may_be_steady(const struct key k)
{
	return (k.base & 0x17) == 0x10 || k.base == BASE_UDP;
}

/* Does the word remain as it is? TCP that talks, and UDP that was answered, for an eighth of its
 * life. */
static __always_inline bool nat_stays(const struct key k, __u64 word)
{
	const __u64 mask = NAT_CLAIMED | 3 << NAT_TIME_BITS;
	const __u64 state = NAT_TALKS + (k.base >> 8);

	_Static_assert(BASE_UDP == 1 << 8 && NAT_CLOSING == NAT_TALKS + 1, "of UDP: closing");
	return (word & mask) == state << NAT_TIME_BITS &&
	       ((SHIFT_RIGHT(now_jiffies(), nat()->shift) - word) & NAT_TIME) <
		       nat_life(nat()->lives, word) >> 3;
}

/* An entry in the memory of its block; family says which one. */
union nat_entry {
	const struct nat_entry4 *e4;
	const struct nat_entry6 *e6;
};

/* false: it is changing. */
static __always_inline bool nat_hold_entry(const int family, const union nat_entry e,
					   struct nat_held *ret)
{
	const __u64 *word = family == 4 ? &e.e4->word : &e.e6->word;

	ret->word = read_word(word);
	read_barrier();
	ret->key.last = read_word(family == 4 ? &e.e4->last : &e.e6->last);
	if (family == 6) {
		ret->key.client[0] = read_word(&e.e6->client[0]);
		ret->key.client[1] = read_word(&e.e6->client[1]);
	}
	read_barrier();
	return read_word(word) == ret->word;
}

/* The position of the key, if the bucket has it. Without branches: the verifier would follow
 * each. without_end: the end does not count. An end has 12 bits, so no difference has the upper
 * one. */
static __always_inline __u64 nat_position(const int family, const union nat_entry bucket,
					  const struct nat_key *k, const bool without_end)
{
	const __u64 mask = without_end ? NAT_WITHOUT_END : ~0ull;
	const int shift = without_end ? 64 - NAT_END_SHIFT : 0;
	__u64 position = 0;

	if (family == 6)
		return not_zero64((read_word(&bucket.e6->client[0]) ^ k->client[0]) |
				  (read_word(&bucket.e6->client[1]) ^ k->client[1]) |
				  (read_word(&bucket.e6->last) ^ k->last) << shift);
#pragma unroll
	for (int i = 1; i < NAT_BUCKET4; i++)
		position += i * is_zero63((read_word(&bucket.e4[i].last) ^ k->last) & mask);
	return position;
}

/* The number of the first bucket of a connection in a block. */
static __always_inline __u64 nat_first_bucket(const int family, __u32 half)
{
	return BOUND(nat_group(family, 0, half) + nat_own_bucket(family, half),
		     NAT_PLACES / nat_bucket_size(family) - 1);
}

/* A connection as it is looked for, in the newest blocks of its cells. By value: the compiler keeps
 * it in registers. */
struct nat_wanted {
	__u64 hash;
	__u64 fullnat; /* NAT_USE_CELLS or 0 */
	struct nat_key key;
	bool answers; /* a constant: the end of the key does not count */
};

/* Its place if that is in the first bucket, or NAT_NOWHERE. */
static __always_inline __u64 nat_find_first(const int family, const struct nat_wanted w,
					    struct nat_held *ret)
{
	const __u32 size = nat_bucket_size(family), half = w.hash;
	const __u64 *cells = nat_cells_of(family) + BOUND(w.fullnat, NAT_USE_CELLS) * NAT_CELLS;
	/* An empty cell gives the number 255, of no block. */
	__u64 block = BOUND(nat_cell_in(cells, half) - 1, 0xff), bucket, position;
	const void *places = nat_places_of(family, block);
	union nat_entry e;

	if (unlikely(!places))
		return NAT_NOWHERE;
	bucket = nat_first_bucket(family, half);
	e.e4 = places + bucket * sizeof(struct nat_bucket4);
	position = BOUND(nat_position(family, e, &w.key, w.answers), size - 1);
	if (family == 4)
		e.e4 += position;
	else
		e.e6 += position;
	if (unlikely(!nat_hold_entry(family, e, ret)) ||
	    nat_keys_differ(&ret->key, &w.key, w.answers ? NAT_WITHOUT_END : ~0ull))
		return NAT_NOWHERE;
	return (block << NAT_PLACES_LOG2) + bucket * size + position;
}

/* The first place of a group that has the key, in the block of the lowest byte of the cell. */
static __always_inline __u64 nat_first_in(const int family, __u64 cell, __u32 half,
					  const struct nat_key *k, __u64 mask)
{
	__u64 group = nat_group(family, (cell & 0xff) - 1, half);
	__u64 bits = cell & 0xff ? nat_matches(family, group, k, mask) : 0;

	return bits ? group * nat_bucket_size(family) + __builtin_popcountll(bits ^ (bits - 1)) - 1
		    : NAT_NOWHERE;
}

__noinline __u64 nat_first_in4(__u64 cell, __u32 half, const struct nat_key *k, __u64 mask)
{
	return k ? nat_first_in(4, cell, half, k, mask) : NAT_NOWHERE;
}

__noinline __u64 nat_first_in6(__u64 cell, __u32 half, const struct nat_key *k, __u64 mask)
{
	return k ? nat_first_in(6, cell, half, k, mask) : NAT_NOWHERE;
}

static __always_inline __u64 nat_in_either(const int family, const struct nat_ask *a,
					   const __u64 *cells, int which, __u64 mask)
{
	__u32 half = which ? a->hash >> 32 : a->hash;
	__u64 cell = nat_cell_in(cells, half);

	return family == 4 ? nat_first_in4(cell, half, &a->key, mask)
			   : nat_first_in6(cell, half, &a->key, mask);
}

/* The place of the question's connection in the two groups, and the connection: in a table that is
 * nearly full, many are not in their first bucket. */
static __always_inline __u64 nat_in_groups(const int family, struct nat_ask *a, __u32 fullnat,
					   __u32 answers)
{
	const __u64 *cells = nat_cells_of(family) + BOUND(fullnat, NAT_USE_CELLS) * NAT_CELLS;
	__u64 mask = answers ? NAT_WITHOUT_END : ~0ull;
	__u64 place = nat_in_either(family, a, cells, 0, mask);

	if (place == NAT_NOWHERE)
		place = nat_in_either(family, a, cells, 1, mask);
	return place != NAT_NOWHERE && nat_hold(family, place, &a->held) &&
			       !nat_keys_differ(&a->held.key, &a->key, mask)
		       ? place
		       : NAT_NOWHERE;
}

__noinline __u64 nat_in_groups4(struct nat_ask *a, __u32 fullnat, __u32 answers)
{
	return a ? nat_in_groups(4, a, fullnat, answers) : NAT_NOWHERE;
}

__noinline __u64 nat_in_groups6(struct nat_ask *a, __u32 fullnat, __u32 answers)
{
	return a ? nat_in_groups(6, a, fullnat, answers) : NAT_NOWHERE;
}

static __always_inline __u64 nat_find_second(const int family, const struct nat_wanted w,
					     struct nat_held *ret)
{
	struct nat_ask *ask = nat_ask_get();
	__u64 place;

	if (!ask)
		return NAT_NOWHERE;
	ask->hash = w.hash;
	ask->key = w.key;
	place = family == 4 ? nat_in_groups4(ask, w.fullnat, w.answers)
			    : nat_in_groups6(ask, w.fullnat, w.answers);
	*ret = ask->held;
	return place;
}

static __always_inline __u64 nat_find_newest(const int family, const struct nat_wanted w,
					     struct nat_held *ret)
{
	__u64 place = nat_find_first(family, w, ret);

	if (unlikely(place == NAT_NOWHERE))
		place = nat_find_second(family, w, ret);
	return place;
}

struct nat_found {
	struct nat_held held;
	__u64 place;
};

/* ---- to the backend -------------------------------------------------------------------------- */

/* The names that the packet has on its way to the backend. */
static __always_inline void nat_steady_names(const int family, const struct nat_packet p,
					     const __u32 *source, __u16 sport,
					     const struct backend *to, struct nat_names *ret)
{
	const __u16 *ports = l4_of(p.at.ip, family);
	__u16 dport = to->port ? bpf_htons(to->port) : ports[1];

	nat_copy_address(family, ret->dst, to->addr);
	nat_copy_address(family, ret->src, source ?: addresses_of(p.at.ip, family));
	ret->ports = (source ? bpf_htons(sport) : ports[0]) | (__u32)dport << 16;
}

/* The connection, if the packet leaves it as it is. A client whose packets came from this peer
 * before has been tested: its address, and that its frames are for this host. */
static __always_inline bool nat_find_steady(const int family, const struct nat_packet p, __u64 end,
					    __u64 fullnat, struct nat_found *ret)
{
	const __u32 *src = addresses_of(p.at.ip, family);
	__u16 port = *l4_of(p.at.ip, family);
	const struct nat_wanted w = {
		.hash = nat_hash(family, src, port, proto_of(p.at.ip, family)),
		.fullnat = fullnat,
		.key = nat_key_of(family, src, port, end),
	};
	struct nat_peer peer;

	ret->place = nat_find_newest(family, w, &ret->held);
	if (unlikely(ret->place == NAT_NOWHERE) || unlikely(!nat_stays(p.k, ret->held.word)))
		return false;
	peer = nat_peer_of(p.from);
	return likely(nat_is_peer(ret->held.word >> NAT_PEER_SHIFT, &peer));
}

static __always_inline int nat_forward_steady(struct xdp_md *ctx, const int family,
					      const struct nat_packet p, __u64 end,
					      const struct nat_use *use, int *ret_verdict)
{
	/* NAT_USE_FORMER too: what the block says. */
	__u64 fullnat = use->mode & NAT_USE_CELLS;
	const __u32 *source = NULL;
	struct nat_found f = {};
	const struct backend *to;
	struct nat_names names;

	if (unlikely(!nat_may_be_steady(p.k)) ||
	    unlikely(!nat_find_steady(family, p, end, fullnat, &f)) ||
	    unlikely(!is_ready(ctx, p.k, family, p.at)) ||
	    unlikely(!(to = backend_at(nat_backend(f.held.word)))) ||
	    unlikely(!nat_is_sendable(ctx, to, p.k.length)))
		return NAT_LEAVE;
	nat_test_note(end, 0, f.held.word);
	if (fullnat)
		source = nat_block_of(family, f.place)->source;
	nat_steady_names(family, p, source, f.place, to, &names);
	nat_translate(p.at.ip, p.k, family, &names);
	if (unlikely(!nat_put_link(ctx, p.at, family, to, *(const volatile __u16 *)&to->vlan)))
		return nat_dropped(end, REASON_DROP_FORWARD);
	if (unlikely(!nat_leaves(ctx, to->ifindex, ret_verdict)))
		return nat_dropped(end, REASON_DROP_NO_NEXT_HOP);
	if (!is_test()) {
		count_sent(use->id, p.k.length, false, false);
		count_sent(nat_backend(f.held.word), p.k.length, false, false);
	}
	return REASON_PASS_SERVICE;
}

/* ---- to the client --------------------------------------------------------------------------- */

/* The connection whose place is the port of a source. false: there is no block. */
static __always_inline bool nat_find_port(const int family, __u64 block, __u16 port,
					  struct nat_held *ret)
{
	union nat_entry e = {nat_places_of(family, block)};

	if (!e.e4)
		return false;
	if (family == 4)
		e.e4 += BOUND(bpf_ntohs(port), NAT_PLACES - 1);
	else
		e.e6 += BOUND(bpf_ntohs(port), NAT_PLACES - 1);
	return nat_hold_entry(family, e, ret);
}

/* The connection that the packet answers, if its client has no other one with this port. may: as
 * nat_may_answer() says. */
static __always_inline bool nat_find_answered(const int family, const struct nat_packet p,
					      __u64 may, struct nat_held *ret)
{
	const __u32 *dst = nat_dst_of(p.at.ip, family);
	const __u16 *ports = l4_of(p.at.ip, family);
	struct nat_wanted w = {.answers = true};
	__u64 block;

	if (may & NAT_TO_SOURCE && (block = nat_block_at(family, dst, nat_mix(family, dst, 0))))
		return nat_find_port(family, block - 1, ports[1], ret);
	w.hash = nat_hash(family, dst, ports[1], proto_of(p.at.ip, family));
	w.key = nat_key_of(family, dst, ports[1], 0);
	return nat_find_newest(family, w, ret) != NAT_NOWHERE;
}

static __always_inline struct nat_side nat_side_of(const __u8 *ip, const int family)
{
	struct nat_side from = {
		.port_proto = nat_port_proto(*l4_of(ip, family), proto_of(ip, family)),
	};

	nat_copy_address(family, from.addr, addresses_of(ip, family));
	return from;
}

static __always_inline int nat_answer_steady(struct xdp_md *ctx, const int family,
					     const struct nat_packet p, __u64 may, int *ret_verdict)
{
	const struct nat_end *at;
	struct nat_held h = {};
	struct nat_side from;
	__u64 end;

	if (!nat_may_be_steady(p.k) || !nat_find_answered(family, p, may, &h) ||
	    !nat_stays(p.k, h.word))
		return NAT_LEAVE;
	from = nat_side_of(p.at.ip, family);
	at = nat_end_in(&h);
	if (!nat_is_of_backend(family, &h, at, &from) || !is_ready(ctx, p.k, family, p.at) ||
	    !nat_is_ours(p.from))
		return NAT_LEAVE;
	end = h.key.last >> NAT_END_SHIFT;
	nat_test_note(end, 0, h.word);
	return nat_dropped(end, nat_send_answer(ctx, family, p, h, at, ret_verdict));
}
