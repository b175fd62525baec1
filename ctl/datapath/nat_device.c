// SPDX-License-Identifier: GPL-2.0-only
// Writes the devices of interfaces into the table of connections.
#include "ctl/datapath/nat_device.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/nat.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/maps.h"
#include "ctl/table/nat_walk.h"

static int open_devices(int nat, struct mapping *ret, struct err *err)
{
	return mapping_open_part(ret, nat, offsetof(struct nat_table, device),
				 WEIR_IFACES * sizeof(struct nat_device), err);
}

// ---- the device ---------------------------------------------------------------------------------

static bool end_peers(const struct mapping *peers, uint32_t number)
{
	return nat_end_peers((struct nat_peer *)peers->at, number);
}

static void store(struct nat_device *device, uint32_t ifindex, uint32_t mtu)
{
	__atomic_store_n(&device->ifindex, ifindex, __ATOMIC_SEQ_CST);
	__atomic_store_n(&device->mtu, mtu, __ATOMIC_SEQ_CST);
}

// Meanwhile the interface has no device. A packet of the former one that is on its way may still
// get a peer, and an answer may have read one.
static int leave(struct nat_device *device, int nat, uint32_t number, struct err *err)
{
	CLEANUP_MAPPING struct mapping peers = {0};
	int code = mapping_open_part(&peers, nat, offsetof(struct nat_table, peer),
				     NAT_PEERS * sizeof(struct nat_peer), err);

	if (code)
		return code;
	store(device, 0, 0);
	if (!end_peers(&peers, number))
		return 0;
	if ((code = grace_wait(err)))
		return code;
	end_peers(&peers, number);
	return 0;
}

// 0: it is not known, as of a device in another network namespace.
static uint32_t mtu_of(uint32_t ifindex)
{
	CLEANUP_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq asked = {0};

	if (fd < 0 || !if_indextoname(ifindex, asked.ifr_name) || ioctl(fd, SIOCGIFMTU, &asked))
		return 0;
	return (uint32_t)asked.ifr_mtu;
}

int nat_device_set(int nat, uint32_t number, uint32_t ifindex, struct err *err)
{
	CLEANUP_MAPPING struct mapping m = {0};
	int code = open_devices(nat, &m, err);
	struct nat_device *device = (struct nat_device *)m.at + number;

	if (code || device->ifindex == ifindex)
		return code;
	if ((code = leave(device, nat, number, err)))
		return code;
	if (ifindex)
		store(device, ifindex, mtu_of(ifindex));
	return 0;
}

// ---- MTUs ---------------------------------------------------------------------------------------

int nat_device_set_mtus(int nat, const uint32_t mtus[WEIR_IFACES], struct err *err)
{
	CLEANUP_MAPPING struct mapping m = {0};
	int code = open_devices(nat, &m, err);
	struct nat_device *devices = m.at;

	for (uint32_t n = 1; code == 0 && n < WEIR_IFACES; n++)
		if (devices[n].ifindex && devices[n].mtu != mtus[n])
			__atomic_store_n(&devices[n].mtu, mtus[n], __ATOMIC_RELAXED);
	return code;
}

int nat_device_mtus(int nat, uint32_t ret[WEIR_IFACES], struct err *err)
{
	CLEANUP_MAPPING struct mapping m = {0};
	int code = open_devices(nat, &m, err);
	const struct nat_device *devices = m.at;

	for (uint32_t n = 0; code == 0 && n < WEIR_IFACES; n++)
		ret[n] = devices[n].mtu;
	return code;
}
