// SPDX-License-Identifier: GPL-2.0-only
// Resolves host names through c-ares, all names of a call in parallel under one deadline.
//
// It reads /etc/hosts, takes every A and AAAA record, and follows CNAMEs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/net/dns_channel.h"
#include "ctl/net/dns_name.h"

struct dns_answer {
	const char *name;   // as asked
	struct addr *addrs; // sorted by addr_compare, each once
	size_t n;
	uint32_t ttl_s;      // smallest of the answer, CNAMEs included; 0 for /etc/hosts
	bool hosts;          // from /etc/hosts
	char canonical[256]; // end of the CNAME chain, "" when it is the name itself
	// 0, or -ENOENT no such name, -ENODATA name without an address, -ETIMEDOUT, -ECONNREFUSED
	// no server reachable, -EIO server failed, -EINVAL not a host name.
	int error;
	bool v4_missing, v6_missing; // resolved, but without A / without AAAA
	// Resolved, but that family's query failed (timeout, SERVFAIL).
	bool v4_failed, v6_failed;
};

// Fills answers[i] for names[i]; each names[i] must outlive the answers. 0 if the resolver itself
// worked (see each answer's error), or -errno with err set (bad server list, no library) and the
// answers untouched. Returns at the deadline at the latest (plus 100 ms). options may be NULL. A
// name in the hosts file has that file's addresses and no others; "localhost" is never asked for
// (RFC 6761 section 6.3). After SERVFAIL or REFUSED from one server the others are asked.
int dns_resolve(const char *const *names, size_t n, const struct dns_options *options,
		struct dns_answer *answers, struct err *err);
void dns_answers_free(struct dns_answer *answers, size_t n);
// A sentence for answer->error: "'x.example': no such name (NXDOMAIN)"; for a name that resolved,
// the missing record: "'x.example' has no AAAA record", or "".
void dns_describe(const struct dns_answer *answer, char *buf, size_t size);

// ---- on an event loop ---------------------------------------------------------------------------

struct event_base;
struct dns_ask;

// Called once for each dns_ask_start() that dns_ask_stop() does not end, never from inside of
// dns_ask_start(). There is an answer for each name; they are freed after the call.
typedef void dns_ask_done(void *ctx, const struct dns_answer *answers, size_t n);

// The names outlive the call of `done`; options may be NULL, and freed after the call. 0 or -errno
// with err set.
int dns_ask_start(struct event_base *base, const char *const *names, size_t n,
		  const struct dns_options *options, dns_ask_done *done, void *ctx,
		  struct dns_ask **ret, struct err *err);
// Ends it without a call of `done`. NULL is allowed.
void dns_ask_stop(struct dns_ask *a);
