# SPDX-License-Identifier: GPL-2.0-only
"""Where a policy holds: on the interfaces that it names; on all of the instance if it names none."""

import contextlib
import copy
import socket

import pytest
from scapy.layers.inet import ICMP
from scapy.packet import Raw

from labnet import Pair, run, socket_in
from policylab import MARK, OTHER4, SOURCE4, SOURCE6, Policies, packet, tcp, udp

NEAR1, FAR1 = "10.78.0.1", "10.78.0.2"
VIP = "192.0.2.10"
STRICT = f"""default drop
{MARK}
fragments drop
"nine"   always drop proto udp to port 9
"ten"    drop proto udp to port 10
service www {{ vip {VIP}; port 80; mode dr; backend 10.77.0.2 }}"""


@pytest.fixture(scope="module", name="second")
def second_link(pair):
    """The same two hosts over another link with addresses of its own: the way of the operator's login."""
    near1, far1 = ["near1", "netns", pair.near_netns], ["far1", "netns", pair.far_netns]
    run(["ip", "link", "add", *near1, "address", pair.near_mac, "type", "veth", "peer", *far1])
    for host, device, address in (("near", "near1", NEAR1), ("far", "far1", FAR1)):
        netns = f"{pair.name}-{host}"
        run(["ip", "-n", netns, "addr", "add", f"{address}/24", "dev", device])
        run(["ip", "-n", netns, "link", "set", device, "up"])
    link = copy.copy(pair)
    link.near_device, link.far_device = "near1", "far1"
    yield link
    pair.link("del", "near1")


@pytest.fixture(name="apply")
def policies(weir, tmp_path):
    return Policies(weir, tmp_path)


@contextlib.contextmanager
def connection(pair):
    """A TCP connection over near1: works() says whether bytes come through, both ways."""
    server = socket_in(pair.near_netns, socket.AF_INET, socket.SOCK_STREAM)
    client = socket_in(pair.far_netns, socket.AF_INET, socket.SOCK_STREAM)
    with server, client:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((NEAR1, 2222))
        server.listen()
        client.connect((NEAR1, 2222))
        accepted, _ = server.accept()

        def works():
            for end in (client, accepted):
                end.settimeout(0.7)
            try:
                client.send(b"?")
                accepted.send(accepted.recv(1))
                return client.recv(1) == b"?"
            except TimeoutError:
                return False

        with accepted:
            yield works


def later(**fields):
    return packet(Raw(b"f" * 16), frag=1, proto=17, **fields)


def passed_by_default(stats):
    return sum(row["packets"] for row in stats["counters"] if row["reason"] == "default")


# On an interface that the policy does not name.


def test_other_interfaces_keep_their_connections(pair, second, weir, apply):
    apply(STRICT)
    with connection(pair) as works:
        assert works()
        weir("attach", "near1")
        assert works()
        weir("detach", "near1")
        weir("block", "-i", "near1", OTHER4)
        assert works()
        assert second.free(OTHER4, SOURCE4) == [False, True]
        weir("detach", "near1")
        weir("attach", "near1")
        assert works()
        weir("detach")  # all of it, and back from the record
        weir("attach", "near1", "near0")
        assert works()
    assert second.free(OTHER4, SOURCE4) == [False, True]
    assert pair.free(SOURCE4, SOURCE6) == [False, False]


def test_no_part_of_a_policy_holds_there(pair, second, weir, apply):
    apply(STRICT)
    weir("attach", "near1")
    frames = [udp(9), udp(10), udp(11), udp(9, SOURCE6), later(), tcp(80, dst=VIP),
              packet(ICMP(), dst=VIP)]
    assert pair.passes(*frames) == [False] * len(frames)
    before = weir.json("stats")
    assert second.passes(*frames) == [True] * len(frames)
    after = weir.json("stats")
    assert after["rules"] == before["rules"] and after["backends"] == before["backends"]
    assert passed_by_default(after) >= passed_by_default(before) + len(frames)


def test_entries_and_the_check_for_malformed_packets_hold_there(second, weir, apply):
    apply(f"{STRICT}\n\"own\" always pass from 203.0.113.0/24")
    weir("attach", "near1")
    weir("block", "203.0.113.0/24", "2001:db8:100::/48")
    weir("allow", "203.0.113.77")
    assert second.free(OTHER4, "203.0.113.77", SOURCE6, SOURCE4) == [False, True, False, True]
    broken = bytes(udp(10))[:30]
    assert second.passes(broken) == [False]
    apply(f"malformed pass\n{STRICT}")  # of the instance, not of its interfaces
    assert second.passes(broken) == [True]


def test_a_policy_without_names_holds_everywhere(pair, second, weir, apply):
    weir("attach", "near0", "near1")
    apply.path.write_text("default drop\npass ethertype 0x88b5\npass proto udp to port 10\n")
    weir("apply", apply.path)
    assert pair.passes(udp(9), udp(10)) == second.passes(udp(9), udp(10)) == [False, True]


# Every command says so.


def policy_on(weir):
    return {one["name"]: one["policy"] for one in weir.json("status")["interfaces"]}


def test_attach_and_status_say_where_it_holds(second, weir, apply):
    said = weir("attach", "near0").stdout
    assert "policy" not in said and "policy  " not in weir("status").stdout
    apply(STRICT)
    assert "; the policy does not name it: only entries hold on it" in weir("attach", "near1").stdout
    assert "; the policy holds on it" in weir("attach", "near0").stdout
    assert "policy    holds on near0; only entries hold on near1\n" in weir("status").stdout
    assert policy_on(weir) == {"near0": True, "near1": False}
    weir("detach", "near1")
    said = weir.json("block", "-i", "near1", OTHER4)["attached"]
    assert [(one["name"], one["policy"]) for one in said] == [("near1", False)]
    apply(STRICT, devices="near*")
    assert "policy    holds on near0 near1\n" in weir("status").stdout
    apply.path.write_text("drop from 192.0.2.77\n")
    weir("apply", apply.path)
    assert "policy    holds on all interfaces\n" in weir("status").stdout
    assert policy_on(weir) == {"near0": True, "near1": True}


def test_apply_says_where_it_does_not_hold(second, weir, apply):
    weir("attach", "near0", "near1")
    done = apply(STRICT)
    assert "; only entries hold on near1\n" in done.stdout
    assert weir.json("apply", apply.path)["only_entries_on"] == ["near1"]
    assert "only entries" not in apply(STRICT, devices="near0, near1").stdout


def test_explain_on_an_interface(second, weir, apply):
    apply(STRICT)
    weir("attach", "near1")
    udp_nine = f"udp from {SOURCE4} to 10.77.0.1 port 9"
    assert 'dropped: rule "nine"' in weir("explain", *f"{udp_nine} on near0".split()).stdout
    said = weir("explain", *f"{udp_nine} on near1".split()).stdout
    assert "passed: the policy does not name near1: only entries hold on it" in said
    document = weir.json("explain", *f"{udp_nine} on near1".split())["packets"][0]
    assert (document["verdict"], document["by"], document["policy"]) == ("pass", "default", False)
    weir("block", SOURCE4)
    said = weir("explain", *f"{udp_nine} on near1".split()).stdout
    assert f"dropped: overlay block {SOURCE4} from" in said
    frame = bytes(udp(9, OTHER4)).hex()
    assert "only entries hold" in weir("explain", "--hex", frame, "--on", "near1").stdout
    assert "near9" in weir.fails(1, "explain", *f"{udp_nine} on near9".split())
    said = weir("explain", OTHER4).stdout
    assert "is dropped: default drop" in said
    assert "policy:   holds on near0; only entries hold on near1" in said
    document = weir.json("explain", OTHER4)
    assert (document["holds_on"], document["only_entries_on"]) == (["near0"], ["near1"])


def test_explain_on_what_a_pattern_stands_for(second, weir, apply):
    apply("default pass on near*\ndefault drop", devices="near*, other optional")
    words = f"udp from {SOURCE4} to 10.77.0.1 port 9 on near1".split()
    said = weir("explain", *words).stdout
    assert "is passed: default pass, " in said and "lab.weir:2" in said
