// SPDX-License-Identifier: GPL-2.0-only
// Random commands against a model in memory (ctl/control/entries/store.h).
#include "tests/unit/control/store_kernel.h"

// Commands run in random order: the journal must hold the same records as memory, and the maps the
// entries of these records.
struct history {
	struct records model;
	struct store *b;
	uint64_t seed;
};

static struct prefix random_prefix(uint64_t *seed)
{
	struct addr a = addr_from_v4(htobe32(0x0a000000 + unit_below(seed, 12) * 8));

	return prefix_of(&a, (uint8_t)(32 - unit_below(seed, 4)));
}

static struct owner random_owner(uint64_t *seed)
{
	static char *const origins[] = {(char *)"", (char *)"ban"};
	static char *const lists[] = {(char *)"", (char *)"feed"};
	static char *const notes[] = {(char *)"", (char *)"quote \" and \\", (char *)"later"};

	return (struct owner){
		.origin = origins[unit_below(seed, 2)],
		.list = lists[unit_below(seed, 2)],
		.note = notes[unit_below(seed, 3)],
		.since_s = NOW_S + unit_below(seed, 100),
		.fleeting = !unit_below(seed, 4),
	};
}

static void step_add(struct history *h, bool replace)
{
	struct owner owner = random_owner(&h->seed);
	struct reference references[20];
	struct prefix prefixes[20];
	struct records_change one, other;
	size_t n = unit_below(&h->seed, 20);
	uint64_t who = journal_who(owner.list, "");

	for (size_t i = 0; i < n; i++) {
		prefixes[i] = random_prefix(&h->seed);
		references[i] = (struct reference){
			.prefix = prefixes[i],
			.kind = (uint8_t)unit_below(&h->seed, OVERLAY_KINDS),
			.until_s = unit_below(&h->seed, 3) ? kernel->clock.wall_ms / 1000 + 5 +
								     unit_below(&h->seed, 300)
							   : RECORD_NEVER,
			.owner = records_owner(&h->model, &owner),
		};
	}
	assert_int_equal(store_load(h->b, prefixes, n, NULL), 0);
	assert_int_equal(store_load_who(h->b, &who, 1, NULL), 0);
	if (replace)
		records_replace(&h->model, &owner, ALL, references, n, &one);
	else
		records_add(&h->model, references, n, &one);
	for (size_t i = 0; i < n; i++)
		references[i].owner = records_owner(&h->b->records, &owner);
	if (replace)
		records_replace(&h->b->records, &owner, ALL, references, n, &other);
	else
		records_add(&h->b->records, references, n, &other);
	assert_memory_equal(&one, &other, sizeof(one));
}

static void step_remove(struct history *h)
{
	struct owner owner = random_owner(&h->seed);
	struct prefix prefixes[10];
	size_t n = unit_below(&h->seed, 10), one, other;

	for (size_t i = 0; i < n; i++)
		prefixes[i] = random_prefix(&h->seed);
	assert_int_equal(store_load(h->b, prefixes, n, NULL), 0);
	records_remove(&h->model, &owner, ALL, prefixes, n, &one);
	records_remove(&h->b->records, &owner, ALL, prefixes, n, &other);
	assert_int_equal(one, other);
}

static void step_remove_origin(struct history *h)
{
	const char *origin = unit_below(&h->seed, 2) ? "ban" : "";
	size_t one, other;

	assert_int_equal(store_load_all(h->b, NULL), 0);
	records_remove_origin(&h->model, origin, 1u << BLOCK, &one);
	records_remove_origin(&h->b->records, origin, 1u << BLOCK, &other);
	assert_int_equal(one, other);
}

static void expire_model(struct records *r)
{
	size_t kept = 0;

	vec_each (&r->list, record)
		if (record->until_s > kernel->clock.wall_ms / 1000)
			r->list.at[kept++] = *record;
	r->list.n = kept;
}

static void assert_like_model(const struct history *h, const struct records *r)
{
	const struct records *m = &h->model;

	assert_int_equal(r->list.n, m->list.n);
	for (size_t i = 0; i < m->list.n; i++) {
		const struct reference *x = &m->list.at[i], *y = &r->list.at[i];
		const struct owner *a = &m->owners.at[x->owner], *b = &r->owners.at[y->owner];

		assert_int_equal(prefix_compare(&x->prefix, &y->prefix), 0);
		assert_int_equal(x->kind, y->kind);
		assert_int_equal(x->until_s, y->until_s);
		assert_string_equal(a->origin, b->origin);
		assert_string_equal(a->list, b->list);
		assert_string_equal(a->note, b->note);
		assert_int_equal(a->since_s, b->since_s);
		assert_int_equal(a->fleeting, b->fleeting);
	}
}

static void assert_kernel_is_model(const struct history *h)
{
	struct record_list entries;

	records_entries(&h->model, &h->model.list, &entries);
	assert_int_equal(kernel->n, entries.n);
	for (size_t e = 0; e < entries.n; e++) {
		assert_int_equal(prefix_compare(&entries.at[e].prefix, &kernel->now[e].prefix), 0);
		assert_int_equal(entries.at[e].kind, kernel->now[e].kind);
	}
	free(entries.at);
}

static void next_command(struct history *h)
{
	CLEANUP_FREE char *index = index_path_of("test");

	switch (unit_below(&h->seed, 6)) {
	case 0: // the index is lost
		store_free(h->b);
		journal_index_remove_file(index);
		h->b = opened();
		break;
	case 1:
	case 2:
		store_free(h->b);
		h->b = opened();
		break;
	default: // a batch
		assert_int_equal(store_begin(h->b, NULL), 0);
	}
}

// A question about one prefix returns the records that contain the prefix.
static void assert_covers(struct history *h)
{
	CLEANUP_STORE struct store *b = NULL;
	struct prefix p = random_prefix(&h->seed);
	size_t n = 0;

	assert_int_equal(store_peek("test", &b, NULL), 0);
	assert_int_equal(store_load_covering(b, &p, 1, NULL), 0);
	vec_each (&h->model.list, record)
		n += prefix_contains(&record->prefix, &p);
	assert_int_equal(b->records.list.n, n);
}

static void change(struct history *h)
{
	switch (unit_below(&h->seed, 5)) {
	case 0:
		step_remove(h);
		break;
	case 1:
		step_remove_origin(h);
		break;
	default:
		step_add(h, unit_below(&h->seed, 2));
	}
}

static void run_step(struct history *h)
{
	CLEANUP_STORE struct store *all = NULL;

	if (!unit_below(&h->seed, 8))
		pass_s(unit_below(&h->seed, 100));
	expire_model(&h->model);
	next_command(h);
	change(h);
	for (uint32_t more = unit_below(&h->seed, 4); more; more--) {
		store_next(h->b);
		change(h);
	}
	commit_now(h->b);
	all = seen();
	assert_like_model(h, &all->records);
	assert_covers(h);
	assert_kernel_is_model(h);
}

static void test_against_memory(void **state)
{
	for (uint64_t round = 1; round <= 60; round++) {
		struct history h = {.seed = round};

		set_up(NULL);
		h.b = opened();
		for (unsigned i = 0; i < 60; i++)
			run_step(&h);
		records_free(&h.model);
		store_free(h.b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_against_memory, set_up),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
