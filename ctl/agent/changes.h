// SPDX-License-Identifier: GPL-2.0-only
// Small changes of entries for the API: a `weir batch --each` of the agent makes them, one process
// for all.
//
// It waits for the lock in the agent's stead, and those changes that have come meanwhile are one
// commit. So a ban costs no process, and bans that come together cost one write of the journal.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"

struct agent;
struct api_words;
struct changes; // the process, and what it was asked
struct change;

struct changes *changes_new(struct agent *a);
// Kills the process; no call of `done`.
void changes_free(struct changes *c);

// Is it a change of few addresses, which waits for no name server?
bool changes_suit(const struct api_words *words);
// No more changes are taken at this moment.
bool changes_full(const struct changes *c);
// `done` gets the output that the command itself would print with -j, and its exit status; -1
// without output: the process was killed. 0 or -errno with err set.
typedef void change_done(void *ctx, int status, const char *output, size_t len);
// by: the author, without control characters.
int changes_start(struct changes *c, const char *by, const struct api_words *words,
		  change_done *done, void *ctx, struct change **ret, struct err *err);
// The change is made, but no call of `done`. NULL is allowed.
void change_forget(struct change *one);
