// SPDX-License-Identifier: GPL-2.0-only
// The devices by which answers of nat and fullnat leave, by number of the interface, with their MTU
// (docs/nat.md).
#pragma once

#include <stdint.h>

#include "common/limits.h"
#include "ctl/base/err.h"

// The device of an interface; ifindex 0: it has none any more. If it is another one than before,
// the peers of the interface end: no answer leaves by a device on which its client has sent
// nothing. nat: descriptor of the table of connections. 0 or -errno with err set.
int nat_device_set(int nat, uint32_t number, uint32_t ifindex, struct err *err);

// The present MTU of each interface that has a device; 0: unknown, so the kernel is asked for each
// of its answers. 0 or -errno with err set.
int nat_device_set_mtus(int nat, const uint32_t mtus[WEIR_IFACES], struct err *err);
// As the datapath has them.
int nat_device_mtus(int nat, uint32_t ret[WEIR_IFACES], struct err *err);
