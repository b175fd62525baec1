// SPDX-License-Identifier: GPL-2.0-only
// Elements of per-CPU maps, with room for every CPU.
//
// The kernel reads and writes a value for each possible CPU, also for those that are off, however
// little room the caller provides: an element must never be read without their number.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "ctl/base/err.h"

// Possible CPUs, at least 1. 0 or -errno with err set.
int percpu_count(size_t *ret, struct err *err);

// CPUs from 0 to the last one that is online, at most the possible ones; all of these where the
// kernel does not tell (Documentation/admin-guide/cputopology.rst). 0 or -errno with err set.
int percpu_online(size_t *ret, struct err *err);

// Room for n elements, all zero: each of *ret_cpus values of `size` bytes, a multiple of eight
// (kernel, Documentation/bpf/map_array.rst). The caller frees it. 0 or -errno with err set.
int percpu_values(size_t n, size_t size, void *ret, size_t *ret_cpus, struct err *err);

// Reads the elements first … first + n - 1 of an array, per CPU or not, n at least 1, at once. 0 or
// -errno.
int percpu_read(int fd, uint32_t first, uint32_t n, void *ret);

// Writes the elements 0 … n - 1, n at least 1, at once. 0 or -errno.
int percpu_write(int fd, uint32_t n, const void *values);

// The sum of the counters of one element.
struct counter percpu_sum(const struct counter *values, size_t cpus);
