// SPDX-License-Identifier: GPL-2.0-only
// Loads records from the journal through its index.
#include "ctl/control/store_parts.h"

#include <stdlib.h>
#include <string.h>

#define CLOCK_SLACK_S \
	2 // between wall clock and jiffies: within it the kernel is asked whether an entry has expired

void store_forget_loaded(struct store *b)
{
	records_free(&b->records);
	vec_free(&b->before);
	vec_free(&b->numbers);
	free(TAKE_PTR(b->owners));
	free(TAKE_PTR(b->loaded));
}

// Room for the owners and references that the index has now.
void store_begin_loading(struct store *b)
{
	const struct journal_index *x = b->journal.index;

	b->records.clock = *journal_index_clock(x);
	b->owners = mem_zalloc(journal_index_owners(x), sizeof(*b->owners));
	b->loaded = mem_zalloc(journal_index_slots(x) / 8 + 1, 1);
}

// Records that are being loaded, in any order.
struct loading {
	struct store *b;
	struct record_list all, alive;
	struct err *err;
};

static void loading_free(struct loading *l)
{
	vec_free(&l->all);
	vec_free(&l->alive);
}

// *ret: the index in records.owners.
static int load_owner(struct store *b, uint32_t number, uint32_t *ret, struct err *err)
{
	CLEANUP_FREE char *room = NULL;
	struct owner owner;
	int code;

	if (b->owners[number]) {
		*ret = b->owners[number] - 1;
		return 0;
	}
	if ((code = journal_read_owner(&b->journal, &b->journal.index->owners[number], &owner,
				       &room, err)))
		return code;
	owner.since_s = records_shifted(owner.since_s, b->clock_by);
	*ret = records_owner(&b->records, &owner);
	b->owners[number] = *ret + 1;
	while (b->numbers.n < *ret) // those that the caller has added meanwhile
		vec_push(&b->numbers, JOURNAL_NONE);
	vec_push(&b->numbers, number);
	return 0;
}

bool store_entry(const struct store *b, const struct prefix *p, uint8_t kind,
		 struct overlay_entry *ret)
{
	struct overlay_entry entries[OVERLAY_KINDS];
	size_t n = 0;

	if (overlay_read_one(b->instance, p, entries, &n, NULL))
		return false;
	for (size_t e = 0; e < n; e++) {
		if (entries[e].kind != kind || entries[e].until <= b->clock.jiffies)
			continue;
		*ret = entries[e];
		return true;
	}
	return false;
}

bool store_expired(const struct store *b, const struct prefix *p, uint8_t kind, uint64_t until_s)
{
	uint64_t now_s = b->clock.wall_ms / 1000;
	struct overlay_entry entry;

	if (until_s == RECORD_NEVER || until_s > now_s + CLOCK_SLACK_S)
		return false;
	return until_s <= now_s || (b->agree && !store_entry(b, p, kind, &entry));
}

static int load_ref(struct loading *l, uint32_t ref)
{
	struct store *b = l->b;
	const struct journal_ref *r = &b->journal.index->refs[ref];
	struct record record = {.prefix = journal_ref_prefix(r), .kind = r->kind};
	int code;

	if (b->loaded[ref / 8] >> ref % 8 & 1)
		return 0;
	if ((code = load_owner(b, r->owner, &record.owner, l->err)))
		return code;
	b->loaded[ref / 8] |= (uint8_t)(1 << ref % 8);
	record.until_s = records_shifted(r->until_s, b->clock_by);
	vec_push(&l->all, record);
	if (!store_expired(b, &record.prefix, record.kind, record.until_s))
		vec_push(&l->alive, record);
	return 0;
}

static int load_prefix(struct loading *l, const struct prefix *p)
{
	const struct journal_index *x = l->b->journal.index;

	for (uint32_t r = journal_index_first(x, p); r != JOURNAL_NONE;
	     r = journal_index_next(x, p, r)) {
		int code = load_ref(l, r);

		if (code)
			return code;
	}
	return 0;
}

// Also after a failure: what is marked as loaded is there.
static int finish(struct loading *l, int code)
{
	struct store *b = l->b;

	records_load(&b->records, &b->before, l->all.at, l->all.n);
	records_load(&b->records, &b->records.list, l->alive.at, l->alive.n);
	return code;
}

int store_load(struct store *b, const struct prefix *prefixes, size_t n, struct err *err)
{
	CLEANUP(loading_free) struct loading l = {.b = b, .err = err};
	int code = 0;

	for (size_t i = 0; !code && !b->whole && i < n; i++)
		code = load_prefix(&l, &prefixes[i]);
	return finish(&l, code);
}

static int load_covering(struct loading *l, const struct prefix *p)
{
	int code = 0;

	for (unsigned len = 0; !code && len <= p->len; len++) {
		struct prefix outer = prefix_of(&p->addr, (uint8_t)len);

		if (journal_index_has_length(l->b->journal.index, p->addr.family, (uint8_t)len))
			code = load_prefix(l, &outer);
	}
	return code;
}

int store_load_covering(struct store *b, const struct prefix *prefixes, size_t n, struct err *err)
{
	CLEANUP(loading_free) struct loading l = {.b = b, .err = err};
	int code = b->to_write ? 0 : store_begin_reading(b, err);

	for (size_t i = 0; !code && !b->whole && i < n; i++)
		code = load_covering(&l, &prefixes[i]);
	if (!b->to_write)
		store_end_reading(b);
	return finish(&l, code);
}

static int compare_who(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int store_load_who(struct store *b, const uint64_t *who, size_t n, struct err *err)
{
	CLEANUP(loading_free) struct loading l = {.b = b, .err = err};
	CLEANUP_FREE uint64_t *sorted = mem_zalloc(n, sizeof(*sorted));
	const struct journal_index *x = b->journal.index;
	int code = 0;

	if (!n || b->whole)
		return 0;
	memcpy(sorted, who, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_who);
	for (uint32_t r = 0; !code && r < journal_index_slots(x); r++) {
		struct prefix p = journal_ref_prefix(&x->refs[r]);

		if (x->refs[r].family && bsearch(&x->owners[x->refs[r].owner].who, sorted, n,
						 sizeof(*sorted), compare_who))
			code = load_prefix(&l, &p);
	}
	return finish(&l, code);
}

int store_load_all(struct store *b, struct err *err)
{
	CLEANUP(loading_free) struct loading l = {.b = b, .err = err};
	int code = 0;

	for (uint32_t r = 0; !code && !b->whole && r < journal_index_slots(b->journal.index); r++)
		if (b->journal.index->refs[r].family)
			code = load_ref(&l, r);
	return finish(&l, code);
}

int store_load_expired(struct store *b, uint32_t from, uint32_t n, struct err *err)
{
	CLEANUP(loading_free) struct loading l = {.b = b, .err = err};
	const struct journal_index *x = b->journal.index;
	uint64_t now_s = b->clock.wall_ms / 1000;
	int code = 0;

	for (uint32_t r = from; !code && r < journal_index_slots(x) && r - from < n; r++) {
		struct prefix p = journal_ref_prefix(&x->refs[r]);

		if (x->refs[r].family && records_shifted(x->refs[r].until_s, b->clock_by) <= now_s)
			code = load_prefix(&l, &p);
	}
	return finish(&l, code);
}
