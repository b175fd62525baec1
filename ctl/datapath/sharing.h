// SPDX-License-Identifier: GPL-2.0-only
// Whether an instance can share interfaces with other XDP programs, and how its programs are loaded
// then.
#pragma once

#include <stdint.h>

#include "common/abi.h"
#include "ctl/base/err.h"

struct instance;

// Loads libxdp's dispatcher and, under it, the root program with a progs array of its own; attaches
// and pins nothing. Fills in ret->sharing and ret->sharing_code: a failure is an answer. Tries once
// a process.
void sharing_probe(struct meta *ret);

// 0 where sharing works, else -errno and the reason in err (ERR_SYSTEM), one sentence.
int sharing_check(const struct meta *meta, struct err *err);

// BPF_F_XDP_HAS_FRAGS or 0: what every program in the instance's progs array is loaded with. Under
// the dispatcher it is 0, because libxdp loads the root program without the flag and the dispatcher
// with it; packets in several buffers still arrive. i NULL: a program for no instance.
uint32_t sharing_flags(const struct instance *i);
