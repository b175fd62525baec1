// SPDX-License-Identifier: GPL-2.0-only
// Alarms of weir status, for hooks: which have begun and which have ended.
#pragma once

#include <stdbool.h>

struct agent;
struct hook_alarms;

// An alarm has begun, or ended.
typedef void hook_alarms_tell(struct agent *a, const char *alarm, bool on);
// Runs weir status soon after each command, and each ten seconds.
struct hook_alarms *hook_alarms_new(struct agent *a, hook_alarms_tell *tell);
void hook_alarms_free(struct hook_alarms *h); // NULL is allowed
// An alarm without its counts and times, which change while it lasts: "2 packets passed" is
// "packets passed". The caller frees it.
char *hook_alarm_key(const char *alarm);
