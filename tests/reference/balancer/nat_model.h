// SPDX-License-Identifier: GPL-2.0-only
// The connections of nat and fullnat: their table, and what becomes of a packet. Written from the
// rules, not from the datapath.
#ifndef REF_NAT_MODEL_H
#define REF_NAT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "siphash.h"

#define NATREF_PLACES   65536 /* of a block */
#define NATREF_BLOCKS   4
#define NATREF_CELLS    1024
#define NATREF_DEPTH    8
#define NATREF_ENDS     32
#define NATREF_BACKENDS 32
#define NATREF_FRAME    2048
#define NATREF_RING     4093
#define NATREF_FIRSTS   4096

enum natref_state { NATREF_OPENING, NATREF_TALKS, NATREF_CLOSING, NATREF_CLOSED };

/* The fates of packets. */
enum natref_fate {
	NATREF_SENT,
	NATREF_ANSWERED,
	/* its sender gets a reset, or an ICMP error; or nothing, as no answer is allowed to it */
	NATREF_RESET,
	NATREF_TOO_BIG,
	NATREF_EXPIRED,
	NATREF_TOO_BIG_SILENT,
	NATREF_EXPIRED_SILENT,
	NATREF_NO_PEER,
	NATREF_FULL,
	NATREF_BUSY,
	NATREF_CLASH,
	NATREF_UNKNOWN,
	NATREF_FRAGMENT, /* a later one without its first one */
	NATREF_NO_BACKEND,
	NATREF_NO_NEXT_HOP,
	NATREF_FAILED,
	NATREF_LEFT, /* not a packet of these modes */
};

/* A neighbour on an interface. */
struct natref_hop {
	uint8_t mac[6], own[6];
	uint16_t vlan;   /* 0: no tag */
	uint16_t number; /* 0: there is no such */
};

/* A packet in pieces. A whole packet may have the header of a piece. */
enum natref_part { NATREF_WHOLE, NATREF_FIRST, NATREF_LATER };

/* A first fragment that was translated. */
struct natref_first {
	uint8_t family, proto;
	bool back;
	uint8_t src[16], dst[16];
	uint32_t id;
	long place; /* of the packet's connection */
	uint16_t end, port;
	uint8_t client[16];
	uint64_t jiffies;
};

struct natref_conn {
	bool taken;
	bool backend_closed; /* NATREF_CLOSING: by the backend */
	bool has_peer;
	enum natref_state state;
	uint64_t time; /* ticks */
	uint16_t backend;
	uint16_t end, port;
	uint8_t client[16];
	struct natref_hop peer;
};

/* Addresses are in network order, IPv4 in the first four bytes; ports are numbers. */
struct natref_end {
	uint8_t family, proto;
	bool fullnat;
	uint8_t vip[16];
	uint16_t port;
};

struct natref_backend {
	uint8_t family; /* 0: no such backend */
	uint8_t addr[16];
	uint16_t port; /* 0: the packet's */
	uint16_t mtu;
	struct natref_hop hop;
};

struct natref {
	uint8_t key[SIPHASH_KEY]; /* for connections and for the flows of services */
	uint64_t jiffies;
	unsigned int shift;               /* a tick has 2^shift jiffies */
	uint64_t opening, talks, closing; /* lives in ticks */
	uint64_t resets_from;             /* jiffies: no resets before */
	uint64_t second;                  /* jiffies */
	/* [fullnat][IPv6][cell]: numbers of blocks and 1, the newest first; 0: none */
	uint8_t cells[2][2][NATREF_CELLS][NATREF_DEPTH];
	/* [IPv6][block] */
	bool has_source[2][NATREF_BLOCKS];
	uint8_t source[2][NATREF_BLOCKS][16];
	struct natref_conn *table[2][NATREF_BLOCKS];
	struct natref_end ends[NATREF_ENDS]; /* [0]: no end */
	struct natref_backend backends[NATREF_BACKENDS];
	uint16_t ring[2][NATREF_RING]; /* one service for each family */
	/* The next one replaces the oldest. */
	struct natref_first firsts[NATREF_FIRSTS];
	size_t n_firsts;
};

void natref_init(struct natref *n);
void natref_free(struct natref *n);

/* The packet that an ICMP error quotes. */
struct natref_quote {
	uint8_t src[16], dst[16];
	uint16_t sport, dport;
};

/* A packet of a client or of a backend, as the model understands it. */
struct natref_packet {
	bool error; /* an ICMP error; proto is of the quote, flags and ports mean nothing */
	struct natref_quote quote;
	uint8_t family, proto, flags; /* flags of TCP */
	uint8_t src[16], dst[16];
	uint16_t sport, dport; /* they mean nothing in a later fragment */
	enum natref_part part;
	uint32_t id; /* of a fragment */
	uint8_t hops;
	size_t length; /* of IP */
	struct natref_hop from;
};

/* The result for a packet. */
struct natref_answer {
	enum natref_fate fate;
	long place;   /* block × NATREF_PLACES + place; -1: none */
	uint16_t mtu; /* of NATREF_TOO_BIG */
	/* If it is sent: */
	uint8_t src[16], dst[16];
	uint16_t sport, dport;
	struct natref_quote quote; /* if it is an ICMP error */
	struct natref_hop to;
};

struct natref_conn *natref_at(const struct natref *n, uint8_t family, long place);
/* First as an answer of a backend, then as a packet to a VIP. */
struct natref_answer natref_packet(struct natref *n, const struct natref_packet *p);

/* Frees the places of connections that have expired, and takes blocks out of cells in which they
 * have none, except newest blocks. Return what is left. */
struct natref_rest {
	size_t living, opening, expired;
};
struct natref_rest natref_walk(struct natref *n);

/* Reads a frame; false: left alone. Then writes one with the names of an answer into `out`, whose
 * length is returned. */
bool natref_read(const uint8_t *frame, size_t len, uint16_t number, struct natref_packet *ret);
size_t natref_write(const uint8_t *frame, size_t len, const struct natref_answer *a,
		    uint8_t out[NATREF_FRAME]);
/* The fault of `out` as a reply to the frame; NULL: none. */
const char *natref_wrong_reply(const uint8_t *frame, size_t len, const struct natref_answer *a,
			       const uint8_t *out, size_t out_len);

#endif
