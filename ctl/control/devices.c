// SPDX-License-Identifier: GPL-2.0-only
// Lists the links, and hands what they show to device_read_all().
#include "ctl/control/devices.h"

#include <stdlib.h>

#include "ctl/base/mem.h"
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

int devices_sync(const struct instance *i, struct devices *ret, struct err *err)
{
	int code = devices_read(i, ret, err);

	return code ? code : device_sync(i, ret->at, err);
}
