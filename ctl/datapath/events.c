// SPDX-License-Identifier: GPL-2.0-only
// Reads the event ring, under a lease in jiffies.
#include "ctl/datapath/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"

#define LEASE_MS 3000

struct events {
	const struct instance *instance;
	struct ring_buffer *ring;
	struct events_reader reader;
	int lock;
};

static int one_event(void *ctx, void *data, size_t size)
{
	struct events *e = ctx;

	if (size >= sizeof(struct event) && e->reader.packet)
		e->reader.packet(e->reader.ctx, data);
	else if (size == sizeof(struct event_out) && e->reader.out)
		e->reader.out(e->reader.ctx, data);
	return 0;
}

static __u64 *lease_of(const struct events *e)
{
	struct knobs *knobs = e->instance->knobs;

	return e->reader.out ? &knobs->watch_out : &knobs->watch;
}

static int lock_watch(const struct instance *i, int *ret_fd, struct err *err)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s/watch", WEIR_RUN_FOLDER, i->name);
	CLEANUP_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	char pid[16] = "";

	if (fd < 0)
		return err_system(err, errno, "cannot open '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		if (pread(fd, pid, sizeof(pid) - 1, 0) < 0)
			pid[0] = '\0';
		err_refused(err, "instance '%s' is already watched (pid %s)", i->name, pid);
		return -EBUSY;
	}
	if (ftruncate(fd, 0) || dprintf(fd, "%d", getpid()) < 0)
		errno = 0; // the pid is only for the message above
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int events_open(const struct instance *i, const struct events_reader *reader, struct events **ret,
		struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", WEIR_RUN_FOLDER, i->name);
	struct events *e;
	int lock = -1, code = file_mkdirs(folder, 0755, err);

	if (code || (code = lock_watch(i, &lock, err)))
		return code;
	e = mem_new(struct events);
	*e = (struct events){.instance = i, .reader = *reader, .lock = lock};
	e->ring = ring_buffer__new(i->events, one_event, e, NULL);
	if (!e->ring) {
		code = err_system(err, errno, "cannot open the events of instance '%s'", i->name);
		events_close(e);
		return code;
	}
	*ret = e;
	return 0;
}

int events_poll(struct events *e, int timeout_ms, struct err *err)
{
	struct clock now;
	int code = instance_clock(e->instance, &now, err);

	if (code)
		return code;
	__atomic_store_n(lease_of(e), clock_after_ms(&now, LEASE_MS), __ATOMIC_RELAXED);
	code = ring_buffer__poll(e->ring, timeout_ms);
	if (code < 0 && code != -EINTR)
		return err_system(err, -code, "cannot read events");
	return code;
}

void events_close(struct events *e)
{
	if (!e)
		return;
	__atomic_store_n(lease_of(e), 0, __ATOMIC_RELAXED);
	ring_buffer__free(e->ring);
	fd_close(e->lock);
	free(e);
}
