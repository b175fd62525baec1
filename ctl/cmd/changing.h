// SPDX-License-Identifier: GPL-2.0-only
// Records what a command has changed, for weir changes.
#pragma once

#include "ctl/cmd/line.h"

// Called once for each command that ends: records it if it may change the instance, and has taken
// the lock or was refused. code: of the command.
void changing_note(const struct command *c, const struct args *args, const struct context *ctx,
		   int code, const struct err *err);
// The same for entries, for each commit; changing_note then has only failures. Lines of the same
// author, command, origin and list are one change.
void changing_note_entries(const struct batch *b);
// A line of batch --each that was refused, or has failed after its change.
void changing_note_line(const struct context *ctx, const struct batch_line *line,
			const struct err *err);
// For weir status: how many changes could not be recorded, a line only if there are any.
void changing_show_lost(const struct context *ctx);
