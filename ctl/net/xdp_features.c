// SPDX-License-Identifier: GPL-2.0-only
// Asks the family "netdev" about one device.
#include "ctl/net/xdp_features.h"

#include <errno.h>

#include "ctl/net/netlink.h"

// <linux/netdev.h> exists since Linux 6.3.
enum { NETDEV_CMD_DEV_GET = 1, NETDEV_VERSION = 1 };
enum { NETDEV_A_DEV_IFINDEX = 1, NETDEV_A_DEV_XDP_FEATURES = 3 };

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

int xdp_features(uint32_t ifindex, uint64_t *ret)
{
	char buf[128] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	struct xdp_feature_set f = {0};
	struct nlmsghdr *nlh;
	uint16_t family;
	int code = genl_family("netdev", &family);

	if (code)
		return code;
	nlh = genl_put(buf, family, NETDEV_CMD_DEV_GET, NETDEV_VERSION);
	mnl_attr_put_u32(nlh, NETDEV_A_DEV_IFINDEX, ifindex);
	if ((code = genl_ask(nlh, read_features, &f)))
		return code;
	if (!f.there)
		return -EOPNOTSUPP;
	*ret = f.bits;
	return 0;
}
