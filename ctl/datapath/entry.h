// SPDX-License-Identifier: GPL-2.0-only
// The entry program, opened around an instance's maps.
#pragma once

#include "ctl/base/err.h"

struct instance;
struct xdp_program;

// Opens the entry program around the instance's maps, for libxdp to load and attach.
struct entry; // owns the object and libxdp's handle
int entry_open(const struct instance *i, struct entry **ret, struct err *err);
struct xdp_program *entry_program(struct entry *e);
// Loads it without libxdp, as a plain XDP program; its descriptor (owned by e) or -errno.
int entry_load(struct entry *e);
void entry_free(struct entry *e);
void entry_cleanup(struct entry **e);
