// SPDX-License-Identifier: GPL-2.0-only
// List files: one address, prefix, range or host name per line; files may have millions of lines.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/policy/cidr.h"

struct list_options {
	bool lax;      // bad lines are counted and ignored
	bool wide;     // prefixes shorter than /8 or /16 and loopback are accepted
	uint16_t file; // for the locations
};

struct list_name {
	const char *name; // normal form, in the list's pool
	uint32_t line;
};

struct list_problem {
	uint32_t line;           // 0: about the whole file
	const char *what, *hint; // hint: NULL or a sentence
};

struct list {
	struct cidr_set set; // as read: not sorted
	VEC(struct list_name) names;
	uint64_t good, bad; // lines
	VEC(struct list_problem)
	problems;        // the first ones of the bad lines, or why the file is refused
	bool refused;    // a file of another kind, or too many names
	uint32_t mapped; // line of the first ::ffff:A.B.C.D, 0: none
	struct arena arena;
};

// Reads the whole text. Whether a file with bad lines is refused is decided by the caller.
void list_read(struct list *l, const char *text, size_t len, const struct list_options *options);
void list_free(struct list *l);
