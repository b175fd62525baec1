// SPDX-License-Identifier: GPL-2.0-only
// Lists and resolves the names of entries and of the policy.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/geo.h"
#include "ctl/base/mem.h"
#include "ctl/base/trace.h"
#include "ctl/control/answered.h"
#include "ctl/control/entries/store.h"
#include "ctl/control/refresh.h"

// ---- names of entries ---------------------------------------------------------------------------

// References in the order of their prefixes; their owners are read when they are first met.
struct refresh_listing {
	struct store *store;
	const struct refresh_wanted *wanted;
	unsigned where;
	struct refresh *names;
	VEC(uint32_t)
	owners; // by number: 0 not met, 1 not wanted, else the index in names->held + 2
	VEC(struct reference) found;
};

static void listing_free(struct refresh_listing *l)
{
	vec_free(&l->owners);
	vec_free(&l->found);
}

// The hash tells most owners that cannot be meant without a look at the file: those without a name,
// which may be many, and other names. A name is never in a list.
static bool may_be_wanted(const struct refresh_listing *l, uint32_t number)
{
	const struct store_snapshot *s = l->store->snapshot;

	if (!s->owners)
		return true;
	if (s->owners[number].who == journal_who("", ""))
		return false;
	return refresh_is_who(l->wanted, s->owners[number].who);
}

static bool takes(const struct refresh_listing *l, const struct owner *owner)
{
	unsigned where = geo_is_name(owner->name) ? REFRESH_PLACES : REFRESH_ENTRIES;

	return owner->name[0] && l->where & where && refresh_is_wanted(l->wanted, owner->name);
}

static int take_owner(struct refresh_listing *l, uint32_t number, uint32_t *ret, struct err *err)
{
	CLEANUP_FREE char *room = NULL;
	struct owner owner;

	*ret = 1;
	if (!may_be_wanted(l, number))
		return 0;
	if (store_owner(l->store, number, &owner, &room))
		return err_system(err, EIO, "cannot read the owners of the entries");
	if (!takes(l, &owner))
		return 0;
	vec_push(l->names, ((struct refresh_name){.name = mem_strdup(owner.name),
						  .entries = true,
						  .place = geo_is_name(owner.name),
						  .ends_s = UINT64_MAX,
						  .since_s = owner.since_s}));
	*ret = records_owner(&l->names->held, &owner) + 2;
	return 0;
}

static int take_reference(struct refresh_listing *l, const struct store_ref *ref, struct err *err)
{
	uint32_t *owner;
	int code = 0;

	while (l->owners.n <= ref->owner)
		vec_push(&l->owners, 0);
	owner = &l->owners.at[ref->owner];
	if (!*owner && (code = take_owner(l, ref->owner, owner, err)))
		return code;
	if (*owner > 1)
		vec_push(&l->found, ((struct reference){.prefix = store_ref_prefix(ref),
							.kind = ref->kind,
							.owner = *owner - 2,
							.until_s = ref->until_s}));
	return 0;
}

static int list_entries(const char *instance, unsigned where, const struct refresh_wanted *wanted,
			struct refresh *ret, struct err *err)
{
	CLEANUP_STORE struct store *store = NULL;
	CLEANUP(listing_free)
	struct refresh_listing l = {.where = where, .wanted = wanted, .names = ret};
	int code = store_read(instance, &store, err);

	if (code)
		return code;
	l.store = store;
	for (size_t r = 0; r < store->snapshot->n; r++)
		if ((code = take_reference(&l, &store->snapshot->refs[r], err)))
			return code;
	records_load(&ret->held, &ret->held.list, l.found.at, l.found.n);
	return 0;
}

// ---- names of both ------------------------------------------------------------------------------

// Merges two names. The older answer counts.
static void merge(struct refresh_name *to, struct refresh_name *from)
{
	to->entries |= from->entries;
	to->policy |= from->policy;
	to->empty &= from->empty;
	to->since_s = from->since_s < to->since_s ? from->since_s : to->since_s;
	to->ends_s = from->ends_s < to->ends_s ? from->ends_s : to->ends_s;
	free(from->name);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct refresh_name *)a)->name,
		      ((const struct refresh_name *)b)->name);
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
		 struct refresh *ret, struct err *policy, struct err *err)
{
	CLEANUP(refresh_wanted_free) struct refresh_wanted wanted;
	int code = 0;

	refresh_wanted_make(only, n, &wanted);
	*ret = (struct refresh){0};
	if (where & (REFRESH_ENTRIES | REFRESH_PLACES) &&
	    (code = list_entries(instance, where, &wanted, ret, err)))
		return code;
	if (where & REFRESH_POLICY)
		refresh_list_policy(instance, &wanted, ret, policy);
	sort(ret);
	return 0;
}

// ---- resolving them -----------------------------------------------------------------------------

static void run_entries(const struct apply_options *o, unsigned where, struct refresh_guard *guard,
			struct refresh *r, struct err *err)
{
	struct dns_options dns = o->dns;

	dns.search = true;
	refresh_entries(o->instance, o->command, where, &dns, guard, r, err);
}

static void run_policy(struct candidate *c, const struct apply_options *o,
		       struct refresh_guard *guard, struct refresh *r, struct err *err)
{
	int code = refresh_policy(c, o, guard, r, err);

	if (!refresh_is_other_command(code))
		return;
	err_clear(err);
	r->trial = code == -EBUSY;
}

int refresh_run(struct candidate *c, const struct apply_options *o, unsigned where,
		struct refresh *r, struct refresh_refused *refused, struct err *err)
{
	CLEANUP(refresh_guard_free)
	struct refresh_guard guard = {.session = o->session, .dns = &o->dns};

	trace(refresh__begin, o->instance, r->n);
	if (where & (REFRESH_ENTRIES | REFRESH_PLACES))
		run_entries(o, where, &guard, r, &refused->entries);
	if (where & REFRESH_POLICY && !refused->policy.text[0])
		run_policy(c, o, &guard, r, &refused->policy);
	trace(refresh__end, o->instance, refused->entries.code, refused->policy.code);
	return r->n ? answered_note(o->instance, r, err) : 0;
}
