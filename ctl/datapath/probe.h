// SPDX-License-Identifier: GPL-2.0-only
// Tries what this kernel and this user can do.
#pragma once

#include <stdbool.h>

#include "ctl/base/err.h"

// Can Weir run here: the machine, the bpf system call, the privilege, and XDP with multi-buffer
// packets (5.18)? 0 or -errno with err set (ERR_SYSTEM): another machine, no BPF, no privilege,
// kernel too old.
int probe_kernel(struct err *err);
// Only the machine.
int probe_machine(struct err *err);

// Are BPF programs compiled to machine code here? False also if they cannot be loaded.
bool probe_jit(void);

// libbpf and libxdp are silent unless `verbose`. The last reason that the kernel itself gives for a
// refusal (netlink's extended acknowledgement) is kept for probe_kernel_said().
void probe_quiet(bool verbose);
// "" when the kernel has given no reason since the last call.
const char *probe_kernel_said(void);
