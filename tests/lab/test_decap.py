# SPDX-License-Identifier: GPL-2.0-only
"""weir decap: a backend without tunnel devices answers packets from tunnels from its own address: ping and
TCP."""
import contextlib
import socket

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from labnet import numbers, run, socket_in

VIP4, VIP6 = "203.0.113.80", "fd77:80::1"
PORT = 8080
FROM = ("--from", "10.77.0.2,fd77::2")  # far


@pytest.fixture(name="backend")
def backend_with_vips(pair):
    """near with VIPs on lo and a server that listens on them. Everything of decap is removed afterwards."""
    for vip in f"{VIP4}/32", f"{VIP6}/128":
        run(["ip", "-n", pair.near_netns, "address", "add", vip, "dev", "lo"])
    for far in pair.far4, pair.far6:  # near knows the neighbour: the tests wait for answers for a moment only
        pair.near(["ping", "-c1", "-W1", far])
    with contextlib.closing(socket_in(pair.near_netns, socket.AF_INET6, socket.SOCK_STREAM)) as server:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("::", PORT))
        server.listen()
        server.settimeout(2)
        yield server
    for vip in f"{VIP4}/32", f"{VIP6}/128":
        run(["ip", "-n", pair.near_netns, "address", "del", vip, "dev", "lo"])
    for mode in "xdpdrv", "xdpgeneric":
        run(["ip", "-n", pair.near_netns, "link", "set", "dev", pair.near_device, mode, "off"],
            check=False)


def encap(pair, packet, outer, way, src=None):
    proto = 41 if packet.version == 6 else 4
    head = (IP(src=src or pair.far4, dst=pair.near4, proto=proto if way == "ipip" else 17) if outer == 4 else
            IPv6(src=src or pair.far6, dst=pair.near6, nh=proto if way == "ipip" else 17))
    if way == "gue":
        head = head / UDP(sport=41000, dport=6080)
    return pair.ether() / head / Raw(bytes(packet))


def ping(pair, family, number, dst=None):
    if family == 4:
        return IP(src=pair.far4, dst=dst or VIP4) / ICMP(id=number & 0xffff, seq=1) / Raw(b"weir decap")
    return IPv6(src=pair.far6, dst=dst or VIP6) / ICMPv6EchoRequest(id=number & 0xffff, seq=1)


def answers(pair, frame, wanted):
    """Frames from the VIP to the client for which wanted(scapy frame) is true."""
    with pair.sniff_far() as sniffer:
        pair.send_from_far(frame)
        return sniffer.received(lambda data: wanted(Ether(data)), wait=0.2)


def is_pong(family, number, src=None):
    def wanted(frame):
        if family == 4:
            return (ICMP in frame and frame[ICMP].type == 0 and frame[IP].src == (src or VIP4)
                    and frame[ICMP].id == number & 0xffff)
        return (ICMPv6EchoReply in frame and frame[IPv6].src == (src or VIP6)
                and frame[ICMPv6EchoReply].id == number & 0xffff)
    return wanted


def pings(pair, outer, family, way="ipip", src=None, dst=None):
    """True if the VIP, or dst, answers a ping in a tunnel from far, or src."""
    number = 1000 + next(numbers)
    frame = encap(pair, ping(pair, family, number, dst), outer, way, src)
    return bool(answers(pair, frame, is_pong(family, number, dst)))


def counted(weir):
    """{reason: packets} of near0, without zeros."""
    return {row["reason"]: row["packets"]
            for row in weir.json("decap")["interfaces"][0]["counters"] if row["packets"]}


@pytest.mark.parametrize("mode", ["native", "generic"])
def test_every_tunnel_is_answered(pair, weir, backend, mode):
    assert backend and not pings(pair, 4, 4)  # no tunnel device and no answer
    weir("decap", "near0", *FROM, "--mode", mode)
    for way in "ipip", "gue":
        for outer in 4, 6:
            for family in 4, 6:
                assert pings(pair, outer, family, way), f"{family} in {outer} by {way}"
    assert counted(weir) == {"4in4": 1, "6in4": 1, "4in6": 1, "6in6": 1, "gue": 4}
    weir("decap", "near0", "--off")
    assert not pings(pair, 4, 4) and not pair.xdp_attached()


@pytest.fixture(name="client")
def client_without_a_stack(pair):
    """{family: address} of a host on far's side whose kernel sends no resets: only a MAC address exists."""
    addresses = {4: "10.77.0.50", 6: "fd77::50"}
    neighbours = [["ip", "-n", pair.near_netns, "neigh", verb, address, "lladdr", pair.far_mac, "dev",
                   pair.near_device] for verb in ("replace", "del") for address in addresses.values()]
    for command in neighbours[:2]:
        run(command)
    yield addresses
    for command in neighbours[2:]:
        run(command)


@pytest.mark.parametrize("outer, family", [(4, 4), (6, 4), (4, 6), (6, 6)])
def test_tcp_in_a_tunnel(pair, weir, backend, client, outer, family):
    """A handshake made of raw packets, each in a tunnel. The answers arrive without a tunnel."""
    weir("decap", "near0", *FROM)
    head = IP(src=client[4], dst=VIP4) if family == 4 else IPv6(src=client[6], dst=VIP6)
    port = 20000 + next(numbers)
    syn = TCP(sport=port, dport=PORT, flags="S", seq=100)
    got = answers(pair, encap(pair, head / syn, outer, "ipip"),
                  lambda frame: TCP in frame and frame[TCP].dport == port)
    assert got, "no answer"
    answer = Ether(got[0])[TCP]
    assert answer.flags == "SA" and answer.ack == 101
    hello = TCP(sport=port, dport=PORT, flags="PA", seq=101, ack=answer.seq + 1) / Raw(b"hello")
    pair.send_from_far(encap(pair, head / hello, outer, "ipip"))
    connection, peer = backend.accept()
    with connection:
        connection.settimeout(2)
        assert connection.recv(100) == b"hello"
        assert peer[1] == port
        assert connection.getsockname()[0].endswith(VIP4 if family == 4 else VIP6)


def test_what_is_no_tunnel_passes(pair, weir, backend):
    assert backend
    weir("decap", "near0", *FROM)
    assert pair.ping4(pair.far4) and pair.ping6(pair.far6)
    frame = pair.udp(pair.far4)
    other = encap(pair, ping(pair, 4, 7), 4, "ipip")
    other[IP].dst = "10.77.0.99"
    assert pair.passes(frame, other) == [True, True]


def test_again_takes_new_addresses_and_port(pair, weir, backend):
    assert backend
    weir("decap", "near0", *FROM, "--port", "6081")
    assert not pings(pair, 4, 4, "gue")
    before = weir.json("decap")["interfaces"][0]
    assert before["port"] == 6081
    run(["ip", "-n", pair.near_netns, "address", "add", "10.77.9.1/32", "dev", "near0"])
    try:
        shown = weir.json("decap")["interfaces"][0]
        assert shown["addresses_new"] == ["10.77.9.1"] and shown["addresses_gone"] == []
        done = weir("decap")
        assert "new address: 10.77.9.1" in done.stdout and "weir decap near0" in done.stderr
        found = weir("doctor", "near0", check=False)
        assert found.returncode == 2 and "addresses added since weir decap ran: 10.77.9.1: weir decap near0" in found.stdout
        again = weir.json("decap", "near0")
        assert again["changed"] and again["addresses"] == before["addresses"] + 1
        assert not weir.json("decap", "near0")["changed"]
        assert again["port"] == 6081 and again["from"] == before["from"] == ["10.77.0.2", "fd77::2"]
        assert weir.json("decap")["interfaces"][0]["addresses_new"] == [] and not weir("decap").stderr
        assert "was port 6081" in weir("decap", "near0", "--port", "6080").stdout
        assert pings(pair, 4, 4, "gue")
        frame = encap(pair, ping(pair, 4, 4711), 4, "ipip")
        frame[IP].dst = "10.77.9.1"
        assert answers(pair, frame, is_pong(4, 4711))
    finally:
        run(["ip", "-n", pair.near_netns, "address", "del", "10.77.9.1/32", "dev", "near0"])
    assert "removed address: 10.77.9.1" in weir("decap").stdout
    assert "addresses that were removed: 10.77.9.1" in weir("doctor", "near0").stdout
    weir("decap", "near0")
    assert not answers(pair, frame, is_pong(4, 4711))
    counters = weir.json("decap")["interfaces"][0]["counters"]
    assert next(row for row in counters if row["reason"] == "not-here")["packets"] == 1


def test_generic_is_not_native(pair, weir, backend):
    assert backend
    weir("decap", "near0", *FROM, "--mode", "generic")
    assert "already decapsulates in generic mode" in weir.fails(3, "decap", "near0", "--mode", "native")
    assert "weir decap near0 --off" in weir.fails(3, "decap", "near0", "--mode", "native")
    assert pings(pair, 4, 4)


def test_why_it_is_slower_and_alone(pair, weir, backend):
    """A bridge has no native mode. Both reasons are printed, as for weir attach."""
    assert backend
    pair.link("add", "br0", "type", "bridge")
    assert "cannot attach to 'br0' in native mode: " in weir.fails(2, "decap", "br0", *FROM, "--mode", "native")
    said = weir("decap", "br0", *FROM).stderr
    assert "generic mode, slower: cannot attach to 'br0' in native mode: " in said
    assert "before they are unwrapped: ethtool -K br0 gro off" in said
    shown = weir.json("decap")["interfaces"][0]
    assert shown["shared"] is ("not shared with other XDP programs: " not in said)
    weir("decap", "br0", "--off")
    assert pair.xdp_names()["br0"] is None
    pair.link("del", "br0")


def test_off_without_an_interface_is_for_all(pair, weir, backend):
    """Of this namespace; programs of others stay."""
    assert backend
    for name in "second", "third":
        pair.link("add", name, "type", "bridge")
    weir("decap", "near0", *FROM)
    weir("decap", "second", *FROM)
    pair.attach_foreign("xdpgeneric", "third")
    foreign = pair.xdp_names()["third"]
    assert weir("decap", "--off").stdout == "near0 no longer decapsulates\nsecond no longer decapsulates\n"
    assert {name: pair.xdp_names()[name] for name in ("near0", "second", "third")} == {
        "near0": None, "second": None, "third": foreign}
    weir("decap", "second", *FROM)
    assert weir.json("decap", "--off")["detached"] == ["second"]
    assert weir.json("decap")["interfaces"] == []
    for name in "second", "third":
        pair.link("del", name)


def test_others_are_left_alone(pair, weir, backend):
    """A foreign program and Weir's own filter are neither replaced nor removed."""
    assert backend
    pair.attach_foreign()
    name = pair.xdp_names()["near0"]
    line = weir.fails(3, "decap", "near0", *FROM)
    assert f"'{name}'" in line and "ip link set dev near0 xdp off" in line
    assert "has no decapsulating program" in weir("decap", "near0", "--off").stderr
    assert pair.xdp_names()["near0"] == name
    pair.detach_foreign()
    weir("attach", "near0")
    if pair.xdp_names()["near0"] == "weir_root":  # not in a dispatcher
        assert "'weir_root'" in weir.fails(3, "decap", "near0", *FROM)
    weir("decap", "near0", "--off")
    weir("block", "192.0.2.1")
    assert pair.free("192.0.2.1") == [False]
    weir("detach")
    weir("decap", "near0", *FROM)
    assert "weir decap near0 --off" in weir.fails(3, "attach", "near0")
    assert pair.xdp_names()["near0"] == "weir_decap"
    assert weir("detach").returncode == 0
    assert pair.xdp_names()["near0"] == "weir_decap"


def test_words(pair, weir, backend):
    assert backend
    assert "no interface decapsulates" in weir("decap").stdout
    assert weir.json("decap")["interfaces"] == []
    assert "--port '0'" in weir.fails(1, "decap", "near0", "--port", "0")
    assert "--port '65536'" in weir.fails(1, "decap", "near0", "--port", "65536")
    assert "mode 'fast'" in weir.fails(1, "decap", "near0", "--mode", "fast")
    assert "did you mean 'near0'" in weir.fails(1, "decap", "naer0")
    assert "--from without an interface" in weir.fails(1, "decap", *FROM)
    assert "--mode without an interface" in weir.fails(1, "decap", "--mode", "native", "--off")
    assert "--off cannot be combined with --forward" in weir.fails(1, "decap", "near0", "--off", "--forward")
    assert weir("decap", "--off").stdout == "no interface decapsulates\n"
    assert weir.json("decap", "--off")["detached"] == []
    assert "'lo' is not an Ethernet device" in weir.fails(3, "decap", "lo")
    for wrong, says in (("", "missing"), ("10.77.0.2,", "missing"), ("10.77.0.2/24", "host bits"),
                        ("any,10.77.0", "'10.77.0'"), ("far.lab", "'far.lab'")):
        assert says in weir.fails(1, "decap", "near0", "--from", wrong), wrong
    line = weir.fails(1, "decap", "near0")
    assert "missing --from" in line and "--from any" in line
    assert not pair.xdp_attached()
    done = weir("decap", "near0", *FROM)
    assert "near0 decapsulates IPIP and GUE (port 6080) from 10.77.0.2, fd77::2 to " in done.stdout
    assert "was already attached" in weir("decap", "near0").stdout
    assert pings(pair, 4, 4)
    text = weir("decap").stdout
    assert "near0, native mode" in text and "4in4" in text and "6in6" not in text


STRANGER4, STRANGER6 = "10.77.0.66", "fd77::66"


def test_tunnels_of_strangers_are_not_taken(pair, weir, backend):
    assert backend
    weir("decap", "near0", *FROM)
    for way in "ipip", "gue":
        for family in 4, 6:
            assert not pings(pair, 4, family, way, STRANGER4) and not pings(pair, 6, family, way, STRANGER6)
    assert counted(weir) == {"foreign": 8}
    assert pings(pair, 4, 4) and pings(pair, 6, 6, "gue")
    weir("decap", "near0", "--from", "10.77.0.64/30", "--from", "fd77::2")
    assert pings(pair, 4, 4, src=STRANGER4) and pings(pair, 6, 4)
    assert not pings(pair, 4, 4) and not pings(pair, 6, 4, src=STRANGER6)
    weir("decap", "near0", "--port", "6080")  # they are kept
    assert not pings(pair, 4, 4) and pings(pair, 4, 4, src=STRANGER4)
    assert "from any source" in weir("decap", "near0", "--from", "any").stdout
    for source in STRANGER4, pair.far4, "192.0.2.200":
        assert pings(pair, 4, 4, src=source), source
    assert pings(pair, 6, 6, src=STRANGER6)


def test_what_a_tunnel_brings_is_for_this_host(pair, weir, backend):
    """Packets of other hosts, and packets from addresses that must not arrive from outside."""
    assert backend
    weir("decap", "near0", *FROM)
    elsewhere = ["10.77.0.60", "127.0.0.1", "10.77.0.255", "224.0.0.1", "fd77::60", "::1", "ff02::1"]
    for target in elsewhere:
        assert not pings(pair, 4, 6 if ":" in target else 4, dst=target)
    assert counted(weir) == {"inner-elsewhere": len(elsewhere)}
    lo = ["dev", "lo"]
    run(["ip", "-n", pair.near_netns, "route", "add", "local", "203.0.113.128/25", *lo])
    try:
        assert not pings(pair, 4, 4, dst="203.0.113.200")
        assert weir.json("decap")["interfaces"][0]["addresses_new"] == ["203.0.113.128/25"]
        weir("decap", "near0")
        assert pings(pair, 4, 4, dst="203.0.113.200") and not pings(pair, 4, 4, dst="203.0.113.1")
    finally:
        run(["ip", "-n", pair.near_netns, "route", "del", "local", "203.0.113.128/25", *lo])


def test_forward_takes_what_is_for_others(pair, weir, backend):
    assert backend
    host, client = "10.77.0.60", "10.77.0.61"
    frame = encap(pair, IP(src=client, dst=host, id=4712) / UDP(sport=1, dport=9), 4, "ipip")

    def is_forwarded(got):
        return got[0].src == pair.near_mac and IP in got and got[IP].dst == host and got[IP].id == 4712

    pair.near(["sysctl", "-qw", "net.ipv4.ip_forward=1"])
    run(["ip", "-n", pair.near_netns, "neigh", "replace", host, "lladdr", pair.far_mac, "dev", "near0"])
    try:
        weir("decap", "near0", *FROM)
        assert not answers(pair, frame, is_forwarded)
        assert "packets for other hosts" in weir("decap", "near0", "--forward").stdout
        assert answers(pair, frame, is_forwarded)
        assert weir.json("decap", "near0")["forward"] and answers(pair, frame, is_forwarded)
        assert not weir.json("decap", "near0", *FROM)["forward"]  # each command sets it again
        assert not answers(pair, frame, is_forwarded)
        assert counted(weir) == {"inner-elsewhere": 2, "4in4": 2}
    finally:
        pair.near(["sysctl", "-qw", "net.ipv4.ip_forward=0"])
        run(["ip", "-n", pair.near_netns, "neigh", "del", host, "dev", "near0"])


def test_what_a_command_changed_is_said(weir, backend):
    assert backend
    weir("decap", "near0", "--from", "10.77.0.0/24,fd77::2")
    done = weir("decap", "near0", "--from", "any")
    assert "from any source" in done.stdout and done.stdout.rstrip().endswith("; was from 10.77.0.0/24, fd77::2")
    assert "; was already attached" in weir("decap", "near0", "--from", "any").stdout
    assert weir.json("decap", "near0", "--from", "any")["changed"] is False
    assert weir.json("decap", "near0", "--from", "10.77.0.2")["changed"] is True
    assert "; was from 10.77.0.2/32, not forwarding" in weir("decap", "near0", "--from", "any", "--forward").stdout.replace("10.77.0.2,", "10.77.0.2/32,")
    assert "; was port 6080, from any source, forwarding\n" in weir("decap", "near0", "--from", "10.77.0.2", "--port", "6081").stdout
