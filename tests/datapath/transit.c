// SPDX-License-Identifier: GPL-2.0-only
// Neighbour discovery that this host would route on, in a network namespace of the test's own.
#include <fcntl.h>
#include <linux/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "tests/datapath/rig.h"

#define SOURCE  "2001:db8:1::1"
#define ROUTED  "2001:db8:2::1"
#define OWN     "2001:db8:3::1"
#define NOWHERE "2001:db8:4::1"
#define GROUP   "ff02::1"
#define LINK    "fe80::1"

#define PAYLOAD 24
#define BYTES   (40 + 8 + PAYLOAD)

static struct frame *solicitation(const char *to, uint8_t hops)
{
	static struct frame f;

	frame_udp(&f, SOURCE, to, PAYLOAD);
	f.at[14 + 6] = IPPROTO_ICMPV6;
	f.at[14 + 7] = hops;
	f.at[14 + 40] = 135;
	f.at[14 + 41] = 0;
	return &f;
}

static bool forward(const char *value)
{
	CLEANUP_FD int fd = open("/proc/sys/net/ipv6/conf/all/forwarding", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
}

static bool make_routes(void)
{
	return !system("{ ip link add transit0 type veth peer name transit1 && "
		       "ip addr add " OWN "/64 dev transit0 nodad && ip link set transit0 up && "
		       "ip link set transit1 up && ip -6 route add 2001:db8:2::/48 dev transit0; "
		       "} >/dev/null 2>&1") &&
	       forward("1");
}

static void test_discovery(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(64);

	EXPECT(t, rig, solicitation(ROUTED, 255), PASS_ND, BYTES); // nothing is routed yet
	if (!make_routes()) {
		test_skip(t, "no veth devices can be made here");
		return;
	}
	rig_overlay_text(rig, "block-from " SOURCE);
	EXPECT(t, rig, solicitation(ROUTED, 255), DROP_BLOCK_FROM, BYTES);
	EXPECT(t, rig, solicitation(OWN, 255), PASS_ND, BYTES);
	EXPECT(t, rig, solicitation(NOWHERE, 255), PASS_ND, BYTES);
	EXPECT(t, rig, solicitation(GROUP, 255), PASS_ND, BYTES);
	EXPECT(t, rig, solicitation(LINK, 255), PASS_ND, BYTES);
	EXPECT(t, rig, solicitation(OWN, 254), DROP_BLOCK_FROM, BYTES);
	rig_overlay_text(rig, "");
	EXPECT(t, rig, solicitation(ROUTED, 255), PASS_DEFAULT, BYTES);
	CHECK(t, forward("0"), "forwarding cannot be switched off");
	EXPECT(t, rig, solicitation(ROUTED, 255), PASS_ND, BYTES);
}

const struct named_test transit_tests[] = {
	{"transit: neighbour discovery", test_discovery},
	{NULL, NULL},
};
