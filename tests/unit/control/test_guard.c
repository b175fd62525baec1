// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/guard.h: addresses of an answer that must not be blocked or dropped by
// name.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <string.h>

#include "ctl/base/vec.h"
#include "ctl/control/guard.h"

static struct addr addr_of(const char *text)
{
	struct addr a;

	assert_int_equal(addr_parse(text, strlen(text), &a, NULL), 0);
	return a;
}

static void protect(struct guard *g, const char *text, enum guard_level level, const char *what)
{
	struct guarded *one = vec_add(g);

	*one = (struct guarded){.addr = addr_of(text), .level = level};
	snprintf(one->what, sizeof(one->what), "%s", what);
}

static struct guard make_guard(void)
{
	struct guard g = {0};

	protect(&g, "192.0.2.1", GUARD_REFUSE, "own");
	protect(&g, "192.0.2.53", GUARD_WARN, "resolver");
	protect(&g, "198.51.100.1", GUARD_NAME, "login");
	protect(&g, "2001:db8::1", GUARD_NAME, "login6");
	return g;
}

static const struct {
	const char *addr;
	const char *problem, *wide; // NULL: none
} samples[] = {
	{"203.0.113.7", NULL, NULL},
	{"0.0.0.0", "the unspecified address", "the unspecified address"},
	{"127.9.9.9", "a loopback address", "a loopback address"},
	{"::1", "a loopback address", "a loopback address"},
	{"192.0.2.1", "own", "own"},
	{"192.0.2.53", "resolver", "resolver"},
	{"198.51.100.1", "login", "login"},
	{"2001:db8::1", "login6", "login6"},
	{"0.1.2.3", "an address of this network", NULL},
	{"10.1.2.3", "a private address", NULL},
	{"100.64.0.1", "a private address", NULL},
	{"100.128.0.1", NULL, NULL},
	{"169.254.1.1", "a link-local address", NULL},
	{"172.31.255.255", "a private address", NULL},
	{"172.32.0.0", NULL, NULL},
	{"192.168.7.7", "a private address", NULL},
	{"224.0.0.1", "a multicast address", NULL},
	{"255.255.255.255", "a reserved address", NULL},
	{"fd00::1", "a private address", NULL},
	{"fe80::1", "a link-local address", NULL},
	{"fec0::1", "a site-local address", NULL},
	{"feff::1", "a site-local address", NULL},
	{"ff02::1", "a multicast address", NULL},
	{"2001:db8::2", NULL, NULL},
	// NAT64, RFC 6052
	{"64:ff9b::192.168.7.7", "a private address", NULL},
	{"64:ff9b::192.0.2.1", "own", "own"},
	{"64:ff9b::198.51.100.1", "login", "login"},
	{"64:ff9b::127.0.0.1", "a loopback address", "a loopback address"},
	{"64:ff9b::", "the unspecified address", "the unspecified address"},
	{"64:ff9b::203.0.113.7", NULL, NULL},
	{"64:ff9b:0:1::192.168.7.7", NULL, NULL}, // another prefix
	{"64:ff9c::192.168.7.7", NULL, NULL},
	// 6to4, RFC 3056
	{"2002:c0a8:707::1", "a private address", NULL},
	{"2002:a00:1:1234::1", "a private address", NULL},
	{"2002:c000:201::1", "own", "own"},
	{"2002:c000:235::1", "resolver", "resolver"},
	{"2002:cb00:7107::1", NULL, NULL},
	{"2003:c0a8:707::1", NULL, NULL},
};

static void same(const char *addr, const char *got, const char *wanted)
{
	if (!got != !wanted || (got && strcmp(got, wanted) != 0))
		fail_msg("%s: %s, not %s", addr, got ? got : "allowed",
			 wanted ? wanted : "allowed");
}

static void test_problems(void **state)
{
	struct guard g = make_guard();

	for (size_t n = 0; n < ARRAY_SIZE(samples); n++) {
		struct addr a = addr_of(samples[n].addr);

		same(samples[n].addr, guard_answer_problem(&g, &a, false), samples[n].problem);
		same(samples[n].addr, guard_answer_problem(&g, &a, true), samples[n].wide);
	}
	guard_free(&g);
}

// The peer of another login can be blocked by its address.
static void test_levels(void **state)
{
	struct guard g = make_guard();
	struct addr login = addr_of("198.51.100.1"), resolver = addr_of("192.0.2.53");
	struct prefix peer = prefix_of(&login, 32), server = prefix_of(&resolver, 32);

	assert_null(guard_find(&g, &peer, GUARD_WARN));
	assert_non_null(guard_find(&g, &peer, GUARD_NAME));
	assert_non_null(guard_find(&g, &server, GUARD_WARN));
	assert_null(guard_find(&g, &server, GUARD_REFUSE));
	guard_free(&g);
}

// Protected addresses do not count.
static void test_sieve(void **state)
{
	struct guard g = make_guard();
	struct guard_sieve sieve = {.guard = &g};
	struct addr private = addr_of("10.0.0.1");

	for (uint8_t n = 0;; n++) {
		struct addr a = addr_of("203.0.113.0");

		a.bytes[3] = n;
		assert_null(guard_sift(&sieve, &a));
		same("10.0.0.1", guard_sift(&sieve, &private), "a private address");
		if (n == 255)
			break;
	}
	private = addr_of("203.0.112.1");
	same("one more", guard_sift(&sieve, &private), "more than 256 addresses for one name");
	assert_int_equal(sieve.passed, GUARD_ANSWERS_MAX);
	guard_free(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_problems),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_sieve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
