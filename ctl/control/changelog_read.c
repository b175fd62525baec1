// SPDX-License-Identifier: GPL-2.0-only
// Reads the record of changes from its end, as far as the question needs.
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/changelog_tail.h"

#define USUAL_LINE    512 // bytes; most lines are shorter
#define MORE          8   // times the bytes, if there are too few changes in them
#define AUTHORS_FIRST 65536

void changelog_free(struct changelog *l)
{
	vec_each (&l->list, c)
		changelog_free_change(c);
	vec_free(&l->list);
	l->damaged = 0;
}

// ---- the last changes ---------------------------------------------------------------------------

// The first of the changes that are read may be the rest of some that are combined: one more.
static int read_last(const struct changelog_tail *t, const struct changelog_choice *choice,
		     struct changelog *ret, struct err *err)
{
	const struct changelog_lines lines = {.choice = choice, .entries = t->entries};
	uint64_t bytes = choice->last ? (choice->last + 1) * USUAL_LINE : UINT64_MAX;

	for (;;) {
		bool all;
		int code = changelog_tail_read(t, bytes, &lines, ret, &all, err);

		if (code || all || ret->list.n > choice->last)
			return code;
		changelog_free(ret);
		bytes = bytes < UINT64_MAX / MORE ? bytes * MORE : UINT64_MAX;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct changelog_change *x = a, *y = b;

	if (x->at_ms != y->at_ms)
		return x->at_ms < y->at_ms ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

// Leaves the newest in the list.
static void leave_last(struct changelog *l, size_t last)
{
	size_t drop = last && l->list.n > last ? l->list.n - last : 0;

	for (size_t n = 0; n < drop; n++)
		changelog_free_change(&l->list.at[n]);
	l->list.n -= drop;
	if (drop)
		memmove(l->list.at, l->list.at + drop, l->list.n * sizeof(*l->list.at));
}

int changelog_read_tails(const struct changelog_tail tails[2],
			 const struct changelog_choice *choice, struct changelog *ret,
			 struct err *err)
{
	CLEANUP_CHANGELOG struct changelog both = {0};

	for (int t = 0; t < 2; t++) {
		CLEANUP_CHANGELOG struct changelog one = {0};
		int code = read_last(&tails[t], choice, &one, err);

		if (code)
			return code;
		vec_each (&one.list, c)
			vec_push(&both.list, *c);
		one.list.n = 0;
		both.damaged += one.damaged;
	}
	if (both.list.n)
		qsort(both.list.at, both.list.n, sizeof(*both.list.at), by_time);
	leave_last(&both, choice->last);
	*ret = both;
	both = (struct changelog){0};
	return 0;
}

int changelog_read(const char *instance, const struct changelog_choice *choice,
		   struct changelog *ret, struct err *err)
{
	CLEANUP_CHANGELOG_TAIL struct changelog_tail others = {.fds = {-1, -1}};
	CLEANUP_CHANGELOG_TAIL struct changelog_tail entries = {.fds = {-1, -1}};
	int code;

	if ((code = changelog_tail_open(instance, false, &others, err)))
		return code;
	if ((code = changelog_tail_open(instance, true, &entries, err)))
		return code;
	return changelog_read_tails((struct changelog_tail[]){others, entries}, choice, ret, err);
}

// ---- authors ------------------------------------------------------------------------------------

void changelog_authors_free(struct changelog_authors *a)
{
	changelog_free(&a->read);
}

static const char *find_author(const struct changelog *l, const char *backend)
{
	CLEANUP_FREE char *item = mem_printf("; %s; ", backend);
	const char *by = NULL;

	vec_each (&l->list, c) {
		CLEANUP_FREE char *about = mem_printf("; %s", c->about);

		if (strstr(about, item))
			by = c->by;
	}
	return by;
}

// Only lines with backends are parsed. A record that cannot be read names no author.
static void read_more(struct changelog_authors *a)
{
	static const struct changelog_choice everything;
	const struct changelog_lines lines = {.choice = &everything, .having = "\"about\":"};
	CLEANUP_CHANGELOG_TAIL struct changelog_tail t = {.fds = {-1, -1}};

	changelog_free(&a->read);
	a->bytes = a->bytes ? a->bytes * MORE : AUTHORS_FIRST;
	if (changelog_tail_open(a->instance, false, &t, NULL) ||
	    changelog_tail_read(&t, a->bytes, &lines, &a->read, &a->all, NULL))
		a->all = true;
}

const char *changelog_author(struct changelog_authors *a, const char *backend)
{
	const char *by = find_author(&a->read, backend);

	while (!by && !a->all) {
		read_more(a);
		by = find_author(&a->read, backend);
	}
	return by;
}
