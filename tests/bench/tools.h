// SPDX-License-Identifier: GPL-2.0-only
// Runs other programs: weir itself, nft, ip, ethtool.
#pragma once

#include <stdint.h>

struct tool_cost {
	double ns;        // wall clock, from fork to exit
	uint64_t peak_kb; // largest resident size
};

// argv ends in NULL; what it prints is lost. 0, or its exit status, 127 when there is no such
// program. cost may be NULL.
int tool_run(const char *const *argv, struct tool_cost *cost);
// The same, but ends the bench when it fails.
void tool_need(const char *const *argv, struct tool_cost *cost);
