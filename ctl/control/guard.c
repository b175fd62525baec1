// SPDX-License-Identifier: GPL-2.0-only
// Collects the addresses that must not be blocked by accident.
#include "ctl/control/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/net/route.h"
#include "ctl/net/sockdiag.h"

#define NTP_PORT 123

static void add(struct guard *g, const struct addr *a, enum guard_level level, const char *what)
{
	struct guarded *guarded;

	if (!a->family || addr_is_loopback(a) || addr_is_unspecified(a))
		return;
	guarded = vec_add(g);
	*guarded = (struct guarded){.addr = *a, .level = level};
	snprintf(guarded->what, sizeof(guarded->what), "%s", what);
}

static int add_own(struct guard *g, struct err *err)
{
	CLEANUP_FREE struct own_addr *own = NULL;
	size_t n = 0;
	int code = route_own_addrs(&own, &n, err);

	if (code)
		return code;
	for (size_t a = 0; a < n; a++)
		add(g, &own[a].addr, GUARD_REFUSE, "an address of this host");
	return 0;
}

static int add_gateways(struct guard *g, struct err *err)
{
	CLEANUP_FREE struct gateway *gateways = NULL;
	size_t n = 0;
	int code = route_gateways(&gateways, &n, err);

	if (code)
		return code;
	for (size_t a = 0; a < n; a++)
		add(g, &gateways[a].addr, GUARD_REFUSE, "the default gateway");
	return 0;
}

static int add_resolvers(struct guard *g, const struct dns_options *dns, struct err *err)
{
	CLEANUP_FREE struct addr *servers = NULL;
	size_t n = 0;
	int code = dns_servers(dns ? dns : &(struct dns_options){0}, &servers, &n, err);

	if (code)
		return code;
	for (size_t a = 0; a < n; a++)
		add(g, &servers[a], GUARD_WARN, "the resolver of this host");
	return 0;
}

// A kernel without sock_diag shows no sockets; this is not a failure.
static int add_time_servers(struct guard *g, struct err *err)
{
	CLEANUP_FREE struct socket_info *sockets = NULL;
	size_t n = 0;
	struct err why = {0};
	int code = sockdiag_udp(&sockets, &n, &why);

	if (code && !sockdiag_missing(code)) {
		*err = why;
		return code;
	}
	for (size_t s = 0; s < n; s++)
		if (sockets[s].remote_port == NTP_PORT)
			add(g, &sockets[s].remote, GUARD_WARN, "a time server of this host");
	return 0;
}

static int add_session(struct guard *g, const struct session *session, struct err *err)
{
	if (!session)
		return 0;
	add(g, &session->peer, GUARD_REFUSE, "the peer of your own login");
	add(g, &session->guess, GUARD_REFUSE, "probably the peer of your own login");
	return session->error
		       ? err_system(err, session->error, "cannot find the peer of your own login")
		       : 0;
}

int guard_collect(const struct session *session, const struct dns_options *dns, struct guard *ret,
		  struct err *err)
{
	int code;

	*ret = (struct guard){0};
	code = add_session(ret, session, err);
	if (code)
		return code;
	if ((code = add_own(ret, err)))
		return code;
	if ((code = add_gateways(ret, err)))
		return code;
	if ((code = add_resolvers(ret, dns, err)))
		return code;
	return add_time_servers(ret, err);
}

int guard_add_logins(struct guard *g, enum guard_level level, struct err *err)
{
	CLEANUP_FREE struct session *logins = NULL;
	size_t n = 0;
	int code = session_logins(&logins, &n, err);

	for (size_t l = 0; l < n; l++)
		add(g, &logins[l].peer, level, "the peer of a login");
	return code;
}

void guard_free(struct guard *g)
{
	vec_free(g);
}

const struct guarded *guard_find(const struct guard *g, const struct prefix *p,
				 enum guard_level level)
{
	vec_each (g, guarded) {
		struct prefix host = prefix_of(&guarded->addr, (uint8_t)addr_bits(&guarded->addr));

		if (guarded->level >= level && prefix_contains(p, &host))
			return guarded;
	}
	return NULL;
}

// Addresses that no server on the Internet has: RFC 6890, RFC 1918, RFC 6598, RFC 4193, RFC 4291.
static const struct {
	const char *prefix, *what;
} local_ranges[] = {
	{"0.0.0.0/8", "an address of this network"}, {"10.0.0.0/8", "a private address"},
	{"100.64.0.0/10", "a private address"},      {"169.254.0.0/16", "a link-local address"},
	{"172.16.0.0/12", "a private address"},      {"192.168.0.0/16", "a private address"},
	{"224.0.0.0/4", "a multicast address"},      {"240.0.0.0/4", "a reserved address"},
	{"fc00::/7", "a private address"},           {"fe80::/10", "a link-local address"},
	{"fec0::/10", "a site-local address"},       {"ff00::/8", "a multicast address"},
};

static const char *local_problem(const struct prefix *host)
{
	for (size_t n = 0; n < ARRAY_SIZE(local_ranges); n++) {
		const char *text = local_ranges[n].prefix;
		struct prefix range;

		if (!prefix_parse_quiet(text, strlen(text), &range, NULL) &&
		    prefix_contains(&range, host))
			return local_ranges[n].what;
	}
	return NULL;
}

// The IPv4 address in one of IPv6 that a host or gateway translates to it: RFC 6052 section 2.1,
// RFC 3056 section 2.
static bool find_embedded(const struct addr *a, struct addr *ret)
{
	static const struct {
		uint8_t prefix[12];
		size_t len, at; // bytes
	} forms[] = {
		{{0x00, 0x64, 0xff, 0x9b}, 12, 12}, // 64:ff9b::/96
		{{0x20, 0x02}, 2, 2},               // 2002::/16
	};

	for (size_t n = 0; a->family == 6 && n < ARRAY_SIZE(forms); n++) {
		if (memcmp(a->bytes, forms[n].prefix, forms[n].len) != 0)
			continue;
		*ret = (struct addr){.family = 4};
		memcpy(ret->bytes, a->bytes + forms[n].at, 4);
		return true;
	}
	return false;
}

static const char *problem_of(const struct guard *g, const struct addr *a, bool wide)
{
	struct prefix host = prefix_of(a, (uint8_t)addr_bits(a));
	const struct guarded *guarded;

	if (addr_is_unspecified(a))
		return "the unspecified address";
	if (addr_is_loopback(a))
		return "a loopback address";
	if ((guarded = guard_find(g, &host, GUARD_NAME)))
		return guarded->what;
	return wide ? NULL : local_problem(&host);
}

const char *guard_answer_problem(const struct guard *g, const struct addr *a, bool wide)
{
	const char *problem = problem_of(g, a, wide);
	struct addr inner;

	return problem || !find_embedded(a, &inner) ? problem : problem_of(g, &inner, wide);
}

const char *guard_sift(struct guard_sieve *s, const struct addr *a)
{
	const char *problem = guard_answer_problem(s->guard, a, s->wide);

	if (problem)
		return problem;
	if (s->passed == GUARD_ANSWERS_MAX)
		return "more than 256 addresses for one name";
	s->passed++;
	return NULL;
}
