// SPDX-License-Identifier: GPL-2.0-only
// What the plans of the agent share: modules that decide what is done next, without side effects.
//
// A plan gets the time, events and results, and yields actions, the next time, and messages, which
// the part of the agent carries out. It reads no clock and starts nothing.
#pragma once

#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/vec.h"

struct plan_now {
	uint64_t ms;     // monotonic
	uint64_t wall_s; // since 1970
};
struct plan_now plan_now(void);

struct plan_message {
	void (*log)(const char *fmt, ...); // of base/log.h
	char *text;
};
struct plan_messages {
	struct plan_message *at;
	size_t n, cap;
};
__attribute__((format(printf, 3, 4))) void plan_say(struct plan_messages *to,
						    void (*log)(const char *fmt, ...),
						    const char *fmt, ...);
// Logs them and forgets them. A plan frees what its part has not logged.
void plan_log(struct plan_messages *from);
void plan_messages_free(struct plan_messages *m);

// The state of random numbers, not 0. 0 or -errno with err set.
int plan_random(uint64_t *ret, struct err *err);
// 0 to bound - 1; 0 for the bound 0.
uint64_t plan_random_below(uint64_t *state, uint64_t bound);
