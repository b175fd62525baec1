// SPDX-License-Identifier: GPL-2.0-only
// Events of a loop whose callbacks are measured: the loop does nothing else while one runs, so each
// has to be short.
//
// libevent 2.1 has no hook before and after a callback. So events are made here, and a callback
// that libevent calls for something else (a request, a connection) is a span. libevent itself
// reads, parses or writes at most 16 KiB for a client at a time, which is not measured. The time is
// processor time, so it does not depend on other processes.
#pragma once

#include <event2/event.h>
#include <stdint.h>

#ifndef __FILE_NAME__
#define __FILE_NAME__ __FILE__
#endif

// Like event_new() and its forms; NULL: no memory. `run` may free the event.
#define loop_event(base, fd, what, run, ctx) \
	loop_event_new(base, fd, what, run, ctx, __FILE_NAME__ ": " #run)
#define loop_timer(base, run, ctx) loop_event(base, -1, 0, run, ctx)
#define loop_signal(base, number, run, ctx) \
	loop_event(base, number, EV_SIGNAL | EV_PERSIST, run, ctx)
struct event *loop_event_new(struct event_base *base, evutil_socket_t fd, short what,
			     event_callback_fn run, void *ctx, const char *name);
void loop_event_free(struct event *e); // NULL is allowed

// From here to the end of the block is a callback.
#define LOOP_SPAN(name)                                                                   \
	__attribute__((cleanup(loop_span_end), unused)) struct loop_span loop_span_here = \
		loop_span_begin(__FILE_NAME__ ": " name)
struct loop_span {
	const char *name;  // NULL: inside of another, which is measured
	uint64_t began_ns; // of the processor
};
struct loop_span loop_span_begin(const char *name);
void loop_span_end(struct loop_span *s);
// A better name for the callback that runs.
void loop_span_name(const char *name);

// The longest callback of this process so far.
struct loop_longest {
	const char *name; // NULL: none has run
	uint64_t us;
};
struct loop_longest loop_longest(void);
// Calls `tell` after a callback that was clearly longer than all before.
void loop_on_longest(void (*tell)(void *ctx), void *ctx);
