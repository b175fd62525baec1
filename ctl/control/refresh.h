// SPDX-License-Identifier: GPL-2.0-only
// Looks again at the names of entries: new addresses are added, old ones stay for a grace time.
//
// An address that is not in the answer any more expires after it, as with --for; so the kernel ends it, and whoever is
// killed in between loses nothing. One that comes back in time stays. A name without an answer keeps what it has.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/vec.h"
#include "ctl/control/guard.h"
#include "ctl/net/dns.h"

#define REFRESH_GRACE_S 60 // at least; twice the TTL if that is more

struct refresh_name {
	char *name;
	uint64_t since_s; // of its owner
	uint32_t ttl_s;   // of the answer; 0: from /etc/hosts
	int error;        // as in struct dns_answer
	char why[256];    // a sentence about it, "" without
	size_t addresses; // of the answer, those that must not be blocked left out
	size_t added, leaving, back;
};

struct refresh {
	struct refresh_name *at;
	size_t n, cap;
	size_t changed;    // references
	VEC(uint64_t) who; // journal_who of their owners
};
void refresh_free(struct refresh *r);
#define CLEANUP_REFRESH CLEANUP(refresh_free)

// The names of entries, each once, sorted; those of `only` if it has any. No lock is held afterwards.
int refresh_list(const char *instance, const char *const *only, size_t n, struct refresh *ret,
		 struct err *err);
// Asks for them, without a lock, then changes their entries in one commit. guard: what must not be blocked.
int refresh_names(const char *instance, const char *command, const struct dns_options *dns,
		  const struct guard *guard, struct refresh *r, struct err *err);
