// SPDX-License-Identifier: GPL-2.0-only
// Alarms of weir status, for hooks: which have begun and which have ended.
#pragma once

#include "ctl/base/err.h"

struct agent;
struct hook_alarms;

// Runs weir status soon after each command, and each ten seconds. 0 or -errno with err set; *ret is
// to be freed then, too.
int hook_alarms_new(struct agent *a, struct hook_alarms **ret, struct err *err);
void hook_alarms_free(struct hook_alarms *h); // NULL is allowed
// An alarm without its counts and times, which change while it lasts: "2 packets passed" is
// "packets passed". The caller frees it.
char *hook_alarm_key(const char *alarm);
