// SPDX-License-Identifier: GPL-2.0-only
// Reads the table of connections for commands that show it.
#include "ctl/control/nat_reading.h"

#include <string.h>

#include "common/service.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/nat_maps.h"
#include "ctl/table/lb_state.h"
#include "ctl/table/nat_cells.h"

static struct addr source_of(const struct nat_table *nat, uint8_t family, uint32_t block)
{
	static const uint32_t none[4];
	const struct nat_block *b = &nat->block[family == 6][block];
	struct addr source = {0};

	if (!memcmp(b->source, none, sizeof(none)))
		return source;
	source.family = family;
	memcpy(source.bytes, b->source, family == 4 ? 4 : 16);
	return source;
}

static void read_block(const struct nat_table *nat, uint8_t family, uint32_t block,
		       struct nat_reading *ret)
{
	struct nat_block_reading r = {
		.family = family,
		.block = block,
		.source = source_of(nat, family, block),
		.living = ret->census.of_block[family == 6][block],
	};

	r.newest = nat_cells_newest((const uint64_t *)nat->cell[r.source.family != 0][family == 6],
				    (uint8_t)block);
	vec_push(&ret->blocks, r);
}

static void read_all(const struct nat_maps *m, uint64_t now, struct nat_reading *ret)
{
	const struct nat_tables *t = nat_maps_tables(m);

	nat_count(t, now, &ret->census);
	for (uint8_t family = 4; family <= 6; family += 2)
		for (uint32_t block = 0; block < NAT_BLOCKS; block++)
			if (nat_maps_has(m, family, block))
				read_block(t->nat, family, block, ret);
}

int nat_read(const struct instance *i, struct nat_reading *ret, struct err *err)
{
	CLEANUP_NAT_MAPS struct nat_maps *m = NULL;
	struct clock now;
	bool any;
	int code = nat_maps_any(i, &any, err);

	memset(ret, 0, sizeof(*ret));
	if (code || !any)
		return code;
	if ((code = nat_maps_open(i, &m, err)) || (code = instance_clock(i, &now, err)))
		return code;
	read_all(m, pin_time(now.jiffies, nat_maps_tables(m)->nat->shift), ret);
	return 0;
}

void nat_reading_free(struct nat_reading *r)
{
	vec_free(&r->blocks);
}

struct nat_sum nat_of_service(const struct nat_reading *r, const struct lb_state *b,
			      const struct lb_service *s)
{
	struct nat_sum sum = {0};

	for (uint32_t m = 0; m < s->n_members; m++) {
		uint32_t id = b->members[s->first_member + m].id;

		sum.living += r->census.of_backend[id].living;
		sum.opening += r->census.of_backend[id].opening;
	}
	return sum;
}

struct nat_use_of_places nat_used(const struct nat_reading *r, bool fullnat, uint8_t family)
{
	struct nat_use_of_places used = {0};

	vec_each (&r->blocks, block) {
		if (block->family != family || (block->source.family != 0) != fullnat ||
		    !block->newest)
			continue;
		used.blocks++;
		used.living += block->living;
	}
	return used;
}
