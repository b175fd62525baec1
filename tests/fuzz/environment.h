// SPDX-License-Identifier: GPL-2.0-only
// The environment of fuzzed policies: files in memory, names that always resolve to the same
// addresses.
#pragma once

#include <stddef.h>

#include "ctl/policy/resolve.h"

// The files: "main", "services" (a few ports); "list" and every include are `other`. No other file
// exists.
struct fuzz_environment {
	const char *main, *other;
	size_t main_len, other_len;
	struct source_reader files;
	struct policy_env env; // for policy_load, with the path "main"
};

// Fills files and env. The caller owns the texts, which must outlive w. w must not move.
void fuzz_environment_init(struct fuzz_environment *w, const char *main, size_t main_len,
			   const char *other, size_t other_len);
