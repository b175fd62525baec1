// SPDX-License-Identifier: GPL-2.0-only
// Tasks of the agent: when they run, and when they are tried again.
#include "ctl/agent/task.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <string.h>

#include "ctl/agent/agent.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"

// The agent proper is another test's; here a report is only counted.
static struct agent agent;

struct work {
	struct agent_task task;
	int runs, fails; // how often it was run; how many of these runs fail
	int code;        // with this
	uint64_t at[16]; // when
	uint64_t again_ms;
};

static int do_work(void *ctx, struct err *err)
{
	struct work *w = ctx;

	w->at[w->runs++ % 16] = agent_now_ms();
	if (w->again_ms) {
		agent_task_in(&w->task, w->again_ms);
		w->again_ms = 0;
	}
	if (w->runs > w->fails)
		return 0;
	err_refused(err, "it does not work");
	return w->code;
}

static int begin(void **state)
{
	struct work *w = mem_new(struct work);

	agent = (struct agent){.loop = event_base_new(), .instance = "test"};
	*state = w;
	agent_task_init(&w->task, &agent, "work", do_work, w);
	return 0;
}

static int end(void **state)
{
	struct work *w = *state;

	agent_task_free(&w->task);
	event_base_free(agent.loop);
	mem_cleanup_free(state);
	return 0;
}

static void turn(uint64_t ms)
{
	struct timeval wait = {.tv_sec = (time_t)(ms / 1000),
			       .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	event_base_loopexit(agent.loop, &wait);
	event_base_dispatch(agent.loop);
}

static void runs_once(void **state)
{
	struct work *w = *state;
	uint64_t began = agent_now_ms();

	agent_task_in(&w->task, 20);
	turn(100);
	assert_int_equal(w->runs, 1);
	assert_true(w->at[0] >= began + 19);
}

static void the_earlier_time_counts(void **state)
{
	struct work *w = *state;
	uint64_t began = agent_now_ms();

	agent_task_in(&w->task, 10000);
	agent_task_in(&w->task, 10);
	agent_task_in(&w->task, 20000);
	turn(60);
	assert_int_equal(w->runs, 1);
	assert_true(w->at[0] < began + 60);
}

static void plans_itself(void **state)
{
	struct work *w = *state;

	w->again_ms = 10;
	agent_task_in(&w->task, 0);
	turn(60);
	assert_int_equal(w->runs, 2);
}

// 20, 40, 80 ms: the lock of others is nothing to tell.
static void waits_for_the_lock(void **state)
{
	struct work *w = *state;
	CLEANUP_JSON struct json *problems = json_array();

	w->fails = 3;
	w->code = -EAGAIN;
	agent_task_in(&w->task, 0);
	turn(250);
	assert_int_equal(w->runs, 4);
	assert_true(w->at[1] - w->at[0] >= 19 && w->at[2] - w->at[1] >= 39 &&
		    w->at[3] - w->at[2] >= 79);
	agent_task_report(&w->task, problems);
	assert_int_equal(json_length(problems), 0);
}

static void a_failure_is_a_problem_until_it_works(void **state)
{
	struct work *w = *state;
	CLEANUP_JSON struct json *problems = json_array(), *later = json_array();

	w->fails = 1;
	w->code = -EIO;
	agent_task_in(&w->task, 0);
	turn(100);
	assert_int_equal(w->runs, 1);
	agent_task_report(&w->task, problems);
	assert_int_equal(json_length(problems), 1);
	assert_string_equal(json_text(json_at(problems, 0)), "work: it does not work");
	turn(1200);
	assert_int_equal(w->runs, 2);
	agent_task_report(&w->task, later);
	assert_int_equal(json_length(later), 0);
}

// Instead of the planned time, also if that was earlier.
static void is_moved_and_cancelled(void **state)
{
	struct work *w = *state;

	agent_task_in(&w->task, 10);
	agent_task_move(&w->task, 10000);
	turn(60);
	assert_int_equal(w->runs, 0);
	agent_task_move(&w->task, 0);
	agent_task_cancel(&w->task);
	turn(20);
	assert_int_equal(w->runs, 0);
	agent_task_in(&w->task, 10);
	turn(60);
	assert_int_equal(w->runs, 1);
}

// Work that the task has started fails later, and works the next time.
static void ends_later(void **state)
{
	struct work *w = *state;
	CLEANUP_JSON struct json *problems = json_array(), *later = json_array();
	struct err err = {0};

	w->fails = 2;
	w->code = -EINPROGRESS;
	agent_task_in(&w->task, 0);
	turn(200);
	assert_int_equal(w->runs, 1);
	err_refused(&err, "it has failed");
	agent_task_end(&w->task, -EPERM, &err);
	turn(1500);
	assert_int_equal(w->runs, 2);
	agent_task_report(&w->task, problems);
	assert_string_equal(json_text(json_at(problems, 0)), "work: it has failed");
	agent_task_end(&w->task, 0, NULL);
	agent_task_report(&w->task, later);
	assert_int_equal(json_length(later), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(runs_once, begin, end),
		cmocka_unit_test_setup_teardown(the_earlier_time_counts, begin, end),
		cmocka_unit_test_setup_teardown(plans_itself, begin, end),
		cmocka_unit_test_setup_teardown(waits_for_the_lock, begin, end),
		cmocka_unit_test_setup_teardown(is_moved_and_cancelled, begin, end),
		cmocka_unit_test_setup_teardown(ends_later, begin, end),
		cmocka_unit_test_setup_teardown(a_failure_is_a_problem_until_it_works, begin, end),
	};

	log_setup(LOG_ERROR, false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
