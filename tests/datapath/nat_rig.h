// SPDX-License-Identifier: GPL-2.0-only
// The programs of nat and fullnat in a rig: around maps of their own, which a test fills.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config.h"
#include "common/counters.h"
#include "common/nat.h"
#include "common/service.h"
#include "ctl/datapath/maps.h"
#include "ctl/table/nat_walk.h"

#define NAT_RIG_BLOCKS   4 // of each family
#define NAT_RIG_BACKENDS 32
#define NAT_RIG_RING     4093 // slots of a service
#define NAT_RIG_NUMBER   1    // of the interface of arrival
#define NAT_RIG_OTHER    2    // of another one
#define NAT_RIG_OUT      9001 // its index

struct policy_bpf;

// The maps are mapped: what the test writes is what packets find. Backend N has the number N.
struct nat_rig {
	struct policy_bpf *skel;
	uint32_t ifindex; // of arrival
	uint32_t ends;    // numbers that are given
	struct mapping table, uses, services, rings, backends;
	struct mapping places[2][NAT_RIG_BLOCKS]; // [1]: of IPv6
	struct nat_table *nat;
	struct nat_use *use;
	struct nat_tables tables;
	struct service *service; // for the ends of IPv4, and for the ends of IPv6
	uint64_t *slots;
	struct backend *backend;
};

// hz: of the clock that the programs read. Exits with status 2 if they cannot be loaded.
struct nat_rig *nat_rig_new(const struct hash_key *key, uint32_t hz);
void nat_rig_free(struct nat_rig *r);
// The program for answers, or the one for packets that have passed; owned by the rig.
int nat_rig_program(const struct nat_rig *r, bool answers);
// Instructions that the verifier has followed in each program.
uint32_t nat_rig_verified(const struct nat_rig *r, bool answers);

// Addresses are 16 bytes in network order, IPv4 in the first four. Ports are in host order.
// A VIP: the number of its end.
uint32_t nat_rig_end(struct nat_rig *r, uint8_t family, const uint8_t *vip, uint16_t port,
		     uint8_t proto, bool fullnat);
// The block, which belongs to fullnat from now on.
void nat_rig_source(struct nat_rig *r, uint8_t family, uint32_t block, const uint8_t *address);
// All cells of a mode: these blocks, the newest first.
void nat_rig_cells(struct nat_rig *r, uint8_t family, bool fullnat, const uint8_t *blocks,
		   size_t n);
// After all ends: answers of the backend to them are looked for.
void nat_rig_backend(struct nat_rig *r, uint32_t id, uint8_t family, const uint8_t *address,
		     const struct backend *hop);
// The lives of states in jiffies.
void nat_rig_lives(struct nat_rig *r, uint64_t opening, uint64_t talks, uint64_t closing,
		   uint32_t hz);

// One frame to the program for answers, or to the one for packets that have passed. The verdict.
// *ret_len: capacity before, length after.
uint32_t nat_rig_send(const struct nat_rig *r, bool answer, const uint8_t *frame, size_t len,
		      uint8_t *out, size_t *ret_len);
// Packets of each reason so far. REASON_DROP_PROGRAM: they were left to the policy.
void nat_rig_counts(const struct nat_rig *r, uint64_t ret[WEIR_REASON_COUNT]);
// The word and the key of a place.
uint64_t *nat_rig_word(const struct nat_rig *r, uint8_t family, uint64_t place);
struct nat_key nat_rig_key(const struct nat_rig *r, uint8_t family, uint64_t place);
void nat_rig_set_key(const struct nat_rig *r, uint8_t family, uint64_t place,
		     const struct nat_key *key);
