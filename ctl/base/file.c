// SPDX-License-Identifier: GPL-2.0-only
// Whole files: read, and replaced so that a crash leaves the old content or the new one.
#include "ctl/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/base/mem.h"

#define READ_FIRST 65536 // bytes, where the size is not known: pipes, /proc

// The user named the file, so these are mistakes of the input and not of the system.
static int open_error(const char *path, int error, struct err *err)
{
	int code = err_system(err, error, "cannot open '%s'", path);

	if (err && (error == ENOENT || error == EACCES || error == ENOTDIR || error == ELOOP ||
		    error == ENAMETOOLONG))
		err->kind = ERR_INPUT;
	return code;
}

static int check_regular(const char *path, const struct stat *st, bool pipes, struct err *err)
{
	if (S_ISREG(st->st_mode) || (pipes && S_ISFIFO(st->st_mode)))
		return 0;
	if (S_ISDIR(st->st_mode))
		return err_input(err, "cannot read '%s': it is a folder", path);
	return err_input(err, "cannot read '%s': it is not a regular file", path);
}

static int too_large(const char *path, size_t max, struct err *err)
{
	if (max < 1000000)
		return err_input(err, "'%s' is larger than %zu bytes", path, max);
	return err_input(err, "'%s' is larger than %zu MB", path, max / 1000000);
}

// Waits until a pipe has a byte or its writer has closed it: before the first writer opens it,
// read() would report the end. Afterwards read() waits.
static int await_writer(int fd)
{
	struct pollfd pipe = {.fd = fd, .events = POLLIN};
	int flags = fcntl(fd, F_GETFL);

	while (poll(&pipe, 1, -1) < 0)
		if (errno != EINTR)
			return -errno;
	return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? -errno : 0;
}

// O_NONBLOCK: opening a FIFO would wait for its writer. O_NOCTTY: a terminal would become ours.
static int open_to_read(const char *path, size_t max, bool pipes, size_t *ret_expected,
			struct err *err)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	int code;

	if (fd < 0 && errno == ENXIO) // a socket
		return err_input(err, "cannot read '%s': it is not a regular file", path);
	if (fd < 0)
		return open_error(path, errno, err);
	if (fstat(fd, &st) < 0)
		return err_system(err, errno, "cannot read '%s'", path);
	code = check_regular(path, &st, pipes, err);
	if (code < 0)
		return code;
	if ((uintmax_t)st.st_size > max)
		return too_large(path, max, err);
	if (S_ISFIFO(st.st_mode) && (code = await_writer(fd)))
		return err_system(err, -code, "cannot read '%s'", path);
	*ret_expected = (size_t)st.st_size;
	return TAKE_FD(fd);
}

// One read, repeated if a signal interrupts it before the first byte.
static ssize_t read_some(int fd, char *buf, size_t size)
{
	ssize_t n;

	do
		n = read(fd, buf, size);
	while (n < 0 && errno == EINTR);
	return n;
}

// Reads until read() returns 0: a file can grow in the meantime, and files in /proc have no size.
// Asks for one byte more than max, to see whether there is more.
static int read_all(int fd, const char *name, size_t expected, size_t max, char **ret_text,
		    size_t *ret_len, struct err *err)
{
	size_t cap = expected ? expected + 2 : READ_FIRST, len = 0;
	CLEANUP_FREE char *text = mem_realloc(NULL, cap, 1);

	for (;;) {
		ssize_t n = read_some(fd, text + len, cap - len - 1);

		if (n < 0)
			return err_system(err, errno, "cannot read '%s'", name);
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return too_large(name, max, err);
		if (cap - len == 1) {
			cap = cap > SIZE_MAX / 2 ? SIZE_MAX : cap * 2;
			text = mem_realloc(text, cap, 1);
		}
	}
	text[len] = '\0';
	*ret_text = TAKE_PTR(text);
	*ret_len = len;
	return 0;
}

static int read_file(const char *path, size_t max, bool pipes, char **ret_text, size_t *ret_len,
		     struct err *err)
{
	size_t expected = 0;

	if (!strcmp(path, "-"))
		return read_all(STDIN_FILENO, "standard input", 0, max, ret_text, ret_len, err);

	CLEANUP_FD int fd = open_to_read(path, max, pipes, &expected, err);

	if (fd < 0)
		return fd;
	return read_all(fd, path, expected, max, ret_text, ret_len, err);
}

int file_read(const char *path, size_t max, char **ret_text, size_t *ret_len, struct err *err)
{
	return read_file(path, max, false, ret_text, ret_len, err);
}

int file_read_stream(const char *path, size_t max, char **ret_text, size_t *ret_len,
		     struct err *err)
{
	return read_file(path, max, true, ret_text, ret_len, err);
}

static char *staged_path(const char *path)
{
	return mem_printf("%s.new", path);
}

// Adds what a call has written. 0 or -errno.
static int add_written(ssize_t n, size_t *done)
{
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	*done += (size_t)n;
	return n ? 0 : -EIO;
}

int file_write(int fd, const void *bytes, size_t len)
{
	const char *from = bytes;

	for (size_t done = 0; done < len;) {
		int code = add_written(write(fd, from + done, len - done), &done);

		if (code)
			return code;
	}
	return 0;
}

int file_write_at(int fd, const void *bytes, size_t len, uint64_t at)
{
	const char *from = bytes;

	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(fd, from + done, len - done, (off_t)(at + done));
		int code = add_written(n, &done);

		if (code)
			return code;
	}
	return 0;
}

bool file_is_unread(int fd)
{
	struct pollfd end = {.fd = fd};

	return poll(&end, 1, 0) > 0 && end.revents & (POLLERR | POLLHUP);
}

// A left-over of a killed process may have another mode, and the umask has taken bits away.
static int fill_and_sync(int fd, const char *text, size_t len, mode_t mode)
{
	int code;

	if (fchmod(fd, mode) < 0)
		return -errno;
	code = file_write(fd, text, len);
	if (code < 0)
		return code;
	return fsync(fd) < 0 ? -errno : 0;
}

int file_stage(const char *path, const char *text, size_t len, mode_t mode, struct err *err)
{
	CLEANUP_FREE char *staged = staged_path(path);
	int fd, code;

	// O_NONBLOCK: a FIFO of that name is refused (ENXIO) instead of waited for.
	fd = open(staged, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode);
	if (fd < 0)
		return err_system(err, errno, "cannot create '%s'", staged);
	code = fill_and_sync(fd, text, len, mode);
	if (close(fd) < 0)
		code = code ? code : -errno;
	if (code < 0) {
		unlink(staged);
		return err_system(err, code, "cannot write '%s'", staged);
	}
	return 0;
}

// The folder that holds path.
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return mem_strdup(".");
	return mem_strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

// Without this a power cut may bring back the old name after success was reported.
static int sync_folder_of(const char *path, struct err *err)
{
	CLEANUP_FREE char *folder = folder_of(path);
	CLEANUP_FD int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		return err_system(err, errno, "cannot sync the folder '%s'", folder);
	return 0;
}

int file_commit(const char *path, struct err *err)
{
	CLEANUP_FREE char *staged = staged_path(path);

	if (rename(staged, path) < 0)
		return err_system(err, errno, "cannot replace '%s'", path);
	return sync_folder_of(path, err);
}

int file_replace(const char *path, const char *text, size_t len, mode_t mode, struct err *err)
{
	CLEANUP_FREE char *staged = staged_path(path);
	int code = file_stage(path, text, len, mode, err);

	if (code < 0)
		return code;
	code = file_commit(path, err);
	if (code < 0)
		unlink(staged); // does not exist if the folder's sync failed
	return code;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

// mkdir may also return EACCES or EROFS for a folder that exists.
static int make_folder(const char *path, mode_t mode, struct err *err)
{
	int code;

	if (mkdir(path, mode) == 0) {
		if (chmod(path, mode) == 0) // the umask has taken bits away
			return 0;
		return err_system(err, errno, "cannot set the mode of '%s'", path);
	}
	code = errno;
	if (is_folder(path))
		return 0;
	return err_system(err, code == EEXIST ? ENOTDIR : code, "cannot create the folder '%s'",
			  path);
}

#define TRIED_BYTES 4096

int file_try_write(const char *folder)
{
	static const char zeros[TRIED_BYTES];
	CLEANUP_FD int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == EOPNOTSUPP || errno == EISDIR ? 0 : -errno;
	return write(fd, zeros, sizeof(zeros)) < 0 ? -errno : 0;
}

int file_mkdirs(const char *path, mode_t mode, struct err *err)
{
	CLEANUP_FREE char *part = mem_strdup(path);
	char *at = part + strspn(part, "/");

	while (*at) {
		char *end = at + strcspn(at, "/"), kept = *end;
		int code;

		*end = '\0';
		code = make_folder(part, mode, err);
		if (code < 0)
			return code;
		*end = kept;
		at = end + strspn(end, "/");
	}
	return 0;
}

bool file_exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}
