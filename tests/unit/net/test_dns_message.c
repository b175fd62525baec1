// SPDX-License-Identifier: GPL-2.0-only
// Answers of name servers: CNAME chains in any order, times to live, and damaged messages.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "ctl/net/dns_message.h"
#include "tests/unit/net/dns_packet.h"

enum { A = DNS_TYPE_A, AAAA = DNS_TYPE_AAAA, CNAME = DNS_TYPE_CNAME, TXT = 16 };

static struct text packet(const char *name, uint16_t type, const struct packet_rr *rrs, size_t n)
{
	struct text p = {0};

	put_header(&p, 1, 0x8180, n);
	put_question(&p, name, type);
	for (size_t i = 0; i < n; i++)
		put_rr(&p, &rrs[i]);
	return p;
}

// Reads the answer to x.test from a copy of exact size, so that the sanitizer sees each overrun.
static int read_exactly(const char *bytes, size_t len, uint16_t type, struct dns_found *found)
{
	CLEANUP_FREE uint8_t *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	return dns_message_read(copy, len, "x.test", type, found);
}

static int read_rrs(uint16_t type, const struct packet_rr *rrs, size_t n, struct dns_found *found)
{
	struct text p = packet("x.test", type, rrs, n);
	int rc = read_exactly(text_get(&p), p.len, type, found);

	text_free(&p);
	return rc;
}

#define READ(type, found, ...)                                                               \
	read_rrs(type, (const struct packet_rr[]){__VA_ARGS__},                              \
		 sizeof((const struct packet_rr[]){__VA_ARGS__}) / sizeof(struct packet_rr), \
		 found)

static void check_addr(const struct dns_found *found, size_t i, const char *text)
{
	addr_text buf;

	assert_true(i < found->addrs.n);
	assert_string_equal(addr_format(&found->addrs.at[i], buf), text);
}

static void reads_addresses(void **state)
{
	struct dns_found f = {0};

	assert_int_equal(READ(A, &f, {"", A, 300, "192.0.2.2"}, {"X.TEST", A, 60, "192.0.2.1"}), 0);
	assert_int_equal(f.addrs.n, 2);
	check_addr(&f, 0, "192.0.2.2");
	check_addr(&f, 1, "192.0.2.1");
	assert_int_equal(f.ttl_s, 60);
	assert_string_equal(f.canonical, "x.test");
	// the answer of the other family is stored in the same place
	assert_int_equal(READ(AAAA, &f, {"", AAAA, 30, "2001:db8::1"}), 0);
	assert_int_equal(f.addrs.n, 3);
	check_addr(&f, 2, "2001:db8::1");
	assert_int_equal(f.ttl_s, 30);
	assert_int_equal(READ(AAAA, &f, {"", AAAA, 30, "::ffff:192.0.2.3"}), 0);
	check_addr(&f, 3, "192.0.2.3");
	vec_free(&f.addrs);
}

static void follows_cnames_in_any_order(void **state)
{
	struct dns_found f = {0};

	assert_int_equal(READ(A, &f, {"b.test", A, 300, "192.0.2.1"},
			      {"a.test", CNAME, 20, "B.test"}, {"", CNAME, 100, "a.test"}),
			 0);
	check_addr(&f, 0, "192.0.2.1");
	assert_int_equal(f.ttl_s, 20);
	assert_string_equal(f.canonical, "B.test");
	vec_free(&f.addrs);
}

static void ignores_what_was_not_asked(void **state)
{
	struct dns_found f = {0};

	assert_int_equal(READ(A, &f, {"", A, 300, "192.0.2.1"}, {"y.test", A, 1, "192.0.2.66"},
			      {"", AAAA, 1, "2001:db8::66"}, {"", TXT, 1, "192.0.2.66"}),
			 0);
	assert_int_equal(f.addrs.n, 1);
	assert_int_equal(f.ttl_s, 300);
	vec_free(&f.addrs);
}

static void says_when_there_is_none(void **state)
{
	struct dns_found f = {0};

	assert_int_equal(READ(A, &f, {"", AAAA, 1, "2001:db8::1"}), -ENODATA);
	assert_int_equal(READ(A, &f, {"", CNAME, 1, "a.test"}), -ENODATA);
	assert_int_equal(READ(A, &f, {"y.test", A, 1, "192.0.2.1"}), -ENODATA);
	assert_int_equal(f.addrs.n, 0);
	assert_string_equal(f.canonical, "");
}

static void refuses_endless_chains(void **state)
{
	struct dns_found f = {0};

	assert_int_equal(READ(A, &f, {"", CNAME, 1, "x.test"}), -EIO);
	assert_int_equal(READ(A, &f, {"", CNAME, 1, "y.test"}, {"y.test", CNAME, 1, "x.test"}),
			 -EIO);
	assert_int_equal(f.addrs.n, 0);
}

static void takes_a_huge_ttl_for_none(void **state)
{
	struct dns_found f = {0};

	assert_int_equal(READ(A, &f, {"", A, 0x80000000, "192.0.2.1"}), 0);
	assert_int_equal(f.ttl_s, 0);
	vec_free(&f.addrs);
}

static void refuses_every_cut_packet(void **state)
{
	const struct packet_rr rrs[] = {{"", CNAME, 1, "a.test"}, {"a.test", A, 1, "192.0.2.1"}};
	struct text p = packet("x.test", A, rrs, ARRAY_SIZE(rrs));

	for (size_t len = 0; len < p.len; len++) {
		struct dns_found f = {0};

		assert_int_equal(read_exactly(text_get(&p), len, A, &f), -EIO);
		assert_int_equal(f.addrs.n, 0);
	}
	text_free(&p);
}

static void refuses_pointer_loops_and_wrong_sizes(void **state)
{
	const struct packet_rr rr = {"", A, 1, "192.0.2.1"};
	struct text p = packet("x.test", A, &rr, 1);
	struct dns_found f = {0};
	size_t owner = p.len - 16;

	assert_int_equal((uint8_t)p.at[owner], 0xc0);
	p.at[owner + 1] = (char)owner; // the owner points to itself
	assert_int_equal(read_exactly(p.at, p.len, A, &f), -EIO);
	p.at[owner + 1] = 0x7f; // past the end
	assert_int_equal(read_exactly(p.at, p.len, A, &f), -EIO);
	p.at[owner + 1] = 12;
	p.at[p.len - 5] = 3; // an address of three bytes
	assert_int_equal(read_exactly(p.at, p.len, A, &f), -ENODATA);
	p.at[p.len - 5] = 5; // one byte more than there is
	assert_int_equal(read_exactly(p.at, p.len, A, &f), -EIO);
	p.at[p.len - 5] = 4;
	p.at[owner + 5] = 3; // class CHAOS
	assert_int_equal(read_exactly(p.at, p.len, A, &f), -ENODATA);
	assert_int_equal(f.addrs.n, 0);
	text_free(&p);
}

// Bytes changed at random: no crash, no endless loop, no address of a wrong family.
static void survives_noise(void **state)
{
	const struct packet_rr rrs[] = {{"", CNAME, 1, "a.test"}, {"a.test", A, 1, "192.0.2.1"}};
	struct text p = packet("x.test", A, rrs, ARRAY_SIZE(rrs));
	uint32_t seed = 1;

	for (int i = 0; i < 20000; i++) {
		char copy[128];
		struct dns_found f = {0};

		assert_true(p.len < sizeof(copy));
		memcpy(copy, p.at, p.len);
		for (int k = 0; k < 4; k++) {
			seed = seed * 1664525 + 1013904223;
			copy[(seed >> 16) % p.len] = (char)(seed >> 8);
		}
		read_exactly(copy, p.len, A, &f);
		for (size_t k = 0; k < f.addrs.n; k++)
			assert_int_equal(f.addrs.at[k].family, 4);
		vec_free(&f.addrs);
	}
	text_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_addresses),
		cmocka_unit_test(follows_cnames_in_any_order),
		cmocka_unit_test(ignores_what_was_not_asked),
		cmocka_unit_test(says_when_there_is_none),
		cmocka_unit_test(refuses_endless_chains),
		cmocka_unit_test(takes_a_huge_ttl_for_none),
		cmocka_unit_test(refuses_every_cut_packet),
		cmocka_unit_test(refuses_pointer_loops_and_wrong_sizes),
		cmocka_unit_test(survives_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
