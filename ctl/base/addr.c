// SPDX-License-Identifier: GPL-2.0-only
// Addresses and prefixes: strict parsers written for lists of a million lines, formats, arithmetic.
#include "ctl/base/addr.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/num.h"

#define V6_GROUPS      8
#define V6_NO_GAP      -1
#define V6_MAPPED_BITS 96 // ::ffff:0:0/96, RFC 4291 section 2.5.5.2

static const uint8_t v6_mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

// One decimal part 0..255 without leading zeros; moves *at past it.
static int parse_v4_part(const char **at, const char *end, uint8_t *ret)
{
	const char *p = *at;
	unsigned n = 0;

	while (p < end && p - *at < 3 && *p >= '0' && *p <= '9')
		n = n * 10 + (unsigned)(*p++ - '0');
	if (p == *at || n > 255 || (**at == '0' && p - *at > 1))
		return -EINVAL;
	*at = p;
	*ret = (uint8_t)n;
	return 0;
}

static int parse_v4(const char *at, const char *end, uint8_t ret[4])
{
	for (unsigned i = 0; i < 4; i++) {
		if (i && (at == end || *at++ != '.'))
			return -EINVAL;
		if (parse_v4_part(&at, end, &ret[i]) < 0)
			return -EINVAL;
	}
	return at == end ? 0 : -EINVAL;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// One to four hexadecimal digits; moves *at past them.
static int parse_v6_group(const char **at, const char *end, uint8_t ret[2])
{
	const char *p = *at;
	unsigned n = 0;
	int digit;

	while (p < end && p - *at < 4 && (digit = hex_digit(*p)) >= 0) {
		n = n << 4 | (unsigned)digit;
		p++;
	}
	if (p == *at)
		return -EINVAL;
	*at = p;
	ret[0] = (uint8_t)(n >> 8);
	ret[1] = (uint8_t)n;
	return 0;
}

// An address being read: `n` groups are in bytes, "::" was before group number `gap`.
struct v6_reading {
	uint8_t bytes[16];
	unsigned n;
	int gap;
};

// Moves the groups after "::" to the end. "::" replaces one group or more.
static int finish_v6(const struct v6_reading *r, uint8_t ret[16])
{
	size_t before, after;

	if (r->gap == V6_NO_GAP) {
		if (r->n != V6_GROUPS)
			return -EINVAL;
		memcpy(ret, r->bytes, 16);
		return 0;
	}
	if (r->n >= V6_GROUPS)
		return -EINVAL;
	before = (size_t)r->gap * 2;
	after = r->n * 2 - before;
	memset(ret, 0, 16);
	memcpy(ret, r->bytes, before);
	memcpy(ret + 16 - after, r->bytes + before, after);
	return 0;
}

// A group, or a dotted IPv4 address in place of the last two (RFC 4291 section 2.2, 3).
static int parse_v6_piece(struct v6_reading *r, const char **at, const char *end)
{
	const char *start = *at;

	if (r->n == V6_GROUPS || parse_v6_group(at, end, &r->bytes[r->n * 2]) < 0)
		return -EINVAL;
	r->n++;
	if (*at == end || **at != '.')
		return 0;
	if (r->n == V6_GROUPS || parse_v4(start, end, &r->bytes[(r->n - 1) * 2]) < 0)
		return -EINVAL;
	r->n++;
	*at = end;
	return 0;
}

// The colon or colons after a group. 1: more follows, 0: the text ends here.
static int parse_v6_colons(struct v6_reading *r, const char **at, const char *end)
{
	if (*at == end)
		return 0;
	if (*(*at)++ != ':' || *at == end)
		return -EINVAL;
	if (**at != ':')
		return 1;
	if (r->gap != V6_NO_GAP)
		return -EINVAL;
	r->gap = (int)r->n;
	return ++*at < end;
}

static int parse_v6(const char *at, const char *end, uint8_t ret[16])
{
	struct v6_reading r = {.gap = V6_NO_GAP};
	int more = 1;

	if (end - at >= 2 && at[0] == ':' && at[1] == ':') {
		r.gap = 0;
		at += 2;
		more = at < end;
	}
	while (more > 0) {
		if (parse_v6_piece(&r, &at, end) < 0)
			return -EINVAL;
		more = parse_v6_colons(&r, &at, end);
	}
	return more < 0 ? more : finish_v6(&r, ret);
}

// Parses an address as written: a mapped address remains IPv6.
static int parse_as_written(const char *text, size_t len, struct addr *ret)
{
	struct addr a = {.family = 4};

	if (parse_v4(text, text + len, a.bytes) < 0) {
		if (parse_v6(text, text + len, a.bytes) < 0)
			return -EINVAL;
		a.family = 6;
	}
	*ret = a;
	return 0;
}

static bool is_mapped(const struct addr *a)
{
	return a->family == 6 && !memcmp(a->bytes, v6_mapped, sizeof(v6_mapped));
}

struct addr addr_unmapped(const struct addr *a)
{
	struct addr v4 = {.family = 4};

	if (!is_mapped(a))
		return *a;
	memcpy(v4.bytes, a->bytes + sizeof(v6_mapped), 4);
	return v4;
}

int addr_parse(const char *text, size_t len, struct addr *ret, bool *ret_mapped)
{
	struct addr a;
	bool mapped;

	if (parse_as_written(text, len, &a) < 0)
		return -EINVAL;
	mapped = is_mapped(&a);
	*ret = addr_unmapped(&a);
	if (ret_mapped)
		*ret_mapped = mapped;
	return 0;
}

// mask: host bits are cleared; otherwise they are refused.
static int parse_prefix(const char *text, size_t len, bool mask, struct prefix *ret,
			bool *ret_mapped)
{
	const char *slash = memchr(text, '/', len);
	size_t addr_len = slash ? (size_t)(slash - text) : len;
	struct prefix p, masked;
	uint32_t bits;

	if (parse_as_written(text, addr_len, &p.addr) < 0)
		return -EINVAL;
	bits = addr_bits(&p.addr);
	if (slash && num_parse_u32(slash + 1, len - addr_len - 1, 0, bits, &bits) < 0)
		return -EINVAL;
	p.len = (uint8_t)bits;
	masked = prefix_of(&p.addr, p.len);
	if (!mask && memcmp(masked.addr.bytes, p.addr.bytes, sizeof(p.addr.bytes)) != 0)
		return -EINVAL;
	p = masked;
	// A shorter prefix has a bit of ffff among its host bits, so it is not mapped any more.
	if (is_mapped(&p.addr)) {
		p.addr = addr_unmapped(&p.addr);
		p.len = (uint8_t)(p.len - V6_MAPPED_BITS);
		*ret_mapped = true;
	}
	*ret = p;
	return 0;
}

int prefix_parse_quiet(const char *text, size_t len, struct prefix *ret, bool *ret_mapped)
{
	bool mapped = false;

	if (parse_prefix(text, len, false, ret, &mapped) < 0)
		return -EINVAL;
	if (ret_mapped)
		*ret_mapped = mapped;
	return 0;
}

int prefix_parse_masked(const char *text, size_t len, struct prefix *ret, bool *ret_mapped)
{
	bool mapped = false;

	if (parse_prefix(text, len, true, ret, &mapped) < 0)
		return -EINVAL;
	if (ret_mapped)
		*ret_mapped = mapped;
	return 0;
}

static bool all_of(const char *text, size_t len, const char *set)
{
	for (size_t i = 0; i < len; i++)
		if (!text[i] || !strchr(set, text[i]))
			return false;
	return true;
}

// "0x7f.1": a host name may begin like that, but its last part never begins with a digit.
static bool looks_like_hex_v4(const char *text, size_t len)
{
	const char *dot = memrchr(text, '.', len);

	return len > 2 && text[0] == '0' && (text[1] | 0x20) == 'x' &&
	       all_of(text, len, "0123456789abcdefABCDEFxX./") && dot && dot + 1 < text + len &&
	       dot[1] >= '0' && dot[1] <= '9';
}

bool addr_looks_like(const char *text, size_t len)
{
	const char *zone = len ? memchr(text, '%', len) : NULL;

	if (!len)
		return false;
	// No name contains these, and the parser's hint is better than "cannot resolve".
	if (memchr(text, '/', len) || text[0] == '[')
		return true;
	if (all_of(text, len, "0123456789.:-%*") || looks_like_hex_v4(text, len))
		return true;
	if (zone)
		len = (size_t)(zone - text); // followed by the name of an interface
	return memchr(text, ':', len) && all_of(text, len, "0123456789abcdefABCDEF.:-");
}

static char *put_decimal(char *at, unsigned n)
{
	if (n >= 100)
		*at++ = (char)('0' + n / 100);
	if (n >= 10)
		*at++ = (char)('0' + n / 10 % 10);
	*at++ = (char)('0' + n % 10);
	return at;
}

static char *put_v4(char *at, const uint8_t bytes[4])
{
	for (unsigned i = 0; i < 4; i++) {
		if (i)
			*at++ = '.';
		at = put_decimal(at, bytes[i]);
	}
	return at;
}

static char *put_hex(char *at, unsigned n)
{
	int shift = 12;

	while (shift && !(n >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*at++ = "0123456789abcdef"[n >> shift & 15];
	return at;
}

static unsigned v6_group(const uint8_t bytes[16], unsigned i)
{
	return (unsigned)bytes[i * 2] << 8 | bytes[i * 2 + 1];
}

// RFC 5952 section 4.2: the longest run of two or more zero groups, the first of equal ones.
static unsigned longest_zeros(const uint8_t bytes[16], unsigned groups, unsigned *ret_start)
{
	unsigned longest = 1, run = 0;

	*ret_start = groups;
	for (unsigned i = 0; i < groups; i++) {
		run = v6_group(bytes, i) ? 0 : run + 1;
		if (run > longest) {
			longest = run;
			*ret_start = i + 1 - run;
		}
	}
	return longest;
}

static char *put_v6(char *at, const struct addr *a)
{
	// Section 5: a mapped address ends in dotted form.
	unsigned groups = is_mapped(a) ? 6 : V6_GROUPS, gap;
	unsigned gap_len = longest_zeros(a->bytes, groups, &gap);

	for (unsigned i = 0; i < groups; i++) {
		if (i == gap) {
			*at++ = ':';
			i += gap_len - 1;
			if (i == groups - 1)
				*at++ = ':';
			continue;
		}
		if (i)
			*at++ = ':';
		at = put_hex(at, v6_group(a->bytes, i));
	}
	if (groups == V6_GROUPS)
		return at;
	*at++ = ':';
	return put_v4(at, a->bytes + sizeof(v6_mapped));
}

static char *put_addr(char *at, const struct addr *a)
{
	return a->family == 4 ? put_v4(at, a->bytes) : put_v6(at, a);
}

const char *addr_format(const struct addr *a, addr_text buf)
{
	*put_addr(buf, a) = '\0';
	return buf;
}

const char *prefix_format(const struct prefix *p, addr_text buf)
{
	char *at = put_addr(buf, &p->addr);

	if (!prefix_is_host(p)) {
		*at++ = '/';
		at = put_decimal(at, p->len);
	}
	*at = '\0';
	return buf;
}

unsigned addr_bits(const struct addr *a)
{
	return a->family == 4 ? 32 : 128;
}

struct prefix prefix_of(const struct addr *a, uint8_t len)
{
	unsigned bits = addr_bits(a), whole;
	struct prefix p = {.addr = {.family = a->family}};

	p.len = (uint8_t)(len < bits ? len : bits);
	whole = p.len / 8;
	memcpy(p.addr.bytes, a->bytes, whole);
	if (p.len % 8)
		p.addr.bytes[whole] = (uint8_t)(a->bytes[whole] & 0xff00 >> p.len % 8);
	return p;
}

bool prefix_is_host(const struct prefix *p)
{
	return p->len == addr_bits(&p->addr);
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return !(bits % 8) || !((a[whole] ^ b[whole]) & 0xff00 >> bits % 8 & 0xff);
}

bool prefix_contains(const struct prefix *outer, const struct prefix *inner)
{
	return outer->addr.family == inner->addr.family && outer->len <= inner->len &&
	       same_bits(outer->addr.bytes, inner->addr.bytes, outer->len);
}

bool prefix_overlaps(const struct prefix *a, const struct prefix *b)
{
	return prefix_contains(a, b) || prefix_contains(b, a);
}

int addr_compare(const struct addr *a, const struct addr *b)
{
	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

int prefix_compare(const struct prefix *a, const struct prefix *b)
{
	int order = addr_compare(&a->addr, &b->addr);

	return order ? order : (int)a->len - (int)b->len;
}

struct addr addr_from_v4(uint32_t addr_be)
{
	struct addr a = {.family = 4};

	memcpy(a.bytes, &addr_be, sizeof(addr_be));
	return a;
}

struct addr addr_from_v6(const uint8_t bytes[16])
{
	struct addr a = {.family = 6};

	memcpy(a.bytes, bytes, sizeof(a.bytes));
	return a;
}

bool addr_is_loopback(const struct addr *a)
{
	static const uint8_t one[16] = {[15] = 1};

	return a->family == 4 ? a->bytes[0] == 127 : !memcmp(a->bytes, one, sizeof(one));
}

bool addr_is_unspecified(const struct addr *a)
{
	static const uint8_t zero[16];

	return !memcmp(a->bytes, zero, sizeof(zero));
}

bool addr_is_link_local(const struct addr *a)
{
	if (a->family == 4)
		return a->bytes[0] == 169 && a->bytes[1] == 254;
	return a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}

bool addr_is_remote(const struct addr *a)
{
	static const uint8_t broadcast[] = {255, 255, 255, 255};
	bool multicast = a->family == 4 ? (a->bytes[0] & 0xf0) == 0xe0 : a->bytes[0] == 0xff;

	return !multicast && !addr_is_loopback(a) && !addr_is_unspecified(a) &&
	       (a->family != 4 || memcmp(a->bytes, broadcast, sizeof(broadcast)) != 0);
}
