# SPDX-License-Identifier: GPL-2.0-only
"""Checks via path: probes of the agent that take the way of a client's packets."""

import contextlib
import os
import pathlib
import signal
import subprocess
import time

import pytest
from balancerlab import policy, running_balancer, running_node
from policylab import reasons
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from labnet import WEIR, run, until

TIMES = "every 300ms timeout 200ms rise 2 fall 2"
DIRECT = f'check http "/name" port 80 {TIMES}'
VIA = f"{DIRECT} via path"
# Answers to direct checks pass, nothing from the VIP does.
STRICT = "default drop\ndrop from {vip}\npass to {vip}\npass from 10.78.2.0/24, fd78:2::/64\n"


def backend(balancer, number):
    return f"fd78:2::{number}" if "--v6" in balancer.options else f"10.78.2.{number}"


@pytest.fixture(scope="module", name="balancer", params=["dr", "ipip", "gue", "ipip-v6", "gue-v6"])
def shared_lab(request):
    mode, *v6 = request.param.split("-")
    with running_balancer(mode=mode, **({"v6": True} if v6 else {})) as lab:
        yield lab


@pytest.fixture(name="node")
def empty_node(balancer):
    with running_node(balancer) as node:
        yield node


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
    """The server answers under the address of its host alone."""
    length = 128 if ":" in vip else 32
    balancer.on(host, ["ip", "address", "del", f"{vip}/{length}", "dev", "lo"])
    try:
        yield
    finally:
        options = ["nodad"] if ":" in vip else []
        balancer.on(host, ["ip", "address", "add", f"{vip}/{length}", "dev", "lo", *options])


def devices(balancer):
    return run(["ip", "-o", "-n", balancer.netns("balancer1"), "link"]).stdout.count("\n")


def enclave(agent):
    """The namespace that the agent has open and is not in."""
    found = set()
    for one in pathlib.Path(f"/proc/{agent.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(one))
    found = {one for one in found if one.startswith("net:[")} - {os.readlink(f"/proc/{agent.pid}/ns/net")}
    assert len(found) == 1, found
    return found.pop()


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
    """By a check via path alone. Those that are well stay so, whatever rules and rp_filter say."""
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


def test_a_tunnel_without_end_is_found(balancer, node, serve):
    if "dr" in balancer.options:
        pytest.skip("no tunnel")
    serve(VIA)
    node.run()
    until(lambda: all_ok(node))
    decap = [WEIR, "-N", balancer.netns("backend3"), "decap", "net0"]
    run([*decap, "--off"])
    try:
        until(lambda: health(node)[backend(balancer, 3)].endswith("no answer within 200ms"))
        assert {health(node)[backend(balancer, n)] for n in (1, 2)} == {"ok"}
    finally:
        run([*decap, "--from", "10.78.0.0/16,fd78::/16"])
    until(lambda: all_ok(node))


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
        until(lambda: all_ok(node) and reasons(node)["service-answer"] > taken)
        assert devices(balancer) == before  # the one device is in a namespace of the agent
        mine = enclave(agent)
        os.kill(agent.pid, signal.SIGKILL)
        agent.process.wait()
        assert devices(balancer) == before and not is_used(mine)
    time.sleep(1.5)
    taken = reasons(node)["service-answer"]
    # What such a check would be answered is dropped by the rule.
    dropped = reasons(node)["rule-drop"]
    forge_answers(balancer, serve.vip)
    until(lambda: reasons(node)["rule-drop"] > dropped)
    assert reasons(node)["service-answer"] == taken


def test_a_program_cannot(balancer, node, tmp_path):
    path = tmp_path / "web.weir"
    path.write_text(policy(balancer, (1,), 'check exec "/bin/true" via path'))
    done = node("check", path, check=False)
    assert done.returncode == 1
    assert "service 'web': a check by a program cannot go 'via path'" in done.stderr
