// SPDX-License-Identifier: GPL-2.0-only
// Separates the references that are out of order in a walk, sorts them and merges them with the
// others. They are recognised as in Ernerfeldt's drop-merge sort, with a window that grows.
#include "ctl/control/entries/journal_order.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/vec.h"

// The first bytes of a prefix as one number. It decides most comparisons, which then read only the
// array of keys.
struct sort_key {
	uint64_t head;
	uint32_t ref;
};

static struct sort_key key_of(const struct journal_index *x, uint32_t ref)
{
	const struct journal_ref *r = &x->refs[ref];
	uint64_t head;

	memcpy(&head, r->bytes, sizeof(head));
	return (struct sort_key){(uint64_t)(r->family == 6) << 63 | be64toh(head) >> 1, ref};
}

static int compare_refs(const struct journal_ref *a, const struct journal_ref *b)
{
	struct prefix p = journal_ref_prefix(a), q = journal_ref_prefix(b);
	int order = prefix_compare(&p, &q);

	return order ? order : (int)a->kind - (int)b->kind;
}

static int compare_keys(const void *a, const void *b, void *ctx)
{
	const struct sort_key *x = a, *y = b;
	const struct journal_ref *const *refs = ctx;

	if (x->head != y->head)
		return x->head < y->head ? -1 : 1;
	return compare_refs(&(*refs)[x->ref], &(*refs)[y->ref]);
}

static bool is_after(const struct journal_index *x, uint32_t a, uint32_t b)
{
	struct sort_key key_a = key_of(x, a), key_b = key_of(x, b);
	const struct journal_ref *all = x->refs;

	return compare_keys(&key_a, &key_b, &all) > 0;
}

struct ref_list {
	uint32_t *at;
	size_t n, cap;
};

static void sort_refs(const struct journal_index *x, struct ref_list *refs)
{
	CLEANUP_FREE struct sort_key *keys = mem_realloc(NULL, refs->n, sizeof(*keys));
	const struct journal_ref *all = x->refs;

	if (!refs->n)
		return;
	for (size_t r = 0; r < refs->n; r++)
		keys[r] = key_of(x, refs->at[r]);
	qsort_r(keys, refs->n, sizeof(*keys), compare_keys, &all);
	for (size_t r = 0; r < refs->n; r++)
		refs->at[r] = keys[r].ref;
}

struct parted {
	struct ref_list sorted, rest;
	size_t row; // references that went to `rest` one after the other
};

// Would fewer references have to leave `sorted` for this one than were kept out because of their
// last?
static bool outweighs(const struct journal_index *x, const struct parted *p, uint32_t ref)
{
	return p->sorted.n < p->row || !is_after(x, p->sorted.at[p->sorted.n - p->row], ref);
}

static void part(const struct journal_index *x, struct parted *p, uint32_t ref)
{
	if (p->sorted.n && is_after(x, *vec_last(&p->sorted), ref)) {
		p->row++;
		if (!outweighs(x, p, ref)) {
			vec_push(&p->rest, ref);
			return;
		}
	}
	while (p->sorted.n && is_after(x, *vec_last(&p->sorted), ref))
		vec_push(&p->rest, p->sorted.at[--p->sorted.n]);
	vec_push(&p->sorted, ref);
	p->row = 0;
}

// Merges `rest` into `sorted`, from the end, so that there is always room.
static void merge(const struct journal_index *x, struct ref_list *sorted,
		  const struct ref_list *rest)
{
	size_t a = sorted->n, b = rest->n;

	vec_reserve(sorted, b);
	sorted->n += b;
	for (size_t to = sorted->n; b; to--)
		sorted->at[to - 1] = a && is_after(x, sorted->at[a - 1], rest->at[b - 1])
					     ? sorted->at[--a]
					     : rest->at[--b];
}

struct journal_order journal_order(const struct journal_index *x)
{
	struct parted p = {0};
	size_t moved;

	vec_reserve(&p.sorted, journal_index_count(x) + 1);
	for (uint32_t r = 0; r < journal_index_slots(x); r++)
		if (x->refs[r].family)
			part(x, &p, r);
	moved = p.rest.n;
	sort_refs(x, &p.rest);
	merge(x, &p.sorted, &p.rest);
	vec_free(&p.rest);
	return (struct journal_order){p.sorted.at, p.sorted.n, moved};
}

void journal_order_free(struct journal_order *o)
{
	free(o->at);
	*o = (struct journal_order){0};
}
