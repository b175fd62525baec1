// SPDX-License-Identifier: GPL-2.0-only
// Has a policy lost most of what the policy before it had? An agent does not apply such a file by
// itself: it may be half written.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"
#include "ctl/policy/resolved.h"

#define SHRINK_RULES_MIN \
	4 // rules of the accepted policy: with fewer, losing half is an ordinary edit

struct policy_size {
	size_t rules, services;
	bool drops; // `default drop`, on one interface at least
};

struct policy_size policy_size(const struct resolved *r);

enum shrink {
	SHRINK_NONE,
	SHRINK_RULES,    // half of the rules or fewer
	SHRINK_SERVICES, // none is left
	SHRINK_DROPS,    // no `default drop` is left
};

// The first loss of `now` compared with `before`.
enum shrink shrink_of(const struct policy_size *before, const struct policy_size *now);

// "main.weir has 3 rules, the active policy 40: 'weir apply /etc/weir/main.weir' applies it". path:
// of the file;
// which: "active" or "accepted", what `before` is of. Returns -EPERM, or 0 if nothing is lost.
int shrink_refuse(const struct policy_size *before, const struct policy_size *now, const char *path,
		  const char *which, const char *instance, struct err *err);
