// SPDX-License-Identifier: GPL-2.0-only
// Writes the devices of interfaces into the table of connections.
#include "ctl/datapath/nat_device.h"

#include <stdbool.h>
#include <stddef.h>

#include "common/nat.h"
#include "ctl/datapath/maps.h"
#include "ctl/table/nat_walk.h"

static bool end_peers(const struct mapping *peers, uint32_t number)
{
	return nat_end_peers((struct nat_peer *)peers->at, number);
}

// Meanwhile the interface has no device. A packet of the former one that is on its way may still
// get a peer, and an answer may have read one.
static int leave(uint32_t *device, int nat, uint32_t number, struct err *err)
{
	CLEANUP_MAPPING struct mapping peers = {0};
	int code = mapping_open_part(&peers, nat, offsetof(struct nat_table, peer),
				     NAT_PEERS * sizeof(struct nat_peer), err);

	if (code)
		return code;
	__atomic_store_n(device, 0, __ATOMIC_SEQ_CST);
	if (!end_peers(&peers, number))
		return 0;
	if ((code = grace_wait(err)))
		return code;
	end_peers(&peers, number);
	return 0;
}

int nat_device_set(int nat, uint32_t number, uint32_t ifindex, struct err *err)
{
	size_t at = offsetof(struct nat_table, device) + number * sizeof(ifindex);
	CLEANUP_MAPPING struct mapping m = {0};
	int code = mapping_open_part(&m, nat, at, sizeof(ifindex), err);
	uint32_t *device = m.at;

	if (code || *device == ifindex)
		return code;
	if ((code = leave(device, nat, number, err)))
		return code;
	__atomic_store_n(device, ifindex, __ATOMIC_SEQ_CST);
	return 0;
}
