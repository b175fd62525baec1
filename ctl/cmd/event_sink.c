// SPDX-License-Identifier: GPL-2.0-only
// Writes lines to files and pipes, and entries to the journal by its native protocol.
#include "ctl/cmd/event_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ctl/agent/event_log.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/cmd/event_text.h"

#define JOURNAL     "/run/systemd/journal/socket"
#define JOURNAL_ENV "WEIR_JOURNAL" // another socket, for tests
#define MODE        0640           // less what the umask excludes
#define WAIT_MS     1000
#define AGAIN_MS    10

enum event_sink_kind { TO_JOURNAL, TO_STDERR, TO_FILE };

struct event_sink {
	enum event_sink_kind kind;
	const char *path; // the file or the socket
	int fd;           // -1: closed
	bool regular;     // a file, not a pipe
	bool slow;        // its reader was too slow
	bool cut;         // the last line is not complete
};

static enum event_sink_kind kind_of(const char *to)
{
	return !strcmp(to, EVENTS_JOURNAL)  ? TO_JOURNAL
	       : !strcmp(to, EVENTS_STDERR) ? TO_STDERR
					    : TO_FILE;
}

static const char *journal_path(void)
{
	const char *other = getenv(JOURNAL_ENV);

	return other ? other : JOURNAL;
}

// ---- opening ------------------------------------------------------------------------------------

static int refuse_open(const char *path, int code, struct err *err)
{
	if (code == ENXIO)
		return err_stated(err, code, "no process reads the pipe '%s'", path);
	if (code == ELOOP)
		return err_stated(err, code, "'%s' is a symbolic link, which is not followed",
				  path);
	return err_system(err, code, "cannot open '%s'", path);
}

// Without a reader, a named pipe cannot be opened in this way; nothing waits for one.
static int open_file(const char *path, int *ret_fd, struct err *err)
{
	CLEANUP_FD int fd =
		open(path,
		     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		     MODE);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return refuse_open(path, errno, err);
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return err_stated(err, EINVAL, "'%s' is neither a file nor a named pipe", path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int open_socket(int *ret_fd, struct err *err)
{
	const struct timeval wait = {.tv_sec = WAIT_MS / 1000};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_system(err, errno, "cannot make a socket");
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	*ret_fd = fd;
	return 0;
}

static int open_stderr(int *ret_fd, struct err *err)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return err_system(err, errno, "cannot use standard error");
	*ret_fd = fd;
	return 0;
}

static int open_kind(struct event_sink *s, struct err *err)
{
	switch (s->kind) {
	case TO_JOURNAL:
		return open_socket(&s->fd, err);
	case TO_STDERR:
		return open_stderr(&s->fd, err);
	default:
		return open_file(s->path, &s->fd, err);
	}
}

// A crash or a full disk has left a part of a line. The descriptor only writes; a file that cannot
// be read is taken for a whole one.
static bool ends_in_part(int fd, off_t size)
{
	CLEANUP_FREE char *path = mem_printf("/proc/self/fd/%d", fd);
	CLEANUP_FD int readable = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char last;

	return size && readable >= 0 && pread(readable, &last, 1, size - 1) == 1 && last != '\n';
}

static int open_sink(struct event_sink *s, struct err *err)
{
	struct stat st;
	int code;

	if (s->fd >= 0)
		return 0;
	if ((code = open_kind(s, err)))
		return code;
	s->regular = !fstat(s->fd, &st) && S_ISREG(st.st_mode);
	s->cut = s->kind == TO_FILE && s->regular && ends_in_part(s->fd, st.st_size);
	return 0;
}

struct event_sink *event_sink_new(const char *to)
{
	struct event_sink *s = mem_new(struct event_sink);

	*s = (struct event_sink){.kind = kind_of(to), .path = to, .fd = -1};
	if (s->kind == TO_JOURNAL)
		s->path = journal_path();
	return s;
}

static void close_sink(struct event_sink *s)
{
	s->fd = fd_close(s->fd);
	s->cut = false;
}

int event_sink_reopen(struct event_sink *s, struct err *err)
{
	close_sink(s);
	return open_sink(s, err);
}

void event_sink_free(struct event_sink *s)
{
	if (!s)
		return;
	fd_close(s->fd);
	free(s);
}

// ---- lines --------------------------------------------------------------------------------------

static int wait_for_room(int fd, uint64_t until_ms)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};
	uint64_t now_ms = time_ms(CLOCK_MONOTONIC);
	int ms = now_ms < until_ms ? (int)(until_ms - now_ms) : 0;

	return poll(&room, 1, ms) > 0 ? 0 : -EAGAIN;
}

// A pipe takes a piece of this size whole, or refuses it.
static ssize_t write_part(const struct event_sink *s, const char *at, size_t len, uint64_t until_ms)
{
	ssize_t n;

	if (s->regular)
		return write(s->fd, at, len);
	if (wait_for_room(s->fd, until_ms)) {
		errno = EAGAIN;
		return -1;
	}
	n = write(s->fd, at, len < PIPE_BUF ? len : PIPE_BUF);
	if (n < 0 && errno == EAGAIN && time_ms(CLOCK_MONOTONIC) < until_ms) {
		poll(NULL, 0, AGAIN_MS);
		return 0;
	}
	return n;
}

// Returns the bytes that were written; errno has the reason if they are fewer.
static size_t write_all(const struct event_sink *s, const char *at, size_t len, uint64_t until_ms)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write_part(s, at + done, len - done, until_ms);

		if (n < 0 && errno != EINTR)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	return done;
}

// Unless another process has appended a line meanwhile.
static bool take_back(const struct event_sink *s, size_t done)
{
	off_t end = s->kind == TO_FILE && s->regular ? lseek(s->fd, 0, SEEK_CUR) : -1;
	struct stat st;

	return end >= (off_t)done && !fstat(s->fd, &st) && st.st_size == end &&
	       !ftruncate(s->fd, end - (off_t)done);
}

static int fail_line(struct event_sink *s, int code, struct err *err)
{
	s->slow = code == EAGAIN;
	if (code == EPIPE)
		close_sink(s);
	if (code == EAGAIN)
		return err_stated(err, code, "the reader of '%s' is too slow", s->path);
	if (code == EPIPE)
		return err_stated(err, code, "no process reads the pipe '%s'", s->path);
	return err_system(err, code, "cannot write to '%s'", s->path);
}

static int write_line(struct event_sink *s, const char *line, size_t len, struct err *err)
{
	uint64_t until_ms = time_ms(CLOCK_MONOTONIC) + (s->slow ? 0 : WAIT_MS);
	CLEANUP_TEXT struct text all = {0};
	size_t done;
	int code;

	text_add(&all, s->cut ? "\n" : "");
	text_addn(&all, line, len);
	done = write_all(s, all.at, all.len, until_ms);
	code = errno;
	if (done == all.len) {
		s->cut = s->slow = false;
		return 0;
	}
	if (done && !take_back(s, done))
		s->cut = true;
	return fail_line(s, code, err);
}

// ---- the journal --------------------------------------------------------------------------------

static int send_message(struct event_sink *s, struct msghdr *message)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t len = strlen(s->path);

	if (len >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	memcpy(to.sun_path, s->path, len);
	message->msg_name = &to;
	message->msg_namelen = sizeof(to);
	return sendmsg(s->fd, message, MSG_NOSIGNAL | (s->slow ? MSG_DONTWAIT : 0)) < 0 ? -errno
											: 0;
}

// An entry that is too large for a datagram is a sealed file in memory.
static int make_memory(const struct text *fields, int *ret_fd)
{
	CLEANUP_FD int fd = memfd_create("weir-event", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int code;

	if (fd < 0)
		return -errno;
	if ((code = file_write(fd, fields->at, fields->len)))
		return code;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int send_memory(struct event_sink *s, const struct text *fields)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_control = &control, .msg_controllen = sizeof(control)};
	CLEANUP_FD int fd = -1;
	int code = make_memory(fields, &fd);

	if (code)
		return code;
	control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
					.cmsg_type = SCM_RIGHTS,
					.cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	return send_message(s, &message);
}

static int send_entry(struct event_sink *s, const char *line, size_t len, struct err *err)
{
	CLEANUP_TEXT struct text fields = {0};
	struct iovec part;
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	int code;

	event_fields(line, len, &fields);
	part = (struct iovec){.iov_base = fields.at, .iov_len = fields.len};
	code = send_message(s, &message);
	if (code == -EMSGSIZE || code == -ENOBUFS)
		code = send_memory(s, &fields);
	s->slow = code == -EAGAIN;
	if (code == -EAGAIN)
		return err_stated(err, EAGAIN, "the journal is too slow");
	return code ? err_system(err, -code, "cannot send to the journal at '%s'", s->path) : 0;
}

int event_sink_write(struct event_sink *s, const char *line, size_t len, struct err *err)
{
	int code = open_sink(s, err);

	if (code)
		return code;
	return s->kind == TO_JOURNAL ? send_entry(s, line, len, err)
				     : write_line(s, line, len, err);
}

// ---- the check ----------------------------------------------------------------------------------

static int check_file(const char *path, struct err *err)
{
	CLEANUP_FD int fd = -1;
	int code;

	if (path[0] != '/') {
		err_input(err, "--events '%s' is not valid", path);
		return err_hint(err, "journal, stderr, none, or the absolute path of a file");
	}
	code = open_file(path, &fd, err);
	return code == -ENXIO ? 0 : code; // a reader may open the pipe later
}

int event_sink_check(const char *to, struct err *err)
{
	switch (kind_of(to)) {
	case TO_JOURNAL:
		if (access(journal_path(), W_OK))
			return err_system(err, errno, "there is no journal at '%s'",
					  journal_path());
		return 0;
	case TO_FILE:
		return check_file(to, err);
	default:
		return 0;
	}
}
