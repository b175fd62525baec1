// SPDX-License-Identifier: GPL-2.0-only
// A walk over the table of connections (docs/nat.md): frees connections that have expired.
//
// Packets use the table meanwhile. A place is freed by compare-and-swap of its word, so a
// connection that has just been taken up again stays. Pure: the tables are the caller's.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/limits-service.h"
#include "common/nat.h"
#include "common/service.h"

// Backends by number. Policies with their own array have the same ones where connections name them.
struct nat_backends {
	const struct backend *at; // NULL: not known
	size_t n;
};

// The tables, as packets see them: the places of each block; NULL: there is no such block.
struct nat_tables {
	struct nat_table *nat;
	struct nat_bucket4 *places4[NAT_BLOCKS];
	struct nat_bucket6 *places6[NAT_BLOCKS];
	struct nat_backends backends[2]; // that the policies have which packets can meet
};

// Peers that the last walk has found unused. Zeros before the first walk.
struct nat_unused {
	uint64_t peers[NAT_PEERS / 64];
};

struct nat_of_backend {
	uint32_t living;
	uint32_t opening; // of these
	uint32_t closed;  // of these: both sides have sent FIN or RST
};

// The connections that a walk has counted.
struct nat_census {
	size_t living;                  // also those that are opening
	size_t opening;                 // the client has sent a SYN, and nothing else
	size_t expired;                 // freed by this walk, or not counted as living
	size_t fullest;                 // most connections in a group of NAT_GROUP places
	size_t of_block[2][NAT_BLOCKS]; // living, by family ([1]: IPv6) and block
	size_t of_end[NAT_ENDS];        // living, by end
	size_t peers;                   // in use
	size_t names;                   // blocks that were removed from cells
	struct nat_of_backend of_backend[SERVICE_BACKENDS]; // by number
	// The sources of all blocks, and the backends of the living connections of nat, by their
	// names in nat_tables.backends (nat_near.h).
	uint64_t near[NAT_NEAR_WORDS];
};

// time: now, in ticks. No packet may be on its way that has read a cell before it changed: it may
// still take a place in the block that was the newest one. A peer is freed if two walks have found
// no connection that names it.
void nat_walk(const struct nat_tables *t, uint64_t time, struct nat_unused *unused,
	      struct nat_census *ret);

// The same census without a change of the tables.
void nat_count(const struct nat_tables *t, uint64_t time, struct nat_census *ret);

// Frees the connections for which `goes` returns true, by their end and word, whatever their age.
// Returns how many.
size_t nat_free(const struct nat_tables *t,
		bool (*goes)(const void *arg, uint32_t end, uint64_t word), const void *arg);

// Ends the peers of an interface: its device is another one now, or it has none. Returns how many.
// Connections that name such a peer are as ones without a peer until their client sends, or another
// one from the same next hop.
size_t nat_end_peers(struct nat_peer *peers, uint32_t number);
