// SPDX-License-Identifier: GPL-2.0-only
// Finds out what an instance would lose: rings and pins exist only in the kernel.
#pragma once

#include "ctl/datapath/instance.h"

// ERR_REFUSED when connections would be sent elsewhere after the next attach, because its balancer
// starts again from the policy and the overrides on disk, or while nat and fullnat have
// connections. 0, or -errno with err set, also if that cannot be found out. The caller holds the
// lock.
int parting_check(const struct instance *i, struct err *err);
