// SPDX-License-Identifier: GPL-2.0-only
// Finds the number of the family "netdev" and asks it about one device.
#include "ctl/net/xdp_features.h"

#include <errno.h>
#include <linux/genetlink.h>

#include "ctl/net/netlink.h"

// <linux/netdev.h> came with Linux 6.3.
enum { NETDEV_CMD_DEV_GET = 1, NETDEV_VERSION = 1 };
enum { NETDEV_A_DEV_IFINDEX = 1, NETDEV_A_DEV_XDP_FEATURES = 3 };

static struct nlmsghdr *put_request(char *buf, uint16_t family, uint8_t command, uint8_t version)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));

	nlh->nlmsg_type = family;
	genl->cmd = command;
	genl->version = version;
	return nlh;
}

static int read_family(const struct nlattr *attr, void *ctx)
{
	if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID &&
	    !mnl_attr_validate(attr, MNL_TYPE_U16))
		*(uint16_t *)ctx = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

static int visit_family(const struct nlmsghdr *nlh, void *ctx)
{
	mnl_attr_parse(nlh, sizeof(struct genlmsghdr), read_family, ctx);
	return MNL_CB_OK;
}

static int find_family(uint16_t *ret)
{
	char buf[128] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	struct nlmsghdr *nlh = put_request(buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	uint16_t family = 0;
	int code;

	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, "netdev");
	code = netlink_request(NETLINK_GENERIC, nlh, visit_family, &family);
	if (code && code != -ENOENT)
		return code;
	if (code || !family)
		return -EOPNOTSUPP;
	*ret = family;
	return 0;
}

struct xdp_feature_set {
	uint64_t bits;
	int there;
};

static int read_features(const struct nlattr *attr, void *ctx)
{
	struct xdp_feature_set *f = ctx;

	if (mnl_attr_get_type(attr) == NETDEV_A_DEV_XDP_FEATURES &&
	    !mnl_attr_validate(attr, MNL_TYPE_U64)) {
		f->bits = mnl_attr_get_u64(attr);
		f->there = 1;
	}
	return MNL_CB_OK;
}

static int visit_features(const struct nlmsghdr *nlh, void *ctx)
{
	mnl_attr_parse(nlh, sizeof(struct genlmsghdr), read_features, ctx);
	return MNL_CB_OK;
}

int xdp_features(uint32_t ifindex, uint64_t *ret)
{
	char buf[128] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	struct xdp_feature_set f = {0};
	struct nlmsghdr *nlh;
	uint16_t family;
	int code = find_family(&family);

	if (code)
		return code;
	nlh = put_request(buf, family, NETDEV_CMD_DEV_GET, NETDEV_VERSION);
	mnl_attr_put_u32(nlh, NETDEV_A_DEV_IFINDEX, ifindex);
	code = netlink_request(NETLINK_GENERIC, nlh, visit_features, &f);
	if (code)
		return code;
	if (!f.there)
		return -EOPNOTSUPP;
	*ret = f.bits;
	return 0;
}
