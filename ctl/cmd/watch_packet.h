// SPDX-License-Identifier: GPL-2.0-only
// A record of the datapath as an event of `weir watch`.
#pragma once

#include <net/if.h>

#include "common/event.h"
#include "ctl/cmd/culprits.h"
#include "ctl/cmd/out.h"
#include "ctl/cmd/watch_event.h"
#include "ctl/control/packet.h"

struct watch_packet {
	struct watch_event event; // its strings are below, and the rule is of `culprits`
	struct packet_fields fields;
	char interface[IF_NAMESIZE];
	char packet[256];
	addr_text entry;
};

// All that conditions of `weir watch` need.
void watch_packet_read(struct culprits *c, const struct event *from, struct watch_packet *ret);
// The rest: the description, and the entry that dropped the packet.
void watch_packet_complete(struct culprits *c, const struct event *from, struct watch_packet *p);
// Sets the values in the open object.
void watch_packet_set(struct out *o, const struct watch_packet *p);
