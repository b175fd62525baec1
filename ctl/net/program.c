// SPDX-License-Identifier: GPL-2.0-only
// posix_spawn() with a process group.
#include "ctl/net/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/base/mem.h"

static int set_attributes(posix_spawnattr_t *attr)
{
	sigset_t none, all;
	int code;

	sigemptyset(&none);
	sigfillset(&all);
	code = posix_spawnattr_setpgroup(attr, 0);
	code = code ? code : posix_spawnattr_setsigmask(attr, &none);
	code = code ? code : posix_spawnattr_setsigdefault(attr, &all);
	return code ? code
		    : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETPGROUP |
							     POSIX_SPAWN_SETSIGMASK |
							     POSIX_SPAWN_SETSIGDEF);
}

static int set_files(posix_spawn_file_actions_t *actions, const struct program_files *files)
{
	const int from[] = {files->in, files->out, files->errors};

	for (int fd = 0; fd < (int)ARRAY_SIZE(from); fd++) {
		int code = from[fd] < 0 ? posix_spawn_file_actions_addopen(actions, fd, "/dev/null",
									   O_RDWR, 0)
					: posix_spawn_file_actions_adddup2(actions, from[fd], fd);

		if (code)
			return code;
	}
	return 0;
}

// posix_spawn() takes arrays of its own type, and changes nothing in them.
static char **strings_of(const char *const *from)
{
	size_t n = 0;
	char **to;

	while (from[n])
		n++;
	to = mem_zalloc(n + 1, sizeof(*to));
	memcpy(to, from, n * sizeof(*to));
	return to;
}

static int spawn(const char *const *arguments, const char *const *environment,
		 const posix_spawnattr_t *attr, const posix_spawn_file_actions_t *actions,
		 pid_t *ret)
{
	CLEANUP_FREE char **argv = strings_of(arguments);
	CLEANUP_FREE char **envp = strings_of(environment);

	return posix_spawn(ret, argv[0], actions, attr, argv, envp);
}

int program_start(const char *const *arguments, const char *const *environment,
		  const struct program_files *files, pid_t *ret_pid, int *ret_fd)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int code = posix_spawnattr_init(&attr);

	if (code)
		return -code;
	code = posix_spawn_file_actions_init(&actions);
	if (code) {
		posix_spawnattr_destroy(&attr);
		return -code;
	}
	code = set_attributes(&attr);
	code = code ? code : set_files(&actions, files);
	code = code ? code : spawn(arguments, environment, &attr, &actions, ret_pid);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	if (code)
		return -code;
	*ret_fd = (int)syscall(SYS_pidfd_open, *ret_pid, 0);
	return 0;
}

int program_ended(pid_t pid, char *why, size_t size)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return 0;
	if (info.si_code != CLD_EXITED)
		snprintf(why, size, "was killed by signal %d", info.si_status);
	else if (info.si_status)
		snprintf(why, size, "exited with status %d", info.si_status);
	else
		why[0] = '\0';
	return 1;
}

void program_kill(pid_t pid)
{
	kill(-pid, SIGKILL);
}
