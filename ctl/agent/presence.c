// SPDX-License-Identifier: GPL-2.0-only
// The lock and the report of an agent, in the run folder of its instance.
#include "ctl/agent/presence.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ctl/agent/heart.h"
#include "ctl/agent/notify.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lock.h"

#define REPORT_MAX   (16u << 20)
#define ORPHAN_MS    20
#define ORPHAN_TRIES 100

static char *path_of(const char *instance, const char *name)
{
	return mem_printf("%s/%s/%s", WEIR_RUN_FOLDER, instance, name);
}

static uint64_t pid_in(int fd)
{
	uint64_t pid = 0;
	char text[32];
	ssize_t len = pread(fd, text, sizeof(text), 0);

	// A file without the end of the line is being written.
	if (len < 2 || text[len - 1] != '\n' ||
	    num_parse_u64(text, (size_t)len - 1, 1, UINT32_MAX, &pid))
		return 0;
	return pid;
}

static int refuse_second(int fd, const char *instance, struct err *err)
{
	uint64_t pid = pid_in(fd);
	CLEANUP_FREE char *who =
		pid ? mem_printf(", pid %llu", (unsigned long long)pid) : mem_strdup("");

	err_refused(err, "instance '%s' has an agent already%s", instance, who);
	err_hint(err, "weir status shows it; -n NAME is for another instance");
	return -EBUSY;
}

static bool holder_lives(int fd)
{
	uint64_t pid = pid_in(fd);

	return !pid || !kill((pid_t)pid, 0) || errno != ESRCH;
}

// A child that a killed agent was just starting has the lock too, until it is a program of its own.
static int take_lock(int fd)
{
	const struct timespec pause = {.tv_nsec = ORPHAN_MS * 1000000L};

	for (int n = 0; flock(fd, LOCK_EX | LOCK_NB); n++) {
		if (errno != EWOULDBLOCK || n == ORPHAN_TRIES || holder_lives(fd))
			return -errno;
		nanosleep(&pause, NULL);
	}
	return 0;
}

// weir forget --all may have removed the file before it was locked.
static bool is_at(int fd, const char *path)
{
	struct stat mine, there;

	return !fstat(fd, &mine) && !stat(path, &there) && mine.st_dev == there.st_dev &&
	       mine.st_ino == there.st_ino;
}

int presence_take(const char *instance, int *ret_fd, struct err *err)
{
	CLEANUP_FREE char *folder = path_of(instance, "");
	CLEANUP_FREE char *path = path_of(instance, "agent");
	CLEANUP_FREE char *text = mem_printf("%d\n", getpid());
	CLEANUP_FD int fd = -1;
	int code = file_mkdirs(folder, 0755, err);

	if (code)
		return code;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_system(err, errno, "cannot open '%s'", path);
	if ((code = take_lock(fd)))
		return code == -EWOULDBLOCK ? refuse_second(fd, instance, err)
					    : err_system(err, -code, "cannot lock '%s'", path);
	if (!is_at(fd, path))
		return err_refused(err, "'%s' was removed by another command", path);
	if (ftruncate(fd, 0) || pwrite(fd, text, strlen(text), 0) < 0)
		return err_system(err, errno, "cannot write '%s'", path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int presence_report(const char *instance, const struct json *report, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance, "agent.json");
	CLEANUP_TEXT struct text text = {0};

	json_print(report, false, &text);
	return file_replace(path, text.at, text.len, 0600, err);
}

void presence_leave(const char *instance, const char *file, const struct err *why)
{
	CLEANUP_JSON struct json *report = json_object();
	CLEANUP_FREE char *unit = notify_unit();

	json_set(report, "ended_s", json_u64((uint64_t)time(NULL)));
	json_set(report, "unit", unit ? json_string(unit) : json_nothing());
	json_set(report, "file", file ? json_string(file) : json_nothing());
	json_set(report, "error", why ? json_string(why->text) : json_nothing());
	presence_report(instance, report, NULL);
}

int presence_forget(const char *instance, bool dry_run, bool *ret_any, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance, "agent.json");
	CLEANUP_PRESENCE struct presence p;

	presence_read(instance, &p);
	*ret_any = p.ended || p.killed;
	if (p.runs)
		return err_refused(err, "the agent of instance '%s' runs: its files are in use",
				   instance);
	if (dry_run || !unlink(path) || errno == ENOENT)
		return 0;
	return err_system(err, errno, "cannot remove '%s'", path);
}

static struct json *read_report(const char *instance)
{
	CLEANUP_FREE char *path = path_of(instance, "agent.json");
	CLEANUP_FREE char *text = NULL;
	size_t len;

	return file_read(path, REPORT_MAX, &text, &len, NULL) ? NULL
							      : json_parse(text, len, NULL, 0);
}

void presence_read(const char *instance, struct presence *ret)
{
	CLEANUP_FREE char *path = path_of(instance, "agent");
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	*ret = (struct presence){0};
	if (fd < 0)
		return;
	ret->runs = lock_agent_runs(instance);
	ret->pid = pid_in(fd);
	ret->report = read_report(instance);
	ret->late_ms = ret->runs ? heart_late_ms(instance) : 0;
	ret->ended = !ret->runs && json_get(ret->report, "ended_s");
	ret->killed = !ret->runs && ret->report && !ret->ended;
}

const struct json *presence_part(const struct presence *p, const char *part)
{
	const struct json *parts = p->runs ? json_get(p->report, "parts") : NULL;

	for (size_t n = 0; n < json_length(parts); n++) {
		const char *name = json_get_string(json_at(parts, n), "name");

		if (name && !strcmp(name, part))
			return json_at(parts, n);
	}
	return NULL;
}

void presence_free(struct presence *p)
{
	json_free(p->report);
	*p = (struct presence){0};
}
