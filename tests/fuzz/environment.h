// SPDX-License-Identifier: GPL-2.0-only
// A world for policies that are fuzzed: files from memory, names that always resolve alike.
#pragma once

#include <stddef.h>

#include "ctl/policy/resolve.h"

// The files: "main"; "services" (a few ports); "list" and every include are `other`. No other is there.
struct fuzz_environment {
	const char *main, *other;
	size_t main_len, other_len;
	struct source_reader files;
	struct policy_env env; // what policy_load wants, with the path "main"
};

// Fills files and env; the texts are the caller's and must outlive w, which must not move.
void fuzz_environment_init(struct fuzz_environment *w, const char *main, size_t main_len,
			   const char *other, size_t other_len);
