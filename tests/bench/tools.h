// SPDX-License-Identifier: GPL-2.0-only
// Runs other programs: weir itself, nft, ip, ethtool.
#pragma once

#include <stdint.h>

struct tool_cost {
	double ns;        // wall clock, from fork to exit
	uint64_t peak_kb; // largest resident size
};

// argv ends with NULL; output is discarded. Returns 0 or the exit status, 127 if the program is not found.
// cost may be NULL.
int tool_run(const char *const *argv, struct tool_cost *cost);
// The same, but ends the bench on failure.
void tool_need(const char *const *argv, struct tool_cost *cost);
