// SPDX-License-Identifier: GPL-2.0-only
// All references at one moment, for readers that take their time.
#include <stdlib.h>
#include <string.h>

#include "ctl/control/store_parts.h"

#define RELEASED 65536 // references that are copied before their pages of the index are let go

void store_snapshot_free(struct store_snapshot *s)
{
	if (!s)
		return;
	free(s->refs);
	free(s->owners);
	free(s);
}

static struct store_ref copy_ref(const struct journal_ref *r)
{
	struct store_ref copy = {
		.until_s = r->until_s,
		.owner = r->owner,
		.family = r->family,
		.len = r->len,
		.kind = r->kind,
	};

	memcpy(copy.bytes, r->bytes, sizeof(copy.bytes));
	return copy;
}

static struct store_snapshot *take_index(const struct journal_index *x)
{
	struct store_snapshot *s = mem_new(struct store_snapshot);
	CLEANUP_FREE uint32_t *sorted = journal_sorted(x, &s->n);
	size_t owners = journal_index_owners(x);

	s->refs = mem_realloc(NULL, s->n, sizeof(*s->refs));
	for (size_t r = 0; r < s->n; r++) {
		s->refs[r] = copy_ref(&x->refs[sorted[r]]);
		if (r % RELEASED == 0)
			journal_index_release(x, sorted[r]);
	}
	s->owners = mem_realloc(NULL, owners, sizeof(*s->owners));
	memcpy(s->owners, x->owners, owners * sizeof(*s->owners));
	return s;
}

// Of records that had to be compared with the maps, or moved with the clock.
static struct store_snapshot *take_records(const struct records *r)
{
	struct store_snapshot *s = mem_new(struct store_snapshot);

	s->refs = mem_realloc(NULL, r->list.n, sizeof(*s->refs));
	vec_each (&r->list, record) {
		struct store_ref *ref = &s->refs[s->n++];

		*ref = (struct store_ref){
			.until_s = record->until_s,
			.owner = record->owner,
			.family = record->prefix.addr.family,
			.len = record->prefix.len,
			.kind = record->kind,
		};
		memcpy(ref->bytes, record->prefix.addr.bytes, sizeof(ref->bytes));
	}
	return s;
}

// The journal stays open for its owners.
int store_read(const char *name, struct store **ret, struct err *err)
{
	CLEANUP_STORE struct store *b = NULL;
	int code = store_peek(name, &b, err);

	if (code)
		return code;
	if ((code = store_begin_reading(b, err)))
		return code;
	b->snapshot = b->whole ? take_records(&b->records) : take_index(b->journal.index);
	journal_index_free(TAKE_PTR(b->journal.index));
	b->lock = fd_close(b->lock);
	*ret = TAKE_PTR(b);
	return 0;
}

static int copy_owner(const struct owner *owner, struct owner *ret, char **ret_room)
{
	struct records one = {0};

	records_owner(&one, owner);
	*ret = one.owners.at[0];
	*ret_room = ret->origin; // one allocation
	vec_free(&one.owners);
	return 0;
}

int store_owner(struct store *b, uint32_t owner, struct owner *ret, char **ret_room)
{
	if (!b->snapshot->owners)
		return copy_owner(&b->records.owners.at[owner], ret, ret_room);
	return journal_read_owner(&b->journal, &b->snapshot->owners[owner], ret, ret_room, NULL);
}
