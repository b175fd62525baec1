// SPDX-License-Identifier: GPL-2.0-only
// Asks for the route of one destination and reads the answer.
#include "ctl/net/lookup.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "ctl/net/attribute.h"
#include "ctl/net/netlink.h"

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
	char buf[128] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct rtmsg *msg = mnl_nlmsg_put_extra_header(nlh, sizeof(*msg));
	struct answer answer = {0};
	int code;

	nlh->nlmsg_type = RTM_GETROUTE;
	msg->rtm_family = dest->family == 4 ? AF_INET : AF_INET6;
	msg->rtm_dst_len = (uint8_t)addr_bits(dest);
	mnl_attr_put(nlh, RTA_DST, addr_bits(dest) / 8, dest->bytes);
	code = netlink_request(NETLINK_ROUTE, nlh, visit, &answer);
	if (code)
		return code;
	if (!answer.there)
		return -ENETUNREACH;
	*ret = answer.found;
	return 0;
}
