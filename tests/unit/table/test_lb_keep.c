// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/lb_state.c: who gets new flows, in all combinations of what checks and
// commands say.
#include "tests/unit/table/served.h"

#define KEEP_HALF 5000

// Possible problems of a backend.
enum matter {
	WELL,
	FAILING,
	LOST, // its checks have failed for longer than `lost`
	CUT,
	DRAINED,
	DRAINED_FAILING,
	DOWN,
	GONE,
	WEIGHTLESS,
	WAITING, // new, and not checked yet
	MATTERS,
};

static struct lb_member member(enum matter matter, bool backup)
{
	struct lb_member m = {.family = 4, .backup = backup, .weight = 1};

	m.health = matter == FAILING || matter == DRAINED_FAILING ? BACKEND_FAILING
		   : matter == LOST || matter == CUT              ? BACKEND_DOWN
								  : BACKEND_UP;
	m.cut = matter == CUT;
	m.override = matter == DRAINED || matter == DRAINED_FAILING ? BACKEND_DRAIN
		     : matter == DOWN                               ? BACKEND_DOWN
								    : BACKEND_UP;
	m.gone = matter == GONE;
	m.waits = matter == WAITING ? SERVED_NOW : 0;
	if (matter == WEIGHTLESS)
		m.weight = 0;
	return m;
}

struct pool_case {
	struct lb_member m[4];
	enum matter matter[4];
	struct lb_service s;
	struct lb_state b;
	enum lb_flows flows;
	uint8_t states[4];
};

static void put(struct pool_case *c, size_t i, enum matter matter, bool backup)
{
	c->matter[i] = matter;
	c->m[i] = member(matter, backup);
	c->m[i].addr[0] = 10;
	c->m[i].addr[3] = (uint8_t)(i + 1);
	c->m[i].id = (uint16_t)(i + 1);
	c->m[i].failed = (uint32_t)i + 1; // the later ones failed later
}

static void decide(struct pool_case *c, uint32_t n, uint16_t keep)
{
	bool kept[4];

	c->s = (struct lb_service){.n_members = n, .keep = keep};
	c->b = (struct lb_state){
		.services = &c->s, .n_services = 1, .members = c->m, .n_members = n};
	c->flows = lb_service_keep(&c->b, &c->s, kept);
	lb_member_states(&c->b, &c->s, c->states);
}

static bool some_wait(const struct pool_case *c)
{
	for (unsigned i = 0; i < 4; i++)
		if (c->matter[i] == WAITING)
			return true;
	return false;
}

// Three backends and a backup: 0 to 3.
static unsigned those(const struct pool_case *c, bool backup, bool doubted)
{
	unsigned set = 0;

	for (unsigned i = backup ? 3 : 0; i < (backup ? 4u : 3u); i++)
		if (doubted ? c->matter[i] == FAILING || c->matter[i] == LOST
			    : c->matter[i] == WELL)
			set |= 1u << i;
	return set;
}

static unsigned served(const struct pool_case *c)
{
	unsigned set = 0;

	for (unsigned i = 0; i < c->s.n_members; i++)
		set |= (unsigned)(c->states[i] == BACKEND_UP) << i;
	return set;
}

// As weir-policy(5) says it, with `keep 0%`.
static unsigned wanted(const struct pool_case *c, enum lb_flows *ret_flows)
{
	unsigned well = those(c, false, false), backups = those(c, true, false);
	unsigned doubted = those(c, false, true), doubted_backups = those(c, true, true);

	*ret_flows = LB_FLOWS_UP;
	if (well || backups)
		return well ? well : backups;
	*ret_flows = LB_FLOWS_WAIT;
	if (some_wait(c))
		return 0;
	*ret_flows = doubted || doubted_backups ? LB_FLOWS_OPEN : LB_FLOWS_LAST;
	return doubted ? doubted : doubted_backups;
}

static unsigned count(unsigned set)
{
	return (unsigned)__builtin_popcount(set);
}

// The least of the doubted, the last ones first, which make half of the weight.
static unsigned wanted_half(const struct pool_case *c)
{
	enum lb_flows flows;
	unsigned set = wanted(c, &flows), doubted = those(c, false, true);
	unsigned all = count(set | doubted);

	if (flows != LB_FLOWS_UP || those(c, true, false))
		return set;
	for (unsigned i = 3; i-- && count(set) * 2 < all;)
		set |= doubted & 1u << i;
	return set;
}

static void test_all_combinations(void **state)
{
	for (unsigned n = 0; n < MATTERS * MATTERS * MATTERS * MATTERS; n++) {
		struct pool_case c = {0};
		enum lb_flows flows;
		unsigned left = n;

		for (size_t i = 0; i < 4; i++, left /= MATTERS)
			put(&c, i, (enum matter)(left % MATTERS), i == 3);
		decide(&c, 4, 0);
		assert_int_equal(served(&c), wanted(&c, &flows));
		assert_int_equal(c.flows, flows);
		decide(&c, 4, KEEP_HALF);
		assert_int_equal(served(&c), wanted_half(&c));
		assert_int_equal(c.flows, flows);
	}
}

static void test_dead_ones_of_three(void **state)
{
	static const struct {
		enum matter at[4];
		uint16_t keep;
		unsigned served; // a bit for each
		enum lb_flows flows;
	} cases[] = {
		{{FAILING, WELL, WELL, GONE}, 0, 0x6, LB_FLOWS_UP},
		{{FAILING, FAILING, WELL, GONE}, 0, 0x4, LB_FLOWS_UP},
		{{FAILING, FAILING, FAILING, GONE}, 0, 0x7, LB_FLOWS_OPEN},
		{{FAILING, FAILING, WELL, WELL}, 0, 0x4, LB_FLOWS_UP}, // and a backup
		{{FAILING, FAILING, FAILING, WELL}, 0, 0x8, LB_FLOWS_UP},
		{{FAILING, FAILING, FAILING, FAILING}, 0, 0x7, LB_FLOWS_OPEN},
		{{FAILING, FAILING, WELL, GONE}, KEEP_HALF, 0x6, LB_FLOWS_UP},
		{{FAILING, FAILING, WELL, WELL}, KEEP_HALF, 0x4, LB_FLOWS_UP},
		{{FAILING, DRAINED, WELL, GONE}, 0, 0x4, LB_FLOWS_UP},
		{{FAILING, DRAINED, LOST, GONE}, 0, 0x5, LB_FLOWS_OPEN},
		{{DRAINED, DRAINED, FAILING, GONE}, 0, 0x4, LB_FLOWS_OPEN},
		{{DOWN, DRAINED, FAILING, WELL}, 0, 0x8, LB_FLOWS_UP},
		{{CUT, CUT, FAILING, GONE}, 0, 0x4, LB_FLOWS_OPEN},
		{{CUT, CUT, CUT, GONE}, 0, 0, LB_FLOWS_LAST},
		{{DRAINED, DRAINED, DRAINED, GONE}, 0, 0, LB_FLOWS_LAST},
		{{DRAINED_FAILING, DOWN, DRAINED, GONE}, 0, 0, LB_FLOWS_LAST},
		{{DRAINED, DRAINED, DRAINED, FAILING}, 0, 0x8, LB_FLOWS_OPEN}, // a backup only
		{{WELL, WAITING, FAILING, GONE}, 0, 0x1, LB_FLOWS_UP},
		{{WAITING, WAITING, WAITING, GONE}, 0, 0, LB_FLOWS_WAIT},
		{{FAILING, WAITING, WAITING, GONE},
		 0,
		 0,
		 LB_FLOWS_WAIT}, // the others are checked now
		{{FAILING, WAITING, WAITING, WELL}, 0, 0x8, LB_FLOWS_UP},
	};

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		struct pool_case c = {0};

		for (size_t i = 0; i < 4; i++)
			put(&c, i, cases[n].at[i], i == 3);
		decide(&c, 4, cases[n].keep);
		assert_int_equal(served(&c), cases[n].served);
		assert_int_equal(c.flows, cases[n].flows);
	}
}

// With the weights of commands; a tie goes to the first.
static void test_keep_counts_weight(void **state)
{
	struct pool_case c = {0};

	put(&c, 0, WELL, false);
	put(&c, 1, FAILING, false);
	put(&c, 2, FAILING, false);
	c.m[0].weight = 10;
	decide(&c, 3, KEEP_HALF);
	assert_int_equal(served(&c), 0x1);
	c.m[2].weighed = 1;
	c.m[2].override_weight = 20;
	decide(&c, 3, KEEP_HALF);
	assert_int_equal(served(&c), 0x5);
	c.m[1].failed = c.m[2].failed;
	c.m[1].weight = 20;
	decide(&c, 3, 1000);
	assert_int_equal(served(&c), 0x1);
	decide(&c, 3, 2500);
	assert_int_equal(served(&c), 0x3);
	decide(&c, 3, 10000);
	assert_int_equal(served(&c), 0x7);
}

// The ring has what was decided, of three dead ones all three; the first that is well again has all
// slots.
static void test_rings(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	bool none;

	SERVED_ONE(&m, 0, 1, 2);
	b = served_plan(&m, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		served_find(b, 0, i)->health = BACKEND_FAILING;
		lb_service_change(b, 0, SERVED_NOW, SERVED_HZ, &none);
		assert_false(none);
		for (uint32_t k = 0; k < 3 && i < 2; k++)
			assert_int_equal(served_owned(b, 0, k) != 0, k > i);
	}
	for (uint32_t i = 0; i < 3; i++)
		assert_in_range(served_owned(b, 0, i), SERVED_SIZE / 3, SERVED_SIZE / 3 + 1);
	served_find(b, 0, 1)->health = BACKEND_UP;
	lb_service_change(b, 0, SERVED_NOW, SERVED_HZ, &none);
	assert_int_equal(served_owned(b, 0, 1), SERVED_SIZE);
	made_free(&m);
}

// A policy on trial has the members of the one before: those that it lacks are no last resort.
static void test_a_trial(void **state)
{
	struct made m, trial;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	CLEANUP_LB_STATE struct lb_state *on = NULL;
	struct lb_plan_options o;
	bool kept[3];

	SERVED_ONE(&m, 0, 1, 2);
	b = served_plan(&m, NULL);
	for (uint32_t i = 0; i < 3; i++)
		served_find(b, 0, i)->health = BACKEND_FAILING;
	SERVED_ONE(&trial, 0, 1)->keep = KEEP_HALF;
	o = served_options(b);
	o.trial = true;
	on = served_plan_with(&trial, &o);
	assert_int_equal(on->n_members, 3);
	assert_int_equal(lb_service_keep(on, on->services, kept), LB_FLOWS_OPEN);
	assert_true(kept[0] && kept[1] && !kept[2]);
	assert_int_equal(served_owned(on, 0, 2), 0);
	assert_int_equal(lb_service_keep(b, b->services, kept), LB_FLOWS_OPEN);
	assert_true(kept[0] && kept[1] && kept[2]);
	served_find(on, 0, 0)->health = BACKEND_UP;
	assert_int_equal(lb_service_keep(on, on->services, kept), LB_FLOWS_UP);
	assert_false(kept[0] || kept[1] || kept[2]); // half of the weight is up
	made_free(&m);
	made_free(&trial);
}

// An apply continues with what checks have found, and with its own `keep`.
static void test_an_apply(void **state)
{
	struct made m, again;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	CLEANUP_LB_STATE struct lb_state *next = NULL;

	SERVED_ONE(&m, 0, 1);
	b = served_plan(&m, NULL);
	served_find(b, 0, 1)->health = BACKEND_DOWN;
	served_find(b, 0, 1)->cut = 1;
	served_find(b, 0, 1)->failed = 77;
	SERVED_ONE(&again, 1, 2)->keep = 6000;
	next = served_plan(&again, b);
	assert_int_equal(next->services[0].keep, 6000);
	assert_true(served_find(next, 0, 1)->cut);
	assert_int_equal(served_find(next, 0, 1)->failed, 77);
	assert_int_equal(served_owned(next, 0, 1), 0); // a dead link is no matter of opinion
	made_free(&m);
	made_free(&again);
}

// A backend that is added while an agent runs waits for its first check; all others do not.
static void test_new_ones_wait(void **state)
{
	struct made m, more;
	CLEANUP_LB_STATE struct lb_state *a = NULL;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	CLEANUP_LB_STATE struct lb_state *c = NULL;
	struct lb_plan_options o = served_options(NULL);
	bool services[1] = {false}, none;

	SERVED_ONE(&m, 0, 1);
	a = served_plan(&m, NULL); // without an agent
	assert_int_equal(served_find(a, 0, 0)->waits, 0);
	served_find(a, 0, 1)->gone = 1;
	SERVED_ONE(&more, 0, 1, 2)->check.timeout_ms = 1000;
	o.agent = true;
	o.running = a;
	b = served_plan_with(&more, &o);
	assert_false(lb_member_waits(served_find(b, 0, 0)));
	assert_false(lb_member_waits(served_find(b, 0, 1))); // it is back
	assert_true(lb_member_waits(served_find(b, 0, 2)));
	assert_int_equal(served_owned(b, 0, 2), 0);
	assert_int_equal(served_find(b, 0, 2)->waits, SERVED_NOW + 4 * SERVED_HZ);
	o.running = b;
	c = served_plan_with(&more, &o); // an apply does not prolong it
	assert_int_equal(served_find(c, 0, 2)->waits, SERVED_NOW + 4 * SERVED_HZ);
	assert_int_equal(lb_state_end_waits(b, SERVED_NOW + 4 * SERVED_HZ - 1, services), 0);
	assert_false(services[0]);
	assert_int_equal(lb_state_end_waits(b, SERVED_NOW + 4 * SERVED_HZ, services), 1);
	assert_true(services[0]);
	lb_service_change(b, 0, SERVED_NOW, SERVED_HZ, &none);
	assert_in_range(served_owned(b, 0, 2), SERVED_SIZE / 3, SERVED_SIZE / 3 + 1);
	made_free(&m);
	made_free(&more);
}

// Three seconds at most, in which no backend has its flows; no warning that it has no backends.
static void test_a_new_service_waits(void **state)
{
	struct made m, unchecked;
	CLEANUP_LB_STATE struct lb_state *a = NULL;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	struct lb_plan_options o = served_options(NULL);

	SERVED_ONE(&m, 0, 1)->check.timeout_ms = 60000;
	o.agent = true;
	a = served_plan_with(&m, &o);
	assert_int_equal(served_find(a, 0, 0)->waits, SERVED_NOW + 3 * SERVED_HZ);
	assert_int_equal(served_owned_by(a, 0, BACKEND_NONE), SERVED_SIZE);
	assert_int_equal(served_warnings(&m), 0);
	SERVED_ONE(&unchecked, 0, 1)->check.kind = CHECK_NONE;
	o.running = a;
	b = served_plan_with(&unchecked, &o); // nothing will check it
	assert_false(lb_member_waits(served_find(b, 0, 0)));
	made_free(&m);
	made_free(&unchecked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_combinations),
		cmocka_unit_test(test_dead_ones_of_three),
		cmocka_unit_test(test_keep_counts_weight),
		cmocka_unit_test(test_rings),
		cmocka_unit_test(test_a_trial),
		cmocka_unit_test(test_an_apply),
		cmocka_unit_test(test_new_ones_wait),
		cmocka_unit_test(test_a_new_service_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
