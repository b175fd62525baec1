// SPDX-License-Identifier: GPL-2.0-only
// Changes what only the policies that run may change: cells, former ends, lives.
#include "ctl/control/nat_settle.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/nat_kept.h"
#include "ctl/datapath/nat_maps.h"
#include "ctl/table/nat_cells.h"
#include "ctl/table/nat_names.h"
#include "ctl/table/nat_walk.h"

// ---- the policies -------------------------------------------------------------------------------

int nat_served_read(const struct instance *i, struct nat_served *ret, struct err *err)
{
	struct commit_state state;
	uint32_t now, other;
	int code = commit_read(i, &state, err);

	if (code)
		return code;
	now = state.expired ? state.previous : state.active;
	other = state.expired ? state.active : state.previous;
	if (!state.deadline || other == now)
		other = 0;
	*ret = (struct nat_served){.generations = {now, other}};
	code = nat_kept_read(i, now, &ret->now, err);
	return code ? code : nat_kept_read(i, other, &ret->other, err);
}

void nat_served_free(struct nat_served *s)
{
	free(s->now);
	free(s->other);
}

static uint8_t mode_of(const struct nat_kept *k, uint32_t end)
{
	return k ? k->use[end].mode : NAT_USE_NONE;
}

static bool begins(const struct nat_kept *k, uint32_t end)
{
	return mode_of(k, end) == NAT_USE_NAT || mode_of(k, end) == NAT_USE_FULLNAT;
}

void nat_served_begins(const struct nat_served *s, uint8_t ret[NAT_ENDS])
{
	for (uint32_t end = 0; end < NAT_ENDS; end++)
		ret[end] = begins(s->now, end) || begins(s->other, end);
}

static bool is_served(const struct nat_served *s, uint32_t end)
{
	return mode_of(s->now, end) != NAT_USE_NONE || mode_of(s->other, end) != NAT_USE_NONE;
}

// ---- blocks and cells ---------------------------------------------------------------------------

static const struct nat_list *list_of(const struct nat_kept *k, int fullnat, int v6)
{
	static const struct nat_list none;

	return k ? &k->wish.list[fullnat][v6] : &none;
}

// The places last: a block that exists is complete. A killed command may have left the source of
// one that does not exist.
static int make_block(struct nat_maps *m, const struct nat_wish *w, int fullnat, int family,
		      uint32_t block, struct err *err)
{
	struct nat_table *t = nat_maps_tables(m)->nat;

	nat_source_take(t, family, block);
	t->block[family == 6][block] = w->block[family == 6][block];
	if (fullnat && nat_source_put(t, family, block))
		return err_stated(err, ENOSPC,
				  "the table of connections has no room for another source");
	return nat_maps_create(m, family, block, err);
}

int nat_make_blocks(struct nat_maps *m, const struct nat_wish *w, struct err *err)
{
	for (int mode = 0; mode < 4; mode++) {
		const struct nat_list *l = &w->list[mode / 2][mode % 2];
		int family = mode % 2 ? 6 : 4, code;

		for (size_t n = 0; n < l->n; n++)
			if (!nat_maps_has(m, family, l->at[n]) &&
			    (code = make_block(m, w, mode / 2, family, l->at[n], err)))
				return code;
	}
	return 0;
}

// The plan has made sure that there is room, unless an operator has forced the change.
static void set_cells(struct nat_table *t, const struct nat_served *s)
{
	for (int fullnat = 0; fullnat < 2; fullnat++)
		for (int v6 = 0; v6 < 2; v6++) {
			const struct nat_list *l = list_of(s->now, fullnat, v6);
			uint64_t *cells = (uint64_t *)t->cell[fullnat][v6];

			if (l->n)
				nat_cells_force(cells, l->at, l->n);
			else if (!list_of(s->other, fullnat, v6)->n)
				nat_cells_end(cells);
		}
}

static void set_lives(struct nat_table *t, const struct nat_served *s)
{
	uint64_t now = s->now ? s->now->wish.life : 0, other = s->other ? s->other->wish.life : 0;
	uint64_t life = now > other ? now : other;

	if (life)
		__atomic_store_n(&t->lives, (t->lives & ~(0xffffull << 16)) | life << 16,
				 __ATOMIC_RELAXED);
}

// ---- ends ---------------------------------------------------------------------------------------

static bool find_gone(const struct nat_table *t, const struct nat_served *s, uint8_t *ret)
{
	bool some = false;

	for (uint32_t end = 1; end < NAT_ENDS; end++) {
		ret[end] = t->end[end].port_proto && !is_served(s, end);
		some |= ret[end];
	}
	return some;
}

struct nat_ending {
	const uint8_t *gone; // by number of an end
	size_t *found;
};

static bool has_ended(const void *arg, uint32_t end, uint64_t word)
{
	const struct nat_ending *e = arg;

	(void)word;
	*e->found += e->gone[end & (NAT_ENDS - 1)];
	return e->gone[end & (NAT_ENDS - 1)];
}

// Answers of backends may change a connection meanwhile: then it is tried again.
static size_t free_connections(const struct nat_tables *t, const uint8_t *gone)
{
	size_t freed = 0, found, now;
	const struct nat_ending e = {gone, &found};

	do {
		found = 0;
		now = nat_free(t, has_ended, &e);
		freed += now;
	} while (now < found);
	return freed;
}

// A packet that has found an end in the previous policy may still be taking a place: so the wait
// comes before the places are freed, and the number is free after that.
static int remove_ends(const struct nat_tables *t, const struct nat_served *s, size_t *ret_freed,
		       struct err *err)
{
	CLEANUP_FREE uint8_t *gone = mem_zalloc(NAT_ENDS, sizeof(*gone));
	size_t freed;
	int code;

	if (!find_gone(t->nat, s, gone))
		return 0;
	for (uint32_t end = 1; end < NAT_ENDS; end++)
		if (gone[end])
			nat_end_take(t->nat, end);
	if ((code = grace_wait(err)))
		return code;
	freed = free_connections(t, gone);
	for (uint32_t end = 1; end < NAT_ENDS; end++)
		if (gone[end])
			memset(&t->nat->end[end], 0, sizeof(t->nat->end[end]));
	if (ret_freed)
		*ret_freed += freed;
	return 0;
}

static int settle(struct nat_maps *m, const struct nat_served *s, size_t *ret_freed,
		  struct err *err)
{
	const struct nat_tables *t = nat_maps_tables(m);
	int code;

	if (!t->nat->shift) // no policy has ever used it
		return 0;
	if (!s->generations[0]) // which one packets meet is not known
		return 0;
	// During a trial of another one, a walk may have removed its blocks.
	if (s->now && (code = nat_make_blocks(m, &s->now->wish, err)))
		return code;
	set_cells(t->nat, s);
	set_lives(t->nat, s);
	return remove_ends(t, s, ret_freed, err);
}

int nat_settle(const struct instance *i, size_t *ret_freed, struct err *err)
{
	CLEANUP_NAT_SERVED struct nat_served served = {0};
	CLEANUP_NAT_MAPS struct nat_maps *m = NULL;
	bool used;
	int code = nat_maps_used(i, &used, err);

	if (code || !used)
		return code;
	if ((code = nat_served_read(i, &served, err)) || (code = nat_maps_open(i, &m, err)))
		return code;
	return settle(m, &served, ret_freed, err);
}
