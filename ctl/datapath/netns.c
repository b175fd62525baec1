// SPDX-License-Identifier: GPL-2.0-only
// Runs a function in each network namespace that has a name or a process.
#include "ctl/datapath/netns.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"

#define NAMED "/run/netns"

struct netns_seen {
	dev_t device;
	ino_t inode;
};

struct netns_walk {
	int (*visit)(void *ctx, const char *name);
	void *ctx;
	VEC(struct netns_seen) seen;
	int code;
};

static bool is_new(struct netns_walk *w, const struct stat *st)
{
	vec_each (&w->seen, one)
		if (one->device == st->st_dev && one->inode == st->st_ino)
			return false;
	vec_push(&w->seen, ((struct netns_seen){.device = st->st_dev, .inode = st->st_ino}));
	return true;
}

static void enter(struct netns_walk *w, const char *path, const char *name)
{
	struct stat st;
	CLEANUP_FD int fd = -1;

	if (w->code || stat(path, &st) || !is_new(w, &st))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !setns(fd, CLONE_NEWNET))
		w->code = w->visit(w->ctx, name);
}

static void each_named(struct netns_walk *w)
{
	DIR *dir = opendir(NAMED);
	struct dirent *file;

	while (dir && (file = readdir(dir))) {
		CLEANUP_FREE char *path = mem_printf(NAMED "/%s", file->d_name);

		if (file->d_name[0] != '.')
			enter(w, path, file->d_name);
	}
	if (dir)
		closedir(dir);
}

char *netns_name(ino_t inode)
{
	DIR *dir = opendir(NAMED);
	struct dirent *file;
	char *name = NULL;
	struct stat st;

	while (dir && !name && (file = readdir(dir))) {
		CLEANUP_FREE char *path = mem_printf(NAMED "/%s", file->d_name);

		if (file->d_name[0] != '.' && !stat(path, &st) && st.st_ino == inode)
			name = mem_strdup(file->d_name);
	}
	if (dir)
		closedir(dir);
	return name;
}

static void each_of_processes(struct netns_walk *w)
{
	DIR *dir = opendir("/proc");
	struct dirent *file;

	while (dir && (file = readdir(dir))) {
		CLEANUP_FREE char *path = mem_printf("/proc/%s/ns/net", file->d_name);

		if (file->d_name[0] >= '1' && file->d_name[0] <= '9')
			enter(w, path, path);
	}
	if (dir)
		closedir(dir);
}

// Named ones first: their names are more useful.
static void *walk(void *arg)
{
	struct netns_walk *w = arg;
	struct stat own;

	if (!stat("/proc/thread-self/ns/net", &own))
		is_new(w, &own);
	each_named(w);
	each_of_processes(w);
	return NULL;
}

int netns_visit_others(int (*visit)(void *ctx, const char *name), void *ctx)
{
	struct netns_walk w = {.visit = visit, .ctx = ctx};
	pthread_t thread;
	int code = pthread_create(&thread, NULL, walk, &w);

	if (code)
		return -code;
	pthread_join(thread, NULL);
	vec_free(&w.seen);
	return w.code;
}

int netns_enter(const char *name, int *ret_back, struct err *err)
{
	CLEANUP_FREE char *path = mem_printf(NAMED "/%s", name);
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP_FD int back = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || back < 0 || setns(fd, CLONE_NEWNET))
		return err_system(err, errno, "cannot enter the network namespace '%s'", name);
	*ret_back = TAKE_FD(back);
	return 0;
}

int netns_leave(int back, struct err *err)
{
	return setns(back, CLONE_NEWNET)
		       ? err_system(err, errno, "cannot return to the network namespace")
		       : 0;
}
