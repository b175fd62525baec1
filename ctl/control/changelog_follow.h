// SPDX-License-Identifier: GPL-2.0-only
// Follows the record of changes: those so far, and then each new one once, as it is recorded. Also
// for a loop, which waits for the descriptor itself.
#pragma once

#include "ctl/control/changelog.h"

struct changelog_follow;

// *ret_before: the changes of the choice so far; NULL: they are not read. ERR_REFUSED: the instance
// has no folder of state. 0 or -errno with err set.
int changelog_follow_open(const char *instance, const struct changelog_choice *choice,
			  struct changelog_follow **ret, struct changelog *ret_before,
			  struct err *err);
void changelog_follow_close(struct changelog_follow *f); // NULL is allowed
// Readable if changes may have been recorded.
int changelog_follow_fd(const struct changelog_follow *f);
// Waits for changes, this time at most or until a signal, and adds them to *ret: changes of
// entries last. At most 64 kB of each kind are read at once; *ret_more: the next call
// does not wait. wants: as of the choice. 0 or -errno with err set.
int changelog_follow_wait(struct changelog_follow *f, int wait_ms,
			  const struct changelog_choice *wants, struct changelog *ret,
			  bool *ret_more, struct err *err);
