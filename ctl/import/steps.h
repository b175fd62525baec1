// SPDX-License-Identifier: GPL-2.0-only
// The rules of the policy that is being made, in order.
#pragma once

#include "ctl/base/text.h"
#include "ctl/import/ruleset.h"
#include "ctl/import/words.h"

enum step_action {
	STEP_PASS,
	STEP_DROP,
	STEP_REJECT,
	STEP_COUNT,
	STEP_NOTE, // a comment
};

struct import_rule {
	enum step_action action;
	struct match match;
	const char *name; // the text of a STEP_NOTE
	bool log;
};

struct import_rules { // as VEC(struct import_rule)
	struct import_rule *at;
	size_t n, cap;
};

// Translates the chains of a hook, without the rules that precede them. 0, or -EINVAL with err set.
int translate(const struct ruleset *ruleset, const struct import_options *options,
	      struct arena *arena, struct import_rules *ret, struct import_counts *counts,
	      struct err *err);

// The rule in words of nft, on one line; at most about 200 characters.
const char *original_text(const struct import_options *options, struct arena *arena,
			  const struct json *rule);

// Returns the default. Takes rules without conditions from the end, and gives every
// rule a name of its own.
enum step_action steps_finish(struct import_rules *steps, struct arena *arena);

// Adds statements, sets, and rules. `last`: of steps_finish.
void policy_print(const struct import_rules *steps, const struct import_options *options,
		  enum step_action last, struct text *ret);

struct expects_counts {
	size_t rules; // all of the policy, with those that precede the ruleset's
	size_t shown; // those with an expect line
};

// Adds expect lines for the edges of the values of each rule and for their neighbours. The first
// rule that matches decides, as in the policy.
struct expects_counts expects_print(const struct import_rules *steps,
				    const struct import_options *options, enum step_action last,
				    struct text *ret);
