// SPDX-License-Identifier: GPL-2.0-only
// Shared by the fuzz targets.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// An assertion about the code under test. If it fails, the input is kept as a finding.
static inline void fuzz_check(bool holds)
{
	if (!holds)
		abort();
}

// A copy of exact size, so that the sanitizer detects a read beyond it. The caller frees the copy.
static inline void *fuzz_copy(const void *data, size_t size)
{
	void *copy = malloc(size ? size : 1);

	fuzz_check(copy);
	if (size)
		memcpy(copy, data, size);
	return copy;
}
