// SPDX-License-Identifier: GPL-2.0-only
// Resolves host names through c-ares, all names of a call in parallel under one deadline.
//
// It reads /etc/hosts, takes every A and AAAA record, and follows CNAMEs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"

struct dns_options {
	const char *servers;     // "ADDR[:PORT][,…]", NULL: resolv.conf
	const char *resolv_conf; // path; NULL: /etc/resolv.conf
	const char *hosts;       // path; NULL: /etc/hosts; one that cannot be read is empty
	unsigned timeout_ms;     // for all names together; 0: 5000
	// Search domains for names without a dot (command line); false: every name is absolute.
	bool search;
};

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

// Fills answers[i] for names[i]; each names[i] must outlive the answers. 0 when the resolver itself
// worked (look at each answer's error), or -errno with err set (bad server list, no library) and
// the answers untouched. Returns at the deadline at the latest (plus 100 ms). options may be NULL.
// A name in the hosts file has that file's addresses and no others; "localhost" is never asked for
// (RFC 6761 section 6.3). After SERVFAIL or REFUSED from one server the others are asked.
int dns_resolve(const char *const *names, size_t n, const struct dns_options *options,
		struct dns_answer *answers, struct err *err);
void dns_answers_free(struct dns_answer *answers, size_t n);
// A sentence for answer->error: "'x.example': no such name (NXDOMAIN)"; for a name that resolved,
// the missing record: "'x.example' has no AAAA record", or "".
void dns_describe(const struct dns_answer *answer, char *buf, size_t size);

// Is text a host name: labels of 1..63 letters, digits, '-', '_', at most 253 in all, at least one
// letter; a final dot is allowed? NULL, or buf with the error (with the punycode form if the name
// has non-ASCII letters, RFC 3492). 512 bytes are enough.
const char *dns_name_problem(const char *text, size_t len, char *buf, size_t size);

// Addresses of the resolvers that would be asked (for the guard), each once; with the local stub
// of systemd-resolved also those that it asks. The caller frees *ret. 0 or -errno with err set.
int dns_servers(const struct dns_options *options, struct addr **ret, size_t *ret_n,
		struct err *err);
