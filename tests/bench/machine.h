// SPDX-License-Identifier: GPL-2.0-only
// On what it was measured.
#pragma once

#include <stddef.h>

struct json;

// CPU, cores, caches, kernel, load, date. The caller owns it.
struct json *machine_describe(int cpu, size_t rounds);
// The load at the end.
void machine_finish(struct json *machine);
