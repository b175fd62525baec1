// SPDX-License-Identifier: GPL-2.0-only
// Prints the devices that carry the traffic of services.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/egress.h"

// "since the last ...": what lost frames are counted from.
#define EGRESS_SINCE "since the last weir apply or weir service --refresh"

// The devices of what is in force: what is known against them; what they lost before counts no more. Nothing where there
// are no services.
void egress_look(const char *instance, struct egress_findings *ret);

// To standard error and as the arrays "warnings" and "notices": the command's own n warnings and what is known against
// the devices; then what only may be wrong with them.
void egress_report(struct context *ctx, char *const *warnings, size_t n,
		   const struct egress_findings *list);

// A row for each, under "devices".
void egress_table(struct out *o, const struct egresses *a);
