# SPDX-License-Identifier: GPL-2.0-only
"""keepalived beside Weir, configured as in docs/balancer.md: VRRP moves the next hop of the VIPs between two balancers,
and connections continue, since both balancers have the same ring."""

import contextlib
import json
import re
import shutil
import subprocess
import time

import pytest
from balancerlab import crowd_of, failed, policy, running_node

from labnet import ROOT, WEIR, until

pytestmark = pytest.mark.skipif(not shutil.which("keepalived"), reason="no keepalived")
BALANCER = {"mode": "dr", "backends": 3, "nodes": 2}
ADDRESS, DEVICE = "10.78.2.250", "net0"
VIA = 'check http "/name" port 80 every 300ms timeout 200ms rise 2 fall 2 via path'
COUNT, SECONDS, RATE = 60, 7, 6000


def documented():
    """The configuration of the manual."""
    text = (ROOT / "docs/balancer.md").read_text(encoding="utf-8")
    return re.search(r"```keepalived\n(.*?)```", text, re.DOTALL)[1]


class Keepalived:
    def __init__(self, node, number, folder):
        self.folder = folder / f"keepalived-{number}"
        self.folder.mkdir()
        self.netns = node.lab.netns(f"balancer{number}")
        config = documented()
        for old, new in {"192.0.2.250/24": f"{ADDRESS}/24", "eth0": DEVICE, "/usr/sbin/weir": f"{WEIR} -n {node.name}",
                         "priority 150": f"priority {160 - 10 * number}"}.items():
            assert old in config, old
            config = config.replace(old, new)
        (self.folder / "conf").write_text(config)
        self.process = None

    def start(self):
        files = [f"--{word}={self.folder / name}" for word, name in (
            ("use-file", "conf"), ("pid", "pid"), ("vrrp_pid", "vrrp"))]
        argv = ["nsenter", f"--net=/run/netns/{self.netns}", "--", "keepalived", "--vrrp", "--dont-fork", "--log-console",
                "--log-detail", *files]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log)  # pylint: disable=consider-using-with

    def check(self):
        """Unknown words would be ignored."""
        argv = ["nsenter", f"--net=/run/netns/{self.netns}", "--", "keepalived", "--vrrp", "--log-console",
                f"--config-test={self.folder / 'test'}", f"--use-file={self.folder / 'conf'}"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        said = (self.folder / "test").read_text(encoding="utf-8")
        assert done.returncode == 0 and not said, said + done.stderr

    def said(self):
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def stop(self):
        """As systemctl stop: the other one hears it."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=10)


@pytest.fixture(name="nodes")
def two_nodes(balancer, tmp_path):
    path = tmp_path / "web.weir"
    path.write_text(policy(balancer, (1, 2, 3), "idle 20s", "pins 65536", VIA))
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(running_node(balancer, f"balancer{n}")) for n in (1, 2)]
        for node in nodes:
            node("apply", path)
            node.run()
        yield nodes


@pytest.fixture(name="pair")
def two_keepaliveds(balancer, nodes, tmp_path):
    """The address is on the first balancer, and the router sends the VIPs there."""
    pair = [Keepalived(node, n + 1, tmp_path) for n, node in enumerate(nodes)]
    router = ["ip", "-n", balancer.netns("router"), "route", "replace"]
    try:
        for one in pair:
            one.check()
            one.start()
        until(lambda: holders(balancer) == ["balancer1"], what="the address of VRRP")
        for node in nodes:
            until(lambda node=node: all(one.get("health") == "ok" for one in node.service()["backends"]))
        subprocess.run([*router, f"{balancer.vip4}/32", "via", ADDRESS], check=True)
        assert balancer.answers(balancer.vip4)
        yield pair
    finally:
        for one in pair:
            one.stop()
        balancer.route("reset")


def holders(balancer):
    """The balancers that have the address."""
    found = []
    for host in ("balancer1", "balancer2"):
        shown = json.loads(balancer.on(host, ["ip", "-j", "-4", "address", "show", DEVICE]).stdout)
        if any(each["local"] == ADDRESS for each in shown[0]["addr_info"]):
            found.append(host)
    return found


def packets(node):
    return node.service()["packets"]


def clients(balancer):
    """Downloads that last longer than a move, and newcomers."""
    return crowd_of(balancer, COUNT, SECONDS * RATE, RATE, 60, 400, vips=[balancer.vip4])


def moved(balancer, nodes, to, began):
    """Seconds until the address is only on this balancer; then all packets go there."""
    until(lambda: holders(balancer) == [f"balancer{to}"], 15, "the move")
    took = time.monotonic() - began
    before = packets(nodes[to - 1])
    until(lambda: packets(nodes[to - 1]) > before, what="packets on the other balancer")
    return took


def test_the_rings_are_the_same(nodes):
    assert nodes[0].service()["fingerprint"] == nodes[1].service()["fingerprint"]


def test_a_planned_move_and_back(balancer, nodes, pair):
    with clients(balancer) as crowd:
        time.sleep(1)
        began = time.monotonic()
        pair[0].process.terminate()
        there = moved(balancer, nodes, 2, began)
        pair[0].stop()
        began = time.monotonic()
        pair[0].start()
        back = moved(balancer, nodes, 1, began)
        results = crowd.results()
    print(f"moved in {there:.2f} s, back in {back:.2f} s; {len(results)} connections, {sum(failed(results).values())} lost")
    assert len(results) > COUNT and not failed(results), failed(results)


def test_without_weir_a_balancer_gives_the_address_away(balancer, nodes, pair):
    """The script of the manual fails where Weir is not attached. Health of backends does not matter to it."""
    assert pair
    balancer.kill_web("backend3")
    try:
        until(lambda: "failing" in [one["state"] for one in nodes[0].service()["backends"]])
        time.sleep(1.5)  # longer than the script waits
        assert holders(balancer) == ["balancer1"]
    finally:
        balancer.start_web("backend3")
    until(lambda: all(one["state"] == "up" for node in nodes for one in node.service()["backends"]))
    with clients(balancer) as crowd:
        time.sleep(1)
        began = time.monotonic()
        nodes[0]("detach")
        took = moved(balancer, nodes, 2, began)
        results = crowd.results()
    print(f"moved in {took:.2f} s; {len(results)} connections, {sum(failed(results).values())} lost")
    assert not failed(results), failed(results)
    assert "Entering FAULT STATE" in pair[0].said()


def test_a_balancer_that_dies(balancer, nodes, pair):
    """Its link is cut: the other hears no advertisement any more."""
    assert pair
    cut = ["ip", "-n", balancer.netns("router"), "link", "set", "balancer1"]
    with clients(balancer) as crowd:
        time.sleep(1)
        began = time.monotonic()
        subprocess.run([*cut, "down"], check=True)
        try:
            until(lambda: "balancer2" in holders(balancer), 15, "the move")
            took = time.monotonic() - began
            before = packets(nodes[1])
            until(lambda: packets(nodes[1]) > before)
            results = crowd.results()
        finally:
            subprocess.run([*cut, "up"], check=True)
    print(f"moved in {took:.2f} s; {len(results)} connections, {sum(failed(results).values())} lost")
    assert not failed(results), failed(results)


def test_its_checker_needs_ipvs(balancer, tmp_path):
    """keepalived's own checks of servers belong to IPVS: without that in the kernel they do not run at all."""
    if not subprocess.run(["modprobe", "ip_vs"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel has IPVS: tests/vm/keepalived compares the checks")
    config = tmp_path / "conf"
    config.write_text(f"virtual_server {balancer.vip4} 80 {{\n delay_loop 1\n lvs_sched rr\n lvs_method DR\n protocol TCP\n"
                      " real_server 10.78.2.1 80 {\n  TCP_CHECK {\n   connect_timeout 1\n  }\n }\n}\n")
    argv = ["keepalived", "--check", "--dont-fork", "--log-console", f"--use-file={config}", f"--pid={tmp_path}/pid",
            f"--checkers_pid={tmp_path}/checkers"]
    done = balancer.on("balancer1", ["timeout", "20", *argv], check=False)
    said = done.stdout + done.stderr
    assert "Can't initialize ipvs" in said and "exited with permanent error" in said, said
