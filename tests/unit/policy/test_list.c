// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/policy/list.c: the format of list files, and a million lines.
#include "tests/unit/policy/world.h"

#include <time.h>

#include "ctl/base/text.h"
#include "ctl/policy/list.h"

static struct list read_text(const char *text, struct list_options options)
{
	struct list l = {0};

	list_read(&l, text, strlen(text), &options);
	return l;
}

static void accepts(const char *text, uint64_t good, size_t v4, size_t v6, size_t names)
{
	struct list l = read_text(text, (struct list_options){0});

	if (l.bad || l.refused || l.good != good || l.set.v4.n != v4 || l.set.v6.n != v6 ||
	    l.names.n != names)
		fail_msg("'%s': good %d bad %d v4 %zu v6 %zu names %zu", text, (int)l.good,
			 (int)l.bad, l.set.v4.n, l.set.v6.n, l.names.n);
	list_free(&l);
}

static void refuses(const char *text, uint32_t line, const char *what)
{
	struct list l = read_text(text, (struct list_options){0});

	if (!l.problems.n || l.problems.at[0].line != line || !strstr(l.problems.at[0].what, what))
		fail_msg("'%s': %u '%s'", text, l.problems.n ? l.problems.at[0].line : 0,
			 l.problems.n ? l.problems.at[0].what : "nothing");
	list_free(&l);
}

static void test_good(void **state)
{
	accepts("", 0, 0, 0, 0);
	accepts("\n\n# only\n; comments\n \t \r\n", 0, 0, 0, 0);
	accepts("192.0.2.1", 1, 1, 0, 0);
	accepts("192.0.2.1\n", 1, 1, 0, 0);
	accepts("\xef\xbb\xbf"
		"192.0.2.1\r\n2001:db8::/32\r\n",
		2, 1, 1, 0);
	accepts("  192.0.2.1  \n\t192.0.2.0/24\t# why\n192.0.2.7#x\n192.0.2.8;x\n", 4, 4, 0, 0);
	accepts("192.0.2.0-192.0.2.255\n192.0.2.1-192.0.2.2\n", 2, 3, 0, 0);
	accepts("::ffff:192.0.2.1\n", 1, 1, 0, 0);
	accepts("x.com\nX.COM.\n1e100.net\nbad-guys.example.org\n", 4, 0, 0, 4);
	accepts("10.0.0.0/8\n2001::/16\n", 2, 1, 1, 0);
	accepts("192.0.2.1 # 192.0.2.2, {\n", 1, 1, 0, 0);
}

static void test_bad(void **state)
{
	refuses("192.0.2.1\n300.1.2.3\n", 2, "'300.1.2.3' is not an address");
	refuses("192.0.2.1 192.0.2.2", 1, "more than one word");
	refuses("192.0.2.1 192.0.2.2 # x", 1, "more than one word");
	refuses("10/8", 1, "'10/8'");
	refuses("localhost", 1, "nor a name with a dot");
	refuses("a..b", 1, "not a host name");
	refuses("192.0.2.9-192.0.2.1", 1, "ends before it begins");
	refuses("0.0.0.0/0", 1, "shorter than /8");
	refuses("0.0.0.0-255.255.255.255", 1, "shorter than /8");
	refuses("\n\n127.0.0.1", 3, "is loopback");
	refuses("::/16", 1, "is loopback");
	refuses("2000::/15", 1, "shorter than /8 (IPv4) or /16 (IPv6)");
	refuses("\"192.0.2.1\"", 1, "'\"192.0.2.1\"'");
}

static void test_kinds(void **state)
{
	refuses("# hosts\n127.0.0.1\tlocalhost\n", 2, "a hosts file");
	refuses("::1 ip6-localhost ip6-loopback", 1, "a hosts file");
	refuses("0.0.0.0 ads.example", 1, "a hosts file");
	refuses("create x hash:net family inet", 1, "'ipset save'");
	refuses("add x 192.0.2.1", 1, "'ipset save'");
	refuses("add element inet filter x { 192.0.2.1 }", 1, "an nft file");
	refuses("table inet filter {", 1, "an nft file");
	refuses("elements = { 192.0.2.1,", 1, "an nft file");
	refuses("define x = 192.0.2.1", 1, "an nft file");
	refuses("192.0.2.1,malware,2020", 1, "a CSV file");
	refuses("ip, name", 1, "a CSV file");
	refuses("192.0.2.1,", 1, "a CSV file");
}

static void test_options(void **state)
{
	static const char text[] = "192.0.2.1\nbad\n0.0.0.0/0\n127.0.0.1\n192.0.2.2\n";
	struct list lax = read_text(text, (struct list_options){.lax = true});
	struct list wide = read_text(text, (struct list_options){.lax = true, .wide = true});
	struct list hosts =
		read_text("127.0.0.1 localhost\n192.0.2.1\n", (struct list_options){.lax = true});

	assert_int_equal(lax.good, 2);
	assert_int_equal(lax.bad, 3);
	assert_int_equal(wide.good, 4);
	assert_int_equal(wide.bad, 1);
	assert_true(hosts.refused);
	assert_int_equal(hosts.good, 0);
	list_free(&lax);
	list_free(&wide);
	list_free(&hosts);
}

static void test_too_many_names(void **state)
{
	CLEANUP(text_free) struct text text = {0};
	struct list l;

	for (unsigned i = 0; i < 10000; i++)
		text_addf(&text, "h%u.example\n", i);
	l = read_text(text_get(&text), (struct list_options){.lax = true});
	assert_false(l.refused);
	list_free(&l);
	text_add(&text, "one.more\n");
	l = read_text(text_get(&text), (struct list_options){.lax = true});
	assert_true(l.refused);
	assert_string_equal(l.problems.at[0].what, "more than 10000 host names in one file");
	list_free(&l);
}

// ---- through a policy ---------------------------------------------------------------------------

static void test_last_good(void **state)
{
	const struct environment_file files[] = {{"l", "bad\n", 0}, {0}};
	struct environment w = {.files = files, .last = "192.0.2.7\nworse\n"};
	struct resolved *r = environment_load(&w, "set s { file \"l\" min 3 }");

	assert_non_null(r);
	environment_wants(&w, "warning: 'l' line 1: 'bad' is not an address");
	environment_wants(&w, "its last good content is used");
	assert_int_equal(r->addresses[0].n4, 1);
	assert_true(r->files[1].stale);
	resolved_free(r);
	w.last = NULL;
	assert_null(environment_load(&w, "set s { file \"l\" min 3 }"));
	environment_free(&w);
}

static void test_names_once(void **state)
{
	const struct environment_file files[] = {{"l", "a.example\nb.example\na.example\n", 0},
						 {0}};
	struct environment w = {.files = files};
	struct resolved *r = environment_load(&w, "set s { file \"l\", A.example. }\n"
						  "drop from a.example, host b.example, c.example\n"
						  "expect pass tcp from d.example to e.example\n");

	assert_non_null(r);
	assert_int_equal(w.resolves, 1);
	assert_int_equal(w.names, 5);
	assert_int_equal(r->n_names, 5);
	assert_int_equal(r->addresses[0].n4, 2);
	assert_int_equal(r->addresses[0].v4[0].line, 1);
	resolved_free(r);
	assert_null(environment_load(&w, "drop from gone.example\n"));
	w.names_may_fail = true;
	r = environment_load(&w, "drop from gone.example\n");
	assert_non_null(r);
	environment_wants(&w, "warning: 'gone.example' does not resolve");
	resolved_free(r);
	environment_free(&w);
}

static void test_unreadable(void **state)
{
	struct environment w = {0};

	assert_null(environment_load(
		&w, "include \"d/*.weir\"\ninclude \"-\"\nset s { file \"-\" }\n"));
	environment_wants(&w, "main:1:9: error: cannot list 'd/*.weir'");
	environment_wants(&w, "main:2:9: error: cannot open './-': it does not exist");
	environment_wants(&w, "main:3:14: error: cannot open './-': it does not exist");
	environment_free(&w);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// The test is about sizes: times depend on the machine, and are only printed.
static void test_million(void **state)
{
	CLEANUP(text_free) struct text text = {0};
	struct environment_file files[] = {{"l", NULL, 0}, {0}};
	struct environment w = {.files = files};
	uint64_t seed = 4711;
	struct resolved *r;
	double start;

	for (unsigned i = 0; i < 1000000; i++) {
		// Odd last parts: all are hosts, no two are adjacent.
		unsigned x = (i * 2654435761u) | 1;

		text_addf(&text, "%u.%u.%u.%u\n", 128 | (x >> 24 & 63), x >> 16 & 255, x >> 8 & 255,
			  x & 255);
	}
	(void)unit_random(&seed);
	files[0].text = text_get(&text);
	start = now();
	r = environment_load(&w, "set s { file \"l\" }\ndrop from @s");
	print_message("a million lines: %.3f s\n", now() - start);
	assert_non_null(r);
	assert_int_equal(r->files[1].entries, 1000000);
	for (size_t i = 1; i < r->addresses[0].n4; i++)
		assert_true(r->addresses[0].v4[i].addr > r->addresses[0].v4[i - 1].addr);
	resolved_free(r);
	environment_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),           cmocka_unit_test(test_bad),
		cmocka_unit_test(test_kinds),          cmocka_unit_test(test_options),
		cmocka_unit_test(test_too_many_names), cmocka_unit_test(test_last_good),
		cmocka_unit_test(test_names_once),     cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_million),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
