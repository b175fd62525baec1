// SPDX-License-Identifier: GPL-2.0-only
// The tables of a policy while they are built: the bytes of the single value of the map `tables`,
// and the constants by which programs find each table (common/tables.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/tables.h"

// More than the verifier follows as an offset into a value is 512 MB; a policy that needs more than
// this is refused.
#define TABLES_BYTES_MAX (256u << 20)

void tables_free(struct tables *t);
// Adds `bytes` zeroed bytes from the next multiple of TABLE_ALIGN on and returns their offset.
// Pointers into t->at are invalid afterwards.
size_t tables_add(struct tables *t, size_t bytes);
// Sets a constant; `number`: SIDE_CONSTANT(), MATRIX_CONSTANT(), VIP_CONSTANT() or
// LIST_CONSTANT().
void tables_number(struct tables *t, int number, uint64_t value);
void tables_address(struct tables *t, int number, size_t offset);
