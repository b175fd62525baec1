// SPDX-License-Identifier: GPL-2.0-only
// Does the work of `weir refresh` in a copy of the agent: lists names, or resolves them.
#pragma once

#include "ctl/agent/process.h"
#include "ctl/control/refresh.h"

struct agent;

// The result; without names.held.
struct refreshing_result {
	struct err failed; // text "": it is known what each name has
	struct refresh names;
	struct refresh_refused refused;
};

struct refreshing_request {
	unsigned where;           // enum refresh_where
	bool lists;               // asks no name server
	const char *const *names; // sorted; n 0: all
	size_t n;
	void (*done)(void *ctx, const struct refreshing_result *result);
	void *ctx;
};

struct refreshing; // NULL: none runs

// The request is copied, but for the names, which are needed during the call only. 0 or -errno with
// err set.
int refreshing_start(struct agent *a, const struct refreshing_request *request,
		     struct refreshing **ret, struct err *err);
// Kills it, without a call of `done`. NULL is allowed.
void refreshing_stop(struct refreshing *r);
