# SPDX-License-Identifier: GPL-2.0-only
"""Packets that keep a host on its link are exempt from blocks and defaults; packets that it would only
forward are not."""

import contextlib
import itertools
import os

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6DestUnreach, ICMPv6MLReport2, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_RS,
    ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPv6, IPv6ExtHdrSegmentRouting,
)
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from labnet import BUILD, Pair, Sniffer, Weir, run, running_lab, shared_weir
from policylab import MARK, Policies, packet, reasons

INNER4, INNER6 = "10.78.0.2", "fd78::2"  # on the other side of near, which routes
LATER4, LATER6 = "10.77.0.9", "fd77::9"
LINK6 = "fe80::77"
VIP4, VIP6 = "10.79.0.1", "fd79::1"
DISCOVERY = [ICMPv6ND_RS(), ICMPv6ND_RA(), ICMPv6ND_NS(tgt=INNER6), ICMPv6ND_NA(tgt=INNER6)]
QUOTE4 = IP(src=INNER4, dst=Pair.far4) / UDP(sport=9, dport=4000)
QUOTE6 = IPv6(src=INNER6, dst=Pair.far6) / UDP(sport=9, dport=4000)


numbers = itertools.count(1)


@contextlib.contextmanager
def routing_lab():
    """near0 and far0 as usual, and a host with 10.78.0.2 and fd78::2 on another link of near."""
    with running_lab() as pair, contextlib.ExitStack() as stack:
        inner = pair.inner = f"t{os.getpid()}-inner{next(numbers)}"
        run(["ip", "netns", "add", inner])
        stack.callback(run, ["ip", "netns", "del", inner])
        pair.link("add", "near1", "type", "veth", "peer", "name", "inner0", "netns", inner)
        for netns, device, last in (pair.near_netns, "near1", 1), (inner, "inner0", 2):
            for address in f"10.78.0.{last}/24", f"fd78::{last}/64":
                options = ["nodad"] if ":" in address else []
                run(["ip", "-n", netns, "addr", "add", address, "dev", device, *options])
            run(["ip", "-n", netns, "link", "set", device, "up"])
        run(["ip", "-n", inner, "link", "set", "inner0", "xdpdrv", "obj", BUILD / "lab" / "pass.bpf.o",
             "sec", "xdp.frags"])  # otherwise veth loses what XDP sends
        pair.near(["sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"])
        for netns, device in (pair.near_netns, "near1"), (inner, "inner0"):
            run([*Pair.enter(netns), "sysctl", "-qw", f"net.ipv6.conf.{device}.accept_dad=0"])
        run(["ip", "-n", pair.near_netns, "route", "del", "default"])  # as before DHCP has configured one
        pair.near(["ping", "-c1", "-W2", INNER4])  # near learns the neighbour inner
        pair.near(["ping", "-6", "-c1", "-W2", INNER6])
        yield pair


@pytest.fixture(scope="module", name="router")
def near_routes_for_inner():
    with routing_lab() as pair:
        yield pair


@pytest.fixture(name="weir")
def on_the_router(router):
    with shared_weir(router) as instance:
        yield instance


def arrive(router, *frames):
    """The number of these packets that inner receives: each is marked by its length."""
    sizes = {}
    with contextlib.closing(Sniffer(router.inner, "inner0")) as sniffer:
        for number, frame in enumerate(frames):
            padded = bytes(frame / Raw(b"t" * (400 + 2 * number - len(frame))))
            sizes[len(padded)] = number
            router.send_from_far(padded)
        got = sniffer.received(lambda data: len(data) in sizes and data[12:14] in (b"\x08\0", b"\x86\xdd"))
    return sorted(sizes[len(data)] for data in got)


def discovery(dst, src=Pair.far6, hops=255):
    return [packet(inner, src, dst=dst, hlim=hops) for inner in DISCOVERY]


def dhcp(dst, src=Pair.far4, **fields):
    return packet(UDP(sport=67, dport=68) / Raw(b"d" * 240), src, dst=dst, **fields)


def errors(dst4, dst6):
    return ([packet(ICMP(type=kind) / QUOTE4, Pair.far4, dst=dst4) for kind in (3, 11, 12)]
            + [packet(error / QUOTE6, Pair.far6, dst=dst6)
               for error in (ICMPv6DestUnreach(), ICMPv6PacketTooBig(), ICMPv6TimeExceeded())])


def test_the_router_routes(router, weir):
    """The precondition of the tests below: without Weir, these packets arrive."""
    frames = [*discovery(INNER6), dhcp(INNER4), *errors(INNER4, INNER6)]
    assert arrive(router, *frames) == list(range(len(frames)))


def test_a_block_stops_discovery_for_others(router, weir):
    weir("block", "--both", "--force", Pair.far6)
    before = reasons(weir).get("block-from", 0)
    assert arrive(router, *discovery(INNER6)) == []
    assert reasons(weir)["block-from"] == before + len(DISCOVERY)


def test_a_block_does_not_cut_the_link(router, weir):
    """To the host itself: its addresses, including a later one, its link, and multicast groups."""
    weir("block", "--both", "--force", "::/0")
    run(["ip", "-n", router.near_netns, "addr", "add", f"{LATER6}/64", "dev", "near0", "nodad"])
    try:
        for dst in Pair.near6, LATER6, LINK6, "ff02::1", "ff02::1:ff00:1":
            assert router.passes(*discovery(dst)) == [True] * len(DISCOVERY), dst
        assert router.passes(*discovery(Pair.near6, hops=254)) == [False] * len(DISCOVERY)
    finally:
        run(["ip", "-n", router.near_netns, "addr", "del", f"{LATER6}/64", "dev", "near0"])
    router.near(["ip", "-6", "neigh", "flush", "dev", "near0"])
    weir("allow", Pair.far6, "--force")
    assert router.ping6(Pair.far6)


def test_default_drop_stops_what_is_for_others(router, weir, apply):
    apply("default drop")
    frames = [*discovery(INNER6), dhcp(INNER4), *errors(INNER4, INNER6),
              packet(ICMPv6MLReport2(), Pair.far6, dst=INNER6, hlim=1)]
    before = reasons(weir)["default-drop"]
    assert arrive(router, *frames) == []
    assert reasons(weir)["default-drop"] >= before + len(frames)


def test_default_drop_keeps_the_host_alive(router, apply):
    """Its own addresses, including one that is added while the policy is active."""
    apply(f"default drop\n{MARK}")
    own = [(Pair.near4, Pair.near6), ("10.78.0.1", "fd78::1"), (LATER4, LATER6)]
    for address in f"{LATER4}/24", f"{LATER6}/64":
        options = ["nodad"] if ":" in address else []
        run(["ip", "-n", router.near_netns, "addr", "add", address, "dev", "near0", *options])
    try:
        for own4, own6 in own:
            frames = [*errors(own4, own6), dhcp(own4), *discovery(own6)]
            assert router.passes(*frames) == [True] * len(frames), own4
    finally:
        for address in f"{LATER4}/24", f"{LATER6}/64":
            run(["ip", "-n", router.near_netns, "addr", "del", address, "dev", "near0"])
    groups = [packet(ICMPv6MLReport2(), LINK6, dst="ff02::16", hlim=1),
              packet(UDP(sport=547, dport=546), LINK6, dst="fe80::1")]
    # To all, to all on the subnet, and to an address that near may get and has no route to yet.
    offers = [dhcp("255.255.255.255"), dhcp("10.77.0.255"), dhcp("192.0.2.77")]
    assert router.passes(*groups, *offers) == [True] * 5


def test_a_host_that_does_not_route_is_asked_for_nothing(pair, tmp_path):
    """A DHCP server sends to the address that its client will have: RFC 2131."""
    weir = Weir(pair)
    try:
        weir("attach", "near0", "--max-entries", "1000")
        Policies(weir, tmp_path)(f"default drop\n{MARK}")
        assert pair.passes(dhcp("10.77.0.200"), dhcp(Pair.far4), *discovery("fd77::200")) == [True] * 6
    finally:
        weir.remove()


def test_what_is_bridged_is_of_the_same_link(router, weir):
    """A frame to another station is not routed here: its discovery is passed, as before."""
    weir("block", "--both", "--force", Pair.far6)
    frames = discovery(INNER6)
    for frame in frames:
        frame[Ether].dst = "02:77:00:00:0b:01"
    assert router.passes(*frames) == [True] * len(frames)


def test_rules_hold_for_discovery_in_transit(router, weir, apply):
    # From an address of its own: the hosts themselves report groups and solicit neighbours.
    src = "fd77::99"
    apply(f'"icmp" drop proto icmp6 from {src}\n"own" count proto icmp6 type neighbor-solicitation from {src}')
    assert arrive(router, *discovery(INNER6, src)) == []
    assert router.passes(*discovery(Pair.near6, src)) == [True] * len(DISCOVERY)
    rows = {row["rule"]: row["packets"] for row in weir.json("stats")["rules"]}
    assert rows == {"icmp": len(DISCOVERY), "own": 1}


def test_errors_for_a_service_are_essential(router, weir, apply):
    """A VIP is not an address of the host; an error that quotes none of its flows is for no backend."""
    backend = "10.78.0.2"
    apply(f"default drop\n{MARK}"
          f"service web {{ vip {VIP4}, {VIP6}; port 80; mode ipip; backend {backend} }}")
    quote4 = IP(src=VIP4, dst=Pair.far4) / TCP(sport=80, dport=4000)
    quote6 = IPv6(src=VIP6, dst=Pair.far6) / TCP(sport=80, dport=4000)
    run(["ip", "-n", router.near_netns, "route", "add", "10.79.0.0/24", "via", INNER4])
    run(["ip", "-n", router.near_netns, "route", "add", "fd79::/64", "via", INNER6])
    before = reasons(weir)
    router.passes(packet(ICMP(type=3, code=4) / quote4, Pair.far4, dst=VIP4),
                  packet(ICMPv6PacketTooBig(mtu=1400) / quote6, Pair.far6, dst=VIP6))
    after = reasons(weir)
    assert after["service"] == 2, {name: n for name, n in after.items() if n != before[name]}
    before = reasons(weir)
    frames = [packet(ICMP(type=3, code=1) / QUOTE4, Pair.far4, dst=VIP4),
              packet(ICMPv6DestUnreach() / QUOTE6, Pair.far6, dst=VIP6), *errors("10.79.0.5", "fd79::5")]
    assert arrive(router, *frames) == []
    assert reasons(weir)["default-drop"] >= before["default-drop"] + len(frames)


EXPLAINED = [
    ("icmp6 from fd77::2 to fd78::2 type neighbor-solicitation", "drop"),
    ("icmp6 from fd77::2 to fd77::1 type neighbor-solicitation", "pass"),
    ("udp from 10.77.0.2 port 67 to 10.78.0.2 port 68", "drop"),
    ("udp from 10.77.0.2 port 67 to 10.77.0.1 port 68", "pass"),
    ("icmp from 10.77.0.2 to 10.78.0.2 type time-exceeded", "drop"),
    ("icmp from 10.77.0.2 to 10.77.0.1 type time-exceeded", "pass"),
]


@pytest.mark.usefixtures("router")
def test_explain_knows_the_routes(weir, apply):
    """An expect line does not consult them: it assumes a host to which all packets are addressed."""
    apply("default drop\n" + "\n".join(f"expect pass via essentials {words}"
                                       for words, _ in EXPLAINED if "icmp6" not in words))
    for words, verdict in EXPLAINED:
        assert weir.json("explain", *words.split())["packets"][0]["verdict"] == verdict, words


def test_a_bridge_may_forward_where_its_port_does_not(weir_on, tmp_path):
    """With settings for each link, as by systemd-networkd."""
    with contextlib.ExitStack() as stack:
        router = stack.enter_context(routing_lab())
        router.link("add", "br0", "address", router.near_mac, "type", "bridge", "forward_delay", "0")
        router.link("set", "near0", "master", "br0")
        router.link("set", "br0", "up")
        for address in "10.77.0.1/24", "fd77::1/64":
            options = ["nodad"] if ":" in address else []
            run(["ip", "-n", router.near_netns, "addr", "del", address, "dev", "near0"])
            run(["ip", "-n", router.near_netns, "addr", "add", address, "dev", "br0", *options])
        router.near(["sysctl", "-qw", "net.ipv4.conf.near0.forwarding=0",
                     "net.ipv6.conf.near0.forwarding=0"])
        weir = weir_on(router)
        weir("attach", "near0", "--max-entries", "1000")
        apply = Policies(weir, tmp_path)
        frames = [*discovery(INNER6), dhcp(INNER4), *errors(INNER4, INNER6)]
        assert arrive(router, *frames) == list(range(len(frames)))
        apply(f"default drop\n{MARK}")
        assert arrive(router, *frames) == []
        assert router.passes(*discovery(Pair.near6), dhcp(Pair.near4)) == [True] * 5


def test_ipv6_is_forwarded_whatever_the_device_says(weir_on, tmp_path):
    """A router that accepts advertisements on a device has forwarding=0 there; the kernel checks the switch
    for all."""
    with contextlib.ExitStack() as stack:
        router = stack.enter_context(routing_lab())
        router.near(["sysctl", "-qw", "net.ipv6.conf.near0.forwarding=0"])
        weir = weir_on(router)
        weir("attach", "near0", "--max-entries", "1000")
        weir("block", "--both", "--force", "fd79::9")
        assert arrive(router, *discovery(INNER6)) == list(range(len(DISCOVERY)))
        assert arrive(router, *discovery(INNER6, src="fd79::9")) == []
        Policies(weir, tmp_path)(f"default drop\n{MARK}")
        assert arrive(router, *discovery(INNER6)) == []
        assert router.passes(*discovery(Pair.near6)) == [True] * len(DISCOVERY)


def test_a_routing_header_leads_through_the_router(router, weir, apply):
    """It is addressed to the router, which forwards it to the next segment."""
    switches = [f"net.ipv6.conf.{name}.seg6_enabled" for name in ("all", "near0")]
    if router.near(["sysctl", "-qw", *(f"{name}=1" for name in switches)], check=False).returncode:
        pytest.skip("this kernel has no segment routing")
    header = IPv6ExtHdrSegmentRouting(addresses=[INNER6, Pair.near6], segleft=1, lastentry=1)
    frames = [packet(header / inner, Pair.far6, dst=Pair.near6, hlim=255)
              for inner in [*DISCOVERY, ICMPv6TimeExceeded() / QUOTE6]]
    try:
        assert arrive(router, *frames) == list(range(len(frames)))
        apply(f"default drop\n{MARK}")
        assert arrive(router, *frames) == []
        weir("allow", Pair.far6, "--force")
        assert arrive(router, *frames) == list(range(len(frames)))
    finally:
        router.near(["sysctl", "-qw", *(f"{name}=0" for name in switches)])
