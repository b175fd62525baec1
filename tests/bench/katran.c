// SPDX-License-Identifier: GPL-2.0-only
// Rows "katran": packets of the balancer to Weir and to Katran, whose objects `make bench
// KATRAN=FOLDER` compiles. Katran remembers at most 125,000 new flows a second on a CPU: a flood
// lasts longer than a second.
#include "ctl/base/mem.h"
#include "tests/bench/balance.h"

static const struct balance_case cases[] = {
	{{.id = "katran", .what = "Weir beside Katran: ipip, one flow"},
	 .mode = "ipip",
	 .grow = BALANCE_IP4,
	 .traffic = ONE},
	{{.id = "katran-flows", .what = "Weir beside Katran: ipip, 524,288 flows"},
	 .mode = "ipip",
	 .grow = BALANCE_IP4,
	 .traffic = MANY},
	{{.id = "katran-gue", .what = "Weir beside Katran: gue in IPv4, 524,288 flows"},
	 .mode = "gue",
	 .grow = BALANCE_IP4 + BALANCE_UDP,
	 .traffic = MANY},
	{{.id = "katran-synflood",
	  .what = "Weir beside Katran: ipip, SYNs from 2^24 sources",
	  .lasting = true},
	 .mode = "ipip",
	 .grow = BALANCE_IP4,
	 .traffic = FLOOD},
	{{.id = "katran-synflood-changing",
	  .what = "Weir, every slot in transition, beside Katran: ipip, SYNs from 2^24 sources",
	  .lasting = true},
	 .mode = "ipip",
	 .grow = BALANCE_IP4,
	 .changing = true,
	 .traffic = FLOOD},
};

static void run_case(const struct bench *b, const void *of)
{
	const struct balance_case *c = of;
	CLEANUP_SUBJECT struct subject katran = {0};

	subject_katran(b->katran, c->mode, b->cpu, &katran);
	balance_measure(b, c, &katran);
}

static void run(const struct bench *b)
{
	for (size_t i = 0; b->katran && i < ARRAY_SIZE(cases); i++)
		if (bench_wants(b, cases[i].goal.id))
			bench_try(b, cases[i].goal.id, run_case, &cases[i]);
}

const struct family katran_family = {"katran", run};
