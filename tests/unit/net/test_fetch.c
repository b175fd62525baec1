// SPDX-License-Identifier: GPL-2.0-only
// Fetches from a web server of the test's own, which answers, redirects, cuts and is silent.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <event2/event.h>
#include <zlib.h>

#include "ctl/base/mem.h"
#include "ctl/base/progress.h"
#include "ctl/net/curl_loop.h"
#include "ctl/net/dns.h"
#include "ctl/net/fetch.h"
#include "ctl/net/fetch_url.h"
#include "tests/unit/net/dns_server.h"
#include "tests/unit/net/http_server.h"

#define A            1
#define DENSE_PIECES 1500
#define TEXT_HEAD    "HTTP/1.1 200 OK\r\nConnection: close\r\n"

static char packed[4096], cut[4096], longer[4096], bomb[70000], elsewhere[256], to_gone[256];
static char gz_files[5][4096];
static char page[4 << 20], dense[2 << 20];
static struct http_rule rules[] = {
	{"/plain",
	 TEXT_HEAD "ETag: \"v1\"\r\nLast-Modified: Sun, 01 Nov 2026 00:00:00 GMT\r\n"
		   "Content-Length: 10\r\n\r\n192.0.2.1\n",
	 0},
	{"/same", "HTTP/1.1 304 Not Modified\r\nConnection: close\r\nETag: \"v1\"\r\n\r\n", 0},
	{"/to-plain",
	 "HTTP/1.1 302 Found\r\nConnection: close\r\nETag: \"no\"\r\nLocation: /plain\r\n"
	 "Content-Length: 4\r\n\r\nbody",
	 0},
	{"/loop",
	 "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n",
	 0},
	{"/to-file",
	 "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: file:///etc/passwd\r\n"
	 "Content-Length: 0\r\n\r\n",
	 0},
	{"/elsewhere", elsewhere, 0},
	{"/to-gone", to_gone, 0},
	{"/short", TEXT_HEAD "Content-Length: 20\r\n\r\n192.0.2.1\n", 0},
	{"/error", "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbusy", 0},
	{"/silent", NULL, 0},
	{"/packed", packed, 0},
	{"/cut", cut, 0},
	{"/longer", longer, 0},
	{"/bomb", bomb, 0},
	{"/list.gz", gz_files[0], 0},
	{"/list.gz-cut", gz_files[1], 0},
	{"/list.gz-longer", gz_files[2], 0},
	{"/list.gz-twice", gz_files[3], 0},
	{"/list.gz-not", gz_files[4], 0},
	{"/page", page, sizeof(page)},
	{"/dense", dense, sizeof(dense)},
};

static struct http_server server;

// The first address of 'two.test' has no server.
static const struct packet_rr feed_rrs[] = {{"feed.test", A, 60, "127.0.0.1"}};
static const struct packet_rr two_rrs[] = {{"two.test", A, 60, "127.0.0.0"},
					   {"two.test", A, 60, "127.0.0.1"}};
static const struct server_rule names[] = {
	{"feed.test", A, ANSWER, feed_rrs, 1}, {"feed.test", 0, ANSWER, NULL, 0},
	{"two.test", A, ANSWER, two_rrs, 2},   {"two.test", 0, ANSWER, NULL, 0},
	{"empty.test", 0, ANSWER, NULL, 0},    {"broken.test", 0, SERVFAIL, NULL, 0},
	{"silent.test", 0, SILENT, NULL, 0},
};
static struct dns_server name_server;

static size_t gzip(const char *text, size_t len, char *ret, size_t room)
{
	z_stream z = {.next_in = (Bytef *)text, .avail_in = (uInt)len};

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_out = (Bytef *)ret;
	z.avail_out = (uInt)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return room - z.avail_out;
}

static void set_answer(const char *path, char *answer, size_t room, bool encoded, const char *body,
		       size_t n)
{
	size_t head = (size_t)snprintf(answer, room, TEXT_HEAD "%sContent-Length: %zu\r\n\r\n",
				       encoded ? "Content-Encoding: gzip\r\n" : "", n);

	assert_true(head + n < room);
	memcpy(answer + head, body, n);
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (!strcmp(rules[i].path, path))
			rules[i].len = head + n;
}

// An answer whose gzip body lacks its last bytes, or has more than them; all lengths agree.
static void pack(const char *path, char *answer, size_t room, const char *text, size_t len,
		 int more)
{
	char body[60000];
	size_t n = gzip(text, len, body, sizeof(body) - 8);

	set_answer(path, answer, room, true, body, (size_t)((ssize_t)n + more));
}

// A file of two packed texts, sent as it is, packed once more, cut, or with more after it.
static void pack_files(void)
{
	char file[4096], again[4096];
	size_t n = gzip("192.0.2.1\n", 10, file, 2048);

	n += gzip("192.0.2.2\n", 10, file + n, 2048);
	set_answer("/list.gz", gz_files[0], sizeof(gz_files[0]), false, file, n);
	set_answer("/list.gz-cut", gz_files[1], sizeof(gz_files[1]), false, file, n - 4);
	memcpy(file + n, "x\n", 2);
	set_answer("/list.gz-longer", gz_files[2], sizeof(gz_files[2]), false, file, n + 2);
	set_answer("/list.gz-twice", gz_files[3], sizeof(gz_files[3]), true, again,
		   gzip(file, n, again, sizeof(again)));
	set_answer("/list.gz-not", gz_files[4], sizeof(gz_files[4]), false, "\x1f\x8bhello", 7);
}

static int set_up(void **state)
{
	CLEANUP_FREE char *zeros = mem_zalloc(20 << 20, 1);

	pack("/packed", packed, sizeof(packed), "192.0.2.1\n", 10, 0);
	pack("/cut", cut, sizeof(cut), "192.0.2.1\n", 10, -4);
	pack("/longer", longer, sizeof(longer), "192.0.2.1\n", 10, 3);
	pack_files();
	pack("/bomb", bomb, sizeof(bomb), zeros, 20 << 20, 0);
	memset(page, ' ', sizeof(page));
	memcpy(page, "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n", 45);
	http_start(&server, rules, ARRAY_SIZE(rules));
	server_start(&name_server, names, ARRAY_SIZE(names));
	snprintf(elsewhere, sizeof(elsewhere),
		 "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\n"
		 "Location: http://two.test:%u/plain\r\n\r\n",
		 server.port);
	snprintf(to_gone, sizeof(to_gone),
		 "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\n"
		 "Location: http://gone.test/?secret\r\n\r\n");
	return 0;
}

static int tear_down(void **state)
{
	http_stop(&server);
	server_stop(&name_server);
	return 0;
}

static struct fetch_result fetch(struct fetch_request request)
{
	struct fetch_result result = {0};

	assert_int_equal(fetch_all(&request, 1, &result, NULL), 0);
	return result;
}

// The sentence after "cannot fetch 'URL': "; a buffer that the next call overwrites.
static const char *failure(const char *path, int code)
{
	static struct fetch_result result;
	const char *quote;

	fetch_result_free(&result);
	result = fetch((struct fetch_request){
		.url = http_url(&server, path), .bytes_max = 1 << 20, .timeout_ms = 300});
	assert_int_equal(result.code, code);
	assert_null(result.text);
	quote = strstr(result.err.text, "': ");
	assert_non_null(quote);
	return quote + 3;
}

static void a_text_with_its_tags(void **state)
{
	struct fetch_result r = fetch((struct fetch_request){.url = http_url(&server, "/plain")});

	assert_int_equal(r.code, 0);
	assert_string_equal(r.text, "192.0.2.1\n");
	assert_int_equal(r.len, 10);
	assert_string_equal(r.etag, "\"v1\"");
	assert_string_equal(r.modified, "Sun, 01 Nov 2026 00:00:00 GMT");
	fetch_result_free(&r);
}

static void a_copy_is_not_sent_again(void **state)
{
	struct fetch_result r = fetch((struct fetch_request){
		.url = http_url(&server, "/same"), .etag = "\"v1\"", .modified = "then"});

	assert_int_equal(r.code, 0);
	assert_true(r.same);
	assert_null(r.text);
	assert_non_null(strstr(server.last, "If-None-Match: \"v1\"\r\n"));
	assert_non_null(strstr(server.last, "If-Modified-Since: then\r\n"));
	assert_non_null(strstr(server.last, "Accept-Encoding: gzip\r\n"));
	fetch_result_free(&r);
}

static void without_a_copy_there_is_no_same(void **state)
{
	assert_string_equal(failure("/same", -EIO), "the server answered 304");
}

// Text that shrinks to less than a fiftieth: not yet a bomb.
static void make_dense(void)
{
	z_stream z = {0};
	static char piece[65536 + 620];
	uint32_t noise = 1;
	size_t head =
		(size_t)snprintf(dense, sizeof(dense), TEXT_HEAD "Content-Encoding: gzip\r\n\r\n");

	assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_out = (Bytef *)dense + head;
	z.avail_out = (uInt)(sizeof(dense) - head);
	memset(piece, '\n', sizeof(piece));
	for (unsigned n = 0; n < DENSE_PIECES; n++) {
		for (size_t at = 0; at < (n ? 620 : sizeof(piece)); at++)
			piece[at] = (char)((noise = noise * 1664525 + 1013904223) >> 24);
		z.next_in = (Bytef *)piece;
		z.avail_in = sizeof(piece);
		assert_int_equal(deflate(&z, n + 1 < DENSE_PIECES ? Z_NO_FLUSH : Z_FINISH),
				 n + 1 < DENSE_PIECES ? Z_OK : Z_STREAM_END);
		if (!n)
			memset(piece, '\n', sizeof(piece));
	}
	rules[ARRAY_SIZE(rules) - 1].len = head + z.total_out;
	deflateEnd(&z);
}

// Processor time of this thread: the machine may have other work at any time.
static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

struct turns {
	struct event_base *base;
	uint64_t last_us, longest_us;
	int code;
};

static void on_turn(evutil_socket_t fd, short what, void *ctx)
{
	struct turns *t = ctx;
	uint64_t now = now_us();

	if (now - t->last_us > t->longest_us)
		t->longest_us = now - t->last_us;
	t->last_us = now;
}

static void on_dense(void *ctx, struct fetch_result *r)
{
	struct turns *t = ctx;

	on_turn(-1, 0, ctx);
	t->code = r->code;
	assert_int_equal(r->len, DENSE_PIECES * (65536 + 620));
	fetch_result_free(r);
	event_base_loopbreak(t->base);
}

// Whether no turn of the loop takes a third of the work.
static bool turns_are_short(void)
{
	static const struct timeval often = {.tv_usec = 1000};
	struct turns t = {.base = event_base_new(), .code = -1};
	struct event *tick = event_new(t.base, -1, EV_PERSIST, on_turn, &t);
	struct fetch_request request = {.url = http_url(&server, "/dense")};
	struct curl_loop *loop;
	struct fetch *f;
	uint64_t begin, took;

	event_add(tick, &often);
	assert_int_equal(curl_loop_new(t.base, &loop, NULL), 0);
	begin = t.last_us = now_us();
	assert_int_equal(fetch_start(loop, &request, on_dense, &t, &f, NULL), 0);
	event_base_dispatch(t.base);
	took = now_us() - begin;
	assert_int_equal(t.code, 0);
	curl_loop_free(loop);
	event_free(tick);
	event_base_free(t.base);
	return t.longest_us * 3 < took;
}

// Other events of the loop have many turns in the meantime. What a hypervisor gives to others
// counts as time of the turn that it stopped, so one good try of several is enough: turns that are
// too long are too long each time.
static void a_dense_text_leaves_turns_to_others(void **state)
{
	unsigned tries = 10;

	make_dense();
	while (tries && !turns_are_short())
		tries--;
	assert_true(tries);
}

static void redirects_are_followed_but_not_everywhere(void **state)
{
	struct fetch_result r =
		fetch((struct fetch_request){.url = http_url(&server, "/to-plain")});
	unsigned before;

	assert_string_equal(r.text, "192.0.2.1\n");
	assert_string_equal(r.etag, "\"v1\"");
	fetch_result_free(&r);
	before = server.requests;
	assert_string_equal(failure("/loop", -EIO), "more than 5 redirects");
	assert_int_equal(server.requests - before, 6);
	assert_string_equal(failure("/to-file", -EIO),
			    "a redirect leads to 'file://', which is not an http or https URL");
}

static void packed_texts(void **state)
{
	struct fetch_result r = fetch((struct fetch_request){.url = http_url(&server, "/packed")});

	assert_string_equal(r.text, "192.0.2.1\n");
	fetch_result_free(&r);
	assert_string_equal(failure("/cut", -EBADMSG), "the gzip body is cut off");
	assert_string_equal(failure("/longer", -EBADMSG), "bytes follow the end of the gzip body");
	assert_string_equal(failure("/bomb", -EBADMSG), "the text is larger than 1048576 bytes");
	r = fetch((struct fetch_request){.url = http_url(&server, "/bomb")});
	assert_int_equal(r.code, -EBADMSG);
	assert_non_null(
		strstr(r.err.text, "the gzip body unpacks to more than 100 times its size"));
	fetch_result_free(&r);
}

// What curl would save is list.gz; packed by the server as well, or in several parts, as gzip(1)
// reads them.
static void packed_files(void **state)
{
	static const char *const whole[] = {"/list.gz", "/list.gz-twice"};

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		struct fetch_result r =
			fetch((struct fetch_request){.url = http_url(&server, whole[i])});

		assert_int_equal(r.code, 0);
		assert_string_equal(r.text, "192.0.2.1\n192.0.2.2\n");
		assert_int_equal(r.len, 20);
		fetch_result_free(&r);
	}
	assert_string_equal(failure("/list.gz-cut", -EBADMSG), "the gzip file is cut off");
	assert_string_equal(failure("/list.gz-longer", -EBADMSG), "the gzip file is damaged");
	assert_string_equal(failure("/list.gz-not", -EBADMSG), "the gzip file is damaged");
}

static char told[8][256];
static size_t told_n;

static void hear(const char *text)
{
	if (told_n < ARRAY_SIZE(told))
		snprintf(told[told_n++], sizeof(told[0]), "%s", text ? text : "");
}

static void who_waits_learns_for_what(void **state)
{
	CLEANUP_FREE char *silent = mem_strdup(http_url(&server, "/silent"));
	CLEANUP_FREE char *plain = mem_strdup(http_url(&server, "/plain"));
	struct fetch_request requests[] = {{.url = plain}, {.url = silent, .timeout_ms = 500}};
	struct fetch_result results[2] = {0};

	progress_to(hear);
	assert_int_equal(fetch_all(requests, 2, results, NULL), 0);
	progress_to(NULL);
	assert_int_equal(results[0].code, 0);
	assert_int_equal(results[1].code, -ETIMEDOUT);
	assert_int_equal(told_n, 4);
	assert_string_equal(told[0], "fetching lists");
	assert_non_null(strstr(told[1], "/plain' and 1 more"));
	assert_memory_equal(told[2], "fetching 'http://", 17);
	assert_non_null(strstr(told[2], "/silent'"));
	assert_string_equal(told[3], "");
	for (size_t i = 0; i < 2; i++)
		fetch_result_free(&results[i]);
}

static void failures(void **state)
{
	struct fetch_result r = fetch((struct fetch_request){.url = "http://127.0.0.1:1/"});

	assert_int_equal(r.code, -ECONNREFUSED);
	fetch_result_free(&r);
	r = fetch((struct fetch_request){.url = "file:///etc/passwd"});
	assert_int_equal(r.code, -EINVAL);
	assert_string_equal(r.err.text, "'file:///etc/passwd' is not an http or https URL");
	assert_string_equal(failure("/error", -EIO), "the server answered 503");
	assert_string_equal(failure("/missing", -EIO), "the server answered 404");
	assert_string_equal(failure("/page", -EIO), "the server answered 404");
	failure("/short", -EIO);
	assert_non_null(strstr(failure("/silent", -ETIMEDOUT), "timed out"));
}

// ---- names --------------------------------------------------------------------------------------

static const char *named_url(const char *host, const char *path)
{
	static char url[256];

	snprintf(url, sizeof(url), "http://%s:%u%s", host, server.port, path);
	return url;
}

static struct fetch_result fetch_named(const char *host, const char *path)
{
	const struct dns_options dns = {
		.servers = name_server.text, .hosts = "/dev/null", .timeout_ms = 300};

	return fetch((struct fetch_request){
		.url = named_url(host, path), .dns = &dns, .timeout_ms = 2000});
}

static unsigned threads(void)
{
	char line[128];
	unsigned n = 0;
	FILE *f = fopen("/proc/self/status", "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "Threads:", 8))
			n = (unsigned)strtoul(line + 8, NULL, 10);
	fclose(f);
	return n;
}

static void names_are_asked_for_at_our_resolver(void **state)
{
	static const char *const hosts[] = {"feed.test", "FEED.test", "feed.test.", "two.test"};
	unsigned before = threads();

	for (size_t h = 0; h < ARRAY_SIZE(hosts); h++) {
		struct fetch_result r = fetch_named(hosts[h], "/plain");

		assert_int_equal(r.code, 0);
		assert_string_equal(r.text, "192.0.2.1\n");
		fetch_result_free(&r);
	}
	assert_int_equal(threads(), before);
}

static void a_redirect_to_another_host_is_followed(void **state)
{
	struct fetch_result r = fetch_named("feed.test", "/elsewhere");
	char sentence[512];

	assert_int_equal(r.code, 0);
	assert_string_equal(r.text, "192.0.2.1\n");
	assert_non_null(strstr(server.last, "Host: two.test:"));
	fetch_result_free(&r);
	r = fetch_named("feed.test", "/to-gone");
	snprintf(sentence, sizeof(sentence),
		 "cannot fetch '%s': 'gone.test': no such name (NXDOMAIN)",
		 named_url("feed.test", "/to-gone"));
	assert_string_equal(r.err.text, sentence);
	fetch_result_free(&r);
}

static void failures_of_names_are_told_apart(void **state)
{
	static const struct {
		const char *host;
		int code;
		const char *why;
	} rows[] = {
		{"gone.test", -ENOENT, "'gone.test': no such name (NXDOMAIN)"},
		{"empty.test", -ENODATA, "'empty.test': the name has no address"},
		{"broken.test", -EIO, "'broken.test': the name servers failed"},
		{"silent.test", -ETIMEDOUT,
		 "'silent.test': no answer from the name servers in time"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct fetch_result r = fetch_named(rows[i].host, "/plain");

		assert_int_equal(r.code, rows[i].code);
		assert_non_null(strstr(r.err.text, rows[i].why));
		fetch_result_free(&r);
	}
}

static void user_and_password_stay_with_their_server(void **state)
{
	static const struct {
		const char *from, *to, *then;
	} rows[] = {
		{"https://u:p@a.test/x", "https://a.test/y", "https://u:p@a.test/y"},
		{"https://u:p@a.test/x", "https://b.test/y", "https://b.test/y"},
		{"https://u:p@a.test/x", "https://a.test:444/y", "https://a.test:444/y"},
		{"https://u:p@a.test/x", "http://a.test/y", "http://a.test/y"},
		{"https://u:p@a.test/x", "https://v@a.test/y", "https://v@a.test/y"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP_FREE char *then = fetch_redirect(rows[i].from, rows[i].to);

		assert_string_equal(then, rows[i].then);
	}
}

static void the_proxy_of_the_environment_is_used(void **state)
{
	CLEANUP_FREE char *proxy = mem_strdup(named_url("two.test", ""));
	struct fetch_result r;

	setenv("http_proxy", proxy, 1);
	r = fetch_named("gone.test", "/plain");
	assert_int_equal(r.code, -EIO);
	assert_non_null(strstr(server.last, "GET http://gone.test:"));
	fetch_result_free(&r);
	setenv("no_proxy", "other.test, .feed.test", 1);
	r = fetch_named("feed.test", "/plain");
	assert_int_equal(r.code, 0);
	assert_non_null(strstr(server.last, "GET /plain "));
	fetch_result_free(&r);
	unsetenv("http_proxy");
	unsetenv("no_proxy");
}

static void many_side_by_side(void **state)
{
	struct fetch_request requests[3] = {{.url = "http://127.0.0.1:1/"}};
	struct fetch_result results[3] = {0};
	CLEANUP_FREE char *plain = mem_strdup(http_url(&server, "/plain"));

	requests[1].url = plain;
	requests[2].url = "gopher://x/";
	assert_int_equal(fetch_all(requests, 3, results, NULL), 0);
	assert_int_equal(results[0].code, -ECONNREFUSED);
	assert_int_equal(results[1].code, 0);
	assert_int_equal(results[2].code, -EINVAL);
	for (size_t i = 0; i < 3; i++)
		fetch_result_free(&results[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_with_its_tags),
		cmocka_unit_test(a_copy_is_not_sent_again),
		cmocka_unit_test(without_a_copy_there_is_no_same),
		cmocka_unit_test(a_dense_text_leaves_turns_to_others),
		cmocka_unit_test(redirects_are_followed_but_not_everywhere),
		cmocka_unit_test(packed_texts),
		cmocka_unit_test(packed_files),
		cmocka_unit_test(who_waits_learns_for_what),
		cmocka_unit_test(failures),
		cmocka_unit_test(names_are_asked_for_at_our_resolver),
		cmocka_unit_test(a_redirect_to_another_host_is_followed),
		cmocka_unit_test(failures_of_names_are_told_apart),
		cmocka_unit_test(user_and_password_stay_with_their_server),
		cmocka_unit_test(the_proxy_of_the_environment_is_used),
		cmocka_unit_test(many_side_by_side),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
