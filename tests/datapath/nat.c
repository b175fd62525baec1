// SPDX-License-Identifier: GPL-2.0-only
// Many connections of nat and fullnat: floods, a source that is full, and two CPUs that want one
// place.
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/num.h"
#include "tests/datapath/nat_world.h"
#include "tests/datapath/suite.h"

#define SYN       0x02
#define ACK       0x10
#define OPEN      500
#define FLOOD     200000
#define CLAIMANTS 2
#define CLAIMS    5 // by each in a round: all in the first group, which has NAT_ENOUGH
#define ROUNDS    20000

// The output frame, or NULL unless it is sent back on the interface.
static const uint8_t *translate(const struct nat_rig *r, const struct nat_names_of_frame *n,
				uint8_t flags, uint8_t *out)
{
	uint8_t frame[NAT_WORLD_FRAME];
	size_t len = nat_world_frame(n, flags, frame), out_len = sizeof(frame);

	return nat_rig_send(r, frame, len, out, &out_len) == XDP_TX && out_len == len ? out : NULL;
}

// ---- floods -------------------------------------------------------------------------------------

static struct nat_names_of_frame client_of(uint8_t kind, size_t number)
{
	struct nat_names_of_frame n = nat_world_names(4, CLIENT, VIP_FULLNAT);

	n.src[1] = kind;
	n.src[2] = (uint8_t)(number >> 8);
	n.src[3] = (uint8_t)number;
	n.sport = (uint16_t)(1024 + (number >> 16));
	return n;
}

// The source port of a packet on its way to the backend, which is its place; 0: not sent.
static uint16_t place_of(const struct nat_rig *r, uint8_t kind, size_t number, uint8_t flags)
{
	struct nat_names_of_frame n = client_of(kind, number);
	uint8_t out[NAT_WORLD_FRAME];

	return translate(r, &n, flags, out) ? nat_world_read(out).sport : 0;
}

// More SYNs than a block has places, from as many clients: connections that talk keep their places,
// and a client that answers at once connects.
static void test_flood(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);
	static uint16_t places[OPEN];
	uint64_t counts[WEIR_REASON_COUNT];
	size_t moved = 0, late = 0;

	for (size_t c = 0; c < OPEN; c++) {
		places[c] = place_of(r, 1, c, SYN);
		place_of(r, 1, c, ACK);
	}
	for (size_t c = 0; c < suite_repeats(FLOOD); c++)
		place_of(r, 2, c, SYN);
	for (size_t c = 0; c < OPEN; c++)
		moved += !places[c] || place_of(r, 1, c, ACK) != places[c];
	for (size_t c = 0; c < OPEN; c++)
		late += !place_of(r, 3, c, SYN) || !place_of(r, 3, c, ACK);
	CHECK(t, !moved, "%zu of %d open connections were cut", moved, OPEN);
	nat_rig_counts(r, counts);
	CHECK(t, !counts[REASON_DROP_NAT_FULL] && !counts[REASON_DROP_NAT_BUSY],
	      "a SYN found no place");
	CHECK(t, !late, "%zu of %d clients did not connect", late, OPEN);
	nat_rig_free(r);
}

// ---- fullness -----------------------------------------------------------------------------------

#define FULL_EXTRA 12000

// The answer arrives at the client.
static bool is_answered(const struct nat_rig *r, size_t number, uint16_t place)
{
	struct nat_names_of_frame client = client_of(1, number);
	struct nat_names_of_frame n = nat_world_names(4, BACKEND, SOURCE), got;
	uint8_t out[NAT_WORLD_FRAME];

	n.sport = NAT_WORLD_PORT;
	n.dport = place;
	if (!translate(r, &n, ACK, out))
		return false;
	got = nat_world_read(out);
	return !memcmp(got.dst, client.src, 4) && got.dport == client.sport;
}

// Opens connections first … n - 1, and lets them talk: how many found no place.
static size_t open_all(const struct nat_rig *r, uint16_t *places, size_t first, size_t n)
{
	size_t refused = 0;

	for (size_t c = first; c < n; c++) {
		places[c] = place_of(r, 1, c, SYN);
		refused += !places[c];
		if (places[c])
			place_of(r, 1, c, ACK);
	}
	return refused;
}

// One source has room for as many as it is planned for. Those after them are refused, and none is
// cut.
static void test_fullness(struct test *t)
{
	static uint16_t places[NAT_BLOCK_ROOM + FULL_EXTRA];
	struct nat_rig *r = nat_world_new(false);
	size_t refused = open_all(r, places, 0, NAT_BLOCK_ROOM), wrong = 0, n;
	uint64_t counts[WEIR_REASON_COUNT];

	CHECK(t, !refused, "%zu of %d connections were refused", refused, NAT_BLOCK_ROOM);
	n = NAT_BLOCK_ROOM + FULL_EXTRA;
	refused = open_all(r, places, NAT_BLOCK_ROOM, n);
	nat_rig_counts(r, counts);
	CHECK(t, refused && counts[REASON_DROP_NAT_FULL] == refused, "%zu refused, %llu full",
	      refused, (unsigned long long)counts[REASON_DROP_NAT_FULL]);
	for (size_t c = 0; c < n; c++)
		wrong += places[c] && !is_answered(r, c, places[c]);
	CHECK(t, !wrong, "%zu connections were cut", wrong);
	nat_rig_free(r);
}

// ---- two CPUs -----------------------------------------------------------------------------------

static struct race {
	struct nat_rig *rig;
	struct nat_names_of_frame client[CLAIMANTS * CLAIMS]; // all in one group
	uint16_t place[CLAIMANTS * CLAIMS]; // that each got in this round; 0: none
	pthread_barrier_t begin, end;
	size_t rounds;
	uint32_t block;
	uint64_t begun; // ticks
} race;

static uint64_t group_of(const struct nat_names_of_frame *n)
{
	uint32_t client;

	memcpy(&client, n->src, sizeof(client));
	return nat_group(
		4, race.block,
		(uint32_t)nat_hash4(&race.rig->nat->key, client, htons(n->sport), IPPROTO_TCP));
}

static void find_clients(void)
{
	struct nat_names_of_frame n = nat_world_names(4, CLIENT, VIP_FULLNAT);
	size_t found = 0;

	for (uint32_t i = 0; found < CLAIMANTS * CLAIMS; i++) {
		n.src[1] = (uint8_t)(i >> 16);
		n.src[2] = (uint8_t)(i >> 8);
		n.sport = (uint16_t)(1024 + (i & 0xff));
		if (!found || group_of(&n) == group_of(&race.client[0]))
			race.client[found++] = n;
	}
}

// The time of a connection that begins now.
static uint64_t read_time(void)
{
	uint8_t out[NAT_WORLD_FRAME];
	uint64_t place = (uint64_t)race.block * NAT_PLACES;

	if (translate(race.rig, &race.client[0], 0x02, out))
		place += nat_world_read(out).sport;
	return *nat_rig_word(race.rig, 4, place) & NAT_TIME;
}

static void *claim(void *first)
{
	size_t begin = (size_t)(uintptr_t)first * CLAIMS;
	uint8_t out[NAT_WORLD_FRAME];
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET((size_t)(uintptr_t)first, &cpu);
	pthread_setaffinity_np(pthread_self(), sizeof(cpu), &cpu);
	for (size_t round = 0; round < race.rounds; round++) {
		pthread_barrier_wait(&race.begin);
		for (size_t c = begin; c < begin + CLAIMS; c++)
			race.place[c] = translate(race.rig, &race.client[c], 0x02, out)
						? nat_world_read(out).sport
						: 0;
		pthread_barrier_wait(&race.end);
	}
	return NULL;
}

// Free places, or places of connections that have expired.
static void clear_group(size_t round)
{
	uint64_t first = group_of(&race.client[0]) * NAT_BUCKET4;

	for (uint64_t at = first; at < first + NAT_GROUP; at++)
		*nat_rig_word(race.rig, 4, at) =
			round % 2 ? nat_pack(NAT_TALKS, race.begun - 2000, 1, 0) : 0;
}

// How many connections of the round share a place, or are not the ones that their place has. A
// connection whose places others took may have none.
static size_t count_wrong(void)
{
	size_t wrong = 0;

	for (size_t a = 0; a < CLAIMANTS * CLAIMS; a++) {
		uint64_t place = (uint64_t)race.block * NAT_PLACES + race.place[a];
		uint64_t last = nat_rig_key(race.rig, 4, place).last;
		bool other = htons(race.client[a].sport) != (uint16_t)(last >> NAT_PORT_SHIFT);

		if (!race.place[a])
			continue;
		for (size_t b = 0; b < a; b++)
			other |= race.place[a] == race.place[b];
		wrong += other;
	}
	return wrong;
}

static size_t count_none(void)
{
	size_t none = 0;

	for (size_t a = 0; a < CLAIMANTS * CLAIMS; a++)
		none += !race.place[a];
	return none;
}

static size_t rounds_wanted(void)
{
	const char *text = getenv("WEIR_NAT_CLAIMS");
	uint32_t claims;

	if (text && !num_parse_u32(text, strlen(text), 1, UINT32_MAX, &claims))
		return claims / (CLAIMANTS * CLAIMS) + 1;
	return suite_repeats(ROUNDS);
}

static void test_two_cpus(struct test *t)
{
	uint64_t counts[WEIR_REASON_COUNT];
	pthread_t threads[CLAIMANTS];
	size_t wrong = 0, none = 0;

	race = (struct race){.rig = nat_world_new(false), .rounds = rounds_wanted()};
	race.block = nat_rig_block(race.rig, 4, true);
	find_clients();
	race.begun = read_time();
	pthread_barrier_init(&race.begin, NULL, CLAIMANTS + 1);
	pthread_barrier_init(&race.end, NULL, CLAIMANTS + 1);
	for (uintptr_t c = 0; c < CLAIMANTS; c++)
		pthread_create(&threads[c], NULL, claim, (void *)c);
	for (size_t round = 0; round < race.rounds; round++) {
		clear_group(round);
		pthread_barrier_wait(&race.begin);
		pthread_barrier_wait(&race.end);
		wrong += count_wrong();
		none += count_none();
	}
	for (size_t c = 0; c < CLAIMANTS; c++)
		pthread_join(threads[c], NULL);
	CHECK(t, !wrong, "%zu of %zu connections have no place of their own", wrong,
	      race.rounds * CLAIMANTS * CLAIMS);
	nat_rig_counts(race.rig, counts);
	CHECK(t, none == counts[REASON_DROP_NAT_BUSY] && none <= race.rounds / 100, "%zu have none",
	      none);
	nat_rig_free(race.rig);
}

const struct named_test nat_tests[] = {
	{"nat: a flood of SYNs", test_flood},
	{"nat: a source that is full", test_fullness},
	{"nat: no place twice from two CPUs", test_two_cpus},
	{0},
};
