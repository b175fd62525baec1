/* SPDX-License-Identifier: GPL-2.0-only */
/* Peers of nat and fullnat: from which next hop a packet has arrived, and its number. */
#pragma once

#include "xdp/nat-table.bpf.h"
#include "xdp/short-read.bpf.h"
#include "xdp/test.bpf.h"

/* As answers are sent: both MAC addresses change places. */
static __always_inline struct nat_peer nat_peer_of(const struct arrival from)
{
	struct nat_peer peer = {};

	*(__u32 *)peer.mac = *(const __u32 *)(from.frame + 6);
	*(__u16 *)(peer.mac + 4) = *(const __u16 *)(from.frame + 10);
	*(__u16 *)peer.mac_own = *(const __u16 *)from.frame;
	*(__u32 *)(peer.mac_own + 2) = *(const __u32 *)(from.frame + 2);
	peer.vlan = from.vlan & 0xfff;
	peer.number = from.number;
	return peer;
}

/* The upper bits of the number do not count. */
static __always_inline struct nat_peer *nat_peer_at(__u64 number)
{
	return NAT_ELEMENT(peer, BOUND(number, NAT_PEERS - 1));
}

static __always_inline bool nat_is_peer(__u64 number, const struct nat_peer *p)
{
	const struct nat_peer *known = nat_peer_at(number);

	return !((read_word(&known->word[0]) ^ p->word[0]) |
		 (read_word(&known->word[1]) ^ p->word[1]));
}

/* A peer that has ended begins again: its next hop is on the present device of its interface. */
static __always_inline bool nat_peer_returns(struct nat_peer *at, const struct nat_peer *p)
{
	struct nat_peer ended = *p;

	ended.number |= NAT_PEER_ENDED;
	return read_word(&at->word[0]) == p->word[0] &&
	       __sync_val_compare_and_swap(&at->word[1], ended.word[1], p->word[1]) ==
		       ended.word[1];
}

/* The number of the peer, which gets one; 0: there is no place for it. Two CPUs may give the same
 * peer two numbers. */
__noinline __u32 nat_peer_number(const struct nat_peer *p)
{
	__u64 hash;

	if (!p || !p->number || !p->word[0] || is_test())
		return 0;
	/* A product carries upwards only, and MAC addresses of a network differ in the upper bytes
	 * of a word. */
	hash = p->word[0] ^ p->word[1] * 0x9e3779b97f4a7c15ull;
	hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ull >> 32;
	for (int i = 0; i < NAT_PEER_TRIES; i++) {
		__u64 number = BOUND(hash + i, NAT_PEERS - 1);
		struct nat_peer *at = nat_peer_at(number);

		if (!number)
			continue;
		if (nat_is_peer(number, p) || nat_peer_returns(at, p))
			return number;
		if (__sync_val_compare_and_swap(&at->word[0], 0, p->word[0]))
			continue;
		__sync_lock_test_and_set(&at->word[1], p->word[1]);
		return number;
	}
	return 0;
}
