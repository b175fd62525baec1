// SPDX-License-Identifier: GPL-2.0-only
// The lock of an instance, held only around map writes and the files that belong to them.
#pragma once

#include <stdbool.h>

#include "ctl/base/err.h"

// Waits for the folder NAME below BPFFS_LOCKS, which is made, and writes pid and command into
// /run/weir/NAME/lock: that wakes the agent. bpffs_ready() must have succeeded. Commands that wait
// take turns; one gives up when the same command has kept the lock for 10 seconds. A close of
// *ret_fd releases the lock, and so does the end of the process. 0, or -errno with err set;
// -EAGAIN, ERR_REFUSED with pid and command of the holder, if it has the same /run/weir.
int lock_take(const char *instance, const char *command, int *ret_fd, struct err *err);
// Whether this process has taken a lock to write.
bool lock_was_taken(void);
// The same as lock_take, but waits for one second only, for commands that also work without the
// lock. When another process keeps it, *ret_fd is -1 and err has pid and command (ERR_REFUSED).
int lock_try(const char *instance, const char *command, int *ret_fd, struct err *err);
// The same as lock_take for reading: readers share the lock and exclude writers. Writes nothing.
int lock_share(const char *instance, int *ret_fd, struct err *err);
// Waits for any descriptor to be locked, in the kernel's queue and for this time at most. False: it
// is not locked.
bool lock_wait(int fd, unsigned wait_ms);
// Whether an agent runs: /run/weir/NAME/agent is locked as long as it lives.
bool lock_agent_runs(const char *instance);
// Removes what commands and an agent have left in /run/weir/NAME, unless an agent runs. The caller
// holds the lock, and the instance is detached.
void lock_forget(const char *instance);
// yes: from now on this process does not wait for a lock, or find out its holder.
void lock_never_wait(bool yes);
