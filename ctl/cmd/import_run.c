// SPDX-License-Identifier: GPL-2.0-only
// Starts nft and its like. Files in memory are their input and output.
#include "ctl/cmd/import_run.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/time.h"
#include "ctl/net/program.h"

int import_leave(struct err *err)
{
	int code;

	if (!unshare(CLONE_NEWNET))
		return 0;
	code = err_system(err, errno, "cannot make a network namespace for nft");
	if (err->code == EPERM)
		err_hint(err, "run as root, or give the JSON of nft -j list ruleset");
	return code;
}

static bool find_program(const char *name, char *path, size_t size)
{
	static const char *const folders[] = {"/usr/sbin", "/sbin", "/usr/bin", "/bin",
					      "/usr/local/sbin"};

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		snprintf(path, size, "%s/%s", folders[i], name);
		if (!access(path, X_OK))
			return true;
	}
	return false;
}

static int file_with(const char *text, size_t len)
{
	int fd = memfd_create("import", MFD_CLOEXEC);

	for (size_t done = 0; fd >= 0 && done < len;) {
		ssize_t n = write(fd, text + done, len - done);

		if (n <= 0)
			return fd_close(fd);
		done += (size_t)n;
	}
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

static void read_back(int fd, struct text *ret)
{
	char part[4096];
	ssize_t n;

	lseek(fd, 0, SEEK_SET);
	while ((n = read(fd, part, sizeof(part))) > 0)
		text_addn(ret, part, (size_t)n);
}

static int wait_for(pid_t pid, int pidfd, unsigned seconds, char *why, size_t size)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	uint64_t end = time_s(CLOCK_MONOTONIC) + seconds;

	while (!program_ended(pid, why, size) && time_s(CLOCK_MONOTONIC) < end)
		if (pidfd < 0 || poll(&p, 1, 1000) < 0)
			usleep(1000);
	if (!program_ended(pid, why, size)) {
		program_kill(pid);
		snprintf(why, size, "did not end within %u %s", seconds,
			 num_plural(seconds, "second", "seconds"));
	}
	waitpid(pid, NULL, 0);
	return why[0] ? -EINVAL : 0;
}

static int report(const char *name, const char *why, int errors, struct err *err)
{
	CLEANUP_TEXT struct text said = {0};
	const char *text;

	read_back(errors, &said);
	text = text_get(&said);
	if (!text[0])
		return err_input(err, "%s %s", name, why);
	return err_input(err, "%s: %.*s", name, (int)strcspn(text, "\n"), text);
}

int import_run(const char *const *words, const char *package, const char *input, size_t len,
	       unsigned seconds, struct text *ret, struct err *err)
{
	static const char *const environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
						  NULL};
	CLEANUP_FD int in = file_with(input, len), out = file_with("", 0),
		       errors = file_with("", 0);
	const char *arguments[8] = {0};
	char path[64], why[64] = "";
	int pidfd = -1, code;
	pid_t pid;

	if (!find_program(words[0], path, sizeof(path)))
		return err_input(err, "%s is not installed (package %s)", words[0], package);
	if (in < 0 || out < 0 || errors < 0)
		return err_system(err, errno, "cannot hold the text in memory");
	arguments[0] = path;
	for (size_t i = 1; words[i] && i + 1 < ARRAY_SIZE(arguments); i++)
		arguments[i] = words[i];
	code = program_start(arguments, environment, &(struct program_files){in, out, errors}, &pid,
			     &pidfd);
	if (code)
		return err_system(err, -code, "cannot start %s", path);
	code = wait_for(pid, pidfd, seconds, why, sizeof(why));
	fd_close(pidfd);
	if (code)
		return report(words[0], why, errors, err);
	read_back(out, ret);
	return 0;
}
