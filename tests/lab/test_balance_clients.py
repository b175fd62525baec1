# SPDX-License-Identifier: GPL-2.0-only
"""Real clients through a balancer, in every mode and with both families: correct answers, distributed by
weight, byte for byte."""

import contextlib
import json
import re
import select
import socket

import pytest
from balancerlab import FULL, crowd_of, failed, policy, running_balancer, running_node, transfers
from labnet import run, socket_in

MODES = ("dr", "ipip", "gue")
IP_RECVERR, IPV6_RECVERR = 11, 25  # <linux/in.h>, <linux/in6.h>
WEIGHTS = {1: 1, 2: 3, 3: 4}
CONNECTIONS = 10000 if FULL else 2000
ENDS = [(mode, v6) for mode in MODES for v6 in (False, True)]
QUICK_ENDS = [("dr", False), ("ipip", True), ("gue", False)]
LINKS = [(mode, v6) for mode in ("ipip", "gue") for v6 in (False, True)]
QUICK_LINKS = [("ipip", False), ("gue", True)]
SENT, BUFFER = 20 << 20, 256 << 10  # bytes of a connection of iperf3, and of a socket
IPERF = """service iperf {{
	vip {vips}
	proto tcp, udp
	port 5201
	mode {mode}
	hash source
	{backends}
}}
"""


@pytest.fixture(scope="module", name="labs")
def labs_by_kind():
    """labs("ipip", v6=True): one lab of each kind."""
    with contextlib.ExitStack() as stack:
        made = {}

        def get(mode, v6=False):
            if (mode, v6) not in made:
                options = {"mode": mode, "v6": True} if v6 else {"mode": mode}
                made[mode, v6] = stack.enter_context(running_balancer(**options))
            return made[mode, v6]

        yield get


@pytest.fixture(name="serve")
def serving(tmp_path):
    """serve(LAB, OPTION...): Weir on it with the services web and iperf."""
    with contextlib.ExitStack() as stack:

        def serve(lab, *attach, weights=None):
            node = stack.enter_context(running_node(lab))
            mode = lab.options[lab.options.index("--mode") + 1]
            prefix = "fd78:2::" if "--v6" in lab.options else "10.78.2."
            iperf = IPERF.format(vips=", ".join(lab.vips), mode=mode,
                                 backends="\n\t".join(f"backend {prefix}{n}" for n in (1, 2, 3)))
            path = tmp_path / f"{lab.name}.weir"
            path.write_text(policy(lab, [1, 2, 3], weights=weights or WEIGHTS, extra=iperf))
            if attach:
                node("attach", "net0", *attach)
            node("apply", path)
            return node

        yield serve


LOSS = 1 / 20 if FULL else 1 / 2


def iperf(lab, vip, *options):
    """The final report of iperf3. A busy machine may lose its initial UDP packet, which is sent only once."""
    argv = ["iperf3", "-J", "-c", vip, "--connect-timeout", "3000", *map(str, options)]
    for _ in range(2):
        out = lab.on("client", argv).stdout
        end = json.loads(out)["end"]
        if "sum" in end or "sum_received" in end:
            return end
        print(out)
    raise AssertionError(out)


@pytest.mark.parametrize("mode, v6", ENDS if FULL else QUICK_ENDS)
def test_every_client_through_every_mode(labs, serve, tmp_path, mode, v6):
    lab = labs(mode, v6)
    node = serve(lab)
    for vip in lab.vips:
        for scheme in "http", "https":
            assert lab.curl(vip, "/name", scheme=scheme).strip() in lab.backends
        assert lab.udp(vip, 7, b"echo") == b"echo"
        assert lab.udp(vip, 443, b"who").split()[0].decode() in lab.backends
        # Bytes that are still in the buffers of sender and receiver at the end are not counted.
        for direction in [], ["-R"]:
            sums = iperf(lab, vip, "-w", BUFFER, "-n", SENT, *direction)
            assert sums["sum_sent"]["bytes"] >= SENT
            assert sums["sum_received"]["bytes"] >= SENT - 2 * 2 * BUFFER  # the kernel doubles both
        up = iperf(lab, vip, "-u", "-n", "2M", "-b", "20M")["sum"]
        down = iperf(lab, vip, "-u", "-R", "-n", "2M", "-b", "20M")["sum"]
        for way in up, down:  # a busy machine loses some in the buffers of veth; drops of Weir are checked below
            assert way["bytes"] > 1_900_000 and way["lost_packets"] < way["packets"] * LOSS
    transfers(lab, tmp_path)
    for service in "web", "iperf":
        assert not any(one["packets"] for one in node.service(service)["drops"])
        assert node.pinned(service) == 0


def test_shares_of_connections(labs, serve):
    """Ten thousand connections from many addresses: each share is within two percentage points."""
    modes = MODES if FULL else ("ipip",)
    for mode in modes:
        lab = labs(mode)
        node = serve(lab)
        with crowd_of(lab, 0, 1, 1, 1, CONNECTIONS) as crowd:
            results = crowd.results(newcomers=True)
        assert len(results) == CONNECTIONS and not failed(results), failed(results)
        shares = {}
        for number, weight in WEIGHTS.items():
            got = sum(one["backend"] == f"backend{number}" for one in results) / CONNECTIONS
            shares[number] = (got, weight / sum(WEIGHTS.values()))
        opened = sum(one["opened"] for one in node.service()["backends"])
        print(f"\n{mode}: {CONNECTIONS} connections; share, weight: "
              + ", ".join(f"{got:.2%} {want:.2%}" for got, want in shares.values()))
        tolerance = 0.02 if FULL else 0.04  # with fewer connections the result is too random
        assert all(abs(got - want) < tolerance for got, want in shares.values()), shares
        assert opened >= CONNECTIONS
        node.remove()


@pytest.mark.parametrize("vip", [0, 1])
def test_wrk(labs, serve, vip):
    lab = labs("gue")
    serve(lab)
    host = f"[{lab.vips[vip]}]" if vip else lab.vips[vip]
    out = lab.on("client", ["wrk", "-t1", "-c32", f"-d{5 if FULL else 1}s", "-H", "Connection: close",
                            f"http://{host}/name"]).stdout
    print(out)
    assert int(re.search(r"(\d+) requests in", out)[1]) > 200
    assert "Socket errors" not in out and "Non-2xx" not in out


def told_too_big(lab):
    """How often the client was notified: by ICMP (no other reason applies), by ICMPv6."""
    snmp = lab.on("client", ["cat", "/proc/net/snmp"]).stdout
    names, values = (line.split() for line in snmp.splitlines() if line.startswith("Icmp: "))
    six = lab.on("client", ["cat", "/proc/net/snmp6"]).stdout
    return (int(values[names.index("InDestUnreachs")]),
            int(re.search(r"Icmp6InPktTooBigs\s+(\d+)", six)[1]))


@pytest.mark.parametrize("mode, v6", LINKS if FULL else QUICK_LINKS)
def test_upload_over_links_without_room(serve, tmp_path, mode, v6):
    """Full packets do not fit once they are encapsulated: the client is notified and sends shorter ones."""
    options = {"v6": True} if v6 else {}
    with running_balancer(mode=mode, link_mtu=1500, **options) as lab:
        serve(lab)
        assert told_too_big(lab) == (0, 0)
        transfers(lab, tmp_path, 3_000_000)
        told = told_too_big(lab)
        print(f"\n{mode}: told 'too big': {told[0]} (IPv4), {told[1]} (IPv6)")
        assert min(told) > 0


def error_of(lab, vip, hops):
    """(kind, sender) of the ICMP error that a packet with this hop limit causes, or None."""
    four = ":" not in vip
    family = socket.AF_INET if four else socket.AF_INET6
    level, limit, receive = ((socket.IPPROTO_IP, socket.IP_TTL, IP_RECVERR) if four else
                             (socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, IPV6_RECVERR))
    with socket_in(lab.netns("client"), family, socket.SOCK_DGRAM, 0) as sock:
        sock.setsockopt(level, limit, hops)
        sock.setsockopt(level, receive, 1)
        sock.connect((vip, 7))
        sock.send(b"how far?")
        if not select.select([sock], [], [], 1)[0]:
            return None
        try:
            _, ancillary, _, _ = sock.recvmsg(64, 512, socket.MSG_ERRQUEUE)
        except BlockingIOError:  # an answer is not an error
            return None
    error = ancillary[0][2]  # struct sock_extended_err: errno, origin, type, code, ...; then the sender
    return error[5], socket.inet_ntop(family, error[20:24] if four else error[24:40])


def test_an_expired_hop_limit(labs, serve):
    """The router decrements once, the balancer once more and answers from the VIP. A packet with one more
    hop passes."""
    lab = labs("ipip")
    serve(lab)
    for vip, kind in (lab.vip4, 11), (lab.vip6, 3):
        assert error_of(lab, vip, 2) == (kind, vip)
        assert error_of(lab, vip, 1)[1] != vip
        assert error_of(lab, vip, 3) is None


@pytest.mark.parametrize("mode", MODES if FULL else ["gue"])
def test_jumbo_frames(serve, tmp_path, mode):
    with running_balancer(mode=mode, mtu=9000) as lab:
        serve(lab)
        transfers(lab, tmp_path)
        for vip in lab.vips:
            argv = ["ping", "-n", "-q", "-c1", "-W1", "-s8900", "-Mdo", vip]
            assert lab.on("client", argv, check=False).returncode == 0


@pytest.mark.parametrize("mode", MODES if FULL else ["ipip"])
def test_generic_mode(labs, serve, tmp_path, mode):
    lab = labs(mode)
    serve(lab, "--mode", "generic")
    link = run(["ip", "-n", lab.netns("balancer1"), "link", "show", "dev", "net0"]).stdout
    assert "xdpgeneric" in link
    transfers(lab, tmp_path)
    assert lab.udp(lab.vip4, 7, b"echo") == b"echo"
