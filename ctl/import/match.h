// SPDX-License-Identifier: GPL-2.0-only
// Sets of packets that a rule of a foreign firewall describes: an interval list for each field.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/import/pairs.h"
#include "ctl/policy/arena.h"
#include "ctl/policy/intervals.h"

enum match_field {
	MATCH_SRC,
	MATCH_DST,
	MATCH_PROTO,
	MATCH_SPORT,
	MATCH_DPORT,
	MATCH_TYPE,
	MATCH_CODE,
	MATCH_TTL,
	MATCH_DSCP,
	MATCH_MAC, // of the source
	MATCH_FIELDS,
};

struct json;

#define MATCH_V4   1
#define MATCH_V6   2
#define MATCH_BOTH 3

// The values of one field, sorted and disjoint. n 0: any value.
struct values {
	const struct interval *at;
	size_t n;
	const char *set; // the name of a set with exactly these values; NULL: none
	bool part;       // the elements that stay in a set that changes
};

// Addresses and ICMP types belong to one family: a match that has them has one bit in `families`.
struct match {
	struct values f[MATCH_FIELDS];
	const struct json *in[2]; // dynamic sets with the source, the destination; NULL: any
	// The source has one of the first, the destination one of the second; NULL: any. Their
	// addresses and ports are in `f` too.
	const struct pairs *pairs[2];
	uint64_t on;      // bits of the interfaces of the policy; all bits: any
	uint8_t families; // MATCH_V4, MATCH_V6
	bool flagged;     // TCP flags: of `mask`, those in `flags` are set
	uint8_t flags, mask;
	bool established, untracked, fragment; // untracked: not established
	bool never;                            // no packet matches
	bool loose;     // matches more packets than the original: not for a drop
	bool omitted;   // a condition was left out; then it is loose too
	uint16_t parts; // fields with fewer values than the original's, for a drop only
	bool rewrites;  // a target of iptables that may change the destination
};

#define MATCH_PART_ON    (1u << MATCH_FIELDS) // in `parts`: the interfaces
#define MATCH_PART_PAIRS (2u << MATCH_FIELDS)

extern const struct match match_any;

// The greatest value of a field; addresses: of that family.
address_number match_max(enum match_field field, uint8_t families);

// Sorts n intervals and merges neighbours; returns how many are left.
size_t match_sort(struct interval *at, size_t n);
// All other values of 0..max.
struct values match_complement(struct arena *arena, struct values v, address_number max);
// Narrows a field to these values. No value (`n` 0 with `at` set) leaves no packet.
void match_narrow(struct arena *arena, struct match *m, enum match_field field, struct values v);
// Narrows one side to pairs, 0: the source, 1: the destination.
void match_narrow_pairs(struct arena *arena, struct match *m, int side, const struct pairs *pairs);
// Do addresses and ports of the side exclude no pair? Without pairs, too.
bool match_pairs_are_folded(const struct match *m, int side);
// Leaves out the pairs whose address or port the fields exclude. False: that makes too many pairs.
bool match_fold_pairs(struct arena *arena, struct match *m, int side, size_t max);
// The packets of both. Of two tests of flags the second is omitted.
struct match match_meet(struct arena *arena, const struct match *a, const struct match *b);
// Leaves a condition out.
void match_omit(struct match *m);
// The cost of a comparison, in intervals.
size_t match_size(const struct match *m);
// May a packet be in both?
bool match_meets(const struct match *a, const struct match *b);
// Is each packet of `inner` in `outer`? False also where that is not known.
bool match_covers(const struct match *outer, const struct match *inner);
bool values_have(const struct values *v, address_number n);
