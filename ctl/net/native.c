// SPDX-License-Identifier: GPL-2.0-only
// A short list of drivers; each fact was found by sending frames (tests/vm/drivers).
#include "ctl/net/native.h"

#include <stddef.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/net/xdp_features.h"

static const struct driver {
	const char *name;
	uint32_t mtu;         // in one buffer
	bool buffers;         // newer kernels take several
	bool forgets;         // the program, when the device comes up anew
	bool needs_program;   // to send what is redirected to it
	bool reserves_queues; // at attach, one for each processor
} drivers[] = {
	// A page without headroom, skb_shared_info and virtio's header; several buffers from Linux 6.3 on.
	{"virtio_net", 3490, true, false, true, true},
	// VMXNET3_MAX_SKB_BUF_SIZE, 3 kB, holds the frame. It forgets in 6.12 and 7.2.
	{"vmxnet3", 3054, false, true, true, false},
};

static const struct driver *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
		if (!strcmp(drivers[i].name, name))
			return &drivers[i];
	return NULL;
}

uint32_t native_mtu_of(const char *driver, bool buffers)
{
	const struct driver *d = find(driver);

	return d && !(buffers && d->buffers) ? d->mtu : 0;
}

uint32_t native_mtu(const struct link *link)
{
	uint64_t bits;
	bool buffers = !xdp_features(link->index, &bits) && (bits & XDP_FEATURE_RX_SG);

	return native_mtu_of(link->driver, buffers);
}

bool native_is_forgotten(const char *driver)
{
	const struct driver *d = find(driver);

	return d && d->forgets;
}

bool native_sends_with_program(const char *driver)
{
	const struct driver *d = find(driver);

	return d && d->needs_program;
}

bool native_carries(const struct link *link)
{
	return link->xdp_mode == LINK_XDP_NATIVE || link->xdp_mode == LINK_XDP_MULTI;
}

// Attached, those in use are the reserved ones and at least one more, unless there were too few to reserve any.
bool native_shares_queues(const char *driver, const struct native_queues *q)
{
	const struct driver *d = find(driver);

	if (!d || !d->reserves_queues || !q->max)
		return false;
	return q->attached ? q->now <= q->cpus : q->now + q->cpus > q->max;
}
