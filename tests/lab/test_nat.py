# SPDX-License-Identifier: GPL-2.0-only
"""Real clients through services in nat and fullnat, of both families: correct answers, byte for byte, while the
policy changes. A connection is served as it began."""

import contextlib
import json
import re
import shutil
import socket
import struct
import time

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from balancerlab import Node, crowd_of, failed, running_balancer, transfers
from labnet import PATIENCE, run, socket_in
from policylab import dump

MODES = ("nat", "fullnat")
ENDS = {4: ("10.78.80.1", "10.78.2."), 6: ("fd78:80::1", "fd78:2::")}
SOURCES = {4: [f"10.78.2.{n}" for n in range(240, 250)], 6: [f"fd78:2::{n}" for n in range(240, 250)]}
DEVICES, NEAR, NEAR_BYTES = 128, 1152, 8192  # {ifindex, MTU} of interfaces, and the filter, in struct nat_table
COUNT, SECONDS, RATE = 60, 6 * PATIENCE, 6000  # slow downloads, and their bytes a second


@pytest.fixture(scope="module", name="lab")
def balancer_with_sources():
    """The balancer is the gateway of the backends, which it also is without Weir, and has the addresses of SOURCES."""
    with running_balancer(mode="dr") as lab:
        balancer = lab.netns("balancer1")
        lab.on("balancer1", ["sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1",
                             "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.net0.send_redirects=0"])
        for family, sources in SOURCES.items():
            for source in sources:
                run(["ip", "-n", balancer, "address", "add", f"{source}/{32 if family == 4 else 128}", "dev", "net0",
                     *(["nodad"] if family == 6 else [])])
        for backend in lab.backends:
            for options in ["10.78.2.201"], ["inet6", "fd78:2::201"]:
                run(["ip", "-n", lab.netns(backend), "route", "replace", "default", "via", *options])
        yield lab


@pytest.fixture(name="node")
def node_without_policy(lab):
    node = Node(lab)
    try:
        yield node
    finally:
        node.remove()


def service(name, family, mode, backends=(1, 2, 3), lines=(), ports="7, 80, 443", sources=1):
    vip, prefix = ENDS[family]
    body = [f"vip {vip}", "proto tcp, udp", f"port {ports}", f"mode {mode}", *lines]
    if mode == "nat":
        body.append("connections 50000")
    if mode == "fullnat":
        first = sources if isinstance(sources, list) else SOURCES[family][:sources]
        body.append(f"source {', '.join(first)}")
    body += [f"backend {prefix}{n}" for n in backends]
    return f"service {name} {{\n" + "\n".join(f"\t{line}" for line in body) + "\n}\n"


def both(mode, **options):
    return service("web4", 4, mode, **options) + service("web6", 6, mode, **options)


@pytest.fixture(name="apply")
def applying(node, tmp_path):
    """apply(SERVICES, OPTION...): the policy with them."""

    def apply(services, *options, **more):
        path = tmp_path / "nat.weir"
        path.write_text(f'interface net0\nseed "lab"\n{services}')
        return node("apply", path, *options, **more)

    return apply


def drops(node, name):
    return node.service(name)["drops"]


@contextlib.contextmanager
def downloads(lab, newcomers=600, vips=None):
    """Downloads that must all complete after the body has run, and short connections that begin all the time."""
    start = time.monotonic()
    with crowd_of(lab, COUNT, SECONDS * RATE, RATE, 60, newcomers, vips=vips) as crowd:
        yield
        assert time.monotonic() - start < SECONDS + 20 * PATIENCE
        results = crowd.results()
    assert not failed(results), failed(results)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("attach", ["native", "generic"])
def test_every_client(lab, node, apply, tmp_path, mode, attach):
    node("attach", "net0", "--mode", attach)
    apply(both(mode))
    for vip in lab.vips:
        for scheme in "http", "https":
            assert lab.curl(vip, "/name", scheme=scheme).strip() in lab.backends
        assert lab.udp(vip, 7, b"echo") == b"echo"
        assert lab.udp(vip, 443, b"who").split()[0].decode() in lab.backends
    transfers(lab, tmp_path)
    for name in "web4", "web6":
        assert not any(one["packets"] for one in drops(node, name)), drops(node, name)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("attach", ["native", "generic"])
def test_fragments(lab, node, apply, mode, attach):
    """Datagrams of several fragments, there and back."""
    node("attach", "net0", "--mode", attach)
    apply(both(mode))
    for vip in lab.vips:
        for size in 1500, 4000, 20000:
            data = bytes(n * 7 % 251 for n in range(size))
            assert lab.udp(vip, 7, data) == data


@pytest.mark.parametrize("mode", MODES)
def test_another_port(lab, apply, mode):
    """The backend has another port than the VIP."""
    apply(re.sub(r"(backend \S+)", r"\1 port 80", both(mode, ports="8080")))
    for vip in lab.vips:
        host = f"[{vip}]" if ":" in vip else vip
        out = lab.on("client", ["curl", "-sf", "--max-time", "10", f"http://{host}:8080/name"]).stdout
        assert out.strip() in lab.backends


def seen_source(lab, vip):
    """The source of a client's packets at the only backend."""
    with lab.sniff("backend1") as sniffer:
        lab.curl(vip, "/name")
        packets = [Ether(data) for data in sniffer.received(lambda data: True)]
    layer = IPv6 if ":" in vip else IP
    [source] = {p[layer].src for p in packets if TCP in p and p[TCP].dport == 80}
    return source


def test_servers_see_the_source(lab, apply):
    """In fullnat the source of the policy, and after a change the new one; in nat the client."""
    for n in 0, 1:
        apply("".join(service(f"web{family}", family, "fullnat", backends=[1], sources=[sources[n]])
                      for family, sources in SOURCES.items()))
        for (vip, _), sources in zip(ENDS.values(), SOURCES.values()):
            assert seen_source(lab, vip) == sources[n]
    apply(both("nat", backends=[1]), "--force")
    assert [seen_source(lab, vip) for vip in lab.vips] == [lab.client4, lab.client6]


@pytest.mark.parametrize("mode", MODES)
def test_no_connection_is_lost_by_applies(lab, apply, mode):
    """Backends, order of services, number of connections and sources change."""
    apply(both(mode))
    with downloads(lab):
        for n in range(6):
            pool = [1, 2, 3] if n % 2 else [2, 3, 1][: 2 + n % 3 // 2]
            text = [service("web4", 4, mode, backends=pool, sources=1 + n % 3),
                    service("web6", 6, mode, backends=pool, sources=1 + n % 3)]
            if n % 2:
                text.reverse()
            apply("".join(text))
            time.sleep(0.5)


def test_no_connection_is_lost_by_other_sources(lab, apply):
    """Each change has one source, another one than before; the walk of an apply makes room for the next."""
    apply(both("fullnat"))
    with downloads(lab):
        for n in range(1, 6):
            apply(service("web4", 4, "fullnat", sources=[SOURCES[4][n]])
                  + service("web6", 6, "fullnat", sources=[SOURCES[6][n]]))
            time.sleep(0.3)


def test_no_connection_is_lost_by_other_modes(lab, apply):
    """In dr the answers to new connections do not arrive here: the balancer is the gateway."""
    apply(both("nat"))
    with downloads(lab, newcomers=0):
        refused = apply(both("fullnat"), check=False)
        assert refused.returncode == 3 and "runs in a different mode: nat" in refused.stderr
        for mode in "fullnat", "dr", "nat", "dr", "fullnat":
            apply(both(mode), "--force")
            time.sleep(0.7)
    assert all(lab.answers(vip) for vip in lab.vips)


def test_no_connection_is_lost_by_another_ring(lab, apply):
    apply(both("nat"))
    with downloads(lab, newcomers=0):
        other = both("nat", lines=("ring 8191",))
        refused = apply(other, check=False)
        assert refused.returncode == 3 and "its connections continue, new ones use the new ring" in refused.stderr
        apply(other, "--force")
        assert all(lab.answers(vip) for vip in lab.vips)


@pytest.mark.parametrize("end", ["rollback", "expires"])
@pytest.mark.parametrize("mode,rest", [("nat", "nat"), ("nat", "dr"), ("nat", "none"), ("fullnat", "none")])
def test_a_trial_that_removes_a_service(lab, node, apply, mode, rest, end):
    """Another service in nat remains, or only one in dr, or none at all."""
    other = {"nat": service("web6", 6, "nat"), "dr": service("other", 6, "dr"), "none": "default pass\n"}[rest]
    apply(service("web4", 4, mode) + (other if rest == "nat" else ""))
    with downloads(lab, newcomers=0, vips=[lab.vip4]):
        apply(other, "--confirm=2s")
        time.sleep(1)
        if end == "rollback":
            node("rollback")
        else:
            time.sleep(1.5)
            node("status")


RATES = """default drop
"few" drop proto udp to port 9 over 1000/s
"rest" pass proto udp to port 9
expect pass via "rest" udp from 203.0.113.9 to 10.78.2.201 port 9 on net0
expect drop via default udp from 203.0.113.9 to 10.78.2.201 port 10 on net0
"""


def test_rates_on_trial(lab, node, apply):
    """A policy without services keeps the limits of its rules while it sends answers of the previous one."""
    apply(both("nat"))
    assert lab.answers(lab.vip4)
    apply(RATES, "--confirm=10s")
    lab.on("client", ["bash", "-c", "for n in {1..5}; do echo >/dev/udp/10.78.2.201/9; done"])
    counted = {rule["rule"]: rule["packets"] for rule in node.json("stats")["rules"]}
    assert counted["few"] == 0 and counted["rest"] == 5, counted
    node("confirm")
    assert "rest" in node("explain", "udp", "from", "203.0.113.9", "to", "10.78.2.201", "port", "9").stdout


def in_the_table(node, first, size):
    [row] = dump(node.bpffs / "nat")
    return bytes(int(byte, 16) for byte in row["value"][first:first + size])


def bits_of_the_filter(node):
    """Bits for backends that answer in nat, in struct nat_table."""
    return int.from_bytes(in_the_table(node, NEAR, NEAR_BYTES), "little").bit_count()


def devices_of_answers(node):
    """{ifindex: MTU} of those by which answers leave."""
    pairs = struct.iter_unpack("=II", in_the_table(node, DEVICES, NEAR - DEVICES))
    return {ifindex: mtu for ifindex, mtu in pairs if ifindex}


def test_a_device_that_is_gone(lab, node, apply):
    """No answer is sent to it: the routing table is asked. It may return."""
    apply(both("nat"))
    before, balancer = devices_of_answers(node), lab.netns("balancer1")
    for mtu in 1500, 9000:
        run(["ip", "-n", balancer, "link", "add", "up9", "mtu", mtu, "type", "veth", "peer", "up10"])
        node("attach", "up9")
        index = json.loads(run(["ip", "-n", balancer, "-j", "link", "show", "up9"]).stdout)[0]["ifindex"]
        assert devices_of_answers(node) == {**before, index: mtu}
        run(["ip", "-n", balancer, "link", "del", "up9"])
        node("block", "203.0.113.9")
        assert devices_of_answers(node) == before


def test_the_filter_forgets_backends(lab, node, apply):
    """The bits of removed backends go, except those of a living connection, which continues."""
    apply(service("web4", 4, "nat", backends=[1]))
    with socket_in(lab.netns("client"), socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(3)
        sock.connect((lab.vip4, 80))
        for port in range(8080, 8086):
            apply(service("web4", 4, "nat", backends=[f"2 port {port}"]))
        node("service", "--tidy")
        # Two protocols, the present backend and the one before it, and the three ports of the first one.
        assert bits_of_the_filter(node) == 2 * (2 + 3)
        sock.sendall(b"GET /name HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(4096).endswith(b"backend1\n")


def test_a_generation_that_is_gone(lab, node, apply):
    """Somebody has removed its files. Packets still meet its programs, and no walk ends a connection."""
    apply(service("web4", 4, "nat", backends=[1]))
    with socket_in(lab.netns("client"), socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(3)
        sock.connect((lab.vip4, 80))
        for folder in (node.bpffs / "gen").iterdir():
            shutil.rmtree(folder)
        assert "now 1 connection," in node("service", "--tidy").stdout
        sock.sendall(b"GET /name HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(4096).endswith(b"backend1\n")


def test_connections_of_a_removed_service_end(lab, apply):
    apply(both("nat"))
    with crowd_of(lab, 5, 60 * RATE, RATE, vips=[lab.vip4]):
        time.sleep(1)
        out = apply(service("web6", 6, "nat"))
        assert re.search(r"\b5 connections of nat or fullnat ended: no service has their address and port any more",
                         out.stderr), out.stderr
    apply(both("nat"))
    assert lab.answers(lab.vip4)


def test_a_removed_policy(lab, apply):
    """Without a service in these modes, nothing of them remains; with one, all begins again."""
    apply(both("fullnat"))
    assert lab.answers(lab.vip4)
    apply("default pass\n")
    assert not lab.answers(lab.vip4)
    apply(both("nat"))
    assert lab.answers(lab.vip4) and lab.answers(lab.vip6)


def test_a_policy_that_is_not_applied(lab, apply):
    """What was prepared for it is removed, and the running one continues."""
    apply(both("nat"))
    text = both("nat", ports="80") + service("other", 4, "nat", ports="81")
    apply(text, "--dry-run")
    broken = apply(text + "expect drop tcp from 192.0.2.7 to 10.78.80.2 port 81 on net0\n", check=False)
    assert broken.returncode, broken.stderr
    assert lab.answers(lab.vip4)
