// SPDX-License-Identifier: GPL-2.0-only
// Receives the kernel's notifications about links, neighbours, routes and addresses (rtnetlink
// multicast).
//
// A notification is a reason to ask the kernel, not an answer: messages can be lost, and the
// answers of the other files of this room can be newer than a message.
#pragma once

#include "ctl/base/addr.h"
#include "ctl/net/link.h"
#include "ctl/net/neigh.h"

enum monitor_kind {
	MONITOR_LINK,      // link: new or changed
	MONITOR_LINK_GONE, // link.index
	MONITOR_NEIGH,     // neigh; removed: its state is NEIGH_NONE
	MONITOR_ROUTE,     // prefix: a route to it is new, changed or removed
	MONITOR_ADDRESS,   // an address of this host is new or removed
};

struct monitor_event {
	enum monitor_kind kind;
	struct link link;
	struct neigh neigh;
	struct prefix prefix;
};

struct monitor;

// In the current network namespace. 0 or -errno with err set.
int monitor_open(struct monitor **ret, struct err *err);
void monitor_close(struct monitor *m);
// For poll: readable when there are events.
int monitor_fd(const struct monitor *m);

// Visits the events that have come, without waiting. -ENOBUFS: some were lost, so anything may have
// changed; those that are left come with the next call. 0 or another -errno.
int monitor_read(struct monitor *m, void (*visit)(const struct monitor_event *e, void *ctx),
		 void *ctx);
