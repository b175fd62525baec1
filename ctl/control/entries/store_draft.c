// SPDX-License-Identifier: GPL-2.0-only
// Prepares a change on a copy of the index, without the lock, and hands it over to a store that has
// the lock.
//
// In between, others append to the journal, and their changes are in its last frames. The draft is
// valid as long as none of these frames concerns a prefix that the draft changes, or a list or name
// of which the draft has loaded all references.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/control/entries/store_parts.h"

int store_draft(const char *name, struct store **ret, struct err *err)
{
	CLEANUP_STORE struct store *b = NULL;
	struct journal_index *shared;
	int code = store_peek(name, &b, err);

	if (code)
		return code;
	if ((code = store_begin_reading(b, err)))
		return code;
	if (b->whole)
		return err_refused(err, "all entries have to be compared");
	shared = b->journal.index;
	b->journal.index = journal_index_keep(shared);
	journal_index_free(shared);
	b->lock = fd_close(b->lock);
	b->to_write = true; // for the functions that load
	*ret = TAKE_PTR(b);
	return 0;
}

// ---- what differs -------------------------------------------------------------------------------

// Counts the records at `from` that have the same prefix.
static size_t same_prefix(const struct record_list *list, size_t from)
{
	size_t n = 0;

	while (from + n < list->n &&
	       !prefix_compare(&list->at[from].prefix, &list->at[from + n].prefix))
		n++;
	return n;
}

static bool same_records(const struct reference *a, const struct reference *b, size_t n)
{
	for (size_t r = 0; r < n; r++)
		if (a[r].kind != b[r].kind || a[r].owner != b[r].owner ||
		    a[r].until_s != b[r].until_s)
			return false;
	return true;
}

static void keep(struct record_list *list, size_t *kept, size_t from, size_t n)
{
	if (n) // an empty list has no memory
		memmove(&list->at[*kept], &list->at[from], n * sizeof(*list->at));
	*kept += n;
}

void store_reduce(struct store *draft)
{
	struct record_list *old = &draft->before, *new = &draft->records.list;
	size_t o = 0, n = 0, old_kept = 0, new_kept = 0;

	while (o < old->n || n < new->n) {
		int order = o == old->n   ? 1
			    : n == new->n ? -1
					  : prefix_compare(&old->at[o].prefix, &new->at[n].prefix);
		size_t olds = order <= 0 ? same_prefix(old, o) : 0;
		size_t news = order >= 0 ? same_prefix(new, n) : 0;

		if (olds != news || !same_records(&old->at[o], &new->at[n], olds)) {
			keep(old, &old_kept, o, olds);
			keep(new, &new_kept, n, news);
		}
		o += olds;
		n += news;
	}
	old->n = old_kept;
	new->n = new_kept;
}

// ---- what others have changed -------------------------------------------------------------------

struct store_since {
	const struct store *b, *draft;
};

static int compare_to_record(const void *prefix, const void *record)
{
	return prefix_compare(prefix, &((const struct reference *)record)->prefix);
}

static bool has_prefix(const struct record_list *list, const struct prefix *p)
{
	return list->n && bsearch(p, list->at, list->n, sizeof(*list->at), compare_to_record);
}

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool has_who(const struct store *draft, uint64_t who)
{
	return draft->who.n &&
	       bsearch(&who, draft->who.at, draft->who.n, sizeof(who), compare_numbers);
}

static const char *look_at_line(void *since, const struct journal_line *line, size_t at, size_t len)
{
	const struct store_since *s = since;
	const struct journal_index *x = s->b->journal.index;

	if (line->what == JOURNAL_OWNER)
		return NULL;
	if (has_prefix(&s->draft->before, &line->reference.prefix) ||
	    has_prefix(&s->draft->records.list, &line->reference.prefix))
		return "a prefix has changed";
	return has_who(s->draft, x->owners[line->reference.owner].who) ? "the list has changed"
								       : NULL;
}

static bool same_file(const struct journal_file *a, const struct journal_file *b)
{
	struct stat x, y;

	return a->fd >= 0 && b->fd >= 0 && !fstat(a->fd, &x) && !fstat(b->fd, &y) &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_good(const struct store *b, const struct store *draft)
{
	struct store_since since = {.b = b, .draft = draft};

	return !b->whole && b->instance->meta.created_s == draft->instance->meta.created_s &&
	       same_file(&b->journal, &draft->journal) &&
	       !journal_each_since(&b->journal, draft->journal.end, look_at_line, &since);
}

// ---- handing over -------------------------------------------------------------------------------

static void mark_all(struct store *b, const struct record_list *list)
{
	vec_each (list, record)
		store_mark_loaded(b, &record->prefix);
}

// The owners keep their numbers, since the journal has only grown.
bool store_adopt(struct store *b, struct store *draft)
{
	if (!is_good(b, draft))
		return false;
	store_forget_loaded(b);
	b->records = draft->records;
	b->before = draft->before;
	memcpy(&b->numbers, &draft->numbers, sizeof(b->numbers));
	memcpy(&b->owners, &draft->owners, sizeof(b->owners));
	draft->records = (struct records){0};
	draft->before = (struct record_list){0};
	memset(&draft->numbers, 0, sizeof(draft->numbers));
	memset(&draft->owners, 0, sizeof(draft->owners));
	store_begin_loading(b);
	mark_all(b, &b->before);
	return true;
}
