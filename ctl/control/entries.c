// SPDX-License-Identifier: GPL-2.0-only
// Walks through the records and the entries of the maps together; both are sorted.
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

static bool is_before(const struct overlay_entry *counter, const struct entry *entry)
{
	int order = prefix_compare(&counter->prefix, &entry->prefix);

	return order < 0 || (!order && counter->kind < entry->kind);
}

// An entry that expired since the maps were read has no counters.
static void set_counters(struct entries *e)
{
	const struct overlay_entries *counters = &e->store->entries;
	const struct overlay_entry *counter;

	while (e->counter < counters->n && is_before(&counters->at[e->counter], &e->entry))
		e->counter++;
	if (e->counter == counters->n)
		return;
	counter = &counters->at[e->counter];
	if (prefix_compare(&counter->prefix, &e->entry.prefix) || counter->kind != e->entry.kind)
		return;
	e->entry.packets = counter->hits.packets;
	e->entry.bytes = counter->hits.bytes;
	e->entry.seen = counter->seen;
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
	const struct record *record = &e->store->records.list.at[at];
	const struct overlay_entry *counter = store_entry(e->store, &record->prefix, record->kind);

	e->next = at;
	e->counter = counter ? (size_t)(counter - e->store->entries.at) : e->store->entries.n;
	return entries_next(e);
}
