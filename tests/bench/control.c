// SPDX-License-Identifier: GPL-2.0-only
// Rows "apply" and "block": time and memory of whole commands, from fork to exit. They run in the network
// namespace of the bench, on a separate instance.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "tests/bench/measure.h"
#include "tests/bench/policy.h"
#include "tests/bench/tools.h"

#define DEVICE "wbctl"
#define ROUNDS 5
#define WORDS  12

static const struct row_goal apply_1m = {.id = "apply-1m",
					 .what = "weir apply of a policy with a list of 1,000,000",
					 .peer = "nft",
					 .reach_ns = 2e9,
					 .reach_kb = 585937}; // 600 MB
static const struct row_goal apply_1000 = {
	.id = "apply-1000",
	.what = "weir apply of 1,000 rules, including the test program",
	.reach_ns = 150e6};
static const struct row_goal block_100k = {
	.id = "block-100k", .what = "weir block -f of 100,000 addresses", .reach_ns = 0.5e9};

static char *instance; // its name; NULL: there is no instance
static const char *weir_path;

// weir -n INSTANCE WORDS…
static void weir(const struct bench *b, const char *const *words, struct tool_cost *cost)
{
	const char *argv[WORDS] = {b->weir, "-n", instance};
	size_t n = 3;

	while (*words && n < WORDS - 1)
		argv[n++] = *words++;
	tool_need(argv, cost);
}

#define WEIR(b, cost, ...) weir((b), (const char *const[]){__VA_ARGS__, NULL}, (cost))

struct costs {
	double ns[ROUNDS];
	uint64_t peak_kb;
};

static void note(struct costs *c, size_t round, const struct tool_cost *cost)
{
	c->ns[round] = cost->ns;
	c->peak_kb = cost->peak_kb > c->peak_kb ? cost->peak_kb : c->peak_kb;
}

static void report(const struct bench *b, const struct row_goal *goal, const char *program,
		   struct costs *c, double ratio)
{
	struct row row = {
		.goal = goal,
		.subject = program,
		.is_peer = strcmp(program, "weir") != 0,
		.net_min = measure_min(c->ns, ROUNDS),
		.net_median = measure_median(c->ns, ROUNDS),
		.ratio = ratio,
		.peak_kb = c->peak_kb,
	};

	report_row(b->report, &row);
}

// Two different policies, so that each apply changes something.
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

	(void)b;
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

static void run_apply_1m(const struct bench *b)
{
	CLEANUP_FREE char *first = mem_printf("%s/big0.weir", b->folder);
	CLEANUP_FREE char *second = mem_printf("%s/big1.weir", b->folder);
	CLEANUP_FREE char *table = mem_printf("%s/big.nft", b->folder);
	struct costs weir_costs = {0}, nft_costs = {0};
	struct tool_cost cost;
	int status = 0;

	write_big(b, (char *[]){first, second});
	write_nft(b, table);
	for (size_t round = 0; round < ROUNDS; round++) {
		WEIR(b, &cost, "apply", round % 2 ? second : first, "--force");
		note(&weir_costs, round, &cost);
		if (status)
			continue;
		status = tool_run((const char *const[]){"nft", "-f", table, NULL}, &cost);
		note(&nft_costs, round, &cost);
		tool_run((const char *const[]){"nft", "flush", "ruleset", NULL}, NULL);
	}
	report(b, &apply_1m, "weir", &weir_costs,
	       status ? 0 : measure_min(weir_costs.ns, ROUNDS) / measure_min(nft_costs.ns, ROUNDS));
	if (status)
		report_skipped(b->report, &apply_1m, "nft",
			       status == 127 ? "nft not found (package nftables)"
					     : "nft rejects the set");
	else
		report(b, &apply_1m, "nft", &nft_costs,
		       measure_min(weir_costs.ns, ROUNDS) / measure_min(nft_costs.ns, ROUNDS));
}

static void run_apply_1000(const struct bench *b)
{
	CLEANUP_FREE char *paths[2] = {mem_printf("%s/rules0.weir", b->folder),
				       mem_printf("%s/rules1.weir", b->folder)};
	struct costs costs = {0};
	struct tool_cost cost;

	for (size_t i = 0; i < 2; i++) {
		const struct rules rules = {.shape = i ? RULES_WORST : RULES_FROM,
					    .family = 4,
					    .n = 1000,
					    .last_matches = true,
					    .iface = DEVICE,
					    .expect = true};

		policy_rules(&rules, paths[i]);
	}
	for (size_t round = 0; round < ROUNDS; round++) {
		WEIR(b, &cost, "apply", paths[round % 2], "--force");
		note(&costs, round, &cost);
	}
	report(b, &apply_1000, "weir", &costs, 0);
	free(paths[1]);
}

static void run_block(const struct bench *b)
{
	CLEANUP_FREE char *list = mem_printf("%s/block.txt", b->folder);
	CLEANUP_SET struct set s = {0};
	struct costs costs = {0};
	struct tool_cost cost;

	set_hosts(4, 100000, 71, &s);
	set_write(&s, list);
	for (size_t round = 0; round < ROUNDS; round++) {
		WEIR(b, &cost, "block", "-f", list, "--force");
		note(&costs, round, &cost);
		WEIR(b, NULL, "unblock", "--all");
	}
	report(b, &block_100k, "weir", &costs, 0);
}

static void clean_up(void)
{
	static const char *const roots[] = {"/var/lib/weir", "/run/weir"};

	if (!instance)
		return;
	tool_run((const char *const[]){weir_path, "-n", instance, "detach", "--force", NULL}, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		CLEANUP_FREE char *path = mem_printf("%s/%s", roots[i], instance);

		tool_run((const char *const[]){"rm", "-rf", "--", path, NULL}, NULL);
	}
	free(TAKE_PTR(instance));
}

static void run(struct bench *b)
{
	if (!bench_wants(b, "apply") && !bench_wants(b, "block-100k"))
		return;
	weir_path = b->weir;
	atexit(clean_up);
	instance = mem_printf("bench-%d", (int)getpid());
	tool_need((const char *const[]){"ip", "link", "add", DEVICE, "type", "veth", NULL}, NULL);
	tool_need((const char *const[]){"ip", "link", "set", DEVICE, "up", NULL}, NULL);
	WEIR(b, NULL, "attach", DEVICE);
	if (bench_wants(b, "apply-1m"))
		run_apply_1m(b);
	if (bench_wants(b, "apply-1000"))
		run_apply_1000(b);
	if (bench_wants(b, "block-100k"))
		run_block(b);
	clean_up();
	tool_need((const char *const[]){"ip", "link", "del", DEVICE, NULL}, NULL);
}

const struct family control_family = {"apply, block", run};
