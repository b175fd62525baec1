// SPDX-License-Identifier: GPL-2.0-only
// When a long operation has a line on the terminal, and what is in it. Pure: the caller has the
// clock, in milliseconds.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/text.h"

#define PROGRESS_FIRST_MS 1000 // until an operation has a line
#define PROGRESS_EACH_MS  1000 // from then on the time in the line advances

struct progress_line {
	char what[256]; // "": no operation runs
	uint64_t since_ms, ended_ms, logged_ms;
	bool ended, logged; // ever
};

// The operation that runs now; NULL: none. Operations that follow each other closely share a time,
// so that a command of many short ones has a line, too.
void progress_line_tell(struct progress_line *l, const char *what, uint64_t now_ms);
// A message has been printed: a while passes until the line is shown again after it.
void progress_line_logged(struct progress_line *l, uint64_t now_ms);
// When the line is to be drawn next, after drawn_ms; UINT64_MAX: no operation runs.
uint64_t progress_line_due_ms(const struct progress_line *l, uint64_t drawn_ms);
// The line at this time in at most `columns` - 1 cells, of ASCII; "" while the operation is short.
void progress_line_write(const struct progress_line *l, uint64_t now_ms, size_t columns,
			 struct text *ret);
