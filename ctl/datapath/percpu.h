// SPDX-License-Identifier: GPL-2.0-only
// Rows of per-CPU maps. The kernel reads and writes a value for every possible CPU, also for those that
// are off, however little room the caller made: no row without knowing how many there are.
#pragma once

#include <stddef.h>

#include "ctl/base/err.h"

// Possible CPUs, at least 1. 0 or -errno with err set.
int percpu_count(size_t *ret, struct err *err);

// Room for one row, all zero: *ret_n values of `size` bytes, a multiple of eight (kernel,
// Documentation/bpf/map_array.rst). The caller frees it. 0 or -errno with err set.
int percpu_row(size_t size, void *ret, size_t *ret_n, struct err *err);
