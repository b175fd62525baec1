// SPDX-License-Identifier: GPL-2.0-only
// Shared by the files of the resolver and their tests.
#pragma once

#define CARES_NO_DEPRECATED // newer c-ares would rather be asked in another way
#include <ares.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/net/dns.h"

enum {
	DNS_TYPE_A = 1,
	DNS_TYPE_CNAME = 5,
	DNS_TYPE_AAAA = 28,
	DNS_NAME_MAX = 253, // characters without the final dot (RFC 1035 section 2.3.4)
};

// --- dns.c: a resolution in steps

struct dns_resolver;

// Like dns_resolve(), but without waiting. 0 or -errno with err set.
int dns_resolver_new(const char *const *names, size_t n, const struct dns_options *options,
		     struct dns_answer *answers, struct dns_resolver **ret, struct err *err);
// Works on what has come, and asks on. True: to be called again when dns_resolver_fd() is readable,
// or after *ret_ms.
// False: each answer is there.
bool dns_resolver_step(struct dns_resolver *r, int64_t *ret_ms);
int dns_resolver_fd(const struct dns_resolver *r);
void dns_resolver_free(struct dns_resolver *r); // NULL is allowed

// --- dns_hosts.c: the hosts file, read once and sorted by name

struct hosts_entry {
	const char *name; // lower case, without a final dot
	struct addr addr;
};

struct hosts {
	char *text; // what the names point into
	VEC(struct hosts_entry) entries;
};

// NULL: /etc/hosts. A file that cannot be read is empty; lines without an address are skipped.
void hosts_read(const char *path, struct hosts *ret);
void hosts_cleanup(struct hosts *h);
// The first of *ret_n consecutive entries of the name, in either case; NULL: none.
const struct hosts_entry *hosts_find(const struct hosts *h, const char *name, size_t *ret_n);

// --- dns_message.c: an answer of a server

struct dns_found {
	VEC(struct addr) addrs;
	uint32_t ttl_s;      // the smallest of all used records; meaningless without addresses
	char canonical[256]; // the name that owns the addresses
};

// Adds to *found the addresses that `name` has in this answer to a query for `type` (A or AAAA),
// CNAMEs followed in any order. 0, -ENODATA without addresses, -EIO if it is malformed or a
// chain does not end.
int dns_message_read(const uint8_t *message, size_t len, const char *name, uint16_t type,
		     struct dns_found *found);

// --- dns_channel.c: a c-ares channel from our options

struct dns_channel_setup {
	int flags;
	int try_ms; // how long to wait for the first server; doubled each round
	ares_sock_state_cb watch;
	void *watch_ctx;
};

// 0 or -errno with err set.
int dns_channel_open(const struct dns_options *options, const struct dns_channel_setup *setup,
		     ares_channel *ret, struct err *err);
void dns_channel_close(ares_channel channel); // NULL is allowed
size_t dns_channel_count_servers(ares_channel channel);

// --- dns_domains.c: the search list

struct dns_domains {
	VEC(char *) of; // without a final dot
};

// From LOCALDOMAIN of the environment, else from the file (NULL: /etc/resolv.conf), else the domain
// of this host: resolv.conf(5). Empty if these have no list.
void dns_domains_read(const char *resolv_conf, struct dns_domains *ret);
void dns_domains_free(struct dns_domains *d);
