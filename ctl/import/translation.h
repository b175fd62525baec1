// SPDX-License-Identifier: GPL-2.0-only
// State of translate.c and emit.c: the rules of the policy so far, and the packets on the way.
#pragma once

#include "ctl/base/vec.h"
#include "ctl/import/steps.h"
#include "ctl/import/value.h"

struct translation {
	const struct ruleset *ruleset;
	const struct import_options *options; // with the facts of the ruleset
	struct arena *arena;
	struct import_rules *steps;
	uint8_t *outcomes; // one for each rule of the ruleset: OUTCOME_…
	VEC(const struct nft_chain *) bases;
	// Packets that may have returned from a chain that is still being followed: what it drops
	// afterwards is not certain for them.
	VEC(struct match) returned;
	size_t guarded; // the first in this base chain
	unsigned depth;
	size_t work;    // comparisons so far
	size_t n_pairs; // of different sets of pairs
	struct value_cache cache;
	size_t looks; // for chains that accept
	bool nat;     // follows a chain of type nat: only rewritten destinations count
	bool tracked; // a rule for established connections precedes
	int code;
	struct err *err;
};

// A rule can be reached in several ways.
#define OUTCOME_EXACT   1
#define OUTCOME_WIDER   2
#define OUTCOME_LACKING 4 // wider, because a condition was left out or a dynamic set is empty
#define OUTCOME_LEFT    8 // dropped or logged by nft only

// A rule on the way.
struct at_rule {
	const struct nft_chain *chain;
	const struct json *rule;
	size_t number; // from 1
	size_t base;   // index of its base chain
};

// Adds to the work that has been done; too much is an error in w->code.
void emit_work(struct translation *w, size_t n);
// Without the conditions that a policy cannot express for this match.
void emit_fit(struct translation *w, struct match *m, bool drops);
// Each returns OUTCOME_…, 0 for no packet.
uint8_t emit_drop(struct translation *w, enum step_action action, struct match m, const char *name,
		  bool log);
uint8_t emit_pass(struct translation *w, struct match m, const char *name, bool log);
uint8_t emit_count(struct translation *w, struct match m, const char *name);
// The comment of the rule, or its place.
const char *emit_name(struct translation *w, const struct at_rule *at);
// Notes what has become of a rule, with a comment where that is not exact.
void emit_outcome(struct translation *w, const struct at_rule *at, uint8_t outcome);
// Printable, without quotes, at most 100 characters.
const char *emit_clean(struct arena *arena, const char *text);
