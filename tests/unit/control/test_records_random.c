// SPDX-License-Identifier: GPL-2.0-only
// Random operations of ctl/control/entries/records.h: the changes against a naive model, look-ups
// and loads against a linear search.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/control/entries/records.h"

// Few addresses, so that prefixes often coincide and nest.
static struct prefix random_prefix(uint64_t *seed)
{
	struct addr a = {.family = unit_below(seed, 2) ? 4 : 6};
	unsigned last = addr_bits(&a) / 8 - 1;

	a.bytes[0] = (uint8_t)(unit_below(seed, 2) << 7);
	a.bytes[last] = (uint8_t)unit_below(seed, 8);
	if (unit_below(seed, 4) == 0)
		return prefix_of(&a, (uint8_t)unit_below(seed, addr_bits(&a) + 1));
	return prefix_of(&a, (uint8_t)(addr_bits(&a) - unit_below(seed, 4)));
}

// Does the same by linear search, as the header describes.
struct model {
	VEC(struct reference) list; // in no order
};

static bool same_owner(const struct owner *a, const struct owner *b)
{
	return !strcmp(a->origin, b->origin) && !strcmp(a->list, b->list) &&
	       !strcmp(a->name, b->name);
}

static struct reference *model_find(struct model *m, const struct records *r,
				    const struct reference *c)
{
	vec_each (&m->list, record)
		if (!prefix_compare(&record->prefix, &c->prefix) && record->kind == c->kind &&
		    same_owner(&r->owners.at[record->owner], &r->owners.at[c->owner]))
			return record;
	return NULL;
}

static bool model_takes_over(const struct owner *fresh, const struct owner *old)
{
	if (!fresh->fleeting && old->fleeting)
		return true;
	return fresh->note[0] && (old->fleeting || !fresh->fleeting);
}

static void model_add(struct model *m, const struct records *r, const struct reference *c)
{
	struct reference *old = model_find(m, r, c);

	if (!old) {
		struct reference record = {c->prefix, c->kind, c->owner, c->until_s};

		vec_push(&m->list, record);
		return;
	}
	if (c->until_s > old->until_s)
		old->until_s = c->until_s;
	if (model_takes_over(&r->owners.at[c->owner], &r->owners.at[old->owner]))
		old->owner = c->owner;
}

static void model_drop(struct model *m, struct reference *record)
{
	*record = *vec_last(&m->list);
	m->list.n--;
}

static size_t model_remove(struct model *m, const struct records *r, const struct owner *who,
			   unsigned kinds, const struct prefix *prefixes, size_t n)
{
	size_t removed = 0;

	for (size_t i = m->list.n; i-- > 0;) {
		struct reference *record = &m->list.at[i];
		bool hit = !prefixes;

		for (size_t k = 0; k < n; k++)
			hit = hit || !prefix_compare(&prefixes[k], &record->prefix);
		if (!hit || !(kinds >> record->kind & 1) ||
		    !same_owner(&r->owners.at[record->owner], who))
			continue;
		model_drop(m, record);
		removed++;
	}
	return removed;
}

static void assert_like_model(const struct records *r, struct model *m)
{
	assert_int_equal(r->list.n, m->list.n);
	for (size_t i = 0; i < r->list.n; i++) {
		const struct reference *record = &r->list.at[i];
		struct reference reference = {record->prefix, record->kind, record->owner, 0};
		struct reference *test = model_find(m, r, &reference);

		assert_non_null(test);
		assert_int_equal(test->until_s, record->until_s);
		assert_int_equal(test->owner, record->owner);
		if (i)
			assert_true(record_compare(r, record - 1, record) < 0);
	}
}

#define REFERENCES_MAX 60

static size_t random_references(struct reference references[REFERENCES_MAX], uint32_t owners,
				uint64_t *seed)
{
	size_t n = unit_below(seed, REFERENCES_MAX);

	for (size_t i = 0; i < n; i++)
		references[i] = (struct reference){
			.prefix = random_prefix(seed),
			.kind = (uint8_t)unit_below(seed, OVERLAY_KINDS),
			.until_s = unit_below(seed, 5) ? 1 + unit_below(seed, 100) : RECORD_NEVER,
			.owner = unit_below(seed, owners),
		};
	return n;
}

static void step_add(struct records *r, struct model *m, uint64_t *seed)
{
	struct reference references[REFERENCES_MAX];
	size_t n = random_references(references, (uint32_t)r->owners.n, seed), before = m->list.n;
	struct records_change change;

	records_add(r, references, n, &change);
	for (size_t i = 0; i < n; i++)
		model_add(m, r, &references[i]);
	assert_int_equal(change.added, m->list.n - before);
	assert_true(change.added + change.extended + change.unchanged <= n);
	assert_int_equal(change.shortened + change.removed, 0);
}

// Expiries become the latest of the references.
static void model_replace(struct model *m, const struct records *r, const struct owner *who,
			  unsigned kinds, const struct reference *references, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct reference *old = model_find(m, r, &references[i]);

		if (old && kinds >> old->kind & 1)
			old->until_s = 0;
	}
	for (size_t i = 0; i < n; i++)
		model_add(m, r, &references[i]);
	for (size_t i = m->list.n; i-- > 0;) {
		struct reference *record = &m->list.at[i];
		bool claimed = !(kinds >> record->kind & 1) ||
			       !same_owner(&r->owners.at[record->owner], who);

		for (size_t k = 0; k < n; k++)
			claimed = claimed || model_find(m, r, &references[k]) == record;
		if (!claimed)
			model_drop(m, record);
	}
}

static void step_replace(struct records *r, struct model *m, uint64_t *seed)
{
	struct owner who = r->owners.at[unit_below(seed, (unsigned)r->owners.n)];
	unsigned kinds = unit_below(seed, 1u << OVERLAY_KINDS);
	struct reference references[REFERENCES_MAX];
	size_t n = random_references(references, (uint32_t)r->owners.n, seed), own = 0,
	       before = m->list.n;
	struct records_change change;

	for (size_t i = 0; i < n; i++)
		if (same_owner(&r->owners.at[references[i].owner], &who))
			references[own++] = references[i];
	records_replace(r, &who, kinds, references, own, &change);
	model_replace(m, r, &who, kinds, references, own);
	assert_int_equal(before + change.added - change.removed, m->list.n);
}

static void step_remove(struct records *r, struct model *m, uint64_t *seed)
{
	struct owner who = r->owners.at[unit_below(seed, (unsigned)r->owners.n)];
	unsigned kinds = unit_below(seed, 1u << OVERLAY_KINDS);
	struct prefix prefixes[40];
	bool all = unit_below(seed, 8) == 0;
	size_t removed;

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		prefixes[i] = random_prefix(seed);
	records_remove(r, &who, kinds, all ? NULL : prefixes, ARRAY_SIZE(prefixes), &removed);
	assert_int_equal(removed, model_remove(m, r, &who, kinds, all ? NULL : prefixes,
					       ARRAY_SIZE(prefixes)));
}

static void add_random_owners(struct records *r, uint64_t *seed)
{
	static const char *const words[] = {"", "a", "b"};

	for (unsigned i = 0; i < 12; i++) {
		struct owner h = {
			.origin = (char *)words[unit_below(seed, 3)],
			.list = (char *)words[unit_below(seed, 2)],
			.name = (char *)words[unit_below(seed, 2)],
			.note = (char *)words[unit_below(seed, 3)],
			.since_s = i,
			.fleeting = unit_below(seed, 3) == 0,
		};

		records_owner(r, &h);
	}
}

static void test_against_model(void **state)
{
	for (uint64_t round = 1; round <= 40; round++) {
		CLEANUP_RECORDS struct records r = {0};
		struct model m = {0};
		uint64_t seed = round;

		add_random_owners(&r, &seed);
		for (unsigned i = 0; i < 40; i++) {
			switch (unit_below(&seed, 4)) {
			case 0:
				step_remove(&r, &m, &seed);
				break;
			case 1:
				step_replace(&r, &m, &seed);
				break;
			default:
				step_add(&r, &m, &seed);
			}
			assert_like_model(&r, &m);
		}
		vec_free(&m.list);
	}
}

// The change is large enough for runs of every width in the sort, odd ones at the end included.
static void test_sorts_any_size(void **state)
{
	uint64_t seed = 9;

	for (size_t n = 0; n < 700; n += 1 + n / 20) {
		CLEANUP_RECORDS struct records r = {0};
		struct reference *references = mem_zalloc(n, sizeof(*references));
		struct records_change change;

		add_random_owners(&r, &seed);
		for (size_t i = 0; i < n; i++) {
			struct addr a = addr_from_v4((uint32_t)unit_random(&seed));

			references[i] = (struct reference){prefix_of(&a, 32), 0, 0, 1};
		}
		records_add(&r, references, n, &change);
		assert_int_equal(r.list.n, n); // random addresses of 32 bits: none twice
		for (size_t i = 1; i < n; i++)
			assert_true(record_compare(&r, &r.list.at[i - 1], &r.list.at[i]) < 0);
		free(references);
	}
}

struct visits {
	const struct reference *at[2000];
	size_t n;
};

static void visit(void *ctx, const struct reference *record)
{
	struct visits *v = ctx;

	assert_true(v->n < ARRAY_SIZE(v->at));
	v->at[v->n++] = record;
}

static void assert_covering(const struct records *r, const struct prefix *p)
{
	struct visits v = {.n = 0};
	size_t next = 0;

	records_covering(r, p, visit, &v);
	vec_each (&r->list, record) {
		if (!prefix_contains(&record->prefix, p))
			continue;
		assert_true(next < v.n);
		assert_ptr_equal(v.at[next], record);
		next++;
	}
	assert_int_equal(next, v.n);
	for (size_t i = 1; i < v.n; i++)
		assert_true(v.at[i - 1]->prefix.len <= v.at[i]->prefix.len);
}

static void test_covering(void **state)
{
	CLEANUP_RECORDS struct records r = {0};
	struct records_change change;
	uint64_t seed = 5;
	struct prefix p = random_prefix(&seed);

	assert_covering(&r, &p);
	add_random_owners(&r, &seed);
	for (unsigned round = 0; round < 300; round++) {
		if (round % 10 == 0) {
			struct reference references[REFERENCES_MAX];
			size_t n = random_references(references, (uint32_t)r.owners.n, &seed);

			records_add(&r, references, n, &change);
		}
		p = random_prefix(&seed);
		assert_covering(&r, &p);
	}
}

// Records loaded in pieces, in any order, are equal to the stored ones.
static void test_load(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		CLEANUP_RECORDS struct records r = {0};
		struct reference references[REFERENCES_MAX];
		struct record_list list = {0};
		struct records_change change;
		uint64_t random = seed;
		bool done[REFERENCES_MAX] = {false};
		size_t left;

		add_random_owners(&r, &random);
		records_add(&r, references,
			    random_references(references, (uint32_t)r.owners.n, &random), &change);
		for (left = r.list.n; left;) {
			size_t at = unit_below(&random, (unsigned)r.list.n);
			struct reference piece[REFERENCES_MAX];
			size_t n = 0;

			if (done[at])
				continue;
			for (size_t i = r.list.n; i-- > 0;) { // all of a prefix, backwards
				if (prefix_compare(&r.list.at[i].prefix, &r.list.at[at].prefix))
					continue;
				piece[n++] = r.list.at[i];
				done[i] = true;
			}
			records_load(&r, &list, piece, n);
			left -= n;
		}
		assert_int_equal(list.n, r.list.n);
		for (size_t i = 0; i < list.n; i++)
			assert_int_equal(record_compare(&r, &list.at[i], &r.list.at[i]), 0);
		vec_free(&list);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_model),
		cmocka_unit_test(test_sorts_any_size),
		cmocka_unit_test(test_covering),
		cmocka_unit_test(test_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
