// SPDX-License-Identifier: GPL-2.0-only
// The devices by which answers of nat and fullnat leave, by number of the interface, with their MTU
// (docs/nat.md).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/limits.h"
#include "common/nat.h"
#include "ctl/base/err.h"

// The device of an interface; ifindex 0: it has none any more. If it had another one, the peers of
// the interface end: each begins again with a packet that the new device gets from its next hop.
// nat: descriptor of the table of connections. 0 or -errno with err set.
int nat_device_set(int nat, uint32_t number, uint32_t ifindex, struct err *err);

// All devices, by number of the interface, of which [0] is empty. MTU 0: unknown, so the kernel is
// asked for each of its answers. 0 or -errno with err set.
int nat_devices_set(int nat, const struct nat_device wanted[WEIR_IFACES], struct err *err);
// Has the datapath these? false, too, if it cannot be read.
bool nat_devices_are(int nat, const struct nat_device wanted[WEIR_IFACES]);
