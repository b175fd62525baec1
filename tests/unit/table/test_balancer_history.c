// SPDX-License-Identifier: GPL-2.0-only
// The balancer in random histories: policies change, backends fail, overrides drain, time passes.
#include "tests/unit/table/served.h"

#define BACKENDS 24
#define SERVICES 4

static const char *const names[SERVICES] = {"a", "b", "c", "d"};

struct history {
	uint64_t random, now, wall_s;
	struct lb_state *b; // the active one
	uint8_t mode[SERVICES];
	size_t plans, kept, forgotten, back, forced, settled, changed, empty;
};

// ---- a policy -----------------------------------------------------------------------------------

static void choose_backends(struct history *h, struct made *m, struct resolved_service *s)
{
	uint32_t all[BACKENDS];

	for (uint32_t i = 0; i < BACKENDS; i++) {
		uint32_t at = unit_below(&h->random, i + 1);

		all[i] = all[at];
		all[at] = i;
	}
	s->backends = made_alloc(m, BACKENDS, sizeof(*s->backends));
	s->n_backends = 1 + unit_below(&h->random, BACKENDS / 2);
	for (size_t i = 0; i < s->n_backends; i++) {
		served_backend(s, i, all[i]);
		served_at(s, i)->weight = unit_below(&h->random, 4);
		served_at(s, i)->backup = !unit_below(&h->random, 5);
	}
}

static void choose_policy(struct history *h, struct made *m)
{
	size_t first = unit_below(&h->random, SERVICES);

	served_init(m, SERVICES);
	for (size_t i = 0; i < SERVICES; i++) {
		size_t name = (first + i) % SERVICES;
		struct resolved_service *s;

		if (!unit_below(&h->random, 8))
			continue;
		s = served_add(m, names[name], 1);
		s->idle_tcp_ms = 16000u << 2 * unit_below(&h->random, 4);
		s->proto.bits[0] |= unit_below(&h->random, 2) << 17;
		if (!unit_below(&h->random, 5))
			s->proto.bits[0] = 1 << 17;
		s->udp_move = !unit_below(&h->random, 4);
		s->hash_source = name == 1;
		s->mode = h->mode[name];
		choose_backends(h, m, s);
	}
}

// ---- between two policies -----------------------------------------------------------------------

static void tidy(struct history *h)
{
	for (size_t i = 0; i < h->b->n_services; i++) {
		struct lb_service *s = &h->b->services[i];
		struct ring_rules rules = lb_service_rules(s, h->now, SERVED_HZ);
		uint64_t foreign[SERVED_SIZE / 64 + 1] = {0};

		if (unit_below(&h->random, 2))
			foreign[unit_below(&h->random, SERVED_SIZE / 64)] = unit_random(&h->random);
		ring_tidy_all(h->b->slots + s->first_slot, foreign, s->size, &rules);
	}
}

static void change(struct history *h)
{
	size_t service = unit_below(&h->random, (unsigned)h->b->n_services);
	const struct lb_service *s = &h->b->services[service];
	struct lb_member *m =
		&h->b->members[s->first_member + unit_below(&h->random, s->n_members)];
	bool empty;

	if (unit_below(&h->random, 2)) {
		m->health = (uint8_t)unit_below(&h->random, 4);
		m->cut = m->health && !unit_below(&h->random, 4);
	} else {
		m->override = (uint8_t)unit_below(&h->random, 3);
		m->until_s = h->wall_s + unit_below(&h->random, 100);
	}
	h->changed += lb_service_change(h->b, service, h->now, SERVED_HZ, &empty);
}

static void live(struct history *h)
{
	for (unsigned n = unit_below(&h->random, 6); h->b->n_services && n; n--) {
		uint64_t seconds = unit_below(&h->random, 4) ? unit_below(&h->random, 20)
							     : unit_below(&h->random, 2000);

		h->now += seconds * SERVED_HZ;
		h->wall_s += seconds;
		if (unit_below(&h->random, 2))
			change(h);
		else
			tidy(h);
	}
}

// ---- what must hold -----------------------------------------------------------------------------

struct step {
	struct history *h;
	const struct made *m;
	const struct lb_plan_options *o;
	const struct lb_state *a, *b; // before, after
	struct lb_ids taken;          // by a, or busy
};

static bool same_place(const struct lb_member *x, const struct lb_member *y)
{
	return x->family == y->family && !memcmp(x->addr, y->addr, sizeof(x->addr));
}

// Members of the same service; *ret_n: their number.
static const struct lb_member *same_in(const struct lb_state *b, const struct lb_service *s,
				       const struct lb_member *m, size_t *ret_n)
{
	const struct lb_member *found = NULL;

	*ret_n = 0;
	for (uint32_t i = 0; s && i < s->n_members; i++) {
		if (!same_place(&b->members[s->first_member + i], m))
			continue;
		found = &b->members[s->first_member + i];
		++*ret_n;
	}
	return found;
}

static void check_number(struct lb_ids *seen, uint32_t id)
{
	assert_in_range(id, 1, SERVICE_BACKENDS - 1);
	assert_false(lb_ids_has(seen, id));
	lb_ids_add(seen, id);
}

static void check_member(const struct step *t, const struct lb_service *s,
			 const struct lb_service *was, const struct lb_member *m)
{
	size_t n;
	const struct lb_member *before = same_in(t->a, was, m, &n);

	same_in(t->b, s, m, &n);
	assert_int_equal(n, 1);
	if (!before) {
		assert_false(m->gone);
		assert_false(lb_ids_has(&t->taken, m->id));
		return;
	}
	assert_int_equal(m->id, before->id);
	assert_int_equal(m->health, before->health);
	if ((before->gone && !m->gone) || (before->until_s && before->until_s <= t->h->wall_s))
		assert_true(m->override == BACKEND_UP && !m->until_s);
	else
		assert_true(m->override == before->override && m->until_s == before->until_s);
	t->h->back += before->gone && !m->gone;
}

static bool named(const struct lb_state *b, const struct lb_service *s, uint32_t id)
{
	for (uint32_t i = 0; i < s->size; i++)
		if (slot_owner(b->slots[s->first_slot + i]) == id ||
		    slot_former(b->slots[s->first_slot + i]) == id)
			return true;
	return false;
}

// A former backend is still present, or neither slot nor pin names it.
static void check_forgotten(const struct step *t, const struct lb_service *s,
			    const struct lb_service *was)
{
	for (uint32_t i = 0; was && i < was->n_members; i++) {
		const struct lb_member *m = &t->a->members[was->first_member + i];
		size_t n;
		const struct lb_member *is = same_in(t->b, s, m, &n);
		bool must = t->o->trial || lb_ids_has(t->o->busy, m->id) || named(t->b, s, m->id);

		if (!is || is->gone)
			assert_int_equal(is != NULL, must);
		t->h->kept += is && is->gone;
		t->h->forgotten += !is;
	}
}

// Which backends count, a second time: those that are up and have a weight; backups only if there
// are no others; those whose checks fail only if there is no backup either, and again backups at
// last.
static size_t elect(const struct step *t, const struct resolved_service *from,
		    const struct lb_service *s, struct ring_backend *ret)
{
	size_t n = 0;

	for (int turn = 0; turn < 4 && !n; turn++) {
		int backup = turn % 2;

		for (size_t i = 0; i < from->n_backends; i++) {
			const struct resolved_backend *r = &from->backends[i];
			const struct lb_member *m = &t->b->members[s->first_member + i];

			if (r->backup == backup && r->weight && !m->health == (turn < 2) &&
			    !m->override && !m->cut)
				ret[n++] = (struct ring_backend){
					.addr = r->addr, .id = m->id, .weight = r->weight};
		}
	}
	return n;
}

static uint64_t expected(const struct step *t, const struct lb_service *s,
			 const struct lb_service *was, uint32_t i, uint32_t owner)
{
	struct ring_rules rules = lb_service_rules(s, t->h->now, SERVED_HZ), before;
	uint64_t slot, old;

	if (!was)
		return slot_pack(owner, BACKEND_NONE, 0);
	old = slot = t->a->slots[was->first_slot + i];
	before = lb_service_rules(was, t->h->now, SERVED_HZ);
	if (rules.hold_ticks > before.hold_ticks)
		slot = ring_tidy(slot, true, &before);
	t->h->settled += slot != old;
	if (slot == old && (owner == slot_owner(slot) || owner == BACKEND_NONE))
		return old;
	return ring_step(slot, owner, &rules);
}

static void check_slots(const struct step *t, const struct resolved_service *from,
			const struct lb_service *s, const struct lb_service *was)
{
	struct ring_backend ring[BACKENDS];
	uint16_t owners[SERVED_SIZE] = {0};
	struct lb_ids of_members = {0};
	size_t n = elect(t, from, s, ring);

	if (n)
		assert_int_equal(ring_fill(&s->key, ring, n, SERVED_SIZE, owners), 0);
	t->h->empty += !n;
	for (uint32_t i = 0; i < s->n_members; i++)
		lb_ids_add(&of_members, t->b->members[s->first_member + i].id);
	for (uint32_t i = 0; i < SERVED_SIZE; i++) {
		uint64_t slot = t->b->slots[s->first_slot + i];

		if (slot != expected(t, s, was, i, owners[i]))
			fail_msg("slot %u of '%s' in plan %zu", i, s->name, t->h->plans);
		if (slot_owner(slot) && !lb_ids_has(&of_members, slot_owner(slot)))
			fail_msg("slot %u of '%s' in plan %zu: its owner", i, s->name, t->h->plans);
		if (slot_former(slot) && !lb_ids_has(&of_members, slot_former(slot)))
			fail_msg("slot %u of '%s' in plan %zu: former", i, s->name, t->h->plans);
	}
}

static void check_service(const struct step *t, size_t index, struct lb_ids *seen)
{
	const struct resolved_service *from = &t->m->r.services[index];
	const struct lb_service *s = &t->b->services[index];
	const struct lb_service *was = lb_state_find(t->a, from->name);

	if (was && was->mode != s->mode) {
		t->h->forced++;
		was = NULL;
	}
	assert_string_equal(s->name, from->name);
	check_number(seen, s->id);
	if (was)
		assert_int_equal(s->id, was->id);
	else
		assert_false(lb_ids_has(&t->taken, s->id));
	for (uint32_t i = 0; i < s->n_members; i++) {
		const struct lb_member *m = &t->b->members[s->first_member + i];
		const struct resolved_backend *r = &from->backends[i];

		check_number(seen, m->id);
		if (was)
			check_member(t, s, was, m);
		assert_int_equal(m->gone, i >= from->n_backends);
		if (!m->gone)
			assert_memory_equal(m->addr, r->addr.bytes, sizeof(m->addr));
	}
	check_forgotten(t, s, was);
	check_slots(t, from, s, was);
}

static void check(struct step *t)
{
	struct lb_ids seen = {0};
	size_t members = 0, slots = 0;

	t->taken = *t->o->busy;
	lb_ids_of(t->a, &t->taken);
	assert_int_equal(t->b->n_services, t->m->r.n_services);
	for (size_t i = 0; i < t->b->n_services; i++) {
		assert_int_equal(t->b->services[i].first_member, members);
		assert_int_equal(t->b->services[i].first_slot, slots);
		members += t->b->services[i].n_members;
		slots += SERVED_SIZE;
		check_service(t, i, &seen);
	}
	assert_int_equal(t->b->n_members, members);
	assert_int_equal(t->b->n_slots, slots);
}

// ---- histories ----------------------------------------------------------------------------------

static void plan(struct history *h)
{
	struct lb_plan_options o = served_options(h->b);
	struct lb_ids busy = {0};
	struct made m;
	struct lb_state *b;

	for (size_t i = 0; i < h->b->n_members; i++)
		if (!unit_below(&h->random, 4))
			lb_ids_add(&busy, h->b->members[i].id);
	lb_ids_add(&busy, 1 + unit_below(&h->random, SERVICE_BACKENDS - 1));
	o.busy = &busy;
	o.now = h->now;
	o.wall_s = h->wall_s;
	o.trial = !unit_below(&h->random, 6);
	o.force = !unit_below(&h->random, 6);
	if (o.force)
		h->mode[unit_below(&h->random, SERVICES)] ^= SERVICE_IPIP;
	choose_policy(h, &m);
	b = served_plan_with(&m, &o);
	check(&(struct step){.h = h, .m = &m, .o = &o, .a = h->b, .b = b});
	lb_state_free(h->b);
	h->b = b;
	h->plans++;
	made_free(&m);
}

static void test_histories(void **state)
{
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct history h = {.random = seed, .now = SERVED_NOW, .wall_s = SERVED_WALL};

		h.b = mem_new(struct lb_state);
		for (int n = 0; n < 120; n++) {
			plan(&h);
			live(&h);
		}
		lb_state_free(h.b);
		if (seed == 1)
			print_message("%zu plans: gone members kept %zu times, forgotten %zu, back "
				      "%zu; begun anew %zu; no backend counts %zu\n",
				      h.plans, h.kept, h.forgotten, h.back, h.forced, h.empty);
		assert_true(h.kept > 100 && h.forgotten > 100 && h.back > 50 && h.forced > 5);
		assert_true(h.settled > 1000 && h.changed > 1000 && h.empty > 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_histories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
