// SPDX-License-Identifier: GPL-2.0-only
// Resolves host names on an event loop: as dns_resolve(), but nothing waits.
#pragma once

#include "ctl/base/err.h"
#include "ctl/net/dns.h"

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
