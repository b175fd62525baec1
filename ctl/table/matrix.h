// SPDX-License-Identifier: GPL-2.0-only
// Builds a bit matrix: the rules of a policy, or the members of its services, into the tables.
#pragma once

#include "ctl/base/diag.h"
#include "ctl/policy/resolved.h"
#include "ctl/table/compile_options.h"
#include "ctl/table/regions.h"
#include "ctl/table/tables.h"

#define MATRIX_SPACES 4 // source and destination, IPv4 and IPv6 of each

// State of a matrix in user space besides its tables.
struct matrix_built {
	uint32_t words; // 0: there is nothing to match
	size_t n_rows;  // with row 0
	uint8_t use[POLICY_FIELDS];
	struct regions space[MATRIX_SPACES]; // options->keep_regions: rows of addresses
};

void matrix_built_free(struct matrix_built *m);

// in->rules become the bits, in their order; without rules nothing is added. Sets the constants of
// the matrix and of its sides. 0; or -EINVAL with errors queued in d: too many rows
// (options->rows_max bytes; the error names the sets with the most combinations) or tables beyond
// TABLES_BYTES_MAX.
int matrix_build(const struct resolved *in, enum table_matrix which,
		 const struct compile_options *options, struct diag *d, struct tables *t,
		 struct matrix_built *ret);
