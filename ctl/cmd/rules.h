// SPDX-License-Identifier: GPL-2.0-only
// The rules of the active policy with their counters.
#pragma once

#include "ctl/cmd/alerts.h"
#include "ctl/cmd/command.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/instance.h"

// `weir block X port 22`: adds the quick rule `text`, with --for, --note, --origin, --force and
// --dry-run of args. 0 or -errno with err set.
int rule_add(struct context *ctx, const struct args *args, const char *text, struct err *err);
// `weir unblock X port 22`: deletes the quick rules with this text, with --origin only
// rules of this origin. None is no error. 0 or -errno with err set.
int rule_delete(struct context *ctx, const struct args *args, const char *text, struct err *err);
// Sets "quick_rules" and prints a line about the quick rules in front of a generation.
void rules_quick_show(struct out *o, const char *instance, const struct generation_about *about);
// Adds the alarms of rules: quick rules that should have ended, a file without the active ones, and
// rules that need connection tracking while it is off.
void rules_alarms(const char *instance, const struct generation_about *about, bool trial,
		  alarm_adder *add, void *ctx);
// Prints the table "rules": location, rule, packets, bytes. Without an active policy it prints
// nothing.
int rules_show(struct context *ctx, const struct instance *i, struct err *err);
