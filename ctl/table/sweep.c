// SPDX-License-Identifier: GPL-2.0-only
// A sweep over the address space, with a cursor into each set, in a heap.
//
// At the start and the end of a set, the bits of its rules are flipped and the row is looked up.
#include "ctl/table/sweep.h"

#include <stdlib.h>

#include "ctl/table/fields.h"

#define DEPTH_MAX   129 // prefixes around one another: lengths 0 to 128
#define CHANGED_MAX 16  // sets at one boundary that are noted for the new row's account

struct cursor {
	address_key at; // address of the set's next boundary
	const struct side_set *set;
	bool in;       // what holds from there on
	bool now;      // what holds before: the set's bits are in the row
	uint8_t depth; // stack of the prefixes that contain the position
	size_t next;   // prefix not yet begun
	uint32_t open[DEPTH_MAX];
};

struct sweep_state {
	int family;
	struct row row;
	struct cursor *cursors;
	struct cursor **heap; // the least `at` first
	size_t n;
	const struct side_set *changed[CHANGED_MAX];
	size_t n_changed;
};

// ---- sides --------------------------------------------------------------------------------------

static void set_add_rule(struct side_set *s, size_t rule)
{
	if (!s->rules.n || vec_last(&s->rules)->word != rule / 64)
		vec_push(&s->rules, ((struct set_bits){rule / 64, 0}));
	vec_last(&s->rules)->bits |= 1ull << (rule % 64);
}

void side_init(struct sweep_side *side, const struct resolved *r, enum policy_field field,
	       size_t words)
{
	CLEANUP_FREE uint32_t *place = mem_zalloc(r->n_addresses, sizeof(*place)); // + 1

	*side = (struct sweep_side){.in = r};
	row_init(&side->base, words);
	for (size_t i = 0; i < r->n_rules; i++) {
		const struct resolved_rule *rule = &r->rules[i];
		const struct resolved_address *a = field == FIELD_SOURCE ? &rule->from : &rule->to;

		if (rule->impossible)
			continue;
		if (!fields_needs(rule, field)) {
			row_flip_rule(&side->base, i);
			continue;
		}
		if (!place[a->index]) {
			vec_push(&side->sets, ((struct side_set){.set = &r->addresses[a->index]}));
			place[a->index] = (uint32_t)side->sets.n;
		}
		set_add_rule(&side->sets.at[place[a->index] - 1], i);
	}
}

void side_free(struct sweep_side *side)
{
	vec_each (&side->sets, s)
		vec_free(&s->rules);
	vec_free(&side->sets);
}

// ---- cursors ------------------------------------------------------------------------------------

static size_t set_count(const struct resolved_addresses *s, int family)
{
	return family == 4 ? s->n4 : s->n6;
}

static address_key set_first(const struct resolved_addresses *s, int family, size_t i)
{
	return family == 4 ? key_of4(s->v4[i].addr) : key_of6(s->v6[i].hi, s->v6[i].lo);
}

static address_key set_last(const struct resolved_addresses *s, int family, size_t i)
{
	unsigned len = family == 4 ? s->v4[i].len : s->v6[i].len;

	return set_first(s, family, i) | (len < 128 ? ~(address_key)0 >> len : 0);
}

static bool set_in(const struct resolved_addresses *s, int family, size_t i)
{
	return family == 4 ? s->v4[i].in : s->v6[i].in;
}

// The innermost prefix ends, and the one around it applies again.
static bool cursor_close(struct cursor *c, int family)
{
	const struct resolved_addresses *s = c->set->set;

	c->at = set_last(s, family, c->open[--c->depth]) + 1;
	c->in = c->depth && set_in(s, family, c->open[c->depth - 1]);
	return c->at != 0; // else everything ends with the address space
}

// Moves to the next boundary; false: no more. Prefixes are nested or disjoint, in the order of
// their first addresses, so the open ones are a stack.
static bool cursor_advance(struct cursor *c, int family)
{
	const struct resolved_addresses *s = c->set->set;
	bool more = c->next < set_count(s, family);

	if (c->depth &&
	    (!more || set_last(s, family, c->open[c->depth - 1]) < set_first(s, family, c->next)))
		return cursor_close(c, family);
	if (!more || c->depth == DEPTH_MAX)
		return false;
	c->at = set_first(s, family, c->next);
	c->in = set_in(s, family, c->next);
	c->open[c->depth++] = (uint32_t)c->next++;
	return true;
}

// ---- the heap -----------------------------------------------------------------------------------

static void heap_sink(struct sweep_state *s, size_t i)
{
	for (size_t child; (child = 2 * i + 1) < s->n; i = child) {
		struct cursor *c = s->heap[i];

		if (child + 1 < s->n && s->heap[child + 1]->at < s->heap[child]->at)
			child++;
		if (c->at <= s->heap[child]->at)
			return;
		s->heap[i] = s->heap[child];
		s->heap[child] = c;
	}
}

static void sweep_init(struct sweep_state *s, const struct sweep_side *side, int family)
{
	*s = (struct sweep_state){.family = family, .row = side->base};
	s->cursors = mem_zalloc(side->sets.n, sizeof(*s->cursors));
	s->heap = mem_zalloc(side->sets.n, sizeof(struct cursor *));
	for (size_t i = 0; i < side->sets.n; i++) {
		s->cursors[i].set = &side->sets.at[i];
		if (cursor_advance(&s->cursors[i], family))
			s->heap[s->n++] = &s->cursors[i];
	}
	for (size_t i = s->n / 2; i--;)
		heap_sink(s, i);
}

static void sweep_free(struct sweep_state *s)
{
	free(s->cursors);
	free(s->heap);
}

// ---- the sweep ----------------------------------------------------------------------------------

static void set_flip(struct sweep_state *s, struct cursor *c)
{
	if (c->now == c->in)
		return;
	c->now = c->in;
	vec_each (&c->set->rules, r)
		row_flip(&s->row, r->word, r->bits);
	if (s->n_changed < CHANGED_MAX)
		s->changed[s->n_changed++] = c->set;
}

static void pass_boundaries(struct sweep_state *s, address_key at)
{
	s->n_changed = 0;
	while (s->n && s->heap[0]->at == at) {
		struct cursor *c = s->heap[0];

		set_flip(s, c);
		if (!cursor_advance(c, s->family))
			s->heap[0] = s->heap[--s->n];
		heap_sink(s, 0);
	}
}

static size_t boundaries_max(const struct sweep_side *side, int family)
{
	size_t n = 1;

	vec_each (&side->sets, s)
		n += 2 * set_count(s->set, family);
	return n;
}

bool sweep(const struct sweep_side *side, int family, struct rows *rows, uint64_t *new_rows,
	   struct regions *ret)
{
	struct regions regions = {0};
	struct sweep_state s;
	policy_row row;
	address_key at = 0;

	sweep_init(&s, side, family);
	vec_reserve(&regions, boundaries_max(side, family)); // untouched pages cost nothing
	for (;;) {
		size_t before = rows->n;

		pass_boundaries(&s, at);
		row = rows_add(rows, &s.row);
		for (size_t i = 0; i < s.n_changed && (!row || rows->n > before); i++)
			new_rows[s.changed[i]->set - side->in->addresses]++;
		if (!row || (regions_add(&regions, at, row), !s.n))
			break;
		at = s.heap[0]->at;
	}
	sweep_free(&s);
	if (row)
		*ret = regions;
	else
		vec_free(&regions);
	return row;
}
