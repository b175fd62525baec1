// SPDX-License-Identifier: GPL-2.0-only
// Driver names and offloads; in a namespace of its own they are switched and read back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "ctl/net/ethtool.h"
#include "tests/unit/net/netns.h"

static void knows_lo(void **state)
{
	struct ethtool e;

	assert_int_equal(ethtool_get("lo", &e, NULL), 0);
	assert_int_equal(e.rx_gro_hw, ETHTOOL_OFF);
	assert_int_equal(e.combined, 0);
}

static void refuses_the_absent_one(void **state)
{
	struct ethtool e = {.combined = 77};
	char driver[32] = "kept";
	struct err err = {0};

	assert_int_equal(ethtool_get("nope", &e, &err), -ENODEV);
	assert_int_equal(e.combined, 77);
	assert_non_null(strstr(err.text, "'nope'"));
	assert_int_equal(ethtool_get("", &e, NULL), -ENODEV);
	assert_int_equal(ethtool_get("a-name-of-sixteen", &e, NULL), -ENODEV);
	assert_int_equal(ethtool_driver("nope", driver, sizeof(driver)), -ENODEV);
	assert_string_equal(driver, "kept");
}

static int set(uint32_t command, uint32_t value)
{
	CLEANUP_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ethtool_value v = {.cmd = command, .data = value};
	struct ifreq ifr = {.ifr_name = "v0", .ifr_data = (void *)&v};

	return ioctl(fd, SIOCETHTOOL, &ifr);
}

static struct ethtool get(void)
{
	struct ethtool e;

	assert_int_equal(ethtool_get("v0", &e, NULL), 0);
	return e;
}

static void follows_what_is_switched(void **state)
{
	char driver[32];

	netns_need();
	assert_true(run("ip link add v0 type veth peer name v1"));
	assert_int_equal(ethtool_driver("v0", driver, sizeof(driver)), 0);
	assert_string_equal(driver, "veth");
	assert_string_equal(get().driver, "veth");
	assert_int_equal(set(ETHTOOL_SGRO, 1), 0);
	assert_int_equal(get().gro, ETHTOOL_ON);
	assert_int_equal(set(ETHTOOL_SGRO, 0), 0);
	assert_int_equal(get().gro, ETHTOOL_OFF);
	// another feature whose name begins equally
	assert_true(run("ethtool -K v0 rx-gro-list on"));
	assert_int_equal(get().gro, ETHTOOL_OFF);
	assert_int_equal(get().tx_checksum, ETHTOOL_ON);
	assert_int_equal(get().tso, ETHTOOL_ON);
	assert_int_equal(set(ETHTOOL_STXCSUM, 0), 0);
	assert_int_equal(get().tx_checksum, ETHTOOL_OFF);
	assert_int_equal(get().tso, ETHTOOL_OFF);
	assert_int_equal(get().rx_vlan, ETHTOOL_ON);
	assert_int_equal(get().tx_vlan, ETHTOOL_ON);
	assert_int_equal(set(ETHTOOL_SFLAGS, 0), 0);
	assert_int_equal(get().rx_vlan, ETHTOOL_OFF);
	assert_int_equal(get().tx_vlan, ETHTOOL_OFF);
	assert_int_equal(get().lro, ETHTOOL_OFF);
	assert_true(run("ip link del v0"));
}

static void tells_lost_frames_from_dropped_ones(void **state)
{
	static const char *const lost[] = {
		"rx_queue_0_xdp_tx_errors", "tx_queue_0_xdp_xmit_errors",
		"rx_xdp_tx_full",           "tx_xdp_err",
		"tx_queue_0_xdp_tx_drops",  "Rx ring  0 XDP redirect failures",
		"Tx ring  0 XDP drops"};
	static const char *const other[] = {
		"rx_queue_0_xdp_drops", "rx_xdp_drop", "rx_queue_0_xdp_redirect",
		"tx_queue_0_xdp_xmit",  "rx_errors",   "peer_ifindex"};

	for (size_t n = 0; n < ARRAY_SIZE(lost); n++)
		assert_true(ethtool_counts_lost("any", lost[n]));
	for (size_t n = 0; n < ARRAY_SIZE(other); n++)
		assert_false(ethtool_counts_lost("veth", other[n]));
	assert_true(ethtool_counts_lost("veth", "rx_queue_0_drops"));
	assert_false(ethtool_counts_lost("virtio_net", "rx_queue_0_drops"));
}

static void reads_lost_frames(void **state)
{
	struct ethtool_lost lost = {.frames = 77};

	assert_int_equal(ethtool_lost("nope", &lost), -ENODEV);
	assert_int_equal(ethtool_lost("lo", &lost), 0);
	assert_false(lost.known);
	netns_need();
	assert_true(run("ip link add v0 type veth peer name v1"));
	assert_int_equal(ethtool_lost("v0", &lost), 0);
	assert_true(lost.known);
	assert_int_equal(lost.frames, 0);
	assert_string_equal(lost.counter, "");
	assert_true(run("ip link del v0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_lo),
		cmocka_unit_test(refuses_the_absent_one),
		cmocka_unit_test(follows_what_is_switched),
		cmocka_unit_test(tells_lost_frames_from_dropped_ones),
		cmocka_unit_test(reads_lost_frames),
	};

	netns_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
