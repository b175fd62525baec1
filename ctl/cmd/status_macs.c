// SPDX-License-Identifier: GPL-2.0-only
// Compares the devices above the interfaces with those that the datapath knows, for weir status.
#include "ctl/cmd/status_macs.h"

#include "ctl/base/mem.h"
#include "ctl/control/unroutable.h"

#define IFACE "interface" // the object of the alarms

// An open interface has an alarm already, with the same remedy.
static void alarm_stations(const struct instance *i, const struct devices *devices,
			   alarm_adder *add, void *ctx)
{
	const struct device *d = &devices->at[macs_stale(i, devices)];

	if (d->state == DEVICE_HELD)
		add(ctx, IFACE, d->iface.name,
		    "the MAC address or the members of '%s', or of a device above it, have "
		    "changed: services and reject ignore frames to the new address, and a "
		    "new member may count as a member of another bond (" MEND(
			    "weir attach %s") " reads them again)",
		    d->iface.name, d->iface.name);
}

static void alarm_routes_of(const char *device, enum macs_routes routes, alarm_adder *add,
			    void *ctx)
{
	CLEANUP_FREE char *gap = unroutable_gap(routes, device);

	if (gap)
		add(ctx, IFACE, device, "%s", gap);
	else if (routes == MACS_ROUTES_STALE)
		add(ctx, IFACE, device,
		    "the devices above '%s' have changed: 'unroutable' may match packets with a "
		    "route by a new one (" MEND("weir attach %s") " reads them again)",
		    device, device);
}

// VLANs mostly have the MAC address of the interface, which is then not stale.
static void alarm_routes(const struct instance *i, const struct devices *devices, uint64_t on,
			 const struct reach *reach, alarm_adder *add, void *ctx)
{
	enum macs_routes routes[WEIR_IFACES];

	macs_routes(i, devices, routes);
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (devices->at[n].state == DEVICE_HELD && unroutable_asks(reach, on, n))
			alarm_routes_of(devices->at[n].iface.name, routes[n], add, ctx);
}

void status_macs_alarms(const struct instance *i, const struct devices *devices,
			const struct generation_about *about, const struct reach *reach,
			alarm_adder *add, void *ctx)
{
	alarm_stations(i, devices, add, ctx);
	if (about->unroutable_on)
		alarm_routes(i, devices, about->unroutable_on, reach, add, ctx);
}
