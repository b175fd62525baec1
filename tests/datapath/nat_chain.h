// SPDX-License-Identifier: GPL-2.0-only
// The world of nat_world.h with a policy: frames take every program of it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/nat.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/maps.h"
#include "tests/datapath/nat_world.h"
#include "tests/datapath/rig.h"

#define NAT_CHAIN_PORT 8080 // backends have it, except for SCTP

struct nat_chain {
	struct rig *rig;
	struct candidate *c;
	struct mapping table, backends, uses;
	struct nat_table *nat;
	struct nat_use *use;
	uint32_t ends; // numbers that are given
};

// A VIP of each mode and family for TCP 80, UDP 53 and SCTP 9, and one backend of each family.
// former: the services are in dr now, and keep the connections that they have. Exits with status 2
// if the kernel refuses it.
struct nat_chain *nat_chain_new(bool former);
void nat_chain_free(struct nat_chain *n);
// The backend of a service, as the datapath sees it.
struct backend *nat_chain_backend(const struct nat_chain *n, uint8_t family, bool fullnat);
// Makes a device and routes by it to the clients: its index; 0: none can be made here. Then removes
// it.
#define NAT_CHAIN_NEIGHBOUR         \
	{                           \
		2, 0, 0, 0, 0, 0x55 \
	}
uint32_t nat_chain_route(void);
void nat_chain_unroute(void);
// Frames may be redirected to the device.
void nat_chain_egress(const struct nat_chain *n, uint32_t ifindex);
