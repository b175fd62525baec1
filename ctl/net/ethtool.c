// SPDX-License-Identifier: GPL-2.0-only
// Driver, offloads and channels of an interface, asked with the legacy ioctl: it needs no privilege
// and every kernel that Weir runs on answers it.
#include "ctl/net/ethtool.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "ctl/base/mem.h"

struct device {
	int fd;
	const char *ifname;
};

// The active features of a device by number, and the names of those numbers.
struct features {
	struct ethtool_gstrings *names; // names->len of them
	struct ethtool_gfeatures *bits; // bits->size words
};

static void features_cleanup(struct features *f)
{
	mem_cleanup_free(&f->names);
	mem_cleanup_free(&f->bits);
}

static int device_ioctl(const struct device *d, void *command)
{
	struct ifreq ifr = {.ifr_data = command};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", d->ifname);
	return ioctl(d->fd, SIOCETHTOOL, &ifr) < 0 ? -errno : 0;
}

// Any socket serves: the request names the interface.
static int device_open(struct device *d)
{
	if (!d->ifname[0] || strlen(d->ifname) >= IF_NAMESIZE)
		return -ENODEV;
	d->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return d->fd < 0 ? -errno : 0;
}

static void device_close(struct device *d)
{
	d->fd = fd_close(d->fd);
}

static int read_driver(const struct device *d, char *ret, size_t size)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	int rc = device_ioctl(d, &info);

	if (!rc)
		snprintf(ret, size, "%.*s", (int)sizeof(info.driver) - 1, info.driver);
	return rc;
}

static uint32_t count_features(const struct device *d)
{
	CLEANUP_FREE struct ethtool_sset_info *info =
		mem_zalloc(1, sizeof(*info) + sizeof(info->data[0]));

	info->cmd = ETHTOOL_GSSET_INFO;
	info->sset_mask = 1ULL << ETH_SS_FEATURES;
	if (device_ioctl(d, info) || !info->sset_mask)
		return 0;
	return info->data[0];
}

static int read_features(const struct device *d, struct features *f)
{
	uint32_t n = count_features(d), words = (n + 31) / 32;
	int rc;

	if (!n)
		return -EOPNOTSUPP;
	f->names = mem_zalloc(1, sizeof(*f->names) + (size_t)n * ETH_GSTRING_LEN);
	f->names->cmd = ETHTOOL_GSTRINGS;
	f->names->string_set = ETH_SS_FEATURES;
	f->names->len = n;
	f->bits = mem_zalloc(1, sizeof(*f->bits) + words * sizeof(f->bits->features[0]));
	f->bits->cmd = ETHTOOL_GFEATURES;
	f->bits->size = words;
	rc = device_ioctl(d, f->names);
	return rc ? rc : device_ioctl(d, f->bits);
}

static bool feature_active(const struct features *f, uint32_t i)
{
	return i / 32 < f->bits->size && (f->bits->features[i / 32].active >> (i % 32) & 1);
}

// ON if any feature of this name is active; a pattern ending in '*' stands for all that start so.
static enum ethtool_state feature_state(const struct features *f, const char *pattern)
{
	size_t len = strcspn(pattern, "*"), cmp = pattern[len] ? len : len + 1;
	enum ethtool_state state = ETHTOOL_UNKNOWN;

	for (uint32_t i = 0; i < f->names->len; i++) {
		const char *name = (const char *)f->names->data + (size_t)i * ETH_GSTRING_LEN;

		if (strncmp(name, pattern, cmp) != 0)
			continue;
		if (feature_active(f, i))
			return ETHTOOL_ON;
		state = ETHTOOL_OFF;
	}
	return state;
}

static void set_features(const struct device *d, struct ethtool *e)
{
	CLEANUP(features_cleanup) struct features f = {0};
	const struct {
		const char *pattern;
		enum ethtool_state *state;
	} wanted[] = {
		{"rx-gro", &e->gro},
		{"rx-lro", &e->lro},
		{"rx-vlan-hw-parse", &e->rx_vlan},
		{"tx-vlan-hw-insert", &e->tx_vlan},
		{"tx-checksum-ip*", &e->tx_checksum},
		{"tx-tcp-segmentation", &e->tso},
		{"rx-gro-hw", &e->rx_gro_hw},
	};
	bool known = !read_features(d, &f);

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		*wanted[i].state = known ? feature_state(&f, wanted[i].pattern) : ETHTOOL_UNKNOWN;
}

static void set_channels(const struct device *d, struct ethtool *e)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};

	if (device_ioctl(d, &channels))
		return;
	e->combined = channels.combined_count;
	e->combined_max = channels.max_combined;
}

int ethtool_driver(const char *ifname, char *ret, size_t size)
{
	CLEANUP(device_close) struct device d = {.fd = -1, .ifname = ifname};
	int rc = device_open(&d);

	return rc ? rc : read_driver(&d, ret, size);
}

int ethtool_get(const char *ifname, struct ethtool *ret, struct err *err)
{
	struct ethtool e = {0};
	CLEANUP(device_close) struct device d = {.fd = -1, .ifname = ifname};
	int rc = device_open(&d);

	if (!rc)
		rc = read_driver(&d, e.driver, sizeof(e.driver));
	// A driver without ethtool operations still has features.
	if (rc && rc != -EOPNOTSUPP)
		return err_system(err, -rc, "cannot ask the driver of '%s'", ifname);
	set_features(&d, &e);
	set_channels(&d, &e);
	*ret = e;
	return 0;
}
