// SPDX-License-Identifier: GPL-2.0-only
// Puts the health of backends into the rings of the policy that packets meet, and of the one before
// it during a trial.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/err.h"
#include "ctl/control/health.h"
#include "ctl/table/lb_state.h"

struct health_backend {
	struct addr addr; // family 0: here
	uint16_t port;    // as lb_member.port
	struct health health;
	// enum backend_state: what the ring takes it for, up if it is kept; health_see_rings
	uint8_t ring;
};

struct health_service {
	const char *name;
	struct health_rules rules;
	struct health_backend *backends;
	size_t n;
};

struct health_change {
	uint32_t generation; // that packets meet; 0: none, or it has no services
	size_t members;      // whose state or weight is another one
	size_t slots;
};

// Writes the health that differs, and the rings that follow from it: one rewrite for all. Members
// of other services do not change. Without an instance, or without services, it does nothing.
// `command` is for the lock. 0, or -errno with err set; -EAGAIN as lock_take.
int health_apply(const char *instance, const char *command, struct health_service *services,
		 size_t n, uint64_t now_ms, struct health_change *ret, struct err *err);

// Applies the health of the backends to the rings of `b`; health_apply has done it for the active
// rings.
void health_see_rings(struct lb_state *b, struct health_service *services, size_t n_services);
