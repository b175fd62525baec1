// SPDX-License-Identifier: GPL-2.0-only
// A BPF array that is mapped into memory.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/mem.h"

struct mapping {
	void *at;
	size_t size; // whole pages
	size_t skip; // bytes of the first page before `at`
};

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
