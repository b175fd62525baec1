# SPDX-License-Identifier: GPL-2.0-only
"""Packets do not notice the agent: it is killed a hundred times under traffic, restarted, and run for long.

KILLS=100: how often; SOAK_S=10: seconds of the test that watches memory and descriptors.
"""

import contextlib
import itertools
import os
import random
import re
import socket
import threading
import time

import pytest
from balancerlab import apply_web, crowd_of, failed
from policylab import Policies
from test_balance_floods import slots

from labnet import Agent, run, socket_in, until

KILLS = int(os.environ.get("KILLS", "100"))
SOAK_S = float(os.environ.get("SOAK_S", "10"))
IDLE_S = 2
ONE, TWO = "10.78.2.1", "10.78.2.2"
PASSES, BY_RULE, BY_ENTRY = "198.51.100.1", "192.0.2.1", "203.0.113.7"


class Stream:
    """Numbered packets from a source that passes and from two that do not, until the end of the block."""

    def __init__(self, pair, pace=0.0005):
        self.pair, self.pace = pair, pace
        self.sent, self.got = 0, []
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.send), threading.Thread(target=self.receive)]

    def send(self):
        frames = {source: bytes(self.pair.udp(source, payload=b"stream ########")) for source in
                  (PASSES, BY_RULE, BY_ENTRY)}
        with socket_in(self.pair.far_netns, socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
            sock.bind((self.pair.far_device, 0))
            while not self.over.is_set():
                for frame in frames.values():
                    sock.send(frame.replace(b"stream ########", f"stream {self.sent:08}".encode()))
                self.sent += 1
                time.sleep(self.pace)

    def receive(self):
        with self.pair.sniff_near() as sniffer:
            self.threads[0].start()
            while not self.over.is_set():
                self.take(sniffer, 0.2)
            self.threads[0].join()
            self.take(sniffer, 1)

    def take(self, sniffer, wait):
        for data, sent in sniffer.frames(wait):
            number = re.search(rb"stream (\d{8})", data)
            if number and not sent:
                self.got.append((".".join(map(str, data[26:30])), int(number[1])))

    def __enter__(self):
        self.threads[1].start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.threads[1].join()


def kill_one(weir, again, *args):
    """Starts an agent and kills it: before it is ready, while it begins to work, or later."""
    agent = Agent(weir.argv("run", *args), {})
    weir.started.append(agent.process)
    if again % 4:
        agent.wait_for("READY=1")
    time.sleep(random.random() * (0.02, 0.0, 0.05, 0.2)[again % 4])
    agent.kill()


def test_killed_under_traffic(weir, tmp_path):
    apply = Policies(weir, tmp_path)
    apply(f"drop from {BY_RULE}")
    weir("block", BY_ENTRY)
    with Stream(weir.pair) as stream:
        for again in range(KILLS):
            if not again % 10:
                weir("block", f"203.0.113.{100 + again % 100}", "--for", "1s")
            kill_one(weir, again, *([apply.path] if again % 2 else []))
    print(f"{KILLS} agents killed, {stream.sent} packets of each source")
    assert stream.sent > KILLS * 10
    assert stream.got == [(PASSES, number) for number in range(stream.sent)]
    assert list(weir.entries()) == [BY_ENTRY]
    weir.run().stop()
    assert weir.json("status")["alarms"] == []


# Services


@pytest.fixture(name="node")
def served_node(node, tmp_path):
    apply_web(node, tmp_path, [1, 2, 3], f"idle {IDLE_S}s", "pins 65536")
    return node


def test_killed_while_slots_change(balancer, node):
    """The agent closes transitions and ends drains while it is killed; no connection notices."""
    with crowd_of(balancer, 60, 8 * 6000, 6000) as crowd:
        for again in range(KILLS // 5):
            if not again % 3:
                node("drain", TWO, "--for", "1s")
            kill_one(node, again)
        results = crowd.results()
    talked = [one for one in results if one["silent_s"] < IDLE_S]  # others may move, on a busy machine
    assert len(talked) > len(results) / 2, results
    assert not failed(talked), failed(talked)
    node.run()
    until(lambda: node.backend(TWO)["state"] == "up")
    assert node.json("status")["alarms"] == []


def settled(node):
    """Is no slot changing, nor one of those whose pins are still to be read?"""
    [service] = node.json("service")["services"]
    return service["slots_changing"] == service["slots_pins_only"] == 0


def test_a_restart_changes_no_slot(node):
    """Overrides, pins and slots are in the kernel; the agent only takes up their ends."""
    node.run().stop()
    node("drain", TWO)
    time.sleep(IDLE_S * 2 + 4)
    agent = node.run()
    until(lambda: settled(node))
    agent.stop()
    before = slots(node)
    for _ in range(5):
        agent = node.run()
        time.sleep(0.2)
        agent.stop()
        assert slots(node) == before
    assert node.backend(TWO)["slots"] == 0


def test_an_end_that_was_missed_is_taken_up(node):
    agent = node.run()
    node("drain", TWO, "--for", "2s")
    agent.kill()
    time.sleep(2.5)
    assert node.backend(TWO)["slots"] == 0
    node.run()
    until(lambda: node.backend(TWO)["slots"] > 4000, 2)


# Long runs


def busy(balancer, node, turn):
    """Something for each part of the agent."""
    netns = ["ip", "-n", balancer.netns("balancer1")]
    run([*netns, "neigh", "replace", ONE, "lladdr", f"02:00:00:00:00:{turn % 100:02}", "dev", "net0"])
    run([*netns, "neigh", "del", ONE, "dev", "net0"], check=False)
    run([*netns, "route", "replace", f"{ONE}/32", "dev", "net0", "mtu", 1400 + turn % 90])
    node("drain", TWO, "--for", "1s", "--volatile")
    node("block", f"192.0.2.{turn % 250}", "--for", "1s")
    with contextlib.suppress(AssertionError):
        run([*netns, "link", "add", "extra0", "type", "veth", "peer", "name", "extra1"])
        node("attach", "extra0")
        run([*netns, "link", "del", "extra0"])
        run([*netns, "link", "add", "extra0", "type", "veth", "peer", "name", "extra1"])
    time.sleep(0.2)
    node("detach", "extra0", check=False)
    run([*netns, "link", "del", "extra0"], check=False)


def at_rest(agent):
    """Descriptors and memory between two pieces of work."""
    time.sleep(1.5)
    seen = []
    for _ in range(20):
        seen.append((agent.descriptors(), agent.rss_kb()))
        time.sleep(0.02)
    return min(seen)


def test_memory_and_descriptors_stay(balancer, node):
    agent = node.run()
    end = time.monotonic() + SOAK_S
    first = None
    for turn in itertools.count():
        busy(balancer, node, turn)
        if turn == 5:
            first = at_rest(agent)
        if time.monotonic() > end and turn > 10:
            break
    run(["ip", "-n", balancer.netns("balancer1"), "route", "del", f"{ONE}/32"])
    last = at_rest(agent)
    print(f"{turn} turns in {SOAK_S:.0f} s: descriptors and KB {first}, then {last}")
    assert last[0] == first[0]
    assert last[1] < first[1] + 1024
    assert agent.process.poll() is None
    assert agent.stop() == 0
