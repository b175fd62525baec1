// SPDX-License-Identifier: GPL-2.0-only
// The resolver against a name server of the test's own, which answers, fails or does not answer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/net/dns.h"
#include "tests/unit/net/dns_server.h"
#include "tests/unit/net/temp_file.h"

enum {
	A = 1,
	CNAME = 5,
	AAAA = 28,
	SLACK_MS = 200, // twice the promised time: the machine may be busy
};

#define RRS(...)                                 \
	(const struct packet_rr[]){__VA_ARGS__}, \
		sizeof((const struct packet_rr[]){__VA_ARGS__}) / sizeof(struct packet_rr)
#define NONE NULL, 0

static struct packet_rr large[100];

static const struct server_rule rules[] = {
	{"both.test", A, ANSWER, RRS({"", A, 300, "192.0.2.9"}, {"", A, 300, "192.0.2.1"})},
	{"both.test", AAAA, ANSWER,
	 RRS({"", AAAA, 120, "2001:db8::1"}, {"", AAAA, 120, "2001:db8::1"})},
	{"v4.test", A, ANSWER, RRS({"", A, 60, "192.0.2.4"})},
	{"v4.test", AAAA, ANSWER, NONE},
	{"v6.test", AAAA, ANSWER, RRS({"", AAAA, 60, "2001:db8::6"})},
	{"v6.test", A, ANSWER, NONE},
	{"chain.test", A, ANSWER,
	 RRS({"", CNAME, 30, "mid.test"}, {"mid.test", CNAME, 600, "end.test"},
	     {"end.test", A, 300, "192.0.2.5"})},
	{"chain.test", AAAA, ANSWER,
	 RRS({"", CNAME, 30, "mid.test"}, {"mid.test", CNAME, 600, "end.test"})},
	{"empty.test", 0, ANSWER, NONE},
	{"fails.test", 0, SERVFAIL, NONE},
	{"refused.test", 0, REFUSED, NONE},
	{"garbage.test", 0, GARBAGE, NONE},
	{"half.test", A, ANSWER, RRS({"", A, 60, "192.0.2.6"})},
	{"half.test", AAAA, SERVFAIL, NONE},
	{"nohalf.test", A, ANSWER, NONE},
	{"nohalf.test", AAAA, SERVFAIL, NONE},
	{"slowhalf.test", A, SILENT, NONE},
	{"slowhalf.test", AAAA, ANSWER, RRS({"", AAAA, 60, "2001:db8::7"})},
	{"silent.test", 0, SILENT, NONE},
	{"lost.test", A, SILENT_ONCE, RRS({"", A, 60, "192.0.2.8"})},
	{"lost.test", AAAA, ANSWER, NONE},
	{"large.test", A, TRUNCATE, large, ARRAY_SIZE(large)},
	{"large.test", AAAA, ANSWER, NONE},
	{"web.corp.test", A, ANSWER, RRS({"", A, 60, "192.0.2.10"})},
	{"web.corp.test", AAAA, ANSWER, NONE},
	{"top", A, ANSWER, RRS({"", A, 60, "192.0.2.11"})},
	{"top", AAAA, ANSWER, NONE},
};

static const struct server_rule other_rules[] = {
	{"fails.test", A, ANSWER, RRS({"", A, 60, "192.0.2.99"})},
	{"fails.test", AAAA, ANSWER, NONE},
	{"refused.test", 0, NXDOMAIN, NONE},
	{"silent.test", A, ANSWER, RRS({"", A, 60, "192.0.2.98"})},
	{"silent.test", AAAA, ANSWER, NONE},
	{"half.test", 0, SERVFAIL, NONE},
};

static struct dns_server server, other;

static int set_up(void **state)
{
	static char addrs[ARRAY_SIZE(large)][32];

	for (size_t i = 0; i < ARRAY_SIZE(large); i++) {
		snprintf(addrs[i], sizeof(addrs[i]), "10.1.0.%zu", i + 1);
		large[i] = (struct packet_rr){"", A, 60, addrs[i]};
	}
	server_start(&server, rules, ARRAY_SIZE(rules));
	server_start(&other, other_rules, ARRAY_SIZE(other_rules));
	return 0;
}

static int tear_down(void **state)
{
	server_stop(&server);
	server_stop(&other);
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// Only the server of the test, no hosts file.
static struct dns_options plain_options(void)
{
	return (struct dns_options){
		.servers = server.text, .hosts = "/dev/null", .timeout_ms = 3000};
}

static struct dns_answer resolve_with(const char *name, struct dns_options options)
{
	struct dns_answer answer;

	assert_int_equal(dns_resolve(&name, 1, &options, &answer, NULL), 0);
	assert_string_equal(answer.name, name);
	return answer;
}

static struct dns_answer resolve(const char *name)
{
	return resolve_with(name, plain_options());
}

// "192.0.2.1 2001:db8::1", in the order of the answer, which is freed.
static void check_addrs(struct dns_answer *a, const char *expected)
{
	struct text got = {0};
	addr_text buf;

	assert_int_equal(a->error, 0);
	for (size_t i = 0; i < a->n; i++)
		text_addf(&got, "%s%s", i ? " " : "", addr_format(&a->addrs[i], buf));
	assert_string_equal(text_get(&got), expected);
	text_free(&got);
	dns_answers_free(a, 1);
}

static void check_flags(const struct dns_answer *a, bool v4_missing, bool v6_missing,
			bool v4_failed, bool v6_failed)
{
	assert_int_equal(a->v4_missing, v4_missing);
	assert_int_equal(a->v6_missing, v6_missing);
	assert_int_equal(a->v4_failed, v4_failed);
	assert_int_equal(a->v6_failed, v6_failed);
}

static void check_error(const struct dns_answer *a, int error, const char *says)
{
	char buf[256];

	assert_int_equal(a->error, error);
	assert_int_equal(a->n, 0);
	check_flags(a, false, false, false, false);
	dns_describe(a, buf, sizeof(buf));
	if (!strstr(buf, says) || !strstr(buf, a->name))
		fail_msg("%s", buf);
}

static void check_says(const struct dns_answer *a, const char *expected)
{
	char buf[256];

	dns_describe(a, buf, sizeof(buf));
	assert_string_equal(buf, expected);
}

static void gets_both_families_sorted_and_once(void **state)
{
	struct dns_answer a = resolve("both.test");

	check_flags(&a, false, false, false, false);
	assert_int_equal(a.ttl_s, 120);
	assert_string_equal(a.canonical, "");
	check_says(&a, "");
	check_addrs(&a, "192.0.2.1 192.0.2.9 2001:db8::1");
}

static void tells_the_missing_family(void **state)
{
	struct dns_answer v4 = resolve("v4.test"), v6 = resolve("v6.test");

	check_flags(&v4, false, true, false, false);
	check_says(&v4, "'v4.test' has no AAAA record");
	check_addrs(&v4, "192.0.2.4");
	check_flags(&v6, true, false, false, false);
	check_says(&v6, "'v6.test' has no A record");
	check_addrs(&v6, "2001:db8::6");
}

static void follows_a_chain(void **state)
{
	struct dns_answer a = resolve("chain.test");

	assert_string_equal(a.canonical, "end.test");
	assert_int_equal(a.ttl_s, 30);
	check_flags(&a, false, true, false, false);
	check_addrs(&a, "192.0.2.5");
}

static void takes_a_final_dot_and_any_case(void **state)
{
	struct dns_answer a = resolve("v4.test."), b = resolve("V4.TEST");

	assert_string_equal(a.canonical, "");
	check_addrs(&a, "192.0.2.4");
	assert_string_equal(b.canonical, "");
	check_addrs(&b, "192.0.2.4");
}

static void tells_no_from_nothing(void **state)
{
	struct dns_answer no = resolve("nope.test"), nothing = resolve("empty.test");

	check_error(&no, -ENOENT, "no such name (NXDOMAIN)");
	check_error(&nothing, -ENODATA, "no address");
}

static void tells_the_failed_family(void **state)
{
	struct dns_answer half = resolve("half.test"), none = resolve("nohalf.test");

	check_flags(&half, false, false, false, true);
	check_says(&half, "'half.test': the query for AAAA records failed");
	check_addrs(&half, "192.0.2.6");
	// without A, and AAAA unknown: not "has no address"
	check_error(&none, -EIO, "failed");
}

static void fails_at_once_when_the_server_does(void **state)
{
	static const char *const names[] = {"fails.test", "refused.test", "garbage.test"};
	int64_t start = now_ms();

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct dns_answer a = resolve(names[i]);

		check_error(&a, -EIO, "SERVFAIL");
	}
	assert_true(now_ms() - start < 1000);
}

static void asks_the_other_server_after_a_failure(void **state)
{
	struct dns_options options = plain_options();
	CLEANUP_FREE char *servers = mem_printf("%s,%s", server.text, other.text);
	struct dns_answer a;

	options.servers = servers;
	a = resolve_with("fails.test", options);
	check_flags(&a, false, true, false, false);
	check_addrs(&a, "192.0.2.99");
	a = resolve_with("refused.test", options);
	check_error(&a, -ENOENT, "NXDOMAIN");
	a = resolve_with("half.test", options); // AAAA fails at both
	check_flags(&a, false, false, false, true);
	check_addrs(&a, "192.0.2.6");
}

static void asks_the_other_server_after_silence(void **state)
{
	struct dns_options options = plain_options();
	CLEANUP_FREE char *servers = mem_printf("%s,%s", server.text, other.text);
	struct dns_answer a;

	options.servers = servers;
	a = resolve_with("silent.test", options);
	check_addrs(&a, "192.0.2.98");
}

static void keeps_the_deadline(void **state)
{
	struct dns_options options = plain_options();
	int64_t start = now_ms(), took;
	struct dns_answer a;

	options.timeout_ms = 400;
	a = resolve_with("silent.test", options);
	took = now_ms() - start;
	check_error(&a, -ETIMEDOUT, "in time");
	assert_true(took >= 400 && took < 400 + SLACK_MS);
}

static void keeps_what_came_before_the_deadline(void **state)
{
	struct dns_options options = plain_options();
	struct dns_answer a;

	options.timeout_ms = 400;
	a = resolve_with("slowhalf.test", options);
	check_flags(&a, false, false, true, false);
	check_says(&a, "'slowhalf.test': the query for A records failed");
	check_addrs(&a, "2001:db8::7");
}

static void repeats_what_was_lost(void **state)
{
	struct dns_answer a = resolve("lost.test");

	check_flags(&a, false, true, false, false);
	check_addrs(&a, "192.0.2.8");
}

static void takes_a_large_answer_by_tcp(void **state)
{
	unsigned before = server.tcp_queries;
	struct dns_answer a = resolve("large.test");

	assert_int_equal(a.error, 0);
	assert_int_equal(a.n, ARRAY_SIZE(large));
	assert_int_equal(server.tcp_queries, before + 1);
	dns_answers_free(&a, 1);
}

// An address without a server.
static char *closed_server(void)
{
	CLEANUP_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint16_t port = 0;

	assert_true(bind_loopback(fd, &port));
	return mem_printf("127.0.0.1:%u", port);
}

static void prefers_the_failure_to_nobody(void **state)
{
	struct dns_options options = plain_options();
	CLEANUP_FREE char *closed = closed_server();
	CLEANUP_FREE char *servers = mem_printf("%s,%s", server.text, closed);
	struct dns_answer a;

	options.servers = servers;
	a = resolve_with("fails.test", options);
	check_error(&a, -EIO, "SERVFAIL");
}

static void sees_that_nobody_listens(void **state)
{
	struct dns_options options = plain_options();
	CLEANUP_FREE char *closed = closed_server();
	int64_t start = now_ms();
	struct dns_answer a;

	options.servers = closed;
	a = resolve_with("v4.test", options);
	check_error(&a, -ECONNREFUSED, "no name server");
	assert_true(now_ms() - start < 2000);
}

// More names than are in flight at once; each has its own answer.
static void resolves_many_in_parallel(void **state)
{
	enum { N = 2000 };
	static char names[N][32];
	static const char *pointers[N];
	static struct dns_answer answers[N];
	struct dns_options options = plain_options();
	int64_t start = now_ms();

	for (size_t i = 0; i < N; i++) {
		snprintf(names[i], sizeof(names[i]), "h%zu.many.test", i);
		pointers[i] = names[i];
	}
	assert_int_equal(dns_resolve(pointers, N, &options, answers, NULL), 0);
	for (size_t i = 0; i < N; i++) {
		CLEANUP_FREE char *expected = mem_printf("10.0.%zu.%zu", i / 256, i % 256);

		check_addrs(&answers[i], expected);
	}
	assert_true(now_ms() - start < 3000 + SLACK_MS);
}

static void many_silent_ones_share_a_deadline(void **state)
{
	enum { N = 500 };
	static const char *names[N];
	static struct dns_answer answers[N];
	struct dns_options options = plain_options();
	int64_t start = now_ms();

	for (size_t i = 0; i < N; i++)
		names[i] = "silent.test";
	names[100] = "v4.test"; // in flight with a hundred silent ones before it
	names[N - 1] = "bad name";
	options.timeout_ms = 300;
	assert_int_equal(dns_resolve(names, N, &options, answers, NULL), 0);
	assert_true(now_ms() - start < 300 + SLACK_MS);
	check_addrs(&answers[100], "192.0.2.4");
	for (size_t i = 0; i < N - 1; i++)
		assert_int_equal(answers[i].error, i == 100 ? 0 : -ETIMEDOUT);
	assert_int_equal(answers[N - 1].error, -EINVAL);
}

static void answers_the_same_name_twice(void **state)
{
	const char *names[] = {"v4.test", "nope.test", "v4.test"};
	struct dns_options options = plain_options();
	struct dns_answer a[3];

	assert_int_equal(dns_resolve(names, 3, &options, a, NULL), 0);
	check_addrs(&a[0], "192.0.2.4");
	assert_int_equal(a[1].error, -ENOENT);
	check_addrs(&a[2], "192.0.2.4");
}

static void hosts_file_counts_first(void **state)
{
	struct temp_file hosts = temp_file("192.0.2.77 v4.test mine\n2001:db8::77 mine\n");
	struct dns_options options = plain_options();
	unsigned before = server.queries;
	struct dns_answer a;

	options.hosts = hosts.path;
	a = resolve_with("V4.test", options);
	check_flags(&a, false, true, false, false);
	assert_int_equal(a.ttl_s, 0);
	check_addrs(&a, "192.0.2.77");
	a = resolve_with("mine", options);
	check_flags(&a, false, false, false, false);
	check_addrs(&a, "192.0.2.77 2001:db8::77");
	assert_int_equal(server.queries, before);
	temp_file_remove(&hosts);
}

static void localhost_needs_no_server(void **state)
{
	struct dns_options options = plain_options();
	unsigned before = server.queries;
	struct dns_answer a = resolve("localhost"), b = resolve("db.LocalHost.");

	check_addrs(&a, "127.0.0.1 ::1");
	check_addrs(&b, "127.0.0.1 ::1");
	options.hosts = NULL; // the machine's own, which has it or leaves it to us
	a = resolve_with("localhost", options);
	assert_int_equal(a.error, 0);
	assert_true(a.n >= 1 && addr_is_loopback(&a.addrs[0]));
	dns_answers_free(&a, 1);
	assert_int_equal(server.queries, before);
	a = resolve("notlocalhost");
	assert_int_equal(a.error, -ENOENT);
}

static void searches_names_without_a_dot(void **state)
{
	struct temp_file conf = temp_file("nameserver 192.0.2.1\nsearch none.test corp.test\n");
	struct dns_options options = plain_options();
	struct dns_answer a;
	unsigned before;

	options.resolv_conf = conf.path;
	a = resolve_with("web", options);
	check_error(&a, -ENOENT, "NXDOMAIN");
	options.search = true;
	a = resolve_with("web", options);
	assert_string_equal(a.canonical, "web.corp.test");
	check_addrs(&a, "192.0.2.10");
	a = resolve_with("top", options); // in no domain: the name itself at last
	assert_string_equal(a.canonical, "");
	check_addrs(&a, "192.0.2.11");
	a = resolve_with("web.", options); // absolute
	check_error(&a, -ENOENT, "NXDOMAIN");
	a = resolve_with("nope", options);
	check_error(&a, -ENOENT, "NXDOMAIN");
	before = server.queries;
	a = resolve_with("nope.x", options); // has a dot: not searched for
	check_error(&a, -ENOENT, "NXDOMAIN");
	assert_int_equal(server.queries, before + 2);
	temp_file_remove(&conf);
}

static void a_name_is_absolute_whatever_ndots_says(void **state)
{
	struct temp_file conf =
		temp_file("nameserver 192.0.2.1\nsearch corp.test\noptions ndots:9\n");
	struct dns_options options = plain_options();
	unsigned before = server.queries;
	struct dns_answer a;

	options.resolv_conf = conf.path;
	a = resolve_with("a.b.nope", options);
	assert_int_equal(a.error, -ENOENT);
	assert_int_equal(server.queries, before + 2);
	temp_file_remove(&conf);
}

static void names_what_is_no_name(void **state)
{
	struct dns_answer a = resolve("b\xc3\xbc"
				      "cher.test");

	check_error(&a, -EINVAL, "xn--bcher-kva.test");
}

static void refuses_a_bad_list(void **state)
{
	struct dns_options options = {.servers = "192.0.2.1,nonsense"};
	struct dns_answer answer = {.error = 77};
	const char *name = "v4.test";
	struct err err = {0};

	assert_int_equal(dns_resolve(&name, 1, &options, &answer, &err), -EINVAL);
	assert_int_equal(err.kind, ERR_INPUT);
	assert_non_null(strstr(err.text, "'nonsense'"));
	assert_int_equal(answer.error, 77);
}

static void no_names_no_work(void **state)
{
	assert_int_equal(dns_resolve(NULL, 0, NULL, NULL, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gets_both_families_sorted_and_once),
		cmocka_unit_test(tells_the_missing_family),
		cmocka_unit_test(follows_a_chain),
		cmocka_unit_test(takes_a_final_dot_and_any_case),
		cmocka_unit_test(tells_no_from_nothing),
		cmocka_unit_test(tells_the_failed_family),
		cmocka_unit_test(fails_at_once_when_the_server_does),
		cmocka_unit_test(asks_the_other_server_after_a_failure),
		cmocka_unit_test(asks_the_other_server_after_silence),
		cmocka_unit_test(keeps_the_deadline),
		cmocka_unit_test(keeps_what_came_before_the_deadline),
		cmocka_unit_test(repeats_what_was_lost),
		cmocka_unit_test(takes_a_large_answer_by_tcp),
		cmocka_unit_test(prefers_the_failure_to_nobody),
		cmocka_unit_test(sees_that_nobody_listens),
		cmocka_unit_test(resolves_many_in_parallel),
		cmocka_unit_test(many_silent_ones_share_a_deadline),
		cmocka_unit_test(answers_the_same_name_twice),
		cmocka_unit_test(hosts_file_counts_first),
		cmocka_unit_test(localhost_needs_no_server),
		cmocka_unit_test(searches_names_without_a_dot),
		cmocka_unit_test(a_name_is_absolute_whatever_ndots_says),
		cmocka_unit_test(names_what_is_no_name),
		cmocka_unit_test(refuses_a_bad_list),
		cmocka_unit_test(no_names_no_work),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
