// SPDX-License-Identifier: GPL-2.0-only
// The root program, opened around the maps of an instance.
#pragma once

#include "ctl/base/err.h"

struct instance;
struct xdp_program;

// Opens the root program around the instance's maps. Then one of the two loads it.
struct root_program; // owns the object and libxdp's handle
int root_open(const struct instance *i, struct root_program **ret, struct err *err);
// For libxdp to load behind its dispatcher, and to attach. *ret is owned by e. 0 or -errno with err set.
int root_program(struct root_program *e, struct xdp_program **ret, struct err *err);
// Without libxdp, as a plain XDP program; its descriptor (owned by e) or -errno.
int root_load(struct root_program *e);
void root_free(struct root_program *e);
void root_cleanup(struct root_program **e);
