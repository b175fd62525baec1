# SPDX-License-Identifier: GPL-2.0-only
"""Links between router and backends that are narrower than the balancer knows: path MTU discovery of the
tunnel, with notices from routers and with forged ones."""

import contextlib

import pytest
from balancerlab import policy, running_balancer, running_node, upload
from labnet import WEIR, run
from policylab import reasons
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

NARROW = 1400
SIZE = 3_000_000
LINKS = [("ipip", False), ("ipip", True), ("gue", False), ("gue", True)]
FITS = 1340  # packets of 1280 bytes fit inside each tunnel
TOLD, ANSWERED = "service-path-mtu", "service-too-big"


@pytest.fixture(name="served")
def serving(tmp_path):
    """served("gue", v6=True): a lab with two backends, and Weir with the service web on it."""
    with contextlib.ExitStack() as stack:

        def serve(mode, v6=False, attach=(), devices="net0", **options):
            options = {**options, **({"v6": True} if v6 else {})}
            lab = stack.enter_context(running_balancer(mode=mode, backends=2, **options))
            node = stack.enter_context(running_node(lab))
            node.path = tmp_path / "web.weir"
            node.path.write_text(policy(lab, [1, 2]).replace("interface net0", f"interface {devices}"))
            if attach:
                node("attach", "net0", *attach)
            node("apply", node.path)
            return lab, node

        yield serve


def narrow(lab, mtu=NARROW):
    """The last links get a smaller MTU, unknown to the balancer."""
    for host in lab.backends:
        run(["ip", "-n", lab.netns("router"), "link", "set", host, "mtu", mtu])


def known(node):
    """The path MTUs that the balancer has learned."""
    return [one["path_mtu"] for one in node.service()["backends"] if "path_mtu" in one]


def uploads(lab, folder, times=2):
    for vip in lab.vips * times:
        upload(lab, vip, folder, SIZE)


def check_told(lab, node, folder):
    uploads(lab, folder)
    assert node.events()["path-learned"] and not node.events()["path-refused"]
    assert reasons(node)[TOLD]
    assert known(node) and set(known(node)) == {NARROW}
    assert all(one["path_mtu_age_s"] < 60 for one in node.service()["backends"] if "path_mtu" in one)


@pytest.mark.parametrize("mode, v6", LINKS)
def test_uploads_through_a_narrow_link(served, tmp_path, mode, v6):
    lab, node = served(mode, v6)
    narrow(lab)
    check_told(lab, node, tmp_path)
    assert f"path mtu {NARROW} for" in node("service").stdout
    # Commands do not remove what the datapath has learned.
    learned = known(node)
    node("service", "--refresh")
    assert known(node) == learned
    node.path.write_text(node.path.read_text() + "drop from 198.51.100.1\n")
    node("apply", node.path)
    assert known(node) == learned
    assert f"mtu {1540 if mode == 'ipip' else 1580}" in node.service()["backends"][0]["next_hop"]


def test_uploads_in_generic_mode(served, tmp_path):
    lab, node = served("ipip", attach=["--mode", "generic"])
    narrow(lab)
    check_told(lab, node, tmp_path)


def test_uploads_with_a_second_device(served, tmp_path):
    """Notices of routers arrive on the device of the backends: the policy must be active there as well."""
    lab, node = served("gue", devices="net0, back0", nics=2)
    assert not any("routers" in text for text in node.json("service", "--refresh")["notices"])
    narrow(lab)
    check_told(lab, node, tmp_path)


@pytest.mark.parametrize("forwards", [0, 1])
def test_uploads_under_default_drop(served, tmp_path, forwards):
    """Sources from a prefix that is routed to this host but is not configured on it, also if it would be
    forwarded: a router's notice about it is essential."""
    lab, node = served("gue")
    run(["ip", "-n", lab.netns("router"), "route", "add", "10.99.0.0/24", "via", "10.78.1.201",
         "dev", "balancer1"])
    for host in lab.backends:
        run([WEIR, "-N", lab.netns(host), "decap", "net0", "--from", "10.99.0.0/24"])
    lab.on("balancer1", ["sysctl", "-qw", f"net.ipv4.ip_forward={forwards}"])
    node.path.write_text(policy(lab, [1, 2], "source 10.99.0.0/24") + "default drop\npass to web\n")
    node("apply", node.path)
    narrow(lab)
    check_told(lab, node, tmp_path)


# Forged notices

def tunnel_packet(lab, folder):
    """A long packet, as the router has sent it to a backend."""
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(lab.sniff("router", host)) for host in lab.backends]
        upload(lab, lab.vip4, folder, 300_000)
        frames = [data for port in ports for data, sent in port.frames(0.1) if sent and len(data) > 1000]
    return frames[0][14:]


def send_notice(lab, quote, mtu, to=None):
    """Sends a notice that this packet was too big."""
    whole = IP(quote) if quote[0] >> 4 == 4 else IPv6(quote)
    to = to or whole.src
    head = Ether(src="02:78:01:00:01:01", dst="02:78:01:00:00:01")
    if ":" in to:
        notice = IPv6(src="fd78:2::254", dst=to) / ICMPv6PacketTooBig(mtu=mtu) / Raw(quote[:1000])
    else:
        notice = IP(src="10.78.2.254", dst=to) / ICMP(type=3, code=4, nexthopmtu=mtu) / Raw(quote[:500])
    lab.send("router", head / notice, "balancer1")


def changed(raw, at, value):
    return raw[:at] + bytes([value]) + raw[at + 1:]


@pytest.mark.parametrize("mode, v6", LINKS)
def test_forged_notices(served, tmp_path, mode, v6):
    lab, node = served(mode, v6)
    packet = tunnel_packet(lab, tmp_path)
    ends, inner = (8 if v6 else 12), (40 if v6 else 20) + (8 if mode == "gue" else 0)
    for mtu in 576, 1280, 1280 + inner - 1:  # the last bytes of QUIC would not fit
        send_notice(lab, packet, mtu)
    send_notice(lab, packet, 0)
    send_notice(lab, packet, len(packet))  # it would have fit
    send_notice(lab, changed(packet, ends + (31 if v6 else 7), 77), FITS)  # to no backend
    send_notice(lab, changed(packet, inner + 19, 99), FITS)  # for no VIP
    send_notice(lab, changed(packet, inner + 23, 99), FITS)  # for no port
    send_notice(lab, changed(packet, ends + (15 if v6 else 3), 99), FITS)  # from another host's address
    send_notice(lab, packet, FITS, to="fd78:1::77" if v6 else "10.78.1.77")  # to another host
    if mode == "gue":
        send_notice(lab, changed(packet, inner - 7, packet[inner - 7] ^ 1), FITS)  # another flow's port
        send_notice(lab, changed(packet, inner - 6, 1), FITS)  # another port
    send_notice(lab, bytes(IPv6(dst="fd78:2::1") / UDP()) if v6 else bytes(IP(dst="10.78.2.1") / UDP()), FITS)
    uploads(lab, tmp_path, 1)
    assert not known(node) and not node.events()["path-learned"]
    assert node.events()["path-refused"] >= 3
    assert not reasons(node)[TOLD] and not reasons(node)[ANSWERED]
    # A true notice: the same packet, unchanged.
    send_notice(lab, packet, FITS)
    assert known(node) == [FITS] and reasons(node)[TOLD] == 1


@pytest.mark.parametrize("mode, v6", LINKS)
def test_one_forged_notice_takes_no_quic(served, tmp_path, mode, v6):
    """Packets that must have 1200 bytes of payload (RFC 9000 section 14.1) still arrive after a notice that says 576."""
    lab, node = served(mode, v6)
    packet = tunnel_packet(lab, tmp_path)
    for mtu in 576, 1280:
        send_notice(lab, packet, mtu)
        send_notice(lab, packet[:48 if v6 else 28], mtu)
    for vip in lab.vips:
        for _ in range(20):
            assert len(lab.udp(vip, 7, bytes(1200))) > 0
    assert not known(node) and not reasons(node)[ANSWERED]


def test_no_echo_to_this_host_or_to_a_subnet(served):
    """Requests with forged sources: an address of the balancer, the broadcast address of its subnet, another host's."""
    lab, node = served("ipip")

    def ask(source):
        head = Ether(src="02:78:01:00:01:01", dst="02:78:01:00:00:01")
        lab.send("router", head / IP(src=source, dst=lab.vip4) / ICMP(id=1, seq=1), "balancer1")
        return reasons(node)["service-echo"], reasons(node)["service-echo-silent"]

    assert ask("198.18.0.7") == (1, 0)
    assert ask("10.78.1.201") == (1, 1)
    lab.on("balancer1", ["ip", "addr", "add", "198.51.100.1/28", "dev", "lo"])
    node("service", "--refresh")
    assert ask("198.51.100.1") == (1, 2) and ask("198.51.100.15") == (1, 3) and ask("198.51.100.16") == (2, 3)


@pytest.mark.parametrize("mode", ["ipip", "gue"])
def test_short_quotes(served, tmp_path, mode):
    """A quote of 28 bytes: no client can be notified immediately, but each one is when it sends its next
    long packet."""
    lab, node = served(mode)
    packet = tunnel_packet(lab, tmp_path)
    send_notice(lab, packet[:28], NARROW)
    assert known(node) == [NARROW] and not reasons(node)[TOLD]
    narrow(lab)
    while not reasons(node)[ANSWERED]:
        uploads(lab, tmp_path, 1)
