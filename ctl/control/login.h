// SPDX-License-Identifier: GPL-2.0-only
// The operator's login as the datapath sees it: its packets, and the interfaces where they arrive.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/net/link.h"
#include "ctl/net/session.h"
#include "ctl/policy/resolved.h"

enum login {
	LOGIN_NONE,    // at the console, or through another network namespace
	LOGIN_KNOWN,   // its connection was found
	LOGIN_UNKNOWN, // remote, or perhaps so, and its connection was not found
};

// session NULL: no session.
enum login login_of(const struct session *s);

// A packet of an established connection; ports are of TCP and UDP.
struct resolved_packet login_answer(const struct addr *from, uint16_t sport, const struct addr *to,
				    uint16_t dport, uint8_t proto);
// One of a login that is known.
struct resolved_packet login_packet(const struct session *s);

// The interfaces of this network namespace, and which of them the login may use.
struct login_ways {
	struct link *links;
	bool *used; // by link
	size_t n;
	bool any; // it cannot be told: all of them
};
void login_ways_free(struct login_ways *w);
#define CLEANUP_LOGIN_WAYS CLEANUP(login_ways_free)

// Of a login that is known: the device of its address and that of the route to its peer, and what
// is below them (the device of a VLAN, the ports of a bridge or bond). What a tunnel carries comes
// in over any. 0 or -errno with err set.
int login_ways(const struct session *s, struct login_ways *ret, struct err *err);
bool login_uses(const struct login_ways *w, uint32_t ifindex);
