// SPDX-License-Identifier: GPL-2.0-only
// Alarms of weir status, for hooks: which have begun and which have ended.
#pragma once

#include <stdbool.h>

struct agent;
struct hook_alarms;

// Called for each alarm that begins (on) or ends.
typedef void hook_alarm_changed(struct agent *a, const char *alarm, bool on);

// Runs weir status soon after each command, and each ten seconds. The caller frees it.
struct hook_alarms *hook_alarms_new(struct agent *a, hook_alarm_changed *changed);
void hook_alarms_free(struct hook_alarms *h);
// An alarm without its counts and times, which change while it lasts: "2 packets passed" is
// "packets passed". The caller frees it.
char *hook_alarm_key(const char *alarm);
