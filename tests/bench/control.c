// SPDX-License-Identifier: GPL-2.0-only
// Rows "apply": time and memory of whole commands, from fork to exit.
#include <errno.h>
#include <stdlib.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "tests/bench/measure.h"
#include "tests/bench/place.h"
#include "tests/bench/policy.h"

#define DEVICE "wbctl"

static const struct row_goal apply_1m = {.id = "apply-1m",
					 .what = "weir apply of a policy with a list of 1,000,000",
					 .reach = {{0.12, {"nft"}}}};
static const struct row_goal apply_1000 = {
	.id = "apply-1000",
	.what = "weir apply of 1,000 rules, including the test program",
	.reach = {{150e6}}};

static void write_big(const struct bench *b, char *const paths[2])
{
	for (size_t i = 0; i < 2; i++) {
		CLEANUP_FREE char *list = mem_printf("%s/big%zu.txt", b->folder, i);
		CLEANUP_FREE char *text = mem_printf(
			"interface " DEVICE "\nset s { file \"big%zu.txt\" }\ndrop from @s\n", i);
		CLEANUP_SET struct set s = {0};

		set_hosts(4, 1000000, 61 + i, &s);
		set_write(&s, list);
		policy_text(text, paths[i]);
	}
}

static void write_nft(const struct bench *b, const char *path)
{
	CLEANUP_SET struct set s = {0};
	FILE *f = fopen(path, "we");
	addr_text text;

	if (!f)
		bench_fail(errno, "cannot write '%s'", path);
	set_hosts(4, 1000000, 61, &s);
	fputs("table netdev wb { set s { type ipv4_addr; elements = {\n", f);
	for (size_t i = 0; i < s.n; i++)
		fprintf(f, "%s,\n", addr_format(&s.at[i].addr, text));
	fputs("} }\nchain c { type filter hook ingress device " DEVICE
	      " priority 0; policy accept; ip saddr @s drop; }\n}\n",
	      f);
	if (fclose(f))
		bench_fail(errno, "cannot write '%s'", path);
}

static void run_apply_1m(const struct bench *b, const struct place *p)
{
	CLEANUP_FREE char *first = mem_printf("%s/big0.weir", b->folder);
	CLEANUP_FREE char *second = mem_printf("%s/big1.weir", b->folder);
	CLEANUP_FREE char *table = mem_printf("%s/big.nft", b->folder);
	struct costs weir = {0}, nft = {0};
	struct tool_cost cost;
	int status;

	write_big(b, (char *[]){first, second});
	write_nft(b, table);
	while (costs_want(&weir)) {
		const char *policy = weir.rounds % 2 ? second : first;

		status = place_run(p, WORDS("apply", policy, "--force"), &cost);
		costs_add(&weir, status, cost.ns, &cost);
		if (!costs_want(&nft))
			continue;
		status = tool_run(WORDS("nft", "-f", table), &cost);
		costs_add(&nft, status, cost.ns, &cost);
		tool_run(WORDS("nft", "flush", "ruleset"), NULL);
	}
	report_row(b->report, &apply_1m,
		   (struct result[]){costs_result(&weir, "weir"), costs_result(&nft, "nft")}, 2);
}

static void run_apply_1000(const struct bench *b, const struct place *p)
{
	CLEANUP_FREE char *paths[2] = {mem_printf("%s/rules0.weir", b->folder),
				       mem_printf("%s/rules1.weir", b->folder)};
	struct costs costs = {0};
	struct tool_cost cost;
	struct result result;

	for (size_t i = 0; i < 2; i++) {
		const struct rules rules = {.shape = i ? RULES_WORST : RULES_FROM,
					    .family = 4,
					    .n = 1000,
					    .last_matches = true,
					    .iface = DEVICE,
					    .expect = true};

		policy_rules(&rules, paths[i]);
	}
	while (costs_want(&costs)) {
		const char *policy = paths[costs.rounds % 2];
		int status = place_run(p, WORDS("apply", policy, "--force"), &cost);

		costs_add(&costs, status, cost.ns, &cost);
	}
	result = costs_result(&costs, "weir");
	report_row(b->report, &apply_1000, &result, 1);
	free(paths[1]);
}

static void run(const struct bench *b)
{
	struct place *p;

	if (!bench_wants(b, apply_1m.id) && !bench_wants(b, apply_1000.id))
		return;
	bench_use_all_cpus();
	p = place_new(b, DEVICE, NULL);
	if (bench_wants(b, apply_1m.id))
		run_apply_1m(b, p);
	if (bench_wants(b, apply_1000.id))
		run_apply_1000(b, p);
	place_free(p);
}

const struct family control_family = {"apply", run};
