// SPDX-License-Identifier: GPL-2.0-only
// The machine on which a run was measured.
#pragma once

#include <stddef.h>

struct json;

// CPU, cores, caches, kernel, load, date, mitigations of the CPU. The caller owns the object.
struct json *machine_describe(int cpu, size_t rounds);
// The first two lines of the report.
void machine_print(const struct json *machine);
// Adds the load at the end, or replaces it.
void machine_finish(struct json *machine);
