// SPDX-License-Identifier: GPL-2.0-only
// MAC addresses of neighbours: what the kernel knows, and asking for what it does not know.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"

struct nlmsghdr;

enum neigh_state {
	NEIGH_NONE,   // nobody has asked
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

// The neighbour in one RTM_NEWNEIGH message. false: the message is another, or of no use (another
// family, a hardware address that is not six bytes long).
bool neigh_from_message(const struct nlmsghdr *nlh, struct neigh *ret);

// All neighbours of both families, ordered by neigh_compare; the caller frees *ret. 0 or -errno.
int neigh_list(struct neigh **ret, size_t *ret_n, struct err *err);
int neigh_compare(const void *a, const void *b); // by ifindex and address

// Fills in state, stale and mac of the n neighbours whose ifindex and addr are set; the same one may
// stand there more than once. Those that are not known are asked for all at once (RTM_NEWNEIGH with
// NTF_USE: the kernel asks without a packet to send, whatever filters are set), and waited for until
// the last has answered or failed, at most wait_ms for all together; stale ones are asked to be
// confirmed and not waited for. 0 also when some have not answered: their state says so. -errno with
// err set: the kernel refused to tell or to ask (-ENOBUFS: its table is full).
int neigh_resolve(struct neigh *wanted, size_t n, uint32_t wait_ms, struct err *err);
