// SPDX-License-Identifier: GPL-2.0-only
// Walks through the records and asks the maps for the counters.
#include "ctl/control/entries.h"

struct entries entries_of(const struct store *store)
{
	return (struct entries){.store = store};
}

void entries_free(struct entries *e)
{
	vec_free(&e->entry.references);
}

static void add_reference(struct entries *e, const struct record *record)
{
	const struct owner *owner = &e->store->records.owners.at[record->owner];
	struct entry *entry = &e->entry;

	vec_push(&entry->references, ((struct entry_reference){owner, record->until_s}));
	if (record->until_s > entry->until_s)
		entry->until_s = record->until_s;
	if (owner->since_s < entry->since_s)
		entry->since_s = owner->since_s;
}

// An entry that expired since the maps were read has no counters.
static void set_counters(struct entries *e)
{
	struct overlay_entry counter;

	if (!store_entry(e->store, &e->entry.prefix, e->entry.kind, &counter))
		return;
	e->entry.packets = counter.hits.packets;
	e->entry.bytes = counter.hits.bytes;
	e->entry.seen = counter.seen;
}

const struct entry *entries_next(struct entries *e)
{
	const struct record *end = e->store->records.list.at + e->store->records.list.n;
	const struct record *first = e->store->records.list.at + e->next, *record = first;
	struct entry *entry = &e->entry;

	if (e->next == e->store->records.list.n)
		return NULL;
	entry->at = e->next;
	entry->prefix = first->prefix;
	entry->kind = first->kind;
	entry->until_s = 0;
	entry->since_s = UINT64_MAX;
	entry->packets = entry->bytes = entry->seen = 0;
	entry->references.n = 0;
	while (record < end && record->kind == first->kind &&
	       !prefix_compare(&record->prefix, &first->prefix))
		add_reference(e, record++);
	e->next += (size_t)(record - first);
	set_counters(e);
	return entry;
}

const struct entry *entries_at(struct entries *e, size_t at)
{
	e->next = at;
	return entries_next(e);
}
