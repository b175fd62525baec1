// SPDX-License-Identifier: GPL-2.0-only
// Records what the agent itself changes, for `weir changes`.
//
// The loop does not wait for the file: a change that finds it locked is recorded a moment later,
// with the time at which it was made. Of those that wait, at most 1,000 are kept; more are counted
// as lost.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct agent;

// Strings are copied. why, origin: NULL: none.
struct record_change {
	const char *part; // it names the author: "health" is "agent (health)"
	const char *verb; // "backend", "expire"
	const char *what; // "backend web 10.1.0.11 is down"
	const char *why;  // a reason, or what follows
	bool entries;     // it is kept among the changes of entries
	bool failed;      // else it is done
	uint64_t added, removed;
};

void record_change(struct agent *a, const struct record_change *c);
// The same in a copy of the agent, which may wait for the file.
void record_change_here(const struct agent *a, const struct record_change *c);
