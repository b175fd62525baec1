// SPDX-License-Identifier: GPL-2.0-only
// Services for the rows: the folder, the CPU, clocks, the end on failure.
#include "tests/bench/bench.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "tests/bench/report.h"
#include "tests/bench/tools.h"

bool bench_wants(const struct bench *b, const char *id)
{
	for (size_t i = 0; i < b->wanted_n; i++)
		if (!strncmp(id, b->wanted[i], strlen(b->wanted[i])))
			return true;
	return !b->wanted_n;
}

bool bench_wants_row(const struct bench *b, const struct row_goal *goal)
{
	CLEANUP_FREE char *spaced = mem_printf("%s-spaced", goal->id);

	return bench_wants(b, goal->id) || (goal->large && bench_wants(b, spaced));
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

static pid_t owner;
static jmp_buf *way_out; // name of the running part; NULL: none
static char failure[sizeof(((struct err *)0)->text) + sizeof(((struct err *)0)->hint) + 3];

void bench_try(const struct bench *b, const char *id, bench_part *part, const void *of)
{
	jmp_buf *const outer = way_out;
	jmp_buf here;
	int failed = setjmp(here);

	if (!failed) {
		way_out = &here;
		part(b, of);
	}
	way_out = outer;
	if (failed)
		report_failure(b->report, id, failure);
}

void bench_die(const struct err *err)
{
	snprintf(failure, sizeof(failure), "%s%s%s", err->text, err->hint[0] ? ": " : "",
		 err->hint);
	// Not in a child, where the part would continue twice.
	if (way_out && getpid() == owner)
		longjmp(*way_out, 1);
	fprintf(stderr, "bench: %s\n", failure);
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

static void clean_up(void)
{
	if (getpid() != owner)
		return;
	tool_run((const char *const[]){"rm", "-rf", "--", folder, NULL}, NULL);
}

static void stop(int number)
{
	exit(128 + number);
}

// Start

static cpu_set_t allowed;

int bench_last_cpu(void)
{
	int last = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		bench_fail(errno, "cannot read the allowed CPUs");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t)cpu, &allowed))
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

void bench_use_all_cpus(void)
{
	if (sched_setaffinity(0, sizeof(allowed), &allowed))
		bench_fail(errno, "cannot use all CPUs");
}

// Test packets arrive on the loopback device of a separate network namespace.
void bench_begin(struct bench *b)
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
