// SPDX-License-Identifier: GPL-2.0-only
// Finds the differences that a commit writes: references for the journal, entries for the maps.
#include "ctl/control/entries/store_parts.h"

#include <stdlib.h>

// ---- references ---------------------------------------------------------------------------------

struct store_diff {
	struct store *b;
	struct text owners, changes; // lines
	uint32_t next;               // number of the next new owner
};

// Returns the number of the owner. A new owner gets the next number and a line.
static uint32_t number_of(struct store_diff *d, uint32_t owner)
{
	struct store *b = d->b;

	while (b->numbers.n < b->records.owners.n)
		vec_push(&b->numbers, JOURNAL_NONE);
	if (b->numbers.at[owner] == JOURNAL_NONE) {
		b->numbers.at[owner] = d->next++;
		journal_print_owner(&d->owners, b->numbers.at[owner], &b->records.owners.at[owner]);
	}
	return b->numbers.at[owner];
}

// Prints the lines of the journal for one changed reference.
static void print_difference(void *ctx, const struct reference *old, const struct reference *new)
{
	struct store_diff *d = ctx;

	if (old && (!new || old->owner != new->owner))
		journal_print_remove(&d->changes, old, number_of(d, old->owner));
	if (new)
		journal_print_add(&d->changes, new, number_of(d, new->owner));
}

static bool same_record(const struct reference *a, const struct reference *b)
{
	return a->owner == b->owner && a->until_s == b->until_s;
}

void store_each_difference(const struct store *b, store_difference *visit, void *ctx)
{
	const struct reference *old = b->before.at, *new = b->records.list.at;
	const struct reference *old_end = old + b->before.n, *new_end = new + b->records.list.n;

	while (old < old_end || new < new_end) {
		int order = old == old_end   ? 1
			    : new == new_end ? -1
					     : record_compare(&b->records, old, new);

		if (order || !same_record(old, new))
			visit(ctx, order <= 0 ? old : NULL, order >= 0 ? new : NULL);
		old += order <= 0;
		new += order >= 0;
	}
}

bool store_differs(const struct store *b)
{
	const struct record_list *old = &b->before, *new = &b->records.list;

	if (old->n != new->n)
		return true;
	for (size_t r = 0; r < old->n; r++)
		if (old->at[r].owner != new->at[r].owner ||
		    old->at[r].until_s != new->at[r].until_s ||
		    old->at[r].kind != new->at[r].kind ||
		    prefix_compare(&old->at[r].prefix, &new->at[r].prefix))
			return true;
	return false;
}

char *store_print_change(struct store *b, size_t *ret_len)
{
	struct store_diff d = {.b = b, .next = journal_index_owners(b->journal.index)};

	store_each_difference(b, print_difference, &d);
	text_addn(&d.owners, text_get(&d.changes), d.changes.len);
	text_free(&d.changes);
	*ret_len = d.owners.len;
	return text_take(&d.owners);
}

// Returns the numbers of the owners that have references, in order.
static uint32_t *number_owners(const struct records *r)
{
	uint32_t *numbers = mem_zalloc(r->owners.n, sizeof(*numbers)), next = 0;

	vec_each (&r->list, record)
		numbers[record->owner] = 1;
	for (size_t o = 0; o < r->owners.n; o++)
		numbers[o] = numbers[o] ? next++ : JOURNAL_NONE;
	return numbers;
}

char *store_print_all(struct store *b, uint64_t epoch, size_t *ret_len)
{
	const struct records *r = &b->records;
	CLEANUP_FREE uint32_t *numbers = number_owners(r);
	struct journal_printer p;

	journal_print_begin(&p);
	for (size_t o = 0; o < r->owners.n; o++) {
		if (numbers[o] == JOURNAL_NONE)
			continue;
		journal_print_owner(&p.lines, numbers[o], &r->owners.at[o]);
		journal_print_lines(&p);
	}
	vec_each (&r->list, record) {
		journal_print_add(&p.lines, record, numbers[record->owner]);
		journal_print_lines(&p);
	}
	return journal_print_end(&p, epoch, &r->clock, ret_len);
}

// ---- entries ------------------------------------------------------------------------------------

static struct record_list entries_of(const struct store *b, const struct record_list *list)
{
	struct record_list entries = {0};

	records_entries(&b->records, list, &entries);
	return entries;
}

static struct overlay_entry want_of(const struct store *b, const struct reference *e, bool ends)
{
	return (struct overlay_entry){
		.prefix = e->prefix,
		.kind = e->kind,
		.until = ends ? 0 : clock_to_jiffies(&b->clock, e->until_s),
	};
}

static int compare_entries(const struct reference *a, const struct reference *b)
{
	int order = prefix_compare(&a->prefix, &b->prefix);

	return order ? order : (int)a->kind - (int)b->kind;
}

struct overlay_entry *store_changed_entries(const struct store *b, size_t *ret_n)
{
	CLEANUP_VEC struct record_list before = entries_of(b, &b->before);
	CLEANUP_VEC struct record_list after = entries_of(b, &b->records.list);
	struct overlay_entry *change = mem_zalloc(before.n + after.n, sizeof(*change));
	const struct reference *old = before.at, *old_end = old + before.n;
	const struct reference *new = after.at, *new_end = new + after.n;
	size_t n = 0;

	while (old < old_end || new < new_end) {
		int order = old == old_end ? 1 : new == new_end ? -1 : compare_entries(old, new);

		if (order < 0)
			change[n++] = want_of(b, old, true);
		else if (order > 0 || old->until_s != new->until_s)
			change[n++] = want_of(b, new, false);
		old += order <= 0;
		new += order >= 0;
	}
	*ret_n = n;
	return change;
}

struct overlay_entry *store_wanted_entries(const struct store *b, size_t *ret_n)
{
	CLEANUP_VEC struct record_list entries = entries_of(b, &b->records.list);
	struct overlay_entry *want = mem_zalloc(entries.n, sizeof(*want));

	for (size_t e = 0; e < entries.n; e++)
		want[e] = want_of(b, &entries.at[e], false);
	*ret_n = entries.n;
	return want;
}
