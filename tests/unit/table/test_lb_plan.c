// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/lb_plan.c: new and kept services, their slots, time.
#include "tests/unit/table/served.h"

#include <time.h>

// ---- a service that begins ----------------------------------------------------------------------

static void test_new_service(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	struct lb_plan_options o = served_options(NULL);
	const struct lb_service *s;

	SERVED_ONE(&m, 0, 3);
	m.r.services[0].pins = 1025;
	m.r.services[0].hash_source = true;
	m.r.services[0].udp_move = true; // of no udp
	o.hz = 300;
	m.r.services[0].idle_tcp_ms = 1001;
	b = served_plan_with(&m, &o);
	s = &b->services[0];
	assert_string_equal(s->name, "web");
	assert_memory_equal(&s->key, &o.key, sizeof(o.key));
	assert_int_equal(b->n_services, 1);
	assert_int_equal(b->n_slots, s->size);
	assert_int_equal(s->size, SERVED_SIZE);
	assert_int_equal(s->buckets, 129);
	assert_int_equal(s->n_members, 2);
	assert_int_equal(s->hold, 1);
	assert_int_equal(s->idle_tcp, 301);
	assert_int_equal(s->idle_udp, 0);
	assert_int_equal(s->protocols, SERVICE_TCP);
	assert_int_equal(s->hash, SERVICE_HASH_SOURCE);
	assert_int_equal(s->mode, SERVICE_DR);
	assert_false(s->udp_move);
	assert_true(s->id && served_id(b, 0) && served_id(b, 3));
	assert_true(s->id != served_id(b, 0) && s->id != served_id(b, 3) &&
		    served_id(b, 0) != served_id(b, 3));
	assert_int_equal(served_warnings(&m), 0);
	made_free(&m);
}

static void test_new_members(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *dr = NULL, *nat = NULL;
	struct resolved_service *s = SERVED_ONE(&m, 3, 0);
	const struct addr addr = served_addr(3);

	served_at(s, 0)->port = 8080;
	served_at(s, 0)->weight = 9;
	served_at(s, 0)->backup = true;
	served_at(s, 1)->here = true;
	served_at(s, 1)->addr = (struct addr){0};
	dr = served_plan(&m, NULL);
	assert_memory_equal(dr->members[0].addr, addr.bytes, 16);
	assert_int_equal(dr->members[0].family, 6);
	assert_int_equal(dr->members[0].port, 0);
	assert_int_equal(dr->members[0].weight, 9);
	assert_int_equal(dr->members[0].backup, 1);
	assert_int_equal(dr->members[1].backup, 0);
	assert_ptr_equal(lb_state_find_member(dr, dr->services, NULL, 0), &dr->members[1]);
	for (uint8_t mode = SERVICE_DR; mode <= SERVICE_FULLNAT; mode++) {
		s->mode = mode;
		lb_state_free(TAKE_PTR(nat));
		nat = served_plan(&m, NULL);
		assert_int_equal(nat->members[0].port, mode < SERVICE_NAT ? 0 : 8080);
		assert_int_equal(nat->services[0].mode, mode);
	}
	made_free(&m);
}

// The slots are the same as from ring_fill, and stable.
static void test_new_slots(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *b = NULL;
	const struct hash_key key = ring_key("one", 3);
	struct ring_backend ring[3];
	uint16_t owners[SERVED_SIZE];

	SERVED_ONE(&m, 0, 1, 2);
	m.r.seed = "one";
	served_at(&m.r.services[0], 1)->weight = 5;
	b = served_plan(&m, NULL);
	for (uint32_t i = 0; i < 3; i++)
		ring[i] = (struct ring_backend){.addr = served_addr(i),
						.id = (uint16_t)served_id(b, i),
						.weight = i == 1 ? 5 : 1};
	assert_int_equal(ring_fill(&key, ring, 3, SERVED_SIZE, owners), 0);
	for (uint32_t i = 0; i < SERVED_SIZE; i++)
		assert_int_equal(b->slots[i], slot_pack(owners[i], BACKEND_NONE, 0));
	made_free(&m);
}

static void test_protocols(void **state)
{
	static const struct {
		uint64_t low, high;
		uint8_t protocols;
		uint32_t idle_tcp, idle_udp; // jiffies
	} cases[] = {
		{1ull << 6, 0, SERVICE_TCP, 225000, 0},
		{1ull << 17, 0, SERVICE_UDP, 0, 15000},
		{0, 1ull << 4, SERVICE_SCTP, 225000, 0},
		{1ull << 6 | 1ull << 17, 1ull << 4, SERVICE_TCP | SERVICE_UDP | SERVICE_SCTP,
		 225000, 15000},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made m;
		CLEANUP_LB_STATE struct lb_state *b = NULL;
		struct resolved_service *s = SERVED_ONE(&m, 0);

		s->proto.bits[0] = cases[i].low;
		s->proto.bits[2] = cases[i].high;
		s->udp_move = true;
		b = served_plan(&m, NULL);
		assert_int_equal(b->services[0].protocols, cases[i].protocols);
		assert_int_equal(b->services[0].idle_tcp, cases[i].idle_tcp);
		assert_int_equal(b->services[0].idle_udp, cases[i].idle_udp);
		assert_int_equal(b->services[0].udp_move, cases[i].idle_udp != 0);
		made_free(&m);
	}
}

// ---- a service that is kept ---------------------------------------------------------------------

// Services and backends in another order: members have the new one, nothing else changes.
static void test_another_order(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL;
	struct resolved_service *s, swapped;

	served_init(&m, 2);
	served_add(&m, "a", 5);
	s = served_add(&m, "b", 3);
	s->ring = 8191;
	a = served_plan(&m, NULL);
	a->services[1].hold = 4;
	a->services[1].pushed = 77;
	a->services[1].pushed_at = 78;
	a->members[2].health = BACKEND_DRAIN; // in "a"; its slots continue
	a->members[6].override = BACKEND_UP;
	for (size_t i = 0; i < a->n_slots; i += 7)
		a->slots[i] = slot_pack(slot_owner(a->slots[i]), slot_owner(a->slots[i]), 9);
	swapped = m.r.services[0];
	m.r.services[0] = m.r.services[1];
	m.r.services[1] = swapped;
	served_backend(&m.r.services[0], 0, 2);
	served_backend(&m.r.services[0], 2, 0);
	b = served_plan(&m, a);
	assert_string_equal(b->services[0].name, "b");
	assert_int_equal(b->services[1].first_slot, 8191);
	assert_int_equal(b->services[1].first_member, 3);
	assert_int_equal(b->services[0].id, a->services[1].id);
	assert_int_equal(b->services[0].hold, 4);
	assert_int_equal(b->services[0].pushed, 77);
	assert_int_equal(b->services[0].pushed_at, 78);
	assert_memory_equal(b->slots, a->slots + SERVED_SIZE, 8191 * sizeof(*b->slots));
	assert_memory_equal(&b->members[0], &a->members[7], sizeof(*b->members));
	assert_memory_equal(&b->members[2], &a->members[5], sizeof(*b->members));
	assert_memory_equal(&b->members[3], &a->members[0], 5 * sizeof(*b->members));
	made_free(&m);
}

static void test_nobody_counts(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL, *c = NULL, *d = NULL;
	struct resolved_service *s = SERVED_ONE(&m, 0, 1);

	served_at(s, 0)->weight = served_at(s, 1)->weight = 0;
	a = served_plan(&m, NULL);
	assert_true(served_says(&m, DIAG_WARNING, 1,
				"service 'web': no backend is up with a weight above 0: "
				"its packets are dropped",
				""));
	for (size_t i = 0; i < a->n_slots; i++)
		assert_int_equal(a->slots[i], 0);
	served_at(s, 0)->weight = 1;
	b = served_plan(&m, a); // they have no former owner
	for (size_t i = 0; i < b->n_slots; i++)
		assert_int_equal(b->slots[i], slot_pack(served_id(b, 0), served_id(b, 0),
							slot_time(SERVED_NOW)));
	assert_int_equal(served_warnings(&m), 1);
	served_find(b, 0, 0)->health = BACKEND_DOWN;
	served_find(b, 0, 0)->cut = 1; // by its link
	c = served_plan(&m, b);        // its last ring stays
	assert_true(served_says(&m, DIAG_WARNING, 1,
				"service 'web': no backend is up with a weight above 0: "
				"the current ring stays in use",
				""));
	assert_memory_equal(c->slots, b->slots, c->n_slots * sizeof(*c->slots));
	served_backend(s, 0, 7); // and who is in it
	served_at(s, 0)->weight = 0;
	d = served_plan(&m, c);
	assert_true(served_find(d, 0, 0)->gone && served_find(d, 0, 0)->health == BACKEND_DOWN);
	assert_memory_equal(d->slots, b->slots, d->n_slots * sizeof(*d->slots));
	made_free(&m);
}

static void test_backup(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL;
	struct resolved_service *s = SERVED_ONE(&m, 0, 1, 2);

	served_at(s, 1)->backup = true;
	a = served_plan(&m, NULL);
	assert_int_equal(served_owned(a, 0, 0) + served_owned(a, 0, 2), SERVED_SIZE);
	served_find(a, 0, 0)->health = BACKEND_DOWN;
	served_find(a, 0, 2)->override = BACKEND_DRAIN;
	b = served_plan(&m, a);
	assert_int_equal(served_owned(b, 0, 1), SERVED_SIZE);
	made_free(&m);
}

// A slot that had expired only by its age must not change again when `idle` or hold grows.
static void test_longer_idle(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *same = NULL, *b = NULL;
	struct resolved_service *s = SERVED_ONE(&m, 0, 1);
	uint64_t now = slot_time(SERVED_NOW);
	uint32_t ticks, one, two;

	a = served_plan(&m, NULL);
	ticks = lb_service_rules(&a->services[0], SERVED_NOW, SERVED_HZ).hold_ticks;
	one = slot_owner(a->slots[0]);
	two = one == served_id(a, 0) ? served_id(a, 1) : served_id(a, 0);
	a->slots[0] = slot_pack(one, two, now - ticks - 1); // over
	same = served_plan(&m, a);
	assert_int_equal(same->slots[0], a->slots[0]);
	s->idle_tcp_ms += 64;
	b = served_plan(&m, a);
	assert_int_equal(b->slots[0], slot_pack(one, one, now));
	assert_int_equal(b->slots[1], a->slots[1]);
	a->slots[0] = slot_pack(one, two, now - ticks); // not over
	lb_state_free(TAKE_PTR(b));
	b = served_plan(&m, a);
	assert_int_equal(b->slots[0], a->slots[0]);
	made_free(&m);
}

// ---- time ---------------------------------------------------------------------------------------

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double fill_ms(const struct lb_state *b)
{
	CLEANUP_FREE uint16_t *owners = mem_zalloc(b->n_slots, sizeof(*owners));
	CLEANUP_FREE struct ring_backend *ring = mem_zalloc(b->n_members, sizeof(*ring));
	double begin;

	for (size_t i = 0; i < b->n_members; i++) {
		ring[i] = (struct ring_backend){.id = b->members[i].id, .weight = 1};
		lb_member_address(&b->members[i], &ring[i].addr);
	}
	begin = cpu_ms();
	assert_int_equal(ring_fill(&b->services[0].key, ring, 999, 65537, owners), 0);
	return cpu_ms() - begin;
}

static void test_time(void **state)
{
	struct made m;
	CLEANUP_LB_STATE struct lb_state *a = NULL, *b = NULL;
	struct resolved_service *s;
	double took;

	served_init(&m, 1);
	s = served_add(&m, "web", 1000);
	s->ring = 65537;
	a = served_plan(&m, NULL);
	for (uint32_t i = 0; i < 999; i++)
		served_backend(s, i, 999 - i);
	s->n_backends = 999;
	took = cpu_ms();
	b = served_plan(&m, a);
	took = cpu_ms() - took;
	print_message("1000 backends, 65537 slots, one leaves: %.1f ms, of it ring_fill %.1f ms\n",
		      took, fill_ms(a));
	assert_int_equal(b->services[0].n_members, 1000);
	made_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_service),   cmocka_unit_test(test_new_members),
		cmocka_unit_test(test_new_slots),     cmocka_unit_test(test_protocols),
		cmocka_unit_test(test_another_order), cmocka_unit_test(test_nobody_counts),
		cmocka_unit_test(test_backup),        cmocka_unit_test(test_longer_idle),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
