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

// /var/lib/weir/NAME/drains (state.h); no file: none. 0 or -errno with err set.
int overrides_read(const char *instance, struct overrides *ret, struct err *err);
// Replaces the file. The caller holds the lock.
int overrides_write(const char *instance, const struct overrides *overrides, struct err *err);
// Removes the overrides from the file that have expired, or whose backend the policy does not name.
// `b` NULL: the policy has no services. The caller holds the lock. 0 or -errno with err set.
int overrides_forget_unnamed(const char *instance, const struct lb_state *b, struct err *err);

// Is the override of a member also on disk?
bool overrides_have(const struct overrides *overrides, const char *service,
		    const struct lb_member *m);
// Replaces the override of a member in the list.
void overrides_put(struct overrides *overrides, const char *service, const struct lb_member *m);
