# SPDX-License-Identifier: GPL-2.0-only
"""Two uplinks of a balancer in nat and fullnat: the answers to a client leave by the uplink on which its packets arrive, to
the router that sends them, whatever the routing table of the balancer has.

	user1 --- edge1 === up1 \\
	                          balancer1 net0 === router === backends
	user2 --- edge2 === up2 /
"""

import contextlib
import json
import subprocess
import time

import pytest
from balancerlab import BIG, BUILD, digest, running_balancer, running_node
from labnet import run

SIDES = (1, 2)
SIZES = {1: 6_000_000, 2: 3_000_000}
RATE, SLOW = 1_500_000, 6_000_000  # bytes a second; bytes of a download or upload that lasts some seconds
SETTINGS = ["ipv6.conf.all.disable_ipv6=0", "ipv6.conf.default.disable_ipv6=0", "ipv6.conf.all.accept_dad=0",
            "ipv6.conf.default.accept_dad=0", "ipv4.conf.all.rp_filter=0", "ipv4.conf.default.rp_filter=0",
            "ipv4.ip_forward=1", "ipv6.conf.all.forwarding=1"]


def ip(lab, host, lines):
    run(["ip", "-n", lab.netns(host), "-batch", "-"], input="\n".join(lines) + "\n")


def add_host(lab, stack, host):
    run(["ip", "netns", "add", lab.netns(host)])
    stack.callback(run, ["ip", "netns", "del", lab.netns(host)])
    lab.on(host, ["sysctl", "-qw", *(f"net.{setting}" for setting in SETTINGS)])


def add_link(lab, net, *ends):
    """ends: (host, device, MAC address, number in both networks)"""
    (host, device, mac, _), (other, far, far_mac, _) = ends
    run(["ip", "link", "add", device, "netns", lab.netns(host), "address", mac, "type", "veth",
         "peer", far, "netns", lab.netns(other), "address", far_mac])
    for host, device, _, number in ends:
        lab.on(host, ["ethtool", "-K", device, "tx", "off", "txvlan", "off", "rxvlan", "off", "gro", "on"])
        ip(lab, host, [f"link set {device} up", f"address add 10.{net}.{number}/24 dev {device}",
                       f"address add fd{net.replace('.', ':')}::{number}/64 dev {device} nodad"])


def add_side(lab, stack, side):
    edge, user = f"edge{side}", f"user{side}"
    add_host(lab, stack, edge)
    add_host(lab, stack, user)
    add_link(lab, f"91.{side}", ("balancer1", f"up{side}", f"02:78:0a:00:00:0{side}", 1),
             (edge, "up0", f"02:78:0b:00:00:0{side}", 2))
    add_link(lab, f"92.{side}", (edge, "in0", f"02:78:0c:00:00:0{side}", 1), (user, "net0", f"02:78:0d:00:00:0{side}", 2))
    lab.attach(edge, "up0", BUILD / "lab" / "pass.bpf.o")
    lab.on(edge, ["sysctl", "-qw", "net.ipv4.conf.up0.arp_notify=1", "net.ipv6.conf.up0.ndisc_notify=1"])
    ip(lab, edge, [f"route add {lab.vip4} via 10.91.{side}.1", f"route add {lab.vip6} via fd91:{side}::1"])
    ip(lab, user, [f"route add default via 10.92.{side}.1", f"route add default via fd92:{side}::1"])


@pytest.fixture(name="lab", scope="module", params=["nat", "fullnat"])
def lab_with_two_uplinks(request):
    """The routing table of the balancer has the uplinks exchanged."""
    with running_balancer(backends=2, mode=request.param) as lab, contextlib.ExitStack() as stack:
        lab.mode = request.param
        for side in SIDES:
            add_side(lab, stack, side)
        for side in SIDES:
            ip(lab, "balancer1", [f"route add 10.92.{side}.0/24 via 10.91.{3 - side}.2",
                                  f"route add fd92:{side}::/64 via fd91:{3 - side}::2"])
            for address in f"10.92.{side}.2", f"fd92:{side}::2":
                assert f"dev up{3 - side}" in lab.on("balancer1", ["ip", "route", "get", address]).stdout
        yield lab


@pytest.fixture(name="node")
def node_with_the_policy(lab, tmp_path):
    text = "interface net0, up1, up2\n"
    for family, vip, prefix in (4, lab.vip4, "10.78.2."), (6, lab.vip6, "fd78:2::"):
        source = "10.78.3.201" if family == 4 else "fd78:3::201"
        mode = f"mode fullnat; source {source}" if lab.mode == "fullnat" else "mode nat; connections 50000"
        text += f"service web{family} {{ vip {vip}; port 80; {mode}; backend {prefix}1; backend {prefix}2 }}\n"
    path = tmp_path / "web.weir"
    path.write_text(text)
    with running_node(lab) as node:
        node("apply", path)
        modes = {one["name"]: one["mode"] for one in node.json("status")["interfaces"]}
        assert modes == {"net0": "native", "up1": "native", "up2": "native"}
        yield node


def url(vip, path):
    return f"http://[{vip}]{path}" if ":" in vip else f"http://{vip}{path}"


class Transfer:
    """curl on the host of a user, which sends a packet after each second without one (keepalive)."""

    def __init__(self, lab, side, output, *argv):
        self.output = output
        argv = ["nsenter", f"--net=/run/netns/{lab.netns(f'user{side}')}", "--", "curl", "-sf", "--max-time", "30",
                "--keepalive-time", "1", "-o", output, *argv]
        self.process = subprocess.Popen(list(map(str, argv)))  # pylint: disable=consider-using-with

    def result(self):
        status = self.process.wait(timeout=40)
        assert status == 0, f"curl: {status}"
        return self.output.read_bytes()


@pytest.fixture(name="begin")
def beginning(lab, tmp_path):
    """begin(SIDE, OPTION of curl...): a transfer, which does not outlive the test."""
    begun = []

    def begin(side, *argv):
        begun.append(Transfer(lab, side, tmp_path / str(len(begun)), *argv))
        return begun[-1]

    yield begin
    for each in begun:
        each.process.kill()
        each.process.wait()


def begin_of_big(size):
    with BIG.open("rb") as file:
        return file.read(size)


def received(lab, side):
    """Bytes that the router of a side has from the balancer."""
    link = json.loads(run(["ip", "-n", lab.netns(f"edge{side}"), "-j", "-s", "link", "show", "up0"]).stdout)
    return link[0]["stats64"]["rx"]["bytes"]


def drops(node):
    return [one for name in ("web4", "web6") for one in node.service(name)["drops"] if one["packets"]]


def test_answers_leave_by_the_uplink_of_their_client(lab, node, begin):
    for vip in lab.vips:
        before = {side: received(lab, side) for side in SIDES}
        running = {side: begin(side, "-r", f"0-{SIZES[side] - 1}", url(vip, "/big")) for side in SIDES}
        for side, each in running.items():
            assert digest(each.result()) == digest(begin_of_big(SIZES[side])), f"user{side} from {vip}"
        for side in SIDES:
            got = received(lab, side) - before[side]
            assert SIZES[side] < got < 1.15 * SIZES[side], f"{got} bytes by up{side}"
    assert node.json("service")["nat_peers"] == 2
    assert not drops(node)


def change_mac(lab, side, mac):
    """The router reports it (gratuitous ARP, neighbour advertisement)."""
    run(["ip", "-n", lab.netns(f"edge{side}"), "link", "set", "up0", "address", mac])


@pytest.fixture(name="change")
def changing_router(lab):
    """change(): edge1 gets another MAC address, until the test ends."""
    yield lambda: change_mac(lab, 1, "02:78:0b:00:00:11")
    change_mac(lab, 1, "02:78:0b:00:00:01")


def test_a_router_with_another_mac_address(lab, node, begin, change, tmp_path):
    """The next packet of a client moves the way back of its connection."""
    part = tmp_path / "part"
    part.write_bytes(begin_of_big(SLOW))
    start = time.monotonic()
    downloads, uploads = [], []
    for vip in lab.vips:
        for side in SIDES:
            downloads.append(begin(side, "-r", f"0-{SLOW - 1}", url(vip, f"/even?rate={RATE}")))
            uploads.append(begin(side, "--limit-rate", RATE, "-H", "Expect:", "-T", part, url(vip, "/upload")))
    time.sleep(1)
    assert node.json("service")["nat_peers"] == 2
    change()
    assert all(each.process.poll() is None for each in [*downloads, *uploads]), "the change is too late"
    whole = digest(part.read_bytes())
    assert {digest(each.result()) for each in downloads} == {whole}
    assert {each.result().split()[2].decode() for each in uploads} == {whole}
    took = time.monotonic() - start
    print(f"\n{lab.mode}: {SLOW:,} bytes at {RATE:,} a second took {took:.1f} s")
    assert took < SLOW / RATE + 8
    # The one of the former address is free when no connection has it any more.
    assert node.json("service")["nat_peers"] in (2, 3)
    assert not drops(node)


@pytest.fixture(name="narrow")
def narrow_uplink(lab):
    """narrow(): up1 gets a smaller MTU than the router and the backends have, until the test ends."""
    def narrow(mtu=1300):
        run(["ip", "-n", lab.netns("balancer1"), "link", "set", "up1", "mtu", str(mtu)])

    yield narrow
    narrow(1500)


def test_an_uplink_whose_mtu_shrinks(lab, node, begin, narrow):
    """The agent sees it; the backends learn what fits, and send that. Last: they remember it."""
    node.run("--no-history")
    running = [begin(1, "-r", f"0-{SLOW - 1}", url(vip, f"/even?rate={RATE}")) for vip in lab.vips]
    time.sleep(1)
    narrow()
    assert all(each.process.poll() is None for each in running), "the change is too late"
    assert {digest(each.result()) for each in running} == {digest(begin_of_big(SLOW))}
    told = {one["reason"]: one["packets"] for one in node.json("stats")["counters"]}
    assert told["service-too-big"]
    assert not drops(node)
