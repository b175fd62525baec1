// SPDX-License-Identifier: GPL-2.0-only
// MAC addresses of neighbours: those the kernel knows, and questions about the others.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/err.h"

struct nlmsghdr;

enum neigh_state {
	NEIGH_NONE,   // not asked for
	NEIGH_ASKED,  // asked, no answer yet
	NEIGH_FAILED, // asked as often as the kernel does, no answer
	NEIGH_KNOWN,  // mac is good to send to
};

struct neigh {
	uint32_t ifindex;
	struct addr addr;
	enum neigh_state state;
	bool stale; // known, but not confirmed lately
	uint8_t mac[6];
};

// The neighbour in one RTM_NEWNEIGH message, or RTM_DELNEIGH (state NEIGH_NONE). false: the message
// is another, or of no use (another family, a hardware address that is not six bytes long).
bool neigh_from_message(const struct nlmsghdr *nlh, struct neigh *ret);

// Fills in state, stale and mac of the n neighbours whose ifindex and addr are set; duplicates are
// allowed. All unknown neighbours are requested at once (RTM_NEWNEIGH with NTF_USE: the kernel asks
// without a packet to send, independently of filters). The function waits until the last one has
// answered or failed, at most wait_ms for all together. Stale neighbours are asked for, but not
// waited for. 0 also when some have not answered: see their state. -errno with err set: the kernel
// did not list or ask (-ENOBUFS: its table is full).
int neigh_resolve(struct neigh *wanted, size_t n, uint32_t wait_ms, struct err *err);
