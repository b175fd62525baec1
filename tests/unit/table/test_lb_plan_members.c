// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/lb_plan.c: removed and returning backends, overrides, numbers.
#include "tests/unit/table/served.h"

// ---- added, removed, added again ----------------------------------------------------------------

static struct lb_state *replanned(const uint32_t *backends, size_t n,
				  const struct lb_state *running, const struct lb_plan_options *o)
{
	struct made m;
	struct lb_state *b;

	served_one(&m, backends, n);
	b = o ? served_plan_with(&m, o) : served_plan(&m, running);
	made_free(&m);
	return b;
}
#define REPLANNED(running, o, ...)                                                                \
	replanned((const uint32_t[]){__VA_ARGS__}, ARRAY_SIZE(((const uint32_t[]){__VA_ARGS__})), \
		  running, o)

static void test_added(void **state)
{
	CLEANUP_LB_STATE struct lb_state *a = REPLANNED(NULL, NULL, 0, 1, 2);
	CLEANUP_LB_STATE struct lb_state *b = REPLANNED(a, NULL, 0, 3, 1, 2);
	struct lb_ids new;

	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(served_id(b, i), served_id(a, i));
	lb_ids_new(b, a, &new);
	for (uint32_t id = 0; id < SERVICE_BACKENDS; id++)
		assert_int_equal(lb_ids_has(&new, id), id == served_id(b, 3));
	for (size_t i = 0; i < b->n_slots; i++) {
		uint32_t was = slot_owner(a->slots[i]), is = slot_owner(b->slots[i]);

		assert_int_equal(b->slots[i], was == is
						      ? a->slots[i]
						      : slot_pack(is, was, slot_time(SERVED_NOW)));
	}
	assert_in_range(served_owned(b, 0, 3), SERVED_SIZE / 4, SERVED_SIZE / 4 + 1);
}

static void test_gone(void **state)
{
	CLEANUP_LB_STATE struct lb_state *a = REPLANNED(NULL, NULL, 0, 1, 2), *b = NULL, *c = NULL;
	CLEANUP_LB_STATE struct lb_state *d = NULL;
	struct lb_member *gone;

	served_find(a, 0, 1)->health = BACKEND_DOWN;
	b = REPLANNED(a, NULL, 2, 0);
	assert_int_equal(b->n_members, 3);
	gone = &b->members[2]; // after the others
	assert_ptr_equal(gone, served_find(b, 0, 1));
	assert_int_equal(gone->id, served_id(a, 1));
	assert_int_equal(gone->gone, 1);
	assert_int_equal(gone->health, BACKEND_DOWN);
	assert_int_equal(served_owned(b, 0, 1), 0);
	// A removed backend stays as long as a slot names it.
	served_settle(b);
	b->slots[5] = slot_pack(slot_owner(b->slots[5]), gone->id, 1);
	c = REPLANNED(b, NULL, 0, 2);
	assert_non_null(served_find(c, 0, 1));
	served_settle(c);
	d = REPLANNED(c, NULL, 0, 2);
	assert_null(served_find(d, 0, 1));
	assert_int_equal(d->services[0].n_members, 2);
	assert_int_equal(d->n_members, 2);
}

// A connection of nat can begin until the switch: a removed backend stays once more, whatever names
// it. Slots change at once, because a connection has its backend in its place.
static void test_gone_of_nat(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL, *c = NULL;
	struct lb_plan_options o;

	SERVED_ONE(&m, 0, 1);
	m.r.services[0].mode = SERVICE_NAT;
	m.r.services[0].pins = 0;
	a = served_plan(&m, NULL);
	assert_int_equal(a->services[0].buckets, 1); // an array needs an element
	assert_int_equal(lb_state_pin_bytes(a), 0);
	m.r.services[0].n_backends = 1;
	b = served_plan(&m, a);
	assert_int_equal(b->n_members, 2);
	assert_true(served_find(b, 0, 1)->gone);
	for (size_t i = 0; i < b->n_slots; i++)
		assert_int_equal(b->slots[i], slot_pack(served_id(b, 0), BACKEND_NONE, 0));
	o = served_options(b);
	o.trial = true;
	c = served_plan_with(&m, &o);
	assert_int_equal(c->n_members, 2);
	lb_state_free(TAKE_PTR(c));
	c = served_plan(&m, b);
	assert_int_equal(c->n_members, 1);
	made_free(&m);
}

static void test_back_again(void **state)
{
	CLEANUP_LB_STATE struct lb_state *a = REPLANNED(NULL, NULL, 0, 1, 2);
	CLEANUP_LB_STATE struct lb_state *b = REPLANNED(a, NULL, 0, 2);
	CLEANUP_LB_STATE struct lb_state *c = REPLANNED(b, NULL, 1, 0, 2), *d = NULL, *e = NULL;

	assert_int_equal(served_id(c, 1), served_id(a, 1));
	assert_false(served_find(c, 0, 1)->gone);
	for (size_t i = 0; i < c->n_slots; i++)
		assert_int_equal(slot_owner(c->slots[i]), slot_owner(a->slots[i]));
	// A forgotten backend gets a new number.
	served_settle(b);
	d = REPLANNED(b, NULL, 0, 2);
	e = REPLANNED(d, NULL, 0, 1, 2);
	assert_int_equal(served_id(e, 0), served_id(a, 0));
	assert_true(served_id(e, 1) != BACKEND_NONE && served_find(d, 0, 1) == NULL);
	assert_true(served_id(e, 1) != served_id(e, 0) && served_id(e, 1) != served_id(e, 2));
}

static void test_busy(void **state)
{
	CLEANUP_LB_STATE struct lb_state *a = REPLANNED(NULL, NULL, 0, 1, 2);
	CLEANUP_LB_STATE struct lb_state *b = REPLANNED(a, NULL, 0), *c = NULL;
	struct lb_plan_options o = served_options(b);
	struct lb_ids busy = {0};

	served_settle(b);
	lb_ids_add(&busy, served_id(b, 1));
	o.busy = &busy;
	c = REPLANNED(b, &o, 0);
	assert_int_equal(served_id(c, 1), served_id(b, 1));
	assert_true(served_find(c, 0, 1)->gone);
	assert_null(served_find(c, 0, 2));
}

// The previous ring stays in use: its backends stay, whatever the new one names.
static void test_trial(void **state)
{
	CLEANUP_LB_STATE struct lb_state *a = REPLANNED(NULL, NULL, 0, 1, 2);
	CLEANUP_LB_STATE struct lb_state *b = REPLANNED(a, NULL, 0), *trial = NULL, *c = NULL;
	struct lb_plan_options o = served_options(b);

	served_settle(b);
	c = REPLANNED(b, &o, 0);
	assert_null(served_find(c, 0, 1));
	o.trial = true;
	trial = REPLANNED(b, &o, 0);
	assert_true(served_find(trial, 0, 1)->gone && served_find(trial, 0, 2)->gone);
	assert_memory_equal(trial->slots, c->slots, c->n_slots * sizeof(*c->slots));
}

// A backend is known by address and port; port 0 is a port like any other.
static void test_ports(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL;
	struct resolved_service *s = SERVED_ONE(&m, 0, 0, 0);

	s->mode = SERVICE_NAT;
	served_at(s, 0)->port = 80;
	served_at(s, 1)->port = 81;
	a = served_plan(&m, NULL);
	served_at(s, 0)->port = 0;
	served_at(s, 2)->port = 80;
	b = served_plan(&m, a);
	assert_int_equal(b->n_members, 3);
	assert_int_equal(b->members[0].id, a->members[2].id);
	assert_int_equal(b->members[1].id, a->members[1].id);
	assert_int_equal(b->members[2].id, a->members[0].id);
	for (size_t i = 0; i < 3; i++)
		assert_in_range(served_owned_by(b, 0, b->members[i].id), SERVED_SIZE / 3,
				SERVED_SIZE / 3 + 1);
	served_at(s, 2)->addr.family = 6; // a00:1::
	lb_state_free(TAKE_PTR(a));
	a = served_plan(&m, b);
	assert_int_not_equal(a->members[2].id, b->members[2].id);
	made_free(&m);
}

// ---- overrides ----------------------------------------------------------------------------------

static void set(struct lb_member *m, uint8_t override, uint32_t weight, uint64_t until_s)
{
	m->override = override;
	m->weighed = 1;
	m->override_weight = weight;
	m->until_s = until_s;
}

static void test_override_goes_on(void **state)
{
	CLEANUP_LB_STATE struct lb_state *a = REPLANNED(NULL, NULL, 0, 1, 2, 3), *b = NULL;
	struct lb_override other = {.service = "web", .addr = served_addr(0), .state = 2};
	struct lb_plan_options o = served_options(a);

	o.overrides = &other; // not asked: it runs
	o.n_overrides = 1;
	set(served_find(a, 0, 0), BACKEND_UP, 3, SERVED_WALL + 1);
	set(served_find(a, 0, 1), BACKEND_DRAIN, 1, 0);
	set(served_find(a, 0, 2), BACKEND_DOWN, 1, SERVED_WALL); // expired, the weight has not
	set(served_find(a, 0, 3), BACKEND_DOWN, 0, SERVED_WALL);
	b = REPLANNED(a, &o, 0, 1, 2);
	assert_memory_equal(b->members, a->members, 2 * sizeof(*b->members));
	assert_int_equal(lb_member_state(&b->members[2]), BACKEND_UP);
	assert_int_equal(lb_member_weight(&b->members[2]), 1);
	assert_int_equal(b->members[2].until_s, 0);
	assert_int_equal(lb_member_state(&b->members[3]), BACKEND_DRAIN); // gone, and no more down
	assert_in_range(served_owned(b, 0, 0), 3069, 3070);               // weight 3 of 4
	assert_int_equal(served_owned(b, 0, 1), 0);
	assert_int_equal(a->members[2].override, BACKEND_DOWN); // `running` is only read
}

// A backend whose line was removed and added again: the override is what the file says, not what it
// was.
static void test_override_goes_with_the_line(void **state)
{
	struct lb_override kept = {
		.service = "web", .addr = served_addr(1), .state = BACKEND_DRAIN};
	CLEANUP_LB_STATE struct lb_state *a = REPLANNED(NULL, NULL, 0, 1, 2), *b = NULL, *c = NULL;
	CLEANUP_LB_STATE struct lb_state *d = NULL;
	struct lb_plan_options o;

	set(served_find(a, 0, 1), BACKEND_DRAIN, 5, 0);
	b = REPLANNED(a, NULL, 0, 2);
	assert_int_equal(served_find(b, 0, 1)->gone, 1);
	c = REPLANNED(b, NULL, 0, 1, 2);
	assert_int_equal(lb_member_state(served_find(c, 0, 1)), BACKEND_UP);
	assert_int_equal(lb_member_weight(served_find(c, 0, 1)), 1);
	assert_int_equal(served_id(c, 1), served_id(a, 1));
	o = served_options(b);
	o.overrides = &kept;
	o.n_overrides = 1;
	d = REPLANNED(b, &o, 0, 1, 2);
	assert_int_equal(lb_member_state(served_find(d, 0, 1)), BACKEND_DRAIN);
}

static void test_overrides(void **state)
{
	struct lb_override overrides[] = {
		{.service = "web",
		 .addr = served_addr(0),
		 .state = BACKEND_DRAIN,
		 .weighed = true,
		 .weight = 2,
		 .until_s = 1},
		{.service = "we", .addr = served_addr(0), .state = BACKEND_DOWN},
		{.service = "web", .addr = served_addr(0), .port = 1, .state = BACKEND_DOWN},
		{.service = "web",
		 .addr = served_addr(1),
		 .state = BACKEND_DRAIN,
		 .until_s = SERVED_WALL + 1},
		{.service = "web", .addr = served_addr(2), .weighed = true, .weight = 5},
	};
	struct lb_plan_options o = served_options(NULL);
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL;

	o.overrides = overrides;
	o.n_overrides = ARRAY_SIZE(overrides);
	a = REPLANNED(NULL, &o, 0, 1, 2);
	assert_int_equal(lb_member_state(&a->members[0]), BACKEND_UP);
	assert_int_equal(lb_member_weight(&a->members[0]), 2);
	assert_int_equal(lb_member_state(&a->members[1]), BACKEND_DRAIN);
	assert_int_equal(a->members[1].until_s, SERVED_WALL + 1);
	assert_int_equal(lb_member_weight(&a->members[2]), 5);
	assert_int_equal(served_owned(a, 0, 1), 0);
	o.running = b = REPLANNED(NULL, NULL, 0);
	lb_state_free(TAKE_PTR(a));
	a = REPLANNED(b, &o, 0, 1); // the second is new to a service that runs
	assert_int_equal(lb_member_state(&a->members[1]), BACKEND_DRAIN);
}

// ---- numbers ------------------------------------------------------------------------------------

static void test_numbers_rest(void **state)
{
	CLEANUP_LB_STATE struct lb_state *a = REPLANNED(NULL, NULL, 0, 1), *b = NULL;
	struct lb_plan_options o = served_options(a);
	struct lb_ids busy = {0};

	lb_ids_add(&busy, SERVICE_BACKENDS - 1); // the search goes over the end
	for (uint32_t id = 1; id < 200; id++)
		if (id % 3)
			lb_ids_add(&busy, id);
	o.busy = &busy;
	lb_ids_of(a, &busy);
	b = REPLANNED(a, &o, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
	for (uint32_t i = 2; i < 10; i++) {
		assert_true(served_id(b, i));
		assert_false(lb_ids_has(&busy, served_id(b, i)));
		lb_ids_add(&busy, served_id(b, i));
	}
	lb_state_free(TAKE_PTR(b));
	o.busy = NULL;
	a->members[0].id = 700;
	b = REPLANNED(a, &o, 0, 1, 2);
	assert_int_equal(served_id(b, 2), 701); // after the highest
}

// Backends that a trial adds are known to the previous ring, which has as many.
static void test_numbers_of_a_trial(void **state)
{
	CLEANUP_LB_STATE struct lb_state *a = REPLANNED(NULL, NULL, 0), *b = NULL, *c = NULL;
	struct lb_plan_options o = served_options(a);
	struct lb_ids busy = {0};
	struct made m;

	a->members[0].id = 7; // the search goes over the end of 8 rows
	lb_ids_add(&busy, 3);
	o.busy = &busy;
	o.trial = true;
	o.room = 8;
	b = REPLANNED(a, &o, 0, 1, 2, 3); // but for service, slots, member, pin
	for (uint32_t i = 1; i < 4; i++)
		assert_in_range(served_id(b, i), 4, 6);
	SERVED_ONE(&m, 0, 1, 2, 3, 4);
	assert_int_equal(lb_plan(&m.r, &o, m.diag, &c), -EINVAL);
	assert_true(served_says(&m, DIAG_ERROR, 1,
				"service 'web': a trial has only as many numbers for "
				"services and backends as the 7 of the active policy",
				"apply it without --confirm to make room for the next trial"));
	o.room = 0;
	c = served_plan_with(&m, &o);
	made_free(&m);
	assert_in_range(served_id(c, 4), 8, SERVICE_BACKENDS - 1);
}

static void test_numbers_run_out(void **state)
{
	struct made m;
	struct lb_plan_options o = served_options(NULL);
	struct lb_ids busy;
	struct lb_state *b = NULL;

	memset(&busy, 0xff, sizeof(busy));
	busy.bits[3] = ~0x70ull; // three are left: 196, 197, 198
	o.busy = &busy;
	served_init(&m, 3);
	served_add(&m, "web", 2);
	b = served_plan_with(&m, &o);
	assert_int_equal(b->services[0].id + b->members[0].id + b->members[1].id, 591);
	lb_state_free(TAKE_PTR(b));
	served_add(&m, "more", 2);
	served_add(&m, "still more", 2);
	assert_int_equal(lb_plan(&m.r, &o, m.diag, &b), -EINVAL);
	assert_null(b);
	assert_int_equal(diag_errors(m.diag), 1);
	assert_true(served_says(
		&m, DIAG_ERROR, 2,
		"service 'more': all 16383 numbers for services and backends are in use",
		"the numbers of removed backends become free when their connections end"));
	made_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_added),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_gone_of_nat),
		cmocka_unit_test(test_back_again),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_trial),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_override_goes_on),
		cmocka_unit_test(test_overrides),
		cmocka_unit_test(test_override_goes_with_the_line),
		cmocka_unit_test(test_numbers_rest),
		cmocka_unit_test(test_numbers_of_a_trial),
		cmocka_unit_test(test_numbers_run_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
