// SPDX-License-Identifier: GPL-2.0-only
// The loop of `weir top` on a terminal: readings, keys and signals.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/cmd/screen.h"
#include "ctl/control/reading.h"

struct top_view_options {
	const struct context *ctx;
	uint64_t every_ms;
	bool all; // also what has counted nothing
};

// Shows the readings until a key or a signal ends it, or the terminal is closed. A reading that
// fails is shown and repeated. 0 or -errno with err set.
int top_view_run(const struct top_view_options *options, struct rates_reader *reading,
		 struct screen *screen, struct err *err);
// Blocks the signals that top_view_run() reads; must precede screen_open().
void top_view_block_signals(void);
void top_view_unblock_signals(void);
