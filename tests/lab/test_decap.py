# SPDX-License-Identifier: GPL-2.0-only
"""weir decap: a backend without tunnel devices answers what comes in tunnels, as itself: ping and TCP."""
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


@pytest.fixture(name="backend")
def backend_with_vips(pair):
    """near with VIPs on lo, and a server that listens on them; nothing of decap stays behind."""
    for vip in f"{VIP4}/32", f"{VIP6}/128":
        run(["ip", "-n", pair.near_netns, "address", "add", vip, "dev", "lo"])
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


def wrap(pair, packet, outer, way):
    proto = 41 if packet.version == 6 else 4
    head = (IP(src=pair.far4, dst=pair.near4, proto=proto if way == "ipip" else 17) if outer == 4 else
            IPv6(src=pair.far6, dst=pair.near6, nh=proto if way == "ipip" else 17))
    if way == "gue":
        head = head / UDP(sport=41000, dport=6080)
    return pair.ether() / head / Raw(bytes(packet))


def ping(pair, family, number):
    if family == 4:
        return IP(src=pair.far4, dst=VIP4) / ICMP(id=number & 0xffff, seq=1) / Raw(b"weir decap")
    return IPv6(src=pair.far6, dst=VIP6) / ICMPv6EchoRequest(id=number & 0xffff, seq=1)


def answers(pair, frame, wanted):
    """Frames from the VIP to the client for which wanted(scapy frame) holds."""
    with pair.sniff_far() as sniffer:
        pair.send_from_far(frame)
        return sniffer.received(lambda data: wanted(Ether(data)), wait=0.2)


def is_pong(family, number):
    def wanted(frame):
        if family == 4:
            return (ICMP in frame and frame[ICMP].type == 0 and frame[IP].src == VIP4
                    and frame[ICMP].id == number & 0xffff)
        return (ICMPv6EchoReply in frame and frame[IPv6].src == VIP6
                and frame[ICMPv6EchoReply].id == number & 0xffff)
    return wanted


def pings(pair, outer, family, way="ipip"):
    number = 1000 + next(numbers)
    frame = wrap(pair, ping(pair, family, number), outer, way)
    return bool(answers(pair, frame, is_pong(family, number)))


@pytest.mark.parametrize("mode", ["native", "generic"])
def test_every_tunnel_is_answered(pair, weir, backend, mode):
    assert backend and not pings(pair, 4, 4)  # no tunnel device: nobody answers
    weir("decap", "near0", "--mode", mode)
    for way in "ipip", "gue":
        for outer in 4, 6:
            for family in 4, 6:
                assert pings(pair, outer, family, way), f"{family} in {outer} by {way}"
    rows = {row["reason"]: row["packets"]
            for row in weir.json("decap")["interfaces"][0]["counters"]}
    assert [rows[name] for name in ("4in4", "6in4", "4in6", "6in6", "gue")] == [1, 1, 1, 1, 4]
    weir("decap", "near0", "--off")
    assert not pings(pair, 4, 4) and not pair.xdp_attached()


@pytest.fixture(name="client")
def client_without_a_stack(pair):
    """{family: address} of a host on far's side whose kernel resets nothing: it is only a MAC address."""
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
    """A handshake by hand, each of its packets in a tunnel; the answers come straight."""
    weir("decap", "near0")
    head = IP(src=client[4], dst=VIP4) if family == 4 else IPv6(src=client[6], dst=VIP6)
    port = 20000 + next(numbers)
    syn = TCP(sport=port, dport=PORT, flags="S", seq=100)
    got = answers(pair, wrap(pair, head / syn, outer, "ipip"),
                  lambda frame: TCP in frame and frame[TCP].dport == port)
    assert got, "no answer"
    answer = Ether(got[0])[TCP]
    assert answer.flags == "SA" and answer.ack == 101
    hello = TCP(sport=port, dport=PORT, flags="PA", seq=101, ack=answer.seq + 1) / Raw(b"hello")
    pair.send_from_far(wrap(pair, head / hello, outer, "ipip"))
    connection, peer = backend.accept()
    with connection:
        connection.settimeout(2)
        assert connection.recv(100) == b"hello"
        assert peer[1] == port
        assert connection.getsockname()[0].endswith(VIP4 if family == 4 else VIP6)


def test_what_is_no_tunnel_passes(pair, weir, backend):
    assert backend
    weir("decap", "near0")
    assert pair.ping4(pair.far4) and pair.ping6(pair.far6)
    frame = pair.udp(pair.far4)
    other = wrap(pair, ping(pair, 4, 7), 4, "ipip")
    other[IP].dst = "10.77.0.99"
    assert pair.passes(frame, other) == [True, True]


def test_again_takes_new_addresses_and_port(pair, weir, backend):
    assert backend
    weir("decap", "near0", "--port", "6081")
    assert not pings(pair, 4, 4, "gue")
    before = weir.json("decap")["interfaces"][0]
    assert before["port"] == 6081
    run(["ip", "-n", pair.near_netns, "address", "add", "10.77.9.1/32", "dev", "near0"])
    try:
        again = weir.json("decap", "near0")
        assert not again["changed"] and again["addresses"] == before["addresses"] + 1
        assert again["port"] == 6081
        assert "the port was 6081" in weir("decap", "near0", "--port", "6080").stdout
        assert pings(pair, 4, 4, "gue")
        frame = wrap(pair, ping(pair, 4, 4711), 4, "ipip")
        frame[IP].dst = "10.77.9.1"
        assert answers(pair, frame, is_pong(4, 4711))
    finally:
        run(["ip", "-n", pair.near_netns, "address", "del", "10.77.9.1/32", "dev", "near0"])
    weir("decap", "near0")
    assert not answers(pair, frame, is_pong(4, 4711))
    counters = weir.json("decap")["interfaces"][0]["counters"]
    assert next(row for row in counters if row["reason"] == "not-here")["packets"] == 1


def test_generic_is_not_native(pair, weir, backend):
    assert backend
    weir("decap", "near0", "--mode", "generic")
    assert "generic mode already" in weir.fails(3, "decap", "near0", "--mode", "native")
    assert "weir decap near0 --off" in weir.fails(3, "decap", "near0", "--mode", "native")
    assert pings(pair, 4, 4)


def test_others_are_left_alone(pair, weir, backend):
    """Neither pushed aside nor taken off: a foreign program, and Weir's own filter."""
    assert backend
    pair.attach_foreign()
    name = pair.xdp_names()["near0"]
    line = weir.fails(3, "decap", "near0")
    assert f"'{name}'" in line and "ip link set dev near0 xdp off" in line
    assert "did not decapsulate" in weir("decap", "near0", "--off").stderr
    assert pair.xdp_names()["near0"] == name
    pair.detach_foreign()
    weir("attach", "near0")
    if pair.xdp_names()["near0"] == "weir_entry":  # not behind a dispatcher
        assert "'weir_entry'" in weir.fails(3, "decap", "near0")
    weir("decap", "near0", "--off")
    weir("block", "192.0.2.1")
    assert pair.free("192.0.2.1") == [False]
    weir("detach")
    weir("decap", "near0")
    weir.fails(3, "attach", "near0")
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
    assert "off which interface" in weir.fails(1, "decap", "--off")
    assert "'lo' is not an Ethernet device" in weir.fails(3, "decap", "lo")
    assert not pair.xdp_attached()
    done = weir("decap", "near0")
    assert "near0 decapsulates IPIP and GUE (port 6080)" in done.stdout
    assert "it did already" in weir("decap", "near0").stdout
    assert pings(pair, 4, 4)
    text = weir("decap").stdout
    assert "near0, native mode" in text and "4in4" in text and "6in6" not in text
