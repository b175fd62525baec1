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

// By number of the interface; 0: its device is not in this network namespace.
static void find_mtus(const struct devices *d, uint32_t ret[WEIR_IFACES])
{
	for (uint32_t n = 0; n < WEIR_IFACES; n++) {
		const struct link key = {.index = d->at[n].iface.ifindex}, *found = NULL;

		if (d->at[n].state != DEVICE_FREE && d->n_links)
			found = bsearch(&key, d->links, d->n_links, sizeof(key), compare_index);
		ret[n] = found ? found->mtu : 0;
	}
}

int devices_sync(const struct instance *i, struct devices *ret, struct err *err)
{
	uint32_t mtus[WEIR_IFACES];
	int code = devices_read(i, ret, err);

	if (code || (code = device_sync(i, ret->at, err)) || ret->unlisted.kind)
		return code;
	find_mtus(ret, mtus);
	return nat_device_set_mtus(i->nat, mtus, err);
}

bool devices_mtu_stale(const struct instance *i, const struct devices *devices)
{
	uint32_t now[WEIR_IFACES], known[WEIR_IFACES];

	if (devices->unlisted.kind || nat_device_mtus(i->nat, known, NULL))
		return false;
	find_mtus(devices, now);
	return memcmp(now, known, sizeof(now)) != 0;
}
