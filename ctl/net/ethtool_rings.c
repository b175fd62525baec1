// SPDX-License-Identifier: GPL-2.0-only
// Asks for settings of the rings that the ioctl of ethtool does not have.
#include <linux/ethtool_netlink.h>

#include "ctl/net/ethtool.h"
#include "ctl/net/netlink.h"

static int read_split(const struct nlattr *attr, void *ctx)
{
	if (mnl_attr_get_type(attr) == ETHTOOL_A_RINGS_TCP_DATA_SPLIT &&
	    !mnl_attr_validate(attr, MNL_TYPE_U8))
		*(uint8_t *)ctx = mnl_attr_get_u8(attr);
	return MNL_CB_OK;
}

enum ethtool_state ethtool_hds(uint32_t ifindex)
{
	char buf[128] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	uint8_t split = ETHTOOL_TCP_DATA_SPLIT_UNKNOWN;
	struct nlmsghdr *nlh;
	struct nlattr *header;
	uint16_t family;

	if (genl_family(ETHTOOL_GENL_NAME, &family))
		return ETHTOOL_UNKNOWN;
	nlh = genl_put(buf, family, ETHTOOL_MSG_RINGS_GET, ETHTOOL_GENL_VERSION);
	header = mnl_attr_nest_start(nlh, ETHTOOL_A_RINGS_HEADER);
	mnl_attr_put_u32(nlh, ETHTOOL_A_HEADER_DEV_INDEX, ifindex);
	mnl_attr_nest_end(nlh, header);
	if (genl_ask(nlh, read_split, &split))
		return ETHTOOL_UNKNOWN;
	return split == ETHTOOL_TCP_DATA_SPLIT_ENABLED    ? ETHTOOL_ON
	       : split == ETHTOOL_TCP_DATA_SPLIT_DISABLED ? ETHTOOL_OFF
							  : ETHTOOL_UNKNOWN;
}
