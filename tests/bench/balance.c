// SPDX-License-Identifier: GPL-2.0-only
// Rows "balance": packets of a service to its backends. Net of a program that restores the frame,
// moves its head by the same amount and sends it back.
#include "tests/bench/balance.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "tests/bench/policy.h"

#define PINS    (4 * BENCH_SOURCES)
#define SPOOFED 24 // bits of the sources of the flood
#define IP4     BALANCE_IP4
#define IP6     BALANCE_IP6
#define UDP     BALANCE_UDP

static const struct balance_case cases[] = {
	{{.id = "balance-ipip-stable",
	  .what = "a service, ipip, stable ring, one flow",
	  .reach = {{2.0, {"floor-ipip"}}}},
	 .mode = "ipip",
	 .grow = IP4,
	 .traffic = ONE},
	{{.id = "balance-ipip-stable-flows",
	  .what = "a service, ipip, stable ring, 524,288 flows",
	  .reach = {{1.8, {"floor-ipip"}}}},
	 .mode = "ipip",
	 .grow = IP4,
	 .traffic = MANY},
	{{.id = "balance-ipip-changing",
	  .what = "a service, ipip, every slot in transition, one pinned flow",
	  .reach = {{1.4, {"balance-ipip-stable"}}}},
	 .mode = "ipip",
	 .grow = IP4,
	 .changing = true,
	 .traffic = ONE},
	{{.id = "balance-ipip-changing-flows",
	  .what = "a service, ipip, every slot in transition, 524,288 pinned flows",
	  .reach = {{1.3, {"pins-read", "balance-ipip-stable"}}}},
	 .mode = "ipip",
	 .grow = IP4,
	 .changing = true,
	 .traffic = MANY},
	{{.id = "balance-synflood",
	  .what = "a service, ipip, stable ring, SYNs from 2^24 sources",
	  .reach = {{1.1, {"balance-ipip-stable-flows"}}}},
	 .mode = "ipip",
	 .grow = IP4,
	 .traffic = FLOOD},
	{{.id = "balance-synflood-changing",
	  .what = "a service, ipip, every slot in transition, SYNs from 2^24 sources",
	  .reach = {{1.6, {"pins-read", "balance-ipip-stable"}}}},
	 .mode = "ipip",
	 .grow = IP4,
	 .changing = true,
	 .traffic = FLOOD},
	{{.id = "balance-dr",
	  .what = "a service, dr, stable ring, one flow",
	  .reach = {{1.0, {"balance-ipip-stable"}}}},
	 .mode = "dr",
	 .traffic = ONE},
	{{.id = "balance-dr-flows", .what = "a service, dr, stable ring, 524,288 flows"},
	 .mode = "dr",
	 .traffic = MANY},
	{{.id = "balance-gue",
	  .what = "a service, gue in IPv4, stable ring, one flow",
	  .reach = {{1.3, {"balance-ipip-stable"}}}},
	 .mode = "gue",
	 .grow = IP4 + UDP,
	 .traffic = ONE},
	{{.id = "balance-gue-flows", .what = "a service, gue in IPv4, stable ring, 524,288 flows"},
	 .mode = "gue",
	 .grow = IP4 + UDP,
	 .traffic = MANY},
	{{.id = "balance-gue-v6",
	  .what = "a service, gue in IPv6, stable ring, one flow",
	  .reach = {{1.5, {"balance-ipip-stable"}}}},
	 .mode = "gue",
	 .grow = IP6 + UDP,
	 .v6 = true,
	 .traffic = ONE},
	{{.id = "balance-nat",
	  .what = "a service, nat, one known connection",
	  .reach = {{1.7, {"balance-dr"}}}},
	 .mode = "nat",
	 .traffic = ONE},
	{{.id = "balance-nat-flows",
	  .what = "a service, nat, 524,288 known connections",
	  .reach = {{1.1, {"balance-ipip-changing-flows"}}}},
	 .mode = "nat",
	 .traffic = MANY},
	{{.id = "balance-fullnat",
	  .what = "a service, fullnat, one known connection",
	  .reach = {{1.7, {"balance-dr"}}}},
	 .mode = "fullnat",
	 .traffic = ONE},
	{{.id = "balance-fullnat-flows",
	  .what = "a service, fullnat, 524,288 known connections",
	  .reach = {{1.1, {"balance-ipip-changing-flows"}}}},
	 .mode = "fullnat",
	 .traffic = MANY},
	{{.id = "balance-nat-answer",
	  .what = "a service, nat, answers of one connection",
	  .reach = {{1.3, {"balance-dr"}}}},
	 .mode = "nat",
	 .answers = true,
	 .traffic = ONE},
	{{.id = "balance-fullnat-answer",
	  .what = "a service, fullnat, answers of one connection",
	  .reach = {{1.3, {"balance-dr"}}}},
	 .mode = "fullnat",
	 .answers = true,
	 .traffic = ONE},
	{{.id = "balance-rules",
	  .what = "64 rules over eight fields before a service, ipip, stable ring, one flow",
	  .reach = {{1.0, {"filter-64", "balance-ipip-stable"}}}},
	 .mode = "ipip",
	 .grow = IP4,
	 .traffic = ONE,
	 .rules = 64},
	{{.id = "combined",
	  .what = "100,000 blocked addresses, 64 rules and a service, ipip, stable ring, one flow",
	  .reach = {{1.5, {"balance-ipip-stable"}}}},
	 .mode = "ipip",
	 .grow = IP4,
	 .traffic = ONE,
	 .rules = 64,
	 .blocked = 100000},
};

static bool is_mode(const struct balance_case *c, const char *mode)
{
	return !strcmp(c->mode, mode);
}

static bool translates(const struct balance_case *c)
{
	return is_mode(c, "nat") || is_mode(c, "fullnat");
}

// 32 blocks of connections, of which all flows take a quarter.
static void add_service(const struct balance_case *c, struct text *t)
{
	text_addf(t, "service www { vip %s; proto tcp; port %u; mode %s\n", BALANCE_VIP,
		  BALANCE_PORT, c->mode);
	if (is_mode(c, "nat"))
		text_add(t, "connections 1696000\n");
	else if (is_mode(c, "fullnat"))
		text_add(t, "source 10.0.2.0/27\n");
	else
		text_addf(t, "pins %u\n", PINS);
	for (unsigned b = 1; b <= BALANCE_BACKENDS; b++)
		text_addf(t, c->v6 ? "backend fd00::1:%x\n" : "backend 10.0.1.%u\n", b);
	text_add(t, "}\n");
}

// The seed makes the keys of all services.
static void write_policy(const struct balance_case *c, const char *path)
{
	const struct rules rules = {.shape = RULES_FIELDS, .family = 4, .n = c->rules};
	struct text t = {0};

	policy_rules(&rules, path);
	text_add(&t, "seed \"bench\"\n");
	add_service(c, &t);
	policy_append(text_get(&t), path);
	text_free(&t);
}

// Each source is one flow.
static struct addr *make_flows(enum traffic traffic)
{
	struct addr *flows = mem_zalloc(BENCH_SOURCES, sizeof(*flows));
	CLEANUP_SET struct set s = {0};
	uint64_t state = 53;

	set_hosts(4, BENCH_SOURCES, 59, &s);
	for (size_t i = 0; i < BENCH_SOURCES; i++) {
		size_t other = traffic == ONE ? 0 : random_next(&state) % (i + 1);

		flows[i] = flows[other];
		flows[other] = s.at[traffic == ONE ? 0 : i].addr;
	}
	return flows;
}

// Afterwards all flows have been heard twice, and are pinned where slots change; a flood has filled
// all pins.
static void warm_up(struct draw *d, const struct subject *s, enum traffic traffic)
{
	uint32_t packets = traffic == FLOOD ? 2 * PINS : 2 * BENCH_SOURCES;

	for (size_t load = 0; load < s->loads; load++) {
		draw_target(d, subject_load(s, load));
		for (uint32_t n = 0; n < packets; n += BENCH_SOURCES)
			draw_run(d, BENCH_SOURCES, NULL);
	}
}

// A SYN of each flow; then each is a connection that the next packets do not begin.
static void open_connections(const struct subject *s, const struct addr *flows)
{
	struct draw *d =
		draw_new(&(struct draw_options){.family = 4, .sources = flows, .sent = true});

	draw_target(d, subject_load(s, 0));
	draw_run(d, BENCH_SOURCES, NULL);
	draw_free(d);
}

// The headers of an answer to the packets of one connection: what its backend got, turned round.
static void turn(const struct draw *d, struct bench_head *ret)
{
	struct bench_head got;

	draw_result(d, &got);
	*ret = got;
	ret->mac[0] = got.mac[1];
	ret->mac[1] = got.mac[0];
	ret->words[3] = got.words[4];
	ret->words[4] = got.words[3];
	ret->words[5] = got.words[5] << 16 | got.words[5] >> 16;
}

// In place of d, which is freed. Each source is the backend.
static struct draw *draw_answers(struct draw *d, struct addr *sources)
{
	struct bench_head head;

	turn(d, &head);
	draw_free(d);
	for (size_t i = 0; i < BENCH_SOURCES; i++)
		sources[i] = addr_from_v4(head.words[3]);
	return draw_new(&(struct draw_options){
		.family = 4, .sources = sources, .sent = true, .head = &head});
}

static void make_weir(const struct bench *b, const struct balance_case *c, struct subject *ret)
{
	CLEANUP_FREE char *path = mem_printf("%s/service.weir", b->folder);
	CLEANUP_SET struct set blocked = {0};

	write_policy(c, path);
	if (c->blocked)
		set_hosts(4, c->blocked, 41, &blocked);
	subject_weir(&(struct weir_options){.policy = path,
					    .changing = c->changing,
					    .blocked = c->blocked ? &blocked : NULL},
		     ret);
}

// The bound of the row: what reads the pins, or a balancer with nothing else.
static void make_floor(const struct balance_case *c, struct subject *ret)
{
	if (c->changing)
		subject_pins_read(PINS, ret);
	else
		subject_floor_ipip(BALANCE_BACKENDS, ret);
}

void balance_measure(const struct bench *b, const struct balance_case *c, struct subject *peer)
{
	CLEANUP_FREE struct addr *flows = c->traffic == FLOOD ? NULL : make_flows(c->traffic);
	CLEANUP_SUBJECT struct subject weir;
	struct subject *subjects[] = {&weir, peer};
	size_t n = peer ? 2 : 1;
	struct draw *d = draw_new(&(struct draw_options){
		.family = 4,
		.flood = c->traffic == FLOOD,
		.spread = SPOOFED,
		.ack = c->traffic != FLOOD,
		.sources = flows,
		.sent = true,
		.grow = c->grow,
	});

	make_weir(b, c, &weir);
	if (translates(c) && weir.loads)
		open_connections(&weir, flows);
	for (size_t i = 0; i < n && (translates(c) || c->changing || c->traffic != ONE); i++)
		warm_up(d, subjects[i], c->traffic);
	if (c->answers)
		d = draw_answers(d, flows);
	measure(b, &c->goal, d, ANSWER_SEND, subjects, n);
	draw_free(d);
}

static void run_case(const struct bench *b, const void *of)
{
	const struct balance_case *c = of;
	CLEANUP_SUBJECT struct subject floor = {0};
	bool has_floor = c->grow == IP4;

	if (has_floor)
		make_floor(c, &floor);
	balance_measure(b, c, has_floor ? &floor : NULL);
}

static void run(const struct bench *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (bench_wants(b, cases[i].goal.id))
			bench_try(b, cases[i].goal.id, run_case, &cases[i]);
}

const struct family balance_family = {"balance", run};
