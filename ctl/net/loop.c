// SPDX-License-Identifier: GPL-2.0-only
// Measures the time that callbacks take, and the longest one.
#include "ctl/net/loop.h"

#include <event2/event_struct.h>
#include <stdlib.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/base/time.h"

#define CLEARLY_NS 100000 // besides a tenth: the least growth that is reported

struct timed_event {
	struct event event; // the first member: callers have its address
	event_callback_fn run;
	void *ctx;
	const char *name;
};

// There is one loop in a process, in one thread.
static struct {
	const char *running; // NULL: no callback
	struct loop_longest longest;
	uint64_t longest_ns, told_ns;
	void (*tell)(void *ctx);
	void *ctx;
} meter;

// ---- the meter ----------------------------------------------------------------------------------

struct loop_span loop_span_begin(const char *name)
{
	if (meter.running)
		return (struct loop_span){0};
	meter.running = name;
	return (struct loop_span){.name = name, .began_ns = time_ns(CLOCK_THREAD_CPUTIME_ID)};
}

void loop_span_name(const char *name)
{
	if (meter.running)
		meter.running = name;
}

void loop_span_end(struct loop_span *s)
{
	uint64_t took_ns;

	if (!s->name)
		return;
	took_ns = time_ns(CLOCK_THREAD_CPUTIME_ID) - s->began_ns;
	if (took_ns > meter.longest_ns) {
		meter.longest_ns = took_ns;
		meter.longest = (struct loop_longest){.name = meter.running, .us = took_ns / 1000};
	}
	meter.running = NULL;
	if (!meter.tell || took_ns <= meter.told_ns + meter.told_ns / 10 + CLEARLY_NS)
		return;
	meter.told_ns = took_ns;
	meter.tell(meter.ctx);
}

struct loop_longest loop_longest(void)
{
	return meter.longest;
}

void loop_on_longest(void (*tell)(void *ctx), void *ctx)
{
	meter.tell = tell;
	meter.ctx = ctx;
}

// ---- events -------------------------------------------------------------------------------------

// The callback may free the event.
static void on_event(evutil_socket_t fd, short what, void *event)
{
	struct timed_event *e = event;
	struct loop_span span = loop_span_begin(e->name);

	e->run(fd, what, e->ctx);
	loop_span_end(&span);
}

struct event *loop_event_new(struct event_base *base, evutil_socket_t fd, short what,
			     event_callback_fn run, void *ctx, const char *name)
{
	struct timed_event *e = mem_new(struct timed_event);

	*e = (struct timed_event){.run = run, .ctx = ctx, .name = name};
	if (!event_assign(&e->event, base, fd, what, on_event, e))
		return &e->event;
	free(e);
	return NULL;
}

void loop_event_free(struct event *e)
{
	if (!e)
		return;
	event_del(e);
	free(e); // of struct timed_event
}
