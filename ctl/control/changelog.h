// SPDX-License-Identifier: GPL-2.0-only
// The changes of an instance: a line of JSON for each, bounded in number.
//
// /var/lib/weir/NAME/ has `changes`, and `changes.entries` with the changes of entries, which are
// many. A line is appended with one write under a lock of the file, and is not flushed: the record
// must not delay a change. A file with as many lines as its bound is renamed to FILE.old, so at
// least so many remain. A line that a kill or a full disk has cut, or that is not ours, is skipped
// and counted by readers; the next line begins on a line of its own.
//
// A change never fails for its record. /run/weir/NAME/changes-lost has one byte for each change
// that could not be recorded.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/vec.h"
#include "ctl/control/changelog_line.h"

#define CHANGELOG_LINES   100000
#define CHANGELOG_ENTRIES 10000

// Appends a change; changelog_lost counts it if that fails. The folder of the instance is made for
// a change that is done: a refused command for a name without state leaves nothing.
void changelog_add(const char *instance, const struct changelog_change *c);
// The same for a loop, which does not wait: -EAGAIN, and nothing is counted, if another process has
// locked the file; else 0.
int changelog_try(const char *instance, const struct changelog_change *c);
// Counts a change that is not recorded.
void changelog_add_lost(const char *instance);
// Its file, or the one before it; the caller frees it.
char *changelog_path(const char *instance, bool entries, bool old);
// How many changes could not be recorded since the boot.
uint64_t changelog_lost(const char *instance);

struct changelog {
	VEC(struct changelog_change) list; // oldest first
	uint64_t damaged;                  // lines that are not valid, of those that were read
};
void changelog_free(struct changelog *l);
#define CLEANUP_CHANGELOG CLEANUP(changelog_free)

// Which changes are read.
struct changelog_choice {
	uint64_t since_ms; // wall clock
	size_t last;       // the newest; the files are read from their ends. 0: all
	bool (*wants)(const struct changelog_change *c, const void *ctx); // NULL: all
	const void *ctx;
};

// Changes of entries of one origin within a second are combined. 0 or -errno with err set; a
// missing file has none.
int changelog_read(const char *instance, const struct changelog_choice *choice,
		   struct changelog *ret, struct err *err);

// The authors of changes of backends. The record is read from its end, as far as a question needs.
struct changelog_authors {
	const char *instance;
	struct changelog read;
	uint64_t bytes; // that are read
	bool all;       // nothing precedes them
};
void changelog_authors_free(struct changelog_authors *a);
// Returns the author of the last change of a backend, "web 10.0.0.11", until the next call; NULL:
// not known.
const char *changelog_author(struct changelog_authors *a, const char *backend);
