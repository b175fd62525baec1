// SPDX-License-Identifier: GPL-2.0-only
// flock() with a deadline, and the name of the process that holds the lock.
#include "ctl/datapath/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"

#define LOCK_WAIT_MS 10000
#define LOCK_TRY_MS  1000
#define LOCK_STEP_MS 10

static int open_lock(const char *instance, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", WEIR_RUN_FOLDER, instance);
	CLEANUP_FREE char *path = mem_printf("%s/lock", folder);
	int fd, code = file_mkdirs(folder, 0755, err);

	if (code)
		return code;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? err_system(err, errno, "cannot open '%s'", path) : fd;
}

static int holder_is(int fd, const char *instance, struct err *err)
{
	char text[256];
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);

	text[len > 0 ? len : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return err_refused(err, "instance '%s' is locked by another command: %s", instance,
			   text[0] ? text : "(unknown)");
}

static int take(int fd, int how, int wait_ms, const char *instance, struct err *err)
{
	const struct timespec step = {.tv_nsec = LOCK_STEP_MS * 1000000};

	for (int waited_ms = 0; flock(fd, how | LOCK_NB); waited_ms += LOCK_STEP_MS) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return err_system(err, errno, "cannot lock instance '%s'", instance);
		if (waited_ms >= wait_ms)
			return holder_is(fd, instance, err);
		nanosleep(&step, NULL);
	}
	return 0;
}

static int lock(const char *instance, int how, int wait_ms, int *ret_fd, struct err *err)
{
	CLEANUP_FD int fd = open_lock(instance, err);
	int code = fd < 0 ? fd : take(fd, how, wait_ms, instance, err);

	if (code)
		return code;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int lock_named(const char *instance, const char *command, int wait_ms, int *ret_fd,
		      struct err *err)
{
	CLEANUP_FREE char *text = mem_printf("pid %d, weir %s\n", getpid(), command);
	int code = lock(instance, LOCK_EX, wait_ms, ret_fd, err);

	if (code)
		return code;
	// Only for the message above: a failure changes nothing.
	if (ftruncate(*ret_fd, 0) || pwrite(*ret_fd, text, strlen(text), 0) < 0)
		errno = 0;
	return 0;
}

int lock_take(const char *instance, const char *command, int *ret_fd, struct err *err)
{
	return lock_named(instance, command, LOCK_WAIT_MS, ret_fd, err);
}

int lock_try(const char *instance, const char *command, int *ret_fd, struct err *err)
{
	return lock_named(instance, command, LOCK_TRY_MS, ret_fd, err);
}

int lock_share(const char *instance, int *ret_fd, struct err *err)
{
	return lock(instance, LOCK_SH, LOCK_WAIT_MS, ret_fd, err);
}
