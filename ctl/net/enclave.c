// SPDX-License-Identifier: GPL-2.0-only
// Makes the namespace and its device, and sockets in it.
#include "ctl/net/enclave.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/net/netlink.h"

#define DEVICE "weir"

// Everything after this would happen in the wrong namespace.
static void go_home(const struct enclave *e)
{
	if (setns(e->home, CLONE_NEWNET))
		abort();
}

static int open_self(void)
{
	return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

// ---- the device ---------------------------------------------------------------------------------

static int open_tun(struct enclave *e, struct err *err)
{
	struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};

	snprintf(r.ifr_name, sizeof(r.ifr_name), DEVICE);
	e->tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (e->tun < 0)
		return err_system(err, errno, "cannot open /dev/net/tun");
	if (ioctl(e->tun, TUNSETIFF, &r))
		return err_system(err, errno, "cannot make a tun device");
	e->ifindex = if_nametoindex(DEVICE);
	return e->ifindex ? 0 : err_system(err, errno, "cannot find the tun device");
}

static int set_up(const struct enclave *e, struct err *err)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *m;
	int code;

	nlh->nlmsg_type = RTM_NEWLINK;
	m = mnl_nlmsg_put_extra_header(nlh, sizeof(*m));
	m->ifi_index = (int)e->ifindex;
	m->ifi_flags = m->ifi_change = IFF_UP;
	mnl_attr_put_u32(nlh, IFLA_MTU, ENCLAVE_MTU);
	code = netlink_request(NETLINK_ROUTE, nlh, NULL, NULL);
	return code ? err_system(err, -code, "cannot set up the tun device") : 0;
}

static int enter_new(struct enclave *e, struct err *err)
{
	int code;

	e->netns = open_self();
	if (e->netns < 0)
		return err_system(err, errno, "cannot open the network namespace of checks");
	if ((code = open_tun(e, err)))
		return code;
	return set_up(e, err);
}

int enclave_open(struct enclave *ret, struct err *err)
{
	struct enclave e = {.home = open_self(), .netns = -1, .tun = -1};
	int code;

	if (e.home < 0)
		return err_system(err, errno, "cannot open the network namespace");
	if (unshare(CLONE_NEWNET)) {
		code = err_system(err, errno, "cannot make a network namespace for checks");
		enclave_close(&e);
		return code;
	}
	code = enter_new(&e, err);
	go_home(&e);
	if (code)
		enclave_close(&e);
	else
		*ret = e;
	return code;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void enclave_close(struct enclave *e)
{
	close_one(&e->tun);
	close_one(&e->netns);
	close_one(&e->home);
}

// ---- addresses ----------------------------------------------------------------------------------

static uint8_t kernel_family(uint8_t family)
{
	return family == 4 ? AF_INET : AF_INET6;
}

static int add_address(const struct enclave *e, const struct addr *own)
{
	size_t length = own->family == 4 ? 4 : 16;
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifaddrmsg *m;
	int code;

	nlh->nlmsg_type = RTM_NEWADDR;
	nlh->nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE;
	m = mnl_nlmsg_put_extra_header(nlh, sizeof(*m));
	m->ifa_family = kernel_family(own->family);
	m->ifa_prefixlen = (uint8_t)(length * 8);
	m->ifa_index = e->ifindex;
	m->ifa_flags = own->family == 6 ? IFA_F_NODAD : 0;
	mnl_attr_put(nlh, IFA_LOCAL, length, own->bytes);
	mnl_attr_put(nlh, IFA_ADDRESS, length, own->bytes);
	code = netlink_request(NETLINK_ROUTE, nlh, NULL, NULL);
	return code == -EEXIST ? 0 : code;
}

// To everywhere.
static int add_route(const struct enclave *e, uint8_t family)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct rtmsg *m;

	nlh->nlmsg_type = RTM_NEWROUTE;
	nlh->nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE;
	m = mnl_nlmsg_put_extra_header(nlh, sizeof(*m));
	m->rtm_family = kernel_family(family);
	m->rtm_table = RT_TABLE_MAIN;
	m->rtm_protocol = RTPROT_STATIC;
	m->rtm_scope = family == 4 ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
	m->rtm_type = RTN_UNICAST;
	mnl_attr_put_u32(nlh, RTA_OIF, e->ifindex);
	return netlink_request(NETLINK_ROUTE, nlh, NULL, NULL);
}

int enclave_add(struct enclave *e, const struct addr *own, struct err *err)
{
	uint8_t bit = (uint8_t)(1 << (own->family == 6));
	addr_text text;
	int code;

	if (setns(e->netns, CLONE_NEWNET))
		return err_system(err, errno, "cannot enter the network namespace of checks");
	code = add_address(e, own);
	code = code || e->families & bit ? code : add_route(e, own->family);
	go_home(e);
	if (code)
		return err_system(err, -code, "cannot give %s to the tun device of checks",
				  addr_format(own, text));
	e->families |= bit;
	return 0;
}

int enclave_socket(const struct enclave *e, uint8_t family, int type)
{
	int fd;

	if (setns(e->netns, CLONE_NEWNET))
		return -errno;
	fd = socket(kernel_family(family), type, 0);
	fd = fd < 0 ? -errno : fd;
	go_home(e);
	return fd;
}
