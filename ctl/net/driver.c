// SPDX-License-Identifier: GPL-2.0-only
// The table of drivers.
#include "ctl/net/driver.h"

#include <string.h>

#include "ctl/base/mem.h"

static const struct driver drivers[] = {
	{
		.name = "veth",
		.known_as = "",
		.since = "4.19",
		.tested = true,
		.buffers = "",
		.tags = TAGS_OF_PEER,
		.redirect = REDIRECT_PEER,
	},
	{
		// A page without headroom, skb_shared_info and virtio's header.
		.name = "virtio_net",
		.known_as = "",
		.since = "4.10",
		.tested = true,
		.mtu = 3490,
		.buffers = "6.3",
		.excess = DRIVER_LOSES,
		.channels = CHANNELS_RESERVED,
		.redirect = REDIRECT_PROGRAM,
	},
	{
		// VMXNET3_MAX_SKB_BUF_SIZE, 3 kB, holds the frame. It forgets in 6.12 and 7.2.
		.name = "vmxnet3",
		.known_as = "",
		.since = "6.6",
		.tested = true,
		.mtu = 3054,
		.buffers = "",
		.excess = DRIVER_LOSES,
		.tags = TAGS_REMOVED,
		.redirect = REDIRECT_PROGRAM,
		.runs = RUNS_UNTIL_DOWN,
		.resets = true,
	},
	{
		// A page of Xen without XDP_PACKET_HEADROOM. Without feature-xdp-headroom,
		// xennet_xdp_set() does nothing and returns 0.
		.name = "vif",
		.known_as = "xen-netfront",
		.since = "5.9",
		.mtu = 3840,
		.buffers = "",
		.runs = RUNS_HEADROOM,
	},
	{
		// ENA_XDP_MAX_MTU and ena_xdp_legal_queue_count().
		.name = "ena",
		.known_as = "",
		.since = "5.6",
		.mtu = 3498,
		.buffers = "",
		.channels = CHANNELS_HALF,
		.redirect = REDIRECT_PROGRAM,
		.resets = true,
	},
	{
		// A buffer of 2 kB without Ethernet header and GVE_RX_PAD.
		.name = "gve",
		.known_as = "",
		.since = "6.4",
		.mtu = 2032,
		.buffers = "",
		.channels = CHANNELS_HALF,
		.clashes = CLASH_LRO | CLASH_HDS,
		.redirect = REDIRECT_PROGRAM,
		.resets = true,
	},
	{
		// mlx5e_xdp_max_mtu(). mlx5e_xdp_xmit() takes the channel with the number of the
		// CPU.
		.name = "mlx5_core",
		.known_as = "mlx5",
		.since = "4.9",
		.mtu = 3498,
		.buffers = "6.3",
		.clashes = CLASH_LRO | CLASH_HW_GRO,
		.tags = TAGS_REMOVED,
		.redirect = REDIRECT_CPUS,
		.resets = true,
	},
	{
		// 3 kB without I40E_PACKET_HDR_PAD, 26 bytes. i40e_xdp_xmit() takes the queue with
		// the number of the CPU.
		.name = "i40e",
		.known_as = "",
		.since = "4.13",
		.mtu = 3046,
		.buffers = "6.4",
		.tags = TAGS_REMOVED,
		.redirect = REDIRECT_CPUS,
		.resets = true,
	},
	{
		// Like i40e; its queues are shared under a lock.
		.name = "ice",
		.known_as = "",
		.since = "5.5",
		.mtu = 3046,
		.buffers = "6.3",
		.tags = TAGS_REMOVED,
		.redirect = REDIRECT_PROGRAM,
		.resets = true,
	},
	{
		// 3 kB without Ethernet header, FCS and one tag. RSC is LRO.
		.name = "ixgbe",
		.known_as = "",
		.since = "4.12",
		.mtu = 3050,
		.buffers = "",
		.clashes = CLASH_LRO | CLASH_SRIOV,
		.tags = TAGS_REMOVED,
		.redirect = REDIRECT_PROGRAM,
		.resets = true,
	},
	{
		// 3 kB without IGB_ETH_PKT_HDR_PAD, 26 bytes.
		.name = "igb",
		.known_as = "",
		.since = "5.10",
		.mtu = 3046,
		.buffers = "",
		.tags = TAGS_REMOVED,
		.redirect = REDIRECT_PROGRAM,
		.resets = true,
	},
	{
		// BNXT_MAX_PAGE_MODE_MTU.
		.name = "bnxt_en",
		.known_as = "bnxt",
		.since = "4.11",
		.mtu = 3500,
		.buffers = "5.19",
		.channels = CHANNELS_COMBINED,
		.clashes = CLASH_HDS,
		.tags = TAGS_REMOVED,
		.redirect = REDIRECT_PROGRAM,
		.resets = true,
	},
};

const struct driver *driver_list(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(drivers);
	return drivers;
}

const struct driver *driver_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
		if (!strcmp(drivers[i].name, name))
			return &drivers[i];
	return NULL;
}
