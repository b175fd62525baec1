// SPDX-License-Identifier: GPL-2.0-only
// Follows both files of the record by inotify, through their renames.
#include "ctl/control/changelog_follow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/control/changelog_tail.h"
#include "ctl/datapath/bpffs.h"

#define PIECE 65536 // bytes; more than a line

struct followed {
	char *path;
	int fd; // -1: the file does not exist yet
	uint64_t at;
	bool entries;
};

struct changelog_follow {
	int notify;
	bool more; // not all is read
	struct followed files[2];
};

// ---- the start ----------------------------------------------------------------------------------

void changelog_follow_close(struct changelog_follow *f)
{
	if (!f)
		return;
	for (size_t n = 0; n < ARRAY_SIZE(f->files); n++) {
		fd_close(f->files[n].fd);
		free(f->files[n].path);
	}
	fd_close(f->notify);
	free(f);
}

static void close_follow(struct changelog_follow **f)
{
	changelog_follow_close(*f);
}

static int watch_folder(struct changelog_follow *f, const char *instance, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", WEIR_STATE_FOLDER, instance);

	f->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (f->notify < 0)
		return err_system(err, errno, "cannot follow changes");
	if (inotify_add_watch(f->notify, folder, IN_MODIFY | IN_CREATE | IN_MOVED_TO) >= 0)
		return 0;
	if (errno != ENOENT)
		return err_system(err, errno, "cannot follow '%s'", folder);
	err_refused(err, "instance '%s' has no record of changes", instance);
	err_hint(err, "weir attach begins it");
	return -ENOENT;
}

// A line that is not complete is not yet one of those so far.
static void end_at_line(struct changelog_tail *t)
{
	char text[CHANGELOG_LINE];
	uint64_t size = t->sizes[1];
	size_t want = size < sizeof(text) ? (size_t)size : sizeof(text);
	ssize_t len = want ? pread(t->fds[1], text, want, (off_t)(size - want)) : 0;
	const char *newline = len > 0 ? memrchr(text, '\n', (size_t)len) : NULL;

	if (newline)
		t->sizes[1] = size - want + (size_t)(newline - text) + 1;
}

int changelog_follow_open(const char *instance, const struct changelog_choice *choice,
			  struct changelog_follow **ret, struct changelog *ret_before,
			  struct err *err)
{
	CLEANUP(close_follow) struct changelog_follow *f = mem_new(struct changelog_follow);
	CLEANUP_CHANGELOG_TAIL struct changelog_tail others = {.fds = {-1, -1}};
	CLEANUP_CHANGELOG_TAIL struct changelog_tail entries = {.fds = {-1, -1}};
	struct changelog_tail *const tails[] = {&others, &entries};
	int code;

	*f = (struct changelog_follow){.notify = -1, .files = {{.fd = -1}, {.fd = -1}}};
	if ((code = watch_folder(f, instance, err)))
		return code;
	for (size_t n = 0; n < ARRAY_SIZE(f->files); n++) {
		if ((code = changelog_tail_open(instance, n, tails[n], err)))
			return code;
		end_at_line(tails[n]);
	}
	if (ret_before && (code = changelog_read_tails((struct changelog_tail[]){others, entries},
						       choice, ret_before, err)))
		return code;
	for (size_t n = 0; n < ARRAY_SIZE(f->files); n++)
		f->files[n] = (struct followed){.path = changelog_path(instance, n, false),
						.fd = TAKE_FD(tails[n]->fds[1]),
						.at = tails[n]->sizes[1],
						.entries = n};
	*ret = TAKE_PTR(f);
	return 0;
}

// ---- new changes --------------------------------------------------------------------------------

int changelog_follow_fd(const struct changelog_follow *f)
{
	return f->notify;
}

// Reads a piece. A piece without a newline is not a line of ours. Returns whether more may
// follow.
static bool read_new(struct followed *file, const struct changelog_choice *wants,
		     struct changelog *ret)
{
	const struct changelog_lines lines = {.choice = wants, .entries = file->entries};
	CLEANUP_FREE char *text = mem_zalloc(PIECE, 1);
	struct stat st;
	ssize_t len;
	size_t used = 0;

	if (file->fd < 0)
		return false;
	len = pread(file->fd, text, PIECE, (off_t)file->at);
	if (len > 0)
		used = changelog_take_lines(&lines, text, (size_t)len, ret);
	if (!used && len == PIECE)
		used = PIECE;
	file->at += used;
	// The end of a line that was not complete was taken back.
	if (!fstat(file->fd, &st) && file->at > (uint64_t)st.st_size)
		file->at = (uint64_t)st.st_size;
	return len == PIECE;
}

static bool was_renamed(const struct followed *file)
{
	struct stat now, open;

	if (stat(file->path, &now))
		return false;
	return file->fd < 0 || fstat(file->fd, &open) || now.st_ino != open.st_ino ||
	       now.st_dev != open.st_dev;
}

// Only a file is followed.
static void open_file(struct followed *file)
{
	struct stat st;

	fd_close(file->fd);
	file->at = 0;
	file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (file->fd >= 0 && (fstat(file->fd, &st) || !S_ISREG(st.st_mode))) {
		close(file->fd);
		file->fd = -1;
	}
}

int changelog_follow_wait(struct changelog_follow *f, int wait_ms,
			  const struct changelog_choice *wants, struct changelog *ret,
			  bool *ret_more, struct err *err)
{
	struct pollfd events = {.fd = f->notify, .events = POLLIN};
	char skipped[4096];

	if (poll(&events, 1, f->more ? 0 : wait_ms) < 0 && errno != EINTR)
		return err_system(err, errno, "cannot wait for changes");
	while (read(f->notify, skipped, sizeof(skipped)) > 0)
		;
	f->more = false;
	for (size_t n = 0; n < ARRAY_SIZE(f->files); n++) {
		struct followed *file = &f->files[n];
		bool more = read_new(file, wants, ret);

		if (!more && was_renamed(file)) {
			open_file(file);
			more = file->fd >= 0;
		}
		f->more = f->more || more;
	}
	*ret_more = f->more;
	return 0;
}
