// SPDX-License-Identifier: GPL-2.0-only
// Functions to load any floor.
#pragma once

#include <bpf/libbpf.h>

// Only this program of the object is loaded, ready for a program array.
void floor_choose(const struct bpf_object *o, const char *program);
int floor_program(const struct bpf_object *o, const char *program);
