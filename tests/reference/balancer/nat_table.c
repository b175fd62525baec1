// SPDX-License-Identifier: GPL-2.0-only
// The table of connections of nat and fullnat, and the rules of its places.
#include "nat_table.h"

#include <stdlib.h>
#include <string.h>

#include "flow.h"

#define GROUP      16
#define RESERVED   1024
#define GROUPS     (NATREF_PLACES / GROUP)
#define ENOUGH     10 /* places of the first group, before the second one is asked */
#define TIME_RANGE 16384
#define AHEAD      16
#define RING_STEPS 16

#define TCP      6
#define FLAG_FIN 0x01
#define FLAG_SYN 0x02
#define FLAG_RST 0x04
#define FLAG_ACK 0x10

void natref_init(struct natref *n)
{
	memset(n, 0, sizeof(*n));
	for (int v6 = 0; v6 < 2; v6++)
		for (int b = 0; b < NATREF_BLOCKS; b++)
			n->table[v6][b] = calloc(NATREF_PLACES, sizeof(struct natref_conn));
}

void natref_free(struct natref *n)
{
	for (int v6 = 0; v6 < 2; v6++)
		for (int b = 0; b < NATREF_BLOCKS; b++)
			free(n->table[v6][b]);
}

struct natref_conn *natref_at(const struct natref *n, uint8_t family, long place)
{
	return &n->table[family == 6][place / NATREF_PLACES][place % NATREF_PLACES];
}

static unsigned int address_bytes(uint8_t family)
{
	return family == 4 ? 4 : 16;
}

bool natref_same(uint8_t family, const uint8_t *a, const uint8_t *b)
{
	return !memcmp(a, b, address_bytes(family));
}

// ---- time and states ----------------------------------------------------------------------------

static uint64_t ticks(const struct natref *n)
{
	return (n->jiffies >> n->shift) % TIME_RANGE;
}

static uint64_t age(const struct natref *n, const struct natref_conn *c)
{
	uint64_t old = (ticks(n) + TIME_RANGE - c->time) % TIME_RANGE;

	return old >= TIME_RANGE - AHEAD ? 0 : old;
}

static uint64_t life(const struct natref *n, enum natref_state state)
{
	return state == NATREF_OPENING ? n->opening : state == NATREF_TALKS ? n->talks : n->closing;
}

static bool expired(const struct natref *n, const struct natref_conn *c)
{
	return age(n, c) > life(n, c->state);
}

enum event { GOES_ON, OPENS, CLOSES, OF_UDP };

static enum event event_of(const struct natref_packet *p)
{
	if (p->proto != TCP)
		return OF_UDP;
	if ((p->flags & (FLAG_SYN | FLAG_ACK)) == FLAG_SYN)
		return OPENS;
	return p->flags & (FLAG_FIN | FLAG_RST) ? CLOSES : GOES_ON;
}

static enum natref_state state_after(const struct natref_conn *c, enum event event, bool by_backend)
{
	if (event == CLOSES && c->state == NATREF_TALKS)
		return NATREF_CLOSING;
	if (event == CLOSES && c->state == NATREF_CLOSING)
		return c->backend_closed == by_backend ? NATREF_CLOSING : NATREF_CLOSED;
	if (event == CLOSES)
		return NATREF_CLOSED;
	if (event == OF_UDP && c->state == NATREF_OPENING && by_backend)
		return NATREF_CLOSING;
	if (event == OPENS && c->state == NATREF_CLOSING && !by_backend)
		return NATREF_OPENING;
	if (event == GOES_ON && c->state == NATREF_OPENING && !by_backend)
		return NATREF_TALKS;
	return c->state;
}

static void hear(const struct natref *n, struct natref_conn *c, enum event event, bool by_backend)
{
	enum natref_state state = state_after(c, event, by_backend);
	bool due = age(n, c) >= life(n, c->state) / 8;

	if (state == c->state && !due)
		return;
	if (state != c->state)
		c->backend_closed = state == NATREF_CLOSING && by_backend && event == CLOSES;
	c->state = state;
	c->time = ticks(n);
}

// ---- places -------------------------------------------------------------------------------------

static uint64_t connection_hash(const struct natref *n, uint8_t family, const uint8_t *client,
				uint16_t port, uint8_t proto)
{
	unsigned int width = address_bytes(family);
	uint8_t message[24] = {0};

	memcpy(message, client, width);
	bytes_network(message + width, port, 2);
	message[width + 2] = proto;
	return flow_hash(n->key, message, family == 4 ? 8 : 24);
}

static const uint8_t *cell_of(const struct natref *n, uint8_t family, bool fullnat, uint32_t half)
{
	return n->cells[fullnat][family == 6][half / 16 % NATREF_CELLS];
}

/* The first place of the group of a half. */
static long group_of(uint8_t block, uint32_t half)
{
	long group = RESERVED / GROUP + flow_scale(half, GROUPS - RESERVED / GROUP);

	return (long)block * NATREF_PLACES + group * GROUP;
}

static uint16_t backend_port(const struct natref *n, const struct natref_conn *c)
{
	uint16_t port = n->backends[c->backend].port;

	return port ? port : n->ends[c->end].port;
}

bool natref_is_with(const struct natref *n, const struct natref_conn *c,
		    const struct natref_wanted *w)
{
	return n->ends[c->end].proto == w->proto && backend_port(n, c) == w->from_port &&
	       natref_same(w->family, n->backends[c->backend].addr, w->from);
}

static bool is_wanted(const struct natref *n, const struct natref_conn *c,
		      const struct natref_wanted *w)
{
	if (!c->taken || c->port != w->port || !natref_same(w->family, c->client, w->client))
		return false;
	if (!w->from)
		return c->end == w->end;
	return c->end != w->end && natref_is_with(n, c, w);
}

/* -1: not found. */
static long search_group(const struct natref *n, const struct natref_wanted *w, uint8_t block,
			 uint32_t half)
{
	long first = group_of(block, half);

	for (long at = first; at < first + GROUP; at++)
		if (is_wanted(n, natref_at(n, w->family, at), w))
			return at;
	return -1;
}

long natref_search(const struct natref *n, const struct natref_wanted *w, bool fullnat)
{
	uint64_t hash = connection_hash(n, w->family, w->client, w->port, w->proto);
	uint32_t halves[] = {(uint32_t)hash, (uint32_t)(hash >> 32)};

	for (int depth = 0; depth < NATREF_DEPTH; depth++)
		for (int h = 0; h < 2; h++) {
			uint8_t block = cell_of(n, w->family, fullnat, halves[h])[depth];
			long at = block ? search_group(n, w, (uint8_t)(block - 1), halves[h]) : -1;

			if (at >= 0)
				return at;
		}
	return -1;
}

// ---- new connections ----------------------------------------------------------------------------

static unsigned int living(const struct natref *n, uint8_t family, long group)
{
	unsigned int count = 0;

	for (long at = group; at < group + GROUP; at++) {
		const struct natref_conn *c = natref_at(n, family, at);

		count += c->taken && !expired(n, c);
	}
	return count;
}

/* The best place of a bucket: a free one, else the oldest that gives way; -1: all stay. */
static long best_of(const struct natref *n, uint8_t family, long bucket, bool half_open)
{
	long best = -1;
	uint64_t oldest = 0;

	for (long at = bucket; at < bucket + (family == 4 ? 4 : 2); at++) {
		const struct natref_conn *c = natref_at(n, family, at);
		bool weak = c->state == NATREF_OPENING || c->state == NATREF_CLOSED;
		bool gives = expired(n, c) || (half_open && weak);

		if (!c->taken)
			return at;
		if (gives && (best < 0 || age(n, c) > oldest)) {
			best = at;
			oldest = age(n, c);
		}
	}
	return best;
}

/* In the buckets of a group, the one of the half first. */
static long place_in(const struct natref *n, uint8_t family, long group, uint32_t half,
		     bool half_open)
{
	uint32_t size = family == 4 ? 4 : 2, buckets = GROUP / size;

	for (uint32_t i = 0; i < buckets; i++) {
		uint32_t bucket = half % buckets ^ i;
		long at = best_of(n, family, group + (long)(bucket * size), half_open);

		if (at >= 0)
			return at;
	}
	return -1;
}

/* The place for a new connection, or -1. */
static long place_for(const struct natref *n, uint8_t family, bool fullnat, uint64_t hash)
{
	uint32_t halves[] = {(uint32_t)hash, (uint32_t)(hash >> 32)};
	const uint8_t *first = cell_of(n, family, fullnat, halves[0]);
	const uint8_t *second = cell_of(n, family, fullnat, halves[1]);
	long groups[2], at = -1;
	unsigned int taken;
	int turn;

	if (!first[0] || !second[0])
		return -1;
	groups[0] = group_of((uint8_t)(first[0] - 1), halves[0]);
	groups[1] = group_of((uint8_t)(second[0] - 1), halves[1]);
	taken = living(n, family, groups[0]);
	turn = taken >= ENOUGH && living(n, family, groups[1]) < taken;
	for (int half_open = 0; at < 0 && half_open < 2; half_open++)
		for (int h = 0; at < 0 && h < 2; h++)
			at = place_in(n, family, groups[h ^ turn], halves[h ^ turn], half_open);
	return at;
}

struct natref_wanted natref_wanted_of(const struct natref_packet *p, uint16_t end)
{
	return (struct natref_wanted){p->family, p->proto, p->src, p->sport, end, NULL, 0};
}

/* Could the answers of this backend be taken for another connection's? */
static bool clashes(const struct natref *n, const struct natref_packet *p, uint16_t end,
		    const struct natref_backend *b)
{
	struct natref_wanted w = natref_wanted_of(p, end);

	w.from = b->addr;
	w.from_port = b->port ? b->port : n->ends[end].port;
	return !n->ends[end].fullnat && natref_search(n, &w, false) >= 0;
}

/* The backend of a new connection; 0 with a fate: there is no such. */
static uint16_t backend_for(const struct natref *n, const struct natref_packet *p, uint16_t end,
			    struct natref_answer *a)
{
	struct flow flow = {
		.source_port = p->sport,
		.destination_port = p->dport,
		.family = p->family,
		.proto = p->proto,
	};
	uint32_t slot;

	memcpy(flow.source, p->src, 16);
	memcpy(flow.destination, p->dst, 16);
	slot = flow_scale((uint32_t)flow_hash_tuple(n->key, &flow), NATREF_RING);
	a->fate = NATREF_CLASH;
	for (uint32_t step = 0; step < RING_STEPS; step++) {
		uint16_t id = n->ring[p->family == 6][(slot + step) % NATREF_RING];
		const struct natref_backend *b = &n->backends[id];

		a->mtu = b->mtu;
		a->fate = !id                                        ? NATREF_NO_BACKEND
			  : b->family != p->family || !b->hop.number ? NATREF_NO_NEXT_HOP
			  : p->length > b->mtu                       ? NATREF_TOO_BIG
			  : clashes(n, p, end, b)                    ? NATREF_CLASH
								     : NATREF_SENT;
		if (a->fate != NATREF_CLASH)
			return a->fate == NATREF_SENT ? id : 0;
	}
	return 0;
}

static void begin_in(const struct natref *n, struct natref_conn *c, const struct natref_packet *p,
		     uint16_t end, uint16_t backend)
{
	memset(c, 0, sizeof(*c));
	c->taken = true;
	c->state = NATREF_OPENING;
	c->time = ticks(n);
	c->backend = backend;
	c->end = end;
	c->port = p->sport;
	memcpy(c->client, p->src, 16);
	c->has_peer = p->from.number;
	c->peer = p->from;
}

static void begin(const struct natref *n, const struct natref_packet *p, uint16_t end,
		  struct natref_answer *a)
{
	uint64_t hash = connection_hash(n, p->family, p->src, p->sport, p->proto);
	enum event event = event_of(p);
	uint16_t backend;

	a->fate = NATREF_UNKNOWN;
	if (event != OPENS && event != OF_UDP)
		return;
	if (!(backend = backend_for(n, p, end, a)))
		return;
	a->place = place_for(n, p->family, n->ends[end].fullnat, hash);
	if (a->place >= 0)
		begin_in(n, natref_at(n, p->family, a->place), p, end, backend);
	a->fate = a->place >= 0 ? NATREF_SENT : NATREF_FULL;
}

// ---- known connections --------------------------------------------------------------------------

static bool same_hop(const struct natref_hop *a, const struct natref_hop *b)
{
	return !memcmp(a->mac, b->mac, 6) && !memcmp(a->own, b->own, 6) && a->vlan == b->vlan &&
	       a->number == b->number;
}

/* Does the packet begin another connection of the same client and port? */
static bool begins_again(const struct natref *n, const struct natref_conn *c,
			 const struct natref_packet *p)
{
	enum event event = event_of(p);

	return (event == OPENS && (c->state == NATREF_CLOSED || expired(n, c))) ||
	       (event == OF_UDP && expired(n, c));
}

/* Would a new connection look for a place in the block of this place? */
static bool is_newest(const struct natref *n, const struct natref_packet *p, uint16_t end,
		      long place)
{
	uint64_t hash = connection_hash(n, p->family, p->src, p->sport, p->proto);
	bool fullnat = n->ends[end].fullnat;
	long block = place / NATREF_PLACES + 1;

	return cell_of(n, p->family, fullnat, (uint32_t)hash)[0] == block ||
	       cell_of(n, p->family, fullnat, (uint32_t)(hash >> 32))[0] == block;
}

/* A packet of a known connection. After its end another one may begin in the same place. */
static void follow(const struct natref *n, struct natref_conn *c, const struct natref_packet *p,
		   struct natref_answer *a)
{
	enum event event = event_of(p);
	uint16_t backend;

	if (begins_again(n, c, p)) {
		backend = backend_for(n, p, c->end, a);
		if (backend)
			begin_in(n, c, p, c->end, backend);
		return;
	}
	hear(n, c, event, false);
	if ((event != OPENS || c->state == NATREF_OPENING) &&
	    (c->has_peer ? !same_hop(&c->peer, &p->from) : p->from.number)) {
		c->peer = p->from;
		c->has_peer = p->from.number;
	}
	a->fate = NATREF_SENT;
}

void natref_serve(struct natref *n, const struct natref_packet *p, uint16_t end,
		  struct natref_answer *a)
{
	struct natref_wanted w = natref_wanted_of(p, end);
	bool fullnat = n->ends[end].fullnat;

	a->place = natref_search(n, &w, fullnat);
	if (a->place < 0)
		a->place = natref_search(n, &w, !fullnat);
	if (a->place >= 0 && begins_again(n, natref_at(n, p->family, a->place), p) &&
	    !is_newest(n, p, end, a->place)) {
		memset(natref_at(n, p->family, a->place), 0, sizeof(struct natref_conn));
		a->place = -1;
	}
	if (a->place >= 0)
		follow(n, natref_at(n, p->family, a->place), p, a);
	else
		begin(n, p, end, a);
}

void natref_heard_back(const struct natref *n, const struct natref_packet *p, long place)
{
	hear(n, natref_at(n, p->family, place), event_of(p), true);
}

// ---- walks --------------------------------------------------------------------------------------

static void sweep(struct natref *n, uint8_t family, struct natref_rest *rest)
{
	for (long at = 0; at < (long)NATREF_BLOCKS * NATREF_PLACES; at++) {
		struct natref_conn *c = natref_at(n, family, at);

		if (!c->taken)
			continue;
		if (expired(n, c)) {
			c->taken = false;
			rest->expired++;
			continue;
		}
		rest->living++;
		rest->opening += c->state == NATREF_OPENING;
	}
}

/* Could a connection that hashes to the cell be in this place, and is it? */
static bool is_of_cell(const struct natref *n, uint8_t family, long at, uint32_t cell)
{
	const struct natref_conn *c = natref_at(n, family, at);
	uint64_t hash = connection_hash(n, family, c->client, c->port, n->ends[c->end].proto);
	uint32_t halves[] = {(uint32_t)hash, (uint32_t)(hash >> 32)};
	uint8_t block = (uint8_t)(at / NATREF_PLACES);

	for (int h = 0; h < 2; h++)
		if (halves[h] / 16 % NATREF_CELLS == cell &&
		    group_of(block, halves[h]) == at / GROUP * GROUP)
			return true;
	return false;
}

/* Marks the cells of all connections: [cell][block]. */
static void mark_cells(const struct natref *n, uint8_t family, bool (*ret)[NATREF_BLOCKS])
{
	memset(ret, 0, NATREF_CELLS * sizeof(*ret));
	for (long at = 0; at < (long)NATREF_BLOCKS * NATREF_PLACES; at++) {
		const struct natref_conn *c = natref_at(n, family, at);
		uint64_t hash;

		if (!c->taken)
			continue;
		hash = connection_hash(n, family, c->client, c->port, n->ends[c->end].proto);
		for (int h = 0; h < 2; h++) {
			uint32_t cell = (uint32_t)(hash >> 32 * h) / 16 % NATREF_CELLS;

			if (is_of_cell(n, family, at, cell))
				ret[cell][at / NATREF_PLACES] = true;
		}
	}
}

static void thin(uint8_t cell[NATREF_DEPTH], const bool marked[NATREF_BLOCKS])
{
	int left = 1;

	for (int d = 1; d < NATREF_DEPTH; d++)
		if (cell[d] && marked[cell[d] - 1])
			cell[left++] = cell[d];
	while (left < NATREF_DEPTH)
		cell[left++] = 0;
}

struct natref_rest natref_walk(struct natref *n)
{
	static bool marked[NATREF_CELLS][NATREF_BLOCKS];
	struct natref_rest rest = {0};

	for (uint8_t family = 4; family <= 6; family += 2) {
		sweep(n, family, &rest);
		mark_cells(n, family, marked);
		for (int mode = 0; mode < 2; mode++)
			for (int c = 0; c < NATREF_CELLS; c++)
				thin(n->cells[mode][family == 6][c], marked[c]);
	}
	return rest;
}
