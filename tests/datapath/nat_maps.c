// SPDX-License-Identifier: GPL-2.0-only
// The table of connections in the kernel: blocks that are created, found again and removed, and a
// walk that frees what is in them.
#include <errno.h>
#include <stdlib.h>

#include "ctl/base/mem.h"
#include "ctl/control/nat_reading.h"
#include "ctl/control/nat_tidy.h"
#include "ctl/datapath/nat_maps.h"
#include "ctl/table/nat_cells.h"
#include "ctl/table/nat_names.h"
#include "tests/datapath/rig.h"

static struct nat_maps *open_maps(const struct rig *rig)
{
	struct nat_maps *m = NULL;
	struct err err = {0};

	if (nat_maps_open(rig->instance, &m, &err))
		test_die(&err);
	nat_maps_tables(m)->nat->shift = pin_shift(clock_hz()); // as by the first policy
	return m;
}

static void create(struct nat_maps *m, int family, uint32_t block)
{
	struct err err = {0};

	if (nat_maps_create(m, family, block, &err))
		test_die(&err);
}

static bool has_any(const struct rig *rig)
{
	struct err err = {0};
	bool any;

	if (nat_maps_any(rig->instance, &any, &err))
		test_die(&err);
	return any;
}

// The word of the last place of a block: the whole block is mapped.
static uint64_t *last_word(const struct nat_maps *m, int family, uint32_t block)
{
	const struct nat_tables *t = nat_maps_tables(m);
	struct nat_bucket4 *last4 = t->places4[block];
	struct nat_bucket6 *last6 = t->places6[block];

	if (family == 4)
		return (uint64_t *)&last4[NAT_PLACES / NAT_BUCKET4 - 1].at[NAT_BUCKET4 - 1].word;
	return (uint64_t *)&last6[NAT_PLACES / NAT_BUCKET6 - 1].at[NAT_BUCKET6 - 1].word;
}

static void test_blocks(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(64);
	CLEANUP_NAT_MAPS struct nat_maps *m = open_maps(rig), *other = NULL;

	CHECK(t, !has_any(rig), "a new instance has a block");
	create(m, 4, 0);
	create(m, 6, NAT_BLOCKS - 1);
	CHECK(t, has_any(rig), "no block is found");
	*last_word(m, 4, 0) = 4;
	*last_word(m, 6, NAT_BLOCKS - 1) = 6;
	nat_maps_tables(m)->nat->lives = 9;
	other = open_maps(rig);
	CHECK(t, nat_maps_tables(other)->nat->lives == 9, "another command sees another table");
	for (uint32_t block = 0; block < NAT_BLOCKS; block++) {
		CHECK(t, nat_maps_has(other, 4, block) == (block == 0), "IPv4 block %u", block);
		CHECK(t, nat_maps_has(other, 6, block) == (block == NAT_BLOCKS - 1),
		      "IPv6 block %u", block);
	}
	CHECK(t, *last_word(other, 4, 0) == 4, "another command sees another block of IPv4");
	CHECK(t, *last_word(other, 6, NAT_BLOCKS - 1) == 6,
	      "another command sees another block of IPv6");
}

static void test_refused(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(64);
	CLEANUP_NAT_MAPS struct nat_maps *m = open_maps(rig);
	struct err err = {0};

	create(m, 4, 7);
	*last_word(m, 4, 7) = 1;
	CHECK(t, nat_maps_create(m, 4, 7, &err) == -EEXIST, "a block is created twice");
	CHECK(t, *last_word(m, 4, 7) == 1, "the second attempt has emptied the block");
	CHECK(t, nat_maps_create(m, 4, NAT_BLOCKS, &err) == -E2BIG, "a block too many");
	CHECK(t, nat_maps_remove(m, 6, 7, &err) == -ENOENT, "a block of no connection is removed");
	CHECK(t, nat_maps_has(m, 4, 7), "the block of the other family is removed");
}

static void test_removed(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(64);
	CLEANUP_NAT_MAPS struct nat_maps *m = open_maps(rig), *other = NULL;
	struct err err = {0};

	create(m, 4, 3);
	create(m, 6, 3);
	*last_word(m, 4, 3) = 1;
	CHECK(t, !nat_maps_remove(m, 4, 3, &err), "%s", err.text);
	CHECK(t, !nat_maps_has(m, 4, 3) && nat_maps_has(m, 6, 3), "the wrong block is removed");
	CHECK(t, !nat_maps_tables(m)->places4[3], "its places remain in use");
	other = open_maps(rig);
	CHECK(t, !nat_maps_has(other, 4, 3), "another command finds it");
	create(m, 4, 3);
	CHECK(t, *last_word(m, 4, 3) == 0, "the next block of the number is not empty");
}

// ---- walks --------------------------------------------------------------------------------------

#define BACKEND 5
#define END     1

static struct nat_census *tidy(const struct rig *rig, size_t *ret_removed)
{
	static struct nat_tidied tidied;
	CLEANUP_FREE struct nat_unused *unused = mem_new(struct nat_unused);
	struct err err = {0};

	if (nat_tidy(rig->instance, NULL, unused, &tidied, &err))
		test_die(&err);
	*ret_removed = tidied.removed;
	return &tidied.census;
}

// A connection that lives, in a block that one cell names after the newest one.
static uint64_t *begin_connection(const struct rig *rig, struct nat_maps *m, uint32_t block,
				  uint32_t *ret_cell)
{
	const struct nat_tables *t = nat_maps_tables(m);
	const uint16_t port = 1234;
	const uint32_t client = 0x01020304;
	uint32_t half = (uint32_t)nat_hash4(&t->nat->key, client, port, 6);
	struct nat_entry4 *e = t->places4[block][nat_group(4, 0, half)].at;
	uint64_t now = pin_time(rig_clock(rig).jiffies, t->nat->shift);

	t->nat->lives = nat_lives(30, 1000, 60);
	t->nat->end[END] = (struct nat_end){.port_proto = nat_port_proto(80, 6), .family = 4};
	e->last = client | (uint64_t)port << NAT_PORT_SHIFT | (uint64_t)END << NAT_END_SHIFT;
	e->word = nat_pack(NAT_TALKS, now, BACKEND, 0);
	*ret_cell = nat_cell(half);
	return (uint64_t *)&e->word;
}

// Block 0 is the newest one of all cells, block 1 a former one of all.
static void name_blocks(struct nat_maps *m)
{
	struct nat_table *nat = nat_maps_tables(m)->nat;

	for (uint32_t c = 0; c < NAT_CELLS; c++)
		nat->cell[1][0][c] = 1 | 2 << 8;
}

static void test_former_block(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(64);
	CLEANUP_NAT_MAPS struct nat_maps *m = open_maps(rig), *after = NULL, *last = NULL;
	struct nat_table *nat = nat_maps_tables(m)->nat;
	struct nat_census *census;
	size_t removed;
	uint32_t cell;
	uint64_t *word;

	for (uint32_t block = 0; block < 2; block++)
		create(m, 4, block);
	name_blocks(m);
	word = begin_connection(rig, m, 1, &cell);
	census = tidy(rig, &removed);
	CHECK(t, census->living == 1 && census->of_backend[BACKEND].living == 1, "%zu live",
	      census->living);
	CHECK(t, census->names == NAT_CELLS - 1, "%zu names are removed", census->names);
	CHECK(t, nat->cell[1][0][cell] == (1 | 2 << 8), "the connection is not found any more");
	CHECK(t, removed == 0, "%zu blocks are removed", removed);
	after = open_maps(rig);
	CHECK(t, nat_maps_has(after, 4, 1), "the block of a living connection is removed");
	*word = 0;
	tidy(rig, &removed);
	CHECK(t, removed == 1, "%zu blocks are removed", removed);
	last = open_maps(rig);
	CHECK(t, nat_maps_has(last, 4, 0) && !nat_maps_has(last, 4, 1), "the wrong block remains");
}

static uint32_t sources_found(const struct nat_table *nat, uint32_t block)
{
	uint32_t found = 0;

	for (int side = 0; side < 2; side++)
		for (uint32_t c = 0; c < NAT_SOURCE_CELLS; c++)
			found += nat->source_at[0][side][c] == block + 1;
	return found;
}

static void test_former_source(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(64);
	CLEANUP_NAT_MAPS struct nat_maps *m = open_maps(rig);
	struct nat_table *nat = nat_maps_tables(m)->nat;
	size_t removed;

	for (uint32_t block = 0; block < 3; block++) {
		create(m, 4, block);
		nat->block[0][block].source[0] = 0x0a000001 + block;
		CHECK(t, !nat_source_put(nat, 4, block), "no room for a source");
	}
	name_blocks(m);
	tidy(rig, &removed);
	CHECK(t, removed == 2, "%zu blocks are removed", removed);
	CHECK(t, sources_found(nat, 0) == 1, "answers to a source are not found");
	CHECK(t, !sources_found(nat, 1) && !sources_found(nat, 2), "answers find a former source");
	CHECK(t, nat->block[0][0].source[0] && !nat->block[0][1].source[0],
	      "the number of a former source is not free");
}

static void test_reading(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(64);
	CLEANUP_NAT_MAPS struct nat_maps *m = open_maps(rig);
	CLEANUP_FREE struct nat_reading *r = mem_new(struct nat_reading);
	struct nat_table *nat = nat_maps_tables(m)->nat;
	struct nat_use_of_places used;
	struct err err = {0};
	uint32_t cell;

	CHECK(t, !nat_read(rig->instance, r, &err) && !r->blocks.n, "a new instance has blocks");
	for (uint32_t block = 0; block < 2; block++) {
		create(m, 4, block);
		nat->block[0][block].source[0] = 0x0a000001 + block;
	}
	create(m, 6, 9);
	name_blocks(m);
	begin_connection(rig, m, 1, &cell);
	CHECK(t, !nat_read(rig->instance, r, &err), "%s", err.text);
	CHECK(t, r->census.living == 1 && r->blocks.n == 3, "%zu live in %zu blocks",
	      r->census.living, r->blocks.n);
	CHECK(t, r->blocks.at[0].newest == NAT_CELLS && !r->blocks.at[1].newest,
	      "the newest block is not known");
	CHECK(t, r->blocks.at[1].living == 1 && r->blocks.at[1].source.family == 4,
	      "the former source has no connection");
	CHECK(t,
	      r->blocks.at[2].family == 6 && r->blocks.at[2].block == 9 &&
		      !r->blocks.at[2].source.family,
	      "the block of nat is not found");
	used = nat_used(r, true, 4);
	CHECK(t, used.blocks == 1 && used.living == 0, "%zu blocks take new connections",
	      used.blocks);
	nat_reading_free(r);
}

static void test_drop(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(64);
	CLEANUP_NAT_MAPS struct nat_maps *m = open_maps(rig);
	CLEANUP_FREE struct lb_ids *ids = mem_new(struct lb_ids);
	struct err err = {0};
	size_t dropped;
	uint32_t cell;
	uint64_t *word;

	create(m, 4, 0);
	word = begin_connection(rig, m, 0, &cell);
	lb_ids_add(ids, BACKEND + 1);
	CHECK(t, !nat_drop(rig->instance, ids, &dropped, &err) && !dropped && *word,
	      "a connection of another backend ends");
	lb_ids_add(ids, BACKEND);
	CHECK(t, !nat_drop(rig->instance, ids, &dropped, &err) && dropped == 1 && !*word,
	      "the connection does not end");
}

const struct named_test nat_maps_tests[] = {
	{"nat maps: blocks are found again by other commands", test_blocks},
	{"nat maps: a block that exists, and one that does not", test_refused},
	{"nat maps: a block that was removed is gone", test_removed},
	{"nat walk: a former block stays while it has a connection", test_former_block},
	{"nat walk: a former source is no source any more", test_former_source},
	{"nat reading: connections and blocks", test_reading},
	{"nat drop: the connections of a backend end", test_drop},
	{0},
};
