// SPDX-License-Identifier: GPL-2.0-only
// Watches files by their paths: contents, renames, and links and folders on the way that are
// exchanged.
//
// inotify watches the folders: every folder on the way to a file, with the name of the next step.
// So a file that an editor replaces, that does not exist yet, or that is reached through other
// links from now on, is found.
#pragma once

#include "ctl/base/err.h"
#include "ctl/base/vec.h"

struct agent;
struct watches;

// `changed` is called WATCHES_JOIN_MS after the first of a burst of events, if a file is another
// one or has other content (size and times tell). 0 or -errno with err set.
#define WATCHES_JOIN_MS 200
int watches_new(struct agent *a, void (*changed)(void *ctx), void *ctx, struct watches **ret,
		struct err *err);
void watches_free(struct watches *w);
// Watches these paths and patterns (glob(7), in the last step only) from now on, instead of those
// before.
struct watches_paths {
	VEC(char *) all;
};
void watches_set(struct watches *w, const struct watches_paths *paths);
void watches_paths_free(struct watches_paths *paths);
