// SPDX-License-Identifier: GPL-2.0-only
// How long callbacks take of the processor, and which one took longest.
#include "ctl/net/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <time.h>
#include <unistd.h>

static struct event *event;
static unsigned ran, told;

static double processor_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void burn(double ms)
{
	double end = processor_ms() + ms;

	while (processor_ms() < end)
		;
}

static void on_sleep(evutil_socket_t fd, short what, void *ctx)
{
	ran++;
	usleep(30000);
}

static void on_burn(evutil_socket_t fd, short what, void *ms)
{
	ran++;
	burn(*(const double *)ms);
	loop_event_free(event); // a callback may free its event
}

static void on_span(evutil_socket_t fd, short what, void *ms)
{
	loop_span_name("a better name");
	{
		LOOP_SPAN("inside"); // belongs to the callback
		burn(*(const double *)ms / 2);
	}
	burn(*(const double *)ms / 2);
	loop_event_free(event);
}

static void run(struct event_base *base, event_callback_fn callback, double ms, const char *name)
{
	const struct timeval soon = {.tv_usec = 1};

	event = loop_event_new(base, -1, 0, callback, &ms, name);
	assert_non_null(event);
	assert_int_equal(evtimer_add(event, &soon), 0);
	assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
}

static void on_longest(void *ctx)
{
	told += ctx == &told;
}

static void assert_longest(const char *name, uint64_t least_us)
{
	assert_string_equal(loop_longest().name, name);
	assert_in_range(loop_longest().us, least_us, least_us + 15000);
}

static void test_longest(void **state)
{
	struct event_base *base = event_base_new();

	assert_null(loop_longest().name);
	loop_on_longest(on_longest, &told);
	run(base, on_burn, 2, "short");
	assert_longest("short", 2000);
	assert_int_equal(told, 1);
	run(base, on_sleep, 0, "sleeps");
	loop_event_free(event);
	assert_longest("short", 2000);
	assert_int_equal(told, 1);
	run(base, on_burn, 30, "long");
	assert_longest("long", 30000);
	assert_int_equal(told, 2);
	run(base, on_burn, 2, "short");
	assert_longest("long", 30000);
	assert_int_equal(told, 2);
	run(base, on_span, 60, "span");
	assert_longest("a better name", 60000);
	assert_int_equal(told, 3);
	assert_int_equal(ran, 4);
	event_base_free(base);
}

static void test_spans(void **state)
{
	{
		LOOP_SPAN("request");
		burn(90);
	}
	assert_longest("test_loop.c: request", 90000);
	burn(200); // outside
	assert_longest("test_loop.c: request", 90000);
	loop_event_free(NULL);
}

static void test_names(void **state)
{
	struct event_base *base = event_base_new();
	double ms = 120;

	event = loop_timer(base, on_burn, &ms);
	event_active(event, EV_TIMEOUT, 0);
	assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	assert_longest("test_loop.c: on_burn", 120000);
	event_base_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
