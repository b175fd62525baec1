// SPDX-License-Identifier: GPL-2.0-only
// Loads records from the journal through its index.
#include "ctl/control/entries/store_parts.h"

#include <stdlib.h>
#include <string.h>

#define FEW      64    // nets
#define RELEASED 65536 // references that are visited before their pages of the index are let go

void store_forget_loaded(struct store *b)
{
	store_forget_steps(b);
	records_free(&b->records);
	vec_free(&b->before);
	vec_free(&b->numbers);
	vec_free(&b->owners);
	vec_free(&b->loaded);
	vec_free(&b->loaded_refs);
	vec_free(&b->who);
}

// Room for the owners and references that the index has now.
static void make_room(struct store *b)
{
	size_t owners = journal_index_owners(b->journal.index);
	size_t bytes = journal_index_slots(b->journal.index) / 8 + 1;

	if (owners > b->owners.n) {
		vec_reserve(&b->owners, owners - b->owners.n);
		memset(b->owners.at + b->owners.n, 0,
		       (owners - b->owners.n) * sizeof(*b->owners.at));
		b->owners.n = owners;
	}
	if (bytes > b->loaded.n) {
		vec_reserve(&b->loaded, bytes - b->loaded.n);
		memset(b->loaded.at + b->loaded.n, 0, bytes - b->loaded.n);
		b->loaded.n = bytes;
	}
}

void store_begin_loading(struct store *b)
{
	b->records.clock = *journal_index_clock(b->journal.index);
	make_room(b);
}

void store_unload(struct store *b)
{
	vec_each (&b->loaded_refs, ref)
		b->loaded.at[*ref / 8] = 0;
	b->loaded_refs.n = b->before.n = b->records.list.n = 0;
	make_room(b);
}

// Records that are being loaded, in any order.
struct store_loading {
	struct store *b;
	struct record_list all;    // in the journal
	struct record_list staged; // made by an earlier change of this commit
	struct err *err;
};

static void loading_free(struct store_loading *l)
{
	vec_free(&l->all);
	vec_free(&l->staged);
}

void store_know_owner(struct store *b, uint32_t number, uint32_t owner)
{
	while (b->owners.n <= number)
		vec_push(&b->owners, 0);
	b->owners.at[number] = owner + 1;
	while (b->numbers.n <= owner) // owners that the caller has added in between
		vec_push(&b->numbers, JOURNAL_NONE);
	b->numbers.at[owner] = number;
}

// *ret: the index in records.owners.
static int load_owner(struct store *b, uint32_t number, uint32_t *ret, struct err *err)
{
	CLEANUP_FREE char *room = NULL;
	struct owner owner;
	int code;

	if (b->owners.at[number]) {
		*ret = b->owners.at[number] - 1;
		return 0;
	}
	if ((code = journal_read_owner(&b->journal, &b->journal.index->owners[number], &owner,
				       &room, err)))
		return code;
	owner.since_s = records_shifted(owner.since_s, b->clock_by);
	*ret = records_owner(&b->records, &owner);
	store_know_owner(b, number, *ret);
	return 0;
}

bool store_entry(const struct store *b, const struct prefix *p, uint8_t kind,
		 struct overlay_entry *ret)
{
	struct overlay_entry entries[OVERLAY_KINDS];
	size_t n = 0;

	if (overlay_read_one(b->instance, p, entries, &n, NULL))
		return false;
	for (size_t e = 0; e < n; e++) {
		if (entries[e].kind != kind || entries[e].until <= b->clock.jiffies)
			continue;
		*ret = entries[e];
		return true;
	}
	return false;
}

static int load_ref(struct store_loading *l, uint32_t ref)
{
	struct store *b = l->b;
	const struct journal_ref *r = &b->journal.index->refs[ref];
	struct reference record = journal_ref_reference(r);
	int code;

	if (b->loaded.at[ref / 8] >> ref % 8 & 1)
		return 0;
	if ((code = load_owner(b, r->owner, &record.owner, l->err)))
		return code;
	b->loaded.at[ref / 8] |= (uint8_t)(1 << ref % 8);
	vec_push(&b->loaded_refs, ref);
	if (!r->staged)
		record.until_s = records_shifted(r->until_s, b->clock_by);
	vec_push(r->staged ? &l->staged : &l->all, record);
	return 0;
}

static int load_prefix(struct store_loading *l, const struct prefix *p)
{
	const struct journal_index *x = l->b->journal.index;

	for (uint32_t r = journal_index_first(x, p); r != JOURNAL_NONE;
	     r = journal_index_next(x, p, r)) {
		int code = load_ref(l, r);

		if (code)
			return code;
	}
	return 0;
}

// Keeps the references that have not expired. The maps know neither staged references nor members
// of a group.
static int drop_ended(struct store_loading *l)
{
	CLEANUP_STORE_ENDS struct store_ends ends = {0};
	size_t kept = 0;
	int code;

	vec_each (&l->all, record)
		if (!records_is_member(&l->b->records, record))
			store_ends_note(l->b, &ends, &record->prefix, record->kind,
					record->until_s);
	if ((code = store_ends_read(l->b, &ends, l->err)))
		return code;
	vec_each (&l->all, record)
		if (records_is_member(&l->b->records, record)
			    ? record->until_s > l->b->clock.wall_ms / 1000
			    : !store_ends_expired(l->b, &ends, record->until_s))
			l->all.at[kept++] = *record;
	l->all.n = kept;
	return 0;
}

// Also runs after a failure: each reference that is marked as loaded must be among the records.
static int finish(struct store_loading *l, int code)
{
	struct store *b = l->b;
	int expired;

	records_load(&b->records, &b->before, l->staged.at, l->staged.n);
	records_load(&b->records, &b->before, l->all.at, l->all.n);
	expired = drop_ended(l);
	records_load(&b->records, &b->records.list, l->staged.at, l->staged.n);
	records_load(&b->records, &b->records.list, l->all.at, l->all.n);
	return code ? code : expired;
}

static int load_each(struct store_loading *l, const struct prefix *prefixes, size_t n,
		     int (*load)(struct store_loading *l, const struct prefix *p))
{
	if (l->b->whole)
		return 0;
	for (size_t i = 0; i < n; i++) {
		int code = load(l, &prefixes[i]);

		if (code)
			return code;
	}
	return 0;
}

// Releases pages, so that a walk through a million references has few of them in memory.
static void let_go(const struct journal_index *x, uint32_t ref)
{
	if (ref % RELEASED == 0)
		journal_index_release(x, ref);
}

// Looks up every prefix that a /24 can contain: 511 look-ups if each length is in use, usually 256.
static int load_inside4(struct store_loading *l, const struct prefix *net)
{
	for (unsigned len = net->len; len <= 32; len++) {
		uint32_t n = journal_index_has_length(l->b->journal.index, 4, (uint8_t)len)
				     ? 1u << (len - net->len)
				     : 0;

		for (uint32_t i = 0; i < n; i++) {
			struct prefix p = {.addr = net->addr, .len = (uint8_t)len};
			int code;

			p.addr.bytes[3] = (uint8_t)(i << (32 - len));
			if ((code = load_prefix(l, &p)))
				return code;
		}
	}
	return 0;
}

// Are the nets few /24, which are looked up? A /64, or many nets, take a walk.
static bool is_few(const struct prefix_list *nets)
{
	if (nets->n > FEW)
		return false;
	vec_each (nets, net)
		if (net->addr.family != 4)
			return false;
	return true;
}

static int load_few(struct store_loading *l, const struct prefix_list *nets)
{
	vec_each (nets, net) {
		int code = load_inside4(l, net);

		if (code)
			return code;
	}
	return 0;
}

static int load_inside(struct store_loading *l, const struct prefix_list *nets)
{
	const struct journal_index *x = l->b->journal.index;

	if (is_few(nets))
		return load_few(l, nets);
	for (uint32_t r = 0; r < journal_index_slots(x); r++) {
		struct prefix p = journal_ref_prefix(&x->refs[r]);
		int code = 0;

		let_go(x, r);
		if (x->refs[r].family && store_nets_have(nets, &p))
			code = load_ref(l, r);
		if (code)
			return code;
	}
	return 0;
}

static void add_grouped(const struct store *b, const struct record_list *list,
			struct prefix_list *ret)
{
	struct prefix net;

	vec_each (list, record)
		if (b->records.owners.at[record->owner].group && records_net(&record->prefix, &net))
			vec_push(ret, net);
}

// A writer loads all records of a group, or none.
static int load_groups(struct store_loading *l, int code)
{
	CLEANUP_VEC struct prefix_list nets = {0};

	if (code || !l->b->to_write || l->b->whole || l->b->gathering)
		return code;
	add_grouped(l->b, &l->all, &nets);
	add_grouped(l->b, &l->staged, &nets);
	prefixes_sort(&nets);
	return load_inside(l, &nets);
}

int store_load_inside(struct store *b, const struct prefix_list *nets, struct err *err)
{
	CLEANUP(loading_free) struct store_loading l = {.b = b, .err = err};

	return finish(&l, b->whole ? 0 : load_inside(&l, nets));
}

void store_mark_loaded(struct store *b, const struct prefix *p)
{
	const struct journal_index *x = b->journal.index;

	for (uint32_t r = journal_index_first(x, p); r != JOURNAL_NONE;
	     r = journal_index_next(x, p, r)) {
		if (b->loaded.at[r / 8] >> r % 8 & 1)
			continue;
		b->loaded.at[r / 8] |= (uint8_t)(1 << r % 8);
		vec_push(&b->loaded_refs, r);
	}
}

int store_load(struct store *b, const struct prefix *prefixes, size_t n, struct err *err)
{
	CLEANUP(loading_free) struct store_loading l = {.b = b, .err = err};

	return finish(&l, load_groups(&l, load_each(&l, prefixes, n, load_prefix)));
}

static int load_covering(struct store_loading *l, const struct prefix *p)
{
	for (unsigned len = 0; len <= p->len; len++) {
		struct prefix outer = prefix_of(&p->addr, (uint8_t)len);
		int code;

		if (!journal_index_has_length(l->b->journal.index, p->addr.family, (uint8_t)len))
			continue;
		if ((code = load_prefix(l, &outer)))
			return code;
	}
	return 0;
}

int store_load_covering(struct store *b, const struct prefix *prefixes, size_t n, struct err *err)
{
	CLEANUP(loading_free) struct store_loading l = {.b = b, .err = err};
	int code = b->to_write ? 0 : store_begin_reading(b, err);

	code = code ? code : load_groups(&l, load_each(&l, prefixes, n, load_covering));
	if (!b->to_write)
		store_end_reading(b);
	return finish(&l, code);
}

static int compare_who(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

// sorted: the owners' `who` in the journal, ascending.
static int load_who(struct store_loading *l, const uint64_t *sorted, size_t n)
{
	const struct journal_index *x = l->b->journal.index;

	for (uint32_t r = 0; r < journal_index_slots(x); r++) {
		struct prefix p = journal_ref_prefix(&x->refs[r]);
		int code;

		let_go(x, r);
		if (!x->refs[r].family || !bsearch(&x->owners[x->refs[r].owner].who, sorted, n,
						   sizeof(*sorted), compare_who))
			continue;
		if ((code = load_prefix(l, &p)))
			return code;
	}
	return 0;
}

// Keeps the hashes for store_adopt.
static void keep_who(struct store *b, const uint64_t *sorted, size_t n)
{
	for (size_t w = 0; w < n; w++)
		vec_push(&b->who, sorted[w]);
	qsort(b->who.at, b->who.n, sizeof(*b->who.at), compare_who);
}

int store_load_who(struct store *b, const uint64_t *who, size_t n, struct err *err)
{
	CLEANUP(loading_free) struct store_loading l = {.b = b, .err = err};
	CLEANUP_FREE uint64_t *sorted = mem_zalloc(n, sizeof(*sorted));

	if (!n || b->whole)
		return 0;
	memcpy(sorted, who, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_who);
	keep_who(b, sorted, n);
	return finish(&l, load_groups(&l, load_who(&l, sorted, n)));
}

static int load_all(struct store_loading *l)
{
	const struct journal_index *x = l->b->journal.index;

	for (uint32_t r = 0; r < journal_index_slots(x); r++) {
		int code = x->refs[r].family ? load_ref(l, r) : 0;

		let_go(x, r);
		if (code)
			return code;
	}
	return 0;
}

int store_load_all(struct store *b, struct err *err)
{
	CLEANUP(loading_free) struct store_loading l = {.b = b, .err = err};

	return finish(&l, b->whole ? 0 : load_all(&l));
}

static int load_due(struct store_loading *l, uint32_t from, uint32_t n)
{
	struct store *b = l->b;
	const struct journal_index *x = b->journal.index;
	uint64_t now_s = b->clock.wall_ms / 1000;

	for (uint32_t r = from; r < journal_index_slots(x) && r - from < n; r++) {
		struct prefix p = journal_ref_prefix(&x->refs[r]);
		int code;

		let_go(x, r);
		if (!x->refs[r].family || records_shifted(x->refs[r].until_s, b->clock_by) > now_s)
			continue;
		b->due++;
		if ((code = load_prefix(l, &p)))
			return code;
	}
	return 0;
}

int store_load_expired(struct store *b, uint32_t from, uint32_t n, struct err *err)
{
	CLEANUP(loading_free) struct store_loading l = {.b = b, .err = err};

	return finish(&l, b->whole ? 0 : load_groups(&l, load_due(&l, from, n)));
}

static void add_expiry(const struct store *b, uint32_t ref, struct store_expiry *e)
{
	const struct journal_ref *r = &b->journal.index->refs[ref];
	uint64_t until_s = records_shifted(r->until_s, b->clock_by);

	if (!r->family || until_s == RECORD_NEVER)
		return;
	if (until_s <= b->clock.wall_ms / 1000) {
		if (!e->due++)
			e->first = ref;
	} else if (until_s < e->next_s) {
		e->next_s = until_s;
	}
}

int store_expiry(const char *name, struct store_expiry *ret, struct err *err)
{
	struct store_expiry e = {.next_s = RECORD_NEVER};
	CLEANUP_STORE struct store *b = NULL;
	int code = store_peek(name, &b, err);

	if (code)
		return code;
	code = store_begin_reading(b, err);
	for (uint32_t r = 0; r < (code ? 0 : journal_index_slots(b->journal.index)); r++)
		add_expiry(b, r, &e);
	store_end_reading(b);
	if (code)
		return code;
	e.wall_ms = b->clock.wall_ms;
	*ret = e;
	return 0;
}
