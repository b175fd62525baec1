// SPDX-License-Identifier: GPL-2.0-only
// Does native mode work on this driver?
//
// A driver that attaches and then loses packets, or passes them, is worse than one that refuses.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/datapath/attach.h"
#include "ctl/net/link.h"

// false: why is set, ERR_SYSTEM, so that generic mode may do. A mode that is asked for by name is refused only
// where it loses packets.
bool fitness_native(const struct link *link, enum attach_mode mode, struct err *ret_why);

// Adds to the notice what a device in native mode, just attached, may do later.
void fitness_warn(const struct link *link, enum iface_mode mode, char *notice, size_t size);
