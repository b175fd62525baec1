// SPDX-License-Identifier: GPL-2.0-only
// May the services of a policy take the addresses that they have?
#pragma once

#include "ctl/base/err.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/instance.h"

// Compares with the record of the active policy. -EINVAL with an error in c->diag for each service
// that takes an address of another one; a policy without a record cannot be compared. 0 or -errno
// with err set.
int vips_check(struct candidate *c, const struct instance *i, struct err *err);
