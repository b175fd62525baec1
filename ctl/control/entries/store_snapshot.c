// SPDX-License-Identifier: GPL-2.0-only
// Copies all references at one moment, for readers that take their time.
#include <stdlib.h>
#include <string.h>

#include "ctl/control/entries/journal_order.h"
#include "ctl/control/entries/store_parts.h"

#define ASKED    65536 // references about whose expiry the maps are asked at once
#define RELEASED 65536 // references that are copied before their pages of the index are let go

void store_snapshot_free(struct store_snapshot *s)
{
	if (!s)
		return;
	free(s->refs);
	free(s->owners);
	free(s);
}

static struct store_ref copy_ref(const struct journal_index *x, const struct journal_ref *r)
{
	struct store_ref copy = {
		.until_s = r->until_s,
		.owner = r->owner,
		.family = r->family,
		.len = r->len,
		.kind = r->kind,
		.grouped = x->owners[r->owner].group,
	};

	memcpy(copy.bytes, r->bytes, sizeof(copy.bytes));
	return copy;
}

static struct store_snapshot *take_index(const struct journal_index *x)
{
	struct store_snapshot *s = mem_new(struct store_snapshot);
	CLEANUP_JOURNAL_ORDER struct journal_order order = journal_order(x);
	size_t owners = journal_index_owners(x);

	s->n = order.n;
	s->refs = mem_realloc(NULL, s->n, sizeof(*s->refs));
	for (size_t r = 0; r < s->n; r++) {
		s->refs[r] = copy_ref(x, &x->refs[order.at[r]]);
		if (r % RELEASED == 0)
			journal_index_release(x, order.at[r]);
	}
	s->owners = mem_realloc(NULL, owners, sizeof(*s->owners));
	memcpy(s->owners, x->owners, owners * sizeof(*s->owners));
	return s;
}

bool store_ref_is_member(const struct store_ref *r)
{
	return r->grouped && r->len == (r->family == 4 ? 32 : 128);
}

// The wall clock decides for members of a group, which the maps do not have.
static bool has_ended(const struct store *b, struct store_ends *ends, const struct store_ref *r)
{
	return store_ref_is_member(r) ? r->until_s <= b->clock.wall_ms / 1000
				      : store_ends_expired(b, ends, r->until_s);
}

static int drop_ended_among(const struct store *b, struct store_snapshot *s, size_t from,
			    size_t end, size_t *kept, struct err *err)
{
	CLEANUP_STORE_ENDS struct store_ends ends = {0};
	int code;

	for (size_t r = from; r < end; r++) {
		struct prefix p = store_ref_prefix(&s->refs[r]);

		if (!store_ref_is_member(&s->refs[r]))
			store_ends_note(b, &ends, &p, s->refs[r].kind, s->refs[r].until_s);
	}
	if ((code = store_ends_read(b, &ends, err)))
		return code;
	for (size_t r = from; r < end; r++)
		if (!has_ended(b, &ends, &s->refs[r]))
			s->refs[(*kept)++] = s->refs[r];
	return 0;
}

static int drop_ended_refs(const struct store *b, struct store_snapshot *s, struct err *err)
{
	size_t kept = 0;

	for (size_t from = 0; from < s->n; from += ASKED) {
		size_t end = s->n - from > ASKED ? from + ASKED : s->n;
		int code = drop_ended_among(b, s, from, end, &kept, err);

		if (code)
			return code;
	}
	s->n = kept;
	return 0;
}

// Copies records that had to be compared with the maps, or whose times were moved with the clock.
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
			.grouped = r->owners.at[record->owner].group,
		};
		memcpy(ref->bytes, record->prefix.addr.bytes, sizeof(ref->bytes));
	}
	return s;
}

struct prefix store_ref_prefix(const struct store_ref *r)
{
	struct prefix p = {.addr.family = r->family, .len = r->len};

	memcpy(p.addr.bytes, r->bytes, sizeof(p.addr.bytes));
	return p;
}

// Leaves the journal open, since owners are read later.
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
	if ((code = drop_ended_refs(b, b->snapshot, err)))
		return code;
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
