// SPDX-License-Identifier: GPL-2.0-only
// Follows the event ring of the datapath, which has one reader at a time.
#pragma once

#include <stdint.h>

#include "common/event.h"
#include "ctl/datapath/instance.h"

struct events;

typedef void events_visit(void *ctx, const struct event *event);

// Becomes the watcher. -EBUSY with err set (ERR_REFUSED, names its pid) when there is one.
int events_open(const struct instance *i, events_visit *visit, void *ctx, struct events **ret,
		struct err *err);
// Asks the datapath for events for the next few seconds and hands over what comes in within
// timeout_ms; call it again and again. A watcher that dies leaves nothing on: the wish runs out.
// Number of events, or -errno with err set; -EINTR when a signal came.
int events_poll(struct events *e, int timeout_ms, struct err *err);
void events_close(struct events *e);
