// SPDX-License-Identifier: GPL-2.0-only
// Which packets a service takes: its addresses, protocols and ports, from the active policy.
#pragma once

#include "ctl/cmd/out.h"
#include "ctl/control/candidate.h"

// "vips", "protocols", "ports" and a line. c: of rules_load(); NULL, or without a service of that name: null.
void service_show_vips(struct out *o, const struct candidate *c, const char *service);
