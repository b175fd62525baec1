/* SPDX-License-Identifier: GPL-2.0-only */
/* Connections of the modes nat and fullnat: places, buckets, blocks, cells, ends and peers.
 *
 * A connection has a place in a table of blocks. The keyed hash of the client, its port and the
 * protocol gives two halves; each half gives a cell, which names the blocks, and a group of 16
 * places in each of these blocks. A connection is in one of its two groups. In fullnat a block has
 * a source address, and the number of the place in the block is the source port.
 *
 * Addresses, ports and MAC addresses are as in the packet. */
#pragma once

#include <linux/types.h>

#include "common/bounds.h"
#include "common/flowhash.h"
#include "common/limits-service.h"
#include "common/limits.h"

#define NAT_INLINE static inline __attribute__((always_inline))

/* ---- the word of a connection ---------------------------------------------------------------- */

enum nat_state {
	/* the client has sent a SYN, and nothing else; of UDP: the backend has sent nothing */
	NAT_OPENING,
	NAT_TALKS,
	/* one side has sent FIN or RST; of UDP, whose life is equal: the backend has answered */
	NAT_CLOSING,
	NAT_CLOSED, /* both sides have, or one before the client has answered */
};

/* {zero 14, claimed 1, side 1, peer 16, backend 16, state 2, time 14}. It is taken by
 * compare-and-swap, and is not 0 while the place is taken, because no backend has the number 0. The
 * key of a free place means nothing. */
#define NAT_TIME_BITS     14
#define NAT_TIME          ((1u << NAT_TIME_BITS) - 1)
#define NAT_BACKEND_SHIFT 16
#define NAT_PEER_SHIFT    32
/* In NAT_CLOSING: the backend has closed. */
#define NAT_BACKEND_CLOSED (1ull << 48)
/* The place is taken, and its key is being written: it is of no connection yet. */
#define NAT_CLAIMED_SHIFT 49
#define NAT_CLAIMED       (1ull << NAT_CLAIMED_SHIFT)
/* A time of the future: another CPU may read the clock later. */
#define NAT_AHEAD SERVICE_PIN_AHEAD

#define NAT_OPENING_S 30
#define NAT_CLOSING_S 60
/* So that an old time is not soon taken for a new one: ticks last a second or more. */
#define NAT_IDLE_MAX_MS (3u * 3600 * 1000)

NAT_INLINE __u64 nat_pack(__u64 state, __u64 time, __u64 backend, __u64 peer)
{
	return peer << NAT_PEER_SHIFT | backend << NAT_BACKEND_SHIFT | state << NAT_TIME_BITS |
	       (time & NAT_TIME);
}

NAT_INLINE __u64 nat_state(__u64 word)
{
	return word >> NAT_TIME_BITS & 3;
}

NAT_INLINE __u64 nat_backend(__u64 word)
{
	return word >> NAT_BACKEND_SHIFT & 0xffff;
}

NAT_INLINE __u64 nat_peer(__u64 word)
{
	return word >> NAT_PEER_SHIFT & 0xffff;
}

/* The lives of the states, in ticks, 16 bits each, NAT_OPENING in the lowest. */
NAT_INLINE __u64 nat_lives(__u64 opening, __u64 talks, __u64 closing)
{
	return opening | talks << 16 | closing << 32 | closing << 48;
}

NAT_INLINE __u64 nat_life(__u64 lives, __u64 word)
{
	return SHIFT_RIGHT(lives, nat_state(word) << 4) & 0xffff;
}

/* Ticks since the word was written. */
NAT_INLINE __u64 nat_age(__u64 word, __u64 time)
{
	__u64 age = (time - word) & NAT_TIME;

	return age * is_less(age, NAT_TIME - NAT_AHEAD + 1);
}

/* 1: it has expired. */
NAT_INLINE __u64 nat_expired(__u64 word, __u64 time, __u64 lives)
{
	return is_less(nat_life(lives, word), nat_age(word, time));
}

/* How readily a new connection takes the place; 0: it must not. A free place comes first, then the
 * oldest expired one. half_open: 1: a connection that is opening or closed gives way too. Anybody
 * can begin and close as many as a table has places. */
NAT_INLINE __u64 nat_worth(__u64 word, __u64 time, __u64 lives, __u64 half_open)
{
	__u64 state = nat_state(word), weak = is_less(state, 1) | is_less(NAT_CLOSING, state);
	__u64 gives = nat_expired(word, time, lives) | (half_open & weak);

	gives &= ~(word >> NAT_CLAIMED_SHIFT);
	return gives * (nat_age(word, time) + 1) | is_zero64(word) << 15;
}

/* 1: it has a connection. */
NAT_INLINE __u64 nat_is_taken(__u64 word)
{
	return ((is_zero64(word) | word >> NAT_CLAIMED_SHIFT) & 1) ^ 1;
}

/* How a packet changes a connection. */
enum nat_event { NAT_GOES_ON, NAT_OPENS, NAT_CLOSES, NAT_OF_UDP };

/* The word after a packet of the client (by_backend 0) or of the backend (1). A FIN that is
 * repeated closes nothing else. The time changes when an eighth of the life has passed. */
NAT_INLINE __u64 nat_heard(__u64 word, __u64 event, __u64 by_backend, __u64 time, __u64 lives)
{
	__u64 state = nat_state(word), new = state, closer = word &NAT_BACKEND_CLOSED;
	const __u64 side = by_backend ? NAT_BACKEND_CLOSED : 0;

	if (event == NAT_CLOSES && state == NAT_TALKS) {
		new = NAT_CLOSING;
		closer = side;
	} else if (event == NAT_CLOSES && (state == NAT_OPENING || closer != side)) {
		new = NAT_CLOSED;
		closer = 0;
	} else if (event == NAT_OF_UDP && state == NAT_OPENING && by_backend) {
		new = NAT_CLOSING;
	} else if (event == NAT_OPENS && state == NAT_CLOSING && !by_backend) {
		new = NAT_OPENING;
		closer = 0;
	} else if (event == NAT_GOES_ON && state == NAT_OPENING && !by_backend) {
		new = NAT_TALKS;
	}
	if (new == state && nat_age(word, time) < nat_life(lives, word) >> 3)
		return word;
	return nat_pack(new, time, nat_backend(word), nat_peer(word)) | closer;
}

/* ---- places ---------------------------------------------------------------------------------- */

#define NAT_PLACES_LOG2 16 /* of a block */
#define NAT_PLACES      (1u << NAT_PLACES_LOG2)
#define NAT_GROUP       16   /* places that a half can have in a block */
#define NAT_RESERVED    1024 /* first places of a block, not used: ports below 1024 */
#define NAT_GROUPS      (NAT_PLACES / NAT_GROUP)
#define NAT_FIRST_GROUP (NAT_RESERVED / NAT_GROUP)
#define NAT_BLOCKS      255 /* in a family: a byte of a cell has a block's number and 1 */
/* So many connections in a block are expected to find a place. */
#define NAT_BLOCK_ROOM 53000
/* Places of the first group that are taken before the second one is asked. */
#define NAT_ENOUGH 10

/* In `last`: {end 16, client's port 16, client of IPv4 32}. The end is not 0. */
#define NAT_END_SHIFT  48
#define NAT_PORT_SHIFT 32

struct nat_entry4 {
	__u64 last; /* written last */
	__u64 word;
};

struct nat_entry6 {
	__u64 client[2];
	__u64 last;
	__u64 word;
};

#define NAT_BUCKET4 4 /* connections in a bucket */
#define NAT_BUCKET6 2

struct nat_bucket4 {
	struct nat_entry4 at[NAT_BUCKET4];
};
_Static_assert(sizeof(struct nat_bucket4) == 64, "one cache line");

struct nat_bucket6 {
	struct nat_entry6 at[NAT_BUCKET6];
};
_Static_assert(sizeof(struct nat_bucket6) == 64, "one cache line");

/* A connection as it is looked for. */
struct nat_key {
	__u64 client[2]; /* IPv6; else 0 */
	__u64 last;
};

NAT_INLINE __u32 nat_bucket_size(int family)
{
	return family == 4 ? NAT_BUCKET4 : NAT_BUCKET6;
}

/* The first bucket of the group in a block. half: 32 bits of the hash. */
NAT_INLINE __u64 nat_group(int family, __u64 block, __u32 half)
{
	__u64 group = NAT_FIRST_GROUP + hash_scale(half, NAT_GROUPS - NAT_FIRST_GROUP);

	return (block * NAT_GROUPS + group) * (NAT_GROUP / nat_bucket_size(family));
}

/* The bucket of the group that is asked first. */
NAT_INLINE __u64 nat_own_bucket(int family, __u32 half)
{
	return half & (NAT_GROUP / nat_bucket_size(family) - 1);
}

/* Host order of words does not matter: all sides read the packet alike. */
NAT_INLINE __u64 nat_hash4(const struct flow_key *key, __u32 client, __u16 port, __u8 proto)
{
	return flow_mix(key, flow_pair(key, 0, client, port | (__u32)proto << 16));
}

NAT_INLINE __u64 nat_hash6(const struct flow_key *key, const __u32 client[4], __u16 port,
			   __u8 proto)
{
	return flow_mix(key, flow_pair(key, 0, client[0], client[1]) +
				     flow_pair(key, 2, client[2], client[3]) +
				     flow_pair(key, 4, port | (__u32)proto << 16, 0));
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* A cell is a word of up to eight bytes {block's number + 1}, the newest in the lowest byte. New
 * connections take a place in the newest block, all blocks are looked up. */
#define NAT_CELLS      1024
#define NAT_CELL_SHIFT 4 /* bits of a half that select its cell, away from the bits of its group */
#define NAT_DEPTH      8

NAT_INLINE __u32 nat_cell(__u32 half)
{
	return half >> NAT_CELL_SHIFT & (NAT_CELLS - 1);
}

/* ---- ends, sources, blocks and peers --------------------------------------------------------- */

#define NAT_ENDS         4096
#define NAT_END_CELLS    8192
#define NAT_SOURCE_CELLS 1024
#define NAT_NEAR_WORDS   1024
#define NAT_PEERS        4096
#define NAT_PEER_TRIES   4

/* A VIP with port and protocol. Its number is in keys, and outlives the policy. */
struct nat_end {
	__u32 vip[4]; /* IPv4 in [0], the rest zero */
	union {
		struct {
			__u32 port_proto; /* nat_port_proto(); 0: a free number */
			__u32 family;     /* 4 or 6 */
		};
		__u64 kind; /* both */
	};
};
_Static_assert(sizeof(struct nat_end) == 24, "layout");

enum nat_mode {
	NAT_USE_NONE, /* the policy has no such service: its packets are left alone */
	NAT_USE_NAT,
	NAT_USE_FULLNAT,
	/* the service has another mode: living connections stay as they are, none begins */
	NAT_USE_FORMER,
};
/* This bit of the mode: the connections are looked up in the cells of fullnat. */
#define NAT_USE_CELLS 2

/* What a policy does with an end; an array by the end's number belongs to each generation. */
struct nat_use {
	__u32 service; /* its number in the policy */
	__u16 id;      /* its counters */
	__u8 mode;     /* enum nat_mode, of new connections */
	__u8 pad;
};
_Static_assert(sizeof(struct nat_use) == 8, "layout");

struct nat_block {
	__u32 source[4]; /* IPv4 in [0]; all zero: a block of nat */
};

/* The interface has another device since: there is no way back until a packet of this peer arrives.
 * The place is taken as long as connections name it. */
#define NAT_PEER_ENDED WEIR_IFACES

/* The way back to a client: the next hop of answers. Two words, taken one after the other by
 * compare-and-swap. */
struct nat_peer {
	union {
		struct {
			__u8 mac[6];     /* of the router or client */
			__u8 mac_own[6]; /* of the interface */
			__u16 vlan;      /* tag, host order; 0: none */
			__u16 number;    /* interface, not 0; | NAT_PEER_ENDED */
		};
		__u64 word[2];
	};
};
_Static_assert(sizeof(struct nat_peer) == 16, "layout");

/* By which answers leave. mtu 0: the device is not known, and the uncommon way asks the kernel. It
 * asks about a longer packet too, because the MTU may have changed. */
struct nat_device {
	__u32 ifindex; /* 0: none */
	__u32 mtu;     /* bytes of IP, as last seen */
};
_Static_assert(sizeof(struct nat_device) == 8, "layout");

struct nat_table {
	struct flow_key key; /* of nat_hash4() and nat_hash6() */
	__u64 lives;         /* nat_lives(), of all services: the longest idle */
	__u32 shift;         /* pin_shift(HZ): jiffies of a tick */
	__u32 pad;
	/* jiffies: before, a packet of no known connection is dropped and gets no reset */
	__u64 resets_from;
	__u64 pad2;
	/* by number of the interface; of a number with NAT_PEER_ENDED: zero */
	struct nat_device device[2 * WEIR_IFACES];
	/* a bit for each {address, port, protocol} of a backend in nat, and for each source */
	__u64 near[NAT_NEAR_WORDS];
	/* Numbers of ends by one of two hashes, and blocks + 1 by source; 0: none. */
	__u16 end_at[2][NAT_END_CELLS];
	__u8 source_at[2][2][NAT_SOURCE_CELLS]; /* [1]: of IPv6 */
	/* [1]: of fullnat; [1]: of IPv6 */
	__u64 cell[2][2][NAT_CELLS];
	struct nat_block block[2][NAT_BLOCKS + 1]; /* [1]: of IPv6 */
	struct nat_end end[NAT_ENDS];              /* [0]: no end */
	struct nat_peer peer[NAT_PEERS];           /* [0]: no peer */
};
_Static_assert(sizeof(struct flow_key) == 96, "layout");

/* port: as in the packet. */
NAT_INLINE __u32 nat_port_proto(__u16 port, __u8 proto)
{
	return port | (__u32)proto << 16;
}

/* 64 bits for tables that user space fills, the upper ones mixed best. Who chooses what is in them
 * is no attacker. */
NAT_INLINE __u64 nat_mix(int family, const __u32 *addr, __u32 more)
{
	__u64 h = ((__u64)more << 32 | addr[0]) * 0x9e3779b97f4a7c15ull;

	if (family == 4)
		return h;
	h += ((__u64)addr[1] << 32 | addr[2]) * 0xc2b2ae3d27d4eb4full +
	     (__u64)addr[3] * 0x165667b19e3779f9ull;
	return (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
}

NAT_INLINE __u64 nat_end_cell(__u64 mix, int which)
{
	return (which ? mix >> 38 : mix >> 51) & (NAT_END_CELLS - 1);
}

NAT_INLINE __u64 nat_source_cell(__u64 mix, int which)
{
	return (which ? mix >> 44 : mix >> 54) & (NAT_SOURCE_CELLS - 1);
}

NAT_INLINE __u64 nat_near_word(__u64 mix)
{
	return mix >> 54 & (NAT_NEAR_WORDS - 1);
}

/* The number of the bit in its word: six bits from here. */
#define NAT_NEAR_SHIFT 48
NAT_INLINE __u32 nat_near_bit(__u64 mix)
{
	return mix >> NAT_NEAR_SHIFT & 63;
}

/* ---- outcomes -------------------------------------------------------------------------------- */

/* In place of a place: the reason that no place was found. Negative as a signed number. */
#define NAT_NO(reason) (1ull << 63 | (__u64)(reason))
/* In place of a reason: the packet is left to the next program. */
#define NAT_LEAVE 0xff
