// SPDX-License-Identifier: GPL-2.0-only
// Lists names, asks for them, and makes references of the answers for owners.
#include "ctl/control/refresh.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/geo.h"
#include "ctl/base/mem.h"
#include "ctl/control/store.h"

void refresh_free(struct refresh *r)
{
	vec_each (r, one)
		free(one->name);
	vec_free(&r->who);
	vec_free(r);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct refresh_name *)a)->name,
		      ((const struct refresh_name *)b)->name);
}

bool refresh_is_wanted(const char *name, const char *const *only, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(only[i], name))
			return true;
	return !n;
}

static bool is_host_name(const struct owner *owner)
{
	return owner->name[0] && !geo_is_name(owner->name);
}

static void take_owner(const struct owner *owner, const char *const *only, size_t n,
		       struct refresh *ret)
{
	if (!is_host_name(owner) || !refresh_is_wanted(owner->name, only, n))
		return;
	vec_push(&ret->who, journal_who(owner->list, owner->name));
	vec_push(ret, ((struct refresh_name){.name = mem_strdup(owner->name),
					     .entries = true,
					     .ends_s = UINT64_MAX,
					     .since_s = owner->since_s}));
}

// Owners without list and name, of which there may be many, are told by their hash.
static bool may_have_name(const struct store_snapshot *s, uint32_t owner, uint64_t without)
{
	return !s->owners || s->owners[owner].who != without;
}

static int take_owners(struct store *store, const char *const *only, size_t n, struct refresh *ret,
		       struct err *err)
{
	const struct store_snapshot *s = store->snapshot;
	uint64_t without = journal_who("", "");
	CLEANUP_VEC VEC(bool) seen = {0};

	for (size_t r = 0; r < s->n; r++) {
		uint32_t number = s->refs[r].owner;
		CLEANUP_FREE char *room = NULL;
		struct owner owner;

		while (seen.n <= number)
			vec_push(&seen, false);
		if (seen.at[number] || !may_have_name(s, number, without))
			continue;
		seen.at[number] = true;
		if (store_owner(store, number, &owner, &room))
			return err_system(err, EIO, "cannot read the owners of the entries");
		take_owner(&owner, only, n, ret);
	}
	return 0;
}

static int list_entries(const char *instance, const char *const *only, size_t n,
			struct refresh *ret, struct err *err)
{
	CLEANUP_STORE struct store *store = NULL;
	int code = store_read(instance, &store, err);

	return code ? code : take_owners(store, only, n, ret, err);
}

// Of two, the older answer counts.
static void merge(struct refresh_name *to, struct refresh_name *from)
{
	to->entries |= from->entries;
	to->policy |= from->policy;
	to->since_s = from->since_s < to->since_s ? from->since_s : to->since_s;
	to->ends_s = from->ends_s < to->ends_s ? from->ends_s : to->ends_s;
	free(from->name);
}

static void sort(struct refresh *r)
{
	size_t kept = 0;

	if (r->n)
		qsort(r->at, r->n, sizeof(*r->at), compare);
	for (size_t i = 0; i < r->n; i++)
		if (!kept || compare(&r->at[kept - 1], &r->at[i]))
			r->at[kept++] = r->at[i];
		else
			merge(&r->at[kept - 1], &r->at[i]);
	r->n = kept;
}

int refresh_list(const char *instance, unsigned where, const char *const *only, size_t n,
		 struct refresh *ret, struct err *err)
{
	int code = 0;

	*ret = (struct refresh){0};
	if (where & REFRESH_ENTRIES && (code = list_entries(instance, only, n, ret, err)))
		return code;
	if (where & REFRESH_POLICY && (code = refresh_list_policy(instance, only, n, ret, err)))
		return code;
	sort(ret);
	return 0;
}

// ---- asking -------------------------------------------------------------------------------------

void refresh_answers_free(struct refresh_answers *a)
{
	if (a->answers)
		dns_answers_free(a->answers, a->n);
	free(a->answers);
	free(a->at);
	*a = (struct refresh_answers){0};
}

static void take_answer(struct refresh_name *one, const struct dns_answer *answer)
{
	one->ttl_s = answer->ttl_s;
	one->addresses = answer->n;
	if (!answer->error)
		return;
	one->error = answer->error;
	dns_describe(answer, one->why, sizeof(one->why));
}

int refresh_ask(struct refresh *r, enum refresh_where where, const struct dns_options *dns,
		struct refresh_answers *ret, struct err *err)
{
	CLEANUP_REFRESH_ANSWERS struct refresh_answers a = {
		.at = mem_zalloc(r->n, sizeof(struct refresh_name *))};
	CLEANUP_FREE const char **names = mem_zalloc(r->n, sizeof(*names));
	int code;

	vec_each (r, one)
		if (where == REFRESH_POLICY ? one->policy : one->entries) {
			names[a.n] = one->name;
			a.at[a.n++] = one;
		}
	if (!a.n)
		return 0;
	a.answers = mem_zalloc(a.n, sizeof(*a.answers));
	if ((code = dns_resolve(names, a.n, dns, a.answers, err)))
		return code;
	for (size_t n = 0; n < a.n; n++) {
		take_answer(a.at[n], &a.answers[n]);
		a.good += !a.answers[n].error;
	}
	*ret = a;
	a = (struct refresh_answers){0};
	return 0;
}

// ---- one owner ----------------------------------------------------------------------------------

struct fresh_references {
	struct reference *at;
	size_t n, cap;
};

// What an owner has now, and what it shall have.
struct group {
	const struct dns_answer *answer;
	const struct guard *guard;
	uint64_t now_s, grace_s;
	uint32_t owner;
	bool wide; // it has addresses that only --wide allows
	struct fresh_references fresh;
};

static bool is_block(uint8_t kind)
{
	return kind == OVERLAY_BLOCK_FROM || kind == OVERLAY_BLOCK_TO;
}

static bool has_address(const struct dns_answer *answer, const struct prefix *p)
{
	for (size_t a = 0; a < answer->n; a++)
		if (p->len == addr_bits(&answer->addrs[a]) &&
		    !addr_compare(&p->addr, &answer->addrs[a]))
			return true;
	return false;
}

static void add(struct group *g, const struct prefix *p, uint8_t kind, uint64_t until_s)
{
	vec_push(&g->fresh,
		 ((struct reference){
			 .prefix = *p, .kind = kind, .until_s = until_s, .owner = g->owner}));
}

// The addresses of the answer, as long as the owner asks for: the latest end of what it has.
static void add_answer(struct group *g, uint8_t kind, uint64_t until_s)
{
	for (size_t a = 0; a < g->answer->n; a++) {
		const struct addr *addr = &g->answer->addrs[a];
		struct prefix host = prefix_of(addr, (uint8_t)addr_bits(addr));

		if (!is_block(kind) || !guard_answer_problem(g->guard, addr, g->wide))
			add(g, &host, kind, until_s);
	}
}

static void add_leaving(struct group *g, const struct record *r)
{
	uint64_t end = g->now_s + g->grace_s;

	if (!has_address(g->answer, &r->prefix))
		add(g, &r->prefix, r->kind, r->until_s < end ? r->until_s : end);
}

// A family whose query failed has no answer: its addresses stay as they are.
static bool is_unknown(const struct dns_answer *answer, const struct record *r)
{
	return r->prefix.addr.family == 4 ? answer->v4_failed : answer->v6_failed;
}

static void make(struct group *g, const struct store *store)
{
	uint64_t until[OVERLAY_KINDS] = {0};
	const struct record_list *list = &store->records.list;

	vec_each (list, r)
		if (r->owner == g->owner) {
			until[r->kind] = r->until_s > until[r->kind] ? r->until_s : until[r->kind];
			g->wide |= guard_answer_problem(g->guard, &r->prefix.addr, false) != NULL;
		}
	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++)
		if (until[kind])
			add_answer(g, kind, until[kind]);
	vec_each (list, r) {
		if (r->owner != g->owner)
			continue;
		if (is_unknown(g->answer, r))
			add(g, &r->prefix, r->kind, r->until_s);
		else
			add_leaving(g, r);
	}
}

static void change_owner(struct store *store, uint32_t owner, struct refresh_name *name,
			 const struct dns_answer *answer, const struct guard *guard,
			 size_t *changed)
{
	uint64_t grace = 2 * (uint64_t)answer->ttl_s;
	struct group g = {
		.answer = answer,
		.guard = guard,
		.now_s = store->clock.wall_ms / 1000,
		.grace_s = grace > REFRESH_GRACE_S ? grace : REFRESH_GRACE_S,
		.owner = owner,
	};
	struct owner who = store->records.owners.at[owner];
	struct records_change change;

	make(&g, store);
	records_replace(&store->records, &who, (1u << OVERLAY_KINDS) - 1, g.fresh.at, g.fresh.n,
			&change);
	name->added += change.added;
	name->leaving += change.shortened;
	name->back += change.extended;
	*changed += change.added + change.shortened + change.extended + change.removed;
	vec_free(&g.fresh);
}

// ---- all ----------------------------------------------------------------------------------------

static void change_name(struct store *store, struct refresh_name *name,
			const struct dns_answer *answer, const struct guard *guard, size_t *changed)
{
	size_t owners = store->records.owners.n;

	for (uint32_t o = 0; o < owners; o++)
		if (!strcmp(store->records.owners.at[o].name, name->name))
			change_owner(store, o, name, answer, guard, changed);
}

static int change(const char *instance, const char *command, const struct refresh_answers *a,
		  const struct guard *guard, struct refresh *r, struct err *err)
{
	CLEANUP_STORE struct store *store = NULL;
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	int code = store_open(instance, command, &store, err);

	if (code)
		return code;
	if ((code = store_load_who(store, r->who.at, r->who.n, err)))
		return code;
	for (size_t n = 0; n < a->n; n++)
		if (!a->answers[n].error)
			change_name(store, a->at[n], &a->answers[n], guard, &r->changed);
	return r->changed ? store_commit(store, false, &plan, err) : 0;
}

int refresh_names(const char *instance, const char *command, const struct dns_options *dns,
		  const struct guard *guard, struct refresh *r, struct err *err)
{
	CLEANUP_REFRESH_ANSWERS struct refresh_answers a = {0};
	int code = refresh_ask(r, REFRESH_ENTRIES, dns, &a, err);

	if (code || !a.good)
		return code;
	return change(instance, command, &a, guard, r, err);
}
