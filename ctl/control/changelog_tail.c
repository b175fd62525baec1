// SPDX-License-Identifier: GPL-2.0-only
// The last lines of a kind of changes, from both of its files.
#include "ctl/control/changelog_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/base/mem.h"

#define PIECE      65536 // bytes; more than a line
#define COMBINE_MS 1000
#define TRIES      4 // to open files that are renamed at the same time

// ---- files --------------------------------------------------------------------------------------

void changelog_tail_close(struct changelog_tail *t)
{
	fd_close(t->fds[0]);
	fd_close(t->fds[1]);
	t->fds[0] = t->fds[1] = -1;
}

static int open_file(const char *path, int *ret_fd, uint64_t *ret_size, struct err *err)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st))
		return err_system(err, errno, "cannot read '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_refused(err, "cannot read '%s': it is not a file", path);
	*ret_size = (uint64_t)st.st_size;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

// The present file is opened first. If it is renamed before the other one is opened, both are it.
static bool are_one_file(const struct changelog_tail *t)
{
	struct stat old, present;

	return t->fds[0] >= 0 && t->fds[1] >= 0 && !fstat(t->fds[0], &old) &&
	       !fstat(t->fds[1], &present) && old.st_ino == present.st_ino &&
	       old.st_dev == present.st_dev;
}

int changelog_tail_open(const char *instance, bool entries, struct changelog_tail *ret,
			struct err *err)
{
	int tries = 0;

	*ret = (struct changelog_tail){.fds = {-1, -1}, .entries = entries};
	do {
		changelog_tail_close(ret);
		for (int old = 0; old <= 1; old++) {
			CLEANUP_FREE char *path = changelog_path(instance, entries, old);
			int code = open_file(path, &ret->fds[!old], &ret->sizes[!old], err);

			if (code)
				return code;
		}
	} while (are_one_file(ret) && ++tries < TRIES);
	return 0;
}

// ---- lines --------------------------------------------------------------------------------------

// Two changes of entries that one line can name.
static bool are_one(const struct changelog_change *a, const struct changelog_change *b)
{
	return a->origin[0] && !strcmp(a->origin, b->origin) && !strcmp(a->list, b->list) &&
	       !strcmp(a->verb, b->verb) && !strcmp(a->by, b->by) &&
	       !strcmp(a->result, b->result) && b->at_ms >= a->at_ms &&
	       b->at_ms - a->at_ms < COMBINE_MS;
}

static void keep(struct changelog *l, struct changelog_change *c)
{
	struct changelog_change *last = l->list.n ? vec_last(&l->list) : NULL;

	if (last && c->entries && last->entries && are_one(last, c)) {
		last->changes += c->changes;
		last->added += c->added;
		last->removed += c->removed;
		changelog_free_change(c);
		return;
	}
	c->place = l->list.n;
	vec_push(&l->list, *c);
}

static void take_line(const struct changelog_lines *l, const char *line, size_t len,
		      struct changelog *ret)
{
	const struct changelog_choice *choice = l->choice;
	struct changelog_change c;

	if (l->having && !memmem(line, len, l->having, strlen(l->having)))
		return;
	if (len > CHANGELOG_LINE || changelog_parse(line, len, &c)) {
		ret->damaged++;
		return;
	}
	c.entries = l->entries;
	if (c.at_ms < choice->since_ms || (choice->wants && !choice->wants(&c, choice->ctx)))
		changelog_free_change(&c);
	else
		keep(ret, &c);
}

size_t changelog_take_lines(const struct changelog_lines *l, const char *text, size_t len,
			    struct changelog *ret)
{
	size_t at = 0;

	for (const char *end; (end = memchr(text + at, '\n', len - at));) {
		size_t line = (size_t)(end - text) - at;

		take_line(l, text + at, line, ret);
		at += line + 1;
	}
	return at;
}

// Skips what is before the first newline.
static size_t skip_line(const char *text, size_t len)
{
	const char *end = memchr(text, '\n', len);

	return end ? (size_t)(end - text) + 1 : len;
}

// A text without a newline is not a line of ours, if it is as long as a piece or the last one.
static int read_lines(int fd, uint64_t from, uint64_t until, const struct changelog_lines *l,
		      struct changelog *ret)
{
	CLEANUP_FREE char *text = mem_zalloc(PIECE, 1);
	bool begins = !from;

	for (uint64_t at = begins ? 0 : from - 1; at < until;) {
		size_t want = until - at < PIECE ? (size_t)(until - at) : PIECE;
		ssize_t len = pread(fd, text, want, (off_t)at);
		size_t used;

		if (len < 0)
			return -errno;
		if (!len)
			break; // it is shorter now
		used = begins ? 0 : skip_line(text, (size_t)len);
		begins = true;
		used += changelog_take_lines(l, text + used, (size_t)len - used, ret);
		if (!used && (len == PIECE || at + (uint64_t)len >= until)) {
			ret->damaged++;
			used = (size_t)len;
		}
		at += used;
	}
	return 0;
}

int changelog_tail_read(const struct changelog_tail *t, uint64_t bytes,
			const struct changelog_lines *l, struct changelog *ret, bool *ret_all,
			struct err *err)
{
	uint64_t total = t->sizes[0] + t->sizes[1], skip = total > bytes ? total - bytes : 0;

	*ret_all = !skip;
	for (int f = 0; f < 2; f++) {
		uint64_t from = skip < t->sizes[f] ? skip : t->sizes[f];
		int code = 0;

		if (t->fds[f] >= 0)
			code = read_lines(t->fds[f], from, t->sizes[f], l, ret);
		if (code)
			return err_system(err, -code, "cannot read the record of changes");
		skip -= from;
	}
	return 0;
}
