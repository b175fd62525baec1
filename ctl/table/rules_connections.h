// SPDX-License-Identifier: GPL-2.0-only
// The rules that have a number of connections, and the ports at which these are counted.
#pragma once

#include "ctl/base/diag.h"
#include "ctl/policy/resolved.h"
#include "ctl/table/image.h"

// Gives the rule its number in the image, and its ports to rules_of_port. 0, or -EINVAL with an
// error queued.
int rules_connections_add(const struct resolved_rule *from, struct policy_rule *to, struct image *i,
			  struct diag *d);
