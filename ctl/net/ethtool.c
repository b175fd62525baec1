// SPDX-License-Identifier: GPL-2.0-only
// Asks for driver, offloads, channels, statistics and settings of the rings.
//
// The legacy ioctl needs no privilege, and every kernel that Weir runs on answers it. It does not
// have the settings of the rings.
#include "ctl/net/ethtool.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "ctl/base/mem.h"
#include "ctl/net/netlink.h"

struct ethtool_device {
	int fd;
	const char *ifname;
};

// The active features of a device by number, and the names of those numbers.
struct ethtool_features {
	struct ethtool_gstrings *names; // names->len values
	struct ethtool_gfeatures *bits; // bits->size words
};

static void features_cleanup(struct ethtool_features *f)
{
	mem_cleanup_free(&f->names);
	mem_cleanup_free(&f->bits);
}

static int device_ioctl(const struct ethtool_device *d, void *command)
{
	struct ifreq ifr = {.ifr_data = command};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", d->ifname);
	return ioctl(d->fd, SIOCETHTOOL, &ifr) < 0 ? -errno : 0;
}

// Any socket serves: the request names the interface.
static int device_open(struct ethtool_device *d)
{
	if (!d->ifname[0] || strlen(d->ifname) >= IF_NAMESIZE)
		return -ENODEV;
	d->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return d->fd < 0 ? -errno : 0;
}

static void device_close(struct ethtool_device *d)
{
	d->fd = fd_close(d->fd);
}

static int read_driver(const struct ethtool_device *d, char *ret, size_t size)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	int code = device_ioctl(d, &info);

	if (code)
		return code;
	snprintf(ret, size, "%.*s", (int)sizeof(info.driver) - 1, info.driver);
	return 0;
}

// How many strings there are of a kind (ETH_SS_*).
static uint32_t count_strings(const struct ethtool_device *d, uint32_t set)
{
	CLEANUP_FREE struct ethtool_sset_info *info =
		mem_zalloc(1, sizeof(*info) + sizeof(info->data[0]));

	info->cmd = ETHTOOL_GSSET_INFO;
	info->sset_mask = 1ULL << set;
	if (device_ioctl(d, info) || !info->sset_mask)
		return 0;
	return info->data[0];
}

static int read_strings(const struct ethtool_device *d, uint32_t set, uint32_t n,
			struct ethtool_gstrings **ret)
{
	struct ethtool_gstrings *names =
		mem_zalloc(1, sizeof(*names) + (size_t)n * ETH_GSTRING_LEN);

	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = set;
	names->len = n;
	*ret = names;
	return device_ioctl(d, names);
}

static int read_features(const struct ethtool_device *d, struct ethtool_features *f)
{
	uint32_t n = count_strings(d, ETH_SS_FEATURES), words = (n + 31) / 32;
	int code;

	if (!n)
		return -EOPNOTSUPP;
	code = read_strings(d, ETH_SS_FEATURES, n, &f->names);
	f->bits = mem_zalloc(1, sizeof(*f->bits) + words * sizeof(f->bits->features[0]));
	f->bits->cmd = ETHTOOL_GFEATURES;
	f->bits->size = words;
	return code ? code : device_ioctl(d, f->bits);
}

static bool feature_active(const struct ethtool_features *f, uint32_t i)
{
	return i / 32 < f->bits->size && (f->bits->features[i / 32].active >> (i % 32) & 1);
}

// ON if any feature of this name is active; a pattern ending in '*' stands for all that start so.
static enum ethtool_state feature_state(const struct ethtool_features *f, const char *pattern)
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

static void set_features(const struct ethtool_device *d, struct ethtool *e)
{
	CLEANUP(features_cleanup) struct ethtool_features f = {0};
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

static void set_channels(const struct ethtool_device *d, struct ethtool *e)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};

	if (device_ioctl(d, &channels))
		return;
	e->combined = channels.combined_count;
	e->combined_max = channels.max_combined;
	e->rx = channels.rx_count;
	e->rx_max = channels.max_rx;
	e->tx = channels.tx_count;
	e->tx_max = channels.max_tx;
}

// ---- statistics ---------------------------------------------------------------------------------

static bool has(const char *counter, const char *word)
{
	return strcasestr(counter, word) != NULL;
}

// A veth counts a failed redirect on the receiving device, together with frames that were lost for
// lack of memory.
bool ethtool_counts_lost(const char *driver, const char *counter)
{
	if (!has(counter, "xdp"))
		return !strcmp(driver, "veth") && has(counter, "rx_queue_") &&
		       has(counter, "drops");
	return has(counter, "err") || has(counter, "full") || has(counter, "fail") ||
	       (has(counter, "drop") && (has(counter, "tx") || has(counter, "xmit")));
}

struct statistics {
	struct ethtool_gstrings *names;
	struct ethtool_stats *values; // n_stats values
};

static void statistics_cleanup(struct statistics *s)
{
	mem_cleanup_free(&s->names);
	mem_cleanup_free(&s->values);
}

static int read_statistics(const struct ethtool_device *d, struct statistics *s)
{
	uint32_t n = count_strings(d, ETH_SS_STATS);
	int code;

	if (!n)
		return -EOPNOTSUPP;
	code = read_strings(d, ETH_SS_STATS, n, &s->names);
	s->values = mem_zalloc(1, sizeof(*s->values) + (size_t)n * sizeof(s->values->data[0]));
	s->values->cmd = ETHTOOL_GSTATS;
	s->values->n_stats = n;
	code = code ? code : device_ioctl(d, s->values);
	// Queues may have been added or removed between the two.
	return code ? code : s->values->n_stats == s->names->len ? 0 : -EAGAIN;
}

// Some drivers have a counter for each queue, some also their sum, whose name has no number.
static void sum_lost(const struct statistics *s, const char *driver, struct ethtool_lost *ret)
{
	uint64_t sum[2] = {0}, greatest = 0;

	for (uint32_t i = 0; i < s->names->len; i++) {
		char name[ETH_GSTRING_LEN + 1] = "";

		memcpy(name, s->names->data + (size_t)i * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
		if (!ethtool_counts_lost(driver, name))
			continue;
		ret->known = true;
		sum[strpbrk(name, "0123456789") != NULL] += s->values->data[i];
		if (s->values->data[i] <= greatest)
			continue;
		greatest = s->values->data[i];
		snprintf(ret->counter, sizeof(ret->counter), "%s", name);
	}
	ret->frames = sum[0] > sum[1] ? sum[0] : sum[1];
}

static int read_lost(struct ethtool_device *d, struct ethtool_lost *ret)
{
	CLEANUP(statistics_cleanup) struct statistics s = {0};
	char driver[32] = "";
	int code = device_open(d);

	if (code)
		return code;
	if ((code = read_driver(d, driver, sizeof(driver))))
		return code;
	if ((code = read_statistics(d, &s)))
		return code;
	sum_lost(&s, driver, ret);
	return 0;
}

int ethtool_lost(const char *ifname, struct ethtool_lost *ret)
{
	CLEANUP(device_close) struct ethtool_device d = {.fd = -1, .ifname = ifname};
	int code;

	*ret = (struct ethtool_lost){0};
	code = read_lost(&d, ret);
	return code == -EOPNOTSUPP ? 0 : code;
}

// ---- counting lost frames -----------------------------------------------------------------------

int ethtool_driver(const char *ifname, char *ret, size_t size)
{
	CLEANUP(device_close) struct ethtool_device d = {.fd = -1, .ifname = ifname};
	int code = device_open(&d);

	return code ? code : read_driver(&d, ret, size);
}

int ethtool_get(const char *ifname, struct ethtool *ret, struct err *err)
{
	struct ethtool e = {0};
	CLEANUP(device_close) struct ethtool_device d = {.fd = -1, .ifname = ifname};
	int code = device_open(&d);

	code = code ? code : read_driver(&d, e.driver, sizeof(e.driver));
	// A driver without ethtool operations still has features.
	if (code && code != -EOPNOTSUPP)
		return err_system(err, -code, "cannot query the driver of '%s'", ifname);
	set_features(&d, &e);
	set_channels(&d, &e);
	*ret = e;
	return 0;
}

// ---- rings --------------------------------------------------------------------------------------

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
