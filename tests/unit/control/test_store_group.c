// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/entries/store_group.c: hosts of an origin that are one prefix in the
// maps. A model that knows references and groups as lists gives the expected result of random
// histories with kills of the index, batches and restarts.
#include "tests/unit/control/store_kernel.h"

#define REFS_MAX 256

// A reference of the model; with group: the reference of a host that may be a member.
struct wish {
	struct prefix prefix;
	uint8_t kind;
	const char *origin;
	uint32_t group;
	uint64_t until_s;
};

// A group that is formed.
struct formed {
	struct prefix net;
	uint8_t kind;
	const char *origin;
};

struct model {
	VEC(struct wish) wishes;
	VEC(struct formed) formed;
};

struct history {
	struct model model;
	struct store *b;
	struct guard guard;
	uint64_t seed;
};

static const char *const origins[] = {"", "jail"};

static struct prefix net_of(const struct prefix *p)
{
	return prefix_of(&p->addr, p->addr.family == 4 ? 24 : 64);
}

static bool same_prefix_as(const struct prefix *a, const struct prefix *b)
{
	return !prefix_compare(a, b);
}

static struct wish *find_wish(struct model *m, const struct prefix *p, uint8_t kind,
			      const char *origin)
{
	vec_each (&m->wishes, w)
		if (same_prefix_as(&w->prefix, p) && w->kind == kind && !strcmp(w->origin, origin))
			return w;
	return NULL;
}

static struct formed *find_formed(struct model *m, const struct prefix *net, uint8_t kind,
				  const char *origin)
{
	vec_each (&m->formed, f)
		if (same_prefix_as(&f->net, net) && f->kind == kind && !strcmp(f->origin, origin))
			return f;
	return NULL;
}

static void drop_wish(struct model *m, struct wish *w)
{
	*w = *vec_last(&m->wishes);
	m->wishes.n--;
}

static void drop_formed(struct model *m, struct formed *f)
{
	if (!f)
		return;
	*f = *vec_last(&m->formed);
	m->formed.n--;
}

static void model_add(struct model *m, const struct wish *fresh)
{
	struct wish *w = find_wish(m, &fresh->prefix, fresh->kind, fresh->origin);

	if (!prefix_is_host(&fresh->prefix))
		drop_formed(m, find_formed(m, &fresh->prefix, fresh->kind, fresh->origin));
	if (!w) {
		vec_push(&m->wishes, *fresh);
		return;
	}
	w->group = fresh->group;
	w->until_s = fresh->until_s > w->until_s ? fresh->until_s : w->until_s;
}

// The prefix of a group represents its members.
static void model_remove(struct model *m, const struct prefix *p, const char *origin)
{
	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++) {
		struct wish *w = find_wish(m, p, kind, origin);

		if (w)
			drop_wish(m, w);
		if (!find_formed(m, p, kind, origin))
			continue;
		drop_formed(m, find_formed(m, p, kind, origin));
		for (size_t i = m->wishes.n; i--;) {
			w = &m->wishes.at[i];
			if (w->group && w->kind == kind && !strcmp(w->origin, origin) &&
			    prefix_contains(p, &w->prefix))
				drop_wish(m, w);
		}
	}
}

static void model_expire(struct model *m)
{
	for (size_t i = m->wishes.n; i--;)
		if (m->wishes.at[i].until_s <= kernel->clock.wall_ms / 1000)
			drop_wish(m, &m->wishes.at[i]);
}

static bool is_allowing(uint8_t kind)
{
	return kind == OVERLAY_ALLOW_FROM || kind == OVERLAY_ALLOW_TO;
}

static bool is_guarded(const struct history *h, const struct prefix *net)
{
	return guard_find(&h->guard, net, GUARD_NAME);
}

static bool has_allow(const struct model *m, const struct prefix *net)
{
	vec_each (&m->wishes, w)
		if (is_allowing(w->kind) && prefix_contains(net, &w->prefix))
			return true;
	return false;
}

// Do the rules keep this group, whether a new one could be formed or not?
static bool is_right(struct history *h, const struct formed *f)
{
	struct model *m = &h->model;
	size_t n = 0;
	uint32_t most = 0;

	if (has_allow(m, &f->net) || find_wish(m, &f->net, f->kind, f->origin))
		return false;
	vec_each (&m->wishes, w) {
		if (!w->group || w->kind != f->kind || strcmp(w->origin, f->origin) ||
		    !prefix_contains(&f->net, &w->prefix))
			continue;
		n++;
		most = w->group > most ? w->group : most;
	}
	return n && n >= most;
}

static bool was_touched(const struct store *b, const struct prefix *net)
{
	vec_each (&b->before, record)
		if (prefix_contains(net, &record->prefix))
			return true;
	vec_each (&b->records.list, record)
		if (prefix_contains(net, &record->prefix))
			return true;
	return false;
}

static void model_regroup(struct history *h)
{
	struct model *m = &h->model;

	for (size_t i = m->formed.n; i--;) {
		struct formed *f = &m->formed.at[i];
		bool kept =
			h->b->guard && was_touched(h->b, &f->net) ? !is_guarded(h, &f->net) : true;

		if (!kept || !is_right(h, f))
			drop_formed(m, f);
	}
	vec_each (&m->wishes, w) {
		struct formed f = {net_of(&w->prefix), w->kind, w->origin};

		if (w->group && h->b->guard && was_touched(h->b, &f.net) && is_right(h, &f) &&
		    !is_guarded(h, &f.net) && !find_formed(m, &f.net, f.kind, f.origin))
			vec_push(&m->formed, f);
	}
}

// Computes the entries that packets must meet.
static void entry_of(struct model *m, const struct wish *w, struct overlay_entry *ret)
{
	struct prefix net = net_of(&w->prefix);
	bool hidden = w->group && find_formed(m, &net, w->kind, w->origin);

	*ret = (struct overlay_entry){.prefix = hidden ? net : w->prefix,
				      .kind = w->kind,
				      .until = clock_to_jiffies(&kernel->clock, w->until_s)};
}

static const struct overlay_entry *find_in_kernel(const struct overlay_entry *wanted)
{
	for (size_t e = 0; e < kernel->n; e++)
		if (same_prefix_as(&kernel->now[e].prefix, &wanted->prefix) &&
		    kernel->now[e].kind == wanted->kind)
			return &kernel->now[e];
	return NULL;
}

static void assert_kernel(struct history *h)
{
	uint64_t until[ENTRIES_MAX] = {0};
	addr_text text;

	vec_each (&h->model.wishes, w) {
		struct overlay_entry wanted;
		const struct overlay_entry *found;

		entry_of(&h->model, w, &wanted);
		if (!(found = find_in_kernel(&wanted)))
			fail_msg("seed %llu: no entry %s", (unsigned long long)h->seed,
				 prefix_format(&wanted.prefix, text));
		if (wanted.until > until[found - kernel->now])
			until[found - kernel->now] = wanted.until;
	}
	for (size_t e = 0; e < kernel->n; e++) {
		if (!until[e])
			fail_msg("an entry without a reference: %s",
				 prefix_format(&kernel->now[e].prefix, text));
		assert_true(kernel->now[e].until == OVERLAY_FOREVER
				    ? until[e] == OVERLAY_FOREVER
				    : until[e] - kernel->now[e].until + 2 * HZ <= 4 * HZ);
	}
}

static struct prefix random_host(uint64_t *seed)
{
	static const char *const nets[] = {"10.0.0.%u", "10.0.1.%u", "2001:db8::%x"};
	char text[32];

	snprintf(text, sizeof(text), nets[unit_below(seed, 3)], 1 + unit_below(seed, 6));
	return prefix(text);
}

static struct prefix random_what(uint64_t *seed)
{
	struct prefix host = random_host(seed);

	switch (unit_below(seed, 10)) {
	case 0:
		return net_of(&host);
	case 1:
		return prefix_of(&host.addr, (uint8_t)(addr_bits(&host.addr) - 1));
	case 2:
		return prefix_of(&host.addr, 20);
	default:
		return host;
	}
}

static void record(struct store *b, const struct wish *w)
{
	struct owner owner = {.origin = (char *)w->origin, .since_s = NOW_S, .group = w->group};
	struct reference reference = {w->prefix, w->kind, 0, w->until_s};
	struct records_change change;

	assert_int_equal(store_load(b, &w->prefix, 1, NULL), 0);
	reference.owner = records_owner(&b->records, &owner);
	records_add(&b->records, &reference, 1, &change);
}

static void step_add(struct history *h)
{
	uint32_t group = unit_below(&h->seed, 4) ? 2 + (uint32_t)unit_below(&h->seed, 2) : 0;

	for (uint64_t n = 1 + unit_below(&h->seed, 4); n; n--) {
		struct wish w = {
			.prefix = random_what(&h->seed),
			.kind = unit_below(&h->seed, 4) ? BLOCK : OVERLAY_BLOCK_TO,
			.origin = origins[unit_below(&h->seed, 2)],
			.until_s = unit_below(&h->seed, 3) ? kernel->clock.wall_ms / 1000 + 5 +
								     unit_below(&h->seed, 300)
							   : RECORD_NEVER,
		};

		if (prefix_is_host(&w.prefix))
			w.group = group;
		model_add(&h->model, &w);
		record(h->b, &w);
	}
	if (group)
		h->b->guard = &h->guard;
}

static void step_allow(struct history *h)
{
	struct wish w = {.prefix = random_what(&h->seed),
			 .kind = OVERLAY_ALLOW_FROM,
			 .origin = "",
			 .until_s = kernel->clock.wall_ms / 1000 + 5 + unit_below(&h->seed, 60)};

	model_add(&h->model, &w);
	record(h->b, &w);
}

static void step_remove(struct history *h)
{
	const char *origin = origins[unit_below(&h->seed, 2)];
	struct owner who = {.origin = (char *)origin};
	struct prefix p = random_what(&h->seed);
	size_t n;

	assert_int_equal(store_load(h->b, &p, 1, NULL), 0);
	records_remove(&h->b->records, &who, ALL, &p, 1, &n);
	assert_int_equal(store_regroup(h->b, NULL), 0);
	model_remove(&h->model, &p, origin);
	model_regroup(h);
}

static void step_remove_origin(struct history *h)
{
	const char *origin = origins[unit_below(&h->seed, 2)];
	size_t n;

	assert_int_equal(store_load_all(h->b, NULL), 0);
	records_remove_origin(&h->b->records, origin, ALL, &n);
	for (size_t i = h->model.wishes.n; i--;)
		if (!strcmp(h->model.wishes.at[i].origin, origin))
			drop_wish(&h->model, &h->model.wishes.at[i]);
	for (size_t i = h->model.formed.n; i--;)
		if (!strcmp(h->model.formed.at[i].origin, origin))
			drop_formed(&h->model, &h->model.formed.at[i]);
}

static void change(struct history *h)
{
	switch (unit_below(&h->seed, 12)) {
	case 0:
		step_remove_origin(h);
		break;
	case 1:
	case 2:
		step_allow(h);
		break;
	case 3:
	case 4:
	case 5:
		step_remove(h);
		break;
	default:
		step_add(h);
	}
}

// The maps are empty, and the instance has another epoch.
static void restart(struct history *h)
{
	bool any;
	size_t n;

	kernel->n = 0;
	kernel->knobs.epoch = kernel->knobs.staging = 0;
	pass_s(5);
	model_expire(&h->model);
	store_free(h->b);
	h->b = opened();
	assert_int_equal(store_restore(h->b, &n, &any, NULL), 0);
	for (size_t i = h->model.wishes.n; i--;) // it drops what ends in two seconds
		if (h->model.wishes.at[i].until_s <= kernel->clock.wall_ms / 1000 + SLACK_S)
			drop_wish(&h->model, &h->model.wishes.at[i]);
	commit_now(h->b);
	model_regroup(h);
}

static void next_command(struct history *h)
{
	CLEANUP_FREE char *index = index_path_of("test");

	if (!unit_below(&h->seed, 12))
		restart(h);
	switch (unit_below(&h->seed, 4)) {
	case 0: // the index is lost
		store_free(h->b);
		journal_index_remove_file(index);
		h->b = opened();
		break;
	case 1:
		assert_int_equal(store_begin(h->b, NULL), 0);
		h->b->guard = NULL;
		break;
	default:
		store_free(h->b);
		h->b = opened();
	}
}

static void run_step(struct history *h)
{
	if (!unit_below(&h->seed, 6))
		pass_s(unit_below(&h->seed, 100));
	model_expire(&h->model);
	next_command(h);
	change(h);
	for (uint64_t more = unit_below(&h->seed, 3); more; more--) {
		store_next(h->b);
		change(h);
	}
	commit_now(h->b);
	model_regroup(h);
	assert_kernel(h);
}

static void test_against_a_model(void **state)
{
	for (uint64_t round = 1; round <= 150; round++) {
		struct history h = {.seed = round};
		struct addr guarded = prefix("10.0.1.77").addr;

		set_up(NULL);
		if (round % 2)
			vec_push(&h.guard,
				 ((struct guarded){.addr = guarded, .level = GUARD_NAME}));
		h.b = opened();
		for (unsigned i = 0; i < 60; i++)
			run_step(&h);
		vec_free(&h.model.wishes);
		vec_free(&h.model.formed);
		vec_free(&h.guard);
		store_free(h.b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_against_a_model, set_up),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
