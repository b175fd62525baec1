// SPDX-License-Identifier: GPL-2.0-only
// MAC addresses of neighbours: the kernel asks for many under one deadline.
#include "ctl/net/neigh.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "ctl/base/time.h"
#include "ctl/base/vec.h"
#include "ctl/net/netlink.h"

enum {
	// An answer on the link takes less than a millisecond; the table is read again ever more
	// rarely.
	POLL_FIRST_MS = 1,
	POLL_MAX_MS = 32,
};

// <linux/neighbour.h> has no name for "an address that may be used".
#define STATES_CONFIRMED (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE)
#define STATES_KNOWN     (STATES_CONFIRMED | NUD_PROBE | NUD_STALE | NUD_DELAY)

struct neigh_table {
	VEC(struct neigh) found;
};

static void table_cleanup(struct neigh_table *t)
{
	vec_free(&t->found);
}

struct neigh_reading {
	struct neigh found;
	int family;
	bool has_mac;
};

static int read_attribute(const struct nlattr *attr, void *ctx)
{
	struct neigh_reading *r = ctx;

	if (mnl_attr_get_type(attr) == NDA_DST)
		r->found.addr = attribute_addr(r->family, attr);
	if (mnl_attr_get_type(attr) == NDA_LLADDR &&
	    mnl_attr_get_payload_len(attr) == sizeof(r->found.mac)) {
		memcpy(r->found.mac, mnl_attr_get_payload(attr), sizeof(r->found.mac));
		r->has_mac = true;
	}
	return MNL_CB_OK;
}

static enum neigh_state state_of(uint16_t nud, bool has_mac)
{
	if (nud & STATES_KNOWN)
		return has_mac ? NEIGH_KNOWN : NEIGH_NONE;
	if (nud & NUD_FAILED)
		return NEIGH_FAILED;
	return nud & NUD_INCOMPLETE ? NEIGH_ASKED : NEIGH_NONE;
}

bool neigh_from_message(const struct nlmsghdr *nlh, struct neigh *ret)
{
	const struct ndmsg *msg = mnl_nlmsg_get_payload(nlh);
	struct neigh_reading r = {0};

	if ((nlh->nlmsg_type != RTM_NEWNEIGH && nlh->nlmsg_type != RTM_DELNEIGH) ||
	    mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg))
		return false;
	if (msg->ndm_flags & NTF_PROXY) // an address that this host answers for
		return false;
	r.family = msg->ndm_family;
	if (mnl_attr_parse(nlh, sizeof(*msg), read_attribute, &r) < 0 || !r.found.addr.family)
		return false;
	r.found.ifindex = (uint32_t)msg->ndm_ifindex;
	if (nlh->nlmsg_type == RTM_NEWNEIGH)
		r.found.state = state_of(msg->ndm_state, r.has_mac);
	r.found.stale = r.found.state == NEIGH_KNOWN && !(msg->ndm_state & STATES_CONFIRMED);
	*ret = r.found;
	return true;
}

static int visit(const struct nlmsghdr *nlh, void *ctx)
{
	struct neigh_table *t = ctx;
	struct neigh n;

	if (neigh_from_message(nlh, &n))
		vec_push(&t->found, n);
	return MNL_CB_OK;
}

// By ifindex and address.
static int compare_neighbours(const void *a, const void *b)
{
	const struct neigh *na = a, *nb = b;

	if (na->ifindex != nb->ifindex)
		return na->ifindex < nb->ifindex ? -1 : 1;
	return addr_compare(&na->addr, &nb->addr);
}

// All neighbours of both families, sorted; the caller frees *ret. 0 or -errno.
static int list_neighbours(struct neigh **ret, size_t *ret_n, struct err *err)
{
	char buf[64] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	CLEANUP(table_cleanup) struct neigh_table t = {0};
	int code;

	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ndmsg));
	nlh->nlmsg_type = RTM_GETNEIGH;
	nlh->nlmsg_flags = NLM_F_DUMP;
	code = netlink_request(NETLINK_ROUTE, nlh, visit, &t);
	if (code)
		return err_system(err, -code, "cannot list the neighbours of this host");
	if (t.found.n)
		qsort(t.found.at, t.found.n, sizeof(*t.found.at), compare_neighbours);
	*ret_n = t.found.n;
	*ret = TAKE_PTR(t.found.at);
	return 0;
}

static int cannot_ask(const struct neigh *n, int code, struct err *err)
{
	addr_text text;

	err_system(err, -code, "cannot query the MAC address of '%s'", addr_format(&n->addr, text));
	if (code == -ENOBUFS)
		err_hint(err, "the table is full: sysctl -w net.ipv%u.neigh.default.gc_thresh3=N",
			 n->addr.family);
	return code;
}

// State 0 and not "permanent": the entry is one that the kernel may throw away again.
static int ask(const struct neigh *n, struct err *err)
{
	char buf[128] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ndmsg *msg = mnl_nlmsg_put_extra_header(nlh, sizeof(*msg));
	int code;

	nlh->nlmsg_type = RTM_NEWNEIGH;
	nlh->nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE;
	msg->ndm_family = n->addr.family == 4 ? AF_INET : AF_INET6;
	msg->ndm_ifindex = (int)n->ifindex;
	msg->ndm_flags = NTF_USE;
	mnl_attr_put(nlh, NDA_DST, addr_bits(&n->addr) / 8, n->addr.bytes);
	code = netlink_request(NETLINK_ROUTE, nlh, NULL, NULL);
	return code ? cannot_ask(n, code, err) : 0;
}

// Confirmed entries are not changed: NTF_USE would make permanent entries expire. A gateway of many
// backends is requested once.
static int ask_all(const struct neigh *wanted, size_t n, struct err *err)
{
	int code;

	for (size_t i = 0; i < n; i++) {
		if (wanted[i].state == NEIGH_KNOWN && !wanted[i].stale)
			continue;
		if (i && !compare_neighbours(&wanted[i - 1], &wanted[i]))
			continue;
		if ((code = ask(&wanted[i], err)))
			return code;
	}
	return 0;
}

static int read_states(struct neigh *wanted, size_t n, struct err *err)
{
	CLEANUP_FREE struct neigh *table = NULL;
	size_t table_n = 0;
	int code = list_neighbours(&table, &table_n, err);

	if (code)
		return code;
	for (size_t i = 0; i < n; i++) {
		const struct neigh *found = table_n ? bsearch(&wanted[i], table, table_n,
							      sizeof(*table), compare_neighbours)
						    : NULL;

		if (found)
			wanted[i] = *found;
	}
	return 0;
}

static bool any_waits(const struct neigh *wanted, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (wanted[i].state == NEIGH_NONE || wanted[i].state == NEIGH_ASKED)
			return true;
	return false;
}

static void sleep_ms(uint64_t ms)
{
	const struct timespec time = {.tv_sec = (time_t)(ms / 1000),
				      .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&time, NULL);
}

int neigh_resolve(struct neigh *wanted, size_t n, uint32_t wait_ms, struct err *err)
{
	uint64_t now, end, step = POLL_FIRST_MS;
	int code;

	for (size_t i = 0; i < n; i++)
		wanted[i] = (struct neigh){.ifindex = wanted[i].ifindex, .addr = wanted[i].addr};
	if ((code = read_states(wanted, n, err)) || (code = ask_all(wanted, n, err)))
		return code;
	end = time_ms(CLOCK_MONOTONIC) + wait_ms;
	// Reads again after the requests, even without time to wait: failed neighbours are
	// requested again.
	while (!(code = read_states(wanted, n, err)) && any_waits(wanted, n) &&
	       (now = time_ms(CLOCK_MONOTONIC)) < end) {
		sleep_ms(step < end - now ? step : end - now);
		step = step * 2 < POLL_MAX_MS ? step * 2 : POLL_MAX_MS;
	}
	return code;
}
