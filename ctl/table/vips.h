// SPDX-License-Identifier: GPL-2.0-only
// Services by their destinations, in buckets that the datapath reads (common/vips.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/policy/resolved.h"
#include "ctl/table/tables.h"

// A service is in buckets if its addresses are hosts, its ports and protocols are given, and it has
// at most this many combinations.
#define VIPS_OF_SERVICE 256
// All combinations of a family; services that would exceed it are not in buckets.
#define VIPS_MAX 4096

bool vips_fit(const struct resolved *r, const struct resolved_service *s);

// Adds the buckets of both families and sets their constants; V4_LINES_N or V6_LINES_N is 0 without
// a service in them, VIPS_ALL 1 if every service is. The same policy and seed give the same
// buckets. Services do not overlap: resolve has refused those that do.
void vips_build(const struct resolved *r, uint64_t seed, struct tables *t);
