// SPDX-License-Identifier: GPL-2.0-only
// Measures Weir and its peers; writes a table to standard output and a JSON file.
//
// usage: bench [-o FILE] [-w WEIR] [-r ROUNDS] [-c CPU] [ID…]: the rows whose id begins with ID, or all rows. Needs
// root. Exit status: 0 all rows were measured, whether goals are reached or not; 1 usage; 2 system error.
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/datapath/probe.h"
#include "tests/bench/bench.h"
#include "tests/bench/report.h"
#include "tests/bench/tools.h"

#define ROUNDS_MIN 3
#define ROUNDS     13

static const struct family *const families[] = {
	&root_family,  &filter_family,  &hosts_family, &overlay_family,
	&limit_family, &balance_family, &live_family,  &control_family,
};

bool bench_wants(const struct bench *b, const char *prefix)
{
	for (size_t i = 0; i < b->wanted_n; i++) {
		size_t wanted = strlen(b->wanted[i]), own = strlen(prefix);

		if (!strncmp(b->wanted[i], prefix, wanted < own ? wanted : own))
			return true;
	}
	return !b->wanted_n;
}

uint64_t bench_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void bench_die(const struct err *err)
{
	fprintf(stderr, "bench: %s%s%s\n", err->text, err->hint[0] ? ": " : "", err->hint);
	exit(2);
}

void bench_fail(int code, const char *fmt, ...)
{
	struct err err = {0};
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	err_system(&err, code, "%s", what);
	bench_die(&err);
}

// Exit

static char folder[] = "/tmp/weir-bench-XXXXXX";
static pid_t owner;

static void clean_up(void)
{
	if (getpid() != owner)
		return;
	control_clean_up();
	tool_run((const char *const[]){"rm", "-rf", "--", folder, NULL}, NULL);
}

static void stop(int number)
{
	exit(128 + number);
}

// Start

static int last_cpu(void)
{
	cpu_set_t set;
	int last = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		bench_fail(errno, "cannot read the allowed CPUs");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t)cpu, &set))
			last = cpu;
	return last;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_fail(errno, "cannot bind to CPU %d", cpu);
}

// Test packets arrive on the loopback device of a separate network namespace.
static void prepare(struct bench *b)
{
	if (unshare(CLONE_NEWNET))
		bench_fail(errno, "cannot create a network namespace");
	tool_need((const char *const[]){"ip", "link", "set", "lo", "up", NULL}, NULL);
	if (!mkdtemp(folder))
		bench_fail(errno, "cannot create '%s'", folder);
	b->folder = folder;
	owner = getpid();
	atexit(clean_up);
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	pin(b->cpu);
}

_Noreturn static void usage(void)
{
	fputs("usage: bench [-o FILE] [-w WEIR] [-r ROUNDS] [-c CPU] [ID…]\n", stderr);
	exit(1);
}

static uint32_t number(const char *text, uint32_t min, uint32_t max)
{
	uint32_t n;

	if (num_parse_u32(text, strlen(text), min, max, &n))
		usage();
	return n;
}

static const char *read_options(struct bench *b, int argc, char **argv)
{
	const char *out = "build/bench.json";
	int option;

	while ((option = getopt(argc, argv, "o:w:r:c:")) != -1)
		switch (option) {
		case 'o':
			out = optarg;
			break;
		case 'w':
			b->weir = optarg;
			break;
		case 'r':
			b->rounds = number(optarg, ROUNDS_MIN, 1000);
			break;
		case 'c':
			b->cpu = (int)number(optarg, 0, CPU_SETSIZE - 1);
			break;
		default:
			usage();
		}
	b->wanted = (const char *const *)argv + optind;
	b->wanted_n = (size_t)(argc - optind);
	return out;
}

int main(int argc, char **argv)
{
	struct bench b = {.weir = "build/weir", .rounds = ROUNDS, .cpu = last_cpu()};
	const char *out = read_options(&b, argc, argv);

	if (geteuid())
		bench_fail(EPERM, "the bench loads programs into the kernel: run as root");
	probe_quiet(getenv("VERBOSE"));
	prepare(&b);
	b.report = report_new(b.cpu, b.rounds);
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		families[i]->run(&b);
	report_write(b.report, out);
	report_free(b.report);
	return 0;
}
