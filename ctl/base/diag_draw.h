// SPDX-License-Identifier: GPL-2.0-only
// The two lines under a located error: the line of the file, and a caret under the words.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/text.h"

// The `len` bytes at `offset` in the line text[start..end), which is number `line`.
struct diag_excerpt {
	const char *text;
	size_t start, end;
	size_t offset, len;
	unsigned line;
};

// Adds both lines with their newlines; hint may be NULL.
void diag_draw(struct text *out, const struct diag_excerpt *e, const char *hint, bool color);
