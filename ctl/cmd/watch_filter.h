// SPDX-License-Identifier: GPL-2.0-only
// The words of `weir watch` that choose events.
#pragma once

#include <stdbool.h>

#include "ctl/base/vec.h"
#include "ctl/cmd/args.h"
#include "ctl/cmd/watch_event.h"

enum watch_test {
	WATCH_FROM,
	WATCH_TO,
	WATCH_RULE,
	WATCH_REASON,
	WATCH_INTERFACE,
	WATCH_DROPS,  // sampled drops
	WATCH_LOGGED, // records of `log`
};

struct watch_condition {
	enum watch_test test;
	bool negated;
	struct prefix prefix; // after from and to
	const char *name;     // after rule, reason and interface; a word of the command line
};

// All conditions must hold; an empty filter shows each event.
struct watch_filter {
	VEC(struct watch_condition) all;
};

// Reads the words of the command line, which must live as long as the filter. 0, or -EINVAL with
// err set.
int watch_filter_read(const struct args *args, struct watch_filter *ret, struct err *err);
void watch_filter_free(struct watch_filter *f);

bool watch_filter_holds(const struct watch_filter *f, const struct watch_event *e);
// Can an event of this kind be shown at all?
bool watch_filter_admits(const struct watch_filter *f, bool logged);
