// SPDX-License-Identifier: GPL-2.0-only
// inotify on the folders of paths, and a sum of the stat(2) results of the files.
#include "ctl/agent/watches.h"

#include <errno.h>
#include <event2/event.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/task.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"
#include "ctl/base/text.h"
#include "ctl/net/loop.h"

#define LINKS_MAX     40 // as the kernel follows
#define READS_AT_ONCE 16 // events, which anyone who can write to a folder of the path can cause
#define EVENTS                                                                                   \
	(IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE | IN_DELETE_SELF | \
	 IN_MOVE_SELF)

struct step { // a name in a folder that is on the way to a file
	int watch;
	char *name; // or a pattern
};

struct steps { // as VEC(struct step)
	struct step *at;
	size_t n, cap;
};

struct watches {
	int inotify;
	struct event *events;
	struct agent_task compare;
	struct watches_paths paths;
	struct steps steps;
	sum_text seen; // of the files
	void (*changed)(void *ctx);
	void *ctx;
};

void watches_paths_free(struct watches_paths *paths)
{
	vec_each (&paths->all, path)
		free(*path);
	vec_free(&paths->all);
}

// ---- what is watched ----------------------------------------------------------------------------

static void add_step(struct watches *w, const char *folder, const char *name)
{
	int watch = inotify_add_watch(w->inotify, folder, EVENTS | IN_ONLYDIR);

	if (watch < 0)
		return; // the folder does not exist: the one above it is watched
	vec_each (&w->steps, step)
		if (step->watch == watch && !strcmp(step->name, name))
			return;
	vec_push(&w->steps, ((struct step){watch, mem_strdup(name)}));
}

static void add_path(struct watches *w, const char *path, unsigned links);

// The rest of the way after a link.
static void follow_link(struct watches *w, const char *folder, const char *link, const char *rest,
			unsigned links)
{
	char target[PATH_MAX];
	ssize_t len = readlink(link, target, sizeof(target) - 1);
	CLEANUP_FREE char *path = NULL;

	if (len <= 0)
		return;
	target[len] = '\0';
	if (target[0] == '/')
		path = mem_printf("%s%s", target, rest);
	else
		path = mem_printf("%s/%s%s", folder, target, rest);
	add_path(w, path, links + 1);
}

static bool is_link(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISLNK(st.st_mode);
}

// An absolute path, step by step.
static void add_path(struct watches *w, const char *path, unsigned links)
{
	CLEANUP_TEXT struct text folder = {0};

	if (links > LINKS_MAX)
		return;
	for (const char *at = path; *at;) {
		CLEANUP_FREE char *name = NULL;
		CLEANUP_FREE char *here = NULL;
		size_t len;

		at += strspn(at, "/");
		len = strcspn(at, "/");
		if (!len)
			return;
		name = mem_strndup(at, len);
		here = mem_printf("%s/%s", text_get(&folder), name);
		add_step(w, folder.len ? folder.at : "/", name);
		at += len;
		if (is_link(here))
			return follow_link(w, text_get(&folder), here, at, links);
		text_addf(&folder, "/%s", name);
	}
}

static bool is_watched(const struct watches *w, int watch)
{
	vec_each (&w->steps, step)
		if (step->watch == watch)
			return true;
	return false;
}

// Watches of folders that are still on a path are kept: a new watch of a folder with many files
// takes milliseconds.
static void watch_all(struct watches *w)
{
	struct steps before = w->steps;

	w->steps = (struct steps){0};
	vec_each (&w->paths.all, path)
		add_path(w, *path, 0);
	vec_each (&before, step) {
		if (!is_watched(w, step->watch))
			inotify_rm_watch(w->inotify, step->watch); // may be gone, with the folder
		free(step->name);
	}
	vec_free(&before);
}

// ---- what has changed ---------------------------------------------------------------------------

static void add_file(struct text *t, const char *path)
{
	struct stat st;

	text_addf(t, "%s", path);
	if (!stat(path, &st))
		text_addf(t, " %llu %llu %lld %lld.%ld %lld.%ld", (unsigned long long)st.st_dev,
			  (unsigned long long)st.st_ino, (long long)st.st_size,
			  (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
			  (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	text_addc(t, '\n');
}

static void sum_files(const struct watches *w, sum_text ret)
{
	CLEANUP_TEXT struct text t = {0};

	vec_each (&w->paths.all, path) {
		glob_t found = {0};

		if (!glob(*path, GLOB_NOCHECK, NULL, &found))
			for (size_t i = 0; i < found.gl_pathc; i++)
				add_file(&t, found.gl_pathv[i]);
		globfree(&found);
	}
	sum_of(text_get(&t), t.len, ret);
}

// The folders first: what changes after that is an event again.
static int compare(void *watches, struct err *err)
{
	struct watches *w = watches;
	sum_text now;

	watch_all(w);
	sum_files(w, now);
	if (!strcmp(now, w->seen))
		return 0;
	memcpy(w->seen, now, sizeof(now));
	w->changed(w->ctx);
	return 0;
}

static bool concerns(const struct watches *w, const struct inotify_event *e)
{
	if (!e->len)
		return !(e->mask & IN_IGNORED);
	vec_each (&w->steps, step)
		if (step->watch == e->wd && !fnmatch(step->name, e->name, 0))
			return true;
	return false;
}

static void on_events(evutil_socket_t fd, short what, void *watches)
{
	_Alignas(struct inotify_event) char events[4096];
	struct watches *w = watches;
	bool any = false;
	ssize_t len;

	for (int n = 0; n < READS_AT_ONCE && (len = read(fd, events, sizeof(events))) > 0; n++)
		for (char *at = events; at < events + len;
		     at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len)
			any = any || concerns(w, (struct inotify_event *)at);
	if (any)
		agent_task_in(&w->compare, WATCHES_JOIN_MS);
}

// ---- start and end ------------------------------------------------------------------------------

void watches_free(struct watches *w)
{
	if (!w)
		return;
	vec_each (&w->steps, step)
		free(step->name);
	vec_free(&w->steps);
	watches_paths_free(&w->paths);
	loop_event_free(w->events);
	agent_task_free(&w->compare);
	fd_close(w->inotify);
	free(w);
}

static void cleanup(struct watches **w)
{
	watches_free(*w);
}

int watches_new(struct agent *a, void (*changed)(void *ctx), void *ctx, struct watches **ret,
		struct err *err)
{
	CLEANUP(cleanup) struct watches *w = mem_new(struct watches);

	w->changed = changed;
	w->ctx = ctx;
	w->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->inotify < 0)
		return err_system(err, errno, "cannot use inotify");
	agent_task_init(&w->compare, a, "compare watched files", compare, w);
	w->events = loop_event(a->loop, w->inotify, EV_READ | EV_PERSIST, on_events, w);
	if (!w->events || event_add(w->events, NULL))
		return err_system(err, ENOMEM, "cannot register an event");
	*ret = TAKE_PTR(w);
	return 0;
}

static char *absolute(const char *path)
{
	char here[PATH_MAX];

	if (path[0] == '/' || !getcwd(here, sizeof(here)))
		return mem_strdup(path);
	return mem_printf("%s/%s", here, path);
}

void watches_set(struct watches *w, const struct watches_paths *paths)
{
	watches_paths_free(&w->paths);
	vec_each (&paths->all, path)
		vec_push(&w->paths.all, absolute(*path));
	watch_all(w);
	sum_files(w, w->seen);
}
