// SPDX-License-Identifier: GPL-2.0-only
// How long the checks of each service took, and how they ended, since the agent began: for the
// metrics.
//
// The size is bounded by the services of the policy: one histogram each, with fixed limits.
#pragma once

#include <stdint.h>

#include "ctl/base/json.h"
#include "ctl/base/vec.h"
#include "ctl/net/probe.h"

#define CHECK_TIMES 12

struct check_times {
	char *service;
	uint64_t within
		[CHECK_TIMES];    // checks that ended within a limit, but not within the one before
	uint64_t ended;           // all, also later than the last limit
	uint64_t us;              // all together
	uint64_t failed, unknown; // all checks; unknown: this host could not make the check
};

struct all_check_times {
	struct check_times **at; // each keeps its address as long as it is in use
	size_t n, cap;
};

// The times of a service, all 0 if it is new.
struct check_times *check_times_of(struct all_check_times *all, const char *service);
// Frees those whose service is not among the names.
void check_times_keep(struct all_check_times *all, const char *const *services, size_t n);
void check_times_free(struct all_check_times *all);

void check_times_add(struct check_times *t, const struct probe_result *r);
// [{"service", "buckets": [{"le_us", "checks"}], "ended", "us", "good", "failed", "unknown"}]; a
// bucket counts those before it too.
struct json *check_times_json(const struct all_check_times *all);
