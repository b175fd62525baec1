// SPDX-License-Identifier: GPL-2.0-only
// Input of compile besides the policy.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct compile_options {
	uint64_t
		seed; // seed of the hosts' buckets; random at each compile, so that a bucket cannot
		      // be attacked
	uint32_t hz;  // jiffies a second
	uint64_t rows_max; // bytes of rows before compile refuses; 0: 128 MB
	bool keep_regions; // for image_dump()
};
