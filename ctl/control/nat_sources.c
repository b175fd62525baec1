// SPDX-License-Identifier: GPL-2.0-only
// Compares the sources of fullnat with what this host does with its addresses.
#include "ctl/control/nat_sources.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/net/route.h"
#include "ctl/net/sockdiag.h"

#define RANGE    "/proc/sys/net/ipv4/ip_local_port_range" // of IPv6 too
#define RESERVED "/proc/sys/net/ipv4/ip_local_reserved_ports"
#define TEXT_MAX 65536

static struct addr address_of(const __u32 source[4], int v6)
{
	struct addr a = {.family = v6 ? 6 : 4};

	memcpy(a.bytes, source, v6 ? 16 : 4);
	return a;
}

// ---- ports of this host -------------------------------------------------------------------------

static uint32_t count_bits(const uint64_t *bits, uint32_t first, uint32_t last)
{
	uint32_t n = 0;

	for (uint32_t port = first; port <= last; port++)
		n += (uint32_t)(bits[port / 64] >> port % 64 & 1);
	return n;
}

// "8080,9000-9100\n"
static void read_reserved(uint64_t bits[65536 / 64])
{
	CLEANUP_FREE char *text = NULL;
	uint32_t first, last;
	char *rest, *word;
	size_t len;

	if (file_read(RESERVED, TEXT_MAX, &text, &len, NULL))
		return;
	for (rest = text; (word = strsep(&rest, ",\n"));)
		if (!num_parse_span(word, UINT16_MAX, &first, &last))
			for (uint32_t port = first; port <= last; port++)
				bits[port / 64] |= 1ull << port % 64;
}

// Whether a connection of this host can get one of the ports that sources have.
static bool draws_ports(void)
{
	CLEANUP_FREE char *text = NULL;
	uint64_t reserved[65536 / 64] = {0};
	uint32_t first, last;
	char *rest, *word;
	size_t len;

	if (file_read(RANGE, TEXT_MAX, &text, &len, NULL))
		return false;
	rest = text;
	word = strsep(&rest, "\t ");
	if (!rest || num_parse_u32(word, strlen(word), 0, UINT16_MAX, &first))
		return false;
	word = strsep(&rest, "\n");
	if (num_parse_u32(word, strlen(word), 0, UINT16_MAX, &last))
		return false;
	first = first > NAT_RESERVED ? first : NAT_RESERVED;
	read_reserved(reserved);
	return last >= first && count_bits(reserved, first, last) <= last - first;
}

// ---- what this host does with an address --------------------------------------------------------

struct sources_work {
	struct prefix *own;
	struct socket_info *connected, *bound;
	size_t n_own, n_connected, n_bound;
	struct addr *backends;
	size_t n_backends;
	bool draws;
	struct sentences *ret;
};

// A question that the kernel does not answer has no result.
static void work_begin(struct sources_work *w, const struct lb_state *lb)
{
	w->n_backends = lb->n_members;
	w->backends = mem_zalloc(lb->n_members, sizeof(*w->backends));
	for (size_t m = 0; m < lb->n_members; m++)
		lb_member_address(&lb->members[m], &w->backends[m]);
	route_own_prefixes(&w->own, &w->n_own, NULL);
	sockdiag_connected(&w->connected, &w->n_connected, NULL);
	sockdiag_bound(&w->bound, &w->n_bound, NULL);
	w->draws = draws_ports();
}

static void work_end(struct sources_work *w)
{
	free(w->backends);
	free(w->own);
	free(w->connected);
	free(w->bound);
}

static bool is_own(const struct sources_work *w, const struct addr *a)
{
	const struct prefix host = prefix_of(a, (uint8_t)addr_bits(a));

	for (size_t i = 0; i < w->n_own; i++)
		if (prefix_contains(&w->own[i], &host))
			return true;
	return !w->own;
}

// The first backend to which this host sends from the address; NULL: none.
static const struct addr *find_sent(const struct sources_work *w, const struct addr *a)
{
	struct lookup route;

	for (size_t i = 0; w->draws && i < w->n_backends; i++)
		if (w->backends[i].family == a->family && !lookup_route(&w->backends[i], &route) &&
		    !addr_compare(&route.source, a))
			return &w->backends[i];
	return NULL;
}

// Has it a port that a client can get?
static bool has_place(const struct socket_info *s, const struct addr *a)
{
	return s->local_port >= NAT_RESERVED && !addr_compare(&s->local, a);
}

// A connection of this host from the address to a backend.
static const struct socket_info *find_connected(const struct sources_work *w, const struct addr *a)
{
	for (size_t s = 0; s < w->n_connected; s++)
		for (size_t i = 0; i < w->n_backends; i++)
			if (has_place(&w->connected[s], a) &&
			    !addr_compare(&w->connected[s].remote, &w->backends[i]))
				return &w->connected[s];
	return NULL;
}

static const struct socket_info *find_bound(const struct sources_work *w, const struct addr *a)
{
	for (size_t s = 0; s < w->n_bound; s++)
		if (has_place(&w->bound[s], a))
			return &w->bound[s];
	return NULL;
}

static char *clash_of(const struct sources_work *w, const struct addr *a)
{
	const struct socket_info *connected = find_connected(w, a), *bound = find_bound(w, a);
	const struct addr *backend = find_sent(w, a);
	addr_text source, to;

	addr_format(a, source);
	if (connected)
		return mem_printf(
			"source %s: a socket of this host is connected from its port %u to %s, "
			"which a client may get too: use another source",
			source, connected->local_port, addr_format(&connected->remote, to));
	if (bound)
		return mem_printf("source %s: a socket of this host has its %s port %u, which a "
				  "client may get too: use another source",
				  source, bound->proto == IPPROTO_UDP ? "UDP" : "TCP",
				  bound->local_port);
	if (backend)
		return mem_printf("source %s: this host sends from it to %s too, and can draw the "
				  "same port as a client: use an address as source that this host "
				  "does not send from",
				  source, addr_format(backend, to));
	return NULL;
}

static void warn_of_clash(const struct sources_work *w, const struct addr *a)
{
	char *text = clash_of(w, a);

	if (text)
		sentences_add(w->ret, text);
}

static void warn_of(const struct sources_work *w, const struct addr *a)
{
	addr_text source;

	addr_format(a, source);
	if (!is_own(w, a))
		sentences_add(w->ret,
			      mem_printf("source %s is not an address of this host: answers of "
					 "backends arrive only if a router sends them here "
					 "(ip address add %s/%d dev IFACE)",
					 source, source, a->family == 4 ? 32 : 128));
	warn_of_clash(w, a);
}

// ---- sources of a policy ------------------------------------------------------------------------

void nat_sources_warn(const struct nat_wish *w, const struct lb_state *lb, struct sentences *ret)
{
	CLEANUP(work_end) struct sources_work work = {.ret = ret};

	if (!w->list[1][0].n && !w->list[1][1].n)
		return;
	work_begin(&work, lb);
	for (int v6 = 0; v6 < 2; v6++)
		for (size_t i = 0; i < w->list[1][v6].n; i++) {
			struct addr a = address_of(w->block[v6][w->list[1][v6].at[i]].source, v6);

			warn_of(&work, &a);
		}
}

// ---- sources that run ---------------------------------------------------------------------------

void nat_sources_clashes(const struct nat_reading *r, const struct lb_state *lb,
			 struct sentences *ret)
{
	CLEANUP(work_end) struct sources_work work = {.ret = ret};

	work_begin(&work, lb);
	vec_each (&r->blocks, b)
		if (b->source.family && (b->newest || b->living))
			warn_of_clash(&work, &b->source);
}

int nat_sources_left(const struct instance *i, struct sentences *ret, struct err *err)
{
	CLEANUP_NAT_READING struct nat_reading r = {0};
	int code = nat_read(i, &r, err);
	addr_text text;

	if (code)
		return code;
	vec_each (&r.blocks, b)
		if (b->source.family && !b->newest && b->living)
			sentences_add(ret,
				      mem_printf("%s is no longer a source: %zu %s it, so it must "
						 "remain an address of this host until they end",
						 addr_format(&b->source, text), b->living,
						 num_plural(b->living, "connection uses",
							    "connections use")));
	return 0;
}
