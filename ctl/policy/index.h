// SPDX-License-Identifier: GPL-2.0-only
// Names to numbers: which node of the ast has this name.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define INDEX_NONE UINT32_MAX

struct index_bucket {
	const char *name;
	uint64_t hash;
	uint32_t number;
};

struct index { // {0} is an empty one
	struct index_bucket *buckets;
	size_t n, size; // size: a power of two, 0 before the first
};

// Adds a name (not copied) unless it is there; returns the number that the name has now.
uint32_t index_add(struct index *x, const char *name, uint32_t number);
uint32_t index_find(const struct index *x, const char *name); // INDEX_NONE: absent
void index_free(struct index *x);
