// SPDX-License-Identifier: GPL-2.0-only
// The properties of a device from ethtool, netlink, /sys and XenStore decide mode, message and
// command.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/fitness.h"
#include "ctl/net/driver.h"

static const struct native_facts xen = {.driver = "vif",
					.name = "eth0",
					.mtu = 1500,
					.cpus = 4,
					.cpus_online = 4,
					.headroom = HEADROOM_NO};
static const struct native_facts i40e = {.driver = "i40e",
					 .name = "eth0",
					 .mtu = 1500,
					 .cpus = 16,
					 .cpus_online = 16,
					 .attached = true,
					 .e = {.combined = 8, .combined_max = 64}};
static const struct native_facts mlx5 = {
	.driver = "mlx5_core",
	.name = "eth0",
	.mtu = 1500,
	.cpus = 8,
	.cpus_online = 8,
	.buffers = true,
	.e = {.combined = 8, .combined_max = 8, .lro = ETHTOOL_ON}};
static const struct native_facts ena = {.driver = "ena",
					.name = "eth0",
					.mtu = 9001,
					.cpus = 8,
					.cpus_online = 8,
					.e = {.combined = 8, .combined_max = 8}};
static const struct native_facts gve = {.driver = "gve",
					.name = "eth0",
					.mtu = 1460,
					.cpus = 16,
					.cpus_online = 16,
					.e = {.rx = 16, .rx_max = 16, .tx = 16, .tx_max = 16}};
static const struct native_facts virtio = {.driver = "virtio_net",
					   .name = "eth0",
					   .mtu = 1500,
					   .cpus = 2,
					   .cpus_online = 2,
					   .e = {.combined = 1, .combined_max = 4}};

static void set_driver(struct native_facts *f, const char *driver)
{
	snprintf(f->driver, sizeof(f->driver), "%s", driver);
}

// Exactly one thing speaks against native mode, or with text NULL nothing.
static void one(const struct native_facts *f, enum advice_kind kind, const char *text,
		const char *mend)
{
	CLEANUP_ADVICES struct advices a = {0};

	fitness_advise(f, &a);
	assert_int_equal(a.n, text ? 1 : 0);
	if (!text)
		return;
	assert_int_equal(a.at[0].kind, kind);
	assert_string_equal(a.at[0].text, text);
	assert_string_equal(a.at[0].mend, mend);
}

static void nothing(const struct native_facts *f)
{
	one(f, ADVICE_LOSES, NULL, NULL);
}

// Is native mode tried? why: the reason, if it is not.
static bool tried(const struct native_facts *f, enum attach_mode mode, struct err *why)
{
	CLEANUP_ADVICES struct advices a = {0};
	struct link link = {.mtu = f->mtu};

	memcpy(link.name, f->name, sizeof(link.name));
	memcpy(link.driver, f->driver, sizeof(link.driver));
	fitness_advise(f, &a);
	return fitness_native(&a, &link, mode, why);
}

static const char *refusal(const struct native_facts *f)
{
	CLEANUP_ADVICES struct advices a = {0};
	static fitness_text text;

	fitness_advise(f, &a);
	return fitness_refusal(&a, text);
}

static const char *warned(const struct native_facts *f, enum iface_mode mode, char *notice,
			  size_t size)
{
	CLEANUP_ADVICES struct advices a = {0};
	struct link link = {0};

	memcpy(link.name, f->name, sizeof(link.name));
	memcpy(link.driver, f->driver, sizeof(link.driver));
	fitness_advise(f, &a);
	fitness_warn(&a, &link, mode, notice, size);
	return notice;
}

static void a_backend_of_xen_without_headroom(void **state)
{
	struct native_facts f = xen;
	struct err why = {0};
	char notice[HOOK_NOTICE] = "before";

	one(&f, ADVICE_IDLE,
	    "a program in native mode is accepted and not run, as the Xen backend gives frames no "
	    "headroom for XDP",
	    "weir attach eth0 --mode generic");
	assert_false(tried(&f, ATTACH_AUTO, &why));
	assert_int_equal(why.kind, ERR_SYSTEM); // so that generic mode is used
	assert_string_equal(why.text,
			    "driver 'vif': a program in native mode is accepted and not run, "
			    "as the Xen backend gives frames no headroom for XDP");
	assert_true(tried(&f, ATTACH_NATIVE, &why));
	f.attached = true;
	assert_string_equal(
		warned(&f, IFACE_NATIVE, notice, sizeof(notice)),
		"before; driver 'vif': a program in native mode is accepted and not run, "
		"as the Xen backend gives frames no headroom for XDP (weir detach eth0, "
		"weir attach eth0 --mode generic)");
	f.headroom = HEADROOM_UNKNOWN;
	assert_false(tried(&f, ATTACH_AUTO, &why));
	assert_non_null(strstr(why.text, "cannot be read"));
	f.headroom = HEADROOM_YES;
	nothing(&f);
	assert_true(tried(&f, ATTACH_AUTO, &why));
}

static void fewer_channels_than_cpus(void **state)
{
	struct native_facts f = i40e;
	struct err why = {0};

	one(&f, ADVICE_DROPS,
	    "frames that CPUs 8 to 15 redirect to the device are lost, since it has 8 channels",
	    "ethtool -L eth0 combined 16");
	assert_true(tried(&f, ATTACH_AUTO, &why));
	assert_string_equal(refusal(&f), "");
	set_driver(&f, "mlx5_core");
	f.e.combined_max = 12;
	one(&f, ADVICE_DROPS,
	    "frames that CPUs 8 to 15 redirect to the device are lost, since it has 8 channels",
	    "ethtool -L eth0 combined 12, and in /proc/irq/*/smp_affinity_list only CPUs 0 to 11 for "
	    "received packets");
	f.cpus_online = 8;
	nothing(&f);
	f.cpus_online = 16;
	f.e.combined = f.e.combined_max = 0; // not known
	nothing(&f);
	f = i40e;
	set_driver(&f, "ice"); // shares its queues under a lock
	nothing(&f);
}

static void mlx5_refuses_merged_packets(void **state)
{
	struct native_facts f = mlx5;

	one(&f, ADVICE_REFUSES, "the device merges packets (LRO)", "ethtool -K eth0 lro off");
	assert_string_equal(refusal(&f),
			    "the device merges packets (LRO): ethtool -K eth0 lro off");
	f.e.rx_gro_hw = ETHTOOL_ON;
	assert_string_equal(refusal(&f),
			    "the device merges packets (LRO): ethtool -K eth0 lro off; the "
			    "device merges packets (HW-GRO): ethtool -K eth0 rx-gro-hw off");
	f.attached = true; // the driver has not refused it
	nothing(&f);
	f = mlx5;
	f.e.lro = ETHTOOL_OFF;
	nothing(&f);
	f.mtu = 9000; // in several buffers
	nothing(&f);
	f.buffers = false;
	one(&f, ADVICE_REFUSES, "MTU 9000 is above 3498, the limit of native mode",
	    "ip link set eth0 mtu 3498");
}

static void ena_as_amazon_configures_it(void **state)
{
	struct native_facts f = ena;
	struct err why = {0};

	assert_string_equal(
		refusal(&f),
		"MTU 9001 is above 3498, the limit of native mode: ip link set eth0 mtu "
		"3498; 8 of 8 channels are in use, and XDP needs as many again: ethtool -L "
		"eth0 combined 4");
	assert_true(tried(&f, ATTACH_AUTO, &why)); // the driver is asked; newer ones may accept it
	f.mtu = 3498;
	f.e.combined = 5;
	one(&f, ADVICE_REFUSES, "5 of 8 channels are in use, and XDP needs as many again",
	    "ethtool -L eth0 combined 4");
	f.e.combined = 4;
	nothing(&f);
	f.e.combined = f.e.combined_max = 1;
	one(&f, ADVICE_REFUSES, "the device has one channel, and XDP needs a second one", "");
}

static void gve_counts_each_way(void **state)
{
	struct native_facts f = gve;

	one(&f, ADVICE_REFUSES, "16 of 16 channels are in use, and XDP needs as many again",
	    "ethtool -L eth0 rx 8 tx 8");
	f.e.rx = f.e.tx = 8;
	nothing(&f);
	f.e.rx = 4;
	one(&f, ADVICE_REFUSES, "channels for receiving (4) and sending (8) differ in number",
	    "ethtool -L eth0 rx 8 tx 8");
	f.e.rx = 8;
	f.mtu = 8896;
	f.hds = ETHTOOL_ON;
	assert_string_equal(
		refusal(&f),
		"MTU 8896 is above 2032, the limit of native mode: ip link set eth0 mtu "
		"2032; the device splits headers from data (HDS), a reason from Linux 6.14 "
		"on: ethtool -G eth0 tcp-data-split off");
}

static void drivers_that_give_no_reason(void **state)
{
	struct native_facts f = {
		.driver = "ixgbe", .name = "eth1", .mtu = 1500, .vfs = 2, .e.lro = ETHTOOL_ON};

	assert_string_equal(refusal(&f),
			    "the device merges packets (LRO): ethtool -K eth1 lro off; 2 virtual "
			    "functions are in use (SR-IOV): echo 0 > "
			    "/sys/class/net/eth1/device/sriov_numvfs");
	set_driver(&f, "bnxt_en"); // switches LRO off itself
	f.vfs = 0;
	nothing(&f);
	f.e.rx = f.e.tx = 4;
	f.e.rx_max = f.e.tx_max = 8;
	one(&f, ADVICE_REFUSES,
	    "separate channels for receiving and sending, and XDP needs combined ones",
	    "ethtool -L eth1 rx 0 tx 0 combined 4");
	set_driver(&f, "nfp"); // no row: any may be the reason
	f.vfs = 1;
	assert_non_null(strstr(refusal(&f), "(LRO)"));
	assert_non_null(strstr(refusal(&f), "1 virtual function is in use"));
}

static void no_half_commands(void **state)
{
	struct native_facts f = gve;

	memset(f.name, 'e', sizeof(f.name) - 1);
	f.mtu = 8896;
	f.hds = f.e.lro = ETHTOOL_ON;
	assert_true(strlen(refusal(&f)) < sizeof(fitness_text));
	assert_non_null(strstr(refusal(&f), "ethtool -K eeeeeeeeeeeeeee lro off"));
	assert_null(strstr(refusal(&f), "HDS")); // no room
}

static void limits_of_a_single_buffer(void **state)
{
	struct native_facts f = virtio;
	struct err why = {0};

	f.mtu = 3490;
	nothing(&f);
	f.mtu = 3491;
	one(&f, ADVICE_LOSES,
	    "MTU 3491 is too large for native mode, which would lose packets longer than 3490 bytes",
	    "ip link set eth0 mtu 3490");
	assert_false(tried(&f, ATTACH_NATIVE, &why)); // even by name
	assert_string_equal(why.text, "cannot attach to 'eth0' in native mode (EMSGSIZE)");
	assert_string_equal(why.hint,
			    "driver 'virtio_net' would lose packets at MTU 3491: ip link set "
			    "eth0 mtu 3490");
	f.attached = true;
	f.e.combined = 3;
	one(&f, ADVICE_LOSES, "packets longer than 3490 bytes are lost in native mode",
	    "ip link set eth0 mtu 3490");
	f.buffers = true;
	nothing(&f);
	// it is known to lose frames, independently of the kernel's report
	set_driver(&f, "vmxnet3");
	assert_false(tried(&f, ATTACH_NATIVE, &why));
	set_driver(&f, "veth");
	nothing(&f);
	set_driver(&f, "");
	nothing(&f);
}

static void a_driver_that_forgets(void **state)
{
	struct native_facts f = {.driver = "vmxnet3", .name = "eth0", .mtu = 1500};
	struct err why = {0};
	char notice[HOOK_NOTICE] = "";

	assert_false(tried(&f, ATTACH_AUTO, &why));
	assert_true(tried(&f, ATTACH_NATIVE, &why));
	assert_non_null(
		strstr(warned(&f, IFACE_NATIVE, notice, sizeof(notice)), "leaves native mode"));
	notice[0] = '\0';
	assert_string_equal(warned(&f, IFACE_GENERIC, notice, sizeof(notice)), "");
	assert_true(native_sends_with_program("vmxnet3"));
	assert_true(native_sends_with_program("i40e"));
	assert_false(native_sends_with_program("veth"));
}

static bool shares(uint32_t now, uint32_t max, uint32_t cpus, bool attached)
{
	CLEANUP_ADVICES struct advices a = {0};
	struct native_facts f = virtio;

	f.e.combined = now;
	f.e.combined_max = max;
	f.cpus = cpus;
	f.attached = attached;
	fitness_advise(&f, &a);
	return fitness_find(&a, ADVICE_SHARES);
}

static void a_queue_for_each_processor(void **state)
{
	struct native_facts f = virtio;

	assert_true(shares(1, 1, 2, false));
	assert_false(shares(2, 4, 2, false));
	assert_true(shares(3, 4, 2, false));
	assert_true(shares(2, 3, 2, false));
	assert_false(shares(1, 2, 1, false));
	// attached, two queues of the stack and two reserved, or none reserved
	assert_false(shares(4, 4, 2, true));
	assert_true(shares(2, 3, 2, true));
	assert_true(shares(1, 1, 2, true));
	// the driver does not report it
	assert_false(shares(0, 0, 2, false));
	f.e.combined = 3;
	one(&f, ADVICE_SHARES,
	    "too few queues for XDP_TX and redirects: 2 CPUs share the queues of the stack, under a "
	    "lock",
	    "ethtool -L eth0 combined 2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_backend_of_xen_without_headroom),
		cmocka_unit_test(fewer_channels_than_cpus),
		cmocka_unit_test(mlx5_refuses_merged_packets),
		cmocka_unit_test(ena_as_amazon_configures_it),
		cmocka_unit_test(gve_counts_each_way),
		cmocka_unit_test(drivers_that_give_no_reason),
		cmocka_unit_test(no_half_commands),
		cmocka_unit_test(limits_of_a_single_buffer),
		cmocka_unit_test(a_driver_that_forgets),
		cmocka_unit_test(a_queue_for_each_processor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
