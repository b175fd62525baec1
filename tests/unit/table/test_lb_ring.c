// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/lb_ring.c: rings that change with their members, figures, time.
#include "tests/unit/table/served.h"

#include <time.h>

// ---- active rings -------------------------------------------------------------------------------

static void test_change(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	uint32_t share;
	bool empty;

	SERVED_ONE(&m, 0, 1, 2, 3);
	b = served_plan(&m, NULL);
	share = served_owned(b, 0, 1);
	assert_in_range(share, SERVED_SIZE / 4, SERVED_SIZE / 4 + 1);
	assert_int_equal(lb_service_change(b, 0, SERVED_NOW, SERVED_HZ, &empty), 0);
	assert_false(empty);
	served_find(b, 0, 1)->override = BACKEND_DRAIN;
	assert_in_range(lb_service_change(b, 0, SERVED_NOW, SERVED_HZ, &empty), share, 2 * share);
	assert_int_equal(served_owned(b, 0, 1), 0);
	for (size_t i = 0; i < b->n_slots; i++)
		assert_true(!slot_former(b->slots[i]) ||
			    slot_since(b->slots[i]) == slot_time(SERVED_NOW));
	served_find(b, 0, 2)->weighed = 1; // weight 0
	lb_service_change(b, 0, SERVED_NOW, SERVED_HZ, &empty);
	assert_int_equal(served_owned(b, 0, 2), 0);
	assert_int_equal(served_owned(b, 0, 0) + served_owned(b, 0, 3), SERVED_SIZE);
	made_free(&m);
}

// The state for packets: a backend without new flows is drained, for whatever reason.
static void test_states(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	uint8_t states[8];

	SERVED_ONE(&m, 0, 1, 2, 3, 4, 5);
	b = served_plan(&m, NULL);
	served_find(b, 0, 1)->override = BACKEND_DRAIN;
	served_find(b, 0, 2)->weighed = 1; // weight 0
	served_find(b, 0, 3)->backup = 1;
	served_find(b, 0, 4)->health = BACKEND_DOWN;
	served_find(b, 0, 5)->gone = 1;
	lb_member_states(b, &b->services[0], states);
	assert_int_equal(states[0], BACKEND_UP);
	assert_int_equal(states[1], BACKEND_DRAIN);
	assert_int_equal(states[2], BACKEND_DRAIN);
	assert_int_equal(states[3], BACKEND_DRAIN); // not needed
	assert_int_equal(states[4], BACKEND_DOWN);
	assert_int_equal(states[5], BACKEND_DRAIN);
	served_find(b, 0, 0)->health = BACKEND_DOWN;
	lb_member_states(b, &b->services[0], states);
	assert_int_equal(states[0], BACKEND_DOWN);
	assert_int_equal(states[3], BACKEND_UP);
	made_free(&m);
}

// Connections that would be lost by a new start.
static void test_loss(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	struct lb_service_loss loss;
	struct ring_rules rules;
	bool empty;

	SERVED_ONE(&m, 0, 1, 2);
	b = served_plan(&m, NULL);
	rules = lb_service_rules(&b->services[0], SERVED_NOW, SERVED_HZ);
	lb_service_loss(b, &b->services[0], SERVED_NOW, SERVED_HZ, &loss);
	assert_true(!loss.unsettled && !loss.other && !loss.jiffies);
	served_find(b, 0, 1)->override = BACKEND_DRAIN;
	lb_service_loss(b, &b->services[0], SERVED_NOW, SERVED_HZ, &loss);
	assert_true(!loss.unsettled &&
		    loss.other >= SERVED_SIZE / 3); // the ring has not been changed
	lb_service_change(b, 0, SERVED_NOW, SERVED_HZ, &empty);
	lb_service_loss(b, &b->services[0], SERVED_NOW, SERVED_HZ, &loss);
	assert_true(loss.unsettled >= SERVED_SIZE / 3 && !loss.other);
	assert_in_range(loss.jiffies, (uint64_t)rules.hold_ticks << SERVICE_SLOT_SHIFT,
			((uint64_t)rules.hold_ticks + 1) << SERVICE_SLOT_SHIFT);
	lb_service_loss(b, &b->services[0], SERVED_NOW + loss.jiffies, SERVED_HZ, &loss);
	assert_true(loss.unsettled >= SERVED_SIZE / 3 && !loss.jiffies); // pins only
	served_find(b, 0, 0)->override = BACKEND_DOWN;
	served_find(b, 0, 2)->weighed = 1; // weight 0: the ring is kept
	lb_service_loss(b, &b->services[0], SERVED_NOW, SERVED_HZ, &loss);
	assert_int_equal(loss.unsettled + loss.other, SERVED_SIZE);
	made_free(&m);
}

static void test_nobody_counts(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	uint64_t before[SERVED_SIZE];
	bool empty = false;

	SERVED_ONE(&m, 0, 1, 2);
	b = served_plan(&m, NULL);
	memcpy(before, b->slots, sizeof(before));
	served_find(b, 0, 0)->override = BACKEND_DOWN;
	served_find(b, 0, 1)->override = BACKEND_DRAIN;
	served_find(b, 0, 2)->weighed = 1;
	assert_int_equal(lb_service_change(b, 0, SERVED_NOW, SERVED_HZ, &empty), 0);
	assert_true(empty);
	assert_memory_equal(b->slots, before, sizeof(before));
	made_free(&m);
}

// Removed members are not in the ring, even 1024 besides 1024 of the policy.
static void test_change_beside_gone(void **state)
{
	struct made m;
	struct lb_plan_options o;
	CLEANUP_LB_STATE struct lb_state *first = NULL, *b = NULL;
	struct resolved_service *s;
	bool empty;

	served_init(&m, 1);
	s = served_add(&m, "web", 1024);
	first = served_plan(&m, NULL);
	o = served_options(first);
	o.trial = true;
	for (uint32_t i = 0; i < 1024; i++)
		served_backend(s, i, 1024 + i);
	b = served_plan_with(&m, &o);
	assert_int_equal(b->services[0].n_members, 2048);
	served_find(b, 0, 1024)->override = BACKEND_DOWN;
	assert_in_range(lb_service_change(b, 0, SERVED_NOW, SERVED_HZ, &empty), 1, SERVED_SIZE);
	assert_false(empty);
	assert_int_equal(served_owned(b, 0, 1024), 0);
	made_free(&m);
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

// A backend of many services fails.
static void test_change_time(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	size_t changed = 0;
	double took;
	bool empty;

	served_init(&m, 100);
	for (size_t i = 0; i < 100; i++) {
		char *name = made_alloc(&m, 8, 1);

		snprintf(name, 8, "s%zu", i);
		served_add(&m, name, 20)->ring = 16381;
	}
	b = served_plan(&m, NULL);
	took = cpu_ms();
	for (size_t i = 0; i < 100; i++) {
		served_find(b, i, 7)->health = BACKEND_DOWN;
		changed += lb_service_change(b, i, SERVED_NOW, SERVED_HZ, &empty);
	}
	took = cpu_ms() - took;
	print_message("100 services: %zu slots changed in %.1f ms\n", changed, took);
	assert_in_range(changed, 100 * (16381 / 20), 300 * (16381 / 20));
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(served_owned(b, i, 7), 0);
	made_free(&m);
}

// ---- figures ------------------------------------------------------------------------------------

static uint64_t fingerprint(const struct lb_state *b)
{
	struct lb_service_figures f;

	lb_service_figures(b, &b->services[0], SERVED_NOW, SERVED_HZ, &f);
	return f.fingerprint;
}

// docs/ring.md, "Test vectors": three backends, weights 1, 2, 3. Removed ones have no effect.
static void test_fingerprint(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *b = NULL, *left = NULL, *fresh = NULL;
	struct resolved_service *s = SERVED_ONE(&m, 2, 0, 1);

	served_at(s, 0)->weight = 3;
	served_at(s, 2)->weight = 2;
	b = served_plan(&m, NULL);
	assert_int_equal(fingerprint(b), 0x0413847a443177aa);
	served_find(b, 0, 0)->health = BACKEND_DRAIN;
	assert_int_not_equal(fingerprint(b), 0x0413847a443177aa);
	served_find(b, 0, 0)->health = BACKEND_UP;
	served_find(b, 0, 1)->weighed = 1;
	assert_int_not_equal(fingerprint(b), 0x0413847a443177aa);
	s->n_backends = 2;
	left = served_plan(&m, b);
	fresh = served_plan(&m, NULL);
	assert_int_equal(left->services[0].n_members, 3);
	assert_int_equal(fresh->services[0].n_members, 2);
	assert_int_equal(fingerprint(left), fingerprint(fresh));
	made_free(&m);
}

// The share of a returning backend grows by sixteenths, even if weights are small.
static void test_ramp(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	bool empty;

	SERVED_ONE(&m, 0, 1, 2);
	b = served_plan(&m, NULL);
	for (uint8_t has = 1; has <= LB_RAMP; has++) {
		uint32_t exact = (uint32_t)SERVED_SIZE * has / (2 * LB_RAMP + has);

		served_find(b, 0, 1)->missing = (uint8_t)(LB_RAMP - has);
		lb_service_change(b, 0, SERVED_NOW, SERVED_HZ, &empty);
		assert_false(empty);
		assert_in_range(served_owned(b, 0, 1), exact, exact + 1);
	}
	served_find(b, 0, 1)->missing = 8;
	served_find(b, 0, 0)->weighed =
		1; // the greatest weight has no room for sixteen times as much
	served_find(b, 0, 0)->override_weight = 65535;
	lb_service_change(b, 0, SERVED_NOW, SERVED_HZ, &empty);
	assert_false(empty);
	assert_true(served_owned(b, 0, 0) > SERVED_SIZE - 3);
	made_free(&m);
}

// The fingerprint of the configuration does not change with states, commands and ramps.
static void test_configuration(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	struct lb_service_figures before, after;

	SERVED_ONE(&m, 0, 1, 2);
	b = served_plan(&m, NULL);
	lb_service_figures(b, b->services, SERVED_NOW, SERVED_HZ, &before);
	assert_int_equal(before.fingerprint, before.configuration);
	served_find(b, 0, 0)->health = BACKEND_FAILING;
	served_find(b, 0, 1)->override = BACKEND_DRAIN;
	served_find(b, 0, 2)->weighed = 1;
	served_find(b, 0, 2)->override_weight = 7;
	lb_service_figures(b, b->services, SERVED_NOW, SERVED_HZ, &after);
	assert_int_equal(after.configuration, before.configuration);
	assert_int_not_equal(after.fingerprint, before.fingerprint);
	before = after;
	served_find(b, 0, 2)->weighed = 0;
	served_find(b, 0, 2)->missing = 3;
	lb_service_figures(b, b->services, SERVED_NOW, SERVED_HZ, &after);
	assert_int_not_equal(after.fingerprint, before.fingerprint);
	served_find(b, 0, 2)->weight = 2;
	lb_service_figures(b, b->services, SERVED_NOW, SERVED_HZ, &after);
	assert_int_not_equal(after.configuration, before.configuration);
	made_free(&m);
}

static void test_figures(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	struct lb_service_figures f;
	uint64_t old;

	SERVED_ONE(&m, 0, 1);
	b = served_plan(&m, NULL);
	old = slot_time(SERVED_NOW) - lb_service_rules(b->services, SERVED_NOW, 250).hold_ticks - 1;
	b->slots[0] = slot_pack(served_id(b, 0), served_id(b, 1), slot_time(SERVED_NOW));
	b->slots[1] = slot_pack(served_id(b, 0), served_id(b, 0), slot_time(SERVED_NOW));
	b->slots[2] = slot_pack(served_id(b, 1), served_id(b, 0), old);
	lb_service_figures(b, &b->services[0], SERVED_NOW, SERVED_HZ, &f);
	assert_int_equal(f.changing, 1);
	assert_int_equal(f.pins_only, 2);
	assert_int_equal(f.stable, SERVED_SIZE - 3);
	assert_in_range(f.share_error, 200, 3000); // 2046 and 2047 of 4093, about
	for (uint32_t i = 0; i < SERVED_SIZE; i++)
		b->slots[i] = slot_pack(served_id(b, 0), 0, 0);
	lb_service_figures(b, &b->services[0], SERVED_NOW, SERVED_HZ, &f);
	assert_int_equal(f.share_error, 1000000);
	assert_int_equal(served_owned(b, 0, 0), SERVED_SIZE);
	served_find(b, 0, 0)->override = BACKEND_DOWN;
	served_find(b, 0, 1)->override = BACKEND_DOWN;
	lb_service_figures(b, &b->services[0], SERVED_NOW, SERVED_HZ, &f);
	assert_int_equal(f.share_error, 0);
	made_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_nobody_counts),
		cmocka_unit_test(test_change_beside_gone),
		cmocka_unit_test(test_change_time),
		cmocka_unit_test(test_fingerprint),
		cmocka_unit_test(test_ramp),
		cmocka_unit_test(test_configuration),
		cmocka_unit_test(test_figures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
