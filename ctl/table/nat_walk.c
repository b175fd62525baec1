// SPDX-License-Identifier: GPL-2.0-only
// Walks over the table of connections.
#include "ctl/table/nat_walk.h"

#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/table/nat_cells.h"

// In which blocks the cells of a family have living connections: a bit for each block.
struct lives {
	uint64_t at[NAT_CELLS][(NAT_BLOCKS + 63) / 64];
};

struct nat_walk_state {
	const struct nat_tables *t;
	uint64_t time;
	struct lives *lives; // [1]: of IPv6
	uint64_t peers[NAT_PEERS / 64];
	struct nat_census *census;
};

// A connection as the walk has read it.
struct seen {
	int family;
	uint32_t block;
	uint64_t place; // in the block
	struct nat_key key;
	uint64_t word;
};

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static uint64_t hash_of(const struct nat_table *nat, const struct seen *s)
{
	uint16_t port = (uint16_t)(s->key.last >> NAT_PORT_SHIFT);
	uint8_t proto =
		(uint8_t)(nat->end[s->key.last >> NAT_END_SHIFT & (NAT_ENDS - 1)].port_proto >> 16);
	uint32_t client[4] = {(uint32_t)s->key.last};

	if (s->family == 4)
		return nat_hash4(&nat->key, client[0], port, proto);
	client[0] = (uint32_t)(s->key.client[0] >> 32);
	client[1] = (uint32_t)s->key.client[0];
	client[2] = (uint32_t)(s->key.client[1] >> 32);
	client[3] = (uint32_t)s->key.client[1];
	return nat_hash6(&nat->key, client, port, proto);
}

// Marks the cell of the half that has this group; both halves may have it.
static void note_cells(const struct nat_walk_state *w, const struct seen *s)
{
	uint64_t hash = hash_of(w->t->nat, s);
	uint32_t halves[] = {(uint32_t)hash, (uint32_t)(hash >> 32)};
	uint64_t group = s->place / NAT_GROUP * NAT_GROUP;

	for (int h = 0; h < 2; h++)
		if (nat_group(s->family, 0, halves[h]) * nat_bucket_size(s->family) == group)
			w->lives[s->family == 6].at[nat_cell(halves[h])][s->block / 64] |=
				1ull << s->block % 64;
}

static void note_living(struct nat_walk_state *w, const struct seen *s)
{
	struct nat_census *census = w->census;
	uint64_t peer = nat_peer(s->word) & (NAT_PEERS - 1);

	census->living++;
	census->opening += nat_state(s->word) == NAT_OPENING;
	census->of_block[s->family == 6][s->block]++;
	census->of_end[s->key.last >> NAT_END_SHIFT & (NAT_ENDS - 1)]++;
	w->peers[peer / 64] |= 1ull << peer % 64;
	note_cells(w, s);
}

// A key that is being written is of a connection that lives; the next walk knows whose.
static size_t walk_place(struct nat_walk_state *w, struct seen *s, uint64_t *word)
{
	s->word = load(word);
	if (!s->word)
		return 0;
	if (!nat_is_taken(s->word))
		return 1;
	if (!nat_expired(s->word, w->time, w->t->nat->lives)) {
		note_living(w, s);
		return 1;
	}
	if (!__atomic_compare_exchange_n(word, &s->word, 0, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return 1;
	w->census->expired++;
	return 0;
}

static size_t walk_place4(struct nat_walk_state *w, uint32_t block, uint64_t place)
{
	struct nat_entry4 *e = &w->t->places4[block][place / NAT_BUCKET4].at[place % NAT_BUCKET4];
	struct seen s = {.family = 4, .block = block, .place = place};

	s.key.last = load((const uint64_t *)&e->last);
	return walk_place(w, &s, (uint64_t *)&e->word);
}

static size_t walk_place6(struct nat_walk_state *w, uint32_t block, uint64_t place)
{
	struct nat_entry6 *e = &w->t->places6[block][place / NAT_BUCKET6].at[place % NAT_BUCKET6];
	struct seen s = {.family = 6, .block = block, .place = place};

	s.key.last = load((const uint64_t *)&e->last);
	s.key.client[0] = load((const uint64_t *)&e->client[0]);
	s.key.client[1] = load((const uint64_t *)&e->client[1]);
	return walk_place(w, &s, (uint64_t *)&e->word);
}

static void walk_block(struct nat_walk_state *w, int family, uint32_t block)
{
	for (uint64_t group = NAT_RESERVED; group < NAT_PLACES; group += NAT_GROUP) {
		size_t taken = 0;

		for (uint64_t place = group; place < group + NAT_GROUP; place++)
			taken += family == 4 ? walk_place4(w, block, place)
					     : walk_place6(w, block, place);
		if (taken > w->census->fullest)
			w->census->fullest = taken;
	}
}

static bool lives_there(const void *arg, uint32_t cell, uint8_t block)
{
	const struct lives *lives = arg;

	return lives->at[cell][block / 64] >> block % 64 & 1;
}

// Both words to 0, the second one first: a packet takes a peer by its first one.
static void free_peers(struct nat_walk_state *w, struct nat_unused *unused)
{
	for (uint32_t p = 1; p < NAT_PEERS; p++) {
		struct nat_peer *peer = &w->t->nat->peer[p];
		uint64_t bit = 1ull << p % 64;

		if (w->peers[p / 64] & bit) {
			w->census->peers++;
		} else if (unused->peers[p / 64] & bit) {
			__atomic_store_n((uint64_t *)&peer->word[1], 0, __ATOMIC_SEQ_CST);
			__atomic_store_n((uint64_t *)&peer->word[0], 0, __ATOMIC_SEQ_CST);
		}
	}
	for (size_t i = 0; i < NAT_PEERS / 64; i++)
		unused->peers[i] = ~w->peers[i];
}

void nat_walk(const struct nat_tables *t, uint64_t time, struct nat_unused *unused,
	      struct nat_census *ret)
{
	CLEANUP_FREE struct lives *lives = mem_zalloc(2, sizeof(*lives));
	struct nat_walk_state w = {.t = t, .time = time, .lives = lives, .census = ret};

	memset(ret, 0, sizeof(*ret));
	for (uint32_t block = 0; block < NAT_BLOCKS; block++) {
		if (t->places4[block])
			walk_block(&w, 4, block);
		if (t->places6[block])
			walk_block(&w, 6, block);
	}
	for (int mode = 0; mode < 2; mode++)
		for (int v6 = 0; v6 < 2; v6++)
			ret->names += nat_cells_walk((uint64_t *)t->nat->cell[mode][v6],
						     lives_there, &lives[v6]);
	free_peers(&w, unused);
}
