// SPDX-License-Identifier: GPL-2.0-only
// Splits a line into words as a shell does, without expanding anything.
//
// Blanks separate words. Text in '…' is literal; in "…" a backslash before '"' or '\' is removed,
// outside of quotes before any character. '#' at the start of a word starts a comment.
#pragma once

#include <stddef.h>

#include "ctl/base/err.h"
#include "ctl/base/vec.h"

struct split {
	char *text; // bytes of the words, each with its NUL
	VEC(char *) words;
};

// *ret is zero before. 0, or -EINVAL with err set.
int split_line(const char *line, size_t len, struct split *ret, struct err *err);
void split_free(struct split *s);
#define CLEANUP_SPLIT CLEANUP(split_free)
