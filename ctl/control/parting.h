// SPDX-License-Identifier: GPL-2.0-only
// What is lost with an instance: rings and pins exist in the kernel only.
#pragma once

#include "ctl/datapath/instance.h"

// ERR_REFUSED when connections would be sent elsewhere after the next attach, as its balancer
// begins anew from the policy and from overrides on disk. 0, or -errno with err set, also when that
// cannot be found out. The caller holds the lock.
int parting_check(const struct instance *i, struct err *err);
