// SPDX-License-Identifier: GPL-2.0-only
// Names, opens and fills files of a capture.
#include "ctl/cmd/capture_files.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/time.h"

#define APPLICATION "weir capture"
#define FLUSH_BYTES (1u << 20)

// ---- names --------------------------------------------------------------------------------------

// Digits of the largest number in a ring.
static int digits_of(uint64_t n)
{
	int digits = 1;

	for (n -= n > 0; n >= 10; n /= 10)
		digits++;
	return digits;
}

// As tcpdump: FILE, FILE1, FILE2; in a ring FILE0, FILE1, with leading zeros.
static char *path_of(const struct capture_files *f, uint64_t number)
{
	if (f->ring)
		return mem_printf("%s%0*llu", f->path, digits_of(f->ring),
				  (unsigned long long)(number % f->ring));
	if (!number)
		return mem_strdup(f->path);
	return mem_printf("%s%llu", f->path, (unsigned long long)number);
}

static int refuse_existing(const char *path, struct err *err)
{
	err_refused(err, "'%s' exists", path);
	return err_hint(err, "--force replaces it");
}

static int refuse_terminal(struct err *err)
{
	err_input(err, "packets are not written to a terminal");
	return err_hint(err, "weir capture -w - | wireshark -k -i -");
}

// A pipe is as good as standard output, /dev/null too.
static bool is_stream(const char *path)
{
	struct stat s;

	return !stat(path, &s) && (S_ISFIFO(s.st_mode) || S_ISCHR(s.st_mode));
}

static bool is_taken(const char *path)
{
	struct stat s;

	return !lstat(path, &s) && !is_stream(path);
}

// Files of a ring are found before the first packet, not when their turn is there.
static int check_ring(const struct capture_files *f, struct err *err)
{
	for (uint64_t n = 0; n < f->ring && !f->force; n++) {
		CLEANUP_FREE char *path = path_of(f, n);

		if (is_taken(path))
			return refuse_existing(path, err);
	}
	return 0;
}

// ---- files --------------------------------------------------------------------------------------

// A file of an earlier round of the ring is ours.
static bool may_replace(const struct capture_files *f)
{
	return f->force || (f->ring && f->number >= f->ring);
}

// The old file may belong to another user, who could then read the new packets.
static int replace_file(const char *path, int *ret_fd, struct err *err)
{
	struct stat s;

	if (!lstat(path, &s) && !S_ISREG(s.st_mode))
		return err_refused(err, "'%s' is not a regular file", path);
	if (unlink(path) && errno != ENOENT)
		return err_system(err, errno, "cannot replace '%s'", path);
	*ret_fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return *ret_fd < 0 ? err_system(err, errno, "cannot replace '%s'", path) : 0;
}

static int open_path(struct capture_files *f, const char *path, struct err *err)
{
	if (is_stream(path))
		f->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	else
		f->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (f->fd >= 0)
		return isatty(f->fd) ? refuse_terminal(err) : 0;
	if (errno != EEXIST)
		return err_system(err, errno, "cannot write '%s'", path);
	return may_replace(f) ? replace_file(path, &f->fd, err) : refuse_existing(path, err);
}

static int open_stdout(struct capture_files *f, struct err *err)
{
	if (isatty(STDOUT_FILENO))
		return refuse_terminal(err);
	f->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return f->fd < 0 ? err_system(err, errno, "cannot write to standard output") : 0;
}

static int begin_file(struct capture_files *f, struct err *err)
{
	CLEANUP_FREE char *path = path_of(f, f->number);
	int code = strcmp(f->path, "-") ? open_path(f, path, err) : open_stdout(f, err);

	if (code)
		return code;
	f->bytes = f->packets = 0;
	f->ifaces.n = 0;
	pcapng_section(&f->pending, APPLICATION, NULL);
	return capture_files_flush(f, err); // a reader sees at once what it reads
}

int capture_files_open(struct capture_files *f, struct err *err)
{
	int code = check_ring(f, err);

	f->fd = -1;
	f->begin_ns = time_ns(CLOCK_REALTIME);
	return code ? code : begin_file(f, err);
}

int capture_files_flush(struct capture_files *f, struct err *err)
{
	int code = f->pending.len ? file_write(f->fd, f->pending.at, f->pending.len) : 0;

	f->bytes += f->pending.len;
	f->pending.len = 0;
	if (code && code != -EPIPE) {
		CLEANUP_FREE char *path = path_of(f, f->number);

		return err_system(err, -code, "cannot write '%s'", path);
	}
	f->ended = code || file_is_unread(f->fd);
	return 0;
}

// The ring belongs to all interfaces: the first one has what it lost.
static void add_statistics(struct capture_files *f, uint64_t lost)
{
	for (size_t n = 0; n < f->ifaces.n; n++) {
		struct pcapng_statistics s = {
			.interface = (uint32_t)n,
			.begin_ns = f->begin_ns,
			.end_ns = time_ns(CLOCK_REALTIME),
			.received = f->ifaces.at[n].packets + (n ? 0 : lost),
			.lost = n ? 0 : lost,
		};

		pcapng_statistics(&f->pending, &s);
	}
}

static int next_file(struct capture_files *f, struct err *err)
{
	int code;

	if ((code = capture_files_flush(f, err)))
		return code;
	close(f->fd);
	f->fd = -1;
	f->number++;
	return begin_file(f, err);
}

// ---- packets ------------------------------------------------------------------------------------

// The number of the device's block, which is written before its first packet.
static uint32_t block_of(struct capture_files *f, uint32_t ifindex)
{
	char name[IF_NAMESIZE];

	for (size_t n = 0; n < f->ifaces.n; n++)
		if (f->ifaces.at[n].ifindex == ifindex)
			return (uint32_t)n;
	if (!if_indextoname(ifindex, name))
		snprintf(name, sizeof(name), "if%u", ifindex);
	pcapng_interface(&f->pending, name, f->snap);
	vec_push(&f->ifaces, ((struct capture_iface){.ifindex = ifindex}));
	return (uint32_t)f->ifaces.n - 1;
}

int capture_files_add(struct capture_files *f, uint32_t ifindex, struct pcapng_packet *packet,
		      struct err *err)
{
	int code;

	if (f->most && f->packets && f->bytes + f->pending.len >= f->most &&
	    (code = next_file(f, err)))
		return code;
	packet->interface = block_of(f, ifindex);
	pcapng_packet(&f->pending, packet);
	f->ifaces.at[packet->interface].packets++;
	f->packets++;
	return f->pending.len >= FLUSH_BYTES ? capture_files_flush(f, err) : 0;
}

int capture_files_end(struct capture_files *f, uint64_t lost, struct err *err)
{
	int code;

	add_statistics(f, lost);
	if ((code = capture_files_flush(f, err)))
		return code;
	code = close(f->fd);
	f->fd = -1;
	return code ? err_system(err, errno, "cannot write '%s'", f->path) : 0;
}

void capture_files_free(struct capture_files *f)
{
	if (f->fd > 0)
		close(f->fd);
	vec_free(&f->ifaces);
	text_free(&f->pending);
}
