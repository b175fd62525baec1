// SPDX-License-Identifier: GPL-2.0-only
// The clock of programs that are compiled with TEST_CLOCK (xdp/jiffies.bpf.h).
#pragma once

// The map that holds it, jiffies in one entry, to be mapped; -errno: the program has none.
int clock_map(int program);
// The map of this name; -errno: the program has none.
int map_of(int program, const char *name);
