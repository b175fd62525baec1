// SPDX-License-Identifier: GPL-2.0-only
// Makes the world of nats, in the datapath and in the model, and compares both.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/datapath/clock.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/parts.h"
#include "ctl/table/nat_near.h"
#include "ctl/table/ring.h"
#include "tests/reference/balancer/clock.h"
#include "tests/reference/balancer/nats.h"

#define BACKENDS 6 // of each family

// Backends of make_backend() replace the policy's.
static const char policy[] = "service a4 { vip 10.1.0.0, 10.1.0.4; port 80; ring 4093\n"
			     "mode nat; connections 50000; backend 10.2.0.1 }\n"
			     "service b4 { vip 10.1.0.8; proto udp; port 53; ring 4093\n"
			     "mode nat; connections 50000; backend 10.2.0.1 }\n"
			     "service c4 { vip 10.1.0.2, 10.1.0.6; port 80; ring 4093\n"
			     "mode fullnat; source 10.3.0.1, 10.3.0.2; backend 10.2.0.1 }\n"
			     "service d4 { vip 10.1.0.10; proto udp; port 53; ring 4093\n"
			     "mode fullnat; source 10.3.0.1, 10.3.0.2; backend 10.2.0.1 }\n"
			     "service a6 { vip fd01::1, fd01::5; port 80; ring 4093\n"
			     "mode nat; connections 50000; backend fd02::1 }\n"
			     "service b6 { vip fd01::9; proto udp; port 53; ring 4093\n"
			     "mode nat; connections 50000; backend fd02::1 }\n"
			     "service c6 { vip fd01::3, fd01::7; port 80; ring 4093\n"
			     "mode fullnat; source fd03::1, fd03::2; backend fd02::1 }\n"
			     "service d6 { vip fd01::b; proto udp; port 53; ring 4093\n"
			     "mode fullnat; source fd03::1, fd03::2; backend fd02::1 }\n";

struct nat_rig *nats_rig;
struct natref nats_model;
uint64_t nats_packets;

static struct mapping services, rings, test_clock;
static uint64_t random_state;

void nats_seed(uint32_t seed)
{
	random_state = 0x9e3779b97f4a7c15ull * seed;
}

uint64_t nats_draw(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 11) % below;
}

_Noreturn void nats_fail(const char *what)
{
	printf("FAIL packet %llu: %s\n0 passed, 1 failed\n", (unsigned long long)nats_packets,
	       what);
	exit(1);
}

// ---- hosts --------------------------------------------------------------------------------------

void nats_address(uint8_t family, enum nats_kind kind, uint32_t number, uint8_t ret[16])
{
	size_t last = family == 4 ? 3 : 15;

	memset(ret, 0, 16);
	ret[0] = family == 4 ? 10 : 0xfd;
	ret[1] = (uint8_t)kind;
	ret[last - 1] = (uint8_t)(number >> 8);
	ret[last] = (uint8_t)number;
}

void nats_hop(uint32_t number, struct natref_hop *ret)
{
	*ret = (struct natref_hop){
		.mac = {2, 0, 0, 0, 1, (uint8_t)number},
		.own = {2, 0, 0, 0, 2, (uint8_t)(number % 3)},
		.vlan = number % 4 == 3 ? 7 : 0,
		.number = number % 5 == 4 ? NATS_OTHER : RIG_IFACE,
	};
}

static void read_ends(void)
{
	for (uint32_t n = 1; n < NATREF_ENDS; n++) {
		const struct nat_end *end = &nats_rig->nat->end[n];
		struct natref_end *e = &nats_model.ends[n];

		if (!end->port_proto)
			continue;
		e->family = (uint8_t)end->family;
		e->proto = (uint8_t)(end->port_proto >> 16);
		e->fullnat = nats_rig->use[n].mode == NAT_USE_FULLNAT;
		memcpy(e->vip, end->vip, 16);
		e->port = ntohs((uint16_t)end->port_proto);
	}
}

static void read_sources(void)
{
	static const uint8_t none[16];

	for (uint32_t b = 0; b < NATREF_BLOCKS; b++)
		for (uint32_t v6 = 0; v6 < 2; v6++) {
			const struct nat_block *block = &nats_rig->nat->block[v6][b];

			nats_model.has_source[v6][b] = memcmp(block->source, none, 16) != 0;
			memcpy(nats_model.source[v6][b], block->source, 16);
		}
}

// Its answers are looked for.
static void add_near(const struct natref_backend *b, const uint32_t addr[4], uint64_t *near)
{
	for (uint32_t n = 1; n < NATREF_ENDS; n++) {
		const struct natref_end *e = &nats_model.ends[n];

		if (e->family == b->family)
			nat_near_put(near, b->family, addr,
				     nat_port_proto(htons(b->port ? b->port : e->port), e->proto));
	}
}

// 1 … 6 of IPv4, 11 … 16 of IPv6; two have one address, and the last one has no next hop.
static void make_backend(uint32_t id)
{
	struct backend *row = (struct backend *)nats_rig->policy->backends.at + id;
	struct natref_backend *b = &nats_model.backends[id];

	b->family = id > 10 ? 6 : 4;
	nats_address(b->family, NATS_BACKEND, id % 10 == 5 ? id - 1 : id, b->addr);
	b->port = id % 10 == 5 ? 8081 : id % 3 ? 0 : 8080;
	b->mtu = 1400;
	nats_hop(id, &b->hop);
	if (id % 10 == BACKENDS)
		b->hop.number = 0;
	*row = (struct backend){
		.mtu = b->mtu, .vlan = b->hop.vlan, .port = b->port, .family = b->family};
	memcpy(row->addr, b->addr, sizeof(row->addr));
	memcpy(row->mac, b->hop.mac, 6);
	memcpy(row->mac_own, b->hop.own, 6);
	row->ifindex = b->hop.number == NATS_OTHER ? BALANCE_OUT
		       : b->hop.number             ? nats_rig->rig->ifindex
						   : 0;
}

// ---- rings and cells ----------------------------------------------------------------------------

// Few slots have a backend without a next hop, or none.
static void make_ring(uint32_t v6, uint64_t backends)
{
	for (uint32_t s = 0; s < NATREF_RING; s++) {
		uint64_t which = nats_draw(200);
		uint16_t id = (uint16_t)(10 * v6 + (which < 198 ? 1 + which % backends : BACKENDS));

		nats_model.ring[v6][s] = which == 199 ? 0 : id;
	}
}

void nats_add_near(uint64_t near[NAT_NEAR_WORDS])
{
	const struct backend *rows = nats_rig->policy->backends.at;
	bool named[NATREF_BACKENDS] = {false};

	for (uint32_t v6 = 0; v6 < 2; v6++)
		for (uint32_t s = 0; s < NATREF_RING; s++)
			named[nats_model.ring[v6][s]] = true;
	for (uint32_t id = 1; id < NATREF_BACKENDS; id++)
		if (named[id])
			add_near(&nats_model.backends[id], rows[id].addr, near);
}

static void make_rings(uint64_t backends)
{
	const struct lb_state *lb = nats_rig->policy->c->lb.lb;
	uint64_t *slots = rings.at;

	make_ring(0, backends);
	make_ring(1, backends);
	nats_add_near((uint64_t *)nats_rig->nat->near);
	for (size_t n = 0; n < lb->n_services; n++)
		for (uint32_t s = 0; s < NATREF_RING; s++)
			slots[lb->services[n].first_slot + s] =
				slot_pack(nats_model.ring[n >= lb->n_services / 2][s], 0, 0);
}

static void set_cell(int fullnat, uint32_t v6, uint32_t cell, const uint8_t *blocks, size_t n)
{
	uint64_t word = 0;

	for (size_t i = 0; i < NATREF_DEPTH; i++) {
		uint8_t named = i < n ? (uint8_t)(blocks[i] + 1) : 0;

		nats_model.cells[fullnat][v6][cell][i] = named;
		word |= (uint64_t)named << 8 * i;
	}
	nats_rig->nat->cell[fullnat][v6][cell] = word;
}

// Each mode has two blocks: one is the newest in most cells, the other in the rest. Some cells have
// only one.
static void make_cells(void)
{
	for (int mode = 0; mode < 4; mode++) {
		int fullnat = mode / 2, v6 = mode % 2;
		const uint8_t *at = nats_rig->policy->c->lb.nat.plan->wish.list[fullnat][v6].at;
		const uint8_t blocks[] = {at[0], at[1], at[0]};

		for (uint32_t c = 0; c < NATREF_CELLS; c++)
			set_cell(fullnat, (uint32_t)v6, c, blocks + !nats_draw(4),
				 1 + nats_draw(2));
	}
}

// A connection of a client that sends nothing: only its place matters. lives: it does, else it may
// have any age and state.
static void fill_place(uint8_t family, long place, bool lives)
{
	struct natref_conn *c = natref_at(&nats_model, family, place);
	struct nat_key k = {.last = (1 + nats_draw(3)) << NAT_END_SHIFT};

	c->taken = true;
	c->state = lives ? NATREF_TALKS : (enum natref_state)nats_draw(4);
	c->time = ((nats_model.jiffies >> NATS_SHIFT) - nats_draw(lives ? 10 : 500)) & NAT_TIME;
	c->backend = (uint16_t)(family == 4 ? 1 : 11);
	c->end = (uint16_t)(k.last >> NAT_END_SHIFT);
	*nat_rig_word(nats_rig, family, (uint64_t)place) =
		nat_pack((uint64_t)c->state, c->time, c->backend, 0);
	nat_rig_set_key(nats_rig, family, (uint64_t)place, &k);
}

static void fill_table(uint8_t family, uint64_t percent, bool lives)
{
	for (long at = 0; at < (long)NATREF_BLOCKS * NATREF_PLACES; at++) {
		memset(natref_at(&nats_model, family, at), 0, sizeof(struct natref_conn));
		*nat_rig_word(nats_rig, family, (uint64_t)at) = 0;
		if (at % NATREF_PLACES >= NAT_RESERVED && nats_draw(100) < percent)
			fill_place(family, at, lives);
	}
}

bool nats_shuffle(void)
{
	uint64_t kind = nats_draw(3), percent = kind ? 85 + nats_draw(16) : 0;

	make_rings(nats_draw(3) ? 5 : 1);
	make_cells();
	nats_model.resets_from = nats_draw(3) ? 0 : nats_model.jiffies + nats_draw(200 * NATS_HZ);
	nats_rig->nat->resets_from = nats_model.resets_from;
	fill_table(4, percent, kind == 2);
	fill_table(6, percent, kind == 2);
	return !kind;
}

// ---- the beginning ------------------------------------------------------------------------------

static void map(struct mapping *m, int fd, size_t bytes)
{
	struct err err = {0};

	if (fd < 0 || mapping_open(m, fd, bytes, &err))
		nats_fail("a map of the policy is missing");
}

static void map_tables(void)
{
	const struct generation *g = nats_rig->policy->c->generation;
	const struct lb_state *lb = nats_rig->policy->c->lb.lb;

	map(&services, g->fd[PART_SERVICES], lb->n_services * sizeof(struct service));
	map(&rings, g->fd[PART_RINGS], lb->n_slots * sizeof(uint64_t));
	map(&test_clock, clock_map(generation_program_of(g, GENERATION_NAT_ANY)), sizeof(uint64_t));
}

// In ticks, a seventh longer.
static uint64_t life_of(uint64_t seconds)
{
	uint64_t ticks = (seconds * NATS_HZ + (1 << NATS_SHIFT) - 1) >> NATS_SHIFT;

	return ticks + ticks / 7;
}

static void set_lives(void)
{
	struct natref *m = &nats_model;

	m->shift = NATS_SHIFT;
	m->second = clock_hz(); // as the policy was loaded
	m->opening = life_of(30);
	m->talks = life_of(300);
	m->closing = life_of(60);
	nats_rig->nat->shift = NATS_SHIFT;
	nats_rig->nat->lives = nat_lives(m->opening, m->talks, m->closing);
}

static void set_key(void)
{
	struct hash_key key;

	for (uint8_t i = 0; i < SIPHASH_KEY; i++)
		nats_model.key[i] = i;
	memcpy(&key, nats_model.key, sizeof(key));
	nats_rig->nat->key = ring_flow_key(&key);
	for (size_t n = 0; n < nats_rig->policy->c->lb.lb->n_services; n++)
		((struct service *)services.at)[n].key = nats_rig->nat->key;
}

// A namespace of its own has no routes to clients.
void nats_begin(void)
{
	if (unshare(CLONE_NEWNET))
		nats_fail("cannot make a network namespace");
	natref_init(&nats_model);
	nats_rig = nat_rig_new(policy, false);
	map_tables();
	set_key();
	set_lives();
	read_ends();
	read_sources();
	for (uint32_t id = 1; id <= BACKENDS; id++) {
		make_backend(id);
		make_backend(id + 10);
	}
}

void nats_end(void)
{
	mapping_close(&services);
	mapping_close(&rings);
	mapping_close(&test_clock);
	nat_rig_free(nats_rig);
	natref_free(&nats_model);
}

void nats_set_time(uint64_t jiffies)
{
	nats_model.jiffies = jiffies;
	*(uint64_t *)test_clock.at = jiffies;
}

// ---- both tables --------------------------------------------------------------------------------

// Several numbers may have the same peer: a nearer one was free when it was looked for again.
static bool is_peer(uint16_t number, const struct natref_hop *hop)
{
	struct nat_peer p = {.vlan = hop->vlan, .number = hop->number};

	memcpy(p.mac, hop->mac, 6);
	memcpy(p.mac_own, hop->own, 6);
	return number && !memcmp(&nats_rig->nat->peer[number], &p, sizeof(p));
}

static void client_of(uint8_t family, const struct nat_key *k, uint8_t ret[16])
{
	uint32_t words[4] = {(uint32_t)k->last};

	if (family == 6) {
		words[0] = (uint32_t)(k->client[0] >> 32);
		words[1] = (uint32_t)k->client[0];
		words[2] = (uint32_t)(k->client[1] >> 32);
		words[3] = (uint32_t)k->client[1];
	}
	memcpy(ret, words, 16);
}

static bool same_word(const struct natref_conn *c, uint64_t word)
{
	uint16_t peer = (uint16_t)nat_peer(word);
	uint64_t wanted = nat_pack((uint64_t)c->state, c->time, c->backend, peer);

	if (c->state == NATREF_CLOSING && c->backend_closed)
		wanted |= NAT_BACKEND_CLOSED;
	return word == wanted && (c->has_peer ? is_peer(peer, &c->peer) : !peer);
}

void nats_compare_place(uint8_t family, long place)
{
	const struct natref_conn *c = natref_at(&nats_model, family, place);
	uint64_t word = *nat_rig_word(nats_rig, family, (uint64_t)place);
	struct nat_key k;
	uint8_t client[16];

	if (!c->taken && !word)
		return;
	if (!c->taken || !word)
		nats_fail("only one table has a connection");
	k = nat_rig_key(nats_rig, family, (uint64_t)place);
	client_of(family, &k, client);
	if (!same_word(c, word))
		nats_fail("the state of a connection differs");
	if (memcmp(client, c->client, family == 4 ? 4 : 16) || k.last >> NAT_END_SHIFT != c->end ||
	    ntohs((uint16_t)(k.last >> NAT_PORT_SHIFT)) != c->port)
		nats_fail("another connection has the place");
}

void nats_compare_tables(void)
{
	for (uint8_t family = 4; family <= 6; family += 2)
		for (long at = 0; at < (long)NATREF_BLOCKS * NATREF_PLACES; at++)
			nats_compare_place(family, at);
}

static uint64_t cell_word(const uint8_t cell[NATREF_DEPTH])
{
	uint64_t word = 0;

	for (int d = 0; d < NATREF_DEPTH; d++)
		word |= (uint64_t)cell[d] << 8 * d;
	return word;
}

void nats_compare_cells(void)
{
	for (int mode = 0; mode < 4; mode++)
		for (int c = 0; c < NATREF_CELLS; c++)
			if (cell_word(nats_model.cells[mode / 2][mode % 2][c]) !=
			    nats_rig->nat->cell[mode / 2][mode % 2][c])
				nats_fail("the cells differ");
}
