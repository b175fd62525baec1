// SPDX-License-Identifier: GPL-2.0-only
// flock() that waits in the kernel's queue, with a deadline that begins anew whenever the queue advances, and the
// name of the process that holds the lock.
#include "ctl/datapath/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"

#define LOCK_WAIT_MS 10000 // since the lock last changed hands
#define LOCK_TRY_MS  1000
#define LOCK_TICK_MS 100

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

static bool never_wait;

void lock_never_wait(void)
{
	never_wait = true;
}

static int holder_is(int fd, const char *instance, struct err *err)
{
	char text[256];
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);

	text[len > 0 ? len : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	err_refused(err, "instance '%s' is locked by another command: %s", instance,
		    text[0] ? text : "(unknown)");
	return -EAGAIN;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void on_tick(int number)
{
	(void)number;
}

// A signal each LOCK_TICK_MS, so that a blocking flock() returns to look at the time.
struct ticking {
	struct sigaction action;
	struct itimerval timer;
	bool on;
};

static int tick(struct ticking *t)
{
	const struct sigaction action = {.sa_handler = on_tick}; // without SA_RESTART
	const struct itimerval each = {
		.it_interval.tv_usec = LOCK_TICK_MS * 1000,
		.it_value.tv_usec = LOCK_TICK_MS * 1000,
	};

	t->on = !sigaction(SIGALRM, &action, &t->action);
	return t->on ? setitimer(ITIMER_REAL, &each, &t->timer) : -1;
}

static void tick_no_more(struct ticking *t)
{
	if (!t->on)
		return;
	setitimer(ITIMER_REAL, &t->timer, NULL);
	sigaction(SIGALRM, &t->action, NULL);
}

// Who takes the lock to write names itself in the file.
static bool same_holder(int fd, struct timespec *last)
{
	struct stat st;
	bool same = fstat(fd, &st) ||
		    (st.st_mtim.tv_sec == last->tv_sec && st.st_mtim.tv_nsec == last->tv_nsec);

	if (!same)
		*last = st.st_mtim;
	return same;
}

// The kernel wakes who waits in the order in which they came.
static int wait_for(int fd, int how, unsigned wait_ms, bool renewed, const char *instance,
		    struct err *err)
{
	uint64_t until = now_ms() + wait_ms;
	struct timespec holder = {0};

	same_holder(fd, &holder);
	while (flock(fd, how)) {
		if (errno != EINTR)
			return err_system(err, errno, "cannot lock instance '%s'", instance);
		if (renewed && !same_holder(fd, &holder))
			until = now_ms() + wait_ms;
		if (now_ms() >= until)
			return holder_is(fd, instance, err);
	}
	return 0;
}

static int take(int fd, int how, unsigned wait_ms, bool renewed, const char *instance,
		struct err *err)
{
	CLEANUP(tick_no_more) struct ticking ticking = {0};

	if (!flock(fd, how | LOCK_NB))
		return 0;
	if (errno != EWOULDBLOCK && errno != EINTR)
		return err_system(err, errno, "cannot lock instance '%s'", instance);
	if (never_wait)
		return holder_is(fd, instance, err);
	if (tick(&ticking))
		return err_system(err, errno, "cannot set a timer");
	return wait_for(fd, how, wait_ms, renewed, instance, err);
}

static int lock(const char *instance, int how, unsigned wait_ms, bool renewed, int *ret_fd,
		struct err *err)
{
	CLEANUP_FD int fd = open_lock(instance, err);
	int code = fd < 0 ? fd : take(fd, how, wait_ms, renewed, instance, err);

	if (code)
		return code;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int lock_named(const char *instance, const char *command, unsigned wait_ms, bool renewed,
		      int *ret_fd, struct err *err)
{
	CLEANUP_FREE char *text = mem_printf("pid %d, weir %s\n", getpid(), command);
	int code = lock(instance, LOCK_EX, wait_ms, renewed, ret_fd, err);

	if (code)
		return code;
	// Only for the message above and for who waits: a failure changes nothing. What is left of a longer text is
	// after the newline: to cut it off takes some milliseconds on a disk.
	if (pwrite(*ret_fd, text, strlen(text), 0) < 0)
		errno = 0;
	return 0;
}

int lock_take(const char *instance, const char *command, int *ret_fd, struct err *err)
{
	return lock_named(instance, command, LOCK_WAIT_MS, true, ret_fd, err);
}

int lock_try(const char *instance, const char *command, int *ret_fd, struct err *err)
{
	return lock_named(instance, command, LOCK_TRY_MS, false, ret_fd, err);
}

int lock_share(const char *instance, int *ret_fd, struct err *err)
{
	return lock(instance, LOCK_SH, LOCK_WAIT_MS, true, ret_fd, err);
}
