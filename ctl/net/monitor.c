// SPDX-License-Identifier: GPL-2.0-only
// A netlink socket in the multicast groups of rtnetlink, and its messages.
#include "ctl/net/monitor.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ctl/base/mem.h"
#include "ctl/net/netlink.h"

enum {
	CHUNK_BYTES = 32 * 1024,
	// A burst of a thousand routes fits; more than that requires a full scan anyway.
	RECEIVE_BYTES = 1 << 20,
};

struct monitor {
	struct mnl_socket *nl;
};

struct monitor_reading {
	void (*visit)(const struct monitor_event *e, void *ctx);
	void *ctx;
};

static const int groups[] = {RTNLGRP_LINK,       RTNLGRP_NEIGH,       RTNLGRP_IPV4_ROUTE,
			     RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
			     RTNLGRP_IPV4_RULE,  RTNLGRP_IPV6_RULE};

void monitor_close(struct monitor *m)
{
	if (m && m->nl)
		mnl_socket_close(m->nl);
	free(m);
}

static void monitor_cleanup(struct monitor **m)
{
	monitor_close(*m);
}

static int join(struct mnl_socket *nl)
{
	int fd = mnl_socket_get_fd(nl), bytes = RECEIVE_BYTES;

	for (size_t n = 0; n < ARRAY_SIZE(groups); n++) {
		int group = groups[n];

		if (mnl_socket_setsockopt(nl, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
			return -errno;
	}
	// More than net.core.rmem_max needs CAP_NET_ADMIN; with the usual size more messages are
	// lost, which the kernel reports.
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	return 0;
}

int monitor_open(struct monitor **ret, struct err *err)
{
	CLEANUP(monitor_cleanup) struct monitor *m = mem_new(struct monitor);
	int code;

	m->nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!m->nl || mnl_socket_bind(m->nl, 0, MNL_SOCKET_AUTOPID) < 0)
		return err_system(err, errno, "cannot open a netlink socket");
	if ((code = join(m->nl)))
		return err_system(err, -code, "cannot follow changes of the network");
	*ret = TAKE_PTR(m);
	return 0;
}

int monitor_fd(const struct monitor *m)
{
	return mnl_socket_get_fd(m->nl);
}

// Only the index of a removed link is useful.
static bool read_link_gone(const struct nlmsghdr *nlh, struct monitor_event *e)
{
	const struct ifinfomsg *msg = mnl_nlmsg_get_payload(nlh);

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg) || msg->ifi_family == AF_BRIDGE)
		return false; // a port has left its bridge
	e->kind = MONITOR_LINK_GONE;
	e->link.index = (uint32_t)msg->ifi_index;
	return true;
}

static bool read_link(const struct nlmsghdr *nlh, struct monitor_event *e)
{
	const struct ifinfomsg *msg = mnl_nlmsg_get_payload(nlh);

	e->kind = MONITOR_LINK;
	return mnl_nlmsg_get_payload_len(nlh) >= sizeof(*msg) && msg->ifi_family != AF_BRIDGE &&
	       link_from_message(nlh, &e->link);
}

struct monitor_route {
	int family;
	struct addr to;
};

static int read_route_attribute(const struct nlattr *attr, void *ctx)
{
	struct monitor_route *r = ctx;

	if (mnl_attr_get_type(attr) == RTA_DST)
		r->to = attribute_addr(r->family, attr);
	return MNL_CB_OK;
}

// A default route has no destination. Of the routing cache nothing is announced here.
static bool read_route(const struct nlmsghdr *nlh, struct monitor_event *e)
{
	const struct rtmsg *msg = mnl_nlmsg_get_payload(nlh);
	struct monitor_route r = {0};

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg) ||
	    (msg->rtm_family != AF_INET && msg->rtm_family != AF_INET6))
		return false;
	r.family = msg->rtm_family;
	r.to.family = msg->rtm_family == AF_INET ? 4 : 6;
	if (mnl_attr_parse(nlh, sizeof(*msg), read_route_attribute, &r) < 0 || !r.to.family ||
	    msg->rtm_dst_len > addr_bits(&r.to))
		return false;
	e->kind = MONITOR_ROUTE;
	e->prefix = prefix_of(&r.to, msg->rtm_dst_len);
	return true;
}

// A rule may move every route of its family.
static bool read_rule(const struct nlmsghdr *nlh, struct monitor_event *e)
{
	const struct rtmsg *msg = mnl_nlmsg_get_payload(nlh);
	struct addr any = {0};

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg) ||
	    (msg->rtm_family != AF_INET && msg->rtm_family != AF_INET6))
		return false;
	any.family = msg->rtm_family == AF_INET ? 4 : 6;
	e->kind = MONITOR_ROUTE;
	e->prefix = prefix_of(&any, 0);
	return true;
}

static bool read_event(const struct nlmsghdr *nlh, struct monitor_event *e)
{
	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
		return read_link(nlh, e);
	case RTM_DELLINK:
		return read_link_gone(nlh, e);
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		e->kind = MONITOR_NEIGH;
		return neigh_from_message(nlh, &e->neigh);
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		return read_route(nlh, e);
	case RTM_NEWRULE:
	case RTM_DELRULE:
		return read_rule(nlh, e);
	case RTM_NEWADDR:
	case RTM_DELADDR:
		e->kind = MONITOR_ADDRESS;
		return true;
	default:
		return false;
	}
}

static int on_message(const struct nlmsghdr *nlh, void *reading)
{
	struct monitor_reading *r = reading;
	struct monitor_event e = {0};

	if (read_event(nlh, &e))
		r->visit(&e, r->ctx);
	return MNL_CB_OK;
}

int monitor_read(struct monitor *m, void (*visit)(const struct monitor_event *e, void *ctx),
		 void *ctx)
{
	CLEANUP_FREE char *chunk = mem_zalloc(1, CHUNK_BYTES);
	struct monitor_reading r = {visit, ctx};

	while (true) {
		ssize_t n = mnl_socket_recvfrom(m->nl, chunk, CHUNK_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (mnl_cb_run(chunk, (size_t)n, 0, 0, on_message, &r) == MNL_CB_ERROR)
			return -errno;
	}
}
