# SPDX-License-Identifier: GPL-2.0-only
"""Checks via path: probes of the agent that take the way of a client's packets."""

import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

import pytest
from balancerlab import Flood, policy, running_balancer
from policylab import reasons
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from labnet import PATIENCE, WEIR, run, until
from statefile import read_rows

TIMES = "every 300ms timeout 200ms rise 2 fall 2"
DIRECT = f'check http "/name" port 80 {TIMES}'
VIA = f"{DIRECT} via path"
# Answers to direct checks pass, nothing from the VIP does.
STRICT = "default drop\ndrop from {vip}\npass to {vip}\npass from 10.78.2.0/24, fd78:2::/64\n"


def backend(balancer, number):
    return f"fd78:2::{number}" if "--v6" in balancer.options else f"10.78.2.{number}"


TUNNELS = ["ipip", "gue", "ipip-v6", "gue-v6"]


@pytest.fixture(scope="module", name="balancer", params=["dr", *TUNNELS])
def shared_lab(request):
    mode, *v6 = request.param.split("-")
    with running_balancer(mode=mode, **({"v6": True} if v6 else {})) as lab:
        yield lab


@pytest.fixture(name="serve", params=[4, 6])
def served(request, balancer, node, tmp_path):
    """serve(LINE, ...) applies the service with one VIP of this family, and with rules against its answers."""
    path = tmp_path / "web.weir"
    vip = balancer.vip4 if request.param == 4 else balancer.vip6
    before, balancer.vips = balancer.vips, (vip,)

    def apply(*lines):
        text = policy(balancer, (1, 2, 3), "idle 2s", "pins 65536", *lines, extra=STRICT.format(vip=vip))
        path.write_text(text)
        node("apply", path, "--force")

    apply.vip = vip
    yield apply
    balancer.vips = before


def health(node):
    return {one["backend"]: one.get("health", "") for one in node.service()["backends"]}


def all_ok(node):
    return set(health(node).values()) == {"ok"}


@contextlib.contextmanager
def without_vip(balancer, host, vip):
    """The server answers only under the address of its host."""
    length = 128 if ":" in vip else 32
    balancer.on(host, ["ip", "address", "del", f"{vip}/{length}", "dev", "lo"])
    try:
        yield
    finally:
        options = ["nodad"] if ":" in vip else []
        balancer.on(host, ["ip", "address", "add", f"{vip}/{length}", "dev", "lo", *options])


def devices(balancer):
    return run(["ip", "-o", "-n", balancer.netns("balancer1"), "link"]).stdout.count("\n")


def enclaves(agent):
    """The namespaces that the agent has open and is not in."""
    found = set()
    for one in pathlib.Path(f"/proc/{agent.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(one))
    return {one for one in found if one.startswith("net:[")} - {os.readlink(f"/proc/{agent.pid}/ns/net")}


def is_used(namespace):
    """By a process, or by a name."""
    for one in pathlib.Path("/proc").glob("[0-9]*/ns/net"):
        with contextlib.suppress(OSError):
            if os.readlink(one) == namespace:
                return True
    return int(namespace[5:-1]) in {one.stat().st_ino for one in pathlib.Path("/run/netns").iterdir()}


def forge_answers(balancer, vip):
    """Frames from the router as answers to checks that were not made."""
    ip = (IPv6(src=vip, dst="fd78:1::201") if ":" in vip else IP(src=vip, dst="10.78.1.201"))
    for port in range(0x7000, 0x7040):
        frame = Ether(src="02:78:00:00:00:03", dst="02:78:01:00:00:01") / ip / TCP(sport=80, dport=port, flags="SA")
        balancer.send("router", frame, "balancer1")


def test_a_missing_vip_is_found(balancer, node, serve):
    """Only by a check via path. Healthy backends stay healthy, independently of rules and rp_filter."""
    balancer.on("balancer1", ["sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1"])
    serve(VIA)
    node.run()
    until(lambda: all_ok(node))
    assert balancer.answers(serve.vip)
    with without_vip(balancer, "backend2", serve.vip):
        until(lambda: health(node)[backend(balancer, 2)].startswith("failing"))
        assert {health(node)[backend(balancer, n)] for n in (1, 3)} == {"ok"}
        serve(DIRECT)
        until(lambda: all_ok(node))
        serve(VIA)
        until(lambda: health(node)[backend(balancer, 2)].startswith("failing"))
    until(lambda: all_ok(node))


@pytest.fixture(name="both")
def served_both(balancer, node, tmp_path):
    """Applies the service with its two VIPs, checked via path."""
    path = tmp_path / "both.weir"
    path.write_text(policy(balancer, (1, 2, 3), "idle 2s", "pins 65536", VIA))
    node("apply", path, "--force")
    return path


def test_each_vip_is_asked(balancer, node, both):
    """A backend that lacks one address fails, and the reason names it."""
    assert both
    agent = node.run()
    until(lambda: all_ok(node))
    before = agent.descriptors() + 6  # checks that run
    for n, vip in (2, balancer.vip6), (3, balancer.vip4):
        with without_vip(balancer, f"backend{n}", vip):
            until(lambda: health(node)[backend(balancer, n)].endswith(f", via path to {vip}"))
            assert {health(node)[backend(balancer, other)] for other in {1, 2, 3} - {n}} == {"ok"}
        until(lambda: all_ok(node))
    until(lambda: agent.descriptors() <= before)


def address_of(balancer, family=4):
    """Of net0 of the balancer, with its length."""
    found = json.loads(balancer.on("balancer1", ["ip", "-j", f"-{family}", "address", "show", "net0", "scope", "global"]).stdout)
    one = found[0]["addr_info"][0]
    return one["local"], one["prefixlen"]


def sources(balancer, vip, seconds=1.0):
    """Of requests of checks to this VIP, as the backend sees them."""
    with balancer.sniff("router", "balancer1") as sniffer:
        end = time.monotonic() + seconds
        frames = [data for data, sent in itertools.takewhile(lambda _: time.monotonic() < end, sniffer.frames())
                  if not sent]
    return {ends(balancer, one)[2].src for one in frames if is_request(balancer, one, vip)}


def test_the_address_of_this_host_moves(balancer, node, both):
    """Checks come from the address from which this host would send, whichever that is now."""
    assert both
    agent = node.run()
    until(lambda: all_ok(node))
    own, length = address_of(balancer)
    other = own.rsplit(".", 1)[0] + ".77"
    on = ["ip", "-n", balancer.netns("balancer1")]
    way = [f"{balancer.vip4}/32", *run([*on, "-4", "route", "show", "default"]).stdout.split()[1:]]
    assert sources(balancer, balancer.vip4) == {own}
    run([*on, "address", "add", f"{other}/{length}", "dev", "net0"])
    router = ["ip", "-n", balancer.netns("router"), "route"]
    link = [f"{other}/32", "dev", "lan0" if "dr" in balancer.options else "balancer1"]
    run([*router, "replace", *link])
    try:
        time.sleep(0.5)
        assert "come from other addresses" not in agent.said()  # it is not the one from which this host sends
        run([*on, "route", "add", *way, "src", other])
        until(lambda: sources(balancer, balancer.vip4) == {other})
        assert "checks of services come from other addresses of this host" in agent.said()
        assert all_ok(node)
    finally:
        run([*on, "route", "del", *way], check=False)
        run([*on, "address", "del", f"{other}/{length}", "dev", "net0"])
        run([*router, "del", *link])
    until(lambda: sources(balancer, balancer.vip4) == {own})
    assert all_ok(node) and "fails its checks" not in agent.said()


def test_a_vip_that_this_host_has(balancer, node, both):
    """As keepalived gives it to the active node of a pair, while the agent runs."""
    assert both
    agent = node.run()
    until(lambda: all_ok(node))
    own = {4: address_of(balancer)[0], 6: address_of(balancer, 6)[0]}
    on = ["ip", "-n", balancer.netns("balancer1"), "address"]
    mine = {4: f"{balancer.vip4}/32", 6: f"{balancer.vip6}/128"}
    for address in mine.values():
        run([*on, "add", address, "dev", "net0", *(["nodad"] if ":" in address else [])])
    try:
        until(lambda: "come from other addresses" in agent.said())
        time.sleep(1)
        for family, vip in (4, balancer.vip4), (6, balancer.vip6):
            until(lambda at=vip, only=own[family]: sources(balancer, at) == {only})
        assert all_ok(node) and "fails its checks" not in agent.said()
        with without_vip(balancer, "backend2", balancer.vip6):
            until(lambda: health(node)[backend(balancer, 2)].startswith("failing"))
        until(lambda: all_ok(node))
    finally:
        for address in mine.values():
            run([*on, "del", address, "dev", "net0"])


@pytest.mark.parametrize("balancer", TUNNELS, indirect=True)
def test_a_tunnel_without_end_is_found(balancer, node, serve):
    serve(VIA)
    node.run()
    until(lambda: all_ok(node))
    decap = [WEIR, "-N", balancer.netns("backend3"), "decap", "net0"]
    run([*decap, "--off"])
    try:
        until(lambda: health(node)[backend(balancer, 3)].endswith("no answer within 200ms, via path"))
        assert {health(node)[backend(balancer, n)] for n in (1, 2)} == {"ok"}
    finally:
        run([*decap, "--from", "10.78.0.0/16,fd78::/16"])
    until(lambda: all_ok(node))


def ends(balancer, frame):
    """Link addresses; the outer header, TTL and addresses without those that differ by flow; the inner packet."""
    link = Ether(frame)
    outer = link.payload
    if "dr" in balancer.options:
        return (link.src, link.dst), None, outer
    assert bytes(outer)[:40] == bytes(checked(outer))[:40]
    head = (outer.src, outer.dst, outer.ttl, outer.tos, outer.flags, outer.proto) if outer.version == 4 else (
        outer.src, outer.dst, outer.hlim, outer.tc, outer.nh)
    inner = bytes(outer.payload)
    if isinstance(outer.payload, UDP):
        assert outer.payload.dport == 6080 and outer.payload.len == len(inner)
        head, inner = (*head, 6080), inner[8:]
    return (link.src, link.dst), head, (IP if inner[0] >> 4 == 4 else IPv6)(inner)


def checked(packet):
    """The same with checksums by scapy; none of UDP in IPv4."""
    fresh = packet.copy()
    if fresh.version == 4:
        fresh.chksum = None
    elif isinstance(fresh.payload, UDP):
        fresh.payload.chksum = None
    return fresh.__class__(bytes(fresh))


def test_frames_are_those_of_clients(balancer, node, serve):
    """The router sees the same headers around requests of a client and of a check."""
    serve(VIA)
    node.run()
    until(lambda: all_ok(node))
    with balancer.sniff("router", "balancer1") as sniffer:
        for _ in range(60):  # to each backend
            assert balancer.answers(serve.vip)
        clients, checks, end = {}, {}, time.monotonic() + 1  # checks continue
        for frame, sent in sniffer.frames(2 * PATIENCE):
            if not sent and is_request(balancer, frame, serve.vip):
                link, head, inner = ends(balancer, frame)
                side = checks if 0x7000 <= inner.payload.sport < 0x8000 else clients
                side.setdefault((link, head), []).append(inner)
            if time.monotonic() > end + (len(checks) < 3) * 9 * PATIENCE:
                break
    assert set(clients) == set(checks) and len(checks) == 3
    hops = {one.hlim if one.version == 6 else one.ttl for inners in checks.values() for one in inners}
    assert hops == {63}  # as if the balancer had received it


def is_request(balancer, frame, vip):
    needle = socket.inet_pton(socket.AF_INET6 if ":" in vip else socket.AF_INET, vip)
    kind = frame[12:14]
    at = {b"\x08\x00": 14, b"\x86\xdd": 14}.get(kind)
    if at is None:
        return False
    place = frame.find(needle, at)
    inner = place - (24 if ":" in vip else 16)
    return place > 0 and inner >= at and (inner > at) == ("dr" not in balancer.options)


def alarms_of(node):
    return json.loads(node("-j", "status", check=False).stdout)["alarms"]


def silent_ones(node):
    return [one for one in alarms_of(node) if "as if it did not answer" in one]


def send_strays(balancer, node, vip):
    """What is left of connections with the second backend, as if they had been opened before the service."""
    ip = IPv6(src=balancer.client6, dst=vip) if ":" in vip else IP(src=balancer.client4, dst=vip)
    for port in range(20000, 20100):
        balancer.send("router", Ether(src="02:78:00:00:00:03", dst="02:78:01:00:00:01") / ip / TCP(sport=port, dport=80, flags="FA"),
                      "balancer1")
        if node.backend(backend(balancer, 2))["packets"]:
            return
    raise AssertionError("no packet came to it")


def is_unanswered(counted):
    """After 10 packets, nine of ten of them openings; others of older connections may come."""
    return counted["packets"] >= 10 and counted["opened"] >= 0.9 * counted["packets"]


def test_only_openings(balancer, node, serve):
    """Without checks the counters tell which backend does not answer."""
    serve()
    with without_vip(balancer, "backend2", serve.vip):
        send_strays(balancer, node, serve.vip)
        until(lambda: balancer.curl(serve.vip, "/name", "--max-time", "0.1", check=False) and False
              or is_unanswered(node.backend(backend(balancer, 2))), seconds=50)
        told = f"packets for {backend(balancer, 2)} opened connections"
        until(lambda: [told in one for one in silent_ones(node)] == [True])
        node.run()
        assert silent_ones(node)  # it checks nothing
        serve(DIRECT)
        until(lambda: not silent_ones(node))


def ask(balancer, vip, times, seconds=5.0):
    """So many connections, one after the other; returns how many were answered."""
    said = balancer.curl(vip, f"/name?[1-{times}]", "-H", "Connection: close", "--max-time", str(seconds), check=False)
    return said.count("backend")


def came_since(node, address, before):
    """(packets, opened) of a backend since these of before."""
    now = node.backend(address)
    return now["packets"] - before["packets"], now["opened"] - before["opened"]


def ask_in_vain(balancer, node, vip, address):
    """Until nearly all that has come for the backend opens connections."""
    before = node.backend(address)

    def is_plain():
        ask(balancer, vip, 10, 0.1)
        packets, opened = came_since(node, address, before)
        return packets >= 12 and opened >= 0.95 * packets

    until(is_plain, seconds=60)


def ask_with_success(balancer, node, vip, address):
    """Until the backend has got what many connections send."""
    before = node.backend(address)
    until(lambda: ask(balancer, vip, 30) == 30 and came_since(node, address, before)[0] >= 30, seconds=60)


@pytest.mark.parametrize("balancer", ["dr", "gue-v6"], indirect=True)
def test_one_that_dies_after_long_service(balancer, node, serve):
    """The packets since the last evaluation are judged, and not the sums."""
    serve()
    two = backend(balancer, 2)
    until(lambda: ask(balancer, serve.vip, 50) == 50 and node.backend(two)["opened"] >= 100, seconds=60)
    assert not silent_ones(node)
    with without_vip(balancer, "backend2", serve.vip):
        ask_in_vain(balancer, node, serve.vip, two)
        assert not is_unanswered(node.backend(two))
        told, = silent_ones(node)
        assert re.fullmatch(r"service 'web': \d+ of \d+ packets for \S+ since [-0-9: ]+ opened connections, as if it did not answer", told)
        assert two in told
        assert silent_ones(node) == [told]  # nothing has come since
        node("drain", two)
        assert not silent_ones(node)
        node("undrain", two)
        assert not silent_ones(node)  # until new flows have come
        ask_in_vain(balancer, node, serve.vip, two)
        told, = silent_ones(node)
        assert two in told
    ask_with_success(balancer, node, serve.vip, two)
    assert not silent_ones(node)


@contextlib.contextmanager
def clients_of(balancer, vip):
    """Connections meanwhile, all of which are answered."""
    over = threading.Event()

    def go_on():
        answered = {20}
        while not over.is_set():
            answered.add(ask(balancer, vip, 20))
        return answered

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        going = pool.submit(go_on)
        try:
            yield
        finally:
            over.set()
        assert going.result() == {20}


def silent_ones_of_many(node, readers=4, times=15):
    """What each of these commands says that run at the same time."""
    with concurrent.futures.ThreadPoolExecutor(readers) as pool:
        return list(pool.map(lambda _: silent_ones(node), range(readers * times)))


@pytest.mark.parametrize("balancer", ["dr"], indirect=True)
@pytest.mark.parametrize("serve", [4], indirect=True)
def test_many_look_at_once(balancer, node, serve):
    """No one of them takes another's look for none: the sums, of openings nearly alone, would raise an alarm."""
    serve()
    backends = [backend(balancer, n) for n in (1, 2, 3)]
    flow = Flood(balancer, "S")
    try:
        until(lambda: min(node.backend(one)["packets"] for one in backends) > 300000, seconds=60)
        flow.stop()
    finally:
        flow.close()
    assert len(silent_ones(node)) == 3
    for one in backends:
        ask_with_success(balancer, node, serve.vip, one)
    assert not silent_ones(node)
    with clients_of(balancer, serve.vip):
        said = silent_ones_of_many(node)
    assert said and not any(said)
    assert all(is_unanswered(node.backend(one)) for one in backends)
    assert len(read_rows(pathlib.Path("/run/weir", node.name, "looks"), "look")) == 3


def test_kinds_of_checks(balancer, node, serve, tmp_path):
    serve(f"check tcp port 80 {TIMES} via path")
    node.run()
    until(lambda: all_ok(node))
    serve(f'check https "/name" port 443 {TIMES} insecure via path')
    until(lambda: all_ok(node))
    argv = ["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file=",
            "--user=root", "--bind-interfaces", f"--listen-address={serve.vip}", "--address=/www.example.com/192.0.2.7"]
    enter = ["nsenter", f"--net=/run/netns/{balancer.netns('backend1')}", "--"]
    with subprocess.Popen([*enter, *argv]) as server:
        try:
            serve(f"check dns www.example.com port 53 {TIMES} via path", "keep 0%")
            until(lambda: "ok" not in {health(node)[backend(balancer, n)] for n in (2, 3)})
            assert health(node)[backend(balancer, 1)] == "ok"
        finally:
            server.kill()
    until(lambda: health(node)[backend(balancer, 1)].startswith("failing"))


def test_a_killed_agent_leaves_nothing(balancer, node, serve):
    """No device, no namespace; and answers are awaited no longer."""
    before = devices(balancer)
    serve(VIA)
    for _ in range(5):
        taken = reasons(node).get("service-answer", 0)
        agent = node.run()
        # Late answers to the one before are counted, too, and its health holds.
        until(lambda: enclaves(agent) and all_ok(node) and reasons(node)["service-answer"] > taken)
        assert devices(balancer) == before  # the one device is in a namespace of the agent
        mine, = enclaves(agent)
        os.kill(agent.pid, signal.SIGKILL)
        agent.process.wait()
        assert devices(balancer) == before
        until(lambda used=mine: not is_used(used))  # the kernel ends the namespace after the process
    time.sleep(1.5)
    taken = reasons(node)["service-answer"]
    # What such a check would be answered is dropped by the rule.
    dropped = reasons(node)["rule-drop"]
    forge_answers(balancer, serve.vip)
    until(lambda: reasons(node)["rule-drop"] > dropped)
    assert reasons(node)["service-answer"] == taken


def test_a_bypass_says_nothing_of_backends(balancer, node, serve):
    """No answer is taken then."""
    serve(VIA)
    agent = node.run()
    until(lambda: all_ok(node))
    node("bypass", "--for", "1m")
    until(lambda: "checks cannot be made, and change no state" in agent.said())
    time.sleep(1)
    assert all_ok(node)
    node("bypass", "--off")
    taken = reasons(node)["service-answer"]
    until(lambda: reasons(node)["service-answer"] > taken)
    assert all_ok(node)


def test_a_program_cannot(balancer, node, tmp_path):
    path = tmp_path / "web.weir"
    path.write_text(policy(balancer, (1,), 'check exec "/bin/true" via path'))
    done = node("check", path, check=False)
    assert done.returncode == 1
    assert "service 'web': a check by a program cannot go 'via path'" in done.stderr
