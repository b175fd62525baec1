# SPDX-License-Identifier: GPL-2.0-only
"""`unroutable`: forged sources, by the routes of the near side; apply and status where the kernel cannot be asked."""

import subprocess

import pytest
from scapy.layers.inet6 import ICMPv6ND_NS, IPv6

from labnet import WEIR, second_link, shared_weir
from policylab import OTHER4, OTHER6, SOURCE4, SOURCE6, logged_in, packet, ping, tcp, udp

INSIDE4, INSIDE6 = "10.88.0.9", "fd88::9"  # hosts of near1
BOTH = "near0, near1"


@pytest.fixture(scope="module", name="second")
def link_of_its_own(pair):
    """Another link with a network, near1 and far1."""
    with second_link(pair, [("near", "10.88.0.1/24"), ("near", "fd88::1/64")]) as link:
        pair.far(["ethtool", "-K", "far1", "gro", "on"])
        yield link


@pytest.fixture(scope="module", name="weir")
def instance_on_near0(pair, second):  # pylint: disable=unused-argument
    with shared_weir(pair) as instance:
        instance("attach", "near1")
        yield instance


def forward(pair, value, *families):
    for family in families or ("ipv4", "ipv6"):
        pair.near(["sysctl", "-qw", f"net.{family}.conf.lo.forwarding={value}"])


@pytest.fixture(name="asked")
def kernel_that_answers(pair):
    forward(pair, 1)
    yield
    forward(pair, 0)


def from_near1():
    return [udp(src=INSIDE4), udp(src=INSIDE6)]


def test_apply_refuses_until_lo_forwards(apply, pair):
    forward(pair, 0)
    try:
        text = apply.fails(3, "drop unroutable")
        assert "lab.weir:2" in text and "does not forward: the rule would match no packet (" in text
        command = "sysctl -w net.ipv4.conf.lo.forwarding=1 net.ipv6.conf.lo.forwarding=1"
        assert command in text
        only4 = apply.fails(3, "drop from 0.0.0.0/0 unroutable")
        assert "match no packet of IPv4 (sysctl -w net.ipv4.conf.lo.forwarding=1)" in only4
        forward(pair, 1, "ipv4")
        apply("drop from 0.0.0.0/0 unroutable")
        only6 = apply.fails(3, "drop unroutable")
        assert "match no packet of IPv6 (sysctl -w net.ipv6.conf.lo.forwarding=1)" in only6
        pair.near(command.split())
        apply("drop unroutable")
    finally:
        forward(pair, 0)
    apply("default pass")


def test_quick_rules_are_refused_too(weir, apply, pair):
    forward(pair, 0)
    apply("default pass")
    done = weir("rule", "add", "drop to any port 9 unroutable", check=False)
    assert done.returncode == 3 and "net.ipv4.conf.lo.forwarding=1" in done.stderr


def test_a_policy_keeps_quick_rules_that_match_nothing(weir, apply, pair, asked):  # pylint: disable=unused-argument
    """Of a switch that was on when they were added, and is off now. The apply warns."""
    apply("default pass")
    weir("rule", "add", "drop from 0.0.0.0/0 to any port 9 unroutable")
    try:
        forward(pair, 0)
        text = apply("default pass\npass ttl 9").stderr
        assert "with 'unroutable' matches no packet of IPv4: the loopback device does not forward" in text
        assert "(sysctl -w net.ipv4.conf.lo.forwarding=1)" in text
    finally:
        weir("rule", "delete", "--all")


def test_sources_of_another_interface(pair, second, apply, asked):  # pylint: disable=unused-argument
    apply("drop unroutable", devices=BOTH)
    assert pair.passes(*from_near1()) == [False, False]
    assert second.passes(*from_near1()) == [True, True]
    known = [udp(), udp(src=SOURCE6), tcp(src=OTHER4), ping(OTHER6), udp(src="10.77.0.2"), udp(src="fd77::2")]
    assert pair.passes(*known) == [True] * 6  # the default routes, and the link
    assert second.passes(*known) == [False] * 6


def test_own_and_refused_sources(pair, apply, asked):  # pylint: disable=unused-argument
    apply("drop unroutable")
    own = [udp(src=pair.near4), udp(src=pair.near6), udp(src="127.0.0.1"), udp(src="10.77.0.255")]
    assert pair.passes(*own) == [False] * 4
    for kind in "blackhole", "unreachable", "prohibit":
        for net in "203.0.113.0/24", "2001:db8:113::/48":
            pair.near(["ip", "route", "add", kind, net])
        refused = pair.passes(udp(src=OTHER4), udp(src=OTHER6), udp(), udp(src=SOURCE6))
        assert refused == [False, False, True, True], kind
        for net in "203.0.113.0/24", "2001:db8:113::/48":
            pair.near(["ip", "route", "del", kind, net])
    assert pair.passes(udp(src=OTHER4), udp(src=OTHER6)) == [True, True]


def test_hosts_without_an_address(pair, apply, asked):  # pylint: disable=unused-argument
    """They ask for one; of link-local sources nothing is asked."""
    pair.near(["ip", "route", "del", "default"])
    pair.near(["ip", "-6", "route", "del", "default"])
    try:
        apply("drop unroutable\ndrop type neighbour-solicitation unroutable")
        solicitation = packet(ICMPv6ND_NS(tgt="fd77::9"), "::", dst="ff02::1:ff00:9", hlim=255)
        assert IPv6 in solicitation
        asks = [udp(67, src="0.0.0.0", sport=68, dst="255.255.255.255"), udp(src="0.0.0.0", dst="224.0.0.5"),
                solicitation, udp(src="fe80::9")]
        assert pair.passes(*asks) == [True] * 4
        others = [udp(src="0.0.0.7", dst="255.255.255.255"), udp(src="0.0.0.0", dst="224.0.1.5"), udp(src="::", dst="ff02::1"), udp()]
        assert pair.passes(*others) == [False] * 4
    finally:
        pair.near(["ip", "route", "add", "default", "via", "10.77.0.2"])
        pair.near(["ip", "-6", "route", "add", "default", "via", "fd77::2"])


def test_routes_change_at_once(pair, apply, asked):  # pylint: disable=unused-argument
    apply("drop unroutable", devices=BOTH)
    assert pair.passes(udp(src=OTHER4)) == [True]
    pair.near(["ip", "route", "add", "203.0.113.0/24", "via", "10.88.0.2"])
    assert pair.passes(udp(src=OTHER4), udp()) == [False, True]
    pair.near(["ip", "route", "del", "203.0.113.0/24"])
    assert pair.passes(udp(src=OTHER4)) == [True]


def test_rules_of_routing(pair, apply, asked):  # pylint: disable=unused-argument
    """By destination, which is the source of the answer, and by DSCP."""
    apply("drop unroutable", devices=BOTH)
    pair.near(["ip", "route", "add", "default", "dev", "near1", "table", "77"])
    for rule in (["from", pair.near4, "ipproto", "tcp"], ["dsfield", "0x10"]):
        pair.near(["ip", "rule", "add", *rule, "table", "77"])
    try:
        assert pair.passes(udp(), tcp(), udp(tos=0x10), tcp(dst="10.77.0.99")) == [True, False, False, True]
    finally:
        for rule in (["from", pair.near4, "ipproto", "tcp"], ["dsfield", "0x10"]):
            pair.near(["ip", "rule", "del", *rule, "table", "77"])
        pair.near(["ip", "route", "del", "default", "table", "77"])


def test_frames_of_a_bridge_port(pair, second, weir, apply, asked):  # pylint: disable=unused-argument
    """The route names the bridge. A device that is not known yet is an alarm."""
    apply("drop unroutable", devices=BOTH)
    pair.link("add", "br1", "type", "bridge")
    try:
        pair.link("set", "near1", "master", "br1")
        pair.link("set", "br1", "up", "address", pair.near_mac)
        pair.near(["ip", "address", "add", "10.89.0.1/24", "dev", "br1"])
        inside = [udp(src="10.89.0.9")]
        assert second.passes(*inside) == [False]
        [alert] = [one for one in weir.json("status", status=2)["alerts"] if "unroutable" in one["alarm"]]
        assert "near1" in alert["alarm"] and "weir attach near1" in alert["alarm"]
        weir("attach", "near1")
        assert "unroutable" not in weir("status", check=False).stdout
        assert second.passes(*inside) == [True] and pair.passes(*inside) == [False]
    finally:
        pair.link("del", "br1")
        weir("attach", "near1")


def test_status_warns_while_lo_does_not_forward(weir, apply, pair, asked):  # pylint: disable=unused-argument
    apply("drop unroutable", devices=BOTH)
    assert not weir.json("status")["alerts"]
    forward(pair, 0, "ipv6")
    [alert] = weir.json("status", status=2)["alerts"]
    assert "of IPv6" in alert["alarm"] and "sysctl -w net.ipv6.conf.lo.forwarding=1" in alert["alarm"]
    assert pair.passes(*from_near1()) == [False, True]  # it is not asked
    forward(pair, 0)
    [alert] = weir.json("status", status=2)["alerts"]
    assert "matches no packet (" in alert["alarm"]
    assert pair.passes(*from_near1()) == [True, True]
    forward(pair, 1)
    assert not weir.json("status")["alerts"]


def test_nothing_matches_in_a_vrf(pair, second, weir, apply, asked):  # pylint: disable=unused-argument
    made = subprocess.run(["ip", "-n", pair.near_netns, "link", "add", "red", "type", "vrf", "table", "99"],
                          capture_output=True, text=True, check=False)
    if "Unknown device type" in made.stderr:
        pytest.skip("this kernel has no VRF devices (tests/vm/vrf has them)")
    assert not made.returncode, made.stderr
    try:
        pair.link("set", "red", "up")
        pair.link("set", "near1", "master", "red")
        weir("attach", "near1")
        apply("drop unroutable", devices=BOTH)
        assert second.passes(udp(), *from_near1()) == [True] * 3
        assert pair.passes(*from_near1()) == [False, False]
    finally:
        pair.link("del", "red")
        pair.near(["ip", "address", "replace", "fd88::1/64", "dev", "near1", "nodad"])
        weir("attach", "near1")


def test_explain_asks_for_routes(weir, apply, asked):  # pylint: disable=unused-argument
    apply('"forged" drop unroutable', devices=BOTH)

    def verdicts(*words):
        return [one["verdict"] for one in weir.json("explain", *words)["packets"]]

    forged = ("udp", "from", INSIDE4, "to", "10.77.0.1")
    assert verdicts(*forged, "on", "near0") == ["drop"] and verdicts(*forged, "on", "near1") == ["pass"]
    assert verdicts("udp", "from", SOURCE4, "to", "10.77.0.1", "--unroutable") == ["drop"]
    assert verdicts("udp", "from", SOURCE4, "to", "10.77.0.1", "unroutable") == ["drop"]


def test_expect_says_whether_the_source_has_a_route(apply, asked):  # pylint: disable=unused-argument
    apply(f'"forged" drop unroutable\nexpect drop via "forged" udp from {INSIDE4} to {SOURCE4} unroutable\n'
          f"expect pass udp from {INSIDE4} to {SOURCE4}")
    assert "got" in apply.fails(1, f"drop unroutable\nexpect drop udp from {INSIDE4} to {SOURCE4}")


def test_a_login_that_is_answered_elsewhere(pair, weir, apply, second, asked):  # pylint: disable=unused-argument
    """Its peer has a route by near1, but its packets arrive on near0, which has the address it is logged in to."""
    command = [WEIR, "-n", weir.name, "apply"]
    apply("default pass", devices=BOTH)
    pair.far(["ip", "address", "add", "10.88.0.2/24", "dev", "far1"])  # answers ARP for the next hop
    pair.near(["ip", "route", "add", f"{SOURCE4}/32", "via", "10.88.0.2"])
    try:
        status, printed = logged_in(pair, SOURCE4, [*command, apply.write('"forged" drop on near0 unroutable', BOTH)])
        assert status == 3 and '"forged"' in printed, printed
    finally:
        pair.near(["ip", "route", "del", f"{SOURCE4}/32"])
        pair.far(["ip", "address", "del", "10.88.0.2/24", "dev", "far1"])
    status, printed = logged_in(pair, SOURCE4, [*command, apply.write('"forged" drop on near0 unroutable', BOTH)])
    assert status == 0, printed


def logs_in(pair, weir, apply, near, answered_by):
    """A rule may be on the interface that the answers leave by, and on the other one it would drop the login."""
    for device in "near0", "near1":
        policy = apply.write(f"drop on {device} unroutable", BOTH)
        status, printed = logged_in(pair, SOURCE4, [WEIR, "-n", weir.name, "apply", policy], near=near)
        assert status == (0 if device == answered_by else 3), printed
        apply("default pass", devices=BOTH)


def test_a_login_by_rules_of_routing(pair, weir, apply, second, asked):  # pylint: disable=unused-argument
    """The answers leave by near1, as they are from its address."""
    apply("default pass", devices=BOTH)
    pair.far(["ip", "route", "add", "10.88.0.1", "via", "10.77.0.1"])
    pair.far(["ip", "address", "add", "10.88.0.2/24", "dev", "far1"])  # answers ARP for the next hop
    pair.near(["ip", "route", "add", "default", "via", "10.88.0.2", "table", "77"])
    pair.near(["ip", "rule", "add", "from", "10.88.0.1", "table", "77"])
    try:
        logs_in(pair, weir, apply, "10.88.0.1", answered_by="near1")
    finally:
        pair.near(["ip", "rule", "del", "from", "10.88.0.1", "table", "77"])
        pair.near(["ip", "route", "del", "default", "table", "77"])
        pair.far(["ip", "address", "del", "10.88.0.2/24", "dev", "far1"])
        pair.far(["ip", "route", "del", "10.88.0.1", "via", "10.77.0.1"])


def test_a_login_by_the_address_of_a_tunnel(pair, weir, apply, second, asked):  # pylint: disable=unused-argument
    """Its packets may arrive on any interface, but the answers leave by near0 only."""
    apply("default pass", devices=BOTH)
    pair.near(["ip", "tuntap", "add", "tun0", "mode", "tun"])
    try:
        pair.near(["ip", "address", "add", "10.99.0.1/24", "dev", "tun0"])
        pair.link("set", "tun0", "up")
        pair.far(["ip", "route", "add", "10.99.0.1", "via", "10.77.0.1"])
        logs_in(pair, weir, apply, "10.99.0.1", answered_by="near0")
    finally:
        pair.link("del", "tun0")
