// SPDX-License-Identifier: GPL-2.0-only
// Own addresses and default gateways, read with RTM_GETADDR and RTM_GETROUTE, and the route of one
// destination.
#include "ctl/net/route.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/base/vec.h"
#include "ctl/net/netlink.h"

struct own_addrs {
	VEC(struct own_addr) found;
};

struct gateways {
	VEC(struct gateway) found;
};

// The attributes of an address.
struct addr_message {
	int family;
	struct addr local, other;
};

// The attributes of a route, or of one of its next hops.
struct route {
	int family;
	struct addr via;
	const struct nlattr *multipath;
	uint32_t ifindex, table, metric;
};

static void own_addrs_cleanup(struct own_addrs *a)
{
	vec_free(&a->found);
}

static void gateways_cleanup(struct gateways *g)
{
	vec_free(&g->found);
}

static int request_dump(uint16_t type, netlink_visit *visit, void *ctx)
{
	char buf[128] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	// struct rtmsg is the larger of the two headers, and zero asks for all families in both.
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct rtmsg));
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_DUMP;
	return netlink_request(NETLINK_ROUTE, nlh, visit, ctx);
}

static int read_addr_attribute(const struct nlattr *attr, void *ctx)
{
	struct addr_message *m = ctx;

	if (mnl_attr_get_type(attr) == IFA_LOCAL)
		m->local = attribute_addr(m->family, attr);
	else if (mnl_attr_get_type(attr) == IFA_ADDRESS)
		m->other = attribute_addr(m->family, attr);
	return MNL_CB_OK;
}

// IFA_LOCAL is ours; on a point-to-point link IFA_ADDRESS is the peer's.
static int visit_addr(const struct nlmsghdr *nlh, void *ctx)
{
	const struct ifaddrmsg *msg = mnl_nlmsg_get_payload(nlh);
	struct own_addrs *addrs = ctx;
	struct addr_message m = {.family = msg->ifa_family};

	if (nlh->nlmsg_type != RTM_NEWADDR)
		return MNL_CB_OK;
	mnl_attr_parse(nlh, sizeof(*msg), read_addr_attribute, &m);
	if (!m.local.family)
		m.local = m.other;
	if (m.local.family)
		vec_push(&addrs->found, ((struct own_addr){
						.addr = m.local,
						.prefix_len = msg->ifa_prefixlen,
						.ifindex = msg->ifa_index,
					}));
	return MNL_CB_OK;
}

int route_own_addrs(struct own_addr **ret, size_t *ret_n, struct err *err)
{
	CLEANUP(own_addrs_cleanup) struct own_addrs addrs = {0};
	int code = request_dump(RTM_GETADDR, visit_addr, &addrs);

	if (code)
		return err_system(err, -code, "cannot list the addresses of this host");
	*ret_n = addrs.found.n;
	*ret = TAKE_PTR(addrs.found.at);
	return 0;
}

// ---- local prefixes -----------------------------------------------------------------------------

struct prefixes {
	VEC(struct prefix) found;
};

static void prefixes_cleanup(struct prefixes *p)
{
	vec_free(&p->found);
}

static int read_destination(const struct nlattr *attr, void *ctx)
{
	struct addr_message *m = ctx;

	if (mnl_attr_get_type(attr) == RTA_DST)
		m->local = attribute_addr(m->family, attr);
	return MNL_CB_OK;
}

static int visit_local(const struct nlmsghdr *nlh, void *ctx)
{
	const struct rtmsg *msg = mnl_nlmsg_get_payload(nlh);
	struct addr_message m = {.family = msg->rtm_family};
	struct prefixes *prefixes = ctx;

	if (nlh->nlmsg_type != RTM_NEWROUTE || msg->rtm_type != RTN_LOCAL)
		return MNL_CB_OK;
	mnl_attr_parse(nlh, sizeof(*msg), read_destination, &m);
	if (m.local.family && !addr_is_loopback(&m.local))
		vec_push(&prefixes->found, prefix_of(&m.local, msg->rtm_dst_len));
	return MNL_CB_OK;
}

static int compare_prefixes(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

static void sort_once(struct prefixes *p)
{
	size_t kept = 0;

	if (p->found.n)
		qsort(p->found.at, p->found.n, sizeof(*p->found.at), compare_prefixes);
	for (size_t i = 0; i < p->found.n; i++)
		if (!kept || prefix_compare(&p->found.at[kept - 1], &p->found.at[i]))
			p->found.at[kept++] = p->found.at[i];
	p->found.n = kept;
}

// Each address has a local route, except an IPv6 address during duplicate address detection.
int route_own_prefixes(struct prefix **ret, size_t *ret_n, struct err *err)
{
	CLEANUP(prefixes_cleanup) struct prefixes all = {0};
	CLEANUP_FREE struct own_addr *own = NULL;
	size_t n = 0;
	int code = route_own_addrs(&own, &n, err);

	if (code)
		return code;
	for (size_t i = 0; i < n; i++)
		if (!addr_is_loopback(&own[i].addr))
			vec_push(&all.found,
				 prefix_of(&own[i].addr, (uint8_t)addr_bits(&own[i].addr)));
	code = request_dump(RTM_GETROUTE, visit_local, &all);
	if (code)
		return err_system(err, -code, "cannot list the local routes of this host");
	sort_once(&all);
	*ret_n = all.found.n;
	*ret = TAKE_PTR(all.found.at);
	return 0;
}

// ---- gateways -----------------------------------------------------------------------------------

static int read_route_attribute(const struct nlattr *attr, void *ctx)
{
	struct route *r = ctx;

	switch (mnl_attr_get_type(attr)) {
	case RTA_GATEWAY:
		r->via = attribute_addr(r->family, attr);
		break;
	case RTA_VIA:
		r->via = attribute_via(attr);
		break;
	case RTA_OIF:
		r->ifindex = mnl_attr_get_u32(attr);
		break;
	case RTA_TABLE:
		r->table = mnl_attr_get_u32(attr);
		break;
	case RTA_PRIORITY:
		r->metric = mnl_attr_get_u32(attr);
		break;
	case RTA_MULTIPATH:
		r->multipath = attr;
		break;
	}
	return MNL_CB_OK;
}

static void add_gateway(struct gateways *g, const struct route *r)
{
	vec_push(&g->found, ((struct gateway){
				    .addr = r->via,
				    .ifindex = r->ifindex,
				    .metric = r->metric,
			    }));
}

// A list of struct rtnexthop, each followed by its attributes and padded to four bytes.
static void add_multipath(struct gateways *g, const struct route *r)
{
	const char *at = mnl_attr_get_payload(r->multipath);
	size_t left = mnl_attr_get_payload_len(r->multipath);

	while (left >= sizeof(struct rtnexthop)) {
		const struct rtnexthop *nh = (const void *)at;
		size_t len = nh->rtnh_len, step = (len + 3) & ~(size_t)3;
		struct route hop = {.family = r->family, .metric = r->metric};

		if (len < sizeof(*nh) || len > left)
			return;
		hop.ifindex = (uint32_t)nh->rtnh_ifindex;
		mnl_attr_parse_payload(nh + 1, len - sizeof(*nh), read_route_attribute, &hop);
		add_gateway(g, &hop);
		at += step;
		left -= step < left ? step : left;
	}
}

static int visit_route(const struct nlmsghdr *nlh, void *ctx)
{
	const struct rtmsg *msg = mnl_nlmsg_get_payload(nlh);
	struct route r = {.family = msg->rtm_family, .table = msg->rtm_table};

	if (nlh->nlmsg_type != RTM_NEWROUTE || msg->rtm_dst_len || msg->rtm_type != RTN_UNICAST)
		return MNL_CB_OK;
	if (msg->rtm_family != AF_INET && msg->rtm_family != AF_INET6)
		return MNL_CB_OK;
	mnl_attr_parse(nlh, sizeof(*msg), read_route_attribute, &r);
	if (r.table != RT_TABLE_MAIN)
		return MNL_CB_OK;
	if (r.multipath)
		add_multipath(ctx, &r);
	else
		add_gateway(ctx, &r);
	return MNL_CB_OK;
}

static int compare_gateway(const void *a, const void *b)
{
	const struct gateway *ga = a, *gb = b;

	if (ga->metric != gb->metric)
		return ga->metric < gb->metric ? -1 : 1;
	return addr_compare(&ga->addr, &gb->addr);
}

int route_gateways(struct gateway **ret, size_t *ret_n, struct err *err)
{
	CLEANUP(gateways_cleanup) struct gateways g = {0};
	int code = request_dump(RTM_GETROUTE, visit_route, &g);

	if (code)
		return err_system(err, -code, "cannot list the default routes of this host");
	if (g.found.n)
		qsort(g.found.at, g.found.n, sizeof(*g.found.at), compare_gateway);
	*ret_n = g.found.n;
	*ret = TAKE_PTR(g.found.at);
	return 0;
}

// The first character of the switch; '\0': there is no switch.
static char read_switch(int dir, const char *ifname)
{
	CLEANUP_FREE char *path = mem_printf("%s/forwarding", ifname);
	CLEANUP_FD int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	char value;

	return fd >= 0 && read(fd, &value, 1) == 1 ? value : '\0';
}

static bool switch_on(int dir, const char *ifname)
{
	char value = read_switch(dir, ifname);

	return value && value != '0';
}

static const char *switches(uint8_t family)
{
	return family == 4 ? "/proc/sys/net/ipv4/conf" : "/proc/sys/net/ipv6/conf";
}

bool route_forwards_on(uint8_t family, const char *device)
{
	CLEANUP_FD int dir = open(switches(family), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir >= 0 && switch_on(dir, device);
}

bool route_forwarding_is_off(uint8_t family, const char *device)
{
	CLEANUP_FD int dir = open(switches(family), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir >= 0 && read_switch(dir, device) == '0';
}

// "default" is only the template of interfaces to come; "all" is true when any command set it last.
bool route_forwards(uint8_t family)
{
	DIR *dir = opendir(switches(family));
	bool found = false;
	struct dirent *file;

	if (!dir)
		return false;
	while (!found && (file = readdir(dir)))
		if (file->d_name[0] != '.' && strcmp(file->d_name, "default") != 0)
			found = switch_on(dirfd(dir), file->d_name);
	closedir(dir);
	return found;
}

struct lookup_reading {
	struct lookup found;
	int family;
	bool encap;
};

static int read_metric(const struct nlattr *attr, void *ctx)
{
	struct lookup *found = ctx;

	if (mnl_attr_get_type(attr) == RTAX_MTU && !mnl_attr_validate(attr, MNL_TYPE_U32))
		found->mtu = mnl_attr_get_u32(attr);
	return MNL_CB_OK;
}

static int read_attribute(const struct nlattr *attr, void *ctx)
{
	struct lookup_reading *r = ctx;

	switch (mnl_attr_get_type(attr)) {
	case RTA_OIF:
		if (!mnl_attr_validate(attr, MNL_TYPE_U32))
			r->found.ifindex = mnl_attr_get_u32(attr);
		break;
	case RTA_GATEWAY:
		r->found.gateway = attribute_addr(r->family, attr);
		break;
	case RTA_VIA:
		r->found.gateway = attribute_via(attr);
		break;
	case RTA_PREFSRC:
		r->found.source = attribute_addr(r->family, attr);
		break;
	case RTA_METRICS:
		mnl_attr_parse_nested(attr, read_metric, &r->found);
		break;
	case RTA_ENCAP:
		r->encap = true;
		break;
	}
	return MNL_CB_OK;
}

static enum lookup_kind kind_of(uint8_t type, bool encap)
{
	switch (type) {
	case RTN_UNICAST:
		return encap ? LOOKUP_ENCAP : LOOKUP_UNICAST;
	case RTN_LOCAL:
		return LOOKUP_LOCAL;
	case RTN_BROADCAST:
	case RTN_MULTICAST:
	case RTN_ANYCAST:
		return LOOKUP_GROUP;
	default:
		return LOOKUP_REFUSE;
	}
}

bool lookup_from_message(const struct nlmsghdr *nlh, struct lookup *ret)
{
	const struct rtmsg *msg = mnl_nlmsg_get_payload(nlh);
	struct lookup_reading r = {0};

	if (nlh->nlmsg_type != RTM_NEWROUTE || mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg))
		return false;
	r.family = msg->rtm_family;
	if (mnl_attr_parse(nlh, sizeof(*msg), read_attribute, &r) < 0)
		return false;
	r.found.kind = kind_of(msg->rtm_type, r.encap);
	*ret = r.found;
	return true;
}

struct answer {
	struct lookup found;
	bool there;
};

static int visit(const struct nlmsghdr *nlh, void *ctx)
{
	struct answer *answer = ctx;

	answer->there |= lookup_from_message(nlh, &answer->found);
	return MNL_CB_OK;
}

int lookup_route(const struct addr *dest, struct lookup *ret)
{
	static const struct addr any;

	return lookup_route_from(dest, &any, ret);
}

static int request_route(const struct addr *dest, const struct addr *source, unsigned flags,
			 netlink_visit *seen, void *ctx)
{
	char buf[128] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct rtmsg *msg = mnl_nlmsg_put_extra_header(nlh, sizeof(*msg));

	nlh->nlmsg_type = RTM_GETROUTE;
	msg->rtm_flags = flags;
	msg->rtm_family = dest->family == 4 ? AF_INET : AF_INET6;
	msg->rtm_dst_len = (uint8_t)addr_bits(dest);
	mnl_attr_put(nlh, RTA_DST, addr_bits(dest) / 8, dest->bytes);
	if (source->family == dest->family) {
		msg->rtm_src_len = (uint8_t)addr_bits(source);
		mnl_attr_put(nlh, RTA_SRC, addr_bits(source) / 8, source->bytes);
	}
	return netlink_request(NETLINK_ROUTE, nlh, seen, ctx);
}

int lookup_route_from(const struct addr *dest, const struct addr *source, struct lookup *ret)
{
	struct answer answer = {0};
	int code = request_route(dest, source, 0, visit, &answer);

	if (code)
		return code;
	if (!answer.there)
		return -ENETUNREACH;
	*ret = answer.found;
	return 0;
}

// ---- routes with several next hops --------------------------------------------------------------

struct multipath {
	bool several, object, device;
};

static int read_choice(const struct nlattr *attr, void *ctx)
{
	struct multipath *c = ctx;

	switch (mnl_attr_get_type(attr)) {
	case RTA_MULTIPATH:
		c->several = true;
		break;
	case RTA_NH_ID:
		c->object = true;
		break;
	case RTA_OIF:
		c->device = true;
		break;
	}
	return MNL_CB_OK;
}

static int visit_choice(const struct nlmsghdr *nlh, void *ctx)
{
	if (nlh->nlmsg_type == RTM_NEWROUTE)
		mnl_attr_parse(nlh, sizeof(struct rtmsg), read_choice, ctx);
	return MNL_CB_OK;
}

// A group of next hop objects has no device, and no list if the sysctl nexthop_compat_mode is 0.
bool lookup_has_choice(const struct addr *dest, const struct addr *source)
{
	struct multipath c = {0};

	if (request_route(dest, source, RTM_F_FIB_MATCH, visit_choice, &c))
		return false;
	return c.several || (c.object && !c.device);
}
