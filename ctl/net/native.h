// SPDX-License-Identifier: GPL-2.0-only
// Facts about drivers in native mode that the drivers do not report; docs/kernels.md has the tests.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/net/link.h"

// The largest MTU at which the driver receives in native mode all that the MTU allows, one VLAN tag included.
// Above it the driver lets a program attach all the same and loses the longest packets before the program sees
// them. 0: no such limit is known.
uint32_t native_mtu(const struct link *link);
// The pure part; buffers: the driver takes a packet into several of them under XDP.
uint32_t native_mtu_of(const char *driver, bool buffers);

// Does the driver run the program no more once the device was down, or its MTU or rings changed? To the kernel it is
// attached as before.
bool native_is_forgotten(const char *driver);

// Does the driver send what is redirected to its device only while that carries a program in native mode?
bool native_sends_with_program(const char *driver);
bool native_carries(const struct link *link);

// Channels of a device, and whether each processor has a queue of its own to send from by XDP. virtio_net reserves
// them at attach, as far as there are any; without, they share queues under a lock.
struct native_queues {
	uint32_t now, max, cpus; // max 0: unknown
	bool attached;           // in native mode; the driver counts reserved queues then
};
bool native_shares_queues(const char *driver, const struct native_queues *q);
