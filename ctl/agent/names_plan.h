// SPDX-License-Identifier: GPL-2.0-only
// Decides when each host name of an entry or of the policy is resolved, and what is logged. Pure:
// lists, answers and times in; names that are due, times and messages out.
//
// A name is due when its TTL ends, or when the policy releases one of its addresses; without an
// answer it is retried with increasing delays. After a restart all are due soon, spread over time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/agent/plan.h"
#include "ctl/agent/trouble.h"
#include "ctl/base/vec.h"
#include "ctl/control/refresh.h"

#define NAMES_AT_ONCE 1000 // in a question

// Failures that affect all names, not single answers.
enum names_trouble {
	TROUBLE_LIST,     // which names there are is not known
	TROUBLE_QUESTION, // none of the names that were asked for has an answer
	TROUBLE_ENTRIES,  // entries cannot be changed
	TROUBLE_POLICY,   // the policy cannot be changed, or its record cannot be read
	TROUBLES,
};

struct watched {
	char *name;
	uint64_t due_ms;      // monotonic
	uint64_t interval_ms; // that its TTL asks for; 0: not known
	unsigned failures;    // in a row
	bool server;          // the failure is one of the name server
	uint64_t answered_s;  // wall clock: of the last good answer, as far as it is known
	char *why;            // NULL: a trouble, which is logged once for all of its names
	unsigned troubles;    // bits: because of which its last answer is not used
	bool empty;           // in a lax list, and without an answer so far: not a failure
	bool listed;          // in the list that is being read
	bool asked;           // in the question that is being answered
};

// All zero at first, but for random.
struct names_plan {
	uint64_t random;            // the state of its random numbers
	VEC(struct watched) names;  // sorted
	uint64_t asked_ms, rest_ms; // the last question, and until when no other follows
	struct trouble troubles[TROUBLES];
	// For the caller, who takes them:
	struct plan_messages messages;
	uint64_t list_ms; // the names are to be listed within this time; 0: when a command has run
};
void names_plan_free(struct names_plan *p);

// The names were listed, or asked for. Names of places are passed over.
void names_plan_listed(struct names_plan *p, const struct refresh *r,
		       const struct refresh_refused *refused, const struct plan_now *now);
void names_plan_answered(struct names_plan *p, const struct refresh *r,
			 const struct refresh_refused *refused, const struct plan_now *now);
// That has failed. why NULL: which is nothing to report.
void names_plan_list_failed(struct names_plan *p, const char *why);
void names_plan_question_failed(struct names_plan *p, const char *why, const struct plan_now *now);
// All names are due.
void names_plan_hurry(struct names_plan *p, const struct plan_now *now);
// The names of the next question, sorted; ret has room for NAMES_AT_ONCE. The caller asks for them.
size_t names_plan_ask(struct names_plan *p, const struct plan_now *now, const char **ret);
// Until the next question; UINT64_MAX: there is no name.
uint64_t names_plan_wait_ms(const struct names_plan *p, const struct plan_now *now);
