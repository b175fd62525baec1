// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/addr.h; the C library's inet_pton and inet_ntop and a recursive cutter of
// ranges are the references.
#include "tests/unit/base/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/addr_explain.h"
#include "ctl/base/addr_range.h"
#include "ctl/base/mem.h"

typedef unsigned __int128 u128;

static struct addr addr(const char *text)
{
	struct addr a;

	if (addr_parse(text, strlen(text), &a, NULL) < 0)
		fail_msg("'%s' was refused", text);
	return a;
}

static struct prefix prefix(const char *text)
{
	struct prefix p;
	struct err err = {0};

	if (prefix_parse(text, strlen(text), &p, NULL, &err) < 0)
		fail_msg("'%s' was refused: %s", text, err.text);
	return p;
}

static void test_addr_accepts(void **state)
{
	static const struct {
		const char *text, *canonical;
	} cases[] = {
		{"0.0.0.0", "0.0.0.0"},
		{"192.0.2.1", "192.0.2.1"},
		{"255.255.255.255", "255.255.255.255"},
		{"1.20.100.0", "1.20.100.0"},
		{"::", "::"},
		{"::1", "::1"},
		{"1::", "1::"},
		{"2001:db8::1", "2001:db8::1"},
		{"2001:0DB8:0000:0000:0000:0000:0000:0001", "2001:db8::1"},
		{"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
		{"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
		{"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
		{"1::3:4:5:6:7:8", "1:0:3:4:5:6:7:8"},
		{"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
		{"1:0:0:2:3:0:0:4", "1::2:3:0:0:4"},
		{"0:0:1:0:0:0:0:0", "0:0:1::"},
		{"fe80::abcd:EF01", "fe80::abcd:ef01"},
		{"::192.0.2.1", "::c000:201"},
		{"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
		{"1:2:3:4:5:6:7.8.9.10", "1:2:3:4:5:6:708:90a"},
		{"1:2:3:4:5::7.8.9.10", "1:2:3:4:5:0:708:90a"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"ffff::255.255.255.255", "ffff::ffff:ffff"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct addr a = addr(cases[i].text);
		addr_text text;

		assert_string_equal(addr_format(&a, text), cases[i].canonical);
	}
}

// Refused as addresses and as prefixes.
static const char *const no_addresses[] = {
	"",
	" ",
	"80abc",
	"+1",
	" 1",
	"1 ",
	"1",
	"010.0.0.1",
	"10.0.0.01",
	"00.0.0.0",
	"0x7f.1",
	"0x7f.0.0.1",
	"127.1",
	"1.2.3",
	"1.2.3.",
	".1.2.3",
	".1.2.3.4",
	"1..2.3",
	"1.2.3.4.",
	"1.2.3.4.5",
	"1.2.3.256",
	"256.1.2.3",
	"1.2.3.999",
	"1.2.3.1000",
	"1.2.3.-4",
	"1.2.3.+4",
	"1.2.3.4 ",
	" 1.2.3.4",
	"1.2.3.4\n",
	"1.2.3. 4",
	"1,2,3,4",
	"1.2.3.a",
	"1.2.3.4a",
	"4294967296",
	":",
	":::",
	":1",
	"1:",
	"::1:",
	":1::",
	"::1::",
	"1::2::3",
	":::1",
	"1:::2",
	"1:2:3:4:5:6:7",
	"1:2:3:4:5:6:7:",
	"1:2:3:4:5:6:7:8:",
	"1:2:3:4:5:6:7:8:9",
	"1:2:3:4:5:6:7:8::",
	"::1:2:3:4:5:6:7:8",
	"1::2:3:4:5:6:7:8",
	"1:2:3:4:5:6:7:8.9.10.11",
	"1:2:3:4:5:6:7::8.9.10.11",
	"12345::",
	"::12345",
	"::00001",
	"::g",
	"::1.2.3",
	"::1.2.3.4.5",
	"::1.2.3.256",
	"::01.2.3.4",
	"1.2.3.4::",
	"::1.2.3.4:5",
	"fe80::1%eth0",
	"fe80::1%",
	"[::1]",
	"::1 ",
	"::-1",
	"0x1::",
	"twitter.com",
	"any",
	"*",
	"1.2.3.4:80",
	"1.2.3.4-1.2.3.9",
	"1.2.3.4,5.6.7.8",
	"\xc2\xb2.1.1.1",
};

static void test_addr_refuses(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(no_addresses); i++) {
		struct addr a = {.family = 99};
		struct prefix p = {.len = 99};
		struct err err = {0};
		const char *text = no_addresses[i];
		bool mapped = true;

		if (addr_parse(text, strlen(text), &a, &mapped) != -EINVAL || a.family != 99)
			fail_msg("address '%s' was accepted", text);
		if (prefix_parse(text, strlen(text), &p, &mapped, &err) != -EINVAL || p.len != 99)
			fail_msg("prefix '%s' was accepted", text);
		assert_true(mapped);
		assert_int_equal(err.kind, ERR_INPUT);
		assert_true(err.text[0] && err.hint[0]);
	}
}

static void test_addr_reads_its_length_only(void **state)
{
	struct addr a;

	assert_int_equal(addr_parse("1.2.3.45", 7, &a, NULL), 0);
	assert_int_equal(a.bytes[3], 4);
	assert_int_equal(addr_parse("::12", 3, &a, NULL), 0);
	assert_int_equal(a.bytes[15], 1);
	assert_int_equal(addr_parse("1.2.3.4\0", 8, &a, NULL), -EINVAL);
	assert_int_equal(addr_parse("1.2.3\0.4", 8, &a, NULL), -EINVAL);
	assert_int_equal(addr_parse("::\0", 3, &a, NULL), -EINVAL);
}

static void test_mapped(void **state)
{
	static const char *const forms[] = {"::ffff:192.0.2.1", "::FFFF:c000:0201",
					    "0:0:0:0:0:ffff:192.0.2.1"};
	struct addr a, want = addr("192.0.2.1");
	struct prefix p;
	bool mapped;

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		mapped = false;
		assert_int_equal(addr_parse(forms[i], strlen(forms[i]), &a, &mapped), 0);
		assert_true(mapped);
		assert_memory_equal(&a, &want, sizeof(a));
	}
	assert_int_equal(addr_parse("::fffe:192.0.2.1", 16, &a, &mapped), 0);
	assert_false(mapped);
	mapped = false;
	assert_int_equal(prefix_parse_quiet("::ffff:192.0.2.0/120", 20, &p, &mapped), 0);
	assert_true(mapped);
	assert_int_equal(p.len, 24);
	assert_int_equal(p.addr.family, 4);
	assert_int_equal(prefix_parse_quiet("192.0.2.1", 9, &p, &mapped), 0);
	assert_false(mapped);
	assert_int_equal(prefix_parse_quiet("::ffff:0:0/96", 13, &p, &mapped), 0);
	assert_true(mapped);
	assert_int_equal(p.len, 0);
	// A mapped address from a packet stays IPv6 and is printed as in RFC 5952 section 5.
	addr_text text;
	static const uint8_t bytes[16] = {[10] = 255, [11] = 255, [12] = 192, [14] = 2, [15] = 1};
	a = addr_from_v6(bytes);
	want = addr_unmapped(&a);
	assert_string_equal(addr_format(&want, text), "192.0.2.1");
	want = addr_unmapped(&want);
	assert_string_equal(addr_format(&want, text), "192.0.2.1");
	want = addr("2001:db8::1");
	want = addr_unmapped(&want);
	assert_string_equal(addr_format(&want, text), "2001:db8::1");
	assert_string_equal(addr_format(&a, text), "::ffff:192.0.2.1");
}

static bool reference_parse(const char *text, struct addr *ret)
{
	*ret = (struct addr){.family = 4};
	if (inet_pton(AF_INET, text, ret->bytes) == 1)
		return true;
	*ret = (struct addr){.family = 6};
	return inet_pton(AF_INET6, text, ret->bytes) == 1;
}

static void check_against_reference(const char *text)
{
	static const uint8_t mapped_start[12] = {[10] = 255, [11] = 255};
	struct addr want, got;
	bool mapped = false, valid = reference_parse(text, &want);
	int r = addr_parse(text, strlen(text), &got, &mapped);

	if (valid != (r == 0))
		fail_msg("'%s': %d, the C library says %d", text, r, valid);
	if (!valid)
		return;
	if (want.family == 6 && !memcmp(want.bytes, mapped_start, 12)) {
		assert_true(mapped);
		assert_int_equal(got.family, 4);
		assert_memory_equal(got.bytes, want.bytes + 12, 4);
		return;
	}
	assert_false(mapped);
	assert_memory_equal(&got, &want, sizeof(got));
}

static void test_random_words_against_inet_pton(void **state)
{
	static const char alphabet[] = "0123456789abcdefF.:::..::/x%- g";
	static const char *const seeds[] = {
		"192.0.2.1", "1.2.3.4",    "255.255.255.255",         "::",
		"::1",       "1:2:3::4:5", "1:2:3:4:5:6:7:8",         "::ffff:1.2.3.4",
		"fe80::1",   "2001:db8::", "1:2:3:4:5:6:10.20.30.40", "::1.2.3.4",
	};
	uint64_t random = 7;

	for (int i = 0; i < 400000; i++) {
		char text[64];
		size_t len;

		snprintf(text, sizeof(text), "%s", seeds[unit_below(&random, ARRAY_SIZE(seeds))]);
		for (unsigned edits = unit_below(&random, 4); edits; edits--) {
			unsigned at = unit_below(&random, (unsigned)strlen(text) + 1);

			len = strlen(text);
			switch (unit_below(&random, 3)) {
			case 0:
				text[at] = alphabet[unit_below(&random, sizeof(alphabet) - 1)];
				text[at == len ? at + 1 : len] = '\0';
				break;
			case 1:
				memmove(text + at + 1, text + at, len - at + 1);
				text[at] = alphabet[unit_below(&random, sizeof(alphabet) - 1)];
				break;
			default:
				if (at < len)
					memmove(text + at, text + at + 1, len - at);
			}
		}
		check_against_reference(text);
	}
}

static struct addr random_addr(uint64_t *random)
{
	struct addr a = {.family = unit_below(random, 2) ? 4 : 6};

	for (unsigned i = 0; i < addr_bits(&a) / 8; i++)
		a.bytes[i] = (uint8_t)(unit_random(random) >> 40);
	// Runs of zero groups, the difficult part of the format.
	if (a.family == 6)
		for (unsigned i = 0; i < 8; i++)
			if (unit_below(random, 2))
				a.bytes[2 * i] = a.bytes[2 * i + 1] = 0;
	return a;
}

static void test_random_round_trip_and_inet_ntop(void **state)
{
	static const uint8_t zero[12];
	uint64_t random = 11;

	for (int i = 0; i < 200000; i++) {
		struct addr a = random_addr(&random), back;
		char want[INET6_ADDRSTRLEN];
		addr_text text;

		addr_format(&a, text);
		assert_int_equal(addr_parse(text, strlen(text), &back, NULL), 0);
		assert_memory_equal(&a, &back, sizeof(a));
		// inet_ntop writes ::102:304 as ::1.2.3.4, which RFC 5952 does not require.
		if (a.family == 6 && !memcmp(a.bytes, zero, sizeof(zero)))
			continue;
		inet_ntop(a.family == 4 ? AF_INET : AF_INET6, a.bytes, want, sizeof(want));
		assert_string_equal(text, want);
	}
}

static void test_prefix_accepts(void **state)
{
	static const struct {
		const char *text, *canonical;
	} cases[] = {
		{"10.0.0.0/8", "10.0.0.0/8"},
		{"192.0.2.1", "192.0.2.1"},
		{"192.0.2.1/32", "192.0.2.1"},
		{"192.0.2.0/31", "192.0.2.0/31"},
		{"192.0.2.128/25", "192.0.2.128/25"},
		{"0.0.0.0/0", "0.0.0.0/0"},
		{"0.0.0.0/32", "0.0.0.0"},
		{"128.0.0.0/1", "128.0.0.0/1"},
		{"::/0", "::/0"},
		{"2001:db8::/32", "2001:db8::/32"},
		{"2001:db8::1/128", "2001:db8::1"},
		{"2001:DB8:0::/48", "2001:db8::/48"},
		{"fe80::/10", "fe80::/10"},
		{"::ffff:0:0/96", "0.0.0.0/0"},
		{"::ffff:192.0.2.0/120", "192.0.2.0/24"},
		{"::ffff:192.0.2.7/128", "192.0.2.7"},
		{"::/96", "::/96"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct prefix p = prefix(cases[i].text);
		addr_text text;

		assert_string_equal(prefix_format(&p, text), cases[i].canonical);
	}
}

static void test_looks_like_covers_what_parses(void **state)
{
	uint64_t random = 5;

	for (int i = 0; i < 20000; i++) {
		struct addr a = random_addr(&random);
		struct prefix p = prefix_of(&a, (uint8_t)unit_below(&random, 129));
		addr_text text;

		prefix_format(&p, text);
		assert_true(addr_looks_like(text, strlen(text)));
	}
}

static u128 number_of(const struct addr *a)
{
	u128 n = 0;

	for (unsigned i = 0; i < 16; i++)
		n = n << 8 | a->bytes[i];
	return a->family == 4 ? n >> 96 : n;
}

static struct addr addr_of(u128 n, uint8_t family)
{
	struct addr a = {.family = family};

	if (family == 4)
		n <<= 96;
	for (unsigned i = 16; i-- > 0; n >>= 8)
		a.bytes[i] = (uint8_t)n;
	return a;
}

struct cut {
	uint8_t family;
	u128 first, last;
	struct prefix at[300];
	size_t n;
};

// The reference: halve the whole space until a half is inside the range or outside.
static void halve(struct cut *c, u128 start, unsigned len)
{
	unsigned host = (c->family == 4 ? 32 : 128) - len;
	u128 end = host ? start | ~(u128)0 >> (128 - host) : start;

	if (end < c->first || start > c->last)
		return;
	if (start >= c->first && end <= c->last) {
		c->at[c->n++] =
			(struct prefix){.addr = addr_of(start, c->family), .len = (uint8_t)len};
		return;
	}
	halve(c, start, len + 1);
	halve(c, start | (u128)1 << (host - 1), len + 1);
}

static size_t check_range(const struct addr *first, const struct addr *last)
{
	struct cut want = {
		.family = first->family, .first = number_of(first), .last = number_of(last)};
	struct prefix got[254];
	addr_text from, to;
	CLEANUP_FREE char *text =
		mem_printf("%s-%s", addr_format(first, from), addr_format(last, to));
	struct err err = {0};
	size_t n = 0;

	if (range_parse(text, strlen(text), got, &n, &err) < 0)
		fail_msg("'%s' was refused: %s", text, err.text);
	halve(&want, 0, 0);
	assert_int_equal(n, want.n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(prefix_compare(&got[i], &want.at[i]), 0);
	return n;
}

static size_t check_range_text(const char *first, const char *last)
{
	struct addr a = addr(first), b = addr(last);

	return check_range(&a, &b);
}

static void test_range_extremes(void **state)
{
	static const char all[] = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
	static const char but_one[] = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe";

	assert_int_equal(check_range_text("0.0.0.0", "255.255.255.255"), 1);
	assert_int_equal(check_range_text("0.0.0.1", "255.255.255.254"), 62);
	assert_int_equal(check_range_text("0.0.0.0", "255.255.255.254"), 32);
	assert_int_equal(check_range_text("0.0.0.1", "255.255.255.255"), 32);
	assert_int_equal(check_range_text("0.0.0.0", "0.0.0.0"), 1);
	assert_int_equal(check_range_text("255.255.255.255", "255.255.255.255"), 1);
	assert_int_equal(check_range_text("127.255.255.255", "128.0.0.0"), 2);
	assert_int_equal(check_range_text("::", all), 1);
	assert_int_equal(check_range_text("::1", but_one), 254);
	assert_int_equal(check_range_text("::", but_one), 128);
	assert_int_equal(check_range_text("::1", all), 128);
	assert_int_equal(check_range_text(all, all), 1);
	assert_int_equal(check_range_text("7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "8000::"), 2);
	assert_int_equal(check_range_text("2001:db8::", "2001:db8::ffff"), 1);
}

static void test_range_small_exhaustive(void **state)
{
	for (unsigned first = 0; first < 64; first++)
		for (unsigned last = first; last < 64; last++) {
			struct addr a = addr_of(0xc0000200u + first, 4);
			struct addr b = addr_of(0xc0000200u + last, 4);

			check_range(&a, &b);
		}
}

static void test_range_random(void **state)
{
	uint64_t random = 13;

	for (int i = 0; i < 20000; i++) {
		struct addr a = random_addr(&random), b;

		// Half near each other, half far apart.
		do
			b = random_addr(&random);
		while (b.family != a.family);
		memcpy(b.bytes, a.bytes, unit_below(&random, addr_bits(&a) / 8));
		if (addr_compare(&a, &b) > 0)
			check_range(&b, &a);
		else
			check_range(&a, &b);
	}
}

static void test_range_of_mapped(void **state)
{
	struct prefix got[254];
	addr_text text;
	size_t n;

	assert_int_equal(range_parse_quiet("::ffff:1.2.3.0-::ffff:1.2.3.255", 31, got, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(prefix_format(&got[0], text), "1.2.3.0/24");
}

static bool bit(const struct addr *a, unsigned i)
{
	return a->bytes[i / 8] >> (7 - i % 8) & 1;
}

static bool reference_contains(const struct prefix *outer, const struct prefix *inner)
{
	if (outer->addr.family != inner->addr.family || outer->len > inner->len)
		return false;
	for (unsigned i = 0; i < outer->len; i++)
		if (bit(&outer->addr, i) != bit(&inner->addr, i))
			return false;
	return true;
}

// Few different bits, so that many prefixes contain others.
static struct prefix random_prefix(uint64_t *random)
{
	struct addr a = {.family = unit_below(random, 2) ? 4 : 6};

	for (unsigned i = 0; i < addr_bits(&a); i += 1 + unit_below(random, 40))
		a.bytes[i / 8] |= (uint8_t)(unit_below(random, 2) << (7 - i % 8));
	return prefix_of(&a, (uint8_t)unit_below(random, addr_bits(&a) + 1));
}

static int sign(int n)
{
	return (n > 0) - (n < 0);
}

static void test_contains_and_compare(void **state)
{
	uint64_t random = 17;
	unsigned contained = 0;

	for (int i = 0; i < 200000; i++) {
		struct prefix a = random_prefix(&random), b = random_prefix(&random);
		bool contains = reference_contains(&a, &b), inside = reference_contains(&b, &a);
		int order = prefix_compare(&a, &b);

		assert_int_equal(prefix_contains(&a, &b), contains);
		assert_int_equal(prefix_overlaps(&a, &b), contains || inside);
		assert_int_equal(prefix_overlaps(&b, &a), contains || inside);
		assert_int_equal(sign(order), -sign(prefix_compare(&b, &a)));
		assert_int_equal(order == 0, contains && inside);
		if (contains)
			assert_true(order <= 0);
		contained += contains && !inside;
	}
	assert_true(contained > 1000);
}

static int compare_prefixes(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

// In sorted order, a prefix precedes all prefixes that it contains, and these are adjacent.
static void test_order_nests(void **state)
{
	enum { N = 2000 };
	struct prefix *p = mem_zalloc(N, sizeof(*p));
	uint64_t random = 19;

	for (int i = 0; i < N; i++)
		p[i] = random_prefix(&random);
	qsort(p, N, sizeof(*p), compare_prefixes);
	for (int i = 0; i < N; i++) {
		bool ended = false;

		for (int j = i + 1; j < N; j++) {
			bool contains = prefix_contains(&p[i], &p[j]);

			assert_false(ended && contains);
			ended |= !contains;
		}
	}
	free(p);
}

static void test_prefix_of(void **state)
{
	uint64_t random = 23;

	for (int i = 0; i < 50000; i++) {
		struct addr a = random_addr(&random);
		uint8_t len = (uint8_t)unit_below(&random, 256);
		struct prefix p = prefix_of(&a, len);

		assert_int_equal(p.len, len < addr_bits(&a) ? len : addr_bits(&a));
		assert_int_equal(p.addr.family, a.family);
		for (unsigned at = 0; at < 128; at++)
			assert_int_equal(bit(&p.addr, at), at < p.len && bit(&a, at));
	}
}

static void test_compare_families(void **state)
{
	struct addr high = addr("255.255.255.255"), low = addr("::");

	assert_true(addr_compare(&high, &low) < 0);
	assert_true(addr_compare(&low, &high) > 0);
	assert_int_equal(addr_compare(&low, &low), 0);
}

static void test_kinds(void **state)
{
	static const struct {
		const char *text;
		bool loopback, unspecified, link_local;
	} cases[] = {
		{"127.0.0.1", true, false, false},   {"127.255.255.255", true, false, false},
		{"128.0.0.1", false, false, false},  {"126.255.255.255", false, false, false},
		{"::1", true, false, false},         {"::2", false, false, false},
		{"7f00::1", false, false, false},    {"0.0.0.0", false, true, false},
		{"0.0.0.1", false, false, false},    {"::", false, true, false},
		{"169.254.0.1", false, false, true}, {"169.253.0.1", false, false, false},
		{"fe80::1", false, false, true},     {"febf::1", false, false, true},
		{"fec0::1", false, false, false},    {"fe7f::1", false, false, false},
		{"a9fe::", false, false, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct addr a = addr(cases[i].text);

		assert_int_equal(addr_is_loopback(&a), cases[i].loopback);
		assert_int_equal(addr_is_unspecified(&a), cases[i].unspecified);
		assert_int_equal(addr_is_link_local(&a), cases[i].link_local);
	}
}

static void test_from_wire(void **state)
{
	struct addr want4 = addr("192.0.2.1"), want6 = addr("2001:db8::1"), a;

	a = addr_from_v4(htonl(0xc0000201));
	assert_memory_equal(&a, &want4, sizeof(a));
	a = addr_from_v6(want6.bytes);
	assert_memory_equal(&a, &want6, sizeof(a));
	struct prefix host = prefix("192.0.2.1"), net = prefix("192.0.2.0/31");
	assert_true(prefix_is_host(&host));
	assert_false(prefix_is_host(&net));
	assert_int_equal(addr_bits(&want4), 32);
	assert_int_equal(addr_bits(&want6), 128);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addr_accepts),
		cmocka_unit_test(test_addr_refuses),
		cmocka_unit_test(test_addr_reads_its_length_only),
		cmocka_unit_test(test_mapped),
		cmocka_unit_test(test_random_words_against_inet_pton),
		cmocka_unit_test(test_random_round_trip_and_inet_ntop),
		cmocka_unit_test(test_prefix_accepts),
		cmocka_unit_test(test_looks_like_covers_what_parses),
		cmocka_unit_test(test_range_extremes),
		cmocka_unit_test(test_range_small_exhaustive),
		cmocka_unit_test(test_range_random),
		cmocka_unit_test(test_range_of_mapped),
		cmocka_unit_test(test_contains_and_compare),
		cmocka_unit_test(test_order_nests),
		cmocka_unit_test(test_prefix_of),
		cmocka_unit_test(test_compare_families),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_from_wire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
