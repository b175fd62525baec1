// SPDX-License-Identifier: GPL-2.0-only
// Reports long operations from rooms that do not print to the one that does. Operations contain
// others: fetching a list is a part of applying a policy. Without progress_to() there is no report.
#pragma once

#include "ctl/base/mem.h"

// From now on `say` gets the innermost operation ("fetching 'http://lists.lab/'") whenever another
// one begins, changes or ends, and NULL when none runs. NULL: nothing is reported. Only one thread
// may call these functions.
void progress_to(void (*say)(const char *text));

// An operation begins, and ends where its variable leaves its scope:
//
//	CLEANUP_PROGRESS unsigned operation = progress_begin("loading the policy");
__attribute__((format(printf, 1, 2))) unsigned progress_begin(const char *fmt, ...);
void progress_end(const unsigned *operation);
#define CLEANUP_PROGRESS __attribute__((unused)) CLEANUP(progress_end)
// The innermost operation continues with something else.
__attribute__((format(printf, 1, 2))) void progress_change(const char *fmt, ...);
