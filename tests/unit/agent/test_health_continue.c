// SPDX-License-Identifier: GPL-2.0-only
// What is known of a backend when its checks begin, without an agent before and without a kernel.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ctl/agent/health_targets.h"
#include "tests/unit/base/unit.h"

#define NOW 1000000

static const struct clock second = {.jiffies = 50000, .hz = 250};

// A backend with a check, and what it was for the previous targets or the previous agent.
struct world {
	struct health_backend backend, old_backend;
	struct health_target target, old;
	struct health_record record;
	struct lb_member member;
};

static struct world world_of(uint8_t state)
{
	struct world w = {
		.target = {.n_probes = 1},
		.old_backend = {.health = {.state = state, .known = true}},
		.record = {.health = {.state = state, .known = true}, .why = "the file"},
		.old = {.n_probes = 1, .why = "the targets", .counts = {.checks = 7, .failed = 3}},
		.member = {.health = BACKEND_UP},
	};

	return w;
}

static void go(struct world *w, bool was, bool record)
{
	w->target.backend = &w->backend;
	w->old.backend = &w->old_backend;
	health_continue(&w->target, was ? &w->old : NULL, record ? &w->record : NULL, &w->member,
			&second, NOW);
}

static void previous_targets_are_continued_as_they_are(void **state)
{
	struct world w = world_of(BACKEND_FAILING);

	go(&w, true, true);
	assert_int_equal(w.backend.health.state, BACKEND_FAILING);
	assert_string_equal(w.target.why, "the targets");
	assert_int_equal(w.target.counts.failed, 3);
}

static void the_file_of_the_previous_agent_is_continued(void **state)
{
	struct world w = world_of(BACKEND_DOWN);

	w.member.health = BACKEND_DOWN;
	go(&w, false, true);
	assert_int_equal(w.backend.health.state, BACKEND_DOWN);
	assert_true(w.backend.health.known);
	assert_string_equal(w.target.why, "the file");
	assert_int_equal(w.target.counts.checks, 0);
}

static void the_kernel_counts_where_it_differs_from_the_file(void **state)
{
	struct world w = world_of(BACKEND_UP);

	w.member.health = BACKEND_DOWN;
	w.member.cut = true;
	go(&w, false, true);
	assert_int_equal(w.backend.health.state, BACKEND_DOWN);
	assert_true(w.backend.health.cut);
	assert_int_equal(w.backend.health.since_ms, NOW);
	assert_int_equal(w.backend.health.failed_ms, NOW);
}

static void a_drain_is_no_health(void **state)
{
	struct world w = world_of(BACKEND_UP);

	w.member.health = BACKEND_DRAIN;
	go(&w, false, true);
	assert_int_equal(w.backend.health.state, BACKEND_UP);
	assert_int_equal(w.backend.health.since_ms, 0);
}

static void a_new_backend_waits_for_its_first_check(void **state)
{
	struct world w = world_of(BACKEND_UP);

	w.member.waits = second.jiffies + 500; // two seconds
	go(&w, false, false);
	assert_true(health_is_waiting(&w.target));
	assert_false(w.backend.health.known);
	assert_int_equal(w.target.wait_ms, NOW + 2000 + HEALTH_WAIT_MORE_MS);
	w.member.waits = second.jiffies - 500;
	go(&w, false, false);
	assert_int_equal(w.target.wait_ms, NOW + HEALTH_WAIT_MORE_MS);
	w.member.waits = 0;
	go(&w, false, false);
	assert_false(health_is_waiting(&w.target));
}

static void one_that_is_not_up_does_not_wait(void **state)
{
	struct world w = world_of(BACKEND_DOWN);

	w.member.health = BACKEND_DOWN;
	w.member.waits = second.jiffies + 500;
	go(&w, false, true);
	assert_false(health_is_waiting(&w.target));
	assert_int_equal(w.target.wait_ms, 0);
}

static void without_a_check_only_the_link_counts(void **state)
{
	struct world w = world_of(BACKEND_DOWN);

	w.target.n_probes = 0;
	go(&w, true, false);
	assert_int_equal(w.backend.health.state, BACKEND_UP);
	assert_false(w.backend.health.known);
	w.old_backend.health.cut = true;
	go(&w, true, false);
	assert_int_equal(w.backend.health.state, BACKEND_DOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(previous_targets_are_continued_as_they_are),
		cmocka_unit_test(the_file_of_the_previous_agent_is_continued),
		cmocka_unit_test(the_kernel_counts_where_it_differs_from_the_file),
		cmocka_unit_test(a_drain_is_no_health),
		cmocka_unit_test(a_new_backend_waits_for_its_first_check),
		cmocka_unit_test(one_that_is_not_up_does_not_wait),
		cmocka_unit_test(without_a_check_only_the_link_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
