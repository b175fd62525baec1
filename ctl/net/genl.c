// SPDX-License-Identifier: GPL-2.0-only
// Asks the controller of generic netlink for a family, then the family.
#include "ctl/net/genl.h"

#include <errno.h>
#include <linux/genetlink.h>

struct nlmsghdr *genl_put(char *buf, uint16_t family, uint8_t command, uint8_t version)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));

	nlh->nlmsg_type = family;
	genl->cmd = command;
	genl->version = version;
	return nlh;
}

struct genl_reader {
	mnl_attr_cb_t read;
	void *ctx;
};

static int visit(const struct nlmsghdr *nlh, void *ctx)
{
	const struct genl_reader *r = ctx;

	mnl_attr_parse(nlh, sizeof(struct genlmsghdr), r->read, r->ctx);
	return MNL_CB_OK;
}

int genl_ask(struct nlmsghdr *request, mnl_attr_cb_t read, void *ctx)
{
	struct genl_reader r = {read, ctx};

	return netlink_request(NETLINK_GENERIC, request, visit, &r);
}

static int read_family(const struct nlattr *attr, void *ctx)
{
	if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID &&
	    !mnl_attr_validate(attr, MNL_TYPE_U16))
		*(uint16_t *)ctx = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

int genl_family(const char *name, uint16_t *ret)
{
	char buf[128] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	struct nlmsghdr *nlh = genl_put(buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	uint16_t family = 0;
	int code;

	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, name);
	code = genl_ask(nlh, read_family, &family);
	if (code && code != -ENOENT)
		return code;
	if (code || !family)
		return -EOPNOTSUPP;
	*ret = family;
	return 0;
}
