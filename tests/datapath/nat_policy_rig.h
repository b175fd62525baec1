// SPDX-License-Identifier: GPL-2.0-only
// A policy with services in nat and fullnat in a rig: the hosts of nat_world, with the ports of the
// VIPs.
#pragma once

#include <stdbool.h>

#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/maps.h"
#include "tests/datapath/nat_world.h"

struct candidate;
struct rig;
struct test_program;

// In the order of the policy; ends have the numbers plus 1.
enum nat_policy_service { NEAR4, FAR4, NEAR6, FAR6, NAT_POLICY_SERVICES };

struct nat_policy {
	struct rig *rig;
	struct candidate *c;
	struct test_program *test;
	struct nat_table *nat;
	struct mapping table, backends;
	struct mapping places[2][2]; // [1]: of IPv6; then of the block without a source, with one
	struct generation_cost cost;
	struct nat_use uses[NAT_ENDS];
};

// Packets from .66 are dropped, packets from .77 logged. former: services that have left nat and
// fullnat for dr.
struct nat_policy *nat_policy_new(bool former);
void nat_policy_free(struct nat_policy *w);
// The root program, and the device where frames arrive.
int nat_policy_program(const struct nat_policy *w);
uint32_t nat_policy_ifindex(const struct nat_policy *w);
// One frame through it. Returns its length as it was sent back, 0: it was not.
size_t nat_policy_send(struct nat_policy *w, const uint8_t *frame, size_t len,
		       uint8_t out[NAT_WORLD_FRAME]);
