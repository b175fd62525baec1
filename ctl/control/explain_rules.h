// SPDX-License-Identifier: GPL-2.0-only
// Finds the rules of a policy that apply to an address, and the line of the set. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/addr.h"
#include "ctl/base/text.h"
#include "ctl/policy/resolved.h"

// The line of a set or list that decides about an address.
struct explain_entry {
	const struct resolved_addresses *list; // NULL: none
	struct prefix prefix;
	struct place place;
};

// Does the list contain the whole of p (ignoring exceptions within p)? Then *ret has the reason.
bool explain_holds(const struct resolved_addresses *list, const struct prefix *p,
		   struct explain_entry *ret);
// "edge.weir:6"; "command line" for an interface of -i.
void explain_add_place(struct text *t, const struct resolved *r, struct place place);
// "@feeds lists/drop.txt:812 203.0.112.0/22"; without a name for a list inside a rule.
void explain_add_entry(struct text *t, const struct resolved *r, const struct explain_entry *e);

// Which of the packets from (or to) p a rule matches.
enum explain_scope { EXPLAIN_NONE, EXPLAIN_SOME, EXPLAIN_ALL };
// *ret: the entry of the rule's own set that contains p; list NULL if the rule uses no set.
enum explain_scope explain_scope(const struct resolved *r, const struct resolved_rule *rule,
				 const struct prefix *p, bool to, struct explain_entry *ret);

// The rule among first … last - 1 that decides about every packet from (or to) p; last: none does.
// *ret_before: how many before it decide about some.
size_t explain_decider(const struct resolved *r, size_t first, size_t last, const struct prefix *p,
		       bool to, size_t *ret_before);
