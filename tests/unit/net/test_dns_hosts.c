// SPDX-License-Identifier: GPL-2.0-only
// The hosts file: several lines of a name, comments, case, and invalid lines.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/net/dns_hosts.h"
#include "tests/unit/net/temp_file.h"

static const char content[] = "127.0.0.1\tlocalhost Loop\r\n"
			      "# 192.0.2.66 commented\n"
			      "\n"
			      "   192.0.2.7 web.example web # not.this\n"
			      "192.0.2.8 other\n"
			      "2001:db8::7 WEB.example\n"
			      "192.0.2.9 web.example\n"
			      "not-an-address broken\n"
			      "192.0.2.10\n"
			      "::ffff:192.0.2.11 mapped\n"
			      "fe80::1%eth0 zoned\n"
			      "192.0.2.13 Dotted.example. .\n"
			      "192.0.2.12 last";

static struct hosts hosts;

static int set_up(void **state)
{
	struct temp_file f = temp_file(content);

	hosts_read(f.path, &hosts);
	temp_file_remove(&f);
	return 0;
}

static int tear_down(void **state)
{
	hosts_cleanup(&hosts);
	return 0;
}

static size_t count(const char *name)
{
	size_t n = 77;

	if (!hosts_find(&hosts, name, &n)) {
		assert_int_equal(n, 77);
		return 0;
	}
	return n;
}

static const char *only(const char *name)
{
	static addr_text buf;
	const struct hosts_entry *e;
	size_t n = 0;

	e = hosts_find(&hosts, name, &n);
	assert_int_equal(n, 1);
	return addr_format(&e->addr, buf);
}

static void a_final_dot_is_nothing(void **state)
{
	assert_string_equal(only("dotted.example"), "192.0.2.13");
	assert_string_equal(only("dotted.example."), "192.0.2.13");
	assert_string_equal(only("last."), "192.0.2.12");
}

static void finds_every_line(void **state)
{
	const struct hosts_entry *e;
	size_t n = 0, v6 = 0;

	e = hosts_find(&hosts, "web.example", &n);
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++)
		v6 += e[i].addr.family == 6;
	assert_int_equal(v6, 1);
}

static void finds_single_names(void **state)
{
	assert_string_equal(only("localhost"), "127.0.0.1");
	assert_string_equal(only("LOOP"), "127.0.0.1");
	assert_string_equal(only("web"), "192.0.2.7");
	assert_string_equal(only("other."), "192.0.2.8");
	assert_string_equal(only("mapped"), "192.0.2.11");
	assert_string_equal(only("last"), "192.0.2.12");
}

static void ignores_the_rest(void **state)
{
	static const char *const absent[] = {
		"commented", "not.this", "#", "broken", "zoned", "nothing", "", "192.0.2.10", "."};

	for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
		assert_int_equal(count(absent[i]), 0);
}

static void an_absent_file_is_empty(void **state)
{
	struct hosts empty;
	size_t n;

	hosts_read("/nonexistent/hosts", &empty);
	assert_null(hosts_find(&empty, "localhost", &n));
	hosts_cleanup(&empty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_final_dot_is_nothing),  cmocka_unit_test(finds_every_line),
		cmocka_unit_test(finds_single_names),      cmocka_unit_test(ignores_the_rest),
		cmocka_unit_test(an_absent_file_is_empty),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
