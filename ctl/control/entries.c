// SPDX-License-Identifier: GPL-2.0-only
// Walks through the references of a snapshot, reads their owners and asks the maps for the counters.
#include "ctl/control/entries.h"

#include <stdlib.h>
#include <string.h>

#define OWNERS_KEPT 64 // between two entries

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

static struct prefix prefix_of_ref(const struct store_ref *r)
{
	struct prefix p = {.addr.family = r->family, .len = r->len};

	memcpy(p.addr.bytes, r->bytes, sizeof(p.addr.bytes));
	return p;
}

static bool same_entry(const struct store_ref *a, const struct store_ref *b)
{
	return a->kind == b->kind && a->len == b->len && a->family == b->family &&
	       !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static void add_reference(struct entries *e, const struct store_ref *ref)
{
	struct entry *entry = &e->entry;
	const struct owner *owner;

	if (store_expired(e->store, &entry->prefix, ref->kind, ref->until_s))
		return;
	owner = find_owner(e, ref->owner);
	vec_push(&entry->references, ((struct entry_reference){owner, ref->until_s}));
	if (ref->until_s > entry->until_s)
		entry->until_s = ref->until_s;
	if (owner->since_s < entry->since_s)
		entry->since_s = owner->since_s;
}

// An entry that has expired meanwhile has no counters.
static void set_counters(struct entries *e)
{
	struct overlay_entry counter;

	if (!store_entry(e->store, &e->entry.prefix, e->entry.kind, &counter))
		return;
	e->entry.packets = counter.hits.packets;
	e->entry.bytes = counter.hits.bytes;
	e->entry.seen = counter.seen;
}

static void begin_entry(struct entries *e)
{
	const struct store_ref *first = &e->store->snapshot->refs[e->next];
	struct entry *entry = &e->entry;

	if (e->owners_n > OWNERS_KEPT)
		forget_owners(e);
	entry->at = e->next;
	entry->prefix = prefix_of_ref(first);
	entry->kind = first->kind;
	entry->until_s = 0;
	entry->since_s = UINT64_MAX;
	entry->packets = entry->bytes = entry->seen = 0;
	entry->references.n = 0;
}

const struct entry *entries_next(struct entries *e)
{
	const struct store_snapshot *s = e->store->snapshot;

	while (e->next < s->n) {
		const struct store_ref *first = &s->refs[e->next];

		begin_entry(e);
		while (e->next < s->n && same_entry(&s->refs[e->next], first))
			add_reference(e, &s->refs[e->next++]);
		if (!e->entry.references.n)
			continue; // all have expired
		set_counters(e);
		return &e->entry;
	}
	return NULL;
}

const struct entry *entries_at(struct entries *e, size_t at)
{
	e->next = at;
	return entries_next(e);
}
