// SPDX-License-Identifier: GPL-2.0-only
// Walks over the table of connections.
#include "ctl/table/nat_walk.h"

#include <arpa/inet.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/table/nat_cells.h"
#include "ctl/table/nat_near.h"

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
	bool frees; // what has expired
};

// A place, and its connection as it was read.
struct seen {
	int family;
	uint32_t block;
	bool has_source; // the block has
	uint64_t place;  // in the block
	uint64_t *at;    // the word
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

static bool has_source(const struct nat_table *nat, int family, uint32_t block)
{
	static const struct nat_block none;

	return memcmp(&nat->block[family == 6][block], &none, sizeof(none)) != 0;
}

// From where the backend answers, as packets compare it.
static void note_backend(struct nat_walk_state *w, const struct seen *s,
			 const struct nat_backends *backends)
{
	uint64_t id = nat_backend(s->word), number = s->key.last >> NAT_END_SHIFT & (NAT_ENDS - 1);
	const struct nat_end *end = &w->t->nat->end[number];
	const struct backend *b;
	uint16_t port;

	if (id >= backends->n)
		return;
	b = &backends->at[id];
	port = b->port ? htons(b->port) : (uint16_t)end->port_proto;
	nat_near_put(w->census->near, s->family, b->addr,
		     nat_port_proto(port, (uint8_t)(end->port_proto >> 16)));
}

// Answers of fullnat are known by their source.
static void note_answers(struct nat_walk_state *w, const struct seen *s)
{
	for (size_t i = 0; i < 2 && !s->has_source; i++)
		note_backend(w, s, &w->t->backends[i]);
}

static void note_living(struct nat_walk_state *w, const struct seen *s)
{
	struct nat_census *census = w->census;
	uint64_t peer = nat_peer(s->word) & (NAT_PEERS - 1);
	struct nat_of_backend *of =
		&census->of_backend[nat_backend(s->word) & (SERVICE_BACKENDS - 1)];
	bool opening = nat_state(s->word) == NAT_OPENING;

	census->living++;
	census->opening += opening;
	of->living++;
	of->opening += opening;
	of->closed += nat_state(s->word) == NAT_CLOSED;
	census->of_block[s->family == 6][s->block]++;
	census->of_end[s->key.last >> NAT_END_SHIFT & (NAT_ENDS - 1)]++;
	w->peers[peer / 64] |= 1ull << peer % 64;
	note_cells(w, s);
	note_answers(w, s);
}

// The word is read first: while the place has it, the key is of the same connection.
static void read_place(const struct nat_tables *t, struct seen *s)
{
	uint64_t p = s->place;
	struct nat_entry4 *e4;
	struct nat_entry6 *e6;

	if (s->family == 4) {
		e4 = &t->places4[s->block][p / NAT_BUCKET4].at[p % NAT_BUCKET4];
		s->at = (uint64_t *)&e4->word;
		s->word = load(s->at);
		s->key.last = load((const uint64_t *)&e4->last);
		return;
	}
	e6 = &t->places6[s->block][p / NAT_BUCKET6].at[p % NAT_BUCKET6];
	s->at = (uint64_t *)&e6->word;
	s->word = load(s->at);
	s->key.last = load((const uint64_t *)&e6->last);
	s->key.client[0] = load((const uint64_t *)&e6->client[0]);
	s->key.client[1] = load((const uint64_t *)&e6->client[1]);
}

// Unless a packet has changed the connection since it was read.
static bool free_place(const struct seen *s)
{
	uint64_t word = s->word;

	return __atomic_compare_exchange_n(s->at, &word, 0, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

static bool exists(const struct nat_tables *t, int family, uint32_t block)
{
	return family == 4 ? t->places4[block] != NULL : t->places6[block] != NULL;
}

// ---- the walk -----------------------------------------------------------------------------------

// Returns 1 if the place is taken. A key that is being written is of a connection that lives; the
// next walk knows whose.
static size_t walk_place(struct nat_walk_state *w, struct seen *s)
{
	for (read_place(w->t, s); s->word; read_place(w->t, s)) {
		if (!nat_is_taken(s->word))
			return 1;
		if (!nat_expired(s->word, w->time, w->t->nat->lives)) {
			note_living(w, s);
			return 1;
		}
		if (w->frees && !free_place(s))
			continue; // a packet has renewed it
		w->census->expired++;
		return 0;
	}
	return 0;
}

static void walk_block(struct nat_walk_state *w, int family, uint32_t block)
{
	struct seen s = {.family = family,
			 .block = block,
			 .has_source = has_source(w->t->nat, family, block)};

	if (s.has_source)
		nat_near_put(w->census->near, family, w->t->nat->block[family == 6][block].source,
			     0);
	for (uint64_t group = NAT_RESERVED; group < NAT_PLACES; group += NAT_GROUP) {
		size_t taken = 0;

		for (s.place = group; s.place < group + NAT_GROUP; s.place++)
			taken += walk_place(w, &s);
		if (taken > w->census->fullest)
			w->census->fullest = taken;
	}
}

static void walk_blocks(struct nat_walk_state *w)
{
	memset(w->census, 0, sizeof(*w->census));
	for (int family = 4; family <= 6; family += 2)
		for (uint32_t block = 0; block < NAT_BLOCKS; block++)
			if (exists(w->t, family, block))
				walk_block(w, family, block);
}

static bool lives_there(const void *arg, uint32_t cell, uint8_t block)
{
	const struct lives *lives = arg;

	return lives->at[cell][block / 64] >> block % 64 & 1;
}

// Both words to 0, the second one first: a packet takes a peer by its first one.
static void free_peer(struct nat_peer *peer)
{
	__atomic_store_n((uint64_t *)&peer->word[1], 0, __ATOMIC_SEQ_CST);
	__atomic_store_n((uint64_t *)&peer->word[0], 0, __ATOMIC_SEQ_CST);
}

static void free_peers(struct nat_walk_state *w, struct nat_unused *unused)
{
	for (uint32_t p = 1; p < NAT_PEERS; p++)
		if (~w->peers[p / 64] & unused->peers[p / 64] & 1ull << p % 64)
			free_peer(&w->t->nat->peer[p]);
	memset(unused, 0, sizeof(*unused));
	// An empty one may be taken, and named for the first time, during the next walk.
	for (uint32_t p = 0; p < NAT_PEERS; p++)
		if (load((const uint64_t *)&w->t->nat->peer[p].word[0]))
			unused->peers[p / 64] |= ~w->peers[p / 64] & 1ull << p % 64;
}

static void count_peers(const struct nat_walk_state *w)
{
	for (uint32_t p = 1; p < NAT_PEERS; p++)
		w->census->peers += w->peers[p / 64] >> p % 64 & 1;
}

void nat_walk(const struct nat_tables *t, uint64_t time, struct nat_unused *unused,
	      struct nat_census *ret)
{
	CLEANUP_FREE struct lives *lives = mem_zalloc(2, sizeof(*lives));
	struct nat_walk_state w = {
		.t = t, .time = time, .lives = lives, .census = ret, .frees = true};

	walk_blocks(&w);
	for (int mode = 0; mode < 2; mode++)
		for (int v6 = 0; v6 < 2; v6++)
			ret->names += nat_cells_walk((uint64_t *)t->nat->cell[mode][v6],
						     lives_there, &lives[v6]);
	count_peers(&w);
	free_peers(&w, unused);
}

void nat_count(const struct nat_tables *t, uint64_t time, struct nat_census *ret)
{
	CLEANUP_FREE struct lives *lives = mem_zalloc(2, sizeof(*lives));
	struct nat_walk_state w = {.t = t, .time = time, .lives = lives, .census = ret};

	walk_blocks(&w);
	count_peers(&w);
}

// ---- connections that end -----------------------------------------------------------------------

static size_t free_block(const struct nat_tables *t, int family, uint32_t block,
			 bool (*goes)(const void *arg, uint32_t end, uint64_t word),
			 const void *arg)
{
	struct seen s = {.family = family, .block = block};
	size_t freed = 0;

	for (s.place = NAT_RESERVED; s.place < NAT_PLACES; s.place++) {
		bool done = false;

		while (!done) {
			read_place(t, &s);
			if (!nat_is_taken(s.word) ||
			    !goes(arg, (uint32_t)(s.key.last >> NAT_END_SHIFT), s.word))
				break;
			done = free_place(&s);
		}
		freed += done;
	}
	return freed;
}

size_t nat_free(const struct nat_tables *t,
		bool (*goes)(const void *arg, uint32_t end, uint64_t word), const void *arg)
{
	size_t freed = 0;

	for (int family = 4; family <= 6; family += 2)
		for (uint32_t block = 0; block < NAT_BLOCKS; block++)
			if (exists(t, family, block))
				freed += free_block(t, family, block, goes, arg);
	return freed;
}

// ---- peers that end -----------------------------------------------------------------------------

// It keeps its place, so that no other peer takes that while connections name it.
static bool end_peer(struct nat_peer *peer, uint32_t number)
{
	struct nat_peer now = {.word = {0, load((const uint64_t *)&peer->word[1])}}, ended = now;

	ended.number |= NAT_PEER_ENDED;
	return now.number == number &&
	       __atomic_compare_exchange_n((uint64_t *)&peer->word[1], (uint64_t *)&now.word[1],
					   ended.word[1], false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

size_t nat_end_peers(struct nat_peer *peers, uint32_t number)
{
	size_t ended = 0;

	for (uint32_t p = 1; number && p < NAT_PEERS; p++)
		ended += end_peer(&peers[p], number);
	return ended;
}
