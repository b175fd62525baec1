// SPDX-License-Identifier: GPL-2.0-only
// flock() that waits in the kernel's queue, with a deadline that restarts whenever the queue
// advances, and the name of the process that holds the lock.
//
// The lock is a folder in the BPF file system, next to the instances, so that it exists before an
// instance does. Processes that share the maps share it too, also in a container with another
// /run/weir. A file in /run/weir names the command that has the lock.
#include "ctl/datapath/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/file_tree.h"
#include "ctl/base/mem.h"
#include "ctl/base/progress.h"
#include "ctl/base/time.h"
#include "ctl/datapath/bpffs.h"

#define LOCK_WAIT_MS 10000 // since the lock last changed hands
#define LOCK_TRY_MS  1000
#define LOCK_TICK_MS 100
#define LOCKS_MAX    (4u << 20) // of /proc/locks

struct lock {
	int folder; // the locked folder
	int note;   // "pid 4711, weir block", of the last command that took the lock to write
};

static void close_both(struct lock *l)
{
	fd_close(l->folder);
	fd_close(l->note);
}

static int open_folder(const char *instance, struct err *err)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s", BPFFS_LOCKS, instance);
	int fd, code = file_mkdirs(path, 0700, err);

	if (code)
		return code;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_system(err, errno, "cannot open '%s'", path) : fd;
}

static int open_note(const char *instance, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", WEIR_RUN_FOLDER, instance);
	CLEANUP_FREE char *path = mem_printf("%s/lock", folder);
	int fd, code = file_mkdirs(folder, 0755, err);

	if (code)
		return code;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? err_system(err, errno, "cannot open '%s'", path) : fd;
}

bool lock_agent_runs(const char *instance)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s/agent", WEIR_RUN_FOLDER, instance);
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
}

// Under the lock of the agent, so that no agent starts in the meantime; presence_take() checks
// whether its file still exists.
void lock_forget(const char *instance)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", WEIR_RUN_FOLDER, instance);
	CLEANUP_FREE char *path = mem_printf("%s/agent", folder);
	CLEANUP_FD int agent = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (agent < 0 || !flock(agent, LOCK_EX | LOCK_NB))
		file_remove_tree(folder, NULL);
}

static bool never_wait, was_taken;

bool lock_was_taken(void)
{
	return was_taken;
}

void lock_never_wait(bool yes)
{
	never_wait = yes;
}

// Does a line of /proc/locks with this text belong to a holder? Lines of waiting processes have an
// arrow.
static bool has_holder(const char *locks, const char *text)
{
	for (const char *at = strstr(locks, text); at; at = strstr(at + 1, text)) {
		const char *line = at;

		while (line > locks && line[-1] != '\n')
			line--;
		if (!memmem(line, (size_t)(at - line), "->", 2))
			return true;
	}
	return false;
}

// Does the process that the note names hold the lock? /proc/locks: "1: FLOCK ADVISORY WRITE PID
// MAJOR:MINOR:INODE 0 EOF", and "1: -> FLOCK …" for who waits: the note may be of a former holder,
// which waits again.
static bool is_holder(const struct lock *l, const char *note)
{
	static const char begin[] = "pid ";
	CLEANUP_FREE char *entry = NULL;
	CLEANUP_FREE char *locks = NULL;
	struct stat st;
	size_t len;

	if (strncmp(note, begin, strlen(begin)) || fstat(l->folder, &st) ||
	    file_read("/proc/locks", LOCKS_MAX, &locks, &len, NULL))
		return false;
	note += strlen(begin);
	entry = mem_printf(" %.*s %02x:%02x:%lu ", (int)strcspn(note, ","), note, major(st.st_dev),
			   minor(st.st_dev), (unsigned long)st.st_ino);
	return has_holder(locks, entry);
}

static int holder_is(const struct lock *l, const char *instance, struct err *err)
{
	char text[256];
	ssize_t len = pread(l->note, text, sizeof(text) - 1, 0);

	text[len > 0 ? len : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	err_refused(err, "instance '%s' is locked by another command: %s", instance,
		    is_holder(l, text) ? text
				       : "one that reads, or one with another " WEIR_RUN_FOLDER
					 ", as in a container");
	return -EAGAIN;
}

static void on_tick(int number)
{
}

// A signal every LOCK_TICK_MS, so that a blocking flock() returns to check the time.
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

// A process that takes the lock to write enters its name in the file.
static bool same_holder(const struct lock *l, struct timespec *last)
{
	struct stat st;
	bool same = fstat(l->note, &st) ||
		    (st.st_mtim.tv_sec == last->tv_sec && st.st_mtim.tv_nsec == last->tv_nsec);

	if (!same)
		*last = st.st_mtim;
	return same;
}

// The kernel wakes waiting processes in the order of their arrival.
static int wait_for(const struct lock *l, int how, unsigned wait_ms, bool renewed,
		    const char *instance, struct err *err)
{
	CLEANUP_PROGRESS unsigned operation =
		progress_begin("waiting for another command on instance '%s'", instance);
	uint64_t until = time_ms(CLOCK_MONOTONIC) + wait_ms;
	struct timespec holder = {0};

	same_holder(l, &holder);
	while (flock(l->folder, how)) {
		if (errno != EINTR)
			return err_system(err, errno, "cannot lock instance '%s'", instance);
		if (renewed && !same_holder(l, &holder))
			until = time_ms(CLOCK_MONOTONIC) + wait_ms;
		if (time_ms(CLOCK_MONOTONIC) >= until)
			return holder_is(l, instance, err);
	}
	return 0;
}

static int take(const struct lock *l, int how, unsigned wait_ms, bool renewed, const char *instance,
		struct err *err)
{
	CLEANUP(tick_no_more) struct ticking ticking = {0};

	if (!flock(l->folder, how | LOCK_NB))
		return 0;
	if (errno != EWOULDBLOCK && errno != EINTR)
		return err_system(err, errno, "cannot lock instance '%s'", instance);
	if (never_wait) { // /proc/locks waits for a grace period of RCU, 10 ms and more
		err_refused(err, "instance '%s' is locked by another command", instance);
		return -EAGAIN;
	}
	if (tick(&ticking))
		return err_system(err, errno, "cannot set a timer");
	return wait_for(l, how, wait_ms, renewed, instance, err);
}

bool lock_wait(int fd, unsigned wait_ms)
{
	uint64_t until = time_ms(CLOCK_MONOTONIC) + wait_ms;
	CLEANUP(tick_no_more) struct ticking ticking = {0};

	if (!flock(fd, LOCK_EX | LOCK_NB))
		return true;
	if (errno != EWOULDBLOCK || !wait_ms || tick(&ticking))
		return false;
	while (flock(fd, LOCK_EX))
		if (errno != EINTR || time_ms(CLOCK_MONOTONIC) >= until)
			return false;
	return true;
}

// For holder_is(), for waiting processes, and for the agent, which reads the maps again. A failure
// changes nothing. The rest of a longer text remains after the newline: truncating it takes some
// milliseconds on a disk.
static void write_note(int note, const char *command)
{
	CLEANUP_FREE char *text = mem_printf("pid %d, weir %s\n", getpid(), command);

	if (pwrite(note, text, strlen(text), 0) < 0)
		errno = 0;
}

// A lock to write has a `command`, which goes into the note.
static int lock(const char *instance, int how, const char *command, unsigned wait_ms, bool renewed,
		int *ret_fd, struct err *err)
{
	CLEANUP(close_both) struct lock l = {.folder = -1, .note = -1};
	int code;

	if ((l.folder = open_folder(instance, err)) < 0)
		return l.folder;
	if ((l.note = open_note(instance, err)) < 0)
		return l.note;
	if ((code = take(&l, how, wait_ms, renewed, instance, err)))
		return code;
	if (command) {
		write_note(l.note, command);
		was_taken = true;
	}
	*ret_fd = TAKE_FD(l.folder);
	return 0;
}

int lock_take(const char *instance, const char *command, int *ret_fd, struct err *err)
{
	return lock(instance, LOCK_EX, command, LOCK_WAIT_MS, true, ret_fd, err);
}

int lock_try(const char *instance, const char *command, int *ret_fd, struct err *err)
{
	return lock(instance, LOCK_EX, command, LOCK_TRY_MS, false, ret_fd, err);
}

int lock_share(const char *instance, int *ret_fd, struct err *err)
{
	return lock(instance, LOCK_SH, NULL, LOCK_WAIT_MS, true, ret_fd, err);
}
