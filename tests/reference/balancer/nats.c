// SPDX-License-Identifier: GPL-2.0-only
// Random histories of connections of nat and fullnat, played by the datapath and by the model: the
// same fate, frame, place and state for every packet, and the same table at the end.
//
// usage: nats [PACKETS [SEED]]
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "common/policy.h"
#include "ctl/base/num.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/maps.h"
#include "ctl/table/nat_walk.h"
#include "tests/datapath/nat_rig.h"
#include "tests/reference/balancer/clock.h"
#include "tests/reference/balancer/nat_model.h"
#include "xdp/policy.skel.h"

#define HZ       1000
#define SHIFT    10
#define CLIENTS  3000
#define RECENT   4096 // packets to backends that are answered
#define PACKETS  60000
#define COUNTED  1000 // packets between two looks at the counters
#define HISTORY  5000 // packets of a history
#define WALKED   1000 // packets between two walks
#define FLAG_SYN 0x02
#define FLAG_ACK 0x10

_Static_assert(NATREF_RING == NAT_RIG_RING && NATREF_BLOCKS == NAT_RIG_BLOCKS, "one world");

struct client {
	uint8_t family, proto;
	uint8_t addr[16];
	uint16_t port;
};

static struct play {
	struct nat_rig *rig;
	struct natref model;
	struct mapping clock;
	struct client clients[CLIENTS];
	struct natref_answer recent[RECENT];
	uint8_t recent_family[RECENT], recent_proto[RECENT];
	uint8_t recent_vip[RECENT][16], recent_client[RECENT][16];
	uint16_t recent_vport[RECENT], recent_cport[RECENT];
	size_t n_recent;
	uint64_t random;
	uint64_t fates[NATREF_LEFT + 1];
	uint64_t packets;
	uint64_t errors;       // that were translated
	uint64_t swept, names; // places and names of blocks that walks have freed
	bool walks;            // in this history: its table has few connections
	struct nat_unused unused;
} all;

static uint64_t draw(uint64_t below)
{
	all.random ^= all.random << 13;
	all.random ^= all.random >> 7;
	all.random ^= all.random << 17;
	return (all.random >> 11) % below;
}

static void fail(const char *what)
{
	printf("FAIL packet %llu: %s\n0 passed, 1 failed\n", (unsigned long long)all.packets, what);
	exit(1);
}

// ---- the world ----------------------------------------------------------------------------------

static void address_of(uint8_t family, uint8_t kind, uint32_t number, uint8_t ret[16])
{
	memset(ret, 0, 16);
	if (family == 4) {
		ret[0] = 10;
		ret[1] = kind;
		ret[2] = (uint8_t)(number >> 8);
		ret[3] = (uint8_t)number;
		return;
	}
	ret[0] = 0xfd;
	ret[1] = kind;
	ret[13] = (uint8_t)(number >> 16);
	ret[14] = (uint8_t)(number >> 8);
	ret[15] = (uint8_t)number;
}

enum { KIND_VIP = 1, KIND_BACKEND, KIND_SOURCE, KIND_CLIENT };

// Two VIPs with one port, for clashes, in each mode and family; one of UDP.
static void make_ends(void)
{
	for (int n = 0; n < 12; n++) {
		struct natref_end e = {
			.family = n % 2 ? 6 : 4,
			.proto = n / 4 == 2 ? IPPROTO_UDP : IPPROTO_TCP,
			.fullnat = n / 2 % 2,
			.port = n / 4 == 2 ? 53 : 80,
		};

		address_of(e.family, KIND_VIP, (uint32_t)n, e.vip);
		all.model.ends[nat_rig_end(all.rig, e.family, e.vip, e.port, e.proto, e.fullnat)] =
			e;
	}
}

static void hop_of(uint32_t number, struct natref_hop *ret)
{
	*ret = (struct natref_hop){
		.mac = {2, 0, 0, 0, 1, (uint8_t)number},
		.own = {2, 0, 0, 0, 2, (uint8_t)(number % 3)},
		.vlan = number % 4 == 3 ? 7 : 0,
		.number = number % 5 == 4 ? NAT_RIG_OTHER : NAT_RIG_NUMBER,
	};
}

// 1 … 6 of IPv4, 11 … 16 of IPv6; the last one has no next hop.
static void make_backend(uint32_t id)
{
	struct natref_backend *b = &all.model.backends[id];
	struct backend row = {.mtu = 1400};

	b->family = id > 10 ? 6 : 4;
	address_of(b->family, KIND_BACKEND, id % 10 == 5 ? id - 1 : id, b->addr);
	b->port = id % 10 == 5 ? 8081 : id % 3 ? 0 : 8080;
	b->mtu = row.mtu;
	hop_of(id, &b->hop);
	if (id % 10 == 6)
		b->hop.number = 0;
	memcpy(row.mac, b->hop.mac, 6);
	memcpy(row.mac_own, b->hop.own, 6);
	row.vlan = b->hop.vlan;
	row.port = b->port;
	row.ifindex = b->hop.number == NAT_RIG_OTHER ? NAT_RIG_OUT
		      : b->hop.number                ? all.rig->ifindex
						     : 0;
	nat_rig_backend(all.rig, id, b->family, b->addr, &row);
}

// Few slots have a backend without a next hop, or none.
static void make_rings(uint64_t backends)
{
	for (uint32_t v6 = 0; v6 < 2; v6++)
		for (uint32_t s = 0; s < NAT_RIG_RING; s++) {
			uint64_t which = draw(200);
			uint16_t id =
				(uint16_t)(10 * v6 + (which < 198 ? 1 + which % backends : 6));

			all.model.ring[v6][s] = which == 199 ? 0 : id;
			all.rig->slots[v6 * NAT_RIG_RING + s] =
				slot_pack(all.model.ring[v6][s], 0, 0);
		}
}

static void set_cell(bool fullnat, uint32_t v6, uint32_t cell, const uint8_t *blocks, size_t n)
{
	uint64_t word = 0;

	for (size_t i = 0; i < NATREF_DEPTH; i++) {
		all.model.cells[fullnat][v6][cell][i] = i < n ? (uint8_t)(blocks[i] + 1) : 0;
		word |= (uint64_t)all.model.cells[fullnat][v6][cell][i] << 8 * i;
	}
	all.rig->nat->cell[fullnat][v6][cell] = word;
}

// nat has the blocks 0 and 3, fullnat 1 and 2: one is the newest in some cells, the other in the
// rest.
static void make_cells(void)
{
	static const uint8_t pairs[2][2][2] = {{{0, 3}, {3, 0}}, {{1, 2}, {2, 1}}};

	for (uint32_t v6 = 0; v6 < 2; v6++)
		for (uint32_t c = 0; c < NATREF_CELLS; c++)
			for (int fullnat = 0; fullnat < 2; fullnat++)
				set_cell(fullnat, v6, c, pairs[fullnat][draw(4) == 0], 1 + draw(2));
}

static void make_sources(void)
{
	for (uint32_t b = 1; b < 3; b++)
		for (uint32_t v6 = 0; v6 < 2; v6++) {
			uint8_t family = v6 ? 6 : 4;

			address_of(family, KIND_SOURCE, b, all.model.source[v6][b]);
			all.model.has_source[v6][b] = true;
			nat_rig_source(all.rig, family, b, all.model.source[v6][b]);
		}
}

static void make_clients(void)
{
	for (uint32_t c = 0; c < CLIENTS; c++) {
		struct client *client = &all.clients[c];

		client->family = draw(2) ? 6 : 4;
		client->proto = draw(4) ? IPPROTO_TCP : IPPROTO_UDP;
		client->port = (uint16_t)(1024 + draw(60000));
		address_of(client->family, KIND_CLIENT, (uint32_t)draw(500), client->addr);
	}
}

static uint64_t life_of(uint64_t seconds)
{
	uint64_t ticks = (seconds * HZ + (1 << SHIFT) - 1) >> SHIFT;

	return ticks + ticks / 7;
}

static void make_world(void)
{
	struct hash_key key;

	for (uint8_t i = 0; i < SIPHASH_KEY; i++)
		all.model.key[i] = i;
	memcpy(&key, all.model.key, sizeof(key));
	all.rig = nat_rig_new(&key, HZ);
	nat_rig_lives(all.rig, 30 * HZ, 300 * HZ, 60 * HZ, HZ);
	all.model.shift = SHIFT;
	all.model.opening = life_of(30);
	all.model.talks = life_of(300);
	all.model.closing = life_of(60);
	make_ends();
	for (uint32_t id = 1; id <= 6; id++) {
		make_backend(id);
		make_backend(id + 10);
	}
	make_sources();
}

static void open_clock(void)
{
	struct bpf_map *map = bpf_object__find_map_by_name(all.rig->skel->obj, "test_clock");
	struct err err = {0};

	if (!map || mapping_open(&all.clock, bpf_map__fd(map), sizeof(uint64_t), &err))
		fail("the programs have no clock of their own");
}

static void set_time(uint64_t jiffies)
{
	all.model.jiffies = jiffies;
	*(uint64_t *)all.clock.at = jiffies;
}

// ---- the table ----------------------------------------------------------------------------------

static uint16_t peer_number(const struct natref_hop *hop)
{
	struct nat_peer p = {.vlan = hop->vlan, .number = hop->number};

	memcpy(p.mac, hop->mac, 6);
	memcpy(p.mac_own, hop->own, 6);
	for (uint16_t n = 1; n < NAT_PEERS; n++)
		if (!memcmp(&all.rig->nat->peer[n], &p, sizeof(p)))
			return n;
	return 0;
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
	return word == wanted && (c->has_peer ? peer_number(&c->peer) : 0) == peer;
}

static bool same_place(uint8_t family, long place)
{
	const struct natref_conn *c = natref_at(&all.model, family, place);
	uint64_t word = *nat_rig_word(all.rig, family, (uint64_t)place);
	struct nat_key k = nat_rig_key(all.rig, family, (uint64_t)place);
	uint8_t client[16];

	if (!c->taken || !word)
		return !c->taken && !word;
	client_of(family, &k, client);
	return same_word(c, word) && !memcmp(client, c->client, family == 4 ? 4 : 16) &&
	       k.last >> NAT_END_SHIFT == c->end &&
	       ntohs((uint16_t)(k.last >> NAT_PORT_SHIFT)) == c->port;
}

static void compare_tables(void)
{
	for (uint8_t family = 4; family <= 6; family += 2)
		for (long at = 0; at < (long)NATREF_BLOCKS * NATREF_PLACES; at++)
			if (!same_place(family, at))
				fail("the tables differ");
}

// A connection of a client that sends nothing: only its place matters. lives: it does, else it may
// have any age and state.
static void fill_place(uint8_t family, long place, bool lives)
{
	struct natref_conn *c = natref_at(&all.model, family, place);
	struct nat_key k = {.last = (uint64_t)(1 + draw(3)) << NAT_END_SHIFT};
	uint64_t *word = nat_rig_word(all.rig, family, (uint64_t)place);

	memset(c, 0, sizeof(*c));
	c->taken = true;
	c->state = lives ? NATREF_TALKS : (enum natref_state)draw(4);
	c->time = ((all.model.jiffies >> SHIFT) - draw(lives ? 10 : 500)) & NAT_TIME;
	c->backend = (uint16_t)(family == 4 ? 1 : 11);
	c->end = (uint16_t)(k.last >> NAT_END_SHIFT);
	*word = nat_pack((uint64_t)c->state, c->time, c->backend, 0);
	nat_rig_set_key(all.rig, family, (uint64_t)place, &k);
}

// An empty table, one that is nearly full of connections of any age, or of ones that live; with
// several backends, or one.
static void begin_history(void)
{
	uint64_t kind = draw(3), parts = kind ? 85 + draw(16) : 0;

	make_rings(draw(3) ? 5 : 1);
	make_cells();
	make_clients();
	all.n_recent = 0;
	all.walks = !parts;
	for (uint8_t family = 4; family <= 6; family += 2)
		for (long at = 0; at < (long)NATREF_BLOCKS * NATREF_PLACES; at++) {
			memset(natref_at(&all.model, family, at), 0, sizeof(struct natref_conn));
			*nat_rig_word(all.rig, family, (uint64_t)at) = 0;
			if (at % NATREF_PLACES >= NAT_RESERVED && draw(100) < parts)
				fill_place(family, at, kind == 2);
		}
}

// ---- packets ------------------------------------------------------------------------------------

static void put16(uint8_t *at, uint64_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static uint8_t draw_flags(bool answer)
{
	static const uint8_t client[] = {2, 2, 2, 0xc2, 16, 16, 16, 24, 17, 4, 20, 18};
	static const uint8_t backend[] = {18, 18, 16, 16, 24, 17, 4, 20, 2};

	return answer ? backend[draw(sizeof(backend))] : client[draw(sizeof(client))];
}

// IP and transport with `payload` bytes; names and sums are written later.
static size_t put_packet(uint8_t *ip, uint8_t family, uint8_t proto, uint8_t flags, size_t payload)
{
	size_t l4 = proto == IPPROTO_TCP ? 20 : 8, header = family == 4 ? 20 : 40;
	uint8_t *at = ip + header;

	if (family == 4) {
		ip[0] = 0x45;
		put16(ip + 2, header + l4 + payload);
		put16(ip + 6, 0x4000);
		ip[8] = draw(200) ? 65 : 2;
		ip[9] = proto;
	} else {
		ip[0] = 0x60;
		put16(ip + 4, l4 + payload);
		ip[6] = proto;
		ip[7] = draw(200) ? 65 : 2;
	}
	if (proto == IPPROTO_TCP) {
		at[12] = 0x50;
		at[13] = flags;
	} else {
		put16(at + 4, l4 + payload);
		put16(at + 6, draw(5) ? 1 : 0); // 0: without a checksum
	}
	for (size_t i = 0; i < payload; i++)
		at[l4 + i] = (uint8_t)draw(256);
	return header + l4 + payload;
}

// The frame of a packet with these names from this neighbour; its length.
static size_t make_frame(uint8_t family, uint8_t proto, bool answer, struct natref_answer *names,
			 uint8_t out[NATREF_FRAME])
{
	static uint8_t raw[NATREF_FRAME];
	size_t payload = draw(50) ? draw(100) : draw(1450), len;

	memset(raw, 0, sizeof(raw));
	put16(raw + 12, family == 4 ? 0x0800 : 0x86dd);
	len = 14 + put_packet(raw + 14, family, proto, draw_flags(answer), payload);
	hop_of((uint32_t)draw(8), &names->to);
	len = natref_write(raw, len, names, out);
	if (!draw(100))
		len += draw(20); // padding, or more
	return len;
}

static size_t make_forward(uint8_t out[NATREF_FRAME])
{
	const struct client *c = &all.clients[draw(draw(3) ? CLIENTS / 30 : CLIENTS)];
	struct natref_answer names = {.sport = c->port};
	const struct natref_end *e;

	do
		e = &all.model.ends[1 + draw(12)];
	while (e->family != c->family || e->proto != c->proto);
	memcpy(names.src, c->addr, 16);
	memcpy(names.dst, e->vip, 16);
	names.dport = draw(100) ? e->port : 81;
	return make_frame(c->family, c->proto, false, &names, out);
}

// Some answers are from a port that has not been asked.
static size_t make_answer(uint8_t out[NATREF_FRAME])
{
	size_t n = draw(all.n_recent < RECENT ? all.n_recent : RECENT);
	const struct natref_answer *asked = &all.recent[n];
	struct natref_answer names = {.sport = asked->dport, .dport = asked->sport};

	memcpy(names.src, asked->dst, 16);
	memcpy(names.dst, asked->src, 16);
	if (!draw(30))
		names.sport ^= 1;
	if (!draw(30))
		names.dport ^= 1;
	return make_frame(all.recent_family[n], all.recent_proto[n], true, &names, out);
}

// An ICMP error that quotes a packet, as whoever received it would send it to its sender.
static size_t make_error(const struct natref_answer *about, uint8_t family, uint8_t proto,
			 uint8_t out[NATREF_FRAME])
{
	static const uint8_t types[2][3] = {{3, 11, 12}, {1, 2, 3}};
	static uint8_t raw[NATREF_FRAME], quoted[NATREF_FRAME];
	size_t header = family == 4 ? 20 : 40, quote = header + 8 + draw(2) * draw(40);
	struct natref_answer names = *about, error = *about;
	size_t len;

	make_frame(family, proto, false, &names, quoted);
	memset(raw, 0, sizeof(raw));
	put16(raw + 12, family == 4 ? 0x0800 : 0x86dd);
	len = 14 + put_packet(raw + 14, family, IPPROTO_UDP, 0, quote);
	raw[14 + (family == 4 ? 9 : 6)] = family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	memset(raw + 14 + header, 0, 8);
	raw[14 + header] = draw(30) ? types[family == 6][draw(3)] : 8;
	memcpy(raw + 14 + header + 8, quoted + (quoted[12] == 0x81 ? 18 : 14), quote);
	memcpy(error.src, draw(2) ? about->dst : all.clients[0].addr, 16);
	memcpy(error.dst, about->src, 16);
	error.quote = (struct natref_quote){.sport = about->sport, .dport = about->dport};
	memcpy(error.quote.src, about->src, 16);
	memcpy(error.quote.dst, about->dst, 16);
	hop_of((uint32_t)draw(8), &error.to);
	return natref_write(raw, len, &error, out);
}

// About a packet that went to a backend (back) or to a client.
static size_t make_error_of_recent(bool back, uint8_t out[NATREF_FRAME])
{
	size_t n = draw(all.n_recent < RECENT ? all.n_recent : RECENT);
	struct natref_answer about = all.recent[n];

	if (!back) {
		memcpy(about.src, all.recent_vip[n], 16);
		memcpy(about.dst, all.recent_client[n], 16);
		about.sport = all.recent_vport[n];
		about.dport = all.recent_cport[n];
	}
	if (!draw(20))
		about.dport ^= 1;
	return make_error(&about, all.recent_family[n], all.recent_proto[n], out);
}

static void note_sent(const struct natref_packet *p, const struct natref_answer *a)
{
	size_t n = all.n_recent++ % RECENT;

	all.recent[n] = *a;
	all.recent_family[n] = p->family;
	all.recent_proto[n] = p->proto;
	memcpy(all.recent_vip[n], p->dst, 16);
	memcpy(all.recent_client[n], p->src, 16);
	all.recent_vport[n] = p->dport;
	all.recent_cport[n] = p->sport;
}

// By fate. A packet that is left meets no program in the rig.
static const enum weir_reason reasons[] = {
	[NATREF_SENT] = REASON_PASS_SERVICE,
	[NATREF_ANSWERED] = REASON_PASS_ANSWER_NAT,
	[NATREF_NO_PEER] = REASON_DROP_NAT_NO_PEER,
	[NATREF_FULL] = REASON_DROP_NAT_FULL,
	[NATREF_BUSY] = REASON_DROP_NAT_BUSY,
	[NATREF_CLASH] = REASON_DROP_NAT_CLASH,
	[NATREF_UNKNOWN] = REASON_DROP_NAT_UNKNOWN,
	[NATREF_NO_BACKEND] = REASON_DROP_NO_BACKEND,
	[NATREF_NO_NEXT_HOP] = REASON_DROP_NO_NEXT_HOP,
	[NATREF_FAILED] = REASON_DROP_FORWARD,
	[NATREF_LEFT] = REASON_DROP_PROGRAM,
};

static void compare_frame(const struct natref_answer *a, const uint8_t *frame, size_t len,
			  uint32_t verdict, const uint8_t *out, size_t out_len)
{
	static uint8_t wanted[NATREF_FRAME];
	size_t wanted_len;

	if (a->fate != NATREF_SENT && a->fate != NATREF_ANSWERED) {
		if (verdict != XDP_DROP)
			fail("a packet was sent that the model drops or leaves");
		return;
	}
	wanted_len = natref_write(frame, len, a, wanted);
	if (verdict != (a->to.number == NAT_RIG_OTHER ? XDP_REDIRECT : XDP_TX))
		fail("the verdict differs");
	if (wanted_len != out_len || memcmp(wanted, out, out_len) != 0)
		fail("the frame differs");
}

static void play_packet(void)
{
	static uint8_t frame[NATREF_FRAME], out[NATREF_FRAME];
	bool answer = all.n_recent && draw(2);
	bool error = all.n_recent && !draw(10);
	size_t len = error    ? make_error_of_recent(answer, frame)
		     : answer ? make_answer(frame)
			      : make_forward(frame);
	size_t out_len = sizeof(out);
	struct natref_answer a = {.fate = NATREF_LEFT, .place = -1};
	struct natref_packet p = {0};
	uint32_t verdict;

	if (natref_read(frame, len, NAT_RIG_NUMBER, &p))
		a = natref_packet(&all.model, &p, answer);
	verdict = nat_rig_send(all.rig, answer, frame, len, out, &out_len);
	all.packets++;
	all.fates[a.fate]++;
	compare_frame(&a, frame, len, verdict, out, out_len);
	if (a.place >= 0 && !same_place(p.family, a.place))
		fail("place or state differ");
	if (a.fate == NATREF_SENT && !p.error)
		note_sent(&p, &a);
	all.errors += p.error && (a.fate == NATREF_SENT || a.fate == NATREF_ANSWERED);
}

static void compare_counts(void)
{
	uint64_t now[WEIR_REASON_COUNT];

	nat_rig_counts(all.rig, now);
	for (size_t f = 0; f <= NATREF_LEFT; f++)
		if (now[reasons[f]] != all.fates[f])
			fail("a reason differs");
}

static void compare_cells(void)
{
	for (int mode = 0; mode < 2; mode++)
		for (int v6 = 0; v6 < 2; v6++)
			for (int c = 0; c < NATREF_CELLS; c++) {
				uint64_t word = 0;

				for (int d = 0; d < NATREF_DEPTH; d++)
					word |= (uint64_t)all.model.cells[mode][v6][c][d] << 8 * d;
				if (word != all.rig->nat->cell[mode][v6][c])
					fail("the cells differ");
			}
}

// A walk, as control makes once a minute, and the model's.
static void compare_walk(void)
{
	static struct nat_census census;
	struct natref_rest rest = natref_walk(&all.model);

	nat_walk(&all.rig->tables, all.model.jiffies >> SHIFT, &all.unused, &census);
	if (census.living != rest.living || census.opening != rest.opening ||
	    census.expired != rest.expired)
		fail("the census differs");
	all.swept += census.expired;
	all.names += census.names;
	compare_cells();
	compare_tables();
}

static uint64_t draw_pause(void)
{
	uint64_t kind = draw(1000);

	return kind < 990   ? draw(60)
	       : kind < 997 ? draw(8 * HZ)
			    : draw(kind < 999 ? 80 * HZ : 500 * HZ);
}

static void print_fates(void)
{
	printf("errors %llu\n", (unsigned long long)all.errors);
	for (size_t f = 0; f < NATREF_LEFT; f++)
		printf("%s %llu\n", reason_name(reasons[f]), (unsigned long long)all.fates[f]);
	printf("left %llu\n", (unsigned long long)all.fates[NATREF_LEFT]);
}

// Each of these must have happened: a history without them proves little.
static void check_complete(void)
{
	static const enum natref_fate needed[] = {
		NATREF_SENT,    NATREF_ANSWERED,   NATREF_CLASH,       NATREF_FULL,
		NATREF_UNKNOWN, NATREF_NO_BACKEND, NATREF_NO_NEXT_HOP, NATREF_LEFT};

	for (size_t n = 0; n < sizeof(needed) / sizeof(needed[0]); n++)
		if (!all.fates[needed[n]])
			fail("a fate has not occurred");
	if (!all.swept || !all.names)
		fail("no walk has freed anything");
}

int main(int argc, char **argv)
{
	uint32_t packets = PACKETS, seed = 1;
	uint64_t now = 1000 * HZ;

	if ((argc > 1 && num_parse_u32(argv[1], strlen(argv[1]), 1, UINT32_MAX, &packets)) ||
	    (argc > 2 && num_parse_u32(argv[2], strlen(argv[2]), 1, UINT32_MAX, &seed)) ||
	    argc > 3) {
		fprintf(stderr, "usage: nats [PACKETS [SEED]]\n");
		return 2;
	}
	all.random = 0x9e3779b97f4a7c15ull * seed;
	natref_init(&all.model);
	make_world();
	open_clock();
	while (all.packets < packets) {
		if (all.packets % HISTORY == 0)
			begin_history();
		set_time(now += draw_pause());
		play_packet();
		if (all.packets % COUNTED == 0)
			compare_counts();
		if (all.packets % WALKED == 0 && all.walks)
			compare_walk();
		if (all.packets % HISTORY == 0)
			compare_tables();
	}
	print_fates();
	printf("swept %llu\nnames %llu\n", (unsigned long long)all.swept,
	       (unsigned long long)all.names);
	check_complete();
	nat_rig_free(all.rig);
	natref_free(&all.model);
	printf("%u passed, 0 failed\n", packets);
	return 0;
}
