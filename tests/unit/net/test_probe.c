// SPDX-License-Identifier: GPL-2.0-only
// Probes on an event loop, against servers of the test's own: good ones, and those that refuse,
// hang and lie.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/event.h>
#include <signal.h>
#include <sys/resource.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/pattern.h"
#include "ctl/net/probe.h"
#include "tests/unit/net/http_server.h"

#define LATE_MS 3000 // a test that takes longer has failed

static struct event_base *base;
static struct probes *all;

static const struct addr loopback = {4, {127, 0, 0, 1}};
static const struct probe_span fine[] = {{200, 204}, {301, 301}};

struct seen {
	unsigned calls;
	struct probe_result result;
	unsigned *left;
	struct probe *again; // is started when this one ends
};

static void see(void *ctx, const struct probe_result *result)
{
	struct seen *seen = ctx;

	seen->calls++;
	seen->result = *result;
	if (seen->again)
		probe_start(TAKE_PTR(seen->again));
	if (!--*seen->left)
		event_base_loopbreak(base);
}

static void on_late(evutil_socket_t fd, short what, void *ctx)
{
	event_base_loopbreak(base);
}

static void run_loop(unsigned ms)
{
	struct timeval late = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	struct event *end = evtimer_new(base, on_late, NULL);

	evtimer_add(end, &late);
	event_base_dispatch(base);
	event_free(end);
}

// Runs one probe to its end, twice.
static struct probe_result ask(const struct probe_spec *spec)
{
	unsigned left;
	struct seen seen = {.left = &left};
	struct probe *p = probe_new(all, spec, see, &seen);
	bool good = false;

	for (unsigned n = 1; n <= 2; n++) {
		left = 1;
		probe_start(p);
		assert_int_equal(seen.calls, n - 1);
		run_loop(LATE_MS);
		assert_int_equal(seen.calls, n);
		if (n == 2)
			assert_int_equal(seen.result.good, good);
		good = seen.result.good;
	}
	probe_free(p);
	return seen.result;
}

static void assert_bad(const struct probe_spec *spec, const char *why)
{
	struct probe_result r = ask(spec);

	assert_false(r.good);
	assert_false(r.unknown);
	assert_string_equal(r.why, why);
}

// All descriptors are in use: no result about the server.
static void test_no_descriptors(void **state)
{
	struct probe_spec specs[] = {
		{.kind = PROBE_TCP, .addr = loopback, .port = 9, .timeout_ms = 300},
		{.kind = PROBE_HTTP, .addr = loopback, .port = 9, .timeout_ms = 300, .path = "/"},
		{.kind = PROBE_DNS, .addr = loopback, .port = 9, .timeout_ms = 300, .name = "x.y"},
	};
	struct probe_result r[ARRAY_SIZE(specs)];
	struct rlimit limit, few = {.rlim_cur = 0};

	getrlimit(RLIMIT_NOFILE, &limit);
	few.rlim_max = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &few);
	for (size_t i = 0; i < ARRAY_SIZE(specs); i++)
		r[i] = ask(&specs[i]);
	setrlimit(RLIMIT_NOFILE, &limit);
	for (size_t i = 0; i < ARRAY_SIZE(specs); i++)
		assert_true(!r[i].good && r[i].unknown);
}

// ---- tcp ----------------------------------------------------------------------------------------

static int listen_on(uint16_t *ret_port, int backlog)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	if (backlog >= 0)
		assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	*ret_port = ntohs(at.sin_port);
	return fd;
}

static void test_tcp(void **state)
{
	struct probe_spec spec = {.kind = PROBE_TCP, .addr = loopback, .timeout_ms = 300};
	int fd = listen_on(&spec.port, 8);
	struct probe_result r = ask(&spec);

	assert_true(r.good);
	assert_in_range(r.took_us, 1, 300000);
	spec.source = loopback;
	spec.source.bytes[3] = 9; // 127.0.0.9
	assert_true(ask(&spec).good);
	close(fd);
	assert_bad(&spec, "connection refused");
	spec.source.bytes[0] = 192; // not an address of this host
	r = ask(&spec);
	assert_true(!r.good && r.unknown);
	assert_string_equal(r.why, "cannot assign requested address");
}

// Its queue is full: it answers no SYN.
static void test_tcp_silent(void **state)
{
	struct probe_spec spec = {.kind = PROBE_TCP, .addr = loopback, .timeout_ms = 200};
	int fd = listen_on(&spec.port, 0), fill[4];
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr = {htonl(INADDR_LOOPBACK)},
				 .sin_port = htons(spec.port)};
	struct probe_result r;

	for (size_t i = 0; i < ARRAY_SIZE(fill); i++) {
		fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(fill[i], (struct sockaddr *)&to, sizeof(to));
	}
	r = ask(&spec);
	assert_false(r.good);
	assert_string_equal(r.why, "no answer within 200ms");
	assert_in_range(r.took_us, 190000, 900000);
	for (size_t i = 0; i < ARRAY_SIZE(fill); i++)
		close(fill[i]);
	close(fd);
}

static void test_stop(void **state)
{
	unsigned left = 1;
	struct seen seen = {.left = &left};
	struct probe_spec spec = {.kind = PROBE_TCP, .addr = loopback, .timeout_ms = 1000};
	int fd = listen_on(&spec.port, 8);
	struct probe *p = probe_new(all, &spec, see, &seen);

	probe_start(p);
	probe_stop(p);
	run_loop(200);
	assert_int_equal(seen.calls, 0);
	probe_start(p);
	run_loop(LATE_MS);
	assert_true(seen.calls == 1 && seen.result.good);
	probe_start(p);
	probe_free(p); // while it runs
	probe_free(NULL);
	close(fd);
}

// ---- http ---------------------------------------------------------------------------------------

static char long_body[300000] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbegin ";

static const struct http_rule rules[] = {
	{"/a", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 11\r\n\r\nfine\nstate\n",
	 0},
	{"/busy", "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 0},
	{"/moved", "HTTP/1.1 301 Moved\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n", 0},
	{"/long", long_body, sizeof(long_body) - 1},
	{"/short", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 20\r\n\r\na\n", 0},
	{"/noise", "\x16\x03\x01 noise", 0},
	{"/silent", NULL, 0},
};

static struct probe_spec http_spec(const struct http_server *s, const char *path)
{
	return (struct probe_spec){
		.kind = PROBE_HTTP,
		.addr = loopback,
		.port = s->port,
		.timeout_ms = 500,
		.path = path,
		.statuses = fine,
		.n_statuses = ARRAY_SIZE(fine),
	};
}

static void test_http(void **state)
{
	struct http_server s;
	struct probe_spec spec;
	unsigned requests;

	http_start(&s, rules, ARRAY_SIZE(rules));
	spec = http_spec(&s, "/a");
	assert_true(ask(&spec).good);
	assert_non_null(strstr(s.last, "\r\nHost: 127.0.0.1\r\n"));
	spec.host = "www.example.com:8080";
	assert_true(ask(&spec).good);
	assert_non_null(strstr(s.last, "\r\nHost: www.example.com:8080\r\n"));
	requests = s.requests;
	spec = http_spec(&s, "/moved");
	assert_true(ask(&spec).good); // and is not followed
	assert_int_equal(s.requests, requests + 2);
	spec = http_spec(&s, "/busy");
	assert_bad(&spec, "status 503");
	spec = http_spec(&s, "/short");
	assert_bad(&spec, "Transferred a partial file");
	spec = http_spec(&s, "/silent");
	assert_bad(&spec, "no answer within 500ms");
	spec = http_spec(&s, "/noise");
	assert_false(ask(&spec).good);
	http_stop(&s);
	spec = http_spec(&s, "/a");
	assert_bad(&spec, "connection refused");
}

// Another pattern instead; NULL: none.
static void expect_body(struct probe_spec *spec, const char *text)
{
	struct pattern *pattern = NULL;
	struct err err = {0};

	pattern_free((struct pattern *)spec->body);
	if (text)
		assert_int_equal(pattern_new(text, &pattern, &err), 0);
	spec->body = pattern;
}

static void test_body(void **state)
{
	struct http_server s;
	struct probe_spec spec;

	for (size_t i = strlen(long_body); i < sizeof(long_body) - 10; i++)
		long_body[i] = 'x';
	snprintf(long_body + sizeof(long_body) - 10, 10, "the end..");
	http_start(&s, rules, ARRAY_SIZE(rules));
	spec = http_spec(&s, "/a");
	expect_body(&spec, "^(fine|well)$");
	assert_true(ask(&spec).good);
	spec.path = "/busy";
	assert_bad(&spec, "status 503");
	spec.path = "/moved";
	assert_bad(&spec, "status 301, but the body does not match");
	expect_body(&spec, "^begin");
	spec.path = "/long";
	assert_true(ask(&spec).good);
	expect_body(&spec, "(x|y)*$");
	assert_bad(&spec, "body: the expression took too long");
	expect_body(&spec, "the end");
	assert_bad(&spec, "status 200, but the body does not match"); // that is too far
	expect_body(&spec, NULL);
	assert_true(ask(&spec).good);
	http_stop(&s);
}

// ---- dns ----------------------------------------------------------------------------------------

struct dns_server {
	int fd;
	struct event *event;
	unsigned queries;
	unsigned char code, records, flags;
	bool mute, stranger, other_question;
};

static void on_query(evutil_socket_t fd, short what, void *ctx)
{
	struct dns_server *s = ctx;
	unsigned char m[512];
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(fd, m, sizeof(m), 0, (struct sockaddr *)&from, &len);

	s->queries++;
	if (n < 12 || s->mute)
		return;
	m[2] |= (unsigned char)(0x80 | s->flags);
	m[3] = s->code;
	m[7] = s->records;
	if (s->stranger) { // an answer to another query arrives first
		m[1] ^= 1;
		sendto(fd, m, (size_t)n, 0, (struct sockaddr *)&from, len);
		m[1] ^= 1;
	}
	m[13] ^= s->other_question ? 1 : 0x20; // else: the other case
	sendto(fd, m, (size_t)n, 0, (struct sockaddr *)&from, len);
}

// Its port.
static uint16_t serve_dns(struct dns_server *s)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);

	*s = (struct dns_server){.fd = socket(AF_INET, SOCK_DGRAM, 0), .records = 1};
	assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &len), 0);
	s->event = event_new(base, s->fd, EV_READ | EV_PERSIST, on_query, s);
	event_add(s->event, NULL);
	return ntohs(at.sin_port);
}

static void test_dns(void **state)
{
	struct dns_server s;
	struct probe_spec spec = {.kind = PROBE_DNS,
				  .addr = loopback,
				  .timeout_ms = 200,
				  .name = "www.example.com",
				  .type = 28};

	spec.port = serve_dns(&s);
	assert_true(ask(&spec).good);
	s.stranger = true;
	assert_true(ask(&spec).good);
	s.records = 0;
	assert_bad(&spec, "the answer is empty");
	s.flags = 2; // truncated
	assert_true(ask(&spec).good);
	s.code = 2;
	assert_bad(&spec, "the answer is SERVFAIL");
	s.code = 3;
	assert_bad(&spec, "the answer is NXDOMAIN");
	s.code = 0;
	s.other_question = true;
	assert_bad(&spec, "no answer within 200ms");
	s.mute = true;
	assert_bad(&spec, "no answer within 200ms");
	event_free(s.event);
	close(s.fd);
	assert_bad(&spec, "connection refused");
	assert_int_equal(s.queries, 16);
}

static uint64_t flood_ends_ms;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

// Replaces the C library's function: a backend sends packets faster than they can be read.
ssize_t recv(int fd, void *buf, size_t size, int flags)
{
	if (now_ms() >= flood_ends_ms)
		return recvfrom(fd, buf, size, flags, NULL, NULL);
	memset(buf, 0xff, size);
	return (ssize_t)size;
}

static void test_dns_flood(void **state)
{
	struct dns_server s;
	struct probe_spec spec = {.kind = PROBE_DNS,
				  .addr = loopback,
				  .timeout_ms = 100,
				  .name = "www.example.com",
				  .type = 28};

	spec.port = serve_dns(&s);
	flood_ends_ms = now_ms() + LATE_MS / 2;
	assert_bad(&spec, "no answer within 100ms");
	assert_true(now_ms() < flood_ends_ms);
	flood_ends_ms = 0;
	event_free(s.event);
	close(s.fd);
}

// ---- programs -----------------------------------------------------------------------------------

static struct probe_spec shell(const char *const *arguments, uint32_t timeout_ms)
{
	static const char *const environment[] = {"WEIR_BACKEND=10.0.0.1", NULL};

	return (struct probe_spec){.kind = PROBE_EXEC,
				   .arguments = arguments,
				   .environment = environment,
				   .timeout_ms = timeout_ms};
}

#define SHELL(text, ms) shell((const char *const[]){"/bin/sh", "-c", text, NULL}, ms)

static void test_exec(void **state)
{
	struct probe_spec spec = SHELL("test $WEIR_BACKEND = 10.0.0.1 && test -z \"$HOME\"", 1000);

	assert_true(ask(&spec).good);
	spec = SHELL("exit 3", 1000);
	assert_bad(&spec, "the program exited with status 3");
	spec = SHELL("kill -9 $$", 1000);
	assert_bad(&spec, "the program was killed by signal 9");
	spec = shell((const char *const[]){"/does/not/exist", NULL}, 1000);
	assert_bad(&spec, "no such file or directory");
}

// The program and what it has started are killed.
static void test_exec_hangs(void **state)
{
	char file[] = "/tmp/weir-probe-XXXXXX", pid[32] = "";
	int fd = mkstemp(file);
	CLEANUP_FREE char *text = mem_printf("sleep 60 & echo $! >%s; wait", file);
	struct probe_spec spec = SHELL(text, 300);
	uint64_t left;
	ssize_t n;

	assert_bad(&spec, "no answer within 300ms");
	n = read(fd, pid, sizeof(pid) - 1);
	assert_true(n > 1);
	n -= 1;
	pid[n] = 0;
	num_parse_u64(pid, (size_t)n, 1, UINT32_MAX, &left);
	for (int i = 0; i < 100 && !kill((pid_t)left, 0); i++) {
		char path[64], line[256] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)left);
		f = fopen(path, "r");
		if (!f || !fgets(line, sizeof(line), f) || strstr(line, ") Z "))
			left = 1u << 30; // dead
		if (f)
			fclose(f);
		usleep(10000);
	}
	assert_int_equal(kill((pid_t)left, 0), -1);
	close(fd);
	unlink(file);
}

// At most 16 run at the same time; the time of those that wait begins when they run.
static void test_exec_many(void **state)
{
	char folder[] = "/tmp/weir-probe-XXXXXX";
	struct seen seen[48];
	struct probe *probes[ARRAY_SIZE(seen)];
	unsigned left = ARRAY_SIZE(seen), most = 0;
	CLEANUP_FREE char *text = NULL, *command = NULL;
	struct probe_spec spec;

	assert_non_null(mkdtemp(folder));
	text = mem_printf("touch %s/$$; ls %s | wc -l >>%s.most; sleep 0.2; rm %s/$$", folder,
			  folder, folder, folder);
	spec = SHELL(text, 700);
	spec.environment = (const char *const[]){"PATH=/bin:/usr/bin", NULL};
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++) {
		seen[i] = (struct seen){.left = &left};
		probes[i] = probe_new(all, &spec, see, &seen[i]);
		probe_start(probes[i]);
	}
	run_loop(20000);
	assert_int_equal(left, 0);
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++) {
		assert_int_equal(seen[i].calls, 1);
		probe_free(probes[i]);
	}
	command = mem_printf("m=$(sort -n %s.most | tail -1); rm -rf %s %s.most; exit $m", folder,
			     folder, folder);
	most = (unsigned)WEXITSTATUS(system(command));
	assert_in_range(most, 2, 16);
}

// ---- together -----------------------------------------------------------------------------------

// A probe may start another one from its end.
static void test_again(void **state)
{
	unsigned left = 2;
	struct probe_spec spec = {.kind = PROBE_TCP, .addr = loopback, .timeout_ms = 300};
	int fd = listen_on(&spec.port, 8);
	struct seen second = {.left = &left}, first = {.left = &left};
	struct probe *b = probe_new(all, &spec, see, &second);
	struct probe *a = probe_new(all, &spec, see, &first);

	first.again = b;
	probe_start(a);
	run_loop(LATE_MS);
	assert_true(first.calls == 1 && second.calls == 1 && second.result.good);
	probe_free(a);
	probe_free(b);
	close(fd);
}

static int make(void **state)
{
	base = event_base_new();
	return !base || probes_new(base, &all, NULL);
}

static int drop(void **state)
{
	probes_free(all);
	event_base_free(base);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_tcp_silent),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_http),
		cmocka_unit_test(test_body),
		cmocka_unit_test(test_dns),
		cmocka_unit_test(test_dns_flood),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_exec_hangs),
		cmocka_unit_test(test_exec_many),
		cmocka_unit_test(test_again),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, make, drop);
}
