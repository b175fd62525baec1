// SPDX-License-Identifier: GPL-2.0-only
// Address tries as the datapath walks them (struct policy_node in common/policy.h).
#pragma once

#include "ctl/table/regions.h"
#include "ctl/table/arrays.h"

// Adds the trie of the regions of a family (4 or 6); the offset of its direct table in t->fields.
uint32_t trie_build(const struct regions *regions, int family, struct table_arrays *t);
