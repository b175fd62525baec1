// SPDX-License-Identifier: GPL-2.0-only
// Lists the inputs of a policy by its text: files, patterns, feeds.
#pragma once

#include <stdint.h>

#include "ctl/base/vec.h"
#include "ctl/policy/source.h"
#include "ctl/policy/urls.h"

struct inputs_feed {
	struct policy_url url; // its strings are owned
};

struct inputs {
	VEC(char *) paths;    // policy, includes, list files; also those that could not be read
	VEC(char *) patterns; // of includes
	VEC(struct inputs_feed) feeds;
	bool places; // countries or autonomous systems
};

// A policy with errors is read as far as it can be understood.
void inputs_read(const char *path, struct inputs *ret);
// The same for texts that `reader` has: only its feeds, none of its files.
void inputs_read_feeds(const char *path, const struct source_reader *reader, struct inputs *ret);
void inputs_free(struct inputs *in);
#define CLEANUP_INPUTS CLEANUP(inputs_free)
