// SPDX-License-Identifier: GPL-2.0-only
// Prints the devices that carry the traffic of services.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/egress.h"

// Lost frames are counted since then.
#define EGRESS_SINCE "since the last weir apply or weir service --refresh"

// Finds problems of the devices of the running services, and restarts the count of lost frames.
// Without services there are no findings.
void egress_look(const char *instance, struct egress_findings *ret);

// Prints to standard error and into the arrays "warnings" and "notices". Warnings: the n of the
// command and the problems of the devices. Notices: other findings.
void egress_report(struct context *ctx, char *const *warnings, size_t n,
		   const struct egress_findings *list);

// One line for each device, under "devices".
void egress_table(struct out *o, const struct egresses *a);
