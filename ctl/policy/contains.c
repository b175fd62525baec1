// SPDX-License-Identifier: GPL-2.0-only
// Looks one address up in a resolved set.
#include <string.h>

#include "ctl/policy/resolved.h"

static uint64_t read_be(const uint8_t *at, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value = value << 8 | at[i];
	return value;
}

static bool holds4(const struct resolved_prefix4 *p, uint32_t a)
{
	return !p->len || (p->addr ^ a) >> (32 - p->len) == 0;
}

static bool holds6(const struct resolved_prefix6 *p, uint64_t hi, uint64_t lo)
{
	if (p->len <= 64)
		return !p->len || (p->hi ^ hi) >> (64 - p->len) == 0;
	return p->hi == hi && (p->lo ^ lo) >> (128 - p->len) == 0;
}

static bool find4(const struct resolved_addresses *s, uint32_t a, struct place *ret)
{
	bool in = false;

	// In preorder the last prefix that holds the address is the longest. All prefixes after the
	// loop begin later.
	for (size_t i = 0; i < s->n4 && s->v4[i].addr <= a; i++)
		if (holds4(&s->v4[i], a)) {
			in = s->v4[i].in;
			*ret = (struct place){s->v4[i].file, s->v4[i].line};
		}
	return in;
}

static bool find6(const struct resolved_addresses *s, uint64_t hi, uint64_t lo, struct place *ret)
{
	bool in = false;

	for (size_t i = 0; i < s->n6 && s->v6[i].hi <= hi; i++)
		if (holds6(&s->v6[i], hi, lo)) {
			in = s->v6[i].in;
			*ret = (struct place){s->v6[i].file, s->v6[i].line};
		}
	return in;
}

bool resolved_contains(const struct resolved_addresses *s, const struct addr *a,
		       struct place *ret_place)
{
	struct place place = {0};
	bool in;

	if (a->family == 4)
		in = find4(s, (uint32_t)read_be(a->bytes, 4), &place);
	else
		in = find6(s, read_be(a->bytes, 8), read_be(a->bytes + 8, 8), &place);
	if (ret_place && place.line)
		*ret_place = place;
	return in;
}
