// SPDX-License-Identifier: GPL-2.0-only
// Follows the events of the datapath: drops for one reader at a time, records of `log` for any.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/event.h"
#include "ctl/datapath/instance.h"

struct events;

typedef void events_visit(void *ctx, const struct event *event);
typedef void events_visit_out(void *ctx, const struct event_out *event);

// Who visits: packets, or the refused calls; the other one is NULL.
struct events_reader {
	events_visit *packet;
	bool no_drops, no_logs; // kinds that are not visited
	events_visit_out *out;
	void *ctx;
};

// Opens the ring unless only records of `log` are wanted. -EBUSY with err set (ERR_REFUSED, with
// the pid) when another process reads it.
int events_open(const struct instance *i, const struct events_reader *reader, struct events **ret,
		struct err *err);
// Enables events for the next three seconds and visits those that arrive within timeout_ms; to be
// called repeatedly. If the process dies, the datapath stops writing events by itself. Number of
// events, or -errno with err set; -EINTR after a signal.
int events_poll(struct events *e, int timeout_ms, struct err *err);
void events_close(struct events *e);
