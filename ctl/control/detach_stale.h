// SPDX-License-Identifier: GPL-2.0-only
// Interfaces that a policy attached are detached with it; interfaces of `weir attach` stay.
#pragma once

#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/instance.h"

struct ifnames {
	char (*at)[16];
	size_t n, cap;
};

// "eth1 eth2".
void ifnames_text(const struct ifnames *names, struct text *ret);

// Detaches the interfaces that an earlier policy brought and that generation `kept`, the active
// one, does not name. A policy without `interface` lines applies to all attached interfaces: it
// keeps interfaces of earlier policies, and loses only interfaces of a later trial. Adds their
// names to *ret. The caller holds the lock. 0 or -errno with err set: the first failure, after all
// were tried.
int detach_stale(const struct instance *i, uint32_t kept, struct ifnames *ret, struct err *err);

// Before the return to the previous policy: detaches the interfaces of the trial. Otherwise as
// above.
int detach_brought(const struct instance *i, struct ifnames *ret, struct err *err);
// Their names.
void detach_list_brought(const struct instance *i, struct ifnames *ret);
