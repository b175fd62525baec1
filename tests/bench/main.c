// SPDX-License-Identifier: GPL-2.0-only
// Measures Weir and its peers; writes a table to standard output and a JSON file.
//
// usage: bench [-o FILE] [-w WEIR] [-r ROUNDS] [-c CPU] [-k FOLDER] [ID…]: the rows whose id begins
// with ID, or all rows; -k: Katran's objects, for its rows. Needs root. Exit status: 0 all rows
// were measured, whether goals are reached or not; 1 usage; 2 system error, also of one row: the
// others are measured.
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/datapath/probe.h"
#include "tests/bench/bench.h"
#include "tests/bench/report.h"

#define ROUNDS 4 // of each load

static const struct family *const families[] = {
	&root_family,    &filter_family,  &hosts_family,    &overlay_family,
	&limit_family,   &balance_family, &katran_family,   &live_family,
	&control_family, &entries_family, &commands_family,
};

_Noreturn static void usage(void)
{
	fputs("usage: bench [-o FILE] [-w WEIR] [-r ROUNDS] [-c CPU] [-k FOLDER] [ID…]\n", stderr);
	exit(1);
}

static uint32_t number(const char *text, uint32_t min, uint32_t max)
{
	uint32_t n;

	if (num_parse_u32(text, strlen(text), min, max, &n))
		usage();
	return n;
}

// Its rows cannot be asked for without it.
static void need_katran(const struct bench *b)
{
	if (b->katran || !b->wanted_n || !bench_wants(b, "katran"))
		return;
	fputs("bench: the rows 'katran' need Katran's source: make bench ROWS=katran KATRAN=FOLDER\n",
	      stderr);
	exit(1);
}

static const char *read_options(struct bench *b, int argc, char **argv)
{
	const char *out = "build/bench.json";
	int option;

	while ((option = getopt(argc, argv, "o:w:r:c:k:")) != -1)
		switch (option) {
		case 'o':
			out = optarg;
			break;
		case 'w':
			b->weir = optarg;
			break;
		case 'r':
			b->rounds = number(optarg, 1, 1000);
			break;
		case 'c':
			b->cpu = (int)number(optarg, 0, CPU_SETSIZE - 1);
			break;
		case 'k':
			b->katran = optarg;
			break;
		default:
			usage();
		}
	b->wanted = (const char *const *)argv + optind;
	b->wanted_n = (size_t)(argc - optind);
	need_katran(b);
	return out;
}

static void run_family(const struct bench *b, const void *of)
{
	((const struct family *)of)->run(b);
}

int main(int argc, char **argv)
{
	struct bench b = {.weir = "build/weir", .rounds = ROUNDS, .cpu = bench_last_cpu()};
	const char *out = read_options(&b, argc, argv);
	bool whole;

	if (geteuid())
		bench_fail(EPERM, "the bench loads programs into the kernel: run as root");
	probe_quiet(getenv("VERBOSE"));
	bench_begin(&b);
	b.report = report_new(b.cpu, b.rounds, out);
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		bench_try(&b, families[i]->name, run_family, families[i]);
	whole = report_end(b.report);
	report_free(b.report);
	return whole ? 0 : 2;
}
