// SPDX-License-Identifier: GPL-2.0-only
// A program of the operator, in a process group of its own: what it starts can be ended with it.
#pragma once

#include <sys/types.h>

// Its standard input, output and error; -1: /dev/null.
struct program_files {
	int in, out, errors;
};

// Starts arguments[0], an absolute path. arguments and environment end with NULL. All signals have
// their defaults. *ret_fd: a pidfd, readable when the program has ended; -1 if it could not be
// made. 0 or -errno.
int program_start(const char *const *arguments, const char *const *environment,
		  const struct program_files *files, pid_t *ret_pid, int *ret_fd);
// Has it ended? 1, with "exited with status 2" or "was killed by signal 9" in *why, "" after status
// 0; else 0. It stays a zombie, so that no other group has its number.
int program_ended(pid_t pid, char *why, size_t size);
// Kills the program and what it has started, unless that has left the group.
void program_kill(pid_t pid);
