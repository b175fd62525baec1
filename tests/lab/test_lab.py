# SPDX-License-Identifier: GPL-2.0-only
"""The lab itself: what other tests rely on."""

import os
import signal
import subprocess
import time

import pytest
from labnet import LAB, PATIENCE, Pair, run, traces

ADDRESSES = {
    "blocked.lab": (["203.0.113.10"], ["2001:db8:113::10"]),
    "shared.lab": (["203.0.113.10", "203.0.113.30"], ["2001:db8:113::10", "2001:db8:113::30"]),
    "many.lab": (
        [f"198.51.100.{i}" for i in range(1, 5)],
        [f"2001:db8:100::{i}" for i in range(1, 5)],
    ),
    "v4only.lab": (["203.0.113.40"], []),
}

NXDOMAIN = 3


def addresses(answers):
    return sorted(data for _, kind, data, _ in answers if kind != "CNAME")


@pytest.mark.parametrize("name", ADDRESSES)
def test_names_resolve_with_a_ttl_of_two_seconds(pair, name):
    for kind, wanted in zip(("A", "AAAA"), ADDRESSES[name]):
        code, answers = pair.query(name, kind)
        assert code == 0
        assert addresses(answers) == wanted
        assert {ttl for *_, ttl in answers} <= {2}


@pytest.mark.parametrize("name", ["www.blocked.lab", "chain.lab"])
def test_aliases_lead_to_the_name(pair, name):
    for kind, wanted in zip(("A", "AAAA"), ADDRESSES["blocked.lab"]):
        code, answers = pair.query(name, kind)
        assert code == 0
        assert addresses(answers) == wanted
        assert (name, "CNAME") == answers[0][:2]
        assert {ttl for *_, ttl in answers} == {2}


@pytest.mark.parametrize("name", ["nothing.lab", "example.com"])
def test_other_names_do_not_exist(pair, name):
    assert pair.query(name) == (NXDOMAIN, [])


def test_records_change_at_once(pair, dns):
    for i in range(1, 20):
        dns("blocked.lab", f"192.0.2.{i}", f"2001:db8::{i:x}")
        assert addresses(pair.query("blocked.lab")[1]) == [f"192.0.2.{i}"]
        assert addresses(pair.query("www.blocked.lab", "AAAA")[1]) == [f"2001:db8::{i:x}"]
    dns("other.lab", "none")
    assert pair.query("other.lab") == (NXDOMAIN, [])
    dns("reset")
    assert addresses(pair.query("other.lab")[1]) == ["203.0.113.20"]
    assert addresses(pair.query("blocked.lab")[1]) == ADDRESSES["blocked.lab"][0]


@pytest.mark.parametrize("turn", [1, 2])  # in the second, after what the first has left behind
def test_a_test_leaves_the_records_as_they_were(pair, turn):
    assert addresses(pair.query("other.lab")[1]) == ["203.0.113.20"], turn
    assert pair.query("moving.lab") == (NXDOMAIN, []), turn
    pair.dns("other.lab", "none")
    pair.dns("moving.lab", "203.0.113.31")


@pytest.mark.parametrize("host", ["blocked.lab", "www.blocked.lab", "many.lab", "blocked"])
def test_names_answer_in_both_families(pair, host):
    assert pair.ping4(host)
    assert pair.ping6(host)
    assert pair.curl4(host)
    assert pair.curl6(host)


def test_far_answers_for_its_networks_and_swallows_the_rest(pair):
    assert pair.ping4("198.19.255.254")
    assert pair.ping6("2001:db8:ffff::1")
    assert not pair.ping4("10.99.0.1")


@pytest.mark.parametrize("tags", [(), (5,), (5, 6), (5, 6, 7, 8)])
def test_raw_frames_arrive_with_their_tags(pair, tags):
    for source in "192.0.2.9", "2001:db8::9":
        frame = bytes(pair.udp(source, tags=tags))
        with pair.sniff_near() as sniffer:
            pair.send_from_far(frame)
            assert sniffer.received(lambda data: b"weir-lab" in data) == [frame]


# Returns UDP to port 9 in VLAN 5 unchanged (XDP_TX), except for a mark in the target address. Only if the tag
# is in the frame, which it is not if the sender offloads tags.
XDP_MIRROR = """
struct xdp_md { unsigned data, data_end; };
char _license[] __attribute__((section("license"), used)) = "GPL";
__attribute__((section("xdp.frags"), used)) int mirror(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (data + 42 > end || data[12] != 0x81 || data[15] != 5 || data[27] != 17 || data[41] != 9)
		return 2;
	data[5] = 0x55;
	return 3;
}
"""

# The tag of the kernel is kept beside the frame as long as the device offers to insert it.
TC_PUSH_VLAN = """
static long (*vlan_push)(void *skb, unsigned short proto, unsigned short tci) = (void *)18;
char _license[] __attribute__((section("license"), used)) = "GPL";
__attribute__((section("tc"), used)) int push(void *skb)
{
	vlan_push(skb, 0x0081, 5);
	return 0;
}
"""

SEND_UDP = """
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"weir-lab", ("10.77.0.1", 9))
"""


def compile_bpf(source, target):
    clang = ["clang", "-O2", "-target", "bpf", "-x", "c", "-", "-c", "-o", target]
    run(clang, input=source)


@pytest.fixture(name="mirror")
def mirror_on_near(pair, tmp_path):
    compile_bpf(XDP_MIRROR, tmp_path / "mirror.o")
    link = ["ip", "-n", pair.near_netns, "link", "set", "dev", pair.near_device, "xdpdrv"]
    run([*link, "obj", tmp_path / "mirror.o", "sec", "xdp.frags"])
    assert pair.xdp_attached()
    yield
    run([*link, "off"])
    assert not pair.xdp_attached()


def is_mirrored(data):
    return data[5] == 0x55 and data[12:16] == b"\x81\0\0\5" and b"weir-lab" in data


@pytest.mark.usefixtures("mirror")
def test_what_near_sends_by_xdp_arrives(pair):
    with pair.sniff_far() as sniffer:
        for _ in range(5):  # any other packet can push out one that is stuck
            list(sniffer.frames(wait=0.1))
            pair.send_from_far(pair.udp("192.0.2.9", tags=[5]))
            assert len(sniffer.received(is_mirrored, wait=0.1)) == 1


@pytest.mark.usefixtures("mirror")
def test_xdp_sees_tags_that_the_kernel_adds(pair, tmp_path):
    compile_bpf(TC_PUSH_VLAN, tmp_path / "push.o")
    assert pair.ping4(pair.far4)  # far learns the link address of near before it sends tagged frames only
    run(["tc", "-n", pair.far_netns, "qdisc", "add", "dev", pair.far_device, "clsact"])
    try:
        program = ["bpf", "da", "obj", tmp_path / "push.o", "sec", "tc"]
        run(["tc", "-n", pair.far_netns, "filter", "add", "dev", pair.far_device, "egress", *program])
        with pair.sniff_far() as sniffer:
            pair.far(["/usr/bin/python3", "-c", SEND_UDP])
            assert len(sniffer.received(is_mirrored)) == 1
    finally:
        run(["tc", "-n", pair.far_netns, "qdisc", "del", "dev", pair.far_device, "clsact"])


def test_jumbo_frames(lab):
    pair = lab(mtu=9000)
    assert pair.ping4("blocked.lab", "-s8972", "-Mdo")
    assert pair.ping6("blocked.lab", "-s8952", "-Mdo")
    assert not pair.ping4("blocked.lab", "-s8973", "-Mdo")


def test_labs_do_not_disturb_each_other(pair, lab):
    other = lab()
    other.dns("blocked.lab", "192.0.2.77")
    assert addresses(pair.query("blocked.lab")[1]) == ADDRESSES["blocked.lab"][0]
    other.down()
    assert pair.ping4("blocked.lab")


def test_down_leaves_nothing(lab):
    pair = lab()
    sleeper = subprocess.Popen([*pair.enter(pair.far_netns), "sleep", "60"])
    assert len(traces(pair.name)) >= 6
    pair.lab("status", "pair")
    pair.down()
    assert traces(pair.name) == []
    assert sleeper.wait(timeout=2) == -signal.SIGTERM
    assert "not up" in pair.lab("down", "pair").stdout
    assert pair.lab("status", "pair", check=False).returncode == 1


# up and down take about 120 ms: these delays hit every step of them.
@pytest.mark.parametrize("delay_ms", range(0, 150, 10))
def test_up_interrupted_leaves_nothing(delay_ms):
    pair = Pair(f"t{os.getpid()}-int")
    with subprocess.Popen([LAB, "up", "pair", "--name", pair.name], start_new_session=True) as up:
        time.sleep(delay_ms / 1000)
        os.killpg(up.pid, signal.SIGINT)
        status = up.wait(timeout=20 * PATIENCE)
    if status == 0:
        pair.down()
    assert traces(pair.name) == []


@pytest.mark.parametrize("delay_ms", range(10, 110, 25))
def test_down_after_up_was_killed(delay_ms):
    pair = Pair(f"t{os.getpid()}-kill")
    with subprocess.Popen([LAB, "up", "pair", "--name", pair.name], start_new_session=True) as up:
        time.sleep(delay_ms / 1000)
        os.killpg(up.pid, signal.SIGKILL)
    pair.down()
    assert traces(pair.name) == []


def test_up_replaces_a_stale_lab(lab):
    pair = lab()
    run(["ip", "-n", pair.near_netns, "link", "del", pair.near_device])
    pair.up()
    assert pair.curl6("blocked.lab")


def test_up_replaces_the_only_lab():
    """With a separate /run, so that no other lab keeps the folder of labs there."""
    name = f"t{os.getpid()}-only"
    up = f"{LAB} up pair --name {name}"
    script = f"mount -t tmpfs tmpfs /run && {up} && {up} && {LAB} down pair --name {name} && ls /run"
    done = run(["unshare", "--mount", "sh", "-c", script])
    assert done.stdout.count("is up") == 2 and "weir-lab" not in done.stdout.splitlines()
    assert traces(name) == []


def test_foreign_namespaces_are_left_alone():
    pair = Pair(f"t{os.getpid()}-own")
    run(["ip", "netns", "add", pair.far_netns])
    try:
        assert pair.lab("up", "pair", check=False).returncode == 2
        assert pair.lab("down", "pair").returncode == 0
        assert traces(pair.name) == [f"/run/netns/{pair.far_netns}"]
    finally:
        run(["ip", "netns", "del", pair.far_netns])


@pytest.mark.parametrize(
    "args",
    [[], ["up"], ["up", "ring"], ["sideways", "pair"], ["up", "pair", "--mtu", "12"],
     ["up", "pair", "--name", "../x"], ["up", "pair", "more"], ["up", "pair", "--name"],
     ["up", "pair", "--nodes", "2"], ["route", "pair"], ["policy", "pair"], ["dns", "balancer"],
     ["up", "balancer", "--mode", "snat"], ["up", "balancer", "--backends", "65"],
     ["up", "balancer", "--nodes", "0"], ["up", "balancer", "--nics", "3"],
     ["up", "balancer", "--link-mtu", "600"], ["status", "balancer", "--v6"]],
)
def test_wrong_usage(args):
    done = run([LAB, *args], check=False)
    assert done.returncode == 1
    assert "usage:" in done.stderr
