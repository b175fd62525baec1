// SPDX-License-Identifier: GPL-2.0-only
// The host names of an instance in weir status: their number, the age of their answers.
#pragma once

#include "ctl/agent/presence.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/status_services.h"

struct status_names {
	uint64_t names, failing;
	uint64_t oldest_s; // time of the answers: wall clock; UINT64_MAX: no answer
	uint64_t next_s;   // wall clock: when the agent asks for the next one; 0: not known
	bool followed;     // by the agent
	bool unknown;      // the records cannot be read now
	uint64_t overdue;  // names; 0 also while an agent follows them
	char late[256];    // the one with the oldest answer among them
	uint64_t late_age_s, late_ttl_s;
};

// From the agent's report, else from the records.
void status_names_read(const char *instance, const struct presence *agent,
		       struct status_names *ret);
void status_names_show(struct context *ctx, const struct status_names *names, uint64_t now_s);
// Names of the active policy, of this revision, whose answers have protected addresses only.
void status_names_alarms(const struct context *ctx, const char *revision, alarm_adder *alarm,
			 void *status);

// At least this long: a timer may run every hour.
#define OVERDUE_LEAST_S 3600
// Is what was done at `last_s`, and was to be done again each `every_s`, late by four times that?
bool status_is_overdue(uint64_t last_s, uint64_t every_s, uint64_t now_s);
// The later one of a time and of the boot: before, no one could do it.
uint64_t status_since_boot_s(uint64_t at_s, uint64_t now_s);
