// SPDX-License-Identifier: GPL-2.0-only
// Transfers on the event loop, against a web server of the test's own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/event.h>

#include "ctl/base/mem.h"
#include "ctl/net/curl_loop.h"
#include "tests/unit/net/http_server.h"

static const struct http_rule rules[] = {
	{"/a", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\na\n", 0},
	{"/b", "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 0},
	{"/short", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 20\r\n\r\na\n", 0},
	{"/silent", NULL, 0},
};

static struct http_server server;
static struct event_base *base;
static struct curl_loop *loop;

struct seen {
	CURL *easy;
	unsigned calls;
	CURLcode code;
	long status;
	unsigned *left;    // transfers that the test waits for
	struct seen *next; // is started when this one ends
};

static size_t ignore(char *data, size_t size, size_t n, void *ctx)
{
	return size * n;
}

static void see(void *ctx, CURL *easy, CURLcode code);

static void start(struct seen *seen, const char *url)
{
	seen->easy = curl_easy_init();
	curl_easy_setopt(seen->easy, CURLOPT_URL, url);
	curl_easy_setopt(seen->easy, CURLOPT_WRITEFUNCTION, ignore);
	assert_int_equal(curl_loop_start(loop, seen->easy, see, seen, NULL), 0);
}

static void see(void *ctx, CURL *easy, CURLcode code)
{
	struct seen *seen = ctx;

	seen->calls++;
	seen->code = code;
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &seen->status);
	curl_easy_cleanup(easy);
	seen->easy = NULL;
	if (seen->next)
		start(seen->next, http_url(&server, "/a"));
	if (!--*seen->left)
		event_base_loopbreak(base);
}

static int set_up(void **state)
{
	http_start(&server, rules, ARRAY_SIZE(rules));
	base = event_base_new();
	return !base || curl_loop_new(base, &loop, NULL);
}

static int tear_down(void **state)
{
	curl_loop_free(loop);
	event_base_free(base);
	http_stop(&server);
	return 0;
}

// Runs the loop for at most this time.
static void run(unsigned ms)
{
	struct timeval end = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	event_base_loopexit(base, &end);
	event_base_dispatch(base);
}

static void transfers_end_side_by_side(void **state)
{
	unsigned left = 4;
	struct seen a = {.left = &left}, b = a, cut = a, refused = a;

	start(&a, http_url(&server, "/a"));
	start(&b, http_url(&server, "/b"));
	start(&cut, http_url(&server, "/short"));
	start(&refused, "http://127.0.0.1:1/");
	run(5000);
	assert_int_equal(left, 0);
	assert_int_equal(a.code, CURLE_OK);
	assert_int_equal(a.status, 200);
	assert_int_equal(b.code, CURLE_OK);
	assert_int_equal(b.status, 503);
	assert_int_equal(cut.code, CURLE_PARTIAL_FILE);
	assert_int_equal(refused.code, CURLE_COULDNT_CONNECT);
	assert_int_equal(a.calls + b.calls + cut.calls + refused.calls, 4);
}

static void one_that_ends_may_start_another(void **state)
{
	unsigned left = 2;
	struct seen second = {.left = &left}, first = {.left = &left, .next = &second};

	start(&first, http_url(&server, "/b"));
	run(5000);
	assert_int_equal(left, 0);
	assert_int_equal(second.status, 200);
}

static void a_time_limit_ends_a_silent_one(void **state)
{
	unsigned left = 1;
	struct seen seen = {.left = &left};

	seen.easy = curl_easy_init();
	curl_easy_setopt(seen.easy, CURLOPT_URL, http_url(&server, "/silent"));
	curl_easy_setopt(seen.easy, CURLOPT_TIMEOUT_MS, 50L);
	assert_int_equal(curl_loop_start(loop, seen.easy, see, &seen, NULL), 0);
	run(5000);
	assert_int_equal(seen.code, CURLE_OPERATION_TIMEDOUT);
}

static void a_stopped_one_is_silent_and_may_be_used_again(void **state)
{
	unsigned left = 1;
	struct seen seen = {.left = &left};
	CURL *easy;

	start(&seen, http_url(&server, "/silent"));
	easy = seen.easy;
	run(20);
	curl_loop_stop(loop, easy);
	curl_loop_stop(loop, easy);
	run(20);
	assert_int_equal(seen.calls, 0);
	curl_easy_setopt(easy, CURLOPT_URL, http_url(&server, "/a"));
	assert_int_equal(curl_loop_start(loop, easy, see, &seen, NULL), 0);
	run(5000);
	assert_int_equal(seen.calls, 1);
	assert_int_equal(seen.status, 200);
}

static void a_loop_that_is_freed_stops_what_runs(void **state)
{
	unsigned left = 2;
	struct seen one = {.left = &left}, other = {.left = &left};

	start(&one, http_url(&server, "/silent"));
	start(&other, http_url(&server, "/silent"));
	run(20);
	curl_loop_free(loop);
	loop = NULL;
	run(20);
	assert_int_equal(one.calls + other.calls, 0);
	curl_easy_cleanup(one.easy);
	curl_easy_cleanup(other.easy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(transfers_end_side_by_side, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_ends_may_start_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_time_limit_ends_a_silent_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_stopped_one_is_silent_and_may_be_used_again,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_loop_that_is_freed_stops_what_runs, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
