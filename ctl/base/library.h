// SPDX-License-Identifier: GPL-2.0-only
// Libraries that are loaded where they are first needed, since most commands would only wait for
// them.
#pragma once

#include <stddef.h>

#include "ctl/base/err.h"

struct library_call {
	const char *name; // of the function
	size_t at;        // offset of its pointer in the table of calls, in bytes
};

// Loads the library `file` ("libcurl.so.4") for the rest of the process, and fills the `n` pointers
// in *ret. 0 or -errno with err set and *ret untouched: it is not installed, or lacks a function.
int library_load(const char *file, const struct library_call *calls, size_t n, void *ret,
		 size_t size, struct err *err);
