// SPDX-License-Identifier: GPL-2.0-only
// Cuts ranges of addresses into prefixes.
#include "ctl/base/addr_range.h"

#include <errno.h>
#include <string.h>

typedef unsigned __int128 u128;

static u128 number_of(const struct addr *a)
{
	u128 n = 0;

	for (unsigned i = 0; i < addr_bits(a) / 8; i++)
		n = n << 8 | a->bytes[i];
	return n;
}

static struct addr addr_of(u128 n, uint8_t family)
{
	struct addr a = {.family = family};

	for (unsigned i = addr_bits(&a) / 8; i-- > 0; n >>= 8)
		a.bytes[i] = (uint8_t)n;
	return a;
}

// 2^bits - 1, for bits up to 128.
static u128 ones(unsigned bits)
{
	return bits ? ~(u128)0 >> (128 - bits) : 0;
}

// The largest block that begins at first, is aligned to its size and ends at last or before:
// its number of host bits.
static unsigned largest_block(u128 first, u128 last, unsigned width)
{
	unsigned bits = 0;

	while (bits < width && !(first & ones(bits + 1)) && (first | ones(bits + 1)) <= last)
		bits++;
	return bits;
}

// Taking the largest block each time gives the fewest, at most 2W - 2 for addresses of W bits:
// Srinivasan, Varghese, Suri, Waldvogel, "Fast and Scalable Layer Four Switching", SIGCOMM 1998.
static size_t cut(const struct addr *from, const struct addr *to, struct prefix *ret)
{
	u128 first = number_of(from), last = number_of(to);
	unsigned width = addr_bits(from);
	size_t n = 0;

	for (;;) {
		unsigned bits = largest_block(first, last, width);
		u128 end = first | ones(bits);

		ret[n++] = (struct prefix){
			.addr = addr_of(first, from->family),
			.len = (uint8_t)(width - bits),
		};
		if (end == last) // not first > last: after the highest address, first is 0
			return n;
		first = end + 1;
	}
}

int range_parse_quiet(const char *text, size_t len, struct prefix ret[254], size_t *ret_n)
{
	const char *dash = memchr(text, '-', len);
	struct addr first, last;
	size_t first_len;

	if (!dash)
		return -EINVAL;
	first_len = (size_t)(dash - text);
	if (addr_parse(text, first_len, &first, NULL) < 0 ||
	    addr_parse(dash + 1, len - first_len - 1, &last, NULL) < 0)
		return -EINVAL;
	if (first.family != last.family || addr_compare(&first, &last) > 0)
		return -EINVAL;
	*ret_n = cut(&first, &last, ret);
	return 0;
}
