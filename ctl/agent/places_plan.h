// SPDX-License-Identifier: GPL-2.0-only
// Decides when the countries and autonomous systems of entries are looked up in their databases.
// Pure: lists, answers and times in; the next time and messages out.
//
// They are looked up once when such entries exist, when a database changes, and with increasing
// delays while one keeps its previous prefixes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/agent/plan.h"
#include "ctl/agent/trouble.h"
#include "ctl/control/refresh.h"

// All zero at first.
struct places_plan {
	size_t n;                 // such entries have so many names; their databases are watched
	bool running;             // a look-up
	uint64_t asked_ms;        // when the last one began
	unsigned failures;        // in a row
	uint64_t due_ms;          // of the next one; 0: none
	struct troubles troubles; // by place
	// For the caller, who takes them:
	struct plan_messages messages;
};
void places_plan_free(struct places_plan *p);

// The names of the instance were listed: so many are places.
void places_plan_listed(struct places_plan *p, size_t n, const struct plan_now *now);
// A database has changed, or all is to be read again.
void places_plan_hurry(struct places_plan *p, const struct plan_now *now);
// True: the caller looks them up.
bool places_plan_begin(struct places_plan *p, const struct plan_now *now);
// The look-up could not begin; the caller tries again.
void places_plan_not_begun(struct places_plan *p);
// It has ended. failed: as a whole, or no entry could be changed.
void places_plan_answered(struct places_plan *p, const struct refresh *r, bool failed,
			  const struct plan_now *now);
