// SPDX-License-Identifier: GPL-2.0-only
// Single IPv6 addresses in buckets (struct table6_line in common/table6.h).
#pragma once

#include <stdbool.h>

#include "ctl/table/regions.h"
#include "ctl/table/tables.h"

// Runs of at most so many neighbouring addresses with the same row are hosts; more are a range.
#define TABLE6_RUN 4

// The hosts among the regions.
size_t table6_hosts_count(const struct regions *r);

// Are buckets for this many hosts worth the look-up?
bool table6_hosts_pay(const struct regions *r, size_t hosts);

// Adds buckets for the hosts, at least one, and returns the regions without hosts in a bucket:
// hosts without a slot, or with a row of more than 16 bits, are still included. Where a placed host
// was, *ret_rest has any row. -ENOSPC when there is no room in the tables.
int table6_hosts_build(struct tables *t, enum table_side side, const struct regions *r,
		       size_t hosts, uint64_t seed, struct regions *ret_rest);
