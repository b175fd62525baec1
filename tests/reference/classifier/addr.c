// SPDX-License-Identifier: GPL-2.0-only
// Addresses, prefixes and ranges of both families, from text and to text.
#include "addr.h"

#include <arpa/inet.h>
#include <string.h>

unsigned int addr_bits(unsigned int family)
{
	return family == 4 ? 32 : 128;
}

u128 addr_mask(unsigned int len)
{
	return len ? ~(u128)0 << (128 - len) : 0;
}

struct addr addr_from_bytes(unsigned int family, const uint8_t *bytes)
{
	struct addr addr = {.family = family};

	for (unsigned int i = 0; i < addr_bits(family) / 8; i++)
		addr.value |= (u128)bytes[i] << (120 - 8 * i);
	return addr;
}

void addr_to_bytes(struct addr addr, uint8_t bytes[16])
{
	for (unsigned int i = 0; i < 16; i++)
		bytes[i] = (uint8_t)(addr.value >> (120 - 8 * i));
}

/* ::ffff:a.b.c.d in a policy is the IPv4 address. */
static struct addr unmap(struct addr addr)
{
	if (addr.family == 6 && addr.value >> 32 == 0xffff)
		addr = (struct addr){.value = addr.value << 96, .family = 4};
	return addr;
}

static bool parse_as_written(const char *text, struct addr *ret_addr)
{
	uint8_t bytes[16];

	if (inet_pton(AF_INET, text, bytes) == 1)
		*ret_addr = addr_from_bytes(4, bytes);
	else if (inet_pton(AF_INET6, text, bytes) == 1)
		*ret_addr = addr_from_bytes(6, bytes);
	else
		return false;
	return true;
}

bool addr_parse(const char *text, struct addr *ret_addr)
{
	if (!parse_as_written(text, ret_addr))
		return false;
	*ret_addr = unmap(*ret_addr);
	return true;
}

void addr_format(struct addr addr, char *buf, size_t size)
{
	uint8_t bytes[16];

	addr_to_bytes(addr, bytes);
	if (!inet_ntop(addr.family == 4 ? AF_INET : AF_INET6, bytes, buf, (socklen_t)size) && size)
		buf[0] = '\0';
}

bool prefix_holds(const struct prefix *prefix, struct addr addr)
{
	return prefix->addr.family == addr.family &&
	       ((prefix->addr.value ^ addr.value) & addr_mask(prefix->len)) == 0;
}

bool number_parse(const char *text, size_t len, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (len == 0 || len > 18)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(text[i] - '0');
	}
	if (number > max)
		return false;
	*ret_number = number;
	return true;
}

int prefixes_of_range(struct addr lo, struct addr hi, struct prefix ret_prefixes[PREFIXES_MAX])
{
	unsigned int bits = addr_bits(lo.family);
	u128 first = lo.value >> (128 - bits);
	u128 last = hi.value >> (128 - bits);
	int count = 0;

	if (lo.family != hi.family || first > last)
		return -1;
	for (;;) {
		unsigned int zeros = 0; /* the block holds 2^zeros addresses */
		u128 end = first;

		while (zeros < bits && !(first >> zeros & 1)) {
			u128 larger = first | (((u128)1 << zeros << 1) - 1);

			if (larger > last)
				break;
			zeros++;
			end = larger;
		}
		ret_prefixes[count++] = (struct prefix){
			.addr = {.value = first << (128 - bits), .family = lo.family},
			.len = bits - zeros,
		};
		if (end == last)
			return count;
		first = end + 1;
	}
}

static int parse_range(const char *low, const char *high, struct prefix ret_prefixes[PREFIXES_MAX])
{
	struct addr lo, hi;

	if (!addr_parse(low, &lo) || !addr_parse(high, &hi))
		return -1;
	return prefixes_of_range(lo, hi, ret_prefixes);
}

static int parse_prefix(const char *text, const char *length, struct prefix *ret_prefix)
{
	struct prefix prefix;
	uint64_t len;

	if (!parse_as_written(text, &prefix.addr))
		return -1;
	if (!number_parse(length, strlen(length), addr_bits(prefix.addr.family), &len))
		return -1;
	if ((length[0] == '0' && length[1]) || (prefix.addr.value & ~addr_mask((unsigned int)len)))
		return -1;
	prefix.len = (unsigned int)len;
	if (prefix.len >= 96 && unmap(prefix.addr).family != prefix.addr.family) {
		prefix.addr = unmap(prefix.addr);
		prefix.len -= 96;
	}
	*ret_prefix = prefix;
	return 1;
}

int prefixes_parse(const char *word, struct prefix ret_prefixes[PREFIXES_MAX])
{
	char text[128];
	size_t len = strlen(word);
	char *cut;

	if (len >= sizeof(text))
		return -1;
	memcpy(text, word, len + 1);
	cut = strpbrk(text, "/-");
	if (!cut) {
		if (!addr_parse(text, &ret_prefixes[0].addr))
			return -1;
		ret_prefixes[0].len = addr_bits(ret_prefixes[0].addr.family);
		return 1;
	}
	if (*cut == '-') {
		*cut = '\0';
		return parse_range(text, cut + 1, ret_prefixes);
	}
	*cut = '\0';
	return parse_prefix(text, cut + 1, ret_prefixes);
}
