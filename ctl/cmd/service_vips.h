// SPDX-License-Identifier: GPL-2.0-only
// Prints addresses, protocols and ports of a service, from the active policy.
#pragma once

#include "ctl/cmd/out.h"
#include "ctl/control/candidate.h"

// Sets "vips", "protocols" and "ports" and prints a line. c is from rules_load(). If it is NULL or
// has no service of that name, the keys are null.
void service_show_vips(struct out *o, const struct candidate *c, const char *service);
