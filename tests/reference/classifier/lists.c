// SPDX-License-Identifier: GPL-2.0-only
// Lists of numbers and of addresses, and their look-ups.
#include "lists.h"

void numbers_add(struct pool *pool, struct numbers *numbers, uint64_t lo, uint64_t hi,
		 bool negative)
{
	*vec_add(pool, &numbers->ranges) =
		(struct number_range){.lo = lo, .hi = hi, .negative = negative};
}

bool numbers_hold(const struct numbers *numbers, uint64_t value)
{
	bool held = false;

	for (size_t i = 0; i < numbers->ranges.len; i++) {
		const struct number_range *range = &numbers->ranges.v[i];

		if (value < range->lo || value > range->hi)
			continue;
		if (range->negative)
			return false;
		held = true;
	}
	return held;
}

void addresses_add(struct pool *pool, struct addresses *addresses, const struct prefix *prefix,
		   bool negative)
{
	*vec_add(pool, &addresses->items) =
		(struct address_item){.prefix = *prefix, .negative = negative};
}

static uint32_t hash(unsigned int family, unsigned int len, u128 value)
{
	uint64_t h = (uint64_t)(value >> 64) * 0x9e3779b97f4a7c15U;

	h ^= h >> 29;
	h = (h + (uint64_t)value) * 0xbf58476d1ce4e5b9U;
	h ^= h >> 32;
	h = (h + len * 131 + family) * 0x94d049bb133111ebU;
	return (uint32_t)(h >> 32);
}

/* The slot of this prefix, or the empty one where it would go. */
static uint32_t slot_of(const struct addresses *addresses, unsigned int family, unsigned int len,
			u128 value)
{
	uint32_t slot = hash(family, len, value) & addresses->slots_mask;

	while (addresses->slots[slot]) {
		const struct prefix *prefix =
			&addresses->items.v[addresses->slots[slot] - 1].prefix;

		if (prefix->addr.value == value && prefix->len == len &&
		    prefix->addr.family == family)
			break;
		slot = (slot + 1) & addresses->slots_mask;
	}
	return slot;
}

void addresses_finish(struct pool *pool, struct addresses *addresses, bool hashed)
{
	uint32_t size = 16;

	if (!hashed)
		return;
	while (size < 2 * addresses->items.len)
		size *= 2;
	addresses->slots = pool_alloc(pool, size * sizeof(*addresses->slots));
	addresses->slots_mask = size - 1;
	for (uint32_t i = 0; i < addresses->items.len; i++) {
		const struct address_item *item = &addresses->items.v[i];
		const struct prefix *prefix = &item->prefix;
		uint32_t slot =
			slot_of(addresses, prefix->addr.family, prefix->len, prefix->addr.value);

		if (!addresses->slots[slot] || item->negative)
			addresses->slots[slot] = i + 1; /* on a tie `not` wins */
		addresses->has_len[prefix->addr.family == 6][prefix->len] = true;
	}
}

/* The longest prefix decides, on a tie `not` wins (weir-policy(5), ADDRESSES). */
static void consider(struct decision *best, int len, bool in)
{
	if (len > best->len)
		*best = (struct decision){.len = len, .in = in};
	else if (len == best->len && !in)
		best->in = false;
}

static void decide_linear(const struct addresses *addresses, struct addr addr,
			  struct decision *best)
{
	for (size_t i = 0; i < addresses->items.len; i++) {
		const struct address_item *item = &addresses->items.v[i];

		if (prefix_holds(&item->prefix, addr))
			consider(best, (int)item->prefix.len, !item->negative);
	}
}

static void decide_hashed(const struct addresses *addresses, struct addr addr,
			  struct decision *best)
{
	for (int len = 128; len >= 0; len--) {
		uint32_t slot;

		if (!addresses->has_len[addr.family == 6][len])
			continue;
		slot = slot_of(addresses, addr.family, (unsigned int)len,
			       addr.value & addr_mask((unsigned int)len));
		if (!addresses->slots[slot])
			continue;
		consider(best, len, !addresses->items.v[addresses->slots[slot] - 1].negative);
		return;
	}
}

static struct decision decide(struct addresses *addresses, struct addr addr, uint64_t packet,
			      int direction)
{
	struct decision best = {.len = -1, .in = false};

	if (addresses->slots)
		decide_hashed(addresses, addr, &best);
	else
		decide_linear(addresses, addr, &best);
	for (size_t i = 0; i < addresses->refs.len; i++) {
		const struct address_ref *ref = &addresses->refs.v[i];
		struct decision inner = addresses_decide(ref->addresses, addr, packet, direction);

		if (inner.in)
			consider(&best, inner.len, !ref->negative);
	}
	return best;
}

struct decision addresses_decide(struct addresses *addresses, struct addr addr, uint64_t packet,
				 int direction)
{
	if (addresses->seen[direction].packet != packet) {
		addresses->seen[direction].decision = decide(addresses, addr, packet, direction);
		addresses->seen[direction].packet = packet;
	}
	return addresses->seen[direction].decision;
}
