// SPDX-License-Identifier: GPL-2.0-only
// Interfaces as the kernel reports them; in a namespace of its own: veth, VLAN, bridge, XDP
// programs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <signal.h>
#include <sys/syscall.h>

#include "ctl/net/link.h"
#include "ctl/net/netlink.h"
#include "tests/unit/net/message.h"
#include "tests/unit/net/netns.h"

static void gets_lo(void **state)
{
	struct link l;

	assert_int_equal(link_get("lo", &l, NULL), 0);
	assert_string_equal(l.name, "lo");
	assert_int_equal(l.index, if_nametoindex("lo"));
	assert_int_equal(l.type, ARPHRD_LOOPBACK);
	assert_int_equal(l.lower, 0);
	assert_int_equal(l.master, 0);
	assert_true(l.mtu >= 1500);
	assert_true(l.up);
	assert_false(l.lower_elsewhere);
	assert_string_equal(l.kind, "");
	assert_int_equal(l.xdp_mode, LINK_XDP_NONE);
}

static void gets_by_index(void **state)
{
	struct link l = {.index = 77};
	struct err err = {0};

	assert_int_equal(link_get_by_index(if_nametoindex("lo"), &l, NULL), 0);
	assert_string_equal(l.name, "lo");
	l.index = 77;
	assert_int_equal(link_get_by_index(0x7ffffff0, &l, &err), -ENODEV);
	assert_int_equal(l.index, 77);
	assert_int_equal(err.kind, ERR_INPUT);
	assert_int_equal(link_get_by_index(0, &l, NULL), -ENODEV);
}

static void names_the_absent_one(void **state)
{
	struct err err = {0};
	struct link l;

	assert_int_equal(link_get("nope", &l, &err), -ENODEV);
	assert_int_equal(err.kind, ERR_INPUT);
	assert_int_equal(err.code, ENODEV);
	assert_non_null(strstr(err.text, "'nope'"));
	assert_non_null(strstr(err.hint, "lo"));
	assert_int_equal(link_get("", &l, NULL), -ENODEV);
	assert_int_equal(link_get("a-name-of-sixteen", &l, NULL), -ENODEV);
}

static void put_vlan(struct message *m, const char *kind, uint16_t ethertype)
{
	struct nlmsghdr *nlh = message_head(m);
	struct nlattr *info = mnl_attr_nest_start(nlh, IFLA_LINKINFO), *data;

	data = mnl_attr_nest_start(nlh, IFLA_INFO_DATA); // before the kind that says what it means
	mnl_attr_put_u16(nlh, IFLA_VLAN_ID, 7);
	if (ethertype)
		mnl_attr_put_u16(nlh, IFLA_VLAN_PROTOCOL, htons(ethertype));
	mnl_attr_nest_end(nlh, data);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, kind);
	mnl_attr_nest_end(nlh, info);
}

static struct link vlan_link(const char *kind, uint16_t ethertype)
{
	struct message m;
	struct ifinfomsg *info = message_begin(&m, RTM_NEWLINK, sizeof(*info));
	struct link l;

	info->ifi_index = 5;
	info->ifi_type = ARPHRD_ETHER;
	info->ifi_flags = IFF_UP | IFF_NOARP;
	mnl_attr_put_strz(message_head(&m), IFLA_IFNAME, "eth0.7");
	mnl_attr_put_u32(message_head(&m), IFLA_LINK, 2);
	put_vlan(&m, kind, ethertype);
	assert_true(link_from_message(message_head(&m), &l));
	return l;
}

// Not every kernel can make VLAN devices.
static void reads_vlan_devices(void **state)
{
	struct link l = vlan_link("vlan", 0x88a8);

	assert_int_equal(l.index, 5);
	assert_int_equal(l.lower, 2);
	assert_int_equal(l.vlan, 7);
	assert_int_equal(l.vlan_type, 0x88a8);
	assert_true(l.no_arp);
	l = vlan_link("vlan", 0);
	assert_int_equal(l.vlan_type, 0x8100);
	l = vlan_link("bridge", 0x8100); // whose attributes of these numbers mean something else
	assert_int_equal(l.vlan, 0);
	assert_int_equal(l.vlan_type, 0);
}

static void refuses_other_messages(void **state)
{
	struct message m;
	struct link l;

	message_begin(&m, RTM_DELLINK, sizeof(struct ifinfomsg));
	assert_false(link_from_message(message_head(&m), &l));
	message_begin(&m, RTM_NEWLINK, 4);
	assert_false(link_from_message(message_head(&m), &l));
}

static void suggests_the_nearest(void **state)
{
	struct err err = {0};
	struct link l;

	assert_int_equal(link_get("loo", &l, &err), -ENODEV);
	assert_string_equal(err.hint, "did you mean 'lo'?");
}

static void lists_by_index(void **state)
{
	CLEANUP_FREE struct link *all = NULL;
	bool lo = false;
	size_t n = 0;

	assert_int_equal(link_list(&all, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		lo = lo || !strcmp(all[i].name, "lo");
		assert_true(!i || all[i - 1].index < all[i].index);
	}
	assert_true(lo);
}

// The same links, and their other properties.
static void lists_without_drivers(void **state)
{
	CLEANUP_FREE struct link *all = NULL;
	CLEANUP_FREE struct link *bare = NULL;
	size_t n = 0, n_bare = 0;

	netns_need();
	assert_true(run("ip link add b0 type veth peer name b1 && ip link set b0 up"));
	assert_int_equal(link_list(&all, &n, NULL), 0);
	assert_int_equal(link_list_bare(&bare, &n_bare, NULL), 0);
	assert_int_equal(n, n_bare);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(all[i].index, bare[i].index);
		assert_string_equal(all[i].name, bare[i].name);
		assert_string_equal(all[i].kind, bare[i].kind);
		assert_memory_equal(all[i].mac, bare[i].mac, 6);
		assert_int_equal(all[i].master, bare[i].master);
		assert_int_equal(all[i].lower, bare[i].lower);
		assert_true(bare[i].rx_packets >= all[i].rx_packets);
		assert_string_equal(bare[i].driver, "");
	}
	assert_true(run("ip link del b0"));
}

static void sees_what_forwards(void **state)
{
	static const struct {
		bool four, six;
	} cases[] = {{false, false}, {true, false}, {false, true}, {true, true}};
	struct link l;

	netns_need();
	assert_true(run("ip link add f0 type veth peer name f1"));
	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		assert_true(run("echo %d > /proc/sys/net/ipv4/conf/f0/forwarding", cases[n].four));
		assert_int_equal(link_get("f0", &l, NULL), 0);
		assert_int_equal(l.forwards4, cases[n].four);
		if (!run("echo %d > /proc/sys/net/ipv6/conf/f0/forwarding", cases[n].six))
			continue; // a kernel without IPv6
		assert_int_equal(link_get("f0", &l, NULL), 0);
		assert_int_equal(l.forwards6, cases[n].six);
	}
	assert_true(run("ip link del f0"));
}

static void sees_veth_upper_and_bridge(void **state)
{
	struct link v0, v1, vlan, bridge;

	netns_need();
	assert_true(run("ip link add v0 numrxqueues 3 address 02:00:00:00:00:07 mtu 1400 type veth "
			"peer name v1"));
	// First: a VLAN device is up when the device below is.
	assert_true(run("ip link set v0 up && ip link set v1 up"));
	// Not every kernel has VLANs; for this attribute a macvlan is equivalent.
	assert_true(run("ip link add link v0 name v0.7 type vlan id 7 || "
			"ip link add link v0 name v0.7 type macvlan"));
	assert_true(run("ip link add br0 type bridge && ip link set v1 master br0"));
	assert_int_equal(link_get("v0", &v0, NULL), 0);
	assert_int_equal(link_get("v1", &v1, NULL), 0);
	assert_int_equal(link_get("v0.7", &vlan, NULL), 0);
	assert_int_equal(link_get("br0", &bridge, NULL), 0);
	assert_string_equal(v0.kind, "veth");
	assert_string_equal(v0.driver, "veth");
	assert_int_equal(v0.type, ARPHRD_ETHER);
	assert_int_equal(v0.mtu, 1400);
	assert_int_equal(v0.rx_queues, 3);
	assert_memory_equal(v0.mac, "\2\0\0\0\0\7", 6);
	assert_true(v0.up && v0.running);
	assert_int_equal(v0.lower, v1.index);
	assert_int_equal(v1.lower, v0.index);
	assert_false(v0.lower_elsewhere);
	assert_int_equal(v1.master, bridge.index);
	assert_string_equal(bridge.kind, "bridge");
	assert_non_null(strstr(vlan.kind, "vlan"));
	assert_int_equal(vlan.lower, v0.index);
	assert_int_equal(vlan.vlan, strcmp(vlan.kind, "vlan") ? 0 : 7);
	assert_int_equal(vlan.vlan_type, strcmp(vlan.kind, "vlan") ? 0 : 0x8100);
	assert_false(vlan.up);
	assert_true(run("ip link del br0 && ip link del v0"));
}

static void sees_a_peer_elsewhere(void **state)
{
	struct link w0;
	pid_t other;

	netns_need();
	other = fork();
	if (!other) {
		if (unshare(CLONE_NEWNET))
			_exit(1);
		pause();
		_exit(0);
	}
	// The other process may not have entered its namespace yet.
	for (int i = 0; i < 100; i++) {
		usleep(20 * 1000);
		if (run("[ \"$(readlink /proc/%d/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]",
			other))
			break;
	}
	assert_true(run("ip link add w0 type veth peer name w1 netns %d", other));
	assert_int_equal(link_get("w0", &w0, NULL), 0);
	assert_true(w0.lower_elsewhere);
	assert_true(w0.lower > 0);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

// r0 = XDP_PASS; exit
static int load_pass(void)
{
	static const struct bpf_insn pass[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = (uintptr_t)pass,
		.insn_cnt = ARRAY_SIZE(pass),
		.license = (uintptr_t) "GPL",
	};

	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static uint32_t prog_id(int fd)
{
	struct bpf_prog_info info = {0};
	union bpf_attr attr = {.info = {.bpf_fd = (uint32_t)fd,
					.info_len = sizeof(info),
					.info = (uintptr_t)&info}};

	assert_int_equal(syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)), 0);
	return info.id;
}

static int ignore(const struct nlmsghdr *nlh, void *ctx)
{
	return MNL_CB_OK;
}

static int set_xdp(const char *ifname, int fd, uint32_t flags)
{
	char buf[256] __attribute__((aligned(4))) = {0};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	struct nlattr *nest;

	nlh->nlmsg_type = RTM_SETLINK;
	info->ifi_index = (int)if_nametoindex(ifname);
	nest = mnl_attr_nest_start(nlh, IFLA_XDP);
	mnl_attr_put_u32(nlh, IFLA_XDP_FD, (uint32_t)fd);
	mnl_attr_put_u32(nlh, IFLA_XDP_FLAGS, flags);
	mnl_attr_nest_end(nlh, nest);
	return netlink_request(NETLINK_ROUTE, nlh, ignore, NULL);
}

static void check_xdp(enum link_xdp mode, uint32_t id)
{
	struct link l;

	assert_int_equal(link_get("x0", &l, NULL), 0);
	assert_int_equal(l.xdp_mode, mode);
	assert_int_equal(l.xdp_prog_id, id);
}

// Native and generic programs exist together only in offload; the two modes are asked in turn.
static void sees_xdp_programs(void **state)
{
	CLEANUP_FD int fd = -1;

	netns_need();
	fd = load_pass();
	if (fd < 0 && errno == EPERM)
		skip_because("only root may load BPF programs here");
	assert_true(fd >= 0);
	assert_true(run("ip link add x0 type veth peer name x1"));
	check_xdp(LINK_XDP_NONE, 0);
	assert_int_equal(set_xdp("x0", fd, XDP_FLAGS_SKB_MODE), 0);
	check_xdp(LINK_XDP_GENERIC, prog_id(fd));
	assert_int_equal(set_xdp("x0", -1, XDP_FLAGS_SKB_MODE), 0);
	assert_int_equal(set_xdp("x0", fd, XDP_FLAGS_DRV_MODE), 0);
	check_xdp(LINK_XDP_NATIVE, prog_id(fd));
	assert_int_equal(set_xdp("x0", -1, XDP_FLAGS_DRV_MODE), 0);
	check_xdp(LINK_XDP_NONE, 0);
	assert_true(run("ip link del x0"));
}

static void counts_packets(void **state)
{
	struct link before, after;

	netns_need();
	assert_int_equal(link_get("lo", &before, NULL), 0);
	assert_true(run("ping -c 3 -i 0.1 -W 2 127.0.0.1"));
	assert_int_equal(link_get("lo", &after, NULL), 0);
	assert_true(after.rx_packets >= before.rx_packets + 6);
	assert_true(after.rx_bytes > before.rx_bytes);
}

static void sees_big_tcp(void **state)
{
	struct link l;

	netns_need();
	assert_true(run("ip link add y0 type veth peer name y1"));
	assert_int_equal(link_get("y0", &l, NULL), 0);
	assert_int_equal(link_big_tcp(&l), 0);
	if (!l.gro_max)
		skip_because("this kernel has no gro_max_size");
	assert_true(run("ip link set dev y0 gro_max_size 100000"));
	assert_int_equal(link_get("y0", &l, NULL), 0);
	assert_int_equal(l.gro_max, 100000);
	assert_int_equal(link_big_tcp(&l), 100000);
	assert_true(run("ip link set dev y0 gro_max_size 65536"));
	assert_int_equal(link_get("y0", &l, NULL), 0);
	assert_int_equal(link_big_tcp(&l), 0);
	assert_true(run("ip link del y0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gets_lo),
		cmocka_unit_test(gets_by_index),
		cmocka_unit_test(names_the_absent_one),
		cmocka_unit_test(reads_vlan_devices),
		cmocka_unit_test(refuses_other_messages),
		cmocka_unit_test(suggests_the_nearest),
		cmocka_unit_test(lists_by_index),
		cmocka_unit_test(lists_without_drivers),
		cmocka_unit_test(sees_what_forwards),
		cmocka_unit_test(sees_veth_upper_and_bridge),
		cmocka_unit_test(sees_a_peer_elsewhere),
		cmocka_unit_test(sees_xdp_programs),
		cmocka_unit_test(counts_packets),
		cmocka_unit_test(sees_big_tcp),
	};

	netns_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
