// SPDX-License-Identifier: GPL-2.0-only
// Access to maps of the kernel, many elements at once.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "ctl/base/err.h"
#include "ctl/base/mem.h"

struct mapping {
	void *at;
	size_t size; // whole pages
	size_t skip; // bytes of the first page before `at`
};

// Makes an array with one element of so many bytes that can be mapped. A descriptor or -errno.
int mapping_make(const char *name, size_t bytes);
// The first `bytes` bytes of an array, rounded up to pages, to read and write. 0 or -errno with err
// set. The kernel enters all pages at once: a mapping costs time and memory of the process by its
// size, however little is read.
int mapping_open(struct mapping *m, int fd, size_t bytes, struct err *err);
// The same from the byte `from` on.
int mapping_open_part(struct mapping *m, int fd, size_t from, size_t bytes, struct err *err);
// The bytes of all values of an array.
int mapping_bytes(int fd, size_t *ret, struct err *err);
// How many elements a map has room for. 0 or -errno with err set.
int mapping_entries(int fd, uint32_t *ret, struct err *err);
void mapping_close(struct mapping *m);
#define CLEANUP_MAPPING CLEANUP(mapping_close)

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

// Reads a map of at most `max` entries, whose values have four bytes, at once. *ret_keys, a
// pointer, and *ret_values: room for `max`, which the caller frees; *ret_n are set. 0 or -errno.
int map_read(int fd, size_t key_size, uint32_t max, void *ret_keys, uint32_t **ret_values,
	     uint32_t *ret_n);
// The keys only.
int map_keys(int fd, size_t key_size, uint32_t max, void **ret_keys, uint32_t *ret_n);

// A packet that has found a program runs in it to the end, even if the program array has another
// one by now. On return all packets are through that began before the call. 0 or -errno with err
// set.
int grace_wait(struct err *err);
