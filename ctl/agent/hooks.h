// SPDX-License-Identifier: GPL-2.0-only
// Tells the program of `weir run --hook PROGRAM` what changes.
//
// Each event is a process: one line of JSON on its standard input. One runs at a time, others wait
// in a queue; an event for which there is no room is counted, and the count is an event of its own.
#pragma once

#include "ctl/base/err.h"

struct agent;

// Strings; NULL: null. They are copied.
struct hook_event {
	const char *event;     // backend, service, trial, feed, alarm, lost
	const char *object;    // what has changed: "web 10.1.0.11", "revision 1014"
	const char *from, *to; // its state
	const char *why;
};

// Without --hook nothing happens.
void hooks_tell(struct agent *a, const struct hook_event *e);
// May the program be run? 0, or -EINVAL with err set.
int hooks_check(const char *program, struct err *err);
