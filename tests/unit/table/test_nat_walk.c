// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/nat_walk.c: what a walk frees, counts and leaves.
// tests/reference/balancer/nats compares walks with a model.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/table/nat_walk.h"

#define NOW    5000 // ticks
#define BLOCKS 2
#define END    3
#define PEER   9

static struct nat_tables tables;
static struct nat_unused unused;
static struct nat_census census;

static int begin(void **state)
{
	tables = (struct nat_tables){
		.nat = mem_zalloc(1, sizeof(struct nat_table)),
	};
	for (uint32_t b = 0; b < BLOCKS; b++) {
		tables.places4[b] =
			mem_zalloc(NAT_PLACES / NAT_BUCKET4, sizeof(struct nat_bucket4));
		tables.places6[b] =
			mem_zalloc(NAT_PLACES / NAT_BUCKET6, sizeof(struct nat_bucket6));
	}
	tables.nat->lives = nat_lives(34, 300, 67);
	tables.nat->end[END] = (struct nat_end){.port_proto = nat_port_proto(80, 6), .family = 4};
	tables.nat->peer[PEER].word[0] = tables.nat->peer[PEER].word[1] = 1;
	memset(&unused, 0, sizeof(unused));
	return 0;
}

static int end(void **state)
{
	mem_cleanup_free(&tables.nat);
	for (uint32_t b = 0; b < BLOCKS; b++) {
		mem_cleanup_free(&tables.places4[b]);
		mem_cleanup_free(&tables.places6[b]);
	}
	return 0;
}

// A connection of IPv4 in the group of its first half: its place, and the cell of this half.
static struct nat_entry4 *put(uint32_t client, uint32_t block, uint64_t word, uint32_t *ret_cell)
{
	uint32_t half = (uint32_t)nat_hash4(&tables.nat->key, client, 1234, 6);
	struct nat_entry4 *e =
		&tables.places4[block][nat_group(4, 0, half)].at[client % NAT_BUCKET4];

	*ret_cell = nat_cell(half);
	e->last = client | 1234ull << NAT_PORT_SHIFT | (uint64_t)END << NAT_END_SHIFT;
	e->word = word;
	return e;
}

static void walk(void)
{
	nat_walk(&tables, NOW, &unused, &census);
}

static void test_living_and_expired(void **state)
{
	uint32_t cell;
	struct nat_entry4 *a = put(1, 0, nat_pack(NAT_OPENING, NOW - 34, 5, 0), &cell);
	struct nat_entry4 *b = put(2, 1, nat_pack(NAT_TALKS, NOW - 301, 5, 0), &cell);

	tables.places6[0][5000].at[1].word = nat_pack(NAT_TALKS, NOW, 5, PEER);
	walk();
	assert_int_equal(census.living, 2);
	assert_int_equal(census.opening, 1);
	assert_int_equal(census.expired, 1);
	assert_int_equal(census.fullest, 1);
	assert_int_equal(census.of_block[0][0], 1);
	assert_int_equal(census.of_block[0][1], 0);
	assert_int_equal(census.of_end[END], 1);
	assert_int_equal(census.peers, 1);
	assert_true(a->word != 0);
	assert_true(b->word == 0);
}

// Its owner is about to write its key.
static void test_a_place_being_taken(void **state)
{
	uint64_t word = nat_pack(NAT_OPENING, NOW - 1000, 5, 0) | NAT_CLAIMED;
	uint32_t cell;
	struct nat_entry4 *a = put(1, 0, word, &cell);

	walk();
	assert_int_equal(census.expired, 0);
	assert_true(a->word == word);
}

static void test_cells(void **state)
{
	uint32_t cell;

	put(1, 0, nat_pack(NAT_TALKS, NOW, 5, 0), &cell);
	for (uint32_t c = 0; c < NAT_CELLS; c++)
		tables.nat->cell[0][0][c] = 0x0102; // block 1, before it block 0
	walk();
	for (uint32_t c = 0; c < NAT_CELLS; c++)
		assert_int_equal(tables.nat->cell[0][0][c], c == cell ? 0x0102 : 0x02);
	assert_int_equal(census.names, NAT_CELLS - 1);
}

static void test_peers(void **state)
{
	const struct nat_peer *peer = &tables.nat->peer[PEER];

	walk();
	assert_true(peer->word[0] && peer->word[1]);
	walk();
	assert_true(!peer->word[0] && !peer->word[1]);
	assert_int_equal(census.peers, 0);
}

// An ended peer has no device, and is not free while a connection names it.
static void test_ended_peers(void **state)
{
	struct nat_peer *peer = &tables.nat->peer[PEER], *other = &tables.nat->peer[PEER + 1];
	uint32_t cell;
	struct nat_entry4 *a = put(1, 0, nat_pack(NAT_TALKS, NOW, 5, PEER), &cell);

	*peer = (struct nat_peer){.mac = {2}, .mac_own = {4, 0, 0, 0, 0, 1}, .number = 7};
	*other = *peer;
	other->number = 8;
	assert_int_equal(nat_end_peers(tables.nat->peer, 7), 1);
	assert_int_equal(nat_end_peers(tables.nat->peer, 7), 0);
	assert_int_equal(nat_end_peers(tables.nat->peer, 0), 0);
	assert_int_equal(peer->number, 7 | NAT_PEER_ENDED);
	assert_int_equal(other->number, 8);
	for (int n = 0; n < 3; n++)
		walk();
	assert_true(peer->word[0] != 0);
	a->word = 0;
	walk();
	walk();
	assert_true(!peer->word[0] && !peer->word[1]);
}

static void test_by_backend(void **state)
{
	uint32_t cell;

	put(1, 0, nat_pack(NAT_OPENING, NOW, 5, 0), &cell);
	put(2, 1, nat_pack(NAT_TALKS, NOW, 5, 0), &cell);
	put(3, 1, nat_pack(NAT_TALKS, NOW, 7, 0), &cell);
	put(4, 1, nat_pack(NAT_TALKS, NOW - 301, 7, 0), &cell);
	put(5, 1, nat_pack(NAT_CLOSED, NOW, 8, 0), &cell);
	put(6, 0, nat_pack(NAT_CLOSING, NOW, 8, 0), &cell);
	walk();
	assert_int_equal(census.of_backend[5].living, 2);
	assert_int_equal(census.of_backend[5].opening, 1);
	assert_int_equal(census.of_backend[7].living, 1);
	assert_int_equal(census.of_backend[7].opening, 0);
	assert_int_equal(census.of_backend[7].closed, 0);
	assert_int_equal(census.of_backend[8].living, 2);
	assert_int_equal(census.of_backend[8].closed, 1);
}

// A look frees no connection, no name of a block and no peer.
static void test_count(void **state)
{
	uint32_t cell;
	struct nat_entry4 *living = put(1, 0, nat_pack(NAT_TALKS, NOW, 5, PEER), &cell);
	struct nat_entry4 *expired = put(2, 1, nat_pack(NAT_TALKS, NOW - 301, 5, 0), &cell);
	struct nat_table before;

	tables.nat->cell[0][0][3] = 0x0102;
	before = *tables.nat;
	for (int n = 0; n < 2; n++)
		nat_count(&tables, NOW, &census);
	assert_int_equal(census.living, 1);
	assert_int_equal(census.expired, 1);
	assert_int_equal(census.peers, 1);
	assert_int_equal(census.names, 0);
	assert_true(living->word && expired->word);
	assert_memory_equal(&before, tables.nat, sizeof(before));
}

// Its backend is *arg. All connections here are of END.
static bool is_of(const void *arg, uint32_t end, uint64_t word)
{
	assert_int_equal(end, END);
	return nat_backend(word) == *(const uint64_t *)arg;
}

static void test_freed(void **state)
{
	const uint64_t backend = 5;
	uint64_t taking = nat_pack(NAT_OPENING, NOW, 5, 0) | NAT_CLAIMED;
	uint32_t cell;
	struct nat_entry4 *a = put(1, 0, nat_pack(NAT_TALKS, NOW, 5, 0), &cell);
	struct nat_entry4 *b = put(2, 1, nat_pack(NAT_CLOSED, NOW - 301, 5, 0), &cell);
	struct nat_entry4 *other = put(3, 1, nat_pack(NAT_TALKS, NOW, 6, 0), &cell);
	struct nat_entry4 *taken = put(4, 1, taking, &cell);
	struct nat_entry6 *six = &tables.places6[1][5000].at[1];

	six->word = nat_pack(NAT_TALKS, NOW, 5, 0);
	six->last = (uint64_t)END << NAT_END_SHIFT;
	assert_int_equal(nat_free(&tables, is_of, &backend), 3);
	assert_true(!a->word && !b->word && !six->word);
	assert_true(other->word != 0);
	assert_true(taken->word == taking);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_living_and_expired, begin, end),
		cmocka_unit_test_setup_teardown(test_a_place_being_taken, begin, end),
		cmocka_unit_test_setup_teardown(test_cells, begin, end),
		cmocka_unit_test_setup_teardown(test_peers, begin, end),
		cmocka_unit_test_setup_teardown(test_ended_peers, begin, end),
		cmocka_unit_test_setup_teardown(test_by_backend, begin, end),
		cmocka_unit_test_setup_teardown(test_count, begin, end),
		cmocka_unit_test_setup_teardown(test_freed, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
