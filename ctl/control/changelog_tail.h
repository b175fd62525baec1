// SPDX-License-Identifier: GPL-2.0-only
// Both files of a kind of changes, the renamed one and the present one, read as one from its end.
#pragma once

#include "ctl/control/changelog.h"

struct changelog_tail {
	int fds[2];        // the renamed file, the present one; -1: missing
	uint64_t sizes[2]; // they are read up to here
	bool entries;
};

// 0 or -errno with err set. Close it also then.
int changelog_tail_open(const char *instance, bool entries, struct changelog_tail *ret,
			struct err *err);
void changelog_tail_close(struct changelog_tail *t);
#define CLEANUP_CHANGELOG_TAIL CLEANUP(changelog_tail_close)

// Which lines are read.
struct changelog_lines {
	const struct changelog_choice *choice;
	const char *having; // a text of the line; NULL: all
	bool entries;
};
// Adds the whole lines of a piece. Returns their bytes.
size_t changelog_take_lines(const struct changelog_lines *l, const char *text, size_t len,
			    struct changelog *ret);
// Adds the changes of the last bytes; one that begins before them is left out. *ret_all: none is.
// 0 or -errno with err set.
int changelog_tail_read(const struct changelog_tail *t, uint64_t bytes,
			const struct changelog_lines *l, struct changelog *ret, bool *ret_all,
			struct err *err);
// changelog_read with opened files: of other kinds than entries, and of entries.
int changelog_read_tails(const struct changelog_tail tails[2],
			 const struct changelog_choice *choice, struct changelog *ret,
			 struct err *err);
