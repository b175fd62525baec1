// SPDX-License-Identifier: GPL-2.0-only
// Lists of name servers and resolv.conf: accepted and refused forms, and the servers that would be
// asked.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/text.h"
#include "ctl/net/dns_channel.h"
#include "tests/unit/net/temp_file.h"

static void check_servers(const struct dns_options *options, const char *expected)
{
	CLEANUP_FREE struct addr *addrs = NULL;
	struct text got = {0};
	addr_text buf;
	size_t n = 0;

	assert_int_equal(dns_servers(options, &addrs, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		text_addf(&got, "%s%s", i ? " " : "", addr_format(&addrs[i], buf));
	assert_string_equal(text_get(&got), expected);
	text_free(&got);
}

static void check_list(const char *list, const char *expected)
{
	struct dns_options options = {.servers = list};

	check_servers(&options, expected);
}

static void takes_lists(void **state)
{
	check_list("192.0.2.53", "192.0.2.53");
	check_list("192.0.2.53:5353", "192.0.2.53");
	check_list("2001:db8::53", "2001:db8::53");
	check_list("::1", "::1");
	check_list("[2001:db8::53]", "2001:db8::53");
	check_list("[2001:db8::53]:5353", "2001:db8::53");
	check_list("2001:db8::2,192.0.2.9:53,[2001:db8::1]:53,192.0.2.1,192.0.2.9:54",
		   "192.0.2.1 192.0.2.9 2001:db8::1 2001:db8::2");
}

static void refuses_bad_lists(void **state)
{
	static const struct {
		const char *list, *names;
	} bad[] = {
		{"", "''"},
		{"resolver.example", "'resolver.example'"},
		{"192.0.2.1,", "''"},
		{"192.0.2.1,,192.0.2.2", "''"},
		{"192.0.2.1, 192.0.2.2", "' 192.0.2.2'"},
		{"192.0.2.1:", "'192.0.2.1:'"},
		{"192.0.2.1:0", "'192.0.2.1:0'"},
		{"192.0.2.1:65536", "'192.0.2.1:65536'"},
		{"192.0.2.1:53x", "'192.0.2.1:53x'"},
		{"192.0.2.256", "'192.0.2.256'"},
		{"[2001:db8::1", "'[2001:db8::1'"},
		{"[]", "'[]'"},
		{"[", "'['"},
		{"[::1]53", "'[::1]53'"},
		{"[::1]:", "'[::1]:'"},
		{"[::1]:99999", "'[::1]:99999'"},
		{"::1,fe80::1%eth0", "'fe80::1%eth0'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct dns_options options = {.servers = bad[i].list};
		struct addr *addrs = NULL;
		struct err err = {0};
		size_t n = 77;

		assert_int_equal(dns_servers(&options, &addrs, &n, &err), -EINVAL);
		assert_int_equal(err.kind, ERR_INPUT);
		if (!strstr(err.text, bad[i].names))
			fail_msg("%s: %s", bad[i].list, err.text);
		assert_true(err.hint[0]);
		assert_int_equal(n, 77);
	}
}

static void reads_the_file_that_is_named(void **state)
{
	struct temp_file f = temp_file("# x\nnameserver 192.0.2.3\nnameserver 2001:db8::3\n");
	struct dns_options options = {.resolv_conf = f.path};

	check_servers(&options, "192.0.2.3 2001:db8::3");
	temp_file_remove(&f);
}

static void a_list_beats_the_file(void **state)
{
	struct temp_file f = temp_file("nameserver 192.0.2.3\n");
	struct dns_options options = {.resolv_conf = f.path, .servers = "192.0.2.4"};

	check_servers(&options, "192.0.2.4");
	temp_file_remove(&f);
}

static void refuses_an_absent_file(void **state)
{
	struct dns_options options = {.resolv_conf = "/nonexistent/resolv.conf"};
	struct addr *addrs = NULL;
	struct err err = {0};
	size_t n = 0;

	assert_int_equal(dns_servers(&options, &addrs, &n, &err), -ENOENT);
	assert_non_null(strstr(err.text, "'/nonexistent/resolv.conf'"));
}

static void check_domains(const char *conf, const char *expected)
{
	struct temp_file f = temp_file(conf);
	struct dns_domains domains;
	struct text got = {0};

	dns_domains_read(f.path, &domains);
	for (size_t i = 0; i < domains.of.n; i++)
		text_addf(&got, "%s%s", i ? " " : "", domains.of.at[i]);
	assert_string_equal(text_get(&got), expected);
	text_free(&got);
	dns_domains_free(&domains);
	temp_file_remove(&f);
}

static void has_search_domains(void **state)
{
	check_domains("nameserver 192.0.2.3\nsearch a.test b.test\n", "a.test b.test");
	check_domains("domain a.test # ours\n\tsearch\tb.test. c.test", "b.test c.test");
	check_domains("search b.test c.test\ndomain a.test\nnameserver 192.0.2.3\n", "a.test");
	check_domains("searching a.test\nsearch .\n", "");
	check_domains("search a.test\nsearch\n", "");
	setenv("LOCALDOMAIN", "d.test e.test", 1);
	check_domains("search a.test\n", "d.test e.test");
	setenv("LOCALDOMAIN", "", 1);
	check_domains("search a.test\n", "");
	unsetenv("LOCALDOMAIN");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_lists),
		cmocka_unit_test(refuses_bad_lists),
		cmocka_unit_test(reads_the_file_that_is_named),
		cmocka_unit_test(a_list_beats_the_file),
		cmocka_unit_test(refuses_an_absent_file),
		cmocka_unit_test(has_search_domains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
