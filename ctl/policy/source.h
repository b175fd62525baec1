// SPDX-License-Identifier: GPL-2.0-only
// The files of a policy: the main file and its includes.
#pragma once

#include <stddef.h>

#include "ctl/base/diag.h"
#include "ctl/base/err.h"
#include "ctl/base/vec.h"
#include "ctl/policy/arena.h"

// Access to files; tests replace it.
struct source_reader {
	// Like file_read of base/file.h.
	int (*read)(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len,
		    struct err *err);
	// The paths that match a pattern, in any order, none is fine; the caller frees each and
	// *ret.
	int (*glob)(void *ctx, const char *pattern, char ***ret, size_t *ret_n, struct err *err);
	void *ctx;
};
extern const struct source_reader source_system; // the file system

struct source {
	const struct source_reader *reader;
	struct diag *diag;
	struct arena *arena;
	VEC(const char *) open; // paths from the main file to the one being read
	size_t files;           // read so far
};

// Where `path`, written in the file `from`, leads: from's folder in front unless it is absolute.
const char *source_path(struct arena *arena, const char *from, const char *path);

// Reads the file that `at` names (no location: the main file) and makes it the innermost open one.
// 0 or -errno with an error queued: unreadable, a loop, too deep, too many.
int source_enter(struct source *s, struct diag_at at, const char *path,
		 const struct diag_file **ret);
void source_leave(struct source *s);

// The paths an include stands for: itself, or what its pattern matches, sorted by bytes.
// Paths live in the pool, the caller frees *ret. 0 or -errno with an error queued.
int source_expand(struct source *s, struct diag_at at, const char *path, const char ***ret,
		  size_t *ret_n);
void source_free(struct source *s);
