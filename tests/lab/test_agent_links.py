# SPDX-License-Identifier: GPL-2.0-only
"""The agent follows the network: MAC addresses, routes, MTUs, links; devices that come back are attached again."""

import contextlib
import json
import socket
import time

import pytest
from balancerlab import apply_web, crowd_of, failed, running_balancer, running_node
from policylab import Policies
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from labnet import run, socket_in, until

ONE, TWO = "10.78.2.1", "10.78.2.2"
NEW_MAC = "02:78:00:00:99:01"


def part(weir, name):
    return next(one for one in weir.json("status")["agent"]["parts"] if one["name"] == name)


# Devices


@contextlib.contextmanager
def extra_device(pair, name="extra0"):
    def make():
        pair.link("add", name, "type", "veth", "peer", "name", f"{name}p")
        pair.link("set", name, "up")

    make()
    try:
        yield make
    finally:
        run(["ip", "-n", pair.near_netns, "link", "del", name], check=False)


def alarms(weir):
    return json.loads(weir("-j", "status", check=False).stdout)["alarms"]


def test_a_device_comes_back(on):
    with extra_device(on.pair) as make:
        on("attach", "extra0")
        agent = on.run()
        for _ in range(3):
            on.pair.link("del", "extra0")
            make()
            until(lambda: alarms(on) == [])
            assert on.pair.xdp_names()["extra0"]
        assert agent.said().count("attached to extra0 again, native mode") == 3


def test_a_device_comes_back_while_no_agent_runs(on):
    with extra_device(on.pair) as make:
        on("attach", "extra0", "--mode", "generic")
        on.pair.link("del", "extra0")
        make()
        agent = on.run()
        until(lambda: alarms(on) == [])
        assert "attached to extra0 again, generic mode" in agent.said()


def test_a_pattern_of_the_policy_takes_new_devices(weir, tmp_path):
    apply = Policies(weir, tmp_path)
    apply("drop from 192.0.2.1", devices="near0, extra*")
    agent = weir.run()
    with extra_device(weir.pair):
        until(lambda: weir.pair.xdp_names()["extra0"])
        until(lambda: "attached to extra0, which the policy names, native mode" in agent.said())
        with extra_device(weir.pair, "other0"):
            time.sleep(0.5)
            assert weir.pair.xdp_names()["other0"] is None
            weir.pair.link("set", "other0", "name", "extra9")
            until(lambda: weir.pair.xdp_names()["extra9"])
            weir.pair.link("set", "extra9", "name", "other0")
        weir("detach", "extra0")  # holds, whatever happens to the device
        weir.pair.link("set", "extra0", "down")
        weir.pair.link("set", "extra0", "up")
        time.sleep(0.5)
        assert weir.pair.xdp_names()["extra0"] is None


def test_a_program_that_was_removed_stays_away(on):
    on.run()
    on.cut()
    time.sleep(1)
    assert not on.pair.xdp_attached()
    assert "does not run Weir" in on.json("status", status=2)["alarms"][0]


def test_own_mac_address(on):
    """Rejects and services accept only frames to this host: the datapath learns a new address."""
    with extra_device(on.pair):
        on("attach", "extra0")
        on.run()
        time.sleep(0.5)
        on.pair.link("set", "extra0", "address", NEW_MAC)
        until(lambda: alarms(on) == [])
        assert part(on, "links")["changes"] == 1


def test_lost_messages_lead_to_a_look(on):
    """More links at once than the socket of the agent has room for, while the agent is stopped."""
    with extra_device(on.pair) as make:
        on("attach", "extra0")
        agent = on.run()
        time.sleep(0.5)
        agent.send(19)  # SIGSTOP
        on.pair.link("del", "extra0")
        script = "".join(f"link set lo mtu {65000 + n % 500}\n" for n in range(4000))
        run(["ip", "-n", on.pair.near_netns, "-batch", "-"], input=script)
        make()
        agent.send(18)  # SIGCONT
        until(lambda: alarms(on) == [])
        assert part(on, "links")["overruns"] > 0


# Services


@pytest.fixture(name="node")
def served_node(node, tmp_path):
    apply_web(node, tmp_path, [1, 2, 3], "idle 4s", "pins 65536")
    return node


def mac_of(lab, host):
    return json.loads(run(["ip", "-n", lab.netns(host), "-j", "link", "show", "net0"]).stdout)[0]["address"]


@contextlib.contextmanager
def another_mac(lab, host, notify):
    """Changes the MAC address of a backend, with or without telling the link; and back again."""
    device = ["ip", "-n", lab.netns(host), "link", "set", "net0", "address"]
    old = mac_of(lab, host)
    lab.on(host, ["sysctl", "-qw", f"net.ipv4.conf.net0.arp_notify={int(notify)}"])
    run([*device, NEW_MAC])
    try:
        yield
    finally:
        lab.on(host, ["sysctl", "-qw", "net.ipv4.conf.net0.arp_notify=1"])
        run([*device, old])
        run(["ip", "-n", lab.netns("balancer1"), "neigh", "flush", "all"])


def next_hop(node, address):
    return node.backend(address)["next_hop"]


def test_mac_of_a_backend_under_load(balancer, node):
    agent = node.run()
    with crowd_of(balancer, 60, 6 * 6000, 6000) as crowd:
        with another_mac(balancer, "backend1", notify=True):
            until(lambda: NEW_MAC in next_hop(node, ONE))
            results = crowd.results()
    assert not failed(results), failed(results)
    assert f"next hop has changed: {ONE}\n" in agent.said()
    until(lambda: NEW_MAC not in next_hop(node, ONE))


def test_mac_of_a_backend_that_does_not_tell(balancer, node):
    """XDP keeps no neighbour alive, so the kernel has to be reminded to ask."""
    node.run()
    with another_mac(balancer, "backend1", notify=False):
        run(["ip", "-n", balancer.netns("balancer1"), "neigh", "change", ONE, "dev", "net0", "nud", "stale"])
        until(lambda: NEW_MAC in next_hop(node, ONE), 40)


def test_a_neighbour_that_fails_keeps_its_address_and_is_told(balancer, node):
    agent = node.run()
    time.sleep(1)
    before = next_hop(node, TWO)
    balancer.on("backend2", ["ip", "link", "set", "net0", "down"])
    try:
        run(["ip", "-n", balancer.netns("balancer1"), "neigh", "flush", "to", TWO])
        until(lambda: "weir: warning: service 'web': the next hop stays, but" in agent.said(), 20)
        assert next_hop(node, TWO) == before
    finally:
        balancer.on("backend2", ["ip", "link", "set", "net0", "up"])
        balancer.lab("route", "reset", check=False)
    until(lambda: "weir: notice: no longer: service 'web': the next hop stays" in agent.said(), 40)


def test_mtu_of_the_route(balancer, node):
    node.run()
    netns = ["ip", "-n", balancer.netns("balancer1")]
    run([*netns, "route", "add", f"{ONE}/32", "dev", "net0", "mtu", "1400"])
    try:
        until(lambda: "mtu 1400" in next_hop(node, ONE))
    finally:
        run([*netns, "route", "del", f"{ONE}/32"])
    until(lambda: "mtu 1400" not in next_hop(node, ONE))


def test_link_down_and_up(balancer, node):
    """The routes of the balancer are gone with its link, and come back with it."""
    agent = node.run()
    device = ["ip", "-n", balancer.netns("balancer1"), "link", "set", "net0"]
    mtu = next_hop(node, ONE)
    run([*device, "down"])
    until(lambda: "warning: service 'web':" in agent.said())
    run([*device, "up"])
    until(lambda: balancer.answers(balancer.vip4), 20)
    until(lambda: next_hop(node, ONE) == mtu, 20)
    assert part(node, "links")["problems"] == []


def test_another_policy_is_followed(balancer, node, tmp_path):
    """Its backends were not known when the agent began."""
    node.run()
    apply_web(node, tmp_path, [2], "idle 4s", "pins 65536")
    apply_web(node, tmp_path, [1, 2], "idle 4s", "pins 65536")
    time.sleep(0.5)
    with another_mac(balancer, "backend1", notify=True):
        until(lambda: NEW_MAC in next_hop(node, ONE))


@pytest.fixture(scope="module", name="balancer6")
def shared_lab6():
    with running_balancer(v6=True) as lab:
        yield lab


def test_path_mtu_that_the_kernel_has_learned(balancer, node):
    check_learned(balancer, node, ONE)


def test_path_mtu_of_ipv6_that_the_kernel_has_learned(balancer6, tmp_path):
    with running_node(balancer6) as node:
        apply_web(node, tmp_path, [1, 2, 3], "idle 4s", "pins 65536")
        check_learned(balancer6, node, "fd78:2::1")


def check_learned(balancer, node, address):
    """The command and the agent use the MTU that a router has reported to a socket of this host."""
    assert "mtu 1400" not in next_hop(node, address)
    learn_path_mtu(balancer, address, 1400)
    assert "1 next hop changed" in node("service", "--refresh").stdout
    assert "mtu 1400" in next_hop(node, address)
    learn_path_mtu(balancer, address, 1380)
    node.run()
    until(lambda: "mtu 1380" in next_hop(node, address))


def notice_of(router, own, address, port, mtu):
    """What that router says of a packet of ours that is too big."""
    udp = UDP(sport=port, dport=9999, len=1440)
    if ":" in address:
        quoted = IPv6(src=own, dst=address, plen=1440, nh=17) / udp
        return IPv6(src=router, dst=own) / ICMPv6PacketTooBig(mtu=mtu) / Raw(bytes(quoted) + bytes(1000))
    quoted = IP(src=own, dst=address, flags="DF", len=1460) / udp
    return IP(src=router, dst=own) / ICMP(type=3, code=4, nexthopmtu=mtu) / Raw(bytes(quoted))


def learn_path_mtu(balancer, address, mtu):
    family, router = (socket.AF_INET6, "fd78:2::254") if ":" in address else (socket.AF_INET, "10.78.2.254")
    netns = balancer.netns("balancer1")
    with contextlib.closing(socket_in(netns, family, socket.SOCK_DGRAM)) as sock:
        sock.connect((address, 9999))
        own, port = sock.getsockname()[:2]
        frame = Ether(dst=mac_of(balancer, "balancer1"), src="02:78:00:00:00:99")
        balancer.send("backend3", frame / notice_of(router, own, address, port, mtu))
        until(lambda: f"mtu {mtu}" in run(["ip", "-n", netns, "route", "get", address]).stdout)
