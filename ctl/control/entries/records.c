// SPDX-License-Identifier: GPL-2.0-only
// Keeps the records sorted: a change is a sort and a merge, a look-up a binary search.
#include "ctl/control/entries/records.h"

#include <endian.h>
#include <limits.h>
#include <string.h>

#define NET4 24 // where hosts are combined
#define NET6 64

void records_free(struct records *r)
{
	vec_each (&r->owners, h)
		free(h->origin); // its other strings are in the same allocation
	vec_free(&r->owners);
	vec_free(&r->list);
	r->clock = (struct records_clock){0};
}

static int compare_prefixes(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

void prefixes_sort(struct prefix_list *p)
{
	size_t kept = 0;

	if (p->n)
		qsort(p->at, p->n, sizeof(*p->at), compare_prefixes);
	vec_each (p, one)
		if (!kept || prefix_compare(&p->at[kept - 1], one))
			p->at[kept++] = *one;
	p->n = kept;
}

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

// Copies s to *at and moves *at past the copy.
static char *put_string(char **at, const char *s)
{
	size_t size = strlen(s) + 1;
	char *copy = memcpy(*at, s, size);

	*at += size;
	return copy;
}

uint32_t records_owner(struct records *r, const struct owner *h)
{
	const char *origin = or_empty(h->origin), *list = or_empty(h->list);
	const char *name = or_empty(h->name), *note = or_empty(h->note), *by = or_empty(h->by);
	size_t size = strlen(origin) + strlen(list) + strlen(name) + strlen(note) + strlen(by) + 5;
	struct owner copy = {.since_s = h->since_s, .fleeting = h->fleeting, .group = h->group};
	char *at = mem_zalloc(size, 1);

	copy.origin = put_string(&at, origin);
	copy.list = put_string(&at, list);
	copy.name = put_string(&at, name);
	copy.note = put_string(&at, note);
	copy.by = put_string(&at, by);
	vec_push(&r->owners, copy);
	return (uint32_t)(r->owners.n - 1);
}

int records_compare_owners(const struct owner *a, const struct owner *b)
{
	int order = strcmp(or_empty(a->origin), or_empty(b->origin));

	if (!order)
		order = strcmp(or_empty(a->list), or_empty(b->list));
	if (!order)
		order = strcmp(or_empty(a->name), or_empty(b->name));
	return order;
}

// Returns family and first seven bytes of the address as one number. It decides most comparisons,
// and a sort of 100,000 references takes half the time.
static uint64_t head_of(const struct prefix *p)
{
	uint64_t head;

	_Static_assert(offsetof(struct addr, bytes) == 1, "the family comes before the bytes");
	memcpy(&head, &p->addr, sizeof(head));
	return be64toh(head);
}

int record_compare(const struct records *r, const struct reference *a, const struct reference *b)
{
	uint64_t head_a = head_of(&a->prefix), head_b = head_of(&b->prefix);
	int order;

	if (head_a != head_b)
		return head_a < head_b ? -1 : 1;
	order = prefix_compare(&a->prefix, &b->prefix);
	if (!order)
		order = (int)a->kind - (int)b->kind;
	if (!order && a->owner != b->owner)
		order = records_compare_owners(&r->owners.at[a->owner], &r->owners.at[b->owner]);
	return order;
}

// Returns the index of the first record, from `from` on, that does not sort before this prefix and
// kind.
static size_t lower_bound(const struct record_list *list, size_t from, const struct prefix *p,
			  uint8_t kind)
{
	size_t to = list->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		const struct reference *record = &list->at[middle];
		int order = prefix_compare(&record->prefix, p);

		if (order < 0 || (!order && record->kind < kind))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

// A part of an array of records.
struct run {
	const struct reference *at, *end;
};

static struct run run_of(const struct reference *at, size_t n)
{
	return (struct run){at, n ? at + n : at}; // an empty array may be NULL
}

// Merges two sorted runs; of equal records, those in a are first.
static struct reference *merge_runs(const struct records *r, struct run a, struct run b,
				    struct reference *to)
{
	while (a.at < a.end && b.at < b.end)
		*to++ = record_compare(r, a.at, b.at) <= 0 ? *a.at++ : *b.at++;
	while (a.at < a.end)
		*to++ = *a.at++;
	while (b.at < b.end)
		*to++ = *b.at++;
	return to;
}

static bool is_sorted(const struct records *r, const struct reference *at, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (record_compare(r, &at[i - 1], &at[i]) > 0)
			return false;
	return true;
}

// A bottom-up merge sort: stable, so that the last of repeated references is the newest.
static void sort(const struct records *r, struct reference **list, size_t n)
{
	CLEANUP_FREE struct reference *spare = NULL;

	if (is_sorted(r, *list, n))
		return;
	spare = mem_realloc(NULL, n, sizeof(*spare));
	for (size_t width = 1; width < n; width *= 2) {
		struct reference *sorted = spare, *to = spare;

		for (size_t i = 0; i < n; i += 2 * width) {
			const struct reference *begin = *list + i, *end = *list + n;
			const struct reference *middle = n - i > width ? begin + width : end;
			const struct reference *stop = n - i > 2 * width ? begin + 2 * width : end;

			to = merge_runs(r, (struct run){begin, middle}, (struct run){middle, stop},
					to);
		}
		spare = *list;
		*list = sorted;
	}
}

// Does an existing reference move to the owner that repeats it?
static bool takes_over(const struct owner *fresh, const struct owner *old)
{
	if (fresh->fleeting != old->fleeting)
		return old->fleeting;
	return fresh->note[0] || fresh->group != old->group;
}

static void repeat(const struct records *r, struct reference *record, const struct reference *fresh)
{
	if (records_is_group(r, record) && !records_is_group(r, fresh)) {
		*record = *fresh; // the user blocks the net: the group no longer ends it
		return;
	}
	if (takes_over(&r->owners.at[fresh->owner], &r->owners.at[record->owner]))
		record->owner = fresh->owner;
	if (fresh->until_s > record->until_s)
		record->until_s = fresh->until_s;
}

// Returns the references as records, sorted, without duplicates.
static struct reference *sorted_references(const struct records *r,
					   const struct reference *references, size_t n,
					   size_t *ret_n)
{
	struct reference *list = mem_realloc(NULL, n, sizeof(*list));
	size_t kept = 0;

	if (n)
		memcpy(list, references, n * sizeof(*list));
	sort(r, &list, n);
	for (size_t i = 0; i < n; i++) {
		if (kept && !record_compare(r, &list[kept - 1], &list[i]))
			repeat(r, &list[kept - 1], &list[i]);
		else
			list[kept++] = list[i];
	}
	*ret_n = kept;
	return list;
}

// The references of one origin, list and name, or of many owners. Neighbours usually have the same
// owner.
struct own {
	const struct records *records;
	const struct owner *who;
	unsigned kinds;
	uint32_t last; // the owner that was compared last, and the answer
	bool is;
	const bool *owned;              // by index; NULL: `who` decides
	struct records_change *changes; // by index of the owner; NULL: only the sum is wanted
};

static struct own own_of(const struct records *r, const struct owner *who, unsigned kinds)
{
	return (struct own){.records = r, .who = who, .kinds = kinds, .last = UINT32_MAX};
}

static bool owns(struct own *own, const struct reference *record)
{
	if (!own || !(own->kinds >> record->kind & 1))
		return false;
	if (own->owned)
		return own->owned[record->owner];
	if (own->last != record->owner) {
		own->last = record->owner;
		own->is =
			!records_compare_owners(&own->records->owners.at[record->owner], own->who);
	}
	return own->is;
}

// Repeats an existing reference; an exact one gets the new expiry, even an earlier one.
static void update(const struct records *r, struct reference *record, const struct reference *fresh,
		   bool exact, struct records_change *change)
{
	uint64_t was = record->until_s;

	repeat(r, record, fresh);
	if (exact)
		record->until_s = fresh->until_s;
	if (record->until_s > was)
		change->extended++;
	else if (record->until_s < was)
		change->shortened++;
	else
		change->unchanged++;
}

// Decides which of two lists advances: < 0 the first, > 0 the second, 0 both.
static int next_of(const struct records *r, struct run a, struct run b)
{
	if (a.at == a.end)
		return 1;
	if (b.at == b.end)
		return -1;
	return record_compare(r, a.at, b.at);
}

// Returns the counter for a change of this owner.
static struct records_change *counter(const struct own *own, struct records_change *sum,
				      uint32_t owner)
{
	return own && own->changes ? &own->changes[owner] : sum;
}

// Merges sorted references into the records. References of `own` (may be NULL) that are not among
// the sorted ones are removed.
static struct records_change merge(struct records *r, struct run fresh, struct own *own)
{
	struct records_change sum = {0};
	struct run old = run_of(r->list.at, r->list.n);
	size_t room = r->list.n + (size_t)(fresh.end - fresh.at), n = 0;
	struct reference *list = mem_realloc(NULL, room, sizeof(*list));

	while (old.at < old.end || fresh.at < fresh.end) {
		int order = next_of(r, old, fresh);

		if (order < 0 && owns(own, old.at)) {
			counter(own, &sum, old.at++->owner)->removed++;
			continue;
		}
		list[n] = order <= 0 ? *old.at++ : *fresh.at;
		if (!order)
			update(r, &list[n], fresh.at, owns(own, &list[n]),
			       counter(own, &sum, list[n].owner));
		else if (order > 0)
			counter(own, &sum, list[n].owner)->added++;
		fresh.at += order >= 0;
		n++;
	}
	free(r->list.at);
	r->list.at = list;
	r->list.n = n;
	r->list.cap = room;
	return sum;
}

void records_load(const struct records *r, struct record_list *list, const struct reference *more,
		  size_t n)
{
	struct record_list merged = {.cap = list->n + n, .n = list->n + n};
	CLEANUP_FREE struct reference *sorted = mem_realloc(NULL, n, sizeof(*sorted));

	if (!n)
		return;
	memcpy(sorted, more, n * sizeof(*sorted));
	sort(r, &sorted, n);
	merged.at = mem_realloc(NULL, merged.cap, sizeof(*merged.at));
	merge_runs(r, run_of(list->at, list->n), run_of(sorted, n), merged.at);
	free(list->at);
	*list = merged;
}

void records_add(struct records *r, const struct reference *references, size_t n,
		 struct records_change *ret)
{
	size_t n_fresh;
	CLEANUP_FREE struct reference *fresh = sorted_references(r, references, n, &n_fresh);

	*ret = merge(r, run_of(fresh, n_fresh), NULL);
}

void records_replace(struct records *r, const struct owner *who, unsigned kinds,
		     const struct reference *references, size_t n, struct records_change *ret)
{
	size_t n_fresh;
	CLEANUP_FREE struct reference *fresh = sorted_references(r, references, n, &n_fresh);
	struct own own = own_of(r, who, kinds);

	*ret = merge(r, run_of(fresh, n_fresh), &own);
}

void records_replace_owners(struct records *r, const bool *owned,
			    const struct reference *references, size_t n,
			    struct records_change *changes)
{
	size_t n_fresh;
	CLEANUP_FREE struct reference *fresh = sorted_references(r, references, n, &n_fresh);
	struct own own = {.records = r, .kinds = UINT_MAX, .owned = owned, .changes = changes};

	merge(r, run_of(fresh, n_fresh), &own);
}

size_t records_drop(struct records *r, const bool *marked)
{
	size_t kept = 0, before = r->list.n;

	for (size_t i = 0; i < before; i++)
		if (!marked[i])
			r->list.at[kept++] = r->list.at[i];
	r->list.n = kept;
	return before - kept;
}

static bool is_at(const struct records *r, size_t i, const struct prefix *p)
{
	return i < r->list.n && !prefix_compare(&r->list.at[i].prefix, p);
}

void records_remove(struct records *r, const struct owner *who, unsigned kinds,
		    const struct prefix *prefixes, size_t n, size_t *ret_removed)
{
	struct own own = own_of(r, who, kinds);
	CLEANUP_FREE bool *marked = mem_zalloc(r->list.n, sizeof(bool));

	for (size_t i = 0; !prefixes && i < r->list.n; i++)
		marked[i] = owns(&own, &r->list.at[i]);
	for (size_t k = 0; prefixes && k < n; k++)
		for (size_t i = lower_bound(&r->list, 0, &prefixes[k], 0);
		     is_at(r, i, &prefixes[k]); i++)
			marked[i] = owns(&own, &r->list.at[i]);
	records_mark_members(r, marked);
	*ret_removed = records_drop(r, marked);
}

void records_remove_origin(struct records *r, const char *origin, unsigned kinds,
			   size_t *ret_removed)
{
	CLEANUP_FREE bool *marked = mem_zalloc(r->list.n, sizeof(bool));

	for (size_t i = 0; i < r->list.n; i++) {
		const struct reference *record = &r->list.at[i];

		marked[i] = kinds >> record->kind & 1 &&
			    (!origin || !strcmp(r->owners.at[record->owner].origin, origin));
	}
	*ret_removed = records_drop(r, marked);
}

void records_entries(const struct records *r, const struct record_list *list,
		     struct record_list *ret)
{
	struct record_list entries = {
		.at = mem_realloc(NULL, list->n, sizeof(*entries.at)),
		.cap = list->n,
	};

	vec_each (list, record) {
		struct reference *last = entries.n ? vec_last(&entries) : NULL;

		if (records_group_of(r, list, record))
			continue;
		if (last && last->kind == record->kind &&
		    !prefix_compare(&last->prefix, &record->prefix)) {
			if (record->until_s > last->until_s)
				*last = *record;
			continue;
		}
		entries.at[entries.n++] = *record;
	}
	*ret = entries;
}

const struct reference *records_find(const struct records *r, const struct prefix *p, uint8_t kind,
				     size_t *ret_n)
{
	size_t first = lower_bound(&r->list, 0, p, kind), end = first;

	while (is_at(r, end, p) && r->list.at[end].kind == kind)
		end++;
	*ret_n = end - first;
	return end > first ? &r->list.at[first] : NULL;
}

// The prefixes that contain p are in the records in order of their length, so each search begins
// where the previous one ended.
void records_covering(const struct records *r, const struct prefix *p,
		      void (*visit)(void *ctx, const struct reference *record), void *ctx)
{
	size_t at = 0;

	for (unsigned len = 0; len <= p->len && at < r->list.n; len++) {
		struct prefix outer = prefix_of(&p->addr, (uint8_t)len);

		for (at = lower_bound(&r->list, at, &outer, 0); is_at(r, at, &outer); at++)
			if (!records_group_of(r, &r->list, &r->list.at[at]))
				visit(ctx, &r->list.at[at]);
	}
}

// ---- groups -------------------------------------------------------------------------------------

bool records_net(const struct prefix *p, struct prefix *ret)
{
	uint8_t len = p->addr.family == 4 ? NET4 : NET6;

	if (p->len < len)
		return false;
	*ret = prefix_of(&p->addr, len);
	return true;
}

bool records_is_member(const struct records *r, const struct reference *record)
{
	return r->owners.at[record->owner].group && prefix_is_host(&record->prefix);
}

bool records_is_group(const struct records *r, const struct reference *record)
{
	return r->owners.at[record->owner].group && !prefix_is_host(&record->prefix);
}

size_t records_first_in(const struct record_list *list, const struct prefix *net)
{
	return lower_bound(list, 0, net, 0);
}

static bool is_in(const struct record_list *list, size_t i, const struct prefix *net)
{
	return i < list->n && prefix_contains(net, &list->at[i].prefix);
}

static bool same_origin(const struct records *r, const struct reference *a,
			const struct reference *b)
{
	return !strcmp(r->owners.at[a->owner].origin, r->owners.at[b->owner].origin);
}

const struct reference *records_group_of(const struct records *r, const struct record_list *list,
					 const struct reference *member)
{
	struct prefix net;

	if (!records_is_member(r, member) || !records_net(&member->prefix, &net))
		return NULL;
	for (size_t i = records_first_in(list, &net);
	     is_in(list, i, &net) && list->at[i].prefix.len == net.len; i++)
		if (list->at[i].kind == member->kind && records_is_group(r, &list->at[i]) &&
		    same_origin(r, &list->at[i], member))
			return &list->at[i];
	return NULL;
}

static bool has_member(const struct records *r, const struct reference *group,
		       const struct reference *record)
{
	return record->kind == group->kind && records_is_member(r, record) &&
	       same_origin(r, record, group);
}

size_t records_group_size(const struct records *r, const struct record_list *list,
			  const struct reference *group)
{
	size_t n = 0;

	for (size_t i = records_first_in(list, &group->prefix); is_in(list, i, &group->prefix); i++)
		n += has_member(r, group, &list->at[i]);
	return n;
}

void records_mark_members(const struct records *r, bool *marked)
{
	for (size_t g = 0; g < r->list.n; g++) {
		const struct reference *group = &r->list.at[g];

		if (!marked[g] || !records_is_group(r, group))
			continue;
		for (size_t i = g; is_in(&r->list, i, &group->prefix); i++)
			marked[i] = marked[i] || has_member(r, group, &r->list.at[i]);
	}
}

// ---- clocks -------------------------------------------------------------------------------------

#define CLOCK_SLACK_S 2 // rounding, and changes by adjtime(2)

uint64_t records_shifted(uint64_t wall_s, int64_t by_s)
{
	if (wall_s == RECORD_NEVER || !wall_s)
		return wall_s;
	if (by_s < 0 && wall_s <= (uint64_t)-by_s)
		return 1;
	wall_s += (uint64_t)by_s;
	return wall_s < RECORD_NEVER ? wall_s : RECORD_NEVER - 1;
}

int64_t records_clock_set_by(const struct records_clock *then, const struct records_clock *now)
{
	int64_t by;

	if (!then->boot[0] || strcmp(then->boot, now->boot) != 0)
		return 0;
	by = (int64_t)(now->wall_s - then->wall_s) - (int64_t)(now->up_s - then->up_s);
	return by >= -CLOCK_SLACK_S && by <= CLOCK_SLACK_S ? 0 : by;
}
