// SPDX-License-Identifier: GPL-2.0-only
// Makes the resolver's c-ares channel, name servers and search list from options and files.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/addr.h"
#include "ctl/base/err.h"
#include "ctl/base/vec.h"

struct ares_channeldata;

struct dns_options {
	const char *servers;     // "ADDR[:PORT][,…]", NULL: resolv.conf
	const char *resolv_conf; // path; NULL: /etc/resolv.conf
	const char *hosts;       // path; NULL: /etc/hosts; one that cannot be read is empty
	unsigned timeout_ms;     // for all names together; 0: 5000
	// Search domains for names without a dot (command line); false: every name is absolute.
	bool search;
};

// Addresses of the resolvers that would be asked (for the guard), each once; with the local stub
// of systemd-resolved also those that it asks. The caller frees *ret. 0 or -errno with err set.
int dns_servers(const struct dns_options *options, struct addr **ret, size_t *ret_n,
		struct err *err);

struct dns_channel_setup {
	int flags;
	int try_ms; // how long to wait for the first server; doubled each round
	void (*watch)(void *ctx, int fd, int readable, int writable);
	void *watch_ctx;
};

// 0 or -errno with err set.
int dns_channel_open(const struct dns_options *options, const struct dns_channel_setup *setup,
		     struct ares_channeldata **ret, struct err *err);
void dns_channel_close(struct ares_channeldata *channel); // NULL is allowed
size_t dns_channel_count_servers(struct ares_channeldata *channel);

struct dns_domains {
	VEC(char *) of; // without a final dot
};

// From LOCALDOMAIN of the environment, else from the file (NULL: /etc/resolv.conf), else the domain
// of this host: resolv.conf(5). Empty if these have no list.
void dns_domains_read(const char *resolv_conf, struct dns_domains *ret);
void dns_domains_free(struct dns_domains *d);
