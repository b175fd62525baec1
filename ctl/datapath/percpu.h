// SPDX-License-Identifier: GPL-2.0-only
// Rows of per-CPU maps. The kernel reads and writes a value for every possible CPU, also for those that
// are off, however little room the caller made: no row without knowing how many there are.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"

// Possible CPUs, at least 1. 0 or -errno with err set.
int percpu_count(size_t *ret, struct err *err);

// Room for `rows` rows, all zero: each of *ret_n values of `size` bytes, a multiple of eight (kernel,
// Documentation/bpf/map_array.rst). The caller frees it. 0 or -errno with err set.
int percpu_rows(size_t rows, size_t size, void *ret, size_t *ret_n, struct err *err);

// Reads the rows first … first + n - 1 of an array, n at least 1, at once. 0 or -errno.
int percpu_read(int fd, uint32_t first, uint32_t n, void *ret);
