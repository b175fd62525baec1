// SPDX-License-Identifier: GPL-2.0-only
// Counts the BPF instructions that Weir executes for a packet of each row of the bench, and
// compares them with a budget. The count is the same on every machine, so that the datapath cannot
// become slower unseen.
//
// usage: run [-v] [-b BUDGETS] [ROW…]: the rows whose id begins with ROW, or all rows; -v prints a
// table. Needs root. Exit status: 0 all rows are within their budgets; 1 some are not; 2 usage or
// system error.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/probe.h"
#include "tests/bench/bench.h"
#include "tests/executed/counts.h"
#include "tests/executed/nat.h"

static const struct family *const families[] = {
	&filter_family, &hosts_family, &overlay_family, &limit_family, &balance_family,
};

int main(int argc, char **argv)
{
	const char *budgets = "tests/executed/budgets";
	struct report report = {0};
	struct bench b = {.report = &report, .cpu = bench_last_cpu()};
	int option, status;

	while ((option = getopt(argc, argv, "vb:")) != -1)
		switch (option) {
		case 'v':
			report.verbose = true;
			break;
		case 'b':
			budgets = optarg;
			break;
		default:
			fputs("usage: run [-v] [-b BUDGETS] [ROW…]\n", stderr);
			return 2;
		}
	if (geteuid())
		bench_fail(EPERM, "programs are loaded into the kernel: run as root");
	b.wanted = (const char *const *)argv + optind;
	b.wanted_n = (size_t)(argc - optind);
	probe_quiet(false);
	counts_read(budgets, &report);
	bench_begin(&b);
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		families[i]->run(&b);
	nat_count_rows(&b);
	status = counts_end(&report, !b.wanted_n);
	counts_free(&report);
	return status;
}
