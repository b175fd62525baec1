// SPDX-License-Identifier: GPL-2.0-only
// Shared by the two forms of `weir explain`: the text for rules, entries and defaults.
#pragma once

#include "ctl/base/text.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/out.h"
#include "ctl/control/decision.h"
#include "ctl/control/explain.h"
#include "ctl/control/explain_rules.h"
#include "ctl/datapath/test_program.h"

// The line of a decision: "from 203.0.113.7 is dropped: overlay block …".
struct decision_line {
	struct text what; // with `plural`, "are" follows
	bool plural;
	enum decision_verdict verdict;
	const char *to; // as in decision_add_done
	struct text why;
};
// Prints the line and frees its texts.
void explain_show_decision(struct out *o, struct decision_line *line);

// "overlay block 203.0.113.0/24 from, by root 02:13, 55m left, 18,204 packets, last 2s ago".
void explain_show_record(struct text *t, const struct store *s, const struct reference *record);
// 'rule "feeds" edge.weir:6'; 'rule 5' (counted from 1) where the record is missing.
void explain_show_rule(struct text *t, const struct explain *e, size_t rule);
// "default drop, edge.weir:21"; of the interface with this index in e->c.
void explain_show_default(struct text *t, const struct explain *e, uint32_t iface, bool drop);
// Adds the keys of a rule to the open JSON object.
void explain_set_rule(struct out *o, const struct explain *e, size_t rule);
// Adds the keys of an overlay record.
void explain_set_record(struct out *o, const struct store *s, const struct reference *record);
// Warns if the names of the rules are not known, or if a bypass or an expired trial passes all
// packets.
void explain_warn(struct context *ctx, const struct explain *e);

// weir explain ADDRESS.
int explain_address(struct context *ctx, const struct explain_request *request, const char *word,
		    struct err *err);
