// SPDX-License-Identifier: GPL-2.0-only
// The machine on which a run was measured.
#pragma once

#include <stddef.h>

struct json;

// CPU, cores, caches, kernel, load, date. The caller owns the object.
struct json *machine_describe(int cpu, size_t rounds);
// Adds the load at the end.
void machine_finish(struct json *machine);
