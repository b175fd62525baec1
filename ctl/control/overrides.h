// SPDX-License-Identifier: GPL-2.0-only
// The overrides of backends on disk, where they survive a reboot.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"
#include "ctl/base/vec.h"
#include "ctl/table/lb_state.h"

struct overrides {
	struct lb_override *at;
	size_t n, cap;
};

// /var/lib/weir/NAME/drains; no file: none. 0 or -errno with err set.
int overrides_read(const char *instance, struct overrides *ret, struct err *err);
// Replaces the file. The caller holds the lock.
int overrides_write(const char *instance, const struct overrides *overrides, struct err *err);
// Forgets what was set for backends that the policy does not name, and what is over. `b` NULL: it has no services.
void overrides_keep_named(struct overrides *overrides, const struct lb_state *b, uint64_t wall_s);
// The same with the file on disk, read and replaced. The caller holds the lock. 0 or -errno with err set.
int overrides_forget_unnamed(const char *instance, const struct lb_state *b, struct err *err);

// Is what is set in a member of a service on disk too?
bool overrides_have(const struct overrides *overrides, const char *service,
		    const struct lb_member *m);
// Puts what is set in a member of a service into the list, in place of what is there.
void overrides_put(struct overrides *overrides, const char *service, const struct lb_member *m);
