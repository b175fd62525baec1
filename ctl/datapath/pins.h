// SPDX-License-Identifier: GPL-2.0-only
// Where an instance lives in the BPF file system, and whether that file system is the right one.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/abi.h"
#include "common/limits.h"
#include "ctl/base/err.h"

#define PINS_BPFFS "/sys/fs/bpf"
#define PINS_ROOT  "/sys/fs/bpf/weir"
#define PINS_RUN   "/run/weir"
#define PINS_STATE "/var/lib/weir"

// Instance names: a letter, then letters, digits, '-', '_'; at most 31. 0 or -EINVAL with err set.
int pins_check_name(const char *name, struct err *err);

// What every command asks first: can BPF be used (probe_kernel), and is bpffs there and the one that the
// rest of the machine sees? Mounts it where it is missing. In a
// mount namespace of its own (`ip netns exec` makes one) pins would vanish with the command: refused,
// with "use weir -N X". 0 or -errno with err set.
int pins_ready(struct err *err);

// Names below PINS_ROOT that are instances. The caller frees each and the array.
int pins_list(char ***ret, size_t *ret_n, struct err *err);

// Descriptor of the map or program pinned at FOLDER/NAME. -ENOENT without err set when it is absent.
int pins_get(const char *folder, const char *name, int *ret_fd, struct err *err);
int pins_put(const char *folder, const char *name, int fd, struct err *err);
bool pins_exist(const char *instance);
