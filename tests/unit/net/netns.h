// SPDX-License-Identifier: GPL-2.0-only
// A network namespace of the test's own, without privilege where the kernel allows that.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "tests/unit/net/skip.h"

// Runs a shell command quietly; true when it succeeds.
__attribute__((format(printf, 1, 2), unused)) static bool run(const char *fmt, ...)
{
	CLEANUP_FREE char *command = NULL;
	CLEANUP_FREE char *quiet = NULL;
	va_list ap;
	int status;

	va_start(ap, fmt);
	if (vasprintf(&command, fmt, ap) < 0)
		abort();
	va_end(ap);
	quiet = mem_printf("{ %s; } >/dev/null 2>&1", command);
	status = system(quiet);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool write_file(const char *path, const char *text)
{
	CLEANUP_FD int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

// A started program keeps its capabilities in the namespace only as root of the user namespace.
static bool become_root_of_namespace(uid_t uid, gid_t gid)
{
	CLEANUP_FREE char *users = mem_printf("0 %u 1", uid);
	CLEANUP_FREE char *groups = mem_printf("0 %u 1", gid);

	return write_file("/proc/self/setgroups", "deny") &&
	       write_file("/proc/self/uid_map", users) && write_file("/proc/self/gid_map", groups);
}

static const char *netns_problem = "netns_enter was not called"; // NULL: there is a namespace

// Moves this process into an empty network namespace with lo up. false: not possible;
// then the process is where it was, or of no use for tests of interfaces.
static bool netns_enter(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	netns_problem = "this machine lets users make no network namespace";
	if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET))
		return false;
	netns_problem = "this machine gives users no power over their network namespace";
	if (uid && !become_root_of_namespace(uid, gid))
		return false;
	if (!run("ip link set lo up"))
		return false;
	netns_problem = NULL;
	return true;
}

// For the beginning of a test that makes interfaces.
static inline void netns_need(void)
{
	if (netns_problem)
		skip_because(netns_problem);
}
