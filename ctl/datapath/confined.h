// SPDX-License-Identifier: GPL-2.0-only
// Restrictions of this process by a container, a unit or a shell: namespaces and capabilities.
#pragma once

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/err.h"

#define CONFINED_BIT(capability) (1ull << (capability))
// Capabilities to load programs of type XDP that calculate with pointers (capabilities(7)), and to
// attach them: only CAP_SYS_ADMIN opens a program by its ID, to find out which one is attached.
#define CONFINED_LOAD \
	(CONFINED_BIT(CAP_BPF) | CONFINED_BIT(CAP_NET_ADMIN) | CONFINED_BIT(CAP_PERFMON))
#define CONFINED_ATTACH (CONFINED_LOAD | CONFINED_BIT(CAP_SYS_ADMIN))

// Is the PID namespace another one than the machine's, as in a container?
bool confined_pids(void);
// The bits of `needed` that are not in `effective`; both are sets of bits 1 << CAP_…. CAP_SYS_ADMIN
// includes the others.
uint64_t confined_lacks(uint64_t effective, uint64_t needed);
// err is the failure of a system call that requires these capabilities. If the kernel denied it
// (EPERM, EACCES), the hint names the missing capabilities.
void confined_explain(struct err *err, uint64_t needed);
