// SPDX-License-Identifier: GPL-2.0-only
// Prevents operators from cutting off the machine or themselves.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/addr.h"
#include "ctl/net/dns.h"
#include "ctl/net/session.h"

enum guard_level {
	GUARD_NAME,   // the peer of another login: not by an answer to a host name
	GUARD_WARN,   // resolver, NTP server: a warning
	GUARD_REFUSE, // own address, gateway, the operator's peer: not without --force
};

struct guarded {
	struct addr addr;
	enum guard_level level;
	char what[96]; // "the default gateway"
};

struct guard {
	struct guarded *at;
	size_t n, cap;
	bool partial; // something could not be looked for, and --force continues without it
};

// Collects what must not be cut off in the current network namespace. session: NULL, or the
// operator's, whose packets come through this namespace. dns: how names are asked for, NULL: by
// resolv.conf. 0; or -errno with err set if some of these cannot be found out: *ret then has the
// addresses found before, and the caller refuses to block.
int guard_collect(const struct session *session, const struct dns_options *dns, struct guard *ret,
		  struct err *err);
// The other ends of all logins over ssh. 0; or -errno with err set, and those that were found.
int guard_add_logins(struct guard *g, enum guard_level level, struct err *err);
void guard_free(struct guard *g);

// The first guarded address of at least this level in p, or NULL.
const struct guarded *guard_find(const struct guard *g, const struct prefix *p,
				 enum guard_level level);
// May a host name's answer be blocked? Unspecified, loopback and everything guarded are left out,
// because the owner of a name chooses its addresses; without `wide` also private, site-local,
// link-local and multicast ones. An address of IPv6 that NAT64 (RFC 6052) or 6to4 (RFC 3056) makes
// of such an IPv4 address is left out as well. NULL, or why not.
const char *guard_answer_problem(const struct guard *g, const struct addr *a, bool wide);

// Goes through the addresses of one name: it cannot fill the tables.
#define GUARD_ANSWERS_MAX 256
struct guard_sieve {
	const struct guard *guard;
	bool wide;
	size_t passed; // so far
};
// NULL: this address may be blocked, or why not.
const char *guard_sift(struct guard_sieve *s, const struct addr *a);
