// SPDX-License-Identifier: GPL-2.0-only
// Looks into the network namespaces of this machine.
#pragma once

#include <sys/types.h>

#include "ctl/base/err.h"

// Calls visit inside each other network namespace that has a name (`ip netns`) or a process, until
// it returns a value other than 0, and returns that value, else 0. name: for -N. A namespace that
// cannot be entered is left out. It runs in a thread of its own, so the caller stays in its
// namespace.
int netns_visit_others(int (*visit)(void *ctx, const char *name), void *ctx);

// The name under which `ip netns` knows the namespace with this inode, NULL: it has none. The
// caller frees it.
char *netns_name(ino_t inode);

// Enters the namespace of this name; *ret_back leads back, by netns_leave(). 0 or -errno with err
// set.
int netns_enter(const char *name, int *ret_back, struct err *err);
int netns_leave(int back, struct err *err);
