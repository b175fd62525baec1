// SPDX-License-Identifier: GPL-2.0-only
// Reads the event ring, under a lease in jiffies, and the records of `log`.
#include "ctl/datapath/events.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include <bpf/libbpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/logs.h"
#include "ctl/datapath/reader_lock.h"

#define LEASE_MS 3000
#define LOGS_MS  100 // a record of `log` wakes no reader

struct events {
	const struct instance *instance;
	struct ring_buffer *ring; // NULL: only records of `log` are wanted
	struct logs *logs;        // NULL: not wanted
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

static void one_log(void *ctx, const struct event *event, uint64_t missed)
{
	struct events *e = ctx;
	struct event copy = *event;

	copy.missed = missed < UINT32_MAX ? (uint32_t)missed : UINT32_MAX;
	e->reader.packet(e->reader.ctx, &copy);
}

static int open_ring(struct events *e, struct err *err)
{
	const struct instance *i = e->instance;
	int code = reader_lock(i, "watch", "watched", &e->lock, err);

	if (code)
		return code;
	e->ring = ring_buffer__new(i->events, one_event, e, NULL);
	if (!e->ring)
		return err_system(err, errno, "cannot open the events of instance '%s'", i->name);
	return 0;
}

static __u64 *lease_of(const struct events *e)
{
	struct knobs *knobs = e->instance->knobs;

	return e->reader.out ? &knobs->watch_out : &knobs->watch;
}

static int open_parts(struct events *e, struct err *err)
{
	const struct events_reader *r = &e->reader;
	int code = r->out || !r->no_drops ? open_ring(e, err) : 0;

	if (code)
		return code;
	return r->packet && !r->no_logs ? logs_open(e->instance, LOGS_READ, &e->logs, err) : 0;
}

int events_open(const struct instance *i, const struct events_reader *reader, struct events **ret,
		struct err *err)
{
	struct events *e = mem_new(struct events);
	int code;

	*e = (struct events){.instance = i, .reader = *reader, .lock = -1};
	if ((code = open_parts(e, err))) {
		events_close(e);
		return code;
	}
	*ret = e;
	return 0;
}

static int renew_lease(const struct events *e, struct err *err)
{
	struct clock now;
	int code = instance_clock(e->instance, &now, err);

	if (code)
		return code;
	__atomic_store_n(lease_of(e), clock_after_ms(&now, LEASE_MS), __ATOMIC_RELAXED);
	return 0;
}

static int pause_ms(int ms)
{
	return poll(NULL, 0, ms) < 0 ? -errno : 0;
}

int events_poll(struct events *e, int timeout_ms, struct err *err)
{
	int logged, code = e->ring ? renew_lease(e, err) : 0;

	if (code)
		return code;
	logged = e->logs ? logs_take(e->logs, one_log, e) : 0;
	if (logged)
		timeout_ms = 0;
	else if (e->logs && timeout_ms > LOGS_MS)
		timeout_ms = LOGS_MS;
	code = e->ring ? ring_buffer__poll(e->ring, timeout_ms) : pause_ms(timeout_ms);
	if (code < 0 && code != -EINTR)
		return err_system(err, -code, "cannot read events");
	return code < 0 ? code : code + logged;
}

void events_close(struct events *e)
{
	if (!e)
		return;
	if (e->ring)
		__atomic_store_n(lease_of(e), 0, __ATOMIC_RELAXED);
	ring_buffer__free(e->ring);
	logs_close(e->logs);
	fd_close(e->lock);
	free(e);
}
