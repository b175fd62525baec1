// SPDX-License-Identifier: GPL-2.0-only
// Writes the addresses of this host and the broadcast addresses of its subnets for the datapath: an
// answer to such an address would return, or go to all hosts.
#pragma once

#include <stddef.h>

#include "ctl/base/addr.h"
#include "ctl/datapath/instance.h"

// Writes these n addresses, and removes the others. Addresses without room are left out. An address
// that is both in the old and in the new list is never missing in between. 0 or -errno with err
// set.
int own_write(const struct instance *i, const struct addr *addrs, size_t n, struct err *err);
