// SPDX-License-Identifier: GPL-2.0-only
// The lines of `weir explain` about a service.
#pragma once

#include "ctl/base/text.h"
#include "ctl/cmd/out.h"
#include "ctl/control/explain.h"
#include "ctl/datapath/test_program.h"

// "service www edge.weir:9, to 10.0.0.12".
void explain_add_service(struct text *t, const struct explain *e, const struct test_result *r);

// Slot, owner, former owner, pin, and the rule that passed the packet.
void explain_show_service(struct out *o, const struct explain *e, const struct test_result *r);
