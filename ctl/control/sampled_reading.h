// SPDX-License-Identifier: GPL-2.0-only
// The rows of samples at one time, from the ring of this process or from the agent's documents.
#pragma once

#include "ctl/base/json.h"
#include "ctl/control/sampled_rows.h"

struct sampled_reading {
	uint64_t span_us; // of the samples
	uint64_t samples;
	double sampled; // the present share, 0 … 1
	uint64_t lost;  // samples without room in the ring
	bool known[SAMPLED_BY_COUNT];
	struct sampled_list lists[SAMPLED_BY_COUNT];
};
// Rows are copied.
void sampled_reading_copy(const struct sampled_reading *from, struct sampled_reading *ret);
void sampled_reading_free(struct sampled_reading *r);
// From a document of weir top --by. The rows of a key have the rates of the document.
void sampled_reading_take(const struct json *document, struct sampled_reading *ret);
