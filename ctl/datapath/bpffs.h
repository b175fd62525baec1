// SPDX-License-Identifier: GPL-2.0-only
// The folder of an instance in the BPF file system, and the check of that file system.
//
// A machine mounts it once. `ip netns exec` makes a mount namespace with another one: an object
// pinned there vanishes with the command, and the attached root program would jump through an empty
// array. So bpffs_ready() refuses if an ancestor of the process, in another mount namespace, sees
// another BPF file system. `weir -N` enters the network namespace only.
//
// A container sees no ancestors outside, and a BPF file system that it mounts ends with the
// container. So nothing is mounted in another PID namespace than the initial one: a container gets
// the file system of the host.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/abi.h"
#include "common/limits.h"
#include "ctl/base/err.h"

#define BPFFS_MOUNT       "/sys/fs/bpf"
#define BPFFS_ROOT        "/sys/fs/bpf/weir"
#define BPFFS_LOCKS       "/sys/fs/bpf/weir-locks" // a folder for each name: datapath/lock.h
#define WEIR_RUN_FOLDER   "/run/weir"
#define WEIR_STATE_FOLDER "/var/lib/weir"

// Instance names: a letter, then letters, digits, '-', '_'; at most 31. 0 or -EINVAL with err set.
int bpffs_check_name(const char *name, struct err *err);

// Called first by every command: can BPF be used (probe_kernel()), and is the BPF file system
// mounted, and the one that the rest of the machine sees? Mounts it if it is missing, in a
// container never. 0 or -errno with err set (in another mount namespace with the hint "use weir -N
// X", in a container with the options that it lacks).
int bpffs_ready(struct err *err);

// Names below BPFFS_ROOT that are instances. The caller frees each and the array.
int bpffs_list(char ***ret, size_t *ret_n, struct err *err);

// Descriptor of the map or program pinned at FOLDER/NAME. -ENOENT without err set: it does not
// exist.
int bpffs_get(const char *folder, const char *name, int *ret_fd, struct err *err);
int bpffs_put(const char *folder, const char *name, int fd, struct err *err);
bool bpffs_exist(const char *instance);
