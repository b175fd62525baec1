// SPDX-License-Identifier: GPL-2.0-only
// The root program, opened for one device.
#pragma once

#include "ctl/base/err.h"

struct instance;
struct xdp_program;

// Opens the root program around the maps of the instance. root_program() or root_load() loads it.
struct root_program; // owns the object and the handle of libxdp
int root_open(const struct instance *i, struct root_program **ret, struct err *err);
// For libxdp, which loads it under its dispatcher and attaches it. *ret is owned by r. 0 or -errno
// with err set.
int root_program(struct root_program *r, struct xdp_program **ret, struct err *err);
// Without libxdp, as a plain XDP program; its descriptor (owned by r) or -errno.
int root_load(struct root_program *r);
void root_free(struct root_program *r);
void root_cleanup(struct root_program **r); // for CLEANUP
