// SPDX-License-Identifier: GPL-2.0-only
// The world in which nats plays: a policy in a rig, and the model beside it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/datapath/nat_world.h"
#include "tests/reference/balancer/nat_model.h"

#define NATS_HZ    1000
#define NATS_SHIFT 10
#define NATS_OTHER 2 // the number of another interface

enum nats_kind { NATS_VIP = 1, NATS_BACKEND, NATS_SOURCE, NATS_CLIENT };

extern struct nat_rig *nats_rig;
extern struct natref nats_model;
extern uint64_t nats_packets; // so far

uint64_t nats_draw(uint64_t below);
void nats_seed(uint32_t seed);
// Prints it with the number of the packet and exits.
_Noreturn void nats_fail(const char *what);

void nats_address(uint8_t family, enum nats_kind kind, uint32_t number, uint8_t ret[16]);
// One of eight neighbours.
void nats_hop(uint32_t number, struct natref_hop *ret);

// Loads the policy: two VIPs with one port, for clashes, in each mode and family, and one of UDP.
void nats_begin(void);
void nats_end(void);
void nats_set_time(uint64_t jiffies);
// Other rings and cells, and an empty table, one that is nearly full of connections of any age, or
// of ones that live. Returns whether it is empty.
bool nats_shuffle(void);

// Fails unless the place, or all, are equal in both tables.
void nats_compare_place(uint8_t family, long place);
void nats_compare_tables(void);
void nats_compare_cells(void);
// Sets the bits of the backends that the rings name (ctl/table/nat_near.h).
void nats_add_near(uint64_t near[NAT_NEAR_WORDS]);
