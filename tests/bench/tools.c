// SPDX-License-Identifier: GPL-2.0-only
// fork, exec, and the resource usage that the kernel reports.
#include "tests/bench/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "tests/bench/bench.h"

struct ends {
	int read, write;
};

static void end_pipe(struct ends *p)
{
	p->read = fd_close(p->read);
	p->write = fd_close(p->write);
}

#define CLEANUP_PIPE CLEANUP(end_pipe)

static struct ends make_pipe(void)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		bench_fail(errno, "cannot make a pipe");
	return (struct ends){ends[0], ends[1]};
}

_Noreturn static void become(const char *const *argv, int out, int messages)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, 0) < 0 || dup2(out < 0 ? null : out, 1) < 0 ||
	    dup2(messages, 2) < 0)
		_exit(126);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

// Reads to the end; keeps the first bytes.
static void drain(int fd, char *text, size_t size)
{
	char more[65536];
	size_t kept = 0;
	ssize_t n;

	while ((n = read(fd, more, sizeof(more))) > 0) {
		size_t room = size - 1 - kept, take = (size_t)n < room ? (size_t)n : room;

		memcpy(text + kept, more, take);
		kept += take;
	}
	text[kept] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

static double wait_for_output(int fd, uint64_t begin)
{
	char some[4096];

	return read(fd, some, sizeof(some)) > 0 ? (double)(bench_now_ns() - begin) : 0;
}

// The memory of the bench itself, after it has released what it can. A child starts with the same
// amount, and the kernel's peak of the child includes it, even after exec.
static uint64_t own_kb(void)
{
	CLEANUP_FILE FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long pages;

	malloc_trim(0);
	if (!f || fscanf(f, "%*u %llu", &pages) != 1)
		bench_fail(errno, "cannot read '/proc/self/statm'");
	return pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static int run(const char *const *argv, bool with_output, struct tool_cost *ret)
{
	CLEANUP_PIPE struct ends messages = make_pipe(), out = make_pipe();
	uint64_t own = own_kb(), begin = bench_now_ns();
	struct tool_cost cost = {0};
	struct rusage usage;
	pid_t child = fork();
	char ignored[2];
	int status;

	if (!child)
		become(argv, with_output ? out.write : -1, messages.write);
	messages.write = fd_close(messages.write);
	out.write = fd_close(out.write);
	if (with_output) {
		cost.first_ns = wait_for_output(out.read, begin);
		drain(out.read, ignored, sizeof(ignored));
	}
	drain(messages.read, cost.said, sizeof(cost.said));
	if (child < 0 || wait4(child, &status, 0, &usage) < 0)
		bench_fail(errno, "cannot run '%s'", argv[0]);
	cost.ns = (double)(bench_now_ns() - begin);
	cost.cpu_ns = 1e9 * (seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime));
	if ((uint64_t)usage.ru_maxrss > own)
		cost.peak_kb = (uint64_t)usage.ru_maxrss;
	if (ret)
		*ret = cost;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

int tool_run(const char *const *argv, struct tool_cost *cost)
{
	return run(argv, false, cost);
}

int tool_read(const char *const *argv, struct tool_cost *cost)
{
	return run(argv, true, cost);
}

void tool_need(const char *const *argv, struct tool_cost *cost)
{
	struct tool_cost own = {0};
	int status = tool_run(argv, &own);

	if (status)
		bench_fail(EPROTO, "'%s %s …' exited with status %d: %s", argv[0], argv[1], status,
			   own.said);
	if (cost)
		*cost = own;
}
