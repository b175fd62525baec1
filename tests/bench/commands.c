// SPDX-License-Identifier: GPL-2.0-only
// Rows "commands": what a change of one address and a question cost, from fork to exit, beside nft,
// ipset and xdp-filter.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/base/mem.h"
#include "tests/bench/measure.h"
#include "tests/bench/place.h"
#include "tests/bench/policy.h"

#define DEVICE  "wbcmd"
#define MANY    "wbcmds"
#define PEER    "wbpeer"
#define DEVICES 24 // beside MANY
#define MILLION 1000000

static const struct row_goal block_cpu = {.id = "commands-block",
					  .what = "weir block of one address: processor time",
					  .reach = {{4e6}, {1.5, {"nft"}}}};
static const struct row_goal block_wall = {
	.id = "commands-block-wall", .what = "weir block of one address", .reach = {{6e6}}};
static const struct row_goal block_many = {
	.id = "commands-block-interfaces",
	.what = "weir block of one address with 25 interfaces: processor time",
	.reach = {{1.6, {"one interface"}}}};
static const struct row_goal stats = {.id = "commands-stats-1m",
				      .what = "weir stats, with a list of 1,000,000 in the policy",
				      .reach = {{20e6}}};
static const struct row_goal metrics = {
	.id = "commands-metrics-1m",
	.what = "weir metrics, with a list of 1,000,000 in the policy",
	.reach = {{20e6}}};
static const struct row_goal of_address = {
	.id = "commands-explain-1m",
	.what = "weir explain of an address, with a list of 1,000,000 in the policy",
	.reach = {{20e6}}};
static const struct row_goal of_packet = {
	.id = "commands-explain-packet-1m",
	.what = "weir explain of a packet, with a list of 1,000,000 in the policy",
	.reach = {{20e6}}};

// ---- one address --------------------------------------------------------------------------------

struct ban {
	const char *subject;
	int (*run)(const struct place *p, const char *address, struct tool_cost *cost);
	const struct place *place;
	struct costs cpu, wall;
};

static int ban_weir(const struct place *p, const char *address, struct tool_cost *cost)
{
	return place_run(p, WORDS("block", address), cost);
}

static int ban_nft(const struct place *p, const char *address, struct tool_cost *cost)
{
	CLEANUP_FREE char *element = mem_printf("{ %s }", address);

	return tool_run(WORDS("nft", "add", "element", "netdev", "wb", "s", element), cost);
}

static int ban_ipset(const struct place *p, const char *address, struct tool_cost *cost)
{
	return tool_run(WORDS("ipset", "add", "wb", address), cost);
}

static int ban_xdp_filter(const struct place *p, const char *address, struct tool_cost *cost)
{
	return tool_run(WORDS("xdp-filter", "ip", "-m", "src", address), cost);
}

// Those that cannot be prepared refuse the first address, and the row shows the reason.
static void prepare_peers(void)
{
	tool_need(WORDS("ip", "link", "add", PEER, "type", "veth"), NULL);
	tool_run(WORDS("nft", "add table netdev wb; add set netdev wb s { type ipv4_addr; }"),
		 NULL);
	tool_run(WORDS("ipset", "create", "wb", "hash:ip"), NULL);
	tool_run(WORDS("xdp-filter", "load", PEER), NULL);
}

static void remove_peers(void)
{
	tool_run(WORDS("xdp-filter", "unload", PEER), NULL);
	tool_run(WORDS("ipset", "destroy", "wb"), NULL);
	tool_run(WORDS("nft", "flush", "ruleset"), NULL);
	tool_run(WORDS("ip", "link", "del", PEER), NULL);
}

// An address that no set has (RFC 2544), another one for each number.
static void run_round(struct ban *bans, size_t n, size_t number)
{
	CLEANUP_FREE char *at = mem_printf("198.19.%zu.%zu", number / 256, number % 256);
	struct tool_cost cost;

	for (size_t b = 0; b < n; b++) {
		int status;

		if (!costs_want(&bans[b].cpu))
			continue;
		status = bans[b].run(bans[b].place, at, &cost);
		if (!number) // the first one makes room
			continue;
		costs_add(&bans[b].cpu, status, cost.cpu_ns, &cost);
		costs_add(&bans[b].wall, status, cost.ns, &cost);
	}
}

static void run_bans(struct ban *bans, size_t n)
{
	for (size_t b = 0; b < n; b++)
		bans[b].cpu.most = bans[b].wall.most = PLACE_MOST;
	for (size_t number = 0; number == 0 || costs_want(&bans[0].cpu); number++)
		run_round(bans, n, number);
}

static void report_bans(const struct bench *b, const struct row_goal *goal, struct ban *bans,
			size_t n, bool wall)
{
	struct result results[MEASURE_SUBJECTS];

	for (size_t i = 0; i < n; i++)
		results[i] = costs_result(wall ? &bans[i].wall : &bans[i].cpu, bans[i].subject);
	report_row(b->report, goal, results, n);
}

static void run_block(const struct bench *b, const struct place *p)
{
	struct ban bans[] = {
		{.subject = "weir", .run = ban_weir, .place = p},
		{.subject = "nft", .run = ban_nft},
		{.subject = "ipset", .run = ban_ipset},
		{.subject = "xdp-filter", .run = ban_xdp_filter},
	};

	prepare_peers();
	run_bans(bans, ARRAY_SIZE(bans));
	remove_peers();
	if (bench_wants(b, block_cpu.id))
		report_bans(b, &block_cpu, bans, ARRAY_SIZE(bans), false);
	if (bench_wants(b, block_wall.id))
		report_bans(b, &block_wall, bans, ARRAY_SIZE(bans), true);
}

// ---- many interfaces ----------------------------------------------------------------------------

static void add_devices(const struct place *p)
{
	for (int n = 0; n < DEVICES; n++) {
		CLEANUP_FREE char *name = mem_printf("wbd%d", n);

		tool_need(WORDS("ip", "link", "add", name, "type", "veth"), NULL);
		tool_need(WORDS("ip", "link", "set", name, "up"), NULL);
		place_need(p, WORDS("attach", name), NULL);
	}
}

static void remove_devices(const struct place *p)
{
	for (int n = 0; n < DEVICES; n++) {
		CLEANUP_FREE char *name = mem_printf("wbd%d", n);

		place_run(p, WORDS("detach", name), NULL);
		tool_run(WORDS("ip", "link", "del", name), NULL);
	}
}

static void run_many(const struct bench *b, const struct place *one)
{
	struct place *many = place_new(b, MANY, NULL);
	struct ban bans[] = {
		{.subject = "weir", .run = ban_weir, .place = many},
		{.subject = "one interface", .run = ban_weir, .place = one},
	};

	add_devices(many);
	run_bans(bans, ARRAY_SIZE(bans));
	remove_devices(many);
	place_free(many);
	report_bans(b, &block_many, bans, ARRAY_SIZE(bans), false);
}

// ---- questions ----------------------------------------------------------------------------------

// Returns an address that the list has; the caller frees it.
static char *apply_million(const struct bench *b, const struct place *p)
{
	CLEANUP_FREE char *list = mem_printf("%s/million.txt", b->folder);
	CLEANUP_FREE char *path = mem_printf("%s/million.weir", b->folder);
	CLEANUP_SET struct set s = {0};
	addr_text text;

	set_hosts(4, MILLION, 83, &s);
	set_write(&s, list);
	policy_text("interface " DEVICE "\nset s { file \"million.txt\" }\ndrop from @s\n", path);
	place_need(p, WORDS("apply", path, "--force"), NULL);
	return mem_strdup(addr_format(&s.at[MILLION / 2].addr, text));
}

static void ask(const struct bench *b, const struct row_goal *goal, const struct place *p,
		const char *const *words)
{
	struct costs costs = {.most = PLACE_MOST};
	struct tool_cost cost;
	struct result result;

	if (!bench_wants(b, goal->id))
		return;
	place_run(p, words, NULL); // metrics reads the whole record once
	while (costs_want(&costs)) {
		int status = place_read(p, words, &cost);

		costs_add(&costs, status, cost.ns, &cost);
	}
	result = costs_result(&costs, "weir");
	report_row(b->report, goal, &result, 1);
}

static void run_questions(const struct bench *b, const struct place *p)
{
	CLEANUP_FREE char *listed = apply_million(b, p);

	ask(b, &stats, p, WORDS("stats"));
	ask(b, &metrics, p, WORDS("metrics"));
	ask(b, &of_address, p, WORDS("explain", listed));
	ask(b, &of_packet, p,
	    WORDS("explain", "tcp", "from", listed, "to", "192.0.2.1", "port", "22"));
}

static void run(const struct bench *b)
{
	const struct row_goal *const asks[] = {&stats, &metrics, &of_address, &of_packet};
	bool blocks = bench_wants(b, block_cpu.id) || bench_wants(b, block_wall.id);
	bool many = bench_wants(b, block_many.id), questions = false;
	struct place *p;

	for (size_t n = 0; n < ARRAY_SIZE(asks); n++)
		questions |= bench_wants(b, asks[n]->id);
	if (!blocks && !many && !questions)
		return;
	bench_use_all_cpus();
	p = place_new(b, DEVICE, NULL);
	if (blocks)
		run_block(b, p);
	if (many)
		run_many(b, p);
	if (questions)
		run_questions(b, p);
	place_free(p);
}

const struct family commands_family = {"commands", run};
