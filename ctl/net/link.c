// SPDX-License-Identifier: GPL-2.0-only
// Network interfaces, read with RTM_GETLINK.
#include "ctl/net/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/diag_nearest.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/net/ethtool.h"
#include "ctl/net/netlink.h"

#define GRO_IPV4_MAX_SIZE 64    // IFLA_GRO_IPV4_MAX_SIZE, which headers before 6.3 do not have
#define LEGACY_MAX_SIZE   65536 // GRO_LEGACY_MAX_SIZE of the kernel

enum { NAMES_IN_HINT = 8 };

struct links {
	VEC(struct link) found;
};

static void links_cleanup(struct links *l)
{
	vec_free(&l->found);
}

static void copy_string(char *dst, size_t size, const struct nlattr *attr)
{
	snprintf(dst, size, "%s", mnl_attr_get_str(attr));
}

static enum link_xdp xdp_mode(uint8_t attached)
{
	switch (attached) {
	case XDP_ATTACHED_DRV:
		return LINK_XDP_NATIVE;
	case XDP_ATTACHED_SKB:
		return LINK_XDP_GENERIC;
	case XDP_ATTACHED_HW:
		return LINK_XDP_HW;
	case XDP_ATTACHED_MULTI:
		return LINK_XDP_MULTI;
	default:
		return LINK_XDP_NONE;
	}
}

struct xdp {
	uint8_t attached;
	uint32_t prog_id[IFLA_XDP_MAX + 1];
};

static int read_xdp_attribute(const struct nlattr *attr, void *ctx)
{
	uint16_t type = mnl_attr_get_type(attr);
	struct xdp *xdp = ctx;

	if (type == IFLA_XDP_ATTACHED)
		xdp->attached = mnl_attr_get_u8(attr);
	else if (type >= IFLA_XDP_PROG_ID && type <= IFLA_XDP_HW_PROG_ID)
		xdp->prog_id[type] = mnl_attr_get_u32(attr);
	return MNL_CB_OK;
}

// With several programs (MULTI) the kernel leaves IFLA_XDP_PROG_ID out and names each by its mode.
static void read_xdp(const struct nlattr *nest, struct link *l)
{
	struct xdp xdp = {0};

	mnl_attr_parse_nested(nest, read_xdp_attribute, &xdp);
	l->xdp_mode = xdp_mode(xdp.attached);
	for (int type = IFLA_XDP_PROG_ID; type <= IFLA_XDP_HW_PROG_ID && !l->xdp_prog_id; type++)
		l->xdp_prog_id = xdp.prog_id[type];
}

static int read_vlan_attribute(const struct nlattr *attr, void *ctx)
{
	struct link *l = ctx;

	if (mnl_attr_validate(attr, MNL_TYPE_U16) < 0)
		return MNL_CB_OK;
	if (mnl_attr_get_type(attr) == IFLA_VLAN_ID)
		l->vlan = mnl_attr_get_u16(attr);
	else if (mnl_attr_get_type(attr) == IFLA_VLAN_PROTOCOL)
		l->vlan_type = ntohs(mnl_attr_get_u16(attr));
	return MNL_CB_OK;
}

struct info {
	struct link *link;
	const struct nlattr *data; // means something else for each kind
};

static int read_info_attribute(const struct nlattr *attr, void *ctx)
{
	struct info *info = ctx;

	if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
		copy_string(info->link->kind, sizeof(info->link->kind), attr);
	else if (mnl_attr_get_type(attr) == IFLA_INFO_DATA)
		info->data = attr;
	return MNL_CB_OK;
}

static void read_info(const struct nlattr *nest, struct link *l)
{
	struct info info = {.link = l};

	mnl_attr_parse_nested(nest, read_info_attribute, &info);
	if (!info.data || strcmp(l->kind, "vlan") != 0)
		return;
	l->vlan_type = ETH_P_8021Q;
	mnl_attr_parse_nested(info.data, read_vlan_attribute, l);
}

// The attribute may be shorter (an older kernel) and is aligned to four bytes only.
static void read_stats(const struct nlattr *attr, struct link *l)
{
	struct rtnl_link_stats64 stats = {0};
	size_t len = mnl_attr_get_payload_len(attr);

	memcpy(&stats, mnl_attr_get_payload(attr), len < sizeof(stats) ? len : sizeof(stats));
	l->rx_packets = stats.rx_packets;
	l->rx_bytes = stats.rx_bytes;
	l->rx_dropped = stats.rx_dropped;
}

// Element `at` of an array of switches, as the kernel has it below /proc/sys/net.
static bool is_on(const struct nlattr *attr, size_t at)
{
	uint32_t value = 0;

	if (mnl_attr_get_payload_len(attr) >= (at + 1) * sizeof(value))
		memcpy(&value, (const char *)mnl_attr_get_payload(attr) + at * sizeof(value),
		       sizeof(value));
	return value;
}

static int read_inet(const struct nlattr *attr, void *ctx)
{
	struct link *l = ctx;

	if (mnl_attr_get_type(attr) == IFLA_INET_CONF)
		l->forwards4 = is_on(attr, IPV4_DEVCONF_FORWARDING - 1);
	return MNL_CB_OK;
}

static int read_inet6(const struct nlattr *attr, void *ctx)
{
	struct link *l = ctx;

	if (mnl_attr_get_type(attr) == IFLA_INET6_CONF)
		l->forwards6 = is_on(attr, DEVCONF_FORWARDING);
	return MNL_CB_OK;
}

static int read_family(const struct nlattr *attr, void *ctx)
{
	if (mnl_attr_get_type(attr) == AF_INET)
		mnl_attr_parse_nested(attr, read_inet, ctx);
	else if (mnl_attr_get_type(attr) == AF_INET6)
		mnl_attr_parse_nested(attr, read_inet6, ctx);
	return MNL_CB_OK;
}

static int read_attribute(const struct nlattr *attr, void *ctx)
{
	struct link *l = ctx;

	switch (mnl_attr_get_type(attr)) {
	case IFLA_IFNAME:
		copy_string(l->name, sizeof(l->name), attr);
		break;
	case IFLA_MTU:
		l->mtu = mnl_attr_get_u32(attr);
		break;
	case IFLA_MASTER:
		l->master = mnl_attr_get_u32(attr);
		break;
	case IFLA_LINK:
		l->lower = mnl_attr_get_u32(attr);
		break;
	case IFLA_LINK_NETNSID:
		l->lower_elsewhere = true;
		break;
	case IFLA_ADDRESS:
		if (mnl_attr_get_payload_len(attr) == sizeof(l->mac))
			memcpy(l->mac, mnl_attr_get_payload(attr), sizeof(l->mac));
		break;
	case IFLA_NUM_RX_QUEUES:
		l->rx_queues = mnl_attr_get_u32(attr);
		break;
	case IFLA_NUM_TX_QUEUES:
		l->tx_queues = mnl_attr_get_u32(attr);
		break;
	case IFLA_GRO_MAX_SIZE:
		l->gro_max = mnl_attr_get_u32(attr);
		break;
	case GRO_IPV4_MAX_SIZE:
		l->gro_max4 = mnl_attr_get_u32(attr);
		break;
	case IFLA_STATS64:
		read_stats(attr, l);
		break;
	case IFLA_LINKINFO:
		read_info(attr, l);
		break;
	case IFLA_XDP:
		read_xdp(attr, l);
		break;
	case IFLA_AF_SPEC:
		mnl_attr_parse_nested(attr, read_family, l);
		break;
	}
	return MNL_CB_OK;
}

uint32_t link_big_tcp(const struct link *l)
{
	uint32_t most = l->gro_max > l->gro_max4 ? l->gro_max : l->gro_max4;

	return most > LEGACY_MAX_SIZE ? most : 0;
}

bool link_from_message(const struct nlmsghdr *nlh, struct link *ret)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);
	struct link l = {0};

	if (nlh->nlmsg_type != RTM_NEWLINK || mnl_nlmsg_get_payload_len(nlh) < sizeof(*info))
		return false;
	l.index = (uint32_t)info->ifi_index;
	l.type = info->ifi_type;
	l.up = info->ifi_flags & IFF_UP;
	l.running = info->ifi_flags & IFF_RUNNING;
	l.no_arp = info->ifi_flags & IFF_NOARP;
	mnl_attr_parse(nlh, sizeof(*info), read_attribute, &l);
	// Older kernels report a device without a lower one as its own lower device.
	if (l.lower == l.index && !l.lower_elsewhere)
		l.lower = 0;
	*ret = l;
	return true;
}

static int visit_link(const struct nlmsghdr *nlh, void *ctx)
{
	struct links *links = ctx;
	struct link l;

	if (link_from_message(nlh, &l))
		vec_push(&links->found, l);
	return MNL_CB_OK;
}

// Asks for one interface by name or index, or for all if both are absent. filter: RTEXT_FILTER_*.
static int request_links(const char *name, uint32_t index, uint32_t filter, struct links *links)
{
	char buf[256] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));

	nlh->nlmsg_type = RTM_GETLINK;
	nlh->nlmsg_flags = name || index ? 0 : NLM_F_DUMP;
	info->ifi_index = (int)index;
	if (name)
		mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	if (filter)
		mnl_attr_put_u32(nlh, IFLA_EXT_MASK, filter);
	return netlink_request(NETLINK_ROUTE, nlh, visit_link, links);
}

static int request_whole(const char *name, uint32_t index, struct links *links)
{
	int code = request_links(name, index, 0, links);

	if (code)
		return code;
	vec_each (&links->found, l)
		ethtool_driver(l->name, l->driver, sizeof(l->driver));
	return 0;
}

static int compare_index(const void *a, const void *b)
{
	const struct link *la = a, *lb = b;

	return la->index < lb->index ? -1 : la->index > lb->index;
}

static int give_list(struct links *links, int code, struct link **ret, size_t *ret_n,
		     struct err *err)
{
	if (code)
		return err_system(err, -code, "cannot list the network interfaces");
	if (links->found.n)
		qsort(links->found.at, links->found.n, sizeof(*links->found.at), compare_index);
	*ret_n = links->found.n;
	*ret = TAKE_PTR(links->found.at);
	return 0;
}

int link_list(struct link **ret, size_t *ret_n, struct err *err)
{
	CLEANUP(links_cleanup) struct links links = {0};
	int code = request_whole(NULL, 0, &links);

	return give_list(&links, code, ret, ret_n, err);
}

int link_list_bare(struct link **ret, size_t *ret_n, struct err *err)
{
	CLEANUP(links_cleanup) struct links links = {0};
	int code = request_links(NULL, 0, RTEXT_FILTER_SKIP_STATS, &links);

	return give_list(&links, code, ret, ret_n, err);
}

static void hint_names(const struct link *all, size_t n, struct err *err)
{
	struct text names = {0};

	for (size_t i = 0; i < n && i < NAMES_IN_HINT; i++)
		text_addf(&names, "%s%s", i ? ", " : "", all[i].name);
	if (n > NAMES_IN_HINT)
		text_addf(&names, ", and %zu more", n - NAMES_IN_HINT);
	err_hint(err, "the interfaces are %s", text_get(&names));
	text_free(&names);
}

static void hint_nearest(const char *name, struct err *err)
{
	CLEANUP_FREE struct link *all = NULL;
	CLEANUP_FREE const char **names = NULL;
	const char *nearest;
	size_t n = 0;

	if (link_list(&all, &n, NULL) || !n)
		return;
	names = mem_zalloc(n, sizeof(*names));
	for (size_t i = 0; i < n; i++)
		names[i] = all[i].name;
	nearest = diag_nearest(name, names, n);
	if (nearest)
		err_hint(err, "did you mean '%s'?", nearest);
	else
		hint_names(all, n, err);
}

static int no_such_link(const char *name, struct err *err)
{
	err_input(err, "no interface '%s'", name);
	if (err) {
		hint_nearest(name, err);
		err->code = ENODEV;
	}
	return -ENODEV;
}

int link_get(const char *name, struct link *ret, struct err *err)
{
	CLEANUP(links_cleanup) struct links links = {0};
	int code = -ENODEV;

	if (name[0] && strlen(name) < IF_NAMESIZE)
		code = request_whole(name, 0, &links);
	if (code && code != -ENODEV)
		return err_system(err, -code, "cannot read the interface '%s'", name);
	if (code || !links.found.n)
		return no_such_link(name, err);
	*ret = links.found.at[0];
	return 0;
}

int link_get_by_index(uint32_t index, struct link *ret, struct err *err)
{
	CLEANUP(links_cleanup) struct links links = {0};
	int code = index ? request_whole(NULL, index, &links) : -ENODEV;

	if (code && code != -ENODEV)
		return err_system(err, -code, "cannot read the interface with index %u", index);
	if (code || !links.found.n) {
		err_input(err, "no interface with index %u", index);
		if (err)
			err->code = ENODEV;
		return -ENODEV;
	}
	*ret = links.found.at[0];
	return 0;
}
