// SPDX-License-Identifier: GPL-2.0-only
// Collects several changes for one commit. Each change begins with few records loaded, so it costs
// what it touches: the previous change is put aside, in a private copy of the index.
#include <stdlib.h>

#include "ctl/control/entries/store_parts.h"

struct store_steps {
	struct journal_index *journal; // the index of the journal; the store has the copy
	struct prefix_list touched;    // all that was loaded or changed, in any order
	bool whole;                    // of the store at the first step
	struct record_list before;     // of the store, if whole
};

static void steps_free(struct store_steps **s)
{
	if (!*s)
		return;
	journal_index_free((*s)->journal);
	vec_free(&(*s)->touched);
	vec_free(&(*s)->before);
	free(*s);
}

// Gives the store the index of the journal again.
static void drop_copy(struct store *b, struct store_steps *s)
{
	journal_index_free(b->journal.index);
	b->journal.index = TAKE_PTR(s->journal);
}

void store_forget_steps(struct store *b)
{
	CLEANUP(steps_free) struct store_steps *steps = TAKE_PTR(b->steps);

	if (steps)
		drop_copy(b, steps);
}

// Returns the number of the owner in the copy. Its line is not in the journal yet, so the owner
// stays in the records.
static uint32_t number_in_copy(struct store *b, uint32_t owner)
{
	uint32_t number = journal_index_owners(b->journal.index);

	while (b->numbers.n < b->records.owners.n)
		vec_push(&b->numbers, JOURNAL_NONE);
	if (b->numbers.at[owner] != JOURNAL_NONE)
		return b->numbers.at[owner];
	journal_index_owner(b->journal.index, number, 0, 0, &b->records.owners.at[owner]);
	store_know_owner(b, number, owner);
	return number;
}

static void change_copy(struct store *b, const struct reference *r,
			const char *(*change)(struct journal_index *x, const struct reference *r))
{
	struct reference numbered = *r;

	numbered.owner = number_in_copy(b, r->owner);
	change(b->journal.index, &numbered);
}

static void put_aside(void *ctx, const struct reference *old, const struct reference *new)
{
	struct store *b = ctx;

	if (old && (!new || old->owner != new->owner))
		change_copy(b, old, journal_index_drop);
	if (new)
		change_copy(b, new, journal_index_stage);
}

static void touch(struct store *b, const struct record_list *list)
{
	vec_each (list, record)
		vec_push(&b->steps->touched, record->prefix);
}

// If all records are loaded, the commit replaces the journal, so its content does not matter.
static void copy_records(struct store *b)
{
	const struct record_list *list = &b->records.list;

	b->steps->before = b->before;
	b->before = (struct record_list){0};
	b->journal.index = journal_index_new(NULL, list->n);
	b->numbers.n = b->owners.n = 0;
	vec_each (list, record)
		put_aside(b, NULL, record);
	b->whole = false;
}

static void begin_steps(struct store *b)
{
	b->steps = mem_new(struct store_steps);
	b->steps->whole = b->whole;
	b->steps->journal = b->journal.index;
	if (b->whole)
		copy_records(b);
	else
		b->journal.index = journal_index_copy(b->steps->journal);
}

void store_next(struct store *b)
{
	bool whole = b->whole;

	if (!b->steps)
		begin_steps(b);
	if (!b->steps->whole) {
		touch(b, &b->before);
		touch(b, &b->records.list);
	}
	if (!whole)
		store_each_difference(b, put_aside, b);
	store_unload(b);
}

// New owners have no number in the journal until the change is printed.
static void forget_numbers(struct store *b)
{
	uint32_t known = journal_index_owners(b->journal.index);

	vec_each (&b->numbers, number)
		if (*number != JOURNAL_NONE && *number >= known)
			*number = JOURNAL_NONE;
}

// Makes the content of the copy the records of the store.
static int take_copy(struct store *b, struct store_steps *s, struct err *err)
{
	prefixes_sort(&s->touched);
	return s->whole ? store_load_all(b, err) : store_load(b, s->touched.at, s->touched.n, err);
}

// Loads the references of the journal to the same prefixes into `before`.
static int restore_before(struct store *b, struct store_steps *s, struct err *err)
{
	struct record_list after = b->records.list;
	int code = 0;

	b->records.list = (struct record_list){0};
	store_unload(b);
	drop_copy(b, s);
	forget_numbers(b);
	if (s->whole) {
		b->whole = true;
		vec_free(&b->before);
		b->before = s->before;
		s->before = (struct record_list){0};
	} else {
		code = store_load(b, s->touched.at, s->touched.n, err);
	}
	vec_free(&b->records.list);
	b->records.list = after;
	return code;
}

static int gather(struct store *b, struct store_steps *steps, struct err *err)
{
	int code = take_copy(b, steps, err);

	if (code) {
		drop_copy(b, steps);
		return code;
	}
	return restore_before(b, steps, err);
}

int store_gather(struct store *b, struct err *err)
{
	CLEANUP(steps_free) struct store_steps *steps = NULL;
	int code;

	if (!b->steps)
		return 0;
	store_next(b);
	steps = TAKE_PTR(b->steps);
	b->gathering = true;
	code = gather(b, steps, err);
	b->gathering = false;
	return code;
}
