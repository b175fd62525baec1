// SPDX-License-Identifier: GPL-2.0-only
// fork, exec, and the resource usage that the kernel reports.
#include "tests/bench/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"

_Noreturn static void become(const char *const *argv)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(126);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

int tool_run(const char *const *argv, struct tool_cost *cost)
{
	uint64_t begin = bench_now_ns();
	struct rusage usage;
	pid_t child = fork();
	int status;

	if (!child)
		become(argv);
	if (child < 0 || wait4(child, &status, 0, &usage) < 0)
		bench_fail(errno, "cannot run '%s'", argv[0]);
	if (cost)
		*cost = (struct tool_cost){.ns = (double)(bench_now_ns() - begin),
					   .peak_kb = (uint64_t)usage.ru_maxrss};
	return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

void tool_need(const char *const *argv, struct tool_cost *cost)
{
	int status = tool_run(argv, cost);

	if (status)
		bench_fail(EPROTO, "'%s %s …' exited with status %d", argv[0], argv[1], status);
}
