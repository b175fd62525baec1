// SPDX-License-Identifier: GPL-2.0-only
// The pool of backends that runs: looked at, and changed by hand.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/control/balance.h"
#include "ctl/datapath/instance.h"

struct fleet {
	struct instance *instance;
	int lock; // -1: only looked at
	uint32_t generation;
	struct balancing_live *live;
	struct balancer *state; // of live
	struct clock clock;
};

// The balancer of the policy in force. With `command` (its line) for a change: takes the lock, refuses while a
// trial runs, tidies up. ERR_INPUT: the policy has no services. 0 or -errno with err set.
int fleet_open(const char *instance, const char *command, struct fleet *ret, struct err *err);
void fleet_close(struct fleet *p);
#define CLEANUP_FLEET CLEANUP(fleet_close)

struct target { // a backend of a service, by their places
	size_t service, member;
};
struct targets {
	struct target *at;
	size_t n, cap;
};

// The backends that are meant: of one service, or with NULL of the only one that has it, or with `all` of
// every one that has it. backend: "10.0.0.11" or "here". ERR_INPUT, with what there is, when it is none or
// not clear. The caller frees ret->at.
int fleet_find(const struct fleet *p, const char *service, bool all, const char *backend,
	       struct targets *ret, struct err *err);
int fleet_find_service(const struct fleet *p, const char *name, size_t *ret, struct err *err);

struct fleet_change {
	size_t slots;   // whose owner changed
	bool kept_last; // a service has nobody left for new flows: its last ring stays
};

// What was set in the targets is kept on disk (unless `fleeting`), then holds. 0 or -errno with err set.
int fleet_commit(struct fleet *p, const struct targets *targets, bool fleeting,
		 struct fleet_change *ret, struct err *err);

// Living pins by level of each backend of a service: ret[id][level], SERVICE_BACKENDS rows.
int fleet_pins(const struct fleet *p, size_t service, uint32_t (*ret)[PIN_LEVEL + 1],
	       struct err *err);

// "10.0.0.11", "here".
const char *fleet_name(const struct balancer_member *m, addr_text buf);
