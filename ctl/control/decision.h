// SPDX-License-Identifier: GPL-2.0-only
// The verdict about a packet and the stage that decided, as expect and explain print them. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/counters.h"
#include "common/words.h"
#include "ctl/base/text.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/test_program.h"
#include "ctl/policy/resolved.h"

// The first ones are also the verdicts of an expect line.
enum decision_verdict {
	DECISION_PASS = EXPECT_PASS,
	DECISION_DROP = EXPECT_DROP,
	DECISION_REJECT = EXPECT_REJECT,
	DECISION_REDIRECT = EXPECT_REDIRECT,
	DECISION_SERVICE = EXPECT_SERVICE, // sent to a backend
	DECISION_BACK,                     // an answer of a backend, sent to its client
	DECISION_ANSWER,                   // an echo request
	DECISION_PERMIT,                   // an outgoing connection
	DECISION_REFUSE,                   // an outgoing connection
	DECISION_NONE,                     // the rules are not known
};

// "drop": the word in documents and in policies; NULL: not decided.
const char *decision_word(enum decision_verdict verdict);
// "dropped"; to: the interface of a redirect, NULL: not named.
void decision_add_done(struct text *t, enum decision_verdict verdict, const char *to);
// Its sender gets no connection.
bool decision_loses(enum decision_verdict verdict);

// The rule that decided. NULL: no rule did, or c is NULL because the rules are not known.
const struct resolved_rule *decision_rule(const struct candidate *c, const struct test_result *r);
// The verdict as the packet meets it.
enum decision_verdict decision_of(const struct candidate *c, const struct test_result *r);
// The verdict that the policy asks for, whatever the state of its backends and interfaces.
enum decision_verdict decision_wanted(const struct candidate *c, const struct test_result *r);
// The stage that decided; reason: of the packet, or of its pass to a service.
enum weir_group decision_stage(const struct test_result *r, uint32_t reason);
enum expect_via decision_via(const struct test_result *r);

const char *decision_service(const struct candidate *c, size_t service);
// "pass (default, edge.weir:21)", "drop (rule "social", edge.weir:4)": decision_wanted.
void decision_describe(const struct candidate *c, const struct test_result *r, char *buf,
		       size_t size);
