// SPDX-License-Identifier: GPL-2.0-only
// The pool: the backends that run, for commands that show or override them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/control/lb_apply.h"
#include "ctl/datapath/instance.h"

struct pool {
	struct instance *instance;
	int lock; // -1: only read
	uint32_t generation;
	struct lb_maps *live;
	struct lb_state *state; // of live
	struct clock clock;
};

// The balancer of the active policy. With `command` (its line) for a change: takes the lock,
// refuses while a trial runs, tidies up. ERR_INPUT: the policy has no services. 0 or -errno with
// err set.
int pool_open(const char *instance, const char *command, struct pool *ret, struct err *err);
// The same for the services of few backends, which pool_take() names: of the others the state has
// no slots, and a change does not touch them, unless something has expired there.
int pool_open_few(const char *instance, const char *command, struct pool *ret, struct err *err);
// The same only for next hops: a change is possible during a trial too, nothing is tidied up, and
// no service has slots.
int pool_open_paths(const char *instance, const char *command, struct pool *ret, struct err *err);
void pool_close(struct pool *p);
#define CLEANUP_POOL CLEANUP(pool_close)

struct pool_target { // a backend of a service, by their places
	size_t service, member;
};
struct pool_targets {
	struct pool_target *at;
	size_t n, cap;
};

// The backends that are meant: of one service, or with NULL of the only one that has it, or with
// `all` of every one that has it. backend: "10.0.0.11" or "here". ERR_INPUT, with what there is, if
// it is unknown or not clear. The caller frees ret->at.
int pool_find(const struct pool *p, const char *service, bool all, const char *backend,
	      struct pool_targets *ret, struct err *err);
// The slots of their services; for a change, tidied up. 0 or -errno with err set.
int pool_take(struct pool *p, const struct pool_targets *targets, struct err *err);
int pool_find_service(const struct pool *p, const char *name, size_t *ret, struct err *err);

// Saves the changes of the targets on disk (unless `fleeting`), then applies them. *ret_slots:
// number of slots whose owner changed. 0 or -errno with err set.
int pool_commit(struct pool *p, const struct pool_targets *targets, bool fleeting,
		size_t *ret_slots, struct err *err);

// Live pins by level of each backend of a service: ret[id][level], for SERVICE_BACKENDS ids.
int pool_pins(const struct pool *p, size_t service, uint32_t (*ret)[PIN_LEVEL + 1],
	      struct err *err);

// "10.0.0.11", "here".
const char *pool_name(const struct lb_member *m, addr_text buf);
