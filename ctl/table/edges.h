// SPDX-License-Identifier: GPL-2.0-only
// Writes the edges of all lists of MAC addresses into one table (common/edges.h).
#pragma once

#include "ctl/policy/resolved.h"
#include "ctl/table/tables.h"

// The place of the first edge of a list.
uint32_t edges_first(const struct resolved *r, uint32_t list);
void edges_build(const struct resolved *r, struct tables *t);
