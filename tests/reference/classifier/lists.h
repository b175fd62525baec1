// SPDX-License-Identifier: GPL-2.0-only
// Lists of numbers and of addresses, and their look-ups.
#ifndef REF_LISTS_H
#define REF_LISTS_H

#include <stdbool.h>
#include <stdint.h>

#include "addr.h"
#include "mem.h"

struct number_range {
	uint64_t lo;
	uint64_t hi;
	bool negative;
};

/* Numbers; `negated` is for the caller, numbers_hold() ignores it. */
struct numbers {
	bool negated;
	VEC(struct number_range) ranges;
};

void numbers_add(struct pool *pool, struct numbers *numbers, uint64_t lo, uint64_t hi,
		 bool negative);
bool numbers_hold(const struct numbers *numbers, uint64_t value);

/* The prefix that decides about an address: the longest one, or none (len -1). */
struct decision {
	int len;
	bool in;
};

struct address_item {
	struct prefix prefix;
	bool negative;
};

struct addresses;

struct address_ref {
	struct addresses *addresses;
	bool negative;
};

/* Addresses; `negated` is for the caller. One look-up per direction is remembered per packet. */
struct addresses {
	bool negated;
	bool never;   /* holds nothing: reading 8 */
	bool walking; /* for the search for loops */
	VEC(struct address_item) items;
	VEC(struct address_ref) refs;
	bool has_len[2][129]; /* by family: 0 is IPv4 */
	uint32_t *slots;      /* hash of items, numbered from 1; NULL = look at each item */
	uint32_t slots_mask;
	struct {
		uint64_t packet;
		struct decision decision;
	} seen[2];
};

/* Above this many items the hash is used. */
#define ADDRESSES_LINEAR 16

void addresses_add(struct pool *pool, struct addresses *addresses, const struct prefix *prefix,
		   bool negative);

/* Call once after the last item; hashed: use the hash for any number of items. */
void addresses_finish(struct pool *pool, struct addresses *addresses, bool hashed);

/* packet numbers the packets from 1, direction is 0 (from) or 1 (to). */
struct decision addresses_decide(struct addresses *addresses, struct addr addr, uint64_t packet,
				 int direction);

#endif
