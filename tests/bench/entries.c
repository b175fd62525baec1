// SPDX-License-Identifier: GPL-2.0-only
// Rows "block", "ban" and "list": commands about few and about a million entries.
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "tests/bench/measure.h"
#include "tests/bench/place.h"

#define FEW      1000
#define MILLION  1000000
#define ROOM     "1048576"
#define CALLERS  8
#define BANS     100
#define PATIENCE 30000000000ull // ns
#define LIST_MAX 62500          // kB: 64 MB

static const struct row_goal block_100k = {
	.id = "block-100k", .what = "weir block -f of 100,000 addresses", .reach = {{0.5e9}}};
static const struct row_goal ban_1m = {
	.id = "ban-1m",
	.what = "weir block of one address into 1,000,000 entries: processor time",
	.reach = {{10e6}, {2, {"into 1,000"}}}};
static const struct row_goal ban_parallel = {
	.id = "ban-1m-parallel",
	.what = "100 times weir block of one address by 8 processes, into 1,000,000 entries; 30 s are allowed",
	.all_succeed = true};
static const struct row_goal list_first = {.id = "list-1m-first",
					   .what = "weir list of 1,000,000 entries: first output",
					   .reach = {{50e6}}};
static const struct row_goal list_whole = {.id = "list-1m",
					   .what = "weir list of 1,000,000 entries",
					   .reach = {{2e9}},
					   .reach_kb = LIST_MAX};

static char *write_hosts(const struct bench *b, size_t n)
{
	char *path = mem_printf("%s/entries-%zu.txt", b->folder, n);
	CLEANUP_SET struct set s = {0};

	set_hosts(4, n, 71, &s);
	set_write(&s, path);
	return path;
}

static void run_block(const struct bench *b, const struct place *p)
{
	CLEANUP_FREE char *list = write_hosts(b, 100000);
	struct costs costs = {0};
	struct tool_cost cost;
	struct result result;

	while (costs_want(&costs)) {
		int status = place_run(p, WORDS("block", "-f", list, "--force"), &cost);

		costs_add(&costs, status, cost.ns, &cost);
		place_run(p, WORDS("unblock", "--all"), NULL);
	}
	result = costs_result(&costs, "weir");
	report_row(b->report, &block_100k, &result, 1);
}

// ---- a million entries --------------------------------------------------------------------------

// An address that no set has (RFC 2544), another one for each number.
static char *banned(size_t number)
{
	return mem_printf("198.19.%zu.%zu", number / 256, number % 256);
}

// --force: without it, the command reads the environments of processes, which a container may
// forbid.
static int ban(const struct place *p, size_t number, struct tool_cost *cost)
{
	CLEANUP_FREE char *address = banned(number);

	return place_run(p, WORDS("block", address, "--force"), cost);
}

static void run_ban(const struct bench *b, const struct place *few, const struct place *many)
{
	struct costs in_few = {0}, in_many = {0};
	struct tool_cost cost;

	while (costs_want(&in_few) && costs_want(&in_many)) {
		size_t round = in_few.rounds;
		int status = ban(few, round, &cost);

		costs_add(&in_few, status, cost.cpu_ns, &cost);
		status = ban(many, round, &cost);
		costs_add(&in_many, status, cost.cpu_ns, &cost);
	}
	report_row(b->report, &ban_1m,
		   (struct result[]){costs_result(&in_many, "weir"),
				     costs_result(&in_few, "into 1,000")},
		   2);
}

// One of the processes: its part of the addresses, one after the other. Exits with the number of
// failures; what has not begun in time has failed, too.
_Noreturn static void ban_part(const struct place *p, size_t caller)
{
	uint64_t end = bench_now_ns() + PATIENCE;
	int failed = 0;

	for (size_t i = caller; i < BANS; i += CALLERS)
		failed += bench_now_ns() > end || ban(p, 256 + i, NULL);
	_exit(failed);
}

static size_t wait_for_part(void)
{
	int status;

	if (wait(&status) < 0)
		bench_fail(errno, "cannot wait for a process");
	return WIFEXITED(status) ? (size_t)WEXITSTATUS(status) : BANS;
}

static void run_parallel(const struct bench *b, const struct place *p)
{
	struct result result = {.subject = "weir"};
	uint64_t begin = bench_now_ns();

	for (size_t caller = 0; caller < CALLERS; caller++) {
		pid_t child = fork();

		if (child < 0)
			bench_fail(errno, "cannot fork");
		if (!child)
			ban_part(p, caller);
	}
	for (size_t caller = 0; caller < CALLERS; caller++)
		result.failed += wait_for_part();
	result.net.min = result.net.median = (double)(bench_now_ns() - begin);
	report_row(b->report, &ban_parallel, &result, 1);
}

static void run_list(const struct bench *b, const struct place *p)
{
	struct costs first = {0}, whole = {0};
	struct tool_cost cost;
	struct result result;

	while (costs_want(&whole)) {
		int status = place_read(p, WORDS("list"), &cost);

		costs_add(&first, status, cost.first_ns, &cost);
		costs_add(&whole, status, cost.ns, &cost);
	}
	result = costs_result(&first, "weir");
	report_row(b->report, &list_first, &result, 1);
	result = costs_result(&whole, "weir");
	report_row(b->report, &list_whole, &result, 1);
}

static void run_million(const struct bench *b, const struct place *few)
{
	CLEANUP_FREE char *small = write_hosts(b, FEW);
	CLEANUP_FREE char *large = write_hosts(b, MILLION);
	struct place *many = place_new(b, "wbmany", ROOM);

	place_need(few, WORDS("block", "-f", small, "--force"), NULL);
	place_need(many, WORDS("block", "-f", large, "--force"), NULL);
	if (bench_wants(b, ban_1m.id))
		run_ban(b, few, many);
	if (bench_wants(b, ban_parallel.id))
		run_parallel(b, many);
	if (bench_wants(b, list_first.id))
		run_list(b, many);
	place_free(many);
}

static void run(const struct bench *b)
{
	bool million = bench_wants(b, ban_parallel.id) || bench_wants(b, list_first.id);
	struct place *few;

	if (!million && !bench_wants(b, block_100k.id))
		return;
	bench_use_all_cpus();
	few = place_new(b, "wbfew", NULL);
	if (bench_wants(b, block_100k.id))
		run_block(b, few);
	if (million)
		run_million(b, few);
	place_free(few);
}

const struct family entries_family = {"block, ban, list", run};
