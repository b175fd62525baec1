// SPDX-License-Identifier: GPL-2.0-only
// Devices that carry the traffic of services, in words.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/arms.h"

// "since the last ...": what lost frames are counted from.
#define ARMS_SINCE "since the last weir apply or weir service --refresh"

// The devices of what is in force: what is known against them; what they lost before counts no more. Nothing where there
// are no services.
void arms_look(const char *instance, struct arms_findings *ret);

// What is known against them, to standard error and as items of the open array: the problems as warnings, or else what
// only may be wrong as notices.
void arms_warn(struct context *ctx, const struct arms_findings *list);
void arms_note(struct context *ctx, const struct arms_findings *list);

// A row for each, under "devices".
void arms_table(struct out *o, const struct arms *a);
