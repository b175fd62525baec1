// SPDX-License-Identifier: GPL-2.0-only
// Writes the devices of interfaces into the table of connections.
#include "ctl/datapath/nat_device.h"

#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/nat.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/maps.h"
#include "ctl/table/nat_walk.h"

static int open_table(int nat, struct mapping *ret, struct err *err)
{
	return mapping_open_part(ret, nat, 0, sizeof(struct nat_table), err);
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

static void store(uint32_t *at, uint32_t value)
{
	__atomic_store_n(at, value, __ATOMIC_SEQ_CST);
}

// Without an MTU, the answer of a moment is left to the program that asks the kernel. A packet of
// the former device that is on its way may still get a peer, and an answer may have read one.
static int leave(struct nat_table *t, uint32_t number, struct err *err)
{
	int code;

	store(&t->device[number].mtu, 0);
	store(&t->device[number].ifindex, 0);
	nat_end_peers(t->peer, number);
	if (!t->shift) // no policy has ever used the table
		return 0;
	if ((code = grace_wait(err)))
		return code;
	nat_end_peers(t->peer, number);
	return 0;
}

static int set_device(struct nat_table *t, uint32_t number, uint32_t ifindex, struct err *err)
{
	struct nat_device *device = &t->device[number];
	int code = 0;

	if (device->ifindex == ifindex)
		return 0;
	if (device->ifindex && (code = leave(t, number, err)))
		return code;
	store(&device->ifindex, ifindex);
	return 0;
}

int nat_device_set(int nat, uint32_t number, uint32_t ifindex, struct err *err)
{
	CLEANUP_MAPPING struct mapping m = {0};
	int code = open_table(nat, &m, err);
	struct nat_table *t = m.at;

	if (code || t->device[number].ifindex == ifindex)
		return code;
	if ((code = set_device(t, number, ifindex, err)))
		return code;
	store(&t->device[number].mtu, ifindex ? mtu_of(ifindex) : 0);
	return 0;
}

int nat_devices_set(int nat, const struct nat_device wanted[WEIR_IFACES], struct err *err)
{
	CLEANUP_MAPPING struct mapping m = {0};
	int code = open_table(nat, &m, err);
	struct nat_table *t = m.at;

	for (uint32_t n = 1; code == 0 && n < WEIR_IFACES; n++) {
		if ((code = set_device(t, n, wanted[n].ifindex, err)))
			return code;
		if (t->device[n].mtu != wanted[n].mtu)
			store(&t->device[n].mtu, wanted[n].mtu);
	}
	return code;
}

bool nat_devices_are(int nat, const struct nat_device wanted[WEIR_IFACES])
{
	CLEANUP_MAPPING struct mapping m = {0};

	return !open_table(nat, &m, NULL) && !memcmp(((const struct nat_table *)m.at)->device,
						     wanted, WEIR_IFACES * sizeof(*wanted));
}
