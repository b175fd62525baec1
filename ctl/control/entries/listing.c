// SPDX-License-Identifier: GPL-2.0-only
// Walks through the references of a snapshot, reads their owners and asks the maps for the
// counters.
#include "ctl/control/entries/listing.h"

#include <stdlib.h>
#include <string.h>

#define OWNERS_KEPT 64  // between two entries
#define FIRST_AHEAD 512 // counters that are read with the first one

struct entries entries_of(struct store *store)
{
	return (struct entries){.store = store};
}

static void forget_owners(struct entries *e)
{
	for (size_t o = 0; o < e->owners_n; o++) {
		free(e->owners[o]->room);
		free(e->owners[o]);
	}
	e->owners_n = 0;
}

void entries_free(struct entries *e)
{
	forget_owners(e);
	free(e->owners);
	vec_free(&e->entry.references);
	vec_free(&e->counters);
}

static void read_owner(struct store *store, struct entry_owner *o)
{
	if (store_owner(store, o->number, &o->owner, &o->room))
		o->owner = (struct owner){
			.origin = (char *)"",
			.list = (char *)"",
			.name = (char *)"",
			.note = (char *)"its line in the journal cannot be read",
			.by = (char *)"",
		};
}

// Neighbours mostly have the same owner, which was met last.
static const struct owner *find_owner(struct entries *e, uint32_t number)
{
	struct entry_owner *fresh;

	for (size_t o = e->owners_n; o-- > 0;)
		if (e->owners[o]->number == number)
			return &e->owners[o]->owner;
	fresh = mem_new(struct entry_owner);
	fresh->number = number;
	read_owner(e->store, fresh);
	e->owners = mem_realloc(e->owners, e->owners_n + 1, sizeof(*e->owners));
	e->owners[e->owners_n++] = fresh;
	return &fresh->owner;
}

static bool same_entry(const struct store_ref *a, const struct store_ref *b)
{
	return a->kind == b->kind && a->len == b->len && a->family == b->family &&
	       !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static int compare_ref(const struct store_ref *r, const struct prefix *p)
{
	struct prefix mine = store_ref_prefix(r);

	return prefix_compare(&mine, p);
}

// Returns the first reference that does not sort before this prefix.
static size_t first_of(const struct store_snapshot *s, const struct prefix *p)
{
	size_t from = 0, to = s->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (compare_ref(&s->refs[middle], p) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool same_origin(struct entries *e, const struct store_ref *a, const struct store_ref *b)
{
	return a->kind == b->kind && a->grouped && b->grouped &&
	       !strcmp(find_owner(e, a->owner)->origin, find_owner(e, b->owner)->origin);
}

// Is the reference a member of a group, which is an entry in its place?
static bool is_hidden(struct entries *e, const struct store_ref *ref)
{
	const struct store_snapshot *s = e->store->snapshot;
	struct prefix p = store_ref_prefix(ref), net;

	if (!store_ref_is_member(ref) || !records_net(&p, &net))
		return false;
	for (size_t r = first_of(s, &net); r < s->n && !compare_ref(&s->refs[r], &net); r++)
		if (same_origin(e, &s->refs[r], ref))
			return true;
	return false;
}

size_t entries_hosts(struct entries *e, const struct entry_reference *reference,
		     void (*visit)(void *ctx, const struct addr *host), void *ctx)
{
	const struct store_snapshot *s = e->store->snapshot;
	const struct store_ref *group = &s->refs[reference->ref];
	struct prefix net = store_ref_prefix(group), p;
	size_t n = 0;

	for (size_t r = reference->ref; group->grouped && r < s->n; r++) {
		p = store_ref_prefix(&s->refs[r]);
		if (!prefix_contains(&net, &p))
			break;
		if (!store_ref_is_member(&s->refs[r]) || !same_origin(e, &s->refs[r], group))
			continue;
		visit(ctx, &p.addr);
		n++;
	}
	return n;
}

static void add_reference(struct entries *e, const struct store_ref *ref)
{
	struct entry *entry = &e->entry;
	const struct owner *owner = find_owner(e, ref->owner);

	vec_push(&entry->references,
		 ((struct entry_reference){owner, ref->until_s,
					   (size_t)(ref - e->store->snapshot->refs)}));
	if (ref->until_s > entry->until_s)
		entry->until_s = ref->until_s;
	if (owner->since_s < entry->since_s)
		entry->since_s = owner->since_s;
}

static void begin_entry(struct entries *e)
{
	const struct store_ref *first = &e->store->snapshot->refs[e->next];
	struct entry *entry = &e->entry;

	if (e->owners_n > OWNERS_KEPT)
		forget_owners(e);
	entry->at = e->next;
	entry->kernel =
		(struct overlay_entry){.prefix = store_ref_prefix(first), .kind = first->kind};
	entry->until_s = 0;
	entry->since_s = UINT64_MAX;
	entry->references.n = 0;
}

static int compare_references(const void *a, const void *b)
{
	const struct owner *x = ((const struct entry_reference *)a)->owner;
	const struct owner *y = ((const struct entry_reference *)b)->owner;
	int order = strcmp(x->origin, y->origin);

	order = order ? order : strcmp(x->list, y->list);
	return order ? order : strcmp(x->name, y->name);
}

// Reads the references of one entry, from e->next on. False: the entry is not wanted.
static bool read_entry(struct entries *e)
{
	const struct store_snapshot *s = e->store->snapshot;
	const struct store_ref *first = &s->refs[e->next];
	struct entry *entry = &e->entry;
	bool wanted;

	begin_entry(e);
	wanted = !e->wanted || e->wanted(e->wanted_ctx, &entry->kernel.prefix, entry->kernel.kind);
	for (; e->next < s->n && same_entry(&s->refs[e->next], first); e->next++)
		if (wanted && !is_hidden(e, &s->refs[e->next]))
			add_reference(e, &s->refs[e->next]);
	if (entry->references.n > 1)
		qsort(entry->references.at, entry->references.n, sizeof(*entry->references.at),
		      compare_references);
	return entry->references.n;
}

const struct entry *entries_next(struct entries *e)
{
	while (e->next < e->store->snapshot->n)
		if (read_entry(e))
			return &e->entry;
	return NULL;
}

const struct entry *entries_at(struct entries *e, size_t at)
{
	e->next = at;
	read_entry(e);
	return &e->entry;
}

// Counters are read together, since entries that are neighbours in the list are far apart in the
// maps.

static void add_counter(struct entries *e, const struct store_ref *ref)
{
	vec_push(&e->counters,
		 ((struct overlay_entry){.prefix = store_ref_prefix(ref), .kind = ref->kind}));
}

static int read_counters(struct entries *e, struct err *err)
{
	return overlay_read_many(e->store->instance, e->counters.at, e->counters.n, err);
}

// Reads the counters of the present entry and of following ones; the first time of a few, so that a
// reader sees them soon.
static int count_ahead(struct entries *e, struct err *err)
{
	const struct store_snapshot *s = e->store->snapshot;
	size_t max = e->counters.n ? ENTRIES_AHEAD : FIRST_AHEAD;

	e->counters.n = e->counted = 0;
	for (size_t r = e->entry.at; r < s->n && e->counters.n < max; r++) {
		struct prefix p = store_ref_prefix(&s->refs[r]);

		if (r > e->entry.at && same_entry(&s->refs[r], &s->refs[r - 1]))
			continue;
		if (!e->wanted || e->wanted(e->wanted_ctx, &p, s->refs[r].kind))
			add_counter(e, &s->refs[r]);
	}
	return read_counters(e, err);
}

int entries_count_at(struct entries *e, const size_t *at, size_t n, struct err *err)
{
	e->counters.n = e->counted = 0;
	for (size_t i = 0; i < n; i++)
		add_counter(e, &e->store->snapshot->refs[at[i]]);
	return read_counters(e, err);
}

// Finds the counters of the present entry, and skips counters of entries that were not asked for.
static const struct overlay_entry *find_counter(struct entries *e)
{
	while (e->counted < e->counters.n) {
		const struct overlay_entry *c = &e->counters.at[e->counted++];

		if (!overlay_compare(c, &e->entry.kernel))
			return c;
	}
	return NULL;
}

// An entry that has expired in between has no counters.
int entries_count(struct entries *e, struct err *err)
{
	const struct overlay_entry *counter = find_counter(e);
	int code;

	if (!counter) {
		if ((code = count_ahead(e, err)))
			return code;
		counter = find_counter(e);
	}
	if (!counter || counter->until <= e->store->clock.jiffies)
		return 0;
	e->entry.kernel = *counter;
	return 0;
}
