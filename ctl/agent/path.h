// SPDX-License-Identifier: GPL-2.0-only
// Checks via path: sockets of the agent whose packets go to a backend like packets of clients.
#pragma once

#include <stdint.h>

#include "ctl/agent/agent.h"
#include "ctl/base/addr.h"
#include "ctl/base/err.h"

struct path;     // state of all checks of a policy
struct path_way; // to one backend of a service

// The policy of this generation is active. 0 or -errno with err set.
int path_open(struct agent *a, uint32_t generation, struct path **ret, struct err *err);
void path_free(struct path *p); // after its ways; NULL is allowed

// A check goes to `vip`, an address of a service, from `source`, an address of this host.
struct path_ends {
	struct addr vip, source;
};

// backend: family 4 or 6, and its port as lb_member.port has it. *ret is NULL where the kernel has
// no such backend. 0 or -errno with err set.
int path_way_new(struct path *p, const char *service, const struct addr *backend,
		 uint16_t backend_port, const struct path_ends *ends, uint32_t timeout_ms,
		 struct path_way **ret, struct err *err);
void path_way_free(struct path_way *w);  // NULL is allowed
void path_way_ended(struct path_way *w); // the check: its port is soon free. NULL is allowed

// For probe_spec.open; the way is its context. NULL: no socket can be made.
int path_socket(void *way, uint16_t port, int type);
