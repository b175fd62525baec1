// SPDX-License-Identifier: GPL-2.0-only
// Plans and prepares the table of connections for a policy.
#include "ctl/control/nat_apply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ctl/base/mem.h"
#include "ctl/control/nat_tidy.h"
#include "ctl/datapath/nat_maps.h"
#include "ctl/table/nat_cells.h"
#include "ctl/table/nat_names.h"
#include "ctl/table/nat_near.h"

void nat_apply_free(struct nat_apply *a)
{
	free(a->plan);
	free(a->census);
}

// ---- the table that runs ------------------------------------------------------------------------

static int note_kept(struct nat_apply *a, const struct instance *i, struct err *err)
{
	CLEANUP_NAT_SERVED struct nat_served served = {0};
	int code = nat_served_read(i, &served, err);

	if (code)
		return code;
	nat_served_begins(&served, a->kept);
	for (uint32_t end = 0; end < NAT_ENDS; end++)
		a->kept[end] |= a->census->of_end[end] != 0;
	return 0;
}

int nat_apply_look(struct nat_apply *a, const struct instance *i, struct lb_ids *busy,
		   struct err *err)
{
	CLEANUP_FREE struct nat_tidied *tidied = mem_new(struct nat_tidied);
	struct nat_unused unused = {0};
	int code = nat_settle(i, NULL, err);

	if (code || (code = nat_tidy(i, NULL, &unused, tidied, err)))
		return code;
	a->census = mem_new(struct nat_census);
	*a->census = tidied->census;
	for (uint32_t id = 1; id < SERVICE_BACKENDS; id++)
		if (a->census->of_backend[id].living)
			lb_ids_add(busy, id);
	return note_kept(a, i, err);
}

// ---- the plan -----------------------------------------------------------------------------------

static void note_blocks(const struct nat_maps *m, struct nat_set ret[2])
{
	for (uint32_t block = 0; block < NAT_BLOCKS; block++)
		for (int v6 = 0; v6 < 2; v6++)
			if (nat_maps_has(m, v6 ? 6 : 4, block))
				nat_set_add(&ret[v6], block);
}

int nat_apply_plan(struct nat_apply *a, const struct resolved *r, const struct lb_state *lb,
		   const struct instance *i, struct nat_apply_options wanted, struct diag *d,
		   struct err *err)
{
	struct nat_plan_options o = {
		.hz = clock_hz(), .force = wanted.force, .trial = wanted.trial};
	CLEANUP_NAT_MAPS struct nat_maps *m = NULL;
	int code = i ? nat_maps_open(i, &m, err) : 0;

	if (code)
		return code;
	if (m) {
		o.table = nat_maps_tables(m)->nat;
		o.kept = a->kept;
		o.living = (const size_t(*)[NAT_BLOCKS])a->census->of_block;
		note_blocks(m, o.exist);
	}
	if (!nat_plan(r, lb, &o, d, &a->plan))
		return 0;
	return err_refused(err, "the services cannot have what they ask for; nothing was changed");
}

// ---- what is prepared ---------------------------------------------------------------------------

// Once in the life of an instance: hashes of connections stay the same. The shift is last: without
// it a command was interrupted, and no connection exists.
static int begin_table(struct nat_table *t, uint32_t hz, struct err *err)
{
	uint32_t shift = pin_shift(hz);
	struct hash_key key;

	if (t->shift)
		return 0;
	if (getrandom(&key, sizeof(key), 0) != sizeof(key))
		return err_system(err, errno, "cannot draw a random number");
	t->key = ring_flow_key(&key);
	t->lives = nat_lives(pin_life((uint64_t)NAT_OPENING_S * hz, shift), 0,
			     pin_life((uint64_t)NAT_CLOSING_S * hz, shift));
	__atomic_store_n(&t->shift, shift, __ATOMIC_RELEASE);
	return 0;
}

// A longer life than the running policy asks for harms no connection.
static void extend_life(struct nat_table *t, const struct nat_wish *w)
{
	if (w->life > (t->lives >> 16 & 0xffff))
		__atomic_store_n(&t->lives,
				 (t->lives & ~(0xffffull << 16)) | (uint64_t)w->life << 16,
				 __ATOMIC_RELAXED);
}

// For one life the clients of connections that this host no longer knows, after an attach, get no
// reset: these may still be known elsewhere.
static void hold_resets(struct nat_table *t, const struct nat_wish *w, const struct clock *now)
{
	if (!t->resets_from)
		__atomic_store_n(&t->resets_from, now->jiffies + ((uint64_t)w->life << t->shift),
				 __ATOMIC_RELAXED);
}

static int put_ends(struct nat_table *t, const struct nat_plan *p, struct err *err)
{
	for (uint32_t n = 1; n < NAT_ENDS; n++) {
		if (p->use[n].mode == NAT_USE_NONE || t->end[n].port_proto)
			continue;
		t->end[n] = p->end[n];
		if (nat_end_put(t, n)) {
			memset(&t->end[n], 0, sizeof(t->end[n]));
			return err_stated(err, ENOSPC,
					  "the table of connections has no room for another VIP");
		}
	}
	return 0;
}

// A mode that no policy uses has no block for new connections. The others get theirs after the
// switch.
static void fill_empty_cells(struct nat_table *t, const struct nat_wish *w)
{
	for (int fullnat = 0; fullnat < 2; fullnat++)
		for (int v6 = 0; v6 < 2; v6++) {
			const struct nat_list *l = &w->list[fullnat][v6];
			uint64_t *cells = (uint64_t *)t->cell[fullnat][v6];

			if (l->n && !(cells[0] & 0xff))
				nat_cells_force(cells, l->at, l->n);
		}
}

int nat_apply_prepare(const struct nat_apply *a, const struct instance *i, const struct clock *now,
		      struct err *err)
{
	CLEANUP_NAT_MAPS struct nat_maps *m = NULL;
	struct nat_table *t;
	int code;

	if (!a->plan)
		return 0;
	if ((code = nat_maps_open(i, &m, err)))
		return code;
	t = nat_maps_tables(m)->nat;
	if ((code = begin_table(t, now->hz, err)) || (code = put_ends(t, a->plan, err)) ||
	    (code = nat_make_blocks(m, &a->plan->wish, err)))
		return code;
	hold_resets(t, &a->plan->wish, now);
	extend_life(t, &a->plan->wish);
	nat_near_add((uint64_t *)t->near, a->plan->wish.near);
	fill_empty_cells(t, &a->plan->wish);
	return 0;
}
