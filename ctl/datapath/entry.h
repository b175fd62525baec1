// SPDX-License-Identifier: GPL-2.0-only
// The entry program, opened around an instance's maps.
#pragma once

#include "ctl/base/err.h"

struct instance;
struct xdp_program;

// Opens the entry program around the instance's maps. Then one of the two loads it.
struct entry; // owns the object and libxdp's handle
int entry_open(const struct instance *i, struct entry **ret, struct err *err);
// For libxdp to load behind its dispatcher, and to attach. *ret is owned by e. 0 or -errno with err set.
int entry_program(struct entry *e, struct xdp_program **ret, struct err *err);
// Without libxdp, as a plain XDP program; its descriptor (owned by e) or -errno.
int entry_load(struct entry *e);
void entry_free(struct entry *e);
void entry_cleanup(struct entry **e);
