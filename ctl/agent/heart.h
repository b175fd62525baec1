// SPDX-License-Identifier: GPL-2.0-only
// Shows others that the loop of the agent turns, without a system call and without waking the
// machine.
//
// /run/weir/NAME/agent.heart is a page that the agent has mapped. Before each sleep the loop writes
// there when it has turned, and from when on it is late: three times as long as it may sleep at
// most, which is the time of its nearest timer, at least HEART_LEAST_MS and at most HEART_MOST_MS.
// An agent without a nearer timer wakes once in that time.
//
// Times are CLOCK_MONOTONIC, as libevent's timers use: both leave out the time that the machine is
// suspended, so an agent is not late after a resume. With CLOCK_BOOTTIME it would be, until its
// next timer.
#pragma once

#include <stdint.h>

#include "ctl/base/err.h"

#define HEART_LEAST_MS 5000
#define HEART_MOST_MS  60000

struct event_base;
struct heart;

// Makes the page, for an agent that is about to start. The caller has the lock of presence.h. 0 or
// -errno with err set.
int heart_new(const char *instance, struct heart **ret, struct err *err);
void heart_free(struct heart *h);
// Enters the timer into the loop. 0 or -ENOMEM with err set.
int heart_start(struct heart *h, struct event_base *loop, struct err *err);
void heart_stop(struct heart *h);
// Must be called after each turn of the loop. Reads each timer of the loop, at most every tenth of
// a second.
void heart_beat(struct heart *h);

// For others: milliseconds since the loop of a running agent has turned, if it is late; else 0,
// also without a page.
uint64_t heart_late_ms(const char *instance);
