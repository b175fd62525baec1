// SPDX-License-Identifier: GPL-2.0-only
// Finds addresses of services that a policy would give to another service, which moves all their
// connections.
#pragma once

#include "ctl/control/candidate.h"

// Compares with the record of the policy in force. -EINVAL with an error in c->diag for each
// service that takes what was another's; a policy without a record cannot be compared. 0 or -errno
// with err set.
int vips_check(struct candidate *c, const struct instance *i, struct err *err);
