// SPDX-License-Identifier: GPL-2.0-only
// Text from anywhere in a number of cells of a terminal, never more: some characters take two.
//
// The width of a character is known in a locale of UTF-8 only (setlocale()); without utf8, each
// character that is not ASCII is shown as '?'. So are characters that text_shown() refuses, and
// those without a width: terminals do not agree where they begin a cell of their own.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/text.h"

// Cells that the text takes.
size_t cells_width(const char *s, bool utf8);
// Adds exactly `width` cells: the text and blanks after it, or before it. A text that is too long
// is cut, and ends with an ellipsis.
void cells_add(struct text *to, const char *s, size_t width, bool utf8);
void cells_add_right(struct text *to, const char *s, size_t width, bool utf8);
// Adds a cell for each value. The largest value fills its cell, and a value above 0 never looks
// like 0.
void cells_add_spark(struct text *to, const double *values, size_t n, bool utf8);
