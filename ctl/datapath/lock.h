// SPDX-License-Identifier: GPL-2.0-only
// The lock of an instance, held only around map writes and the files that belong to them.
#pragma once

#include "ctl/base/err.h"

// Waits up to 10 seconds for /run/weir/NAME/lock (the folder is made) and writes pid and command into
// it. *ret_fd is closed to unlock; a killed process unlocks by dying. 0, or -errno with err set; a
// lock that stays taken is ERR_REFUSED and names the pid and command of its holder.
int lock_take(const char *instance, const char *command, int *ret_fd, struct err *err);
// The same, but waits for a second only: for what has to be done whoever holds the lock. *ret_fd is -1 and
// err tells the holder when it stays taken (ERR_REFUSED).
int lock_try(const char *instance, const char *command, int *ret_fd, struct err *err);
// The same as lock_take for reading: several at once, no writer meanwhile; writes nothing.
int lock_share(const char *instance, int *ret_fd, struct err *err);
