// SPDX-License-Identifier: GPL-2.0-only
// What was set by hand, on disk: it goes on after a reboot.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"
#include "ctl/base/vec.h"
#include "ctl/table/balancer.h"

struct hands {
	struct balancer_hand *at;
	size_t n, cap;
};

// /var/lib/weir/NAME/drains; no file: none. 0 or -errno with err set.
int hands_read(const char *instance, struct hands *ret, struct err *err);
// Replaces the file. The caller holds the lock.
int hands_write(const char *instance, const struct hands *hands, struct err *err);
// Forgets what was set for backends that the policy does not name, and what is over. `b` NULL: it has no services.
void hands_keep_named(struct hands *hands, const struct balancer *b, uint64_t wall_s);

// Is what is set in a member of a service on disk too?
bool hands_have(const struct hands *hands, const char *service, const struct balancer_member *m);
// Puts what is set in a member of a service into the list, in place of what is there.
void hands_put(struct hands *hands, const char *service, const struct balancer_member *m);
