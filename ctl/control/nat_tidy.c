// SPDX-License-Identifier: GPL-2.0-only
// Walks over the table of connections of an instance.
#include "ctl/control/nat_tidy.h"

#include <stdbool.h>
#include <string.h>

#include "common/service.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/control/nat_settle.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/lb_maps.h"
#include "ctl/datapath/lock.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/nat_kept.h"
#include "ctl/datapath/nat_maps.h"
#include "ctl/table/nat_cells.h"
#include "ctl/table/nat_names.h"
#include "ctl/table/nat_near.h"

static bool is_named(const struct nat_table *nat, int family, uint32_t block)
{
	const bool v6 = family == 6;

	return nat_cells_named((const uint64_t *)nat->cell[0][v6], (uint8_t)block) ||
	       nat_cells_named((const uint64_t *)nat->cell[1][v6], (uint8_t)block);
}

// The block goes, then answers no longer find it, then its number is free.
static int remove_block(struct nat_maps *m, int family, uint32_t block, struct err *err)
{
	struct nat_table *nat = nat_maps_tables(m)->nat;
	int code = nat_maps_remove(m, family, block, err);

	if (code)
		return code;
	nat_source_take(nat, family, block);
	memset(&nat->block[family == 6][block], 0, sizeof(struct nat_block));
	return 0;
}

static int remove_blocks(struct nat_maps *m, int family, struct nat_tidied *tidied, struct err *err)
{
	const struct nat_table *nat = nat_maps_tables(m)->nat;

	for (uint32_t block = 0; block < NAT_BLOCKS; block++) {
		int code;

		if (!nat_maps_has(m, family, block) ||
		    tidied->census.of_block[family == 6][block] || is_named(nat, family, block))
			continue;
		if ((code = remove_block(m, family, block, err)))
			return code;
		tidied->removed++;
	}
	return 0;
}

// Connections begin only with backends of the policies that packets can meet: the packets that have
// met another one are through before the walk. Where the policy is not known, each bit stays.
static void renew_near(const struct nat_tables *t, const struct nat_served *s,
		       const struct nat_census *census)
{
	static const uint64_t none[NAT_NEAR_WORDS];
	const uint64_t *needed[] = {
		census->near,
		s->now ? s->now->wish.near : none,
		s->other ? s->other->wish.near : none,
	};

	if (s->generations[0])
		nat_near_renew((uint64_t *)t->nat->near, needed, ARRAY_SIZE(needed));
}

static int walk(struct nat_maps *m, const struct instance *i, struct nat_unused *unused,
		struct nat_census *ret, struct err *err)
{
	CLEANUP_NAT_SERVED struct nat_served served = {0};
	const struct nat_tables *t = nat_maps_tables(m);
	struct clock now;
	int code = instance_clock(i, &now, err);

	if (code || (code = nat_served_read(i, &served, err)) ||
	    (code = nat_maps_add_backends(m, served.generations[0], err)) ||
	    (code = nat_maps_add_backends(m, served.generations[1], err)))
		return code;
	nat_walk(t, pin_time(now.jiffies, t->nat->shift), unused, ret);
	renew_near(t, &served, ret);
	return 0;
}

static bool is_of(const void *backends, uint32_t end, uint64_t word)
{
	(void)end;
	return lb_ids_has(backends, (uint32_t)nat_backend(word));
}

// Packets that have read a cell before it changed are through before the walk begins: they may
// still have taken a place in a block that was the newest one, or a peer.
int nat_tidy(const struct instance *i, const struct lb_ids *down, struct nat_unused *unused,
	     struct nat_tidied *ret, struct err *err)
{
	CLEANUP_NAT_MAPS struct nat_maps *m = NULL;
	bool any;
	int code = nat_maps_any(i, &any, err);

	memset(ret, 0, sizeof(*ret));
	if (code || !any)
		return code;
	if ((code = nat_maps_open(i, &m, err)) || (code = grace_wait(err)))
		return code;
	if (down)
		ret->ended = nat_free(nat_maps_tables(m), is_of, down);
	if ((code = walk(m, i, unused, &ret->census, err)) ||
	    (code = remove_blocks(m, 4, ret, err)))
		return code;
	return remove_blocks(m, 6, ret, err);
}

// Those that checks or commands call down, and that are not kept. A service without a backend that
// accepts new flows still sends them to the last owners.
static void add_down(const struct lb_state *b, struct lb_ids *ret)
{
	for (size_t n = 0; n < b->n_services; n++) {
		const struct lb_service *s = &b->services[n];
		CLEANUP_FREE uint8_t *states = mem_zalloc(s->n_members, 1);
		CLEANUP_FREE bool *kept = mem_zalloc(s->n_members, sizeof(*kept));

		if (lb_service_keep(b, s, kept) == LB_FLOWS_LAST)
			continue;
		lb_member_states(b, s, states);
		for (uint32_t m = 0; m < s->n_members; m++)
			if (states[m] == BACKEND_DOWN)
				lb_ids_add(ret, b->members[s->first_member + m].id);
	}
}

static int find_down(const struct instance *i, struct lb_ids *ret, struct err *err)
{
	CLEANUP_LB_MAPS struct lb_maps *live = NULL;
	struct commit_state state;
	int code = commit_read(i, &state, err);

	if (code)
		return code;
	if ((code = lb_maps_open(i, state.in_force, LB_SLOTS_USED, &live, err)))
		return code;
	if (live)
		add_down(lb_maps_state(live), ret);
	return 0;
}

// An apply that was killed after its switch has left cells, ends and blocks as they were before. If
// that fails, for instance because there is no memory for a block, the walk frees some.
int nat_tidy_now(const char *instance, const char *command, struct nat_unused *unused,
		 struct nat_tidied *ret, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	CLEANUP_FREE struct lb_ids *down = mem_new(struct lb_ids);
	CLEANUP_FD int lock = -1;
	int code = lock_take(instance, command, &lock, err), settled;

	if (code || (code = instance_open(instance, &i, err)))
		return code;
	settled = nat_settle(i, NULL, err);
	if ((code = find_down(i, down, err)) || (code = nat_tidy(i, down, unused, ret, err)))
		return code;
	return settled;
}

// Packets that have read a slot before it changed have begun their connections.
int nat_drop(const struct instance *i, const struct lb_ids *backends, size_t *ret, struct err *err)
{
	CLEANUP_NAT_MAPS struct nat_maps *m = NULL;
	bool any;
	int code = nat_maps_any(i, &any, err);

	*ret = 0;
	if (code || !any)
		return code;
	if ((code = nat_maps_open(i, &m, err)) || (code = grace_wait(err)))
		return code;
	*ret = nat_free(nat_maps_tables(m), is_of, backends);
	return 0;
}
