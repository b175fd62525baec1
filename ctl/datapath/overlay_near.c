// SPDX-License-Identifier: GPL-2.0-only
// Sets the bits of prefixes and counts their lengths.
#include "ctl/datapath/overlay_near.h"

#include <string.h>

#include "common/overlay.h"

#define BITS (64 * OVERLAY_NEAR_WORDS)
// A wider prefix of IPv6 has so many values of its first 32 bits inside that most bits would be set
// one by one.
#define WIDE6 20

int near_open(const struct instance *i, struct mapping *ret, struct err *err)
{
	return mapping_open(ret, i->near, sizeof(struct overlay_near), err);
}

struct overlay_near *near_of(const struct mapping *m)
{
	return m->at;
}

static __u64 *bits_of(struct overlay_near *near, uint8_t family, uint8_t kind)
{
	bool from = 1u << kind & OVERLAY_KINDS_FROM;

	if (family == 4)
		return from ? near->from4 : near->to4;
	return from ? near->from6 : near->to6;
}

static uint32_t first_bits(const struct prefix *p)
{
	const uint8_t *b = p->addr.bytes;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void set_bit(__u64 *bits, uint32_t n)
{
	__atomic_or_fetch(&bits[n / 64], 1ull << n % 64, __ATOMIC_RELEASE);
}

static bool bit_is_set(const __u64 *bits, uint32_t n)
{
	return bits[n / 64] >> n % 64 & 1;
}

// How many values of the first 16 or 32 bits are inside.
static uint64_t values_inside(const struct prefix *p, unsigned bits)
{
	return p->len >= bits ? 1 : 1ull << (bits - p->len);
}

void near_set(struct overlay_near *near, const struct prefix *p, uint8_t kind)
{
	__u64 *bits = bits_of(near, p->addr.family, kind);
	uint32_t first = first_bits(p);

	if (p->addr.family == 4)
		for (uint64_t n = 0; n < values_inside(p, 16); n++)
			set_bit(bits, (first >> 16) + (uint32_t)n);
	else if (p->len < WIDE6)
		memset(bits, 0xff, BITS / 8);
	else
		for (uint64_t n = 0; n < values_inside(p, 32); n++)
			set_bit(bits, overlay_near6(first + (uint32_t)n));
}

static __u32 *lengths_of(struct overlay_near *near, const struct prefix *p, uint8_t kind)
{
	return near->lengths[p->addr.family == 6][kind];
}

void near_add(struct overlay_near *near, const struct prefix *p, uint8_t kind)
{
	near_set(near, p, kind);
	lengths_of(near, p, kind)[p->len]++;
}

void near_remove(struct overlay_near *near, const struct prefix *p, uint8_t kind)
{
	if (lengths_of(near, p, kind)[p->len])
		lengths_of(near, p, kind)[p->len]--;
}

bool near_inside(const struct overlay_near *near, const struct prefix *p, uint8_t kind)
{
	const __u32 *lengths = near->lengths[p->addr.family == 6][kind];
	const __u64 *bits = bits_of((struct overlay_near *)near, p->addr.family, kind);
	bool four = p->addr.family == 4, longer = false;
	uint32_t first = first_bits(p);

	for (unsigned len = p->len + 1u; len < 129; len++)
		longer |= lengths[len] != 0;
	if (!longer)
		return false;
	// All that is inside of a narrow prefix has its bit.
	if (p->len < (four ? 16 : 32))
		return true;
	return bit_is_set(bits, four ? first >> 16 : overlay_near6(first));
}

void near_replace(struct overlay_near *near, const struct overlay_near *fresh, uint8_t family)
{
	bool six = family == 6;

	for (size_t w = 0; w < OVERLAY_NEAR_WORDS; w++) {
		__atomic_store_n(six ? &near->from6[w] : &near->from4[w],
				 six ? fresh->from6[w] : fresh->from4[w], __ATOMIC_RELAXED);
		__atomic_store_n(six ? &near->to6[w] : &near->to4[w],
				 six ? fresh->to6[w] : fresh->to4[w], __ATOMIC_RELAXED);
	}
	memcpy(near->lengths[six], fresh->lengths[six], sizeof(near->lengths[six]));
}
