// SPDX-License-Identifier: GPL-2.0-only
// Turns the facts of ctl/net/native into messages, before and after an attach.
#include "ctl/control/fitness.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/net/native.h"

#define FORGETS "driver '%s' leaves native mode silently when %s goes down or its MTU changes"

bool fitness_native(const struct link *link, enum attach_mode mode, struct err *ret_why)
{
	uint32_t max = native_mtu(link);

	if (max && link->mtu > max) {
		err_system(ret_why, EMSGSIZE, "cannot attach to '%s' in native mode", link->name);
		err_hint(ret_why, "driver '%s' would lose packets at MTU %u: ip link set %s mtu %u",
			 link->driver, link->mtu, link->name, max);
		return false;
	}
	if (mode == ATTACH_AUTO && native_is_forgotten(link->driver)) {
		err_refused(ret_why, FORGETS, link->driver, link->name);
		ret_why->kind = ERR_SYSTEM;
		ret_why->code = EOPNOTSUPP;
		return false;
	}
	return true;
}

void fitness_warn(const struct link *link, enum iface_mode mode, char *notice, size_t size)
{
	size_t len = strlen(notice);

	if (mode == IFACE_NATIVE && native_is_forgotten(link->driver))
		snprintf(notice + len, size - len, "%s" FORGETS ": weir detach, weir attach then",
			 len ? "; " : "", link->driver, link->name);
}
