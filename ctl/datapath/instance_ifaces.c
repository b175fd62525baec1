// SPDX-License-Identifier: GPL-2.0-only
// Reads the interface table and asks the kernel for the names of the devices.
#include "ctl/datapath/instance_ifaces.h"

#include <net/if.h>
#include <string.h>

#include "ctl/datapath/device.h"

int instance_iface(const struct instance *i, uint32_t number, struct iface *ret, struct err *err)
{
	struct iface iface;
	int code = instance_iface_stored(i, number, &iface, err);

	if (code)
		return code;
	if (iface.state != IFACE_FREE)
		device_refresh(i, number, &iface);
	*ret = iface;
	return 0;
}

int instance_find_iface(const struct instance *i, const char *name, uint32_t *ret, struct err *err)
{
	uint32_t ifindex = if_nametoindex(name), found = 0;
	struct iface all[WEIR_IFACES];
	int code = instance_ifaces_stored(i, all, err);

	if (code)
		return code;
	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		struct iface *iface = &all[n];

		if (iface->state == IFACE_FREE)
			continue;
		device_refresh(i, n, iface);
		if (!strcmp(iface->name, name) && (!found || iface->ifindex == ifindex))
			found = n;
	}
	*ret = found;
	return 0;
}
