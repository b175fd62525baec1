// SPDX-License-Identifier: GPL-2.0-only
// Looks up the interface of the default route for the hint.
#include "ctl/control/need_attached.h"

#include <errno.h>
#include <stddef.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/instance.h"
#include "ctl/net/link.h"
#include "ctl/net/route.h"

int not_attached(const char *instance, const char *verb, struct err *err)
{
	CLEANUP_FREE struct gateway *gateways = NULL;
	struct link link;
	size_t n = 0;

	err_input(err, "instance '%s' is not attached to any interface: cannot %s", instance, verb);
	if (!route_gateways(&gateways, &n, NULL) && n &&
	    !link_get_by_index(gateways[0].ifindex, &link, NULL))
		err_hint(err, "the default route goes through %s: add -i %s, or run weir attach %s",
			 link.name, link.name, link.name);
	else
		err_hint(err, "add -i IFACE, or run weir attach IFACE");
	return -ENOENT;
}

int need_attached(const struct instance *i, const char *verb, struct err *err)
{
	return instance_has_ifaces(i) ? 0 : not_attached(i->name, verb, err);
}
