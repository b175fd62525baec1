// SPDX-License-Identifier: GPL-2.0-only
// The page of the agent's loop: its content before a sleep, and the time from which it is late.
#include "ctl/agent/heart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "ctl/agent/task.h"
#include "ctl/base/file.h"
#include "ctl/base/file_tree.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"

static uint64_t clock_ms = 1000000;
static char folder[] = "/tmp/weir-heart-XXXXXX";

static uint64_t fake_now_ms(void)
{
	return clock_ms;
}

// Not the five seconds and the minute of the agent.
#undef HEART_LEAST_MS
#undef HEART_MOST_MS
#define HEART_LEAST_MS 50
#define HEART_MOST_MS  2000
#undef WEIR_RUN_FOLDER
#define WEIR_RUN_FOLDER folder
#define agent_now_ms    fake_now_ms
#include "ctl/agent/heart.c"

static struct event_base *loop;

static struct heart *begin(void)
{
	const struct timeval part = {.tv_usec = 2000};
	CLEANUP_FREE char *run = mem_printf("%s/test", folder);
	struct event_config *config = event_config_new();
	struct heart *h = NULL;

	assert_int_equal(file_mkdirs(run, 0755, NULL), 0);
	assert_int_equal(heart_new("test", &h, NULL), 0);
	event_config_set_max_dispatch_interval(config, &part, 16, 1); // as the agent sets it
	loop = event_base_new_with_config(config);
	event_config_free(config);
	event_base_priority_init(loop, 2);
	assert_int_equal(heart_start(h, loop, NULL), 0);
	return h;
}

static void end(struct heart *h)
{
	heart_free(h);
	event_base_free(loop);
}

static void do_nothing(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd, (void)what, (void)ctx;
}

static struct event *timer_in(long ms)
{
	const struct timeval wait = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	struct event *timer = evtimer_new(loop, do_nothing, NULL);

	evtimer_add(timer, &wait);
	return timer;
}

// Late by three times the nearest timer, in bounds.
static void test_sleep(void **state)
{
	struct heart *h = begin();
	struct event *far = timer_in(100000), *near, *now;

	heart_beat(h);
	assert_int_equal(h->page->turned_ms, clock_ms);
	assert_int_equal(h->page->late_ms, clock_ms + 3 * HEART_MOST_MS);
	near = timer_in(1000);
	clock_ms++;
	heart_beat(h);
	assert_in_range(h->page->late_ms, clock_ms + 2800, clock_ms + 3000);
	now = timer_in(0);
	clock_ms++;
	heart_beat(h);
	assert_int_equal(h->page->late_ms, clock_ms + 3 * HEART_LEAST_MS);
	event_free(now);
	event_free(near);
	clock_ms++;
	heart_beat(h);
	assert_int_equal(h->page->late_ms, clock_ms + 3 * HEART_MOST_MS);
	event_free(far);
	end(h);
}

// A turn soon after another one reads no timer, but ensures that the timers are read after the last
// turn.
static void test_turns_without_a_pause(void **state)
{
	struct heart *h = begin();
	struct event *far = timer_in(100000), *near;

	heart_beat(h);
	near = timer_in(1000);
	heart_beat(h);
	assert_int_equal(h->page->late_ms, clock_ms + 3 * HEART_MOST_MS);
	event_base_loop(loop, EVLOOP_ONCE);
	assert_in_range(h->page->late_ms, clock_ms + 2800, clock_ms + 3000);
	event_free(near);
	event_free(far);
	end(h);
}

// Returns what status and doctor read: 0 while it is not late, else the time since the turn.
static void test_late(void **state)
{
	struct heart *h = begin();

	clock_ms += 3 * HEART_MOST_MS;
	assert_int_equal(heart_late_ms("test"), 0);
	clock_ms++;
	assert_int_equal(heart_late_ms("test"), 3 * HEART_MOST_MS + 1);
	heart_beat(h);
	assert_int_equal(heart_late_ms("test"), 0);
	assert_int_equal(heart_late_ms("other"), 0);
	end(h);
}

// The page of a killed agent has no meaning for the next one.
static void test_next_agent(void **state)
{
	struct heart *h = begin();

	end(h);
	clock_ms += 100 * HEART_MOST_MS;
	assert_true(heart_late_ms("test") > 0);
	h = begin();
	assert_int_equal(heart_late_ms("test"), 0);
	end(h);
}

static int turns;

static void take_turn(evutil_socket_t fd, short what, void *event)
{
	(void)fd, (void)what;
	if (turns++ < 300)
		event_active(*(struct event **)event, EV_TIMEOUT, 0);
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

// Clients that always have something keep libevent in one turn: the timer of the heart shows that
// it works.
static void test_busy_turn(void **state)
{
	struct heart *h = begin();
	struct event *near = timer_in(10), *busy = evtimer_new(loop, take_turn, &busy);

	event_priority_set(busy, 1);
	event_active(busy, EV_TIMEOUT, 0);
	heart_beat(h);
	clock_ms += 10 * HEART_LEAST_MS;
	assert_true(heart_late_ms("test") > 0);
	event_base_loop(loop, EVLOOP_ONCE);
	assert_int_equal(heart_late_ms("test"), 0);
	assert_true(turns > 100);
	event_free(near);
	event_free(busy);
	end(h);
}

// No further wake-up: before each timer of the loop, the heart's is later.
static void test_own_timer_is_last(void **state)
{
	struct heart *h = begin();
	struct event *near = timer_in(300);
	struct timeval own, other;

	heart_beat(h);
	event_pending(h->timer, EV_TIMEOUT, &own);
	event_pending(near, EV_TIMEOUT, &other);
	assert_true(evutil_timercmp(&own, &other, >));
	event_free(near);
	end(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleep),     cmocka_unit_test(test_turns_without_a_pause),
		cmocka_unit_test(test_late),      cmocka_unit_test(test_next_agent),
		cmocka_unit_test(test_busy_turn), cmocka_unit_test(test_own_timer_is_last),
	};

	if (!mkdtemp(folder))
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	file_remove_tree(folder, NULL);
	return failed;
}
