// SPDX-License-Identifier: GPL-2.0-only
// Appends to the record of changes.
#include "ctl/control/changelog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lock.h"

#define LOCK_MS    200
#define NUMBER_KEY "{\"n\":"

char *changelog_path(const char *instance, bool entries, bool old)
{
	return mem_printf("%s/%s/changes%s%s", WEIR_STATE_FOLDER, instance,
			  entries ? ".entries" : "", old ? ".old" : "");
}

static char *lost_of(const char *instance)
{
	return mem_printf("%s/%s/changes-lost", WEIR_RUN_FOLDER, instance);
}

static void make_folder(const char *parent, const char *instance)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s", parent, instance);

	file_mkdirs(path, 0700, NULL);
}

void changelog_add_lost(const char *instance)
{
	CLEANUP_FREE char *path = lost_of(instance);
	CLEANUP_FD int fd = -1;

	make_folder(WEIR_RUN_FOLDER, instance);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && write(fd, ".", 1) < 0)
		errno = 0;
}

uint64_t changelog_lost(const char *instance)
{
	CLEANUP_FREE char *path = lost_of(instance);
	struct stat st;

	return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

// The number of the last line; of a damaged one an estimate from the size, so that the file stays
// bounded. ret_cut: the file does not end with a newline.
static uint64_t last_number(int fd, uint64_t size, bool *ret_cut)
{
	char tail[CHANGELOG_LINE];
	size_t want = size < sizeof(tail) ? (size_t)size : sizeof(tail);
	ssize_t got = pread(fd, tail, want, (off_t)(size - want));
	const char *line, *digits;
	size_t n_digits = 0;
	uint64_t number;

	*ret_cut = got > 0 && tail[got - 1] != '\n';
	if (got <= 0)
		return 0;
	line = memrchr(tail, '\n', (size_t)got - 1);
	line = line ? line + 1 : tail;
	digits = line + strlen(NUMBER_KEY);
	while (digits + n_digits < tail + got && digits[n_digits] >= '0' && digits[n_digits] <= '9')
		n_digits++;
	if (tail + got - line > (ssize_t)strlen(NUMBER_KEY) &&
	    !memcmp(line, NUMBER_KEY, strlen(NUMBER_KEY)) &&
	    !num_parse_u64(digits, n_digits, 1, UINT32_MAX, &number))
		return number;
	return size / 128;
}

// Is the open file still the one of this name, or has another command renamed it?
static bool is_current(const char *path, const struct stat *open)
{
	struct stat now;

	return !stat(path, &now) && now.st_ino == open->st_ino && now.st_dev == open->st_dev;
}

// Half a line is taken back.
static int write_line(int fd, uint64_t size, const char *line)
{
	size_t len = strlen(line);
	ssize_t done = write(fd, line, len);

	if (done == (ssize_t)len)
		return 0;
	if (done > 0 && ftruncate(fd, (off_t)size))
		return -EIO;
	return -ENOSPC;
}

// -EAGAIN: the file was renamed, and the next one has room. -EBUSY: it is locked.
static int append(const char *path, const char *old, const struct changelog_change *c,
		  unsigned wait_ms)
{
	CLEANUP_FD int fd =
		open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	CLEANUP_FREE char *line = NULL, *begun = NULL;
	uint64_t number, most = c->entries ? CHANGELOG_ENTRIES : CHANGELOG_LINES;
	struct stat st;
	bool cut;

	if (fd < 0)
		return -errno;
	if (!lock_wait(fd, wait_ms))
		return -EBUSY;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if (!is_current(path, &st))
		return -EAGAIN;
	number = last_number(fd, (uint64_t)st.st_size, &cut);
	if (number >= most)
		return rename(path, old) ? -errno : -EAGAIN;
	line = changelog_print(c, number + 1);
	begun = mem_printf("%s%s", cut ? "\n" : "", line);
	return write_line(fd, (uint64_t)st.st_size, begun);
}

// A change that is done may be the first of its instance, such as forget, which removes the folder.
static int record(const char *instance, const struct changelog_change *c, unsigned wait_ms)
{
	CLEANUP_FREE char *path = changelog_path(instance, c->entries, false);
	CLEANUP_FREE char *old = changelog_path(instance, c->entries, true);
	bool done = text_same(c->result, CHANGELOG_DONE);
	int code = -EAGAIN;

	for (unsigned tries = 0; code == -EAGAIN && tries < 4; tries++) {
		code = append(path, old, c, wait_ms);
		if (code != -ENOENT || !done)
			continue;
		make_folder(WEIR_STATE_FOLDER, instance);
		code = append(path, old, c, wait_ms);
	}
	return code == -ENOENT && !done ? 0 : code;
}

void changelog_add(const char *instance, const struct changelog_change *c)
{
	int before = errno;

	if (record(instance, c, LOCK_MS))
		changelog_add_lost(instance);
	errno = before;
}

int changelog_try(const char *instance, const struct changelog_change *c)
{
	int before = errno, code = record(instance, c, 0);

	if (code && code != -EBUSY)
		changelog_add_lost(instance);
	errno = before;
	return code == -EBUSY ? -EAGAIN : 0;
}
