// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/lb_plan.c: refused plans, the effect of --force, warnings.
#include "tests/unit/table/served.h"

// ---- what moves every connection ----------------------------------------------------------------

#define FORCE "--force moves all of its connections"

static void begins_anew(struct made *m, const struct lb_state *running)
{
	struct lb_plan_options o = served_options(running);
	struct lb_ids before = {0};
	CLEANUP_LB_STATE struct lb_state *b = NULL;

	o.force = true;
	b = served_plan_with(m, &o);
	lb_ids_of(running, &before);
	assert_false(lb_ids_has(&before, b->services[0].id));
	assert_int_equal(b->services[0].n_members, 2);
	assert_int_equal(b->services[0].hold, 1);
	for (size_t i = 0; i < 2; i++) {
		assert_false(lb_ids_has(&before, b->members[i].id));
		assert_int_equal(b->members[i].health, running->members[i].health);
		assert_int_equal(b->members[i].override, running->members[i].override);
		assert_int_equal(b->members[i].until_s, running->members[i].until_s);
	}
	for (size_t i = 0; i < b->n_slots; i++)
		assert_int_equal(b->slots[i], slot_pack(b->members[0].id, BACKEND_NONE, 0));
}

static void refused(void (*change)(struct made *), const char *message)
{
	struct made m;
	struct lb_plan_options o;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL;

	SERVED_ONE(&m, 0, 1, 2);
	a = served_plan(&m, NULL);
	served_find(a, 0, 1)->override = BACKEND_DRAIN;
	served_find(a, 0, 1)->until_s = SERVED_WALL + 1;
	a->services[0].hold = 8;
	o = served_options(a);
	m.r.services[0].n_backends = 2;
	change(&m);
	for (int again = 0; again < 2; again++) // also when d has the sentence already
		assert_int_equal(lb_plan(&m.r, &o, m.diag, &b), -EINVAL);
	assert_null(b);
	assert_int_equal(diag_errors(m.diag), 1);
	assert_true(served_says(&m, DIAG_ERROR, 1, message, FORCE));
	begins_anew(&m, a);
	made_free(&m);
}

static void another_seed(struct made *m)
{
	m->r.seed = "";
}

static void another_hash(struct made *m)
{
	m->r.services[0].hash_source = true;
}

static void another_size(struct made *m)
{
	m->r.services[0].ring = 8191;
}

static void another_mode(struct made *m)
{
	m->r.services[0].mode = SERVICE_GUE;
}

static void test_refused(void **state)
{
	refused(another_seed, "service 'web' runs with a different seed");
	refused(another_hash, "service 'web' runs with a different hash: tuple");
	refused(another_size, "service 'web' runs with a different ring size: 4093");
	refused(another_mode, "service 'web' runs in a different mode: dr");
}

// The key of the instance differs: without `seed` it is the key of the service.
static void test_refused_key(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL;

	SERVED_ONE(&m, 0);
	a = served_plan(&m, NULL);
	for (int word = 0; word < 2; word++) {
		struct lb_plan_options o = served_options(a);

		o.key.word[word] ^= 1ull << 63;
		assert_int_equal(lb_plan(&m.r, &o, m.diag, &b), -EINVAL);
	}
	assert_true(
		served_says(&m, DIAG_ERROR, 1, "service 'web' runs with a different seed", FORCE));
	made_free(&m);
}

// Each service and each difference has its own error; another name is another service.
static void test_refused_many(void **state)
{
	struct made m;
	struct lb_plan_options o;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL;

	served_init(&m, 3);
	served_add(&m, "a", 1);
	served_add(&m, "b", 1);
	served_add(&m, "c", 1);
	a = served_plan(&m, NULL);
	o = served_options(a);
	m.r.services[0].mode = SERVICE_IPIP;
	m.r.services[0].hash_source = true;
	m.r.services[1].name = "other";
	m.r.services[1].mode = SERVICE_IPIP;
	m.r.services[2].ring = 8191;
	assert_int_equal(lb_plan(&m.r, &o, m.diag, &b), -EINVAL);
	assert_int_equal(diag_errors(m.diag), 3);
	assert_true(
		served_says(&m, DIAG_ERROR, 1, "service 'a' runs in a different mode: dr", FORCE));
	assert_true(served_says(&m, DIAG_ERROR, 1, "service 'a' runs with a different hash: tuple",
				FORCE));
	assert_true(served_says(&m, DIAG_ERROR, 3,
				"service 'c' runs with a different ring size: 4093", FORCE));
	made_free(&m);
}

// ---- pins ---------------------------------------------------------------------------------------

static const char kept[] = "service 'web' keeps its 1024 pins, which connections still use";

static void test_pins(void **state)
{
	struct made m;
	struct lb_plan_options o;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL, *c = NULL;
	static const bool pinned[] = {false, true}, not_pinned[] = {true, false};

	served_init(&m, 2);
	served_add(&m, "a", 1);
	served_add(&m, "web", 1);
	a = served_plan(&m, NULL);
	o = served_options(a);
	o.pinned = pinned; // by running service: "web" is the second
	m.r.services[0] = m.r.services[1];
	m.r.n_services = 1;
	b = served_plan_with(&m, &o);
	assert_int_equal(served_warnings(&m), 0);
	lb_state_free(TAKE_PTR(b));
	m.r.services[0].pins = 2048;
	o.pinned = not_pinned;
	b = served_plan_with(&m, &o);
	assert_int_equal(b->services[0].buckets, 256);
	assert_int_equal(served_warnings(&m), 0);
	o.pinned = pinned;
	c = served_plan_with(&m, &o);
	assert_int_equal(c->services[0].buckets, 128);
	assert_true(
		served_says(&m, DIAG_WARNING, 2, kept, "apply it again when its ring is stable"));
	made_free(&m);
}

// The policy has no number: the default follows the number of services.
static void test_pins_by_default(void **state)
{
	struct made m;
	struct lb_plan_options o;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL;
	static const bool pinned[] = {true};

	SERVED_ONE(&m, 0);
	a = served_plan(&m, NULL);
	o = served_options(a);
	o.pinned = pinned;
	m.r.services[0].pins = 2048;
	m.r.services[0].pins_given = false;
	b = served_plan_with(&m, &o);
	assert_int_equal(b->services[0].buckets, 128);
	assert_int_equal(served_warnings(&m), 0);
	made_free(&m);
}

// A flow may be pinned after the pins were read and before the switch.
static void test_pins_of_changing(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL;

	SERVED_ONE(&m, 0);
	a = served_plan(&m, NULL);
	a->slots[SERVED_SIZE - 1] = slot_pack(a->members[0].id, 77, slot_time(SERVED_NOW));
	m.r.services[0].pins = 2048;
	b = served_plan(&m, a);
	assert_int_equal(b->services[0].buckets, 128);
	assert_true(
		served_says(&m, DIAG_WARNING, 1, kept, "apply it again when its ring is stable"));
	made_free(&m);
}

// The previous ring looks for flows of the trial among its pins.
static void test_pins_on_trial(void **state)
{
	struct made m;
	struct lb_plan_options o;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL;

	SERVED_ONE(&m, 0);
	a = served_plan(&m, NULL);
	o = served_options(a);
	o.trial = true;
	m.r.services[0].pins = 2048;
	b = served_plan_with(&m, &o);
	assert_int_equal(b->services[0].buckets, 128);
	assert_true(served_says(&m, DIAG_WARNING, 1, kept, "apply it again after it is confirmed"));
	made_free(&m);
}

// ---- shares -------------------------------------------------------------------------------------

static void test_share(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	struct resolved_service *s = SERVED_ONE(&m, 0, 1, 3, 2);

	served_at(s, 0)->weight = served_at(s, 3)->weight = served_at(s, 1)->weight = 1000;
	served_at(s, 2)->weight = 4; // 5.45 of 4093 slots: gets 5
	b = served_plan(&m, NULL);
	assert_true(
		served_says(&m, DIAG_WARNING, 1,
			    "service 'web': the share of backend '2001:db8::4' is off by 8.26 %",
			    "a larger 'ring' gives finer shares"));
	assert_int_equal(served_warnings(&m), 1);
	made_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),          cmocka_unit_test(test_refused_key),
		cmocka_unit_test(test_refused_many),     cmocka_unit_test(test_pins),
		cmocka_unit_test(test_pins_of_changing), cmocka_unit_test(test_pins_on_trial),
		cmocka_unit_test(test_pins_by_default),  cmocka_unit_test(test_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
