// SPDX-License-Identifier: GPL-2.0-only
// Follows the answers for the names of entries: finds changes without the lock and applies the
// changes under the lock.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/geo.h"
#include "ctl/base/mem.h"
#include "ctl/control/entries/upkeep.h"
#include "ctl/control/refresh.h"
#include "ctl/net/geo_db.h"

struct wishes {
	struct refresh_wish *at;
	size_t n, cap;
};

// The prefixes of the places in the databases.
struct place_answers {
	VEC(struct refresh_name *) names;
	VEC(struct geo) geos;
	struct geo_ranges *ranges;
};

static void place_answers_free(struct place_answers *p)
{
	if (p->ranges)
		geo_ranges_free(p->ranges, p->geos.n);
	free(p->ranges);
	vec_free(&p->names);
	vec_free(&p->geos);
}

static void fail(struct refresh_name *name, int code, const char *why)
{
	name->error = code;
	snprintf(name->why, sizeof(name->why), "%.255s", why);
}

static void take_ranges(const struct place_answers *p)
{
	for (size_t n = 0; n < p->names.n; n++) {
		struct refresh_name *name = p->names.at[n];
		struct err why = {0};

		if (p->ranges[n].prefixes.n)
			continue;
		err_input(&why, "no prefix of %s in '%s'", name->name, p->ranges[n].source);
		fail(name, -ENODATA, why.text);
	}
}

// If a database is missing or damaged, each of its places has this failure.
static void find_places(struct refresh *r, struct place_answers *ret)
{
	struct err why = {0};
	struct geo geo;
	int code;

	vec_each (r, name)
		if (name->place && geo_parse_name(name->name, &geo)) {
			vec_push(&ret->names, name);
			vec_push(&ret->geos, geo);
		}
	if (!ret->geos.n)
		return;
	ret->ranges = mem_zalloc(ret->geos.n, sizeof(*ret->ranges));
	if (!(code = geo_find(ret->geos.at, ret->geos.n, ret->ranges, &why)))
		return take_ranges(ret);
	vec_each (&ret->names, name)
		fail(*name, code, why.text);
}

static int compare_wishes(const void *a, const void *b)
{
	return strcmp(((const struct refresh_wish *)a)->name->name,
		      ((const struct refresh_wish *)b)->name->name);
}

static void make_wishes(const struct refresh_answers *a, const struct place_answers *p,
			struct wishes *ret)
{
	for (size_t n = 0; n < a->n; n++)
		if (!a->answers[n].error)
			vec_push(ret, ((struct refresh_wish){.name = a->at[n],
							     .answer = &a->answers[n]}));
	for (size_t n = 0; n < p->names.n; n++)
		if (!p->names.at[n]->error)
			vec_push(ret, ((struct refresh_wish){.name = p->names.at[n],
							     .ranges = &p->ranges[n]}));
	if (ret->n)
		qsort(ret->at, ret->n, sizeof(*ret->at), compare_wishes);
}

static bool changes(const struct refresh_name *name)
{
	return name->added || name->leaving || name->back || name->released;
}

static void forget_counts(const struct wishes *wishes)
{
	vec_each (wishes, wish) {
		struct refresh_name *name = wish->name;

		name->added = name->leaving = name->back = name->released = 0;
	}
}

// Keeps the wishes that change something. They are counted again under the lock.
static void keep_changing(struct wishes *wishes)
{
	size_t kept = 0;

	vec_each (wishes, wish)
		if (changes(wish->name))
			wishes->at[kept++] = *wish;
	wishes->n = kept;
	forget_counts(wishes);
}

// Keeps the wishes that would change something if nothing were protected. If no wish is left, the
// protected addresses need not be read.
static void keep_news(const struct records *held, struct wishes *wishes, uint64_t now_s)
{
	const struct guard nothing = {0};
	struct records copy = *held;

	copy.list = (struct record_list){0};
	records_load(held, &copy.list, held->list.at, held->list.n);
	refresh_follow(&copy, wishes->at, wishes->n, &nothing, now_s);
	vec_free(&copy.list);
	keep_changing(wishes);
}

struct wish_prefixes {
	struct prefix *at;
	size_t n, cap;
};

static void add_addresses(const struct refresh_wish *wish, struct wish_prefixes *prefixes)
{
	for (size_t a = 0; wish->answer && a < wish->answer->n; a++) {
		const struct addr *addr = &wish->answer->addrs[a];

		vec_push(prefixes, prefix_of(addr, (uint8_t)addr_bits(addr)));
	}
	for (size_t p = 0; wish->ranges && p < wish->ranges->prefixes.n; p++)
		vec_push(prefixes, wish->ranges->prefixes.at[p]);
}

struct following {
	const struct wishes *wishes;
	const struct guard *guard;
};

static size_t edit(void *ctx, struct records *r, uint64_t now_s)
{
	const struct following *f = ctx;

	return refresh_follow(r, f->wishes->at, f->wishes->n, f->guard, now_s);
}

// Changes the records of the names, and all references to the addresses of their answers: an entry
// lives as long as its last reference.
static int change(const char *instance, const char *command, const struct wishes *wishes,
		  const struct guard *guard, size_t *ret_changed, struct err *err)
{
	CLEANUP_VEC struct wish_prefixes prefixes = {0};
	CLEANUP_VEC VEC(const char *) names = {0};
	struct following following = {wishes, guard};
	struct entries_edit all = {
		.instance = instance,
		.command = command,
		.edit = edit,
		.ctx = &following,
	};

	vec_each (wishes, wish) {
		vec_push(&names, wish->name->name);
		add_addresses(wish, &prefixes);
	}
	all.names = names.at;
	all.names_n = names.n;
	all.prefixes = prefixes.at;
	all.prefixes_n = prefixes.n;
	return entries_edit(&all, ret_changed, err);
}

static int follow(const char *instance, const char *command, struct refresh_guard *guard,
		  struct wishes *wishes, struct refresh *r, struct err *err)
{
	const struct guard *collected;
	uint64_t now_s = (uint64_t)time(NULL);
	int code;

	keep_news(&r->held, wishes, now_s);
	if (!wishes->n)
		return 0;
	if ((code = refresh_guard_get(guard, &collected, err)))
		return code;
	if (!refresh_follow(&r->held, wishes->at, wishes->n, collected, now_s))
		return 0;
	keep_changing(wishes);
	return change(instance, command, wishes, collected, &r->changed, err);
}

static void keep_entries(struct wishes *wishes, int code, const struct err *why)
{
	forget_counts(wishes);
	vec_each (wishes, wish)
		refresh_keep(wish->name, REFRESH_ENTRIES, code, why);
}

int refresh_entries(const char *instance, const char *command, unsigned where,
		    const struct dns_options *dns, struct refresh_guard *guard, struct refresh *r,
		    struct err *err)
{
	CLEANUP_REFRESH_ANSWERS struct refresh_answers a = {0};
	CLEANUP(place_answers_free) struct place_answers places = {0};
	CLEANUP_VEC struct wishes wishes = {0};
	int code = where & REFRESH_ENTRIES ? refresh_ask(r, REFRESH_ENTRIES, dns, &a, err) : 0;

	if (code) {
		vec_each (r, one)
			if (one->entries)
				refresh_keep(one, REFRESH_ENTRIES, code, err);
		return code;
	}
	if (where & REFRESH_PLACES)
		find_places(r, &places);
	make_wishes(&a, &places, &wishes);
	if ((code = follow(instance, command, guard, &wishes, r, err)))
		keep_entries(&wishes, code, err);
	return code;
}
