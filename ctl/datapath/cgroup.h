// SPDX-License-Identifier: GPL-2.0-only
// The root of cgroup 2, where programs see the sockets of all processes.
#pragma once

#include <stdint.h>

#include "ctl/base/err.h"

// Where cgroup 2 is mounted, by the text of /proc/self/mountinfo: the first mount of the whole
// hierarchy, else the first of a part. NULL: nowhere. The caller frees the path.
char *cgroup_mount(const char *mountinfo);

// Opens the root of cgroup 2 of this mount namespace, at /sys/fs/cgroup or wherever it is mounted.
// *ret_id: its number, CGROUP_ROOT for the root of the machine, another one for a container's.
// -ENOENT (ERR_SYSTEM, with a hint) if it is not mounted. 0 or -errno with err set; the caller
// closes *ret_fd.
#define CGROUP_ROOT 1
int cgroup_open_root(int *ret_fd, uint64_t *ret_id, struct err *err);
