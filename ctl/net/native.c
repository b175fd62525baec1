// SPDX-License-Identifier: GPL-2.0-only
// Collects what the kernel and Xen tell about a device.
#include "ctl/net/native.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/net/driver.h"
#include "ctl/net/netlink.h"
#include "ctl/net/xenstore.h"

// ---- the features of its driver -----------------------------------------------------------------

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

// ---- all that it reports ------------------------------------------------------------------------

#define VALUE_MAX 256

typedef char native_value[VALUE_MAX];

bool native_sends_with_program(const char *driver)
{
	const struct driver *d = driver_find(driver);

	return d && (d->redirect == REDIRECT_PROGRAM || d->redirect == REDIRECT_CPUS);
}

bool native_carries(const struct link *link)
{
	return link->xdp_mode == LINK_XDP_NATIVE || link->xdp_mode == LINK_XDP_MULTI;
}

// The first line of a file of /sys, without its end. false: it does not exist.
static bool read_line(const char *path, native_value ret)
{
	FILE *file = fopen(path, "re");
	bool got = file && fgets(ret, VALUE_MAX, file);

	if (file)
		fclose(file);
	if (got)
		ret[strcspn(ret, "\n")] = '\0';
	return got;
}

// "0-15" or "0,2-7": the last number and one.
static uint32_t count_cpus(const char *path)
{
	native_value text;
	const char *last = text;
	uint32_t n;

	if (!read_line(path, text))
		return 0;
	for (const char *at = text; *at; at++)
		if (*at == '-' || *at == ',')
			last = at + 1;
	return num_parse_u32(last, strlen(last), 0, UINT32_MAX - 1, &n) ? 0 : n + 1;
}

// /sys may show another network namespace, with another device of this name.
static bool is_in_sys(const struct link *link)
{
	CLEANUP_FREE char *path = mem_printf("/sys/class/net/%s/address", link->name);
	native_value text, mac;

	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", link->mac[0], link->mac[1],
		 link->mac[2], link->mac[3], link->mac[4], link->mac[5]);
	return read_line(path, text) && !strcmp(text, mac);
}

static bool read_device(const struct link *link, const char *file, native_value ret)
{
	CLEANUP_FREE char *path = mem_printf("/sys/class/net/%s/device/%s", link->name, file);

	return is_in_sys(link) && read_line(path, ret);
}

static uint32_t count_vfs(const struct link *link)
{
	native_value text;
	uint32_t n;

	return read_device(link, "sriov_numvfs", text) &&
			       !num_parse_u32(text, strlen(text), 0, UINT32_MAX, &n)
		       ? n
		       : 0;
}

// "1" or "256": it is offered, or in use.
static enum native_headroom read_key(int fd, const char *folder, const char *key)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s", folder, key);
	native_value value;
	int code = xenstore_read(fd, path, value, sizeof(value));

	if (code && code != -ENOENT)
		return HEADROOM_UNKNOWN;
	return code || !strcmp(value, "0") ? HEADROOM_NO : HEADROOM_YES;
}

// The backend offers it, and once a program is attached both have agreed on it. node:
// "device/vif/0".
static enum native_headroom ask_xen(int fd, const char *node, bool attached)
{
	CLEANUP_FREE char *path = mem_printf("%s/backend", node);
	native_value backend;
	enum native_headroom offered;

	if (xenstore_read(fd, path, backend, sizeof(backend)))
		return HEADROOM_UNKNOWN;
	offered = read_key(fd, backend, "feature-xdp-headroom");
	return offered == HEADROOM_YES && attached ? read_key(fd, node, "xdp-headroom") : offered;
}

static enum native_headroom read_headroom(const struct link *link)
{
	CLEANUP_FD int fd = -1;
	native_value node;

	if (!read_device(link, "nodename", node))
		return HEADROOM_UNKNOWN;
	// the other end, in the host: it has no native mode, and refuses it
	if (strncmp(node, "device/", strlen("device/")) != 0)
		return HEADROOM_YES;
	if ((fd = xenstore_open()) < 0)
		return HEADROOM_UNKNOWN;
	return ask_xen(fd, node, native_carries(link));
}

void native_facts(const struct link *link, struct native_facts *ret)
{
	const struct driver *d = driver_find(link->driver);
	struct native_facts f = {
		.mtu = link->mtu,
		.attached = native_carries(link),
		.hds = ethtool_hds(link->index),
		.vfs = count_vfs(link),
		.cpus = count_cpus("/sys/devices/system/cpu/possible"),
		.cpus_online = count_cpus("/sys/devices/system/cpu/online"),
	};
	uint64_t bits;

	memcpy(f.name, link->name, sizeof(f.name));
	memcpy(f.driver, link->driver, sizeof(f.driver));
	f.buffers = !xdp_features(link->index, &bits) && (bits & XDP_FEATURE_RX_SG);
	if (ethtool_get(link->name, &f.e, NULL))
		f.e = (struct ethtool){.lro = ETHTOOL_UNKNOWN,
				       .rx_gro_hw = ETHTOOL_UNKNOWN,
				       .rx_vlan = ETHTOOL_UNKNOWN};
	if (d && d->runs == RUNS_HEADROOM)
		f.headroom = read_headroom(link);
	*ret = f;
}
