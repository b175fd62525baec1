// SPDX-License-Identifier: GPL-2.0-only
// Runs other programs: weir itself, nft, ip, ethtool.
#pragma once

#include <stdint.h>

struct tool_cost {
	double ns;        // wall clock, from fork to exit
	double cpu_ns;    // processor time, user and system
	double first_ns;  // until the first output; only of tool_read
	uint64_t peak_kb; // largest resident size; 0: unknown, less than the bench's own
	char said[256];   // first line of its messages
};

// argv ends with NULL; output is discarded. Returns 0 or the exit status, 127 if the program is not
// found. cost may be NULL.
int tool_run(const char *const *argv, struct tool_cost *cost);
// The same, but the output is read.
int tool_read(const char *const *argv, struct tool_cost *cost);
// The same as tool_run, but ends the bench on failure.
void tool_need(const char *const *argv, struct tool_cost *cost);
