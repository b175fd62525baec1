// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/lb_due.h: the time of the next tidy of a balancer, without a kernel.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "ctl/control/lb_due.h"

#define HZ      1000u
#define IDLE_MS 60000u
#define NOW_S   1700000000ull
#define SLOTS   8
#define ONE     3
#define TWO     4

// The balancer: a service with two backends.
static struct {
	struct lb_state state;
	struct lb_service service;
	struct lb_member members[2];
	uint64_t slots[SLOTS];
	struct service_counter counter;
} balancer;
static struct clock present;

static struct lb_state *fake_state(struct lb_maps *l)
{
	return &balancer.state;
}

static int fake_counter(const struct lb_maps *l, uint32_t id, struct service_counter *ret,
			struct err *err)
{
	assert_int_equal(id, balancer.service.id);
	*ret = balancer.counter;
	return 0;
}

#define lb_maps_state   fake_state
#define lb_maps_counter fake_counter
#include "ctl/control/lb_due.c"

static int set_up(void **state)
{
	memset(&balancer, 0, sizeof(balancer));
	present = (struct clock){.jiffies = 500000000, .wall_ms = NOW_S * 1000, .hz = HZ};
	balancer.service = (struct lb_service){
		.name = "web",
		.size = SLOTS,
		.n_members = 2,
		.hold = 1,
		.idle_tcp = IDLE_MS,
		.idle_udp = IDLE_MS / 2,
		.id = 9,
		.pushed_at = present.jiffies,
	};
	balancer.members[0] =
		(struct lb_member){.addr = {10, 0, 0, 1}, .family = 4, .id = ONE, .weight = 1};
	balancer.members[1] =
		(struct lb_member){.addr = {10, 0, 0, 2}, .family = 4, .id = TWO, .weight = 1};
	for (size_t i = 0; i < SLOTS; i++)
		balancer.slots[i] = slot_pack(ONE, 0, 0);
	balancer.state = (struct lb_state){
		.services = &balancer.service,
		.n_services = 1,
		.members = balancer.members,
		.n_members = 2,
		.slots = balancer.slots,
		.n_slots = SLOTS,
	};
	return 0;
}

static struct lb_due due(void)
{
	struct lb_due d;

	assert_int_equal(lb_due(NULL, &present, &d, NULL), 0);
	return d;
}

static void nothing_to_do(void **state)
{
	CLEANUP_LB_DUE struct lb_due d = due();

	assert_true(d.tidy_ms == LB_DUE_NEVER && d.look_ms == LB_DUE_NEVER &&
		    d.walk_ms == LB_DUE_NEVER && !d.ended.n);
}

// Due after the longest idle, and not before the slot is in its next phase.
static void a_changing_slot(void **state)
{
	struct lb_due d;
	uint32_t hold_ticks = slot_ticks(IDLE_MS, 1);

	balancer.slots[5] = slot_pack(TWO, ONE, slot_time(present.jiffies - 10000));
	d = due();
	assert_true(d.tidy_ms >= IDLE_MS - 10000 && d.tidy_ms <= IDLE_MS - 10000 + 64);
	assert_int_equal(d.look_ms, IDLE_MS / 2);
	assert_true(d.walk_ms == LB_DUE_NEVER);
	present.jiffies += d.tidy_ms - 64;
	assert_int_equal(slot_phase(balancer.slots[5], present.jiffies, hold_ticks), SLOT_CHANGING);
	present.jiffies += 64;
	assert_int_equal(slot_phase(balancer.slots[5], present.jiffies, hold_ticks),
			 SLOT_PINS_ONLY);
	assert_int_equal(due().tidy_ms, 0); // to be written
}

static void a_trial_extends_it(void **state)
{
	struct lb_due d;

	balancer.slots[0] = slot_pack(TWO, ONE, slot_time(present.jiffies + 30000));
	d = due();
	assert_true(d.tidy_ms >= IDLE_MS + 30000 && d.tidy_ms <= IDLE_MS + 30000 + 64);
}

static void pins_only(void **state)
{
	struct lb_due d;

	balancer.slots[0] = slot_pack(TWO, TWO, slot_time(present.jiffies));
	d = due();
	assert_true(d.tidy_ms == LB_DUE_NEVER);
	assert_int_equal(d.walk_ms, IDLE_MS / 16);
	balancer.service.idle_tcp = 8 * 3600 * 1000;
	assert_int_equal(due().walk_ms, 60000);
	balancer.service.idle_tcp = balancer.service.idle_udp = 2000;
	assert_int_equal(due().walk_ms, 1000);
}

static void an_override_ends(void **state)
{
	CLEANUP_LB_DUE struct lb_due d = {0};

	balancer.members[1].override = BACKEND_DRAIN;
	assert_true(due().tidy_ms == LB_DUE_NEVER); // not by itself
	balancer.members[1].until_s = NOW_S + 7;
	assert_int_equal(due().tidy_ms, 7000);
	present.wall_ms += 6999;
	assert_int_equal(due().tidy_ms, 1);
	present.wall_ms += 1;
	d = due();
	assert_int_equal(d.tidy_ms, 0);
	assert_int_equal(d.ended.n, 1);
	assert_string_equal(d.ended.at[0], "the drain of 10.0.0.2 in web");
}

// Twice an idle while pins are evicted; an idle after the last one the hold may fall.
static void a_hold(void **state)
{
	balancer.counter.event[SERVICE_PUSHED_FOUND] = 5;
	assert_int_equal(due().tidy_ms, IDLE_MS / 2);
	present.jiffies += IDLE_MS / 2;
	assert_int_equal(due().tidy_ms, 0);
	balancer.service.pushed = 5;
	assert_true(due().tidy_ms == LB_DUE_NEVER);
	balancer.service.hold = 4;
	assert_int_equal(due().tidy_ms, IDLE_MS / 2);
	present.jiffies += IDLE_MS;
	assert_int_equal(due().tidy_ms, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_to_do, set_up),
		cmocka_unit_test_setup(a_changing_slot, set_up),
		cmocka_unit_test_setup(a_trial_extends_it, set_up),
		cmocka_unit_test_setup(pins_only, set_up),
		cmocka_unit_test_setup(an_override_ends, set_up),
		cmocka_unit_test_setup(a_hold, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
