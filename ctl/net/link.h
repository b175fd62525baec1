// SPDX-License-Identifier: GPL-2.0-only
// Network interfaces, as the kernel describes them (rtnetlink RTM_GETLINK).
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"

struct nlmsghdr;

enum link_xdp { LINK_XDP_NONE, LINK_XDP_NATIVE, LINK_XDP_GENERIC, LINK_XDP_HW, LINK_XDP_MULTI };

struct link {
	char name[IF_NAMESIZE];
	uint32_t index;
	char kind[16];        // IFLA_INFO_KIND: "veth", "bridge", "vlan"…; "" for a plain device
	char driver[32];      // ethtool's driver name; "" when unknown
	uint16_t type;        // ARPHRD_*; ARPHRD_ETHER is what Weir handles
	uint32_t mtu;         // bytes, without Ethernet header
	uint32_t master;      // ifindex of the bridge or bond it is a port of, 0 none
	uint32_t lower;       // IFLA_LINK: lower device of a VLAN; for veth the peer's ifindex
	bool lower_elsewhere; // the lower device or peer lives in another network namespace
	uint16_t vlan;        // tag of a VLAN device, 1 to 4095; 0: not a VLAN device
	uint16_t vlan_type;   // ethertype of that tag, host order: 0x8100 or 0x88a8
	bool no_arp;          // IFF_NOARP: neighbours have no addresses to ask for
	bool up, running;
	bool forwards4, forwards6; // packets that arrive there (net.ipv4.conf.NAME.forwarding)
	uint8_t mac[6];
	enum link_xdp xdp_mode;
	uint32_t xdp_prog_id; // program the link shows (native, generic or hw), 0 none
	uint32_t rx_queues, tx_queues;
	// Bytes up to which the kernel merges received packets; 0: unknown (before 5.19, before
	// 6.3).
	uint32_t gro_max, gro_max4;                // IPv4 by gro_max4 if known, IPv6 by gro_max
	uint64_t rx_packets, rx_bytes, rx_dropped; // IFLA_STATS64
};

// The largest packet that the kernel merges here, if it exceeds the length field (BIG TCP); else 0.
uint32_t link_big_tcp(const struct link *l);

// By name in the current network namespace. 0; -ENODEV with a sentence (and a "did you mean" hint
// from the names that exist) when it is not there; other -errno as ERR_SYSTEM.
int link_get(const char *name, struct link *ret, struct err *err);
int link_get_by_index(uint32_t index, struct link *ret, struct err *err);
// The interface in one RTM_NEWLINK message (its driver is left empty). false: the message is
// another.
bool link_from_message(const struct nlmsghdr *nlh, struct link *ret);
// All interfaces in order of their index; the caller frees *ret.
int link_list(struct link **ret, size_t *ret_n, struct err *err);
// The same without drivers, which need a request each. It is cheaper for the kernel, which leaves
// out the counters of IPv6.
int link_list_bare(struct link **ret, size_t *ret_n, struct err *err);
