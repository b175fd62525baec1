// SPDX-License-Identifier: GPL-2.0-only
// Turns tables back into regions, for dump and for tests.
#pragma once

#include "ctl/table/image.h"
#include "ctl/table/regions.h"

// The regions that side (FIELD_SOURCE or FIELD_DESTINATION) and family of the image stand for, hosts
// and trie laid over one another. The caller frees ret->at.
void walk_side(const struct image *i, const struct policy_side *side, int family,
	       struct regions *ret);
