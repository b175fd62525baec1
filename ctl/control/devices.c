// SPDX-License-Identifier: GPL-2.0-only
// Lists the links, and hands what they show to device_read_all().
#include "ctl/control/devices.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/nat_device.h"
#include "ctl/net/link.h"

void devices_free(struct devices *d)
{
	free(d->links);
	d->links = NULL;
	d->n_links = 0;
}

int devices_read(const struct instance *i, struct devices *ret, struct err *err)
{
	CLEANUP_FREE struct device_shown *shown = NULL;

	*ret = (struct devices){0};
	link_list_bare(&ret->links, &ret->n_links, &ret->unlisted);
	shown = mem_zalloc(ret->n_links + 1, sizeof(*shown));
	for (size_t n = 0; n < ret->n_links; n++)
		shown[n] = (struct device_shown){
			.ifindex = ret->links[n].index,
			.prog_id = ret->links[n].xdp_prog_id,
			.name = ret->links[n].name,
		};
	return device_read_all(i, shown, ret->n_links, ret->at, &ret->unknown, err);
}

// ---- MTUs ---------------------------------------------------------------------------------------

static int compare_index(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

// By which device answers of nat and fullnat leave, by number of the interface. The MTU of one that
// is not in this network namespace is not known.
static void find_devices(const struct devices *d, struct nat_device ret[WEIR_IFACES])
{
	memset(ret, 0, WEIR_IFACES * sizeof(*ret));
	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		const struct link key = {.index = d->at[n].iface.ifindex}, *found = NULL;

		if (d->at[n].state == DEVICE_FREE || d->at[n].state == DEVICE_GONE)
			continue;
		if (d->n_links)
			found = bsearch(&key, d->links, d->n_links, sizeof(key), compare_index);
		ret[n] = (struct nat_device){key.index, found ? found->mtu : 0};
	}
}

int devices_sync(const struct instance *i, struct devices *ret, struct err *err)
{
	struct nat_device wanted[WEIR_IFACES];
	int code = devices_read(i, ret, err);

	if (code || (code = device_sync(i, ret->at, err)) || ret->unlisted.kind)
		return code;
	find_devices(ret, wanted);
	return nat_devices_set(i->nat, wanted, err);
}

bool devices_stale(const struct instance *i, const struct devices *devices)
{
	struct nat_device wanted[WEIR_IFACES];

	find_devices(devices, wanted);
	return !devices->unlisted.kind && !nat_devices_are(i->nat, wanted);
}
