// SPDX-License-Identifier: GPL-2.0-only
// Rows "balance": packets of a service to its backends. Net of a program that restores the frame, moves its
// head by the same amount and sends it back.
#include <stdlib.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "tests/bench/measure.h"
#include "tests/bench/policy.h"

#define BACKENDS 64
#define PINS     (4 * BENCH_SOURCES)
#define SPOOFED  24 // bits of the sources of the flood
#define IP4      20
#define IP6      40
#define UDP      8

enum traffic {
	ONE,   // one flow
	MANY,  // BENCH_SOURCES flows
	FLOOD, // a SYN flood
};

struct balance_case {
	struct row_goal goal;
	const char *mode;
	uint8_t grow; // outer headers
	bool v6;      // backends
	bool changing;
	enum traffic traffic;
};

static const struct balance_case cases[] = {
	{{.id = "balance-ipip-stable",
	  .what = "a service, ipip, stable ring, one flow",
	  .reach_ns = 35},
	 .mode = "ipip",
	 .grow = IP4,
	 .traffic = ONE},
	{{.id = "balance-ipip-stable-flows",
	  .what = "a service, ipip, stable ring, 524,288 flows",
	  .reach_ns = 60},
	 .mode = "ipip",
	 .grow = IP4,
	 .traffic = MANY},
	{{.id = "balance-ipip-changing",
	  .what = "a service, ipip, every slot in transition, one pinned flow",
	  .reach_ns = 45},
	 .mode = "ipip",
	 .grow = IP4,
	 .changing = true,
	 .traffic = ONE},
	{{.id = "balance-ipip-changing-flows",
	  .what = "a service, ipip, every slot in transition, 524,288 pinned flows",
	  .reach_ns = 80},
	 .mode = "ipip",
	 .grow = IP4,
	 .changing = true,
	 .traffic = MANY},
	{{.id = "balance-synflood",
	  .what = "a service, ipip, stable ring, SYNs from 2^24 sources",
	  .reach_ns = 60},
	 .mode = "ipip",
	 .grow = IP4,
	 .traffic = FLOOD},
	{{.id = "balance-synflood-changing",
	  .what = "a service, ipip, every slot in transition, SYNs from 2^24 sources",
	  .reach_ns = 130},
	 .mode = "ipip",
	 .grow = IP4,
	 .changing = true,
	 .traffic = FLOOD},
	{{.id = "balance-dr", .what = "a service, dr, stable ring, one flow", .reach_ns = 30},
	 .mode = "dr",
	 .traffic = ONE},
	{{.id = "balance-dr-flows", .what = "a service, dr, stable ring, 524,288 flows"},
	 .mode = "dr",
	 .traffic = MANY},
	{{.id = "balance-gue",
	  .what = "a service, gue in IPv4, stable ring, one flow",
	  .reach_ns = 60},
	 .mode = "gue",
	 .grow = IP4 + UDP,
	 .traffic = ONE},
	{{.id = "balance-gue-flows", .what = "a service, gue in IPv4, stable ring, 524,288 flows"},
	 .mode = "gue",
	 .grow = IP4 + UDP,
	 .traffic = MANY},
	{{.id = "balance-gue-v6", .what = "a service, gue in IPv6, stable ring, one flow"},
	 .mode = "gue",
	 .grow = IP6 + UDP,
	 .v6 = true,
	 .traffic = ONE},
};

static void write_service(const struct balance_case *c, const char *path)
{
	struct text t = {0};

	text_addf(&t,
		  "interface lo\nservice www { vip 198.18.0.1; proto tcp; port 80; mode %s; "
		  "pins %u\n",
		  c->mode, PINS);
	for (unsigned b = 1; b <= BACKENDS; b++)
		text_addf(&t, c->v6 ? "backend fd00::1:%x\n" : "backend 10.0.1.%u\n", b);
	text_add(&t, "}\n");
	policy_text(text_get(&t), path);
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

// Afterwards all flows are pinned and have been heard again; a flood has filled all pins.
static void warm_up(struct draw *d, const struct subject *weir, enum traffic traffic)
{
	uint32_t packets = traffic == FLOOD ? 2 * PINS : 2 * BENCH_SOURCES;

	draw_target(d, weir->program);
	for (uint32_t n = 0; n < packets; n += BENCH_SOURCES)
		draw_run(d, BENCH_SOURCES, NULL);
}

static void run_case(const struct bench *b, const struct balance_case *c)
{
	CLEANUP_FREE char *path = mem_printf("%s/service.weir", b->folder);
	CLEANUP_FREE struct addr *flows = c->traffic == FLOOD ? NULL : make_flows(c->traffic);
	CLEANUP_SUBJECT struct subject weir;
	struct draw *d = draw_new(&(struct draw_options){
		.family = 4,
		.flood = c->traffic == FLOOD,
		.spread = SPOOFED,
		.ack = c->traffic != FLOOD,
		.sources = flows,
		.sent = true,
		.grow = c->grow,
	});

	write_service(c, path);
	subject_weir(&(struct weir_options){.policy = path, .changing = c->changing}, &weir);
	if (c->changing)
		warm_up(d, &weir, c->traffic);
	measure(b, &c->goal, d, ANSWER_SEND, (struct subject *[]){&weir}, 1);
	draw_free(d);
}

static void run(struct bench *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (bench_wants(b, cases[i].goal.id))
			run_case(b, &cases[i]);
}

const struct family balance_family = {"balance", run};
