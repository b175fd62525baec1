// SPDX-License-Identifier: GPL-2.0-only
// The rules of nat and fullnat, case by case, on the model by itself.
//
// usage: refnat --selftest
#include <stdio.h>
#include <string.h>

#include "nat_model.h"

#define TCP    6
#define UDP    17
#define SYN    0x02
#define ACK    0x10
#define FIN    0x11
#define RST    0x04
#define SECOND 1000u /* jiffies */

static unsigned int passed, failed;

static void expect(bool holds, const char *what)
{
	if (!holds)
		printf("FAIL %s\n", what);
	*(holds ? &passed : &failed) += 1;
}

/* Two VIPs of nat and one of fullnat on port 80, two backends, a block for each mode. */
static void world(struct natref *n)
{
	natref_init(n);
	n->shift = 10;
	n->opening = 34;
	n->talks = 335;
	n->closing = 67;
	n->second = SECOND;
	n->jiffies = 100000 * SECOND;
	n->resets_from = UINT64_MAX;
	for (uint16_t e = 1; e <= 3; e++) {
		n->ends[e] = (struct natref_end){.family = 4, .proto = TCP, .port = 80};
		n->ends[e].fullnat = e == 3;
		n->ends[e].vip[3] = (uint8_t)e;
		n->ends[e].vip[0] = 192;
	}
	n->ends[4] =
		(struct natref_end){.family = 4, .proto = UDP, .port = 53, .vip = {192, 0, 0, 1}};
	for (uint16_t b = 1; b <= 2; b++)
		n->backends[b] = (struct natref_backend){.family = 4,
							 .addr = {10, 0, 0, (uint8_t)b},
							 .mtu = 1500,
							 .hop = {.number = 1}};
	for (int c = 0; c < NATREF_CELLS; c++) {
		n->cells[false][0][c][0] = 1;
		n->cells[true][0][c][0] = 2;
	}
	n->has_source[0][1] = true;
	memcpy(n->source[0][1], (uint8_t[]){198, 51, 100, 1}, 4);
	for (int s = 0; s < NATREF_RING; s++)
		n->ring[0][s] = (uint16_t)(1 + s % 2);
}

static struct natref_packet packet(uint8_t client, uint16_t port, uint8_t vip, uint8_t flags)
{
	return (struct natref_packet){
		.family = 4,
		.proto = TCP,
		.flags = flags,
		.src = {203, 0, 113, client},
		.dst = {192, 0, 0, vip},
		.sport = port,
		.dport = 80,
		.hops = 64,
		.length = 40,
		.from = {.mac = {2}, .number = 1},
	};
}

/* The answer of the backend to a packet as it was sent. */
static struct natref_packet answer(const struct natref_answer *a, uint8_t flags)
{
	struct natref_packet p = {
		.family = 4, .proto = TCP, .flags = flags, .hops = 64, .length = 40};

	memcpy(p.src, a->dst, 16);
	memcpy(p.dst, a->src, 16);
	p.sport = a->dport;
	p.dport = a->sport;
	return p;
}

static struct natref_answer from_client(struct natref *n, struct natref_packet p)
{
	return natref_packet(n, &p);
}

static void wait_s(struct natref *n, unsigned int seconds)
{
	n->jiffies += (uint64_t)seconds * SECOND;
}

static enum natref_state state(const struct natref *n, const struct natref_answer *a)
{
	return natref_at(n, 4, a->place)->state;
}

static void test_names(struct natref *n)
{
	struct natref_answer nat = from_client(n, packet(1, 5000, 1, SYN));
	struct natref_answer full = from_client(n, packet(1, 5000, 3, SYN));
	struct natref_packet p = answer(&full, SYN | ACK);
	struct natref_answer back = natref_packet(n, &p);

	expect(nat.fate == NATREF_SENT && nat.src[0] == 203 && nat.sport == 5000,
	       "nat: the client");
	expect(nat.dst[0] == 10 && nat.dport == 80, "nat: the backend");
	expect(full.src[0] == 198 && full.sport == full.place % NATREF_PLACES,
	       "fullnat: the place");
	expect(full.sport >= 1024, "fullnat: no reserved port");
	expect(back.fate == NATREF_ANSWERED && back.src[3] == 3 && back.sport == 80,
	       "back: the VIP");
	expect(back.dst[3] == 1 && back.dport == 5000, "back: the client");
	p = answer(&nat, SYN | ACK);
	back = natref_packet(n, &p);
	expect(back.fate == NATREF_ANSWERED && back.src[3] == 1 && back.dst[3] == 1, "nat: back");
	p.sport++;
	expect(natref_packet(n, &p).fate == NATREF_LEFT, "an answer from another port");
}

static void test_states(struct natref *n)
{
	struct natref_answer a = from_client(n, packet(2, 5000, 1, SYN));
	struct natref_packet fin = answer(&a, FIN);

	expect(state(n, &a) == NATREF_OPENING, "a SYN opens");
	natref_packet(n, &(struct natref_packet){0});
	from_client(n, packet(2, 5000, 1, ACK));
	expect(state(n, &a) == NATREF_TALKS, "an ACK of the client talks");
	natref_packet(n, &fin);
	natref_packet(n, &fin);
	expect(state(n, &a) == NATREF_CLOSING, "a repeated FIN closes one side");
	from_client(n, packet(2, 5000, 1, FIN));
	expect(state(n, &a) == NATREF_CLOSED, "both sides have closed");
	expect(from_client(n, packet(2, 5000, 1, SYN)).place == a.place, "a SYN reuses the place");
	expect(state(n, &a) == NATREF_OPENING, "and opens");
	expect(from_client(n, packet(2, 5001, 1, ACK)).fate == NATREF_UNKNOWN,
	       "an ACK opens nothing");
	expect(from_client(n, packet(2, 5001, 9, SYN)).fate == NATREF_LEFT, "no VIP");
}

static void test_clash(struct natref *n)
{
	struct natref_answer a = from_client(n, packet(3, 5000, 1, SYN));
	struct natref_answer b = from_client(n, packet(3, 5000, 2, SYN));
	struct natref_answer again = from_client(n, packet(3, 5000, 1, ACK));

	expect(a.dst[3] != b.dst[3], "two VIPs, two backends");
	expect(again.dst[3] == a.dst[3], "each its own");
	for (int s = 0; s < NATREF_RING; s++)
		n->ring[0][s] = 1;
	from_client(n, packet(4, 5000, 1, SYN));
	expect(from_client(n, packet(4, 5000, 2, SYN)).fate == NATREF_CLASH, "no other backend");
	expect(from_client(n, packet(4, 5000, 3, SYN)).fate == NATREF_SENT,
	       "fullnat never clashes");
}

/* Connections of one client until the first is refused. */
static unsigned int fill(struct natref *n, uint8_t flags)
{
	for (unsigned int c = 0;; c++) {
		struct natref_packet p =
			packet((uint8_t)(5 + c / 60000), (uint16_t)(c % 60000), 3, SYN);

		if (from_client(n, p).fate == NATREF_FULL)
			return c;
		p.flags = flags;
		from_client(n, p);
		if (c > 2 * NATREF_PLACES)
			return c;
	}
}

static void test_fullness(struct natref *n)
{
	unsigned int count = fill(n, ACK);

	expect(count > 53000 && count < NATREF_PLACES - 1024, "a block takes 53,000 connections");
	wait_s(n, 400);
	expect(from_client(n, packet(200, 1, 3, SYN)).fate == NATREF_SENT,
	       "an expired place is taken");
}

static void test_half_open(struct natref *n)
{
	expect(fill(n, SYN) > 2 * NATREF_PLACES, "connections that are opening give way");
}

static void test_udp(struct natref *n)
{
	struct natref_packet p = packet(7, 5000, 1, 0), back;
	struct natref_answer a;

	p.proto = UDP;
	p.dport = 53;
	a = from_client(n, p);
	expect(a.fate == NATREF_SENT && state(n, &a) == NATREF_OPENING, "any packet of UDP opens");
	back = answer(&a, 0);
	back.proto = UDP;
	natref_packet(n, &back);
	expect(state(n, &a) == NATREF_CLOSING, "an answer makes it known");
	wait_s(n, 30);
	from_client(n, p);
	wait_s(n, 45);
	expect(natref_packet(n, &back).fate == NATREF_ANSWERED, "a packet keeps it open");
	wait_s(n, 80);
	from_client(n, p);
	expect(state(n, &a) == NATREF_OPENING, "one that has ended begins again");
}

static void test_peer(struct natref *n)
{
	struct natref_answer a = from_client(n, packet(8, 5000, 1, SYN));
	struct natref_packet p = packet(8, 5000, 1, SYN), back = answer(&a, ACK);

	p.from.mac[0] = 3;
	from_client(n, p);
	expect(natref_packet(n, &back).to.mac[0] == 3, "a SYN that is repeated names the way back");
	p.flags = ACK;
	from_client(n, p);
	p.flags = SYN;
	p.from.mac[0] = 4;
	from_client(n, p);
	expect(natref_packet(n, &back).to.mac[0] == 3, "a later SYN does not move it");
	p.flags = ACK;
	from_client(n, p);
	expect(natref_packet(n, &back).to.mac[0] == 4, "a packet of the connection does");
}

static void test_fragments(struct natref *n)
{
	struct natref_packet first = packet(9, 5000, 3, SYN), later;
	struct natref_answer a;

	first.id = 77;
	first.part = NATREF_FIRST;
	later = first;
	later.part = NATREF_LATER;
	later.sport = later.dport = later.flags = 0;
	expect(from_client(n, later).fate == NATREF_FRAGMENT, "a fragment before its first one");
	a = from_client(n, first);
	expect(from_client(n, later).place == a.place, "a fragment after its first one");
	later.id++;
	expect(from_client(n, later).fate == NATREF_FRAGMENT, "a fragment of another packet");
	later.id--;
	wait_s(n, 6);
	expect(from_client(n, later).fate == NATREF_FRAGMENT, "a fragment that comes too late");
}

static void test_replies(struct natref *n)
{
	struct natref_packet p = packet(10, 5000, 3, ACK);

	expect(from_client(n, p).fate == NATREF_UNKNOWN, "no reset yet");
	n->resets_from = n->jiffies;
	expect(from_client(n, p).fate == NATREF_RESET, "a reset");
	p.flags = RST;
	expect(from_client(n, p).fate == NATREF_UNKNOWN, "no reset about a reset");
	p.flags = SYN;
	p.length = 1501;
	expect(from_client(n, p).fate == NATREF_TOO_BIG, "too big");
	p.length = 40;
	p.hops = 1;
	expect(from_client(n, p).fate == NATREF_EXPIRED, "no hop left");
}

int main(int argc, char **argv)
{
	static void (*const tests[])(struct natref * n) = {
		test_names, test_states, test_clash,     test_fullness, test_half_open,
		test_udp,   test_peer,   test_fragments, test_replies};
	static struct natref n;

	if (argc != 2 || strcmp(argv[1], "--selftest")) {
		fputs("usage: refnat --selftest\n", stderr);
		return 2;
	}
	for (size_t t = 0; t < sizeof(tests) / sizeof(tests[0]); t++) {
		world(&n);
		tests[t](&n);
		natref_free(&n);
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}
