# SPDX-License-Identifier: GPL-2.0-only
"""The end of a trial, by deadline and by rollback, where the trial had other next hops and more backends
than the previous policy: both share the backends table."""

import json
import socket
import time

import pytest
from balancerlab import crowd_of, failed, policy
from labnet import run
from statefile import read_rows

ONE, TWO = "10.78.2.1", "10.78.2.2"
LINES = ["idle 30s", "pins 65536"]
# Clients are on net0, backends on back0; they can also be reached by the router on net0.
BALANCER = {"mode": "ipip", "nics": 2, "backends": 2}


@pytest.fixture(name="node")
def node_without_routes(balancer, node):
    yield node
    for backend in ONE, TWO:
        run(["ip", "-n", balancer.netns("balancer1"), "route", "del", backend], check=False)


@pytest.fixture(name="apply")
def applying(balancer, node, tmp_path):
    """apply(BACKENDS, OPTION...): the service with these backends, and as many idle ones as `idle`."""

    def write(backends, idle=0, **more):
        path = tmp_path / "web.weir"
        lines = [f"backend 10.78.{3 + i // 200}.{1 + i % 200} weight 0" for i in range(idle)]
        path.write_text(policy(balancer, backends, *LINES, *lines, **more))
        return path

    def apply(backends, *options, **more):
        return node.json("apply", write(backends, **more), *options)

    apply.write = write
    return apply


def lead(balancer, backend, device):
    """Sets the route to a backend."""
    gateway = {"net0": "10.78.1.254", "back0": "10.78.2.254"}[device]
    run(["ip", "-n", balancer.netns("balancer1"), "route", "replace", backend, "via", gateway, "dev", device])


def expire(node):
    time.sleep(2.1)
    assert node.json("status")["trial_ms_left"] == 0


@pytest.mark.parametrize("end", ["deadline", "rollback"])
def test_another_way_found_by_a_trial(balancer, node, apply, end):
    lead(balancer, ONE, "net0")
    apply([1])
    assert balancer.answers(balancer.vip4)
    lead(balancer, ONE, "back0")
    apply([1], "--confirm=2s")
    assert balancer.answers(balancer.vip4)
    if end == "deadline":
        expire(node)
    else:
        node("rollback")
    assert balancer.answers(balancer.vip4) and balancer.answers(balancer.vip6)


def test_detach_after_a_trial_that_has_run_out(node, apply):
    """No client is connected: its slots do not prevent its removal, whichever command is first."""
    apply([1, 2])
    apply([1], "--confirm=2s")
    assert "trial" in node("status").stdout
    expire(node)
    assert "detached from net0" in node("detach").stdout


def test_downloads_of_a_backend_of_the_trial(balancer, node, apply):
    """It is on a device that the previous policy did not need. Its number is not reused as long as it is
    known."""
    lead(balancer, ONE, "net0")
    apply([1])
    apply([1, 2], "--confirm=20s", weights={1: 0})
    with crowd_of(balancer, 20, 24000, 6000) as crowd:
        node("rollback")
        assert {one["backend"] for one in node.service()["backends"]} == {ONE}
        apply([1], idle=250)
        apply([1], idle=3)
        apply([1], idle=200)
        results = crowd.results()
    assert not failed(results), failed(results)
    assert {one["backend"] for one in results} == {"backend2"}


def test_a_device_that_has_gone(balancer, node, apply):
    """A backend that was removed with its device, and that slots still name, does not block any policy."""
    here = ["ip", "-n", balancer.netns("balancer1")]
    run([*here, "link", "add", "gone0", "type", "veth", "peer", "gone1"])
    for words in (["link", "set", "gone0", "up"], ["link", "set", "gone1", "up"],
                  ["route", "add", "192.0.2.9", "dev", "gone0"],
                  ["neigh", "add", "192.0.2.9", "lladdr", "02:00:00:00:00:09", "dev", "gone0"],
                  ["route", "replace", TWO, "via", "192.0.2.9", "dev", "gone0"]):
        run([*here, *words])
    apply([1, 2])
    apply([1])
    run([*here, "link", "del", "gone0"])
    apply([1])
    apply([1], "--confirm=10s")
    node("rollback")
    assert balancer.answers(balancer.vip4)


def kept(node):
    """The overrides on disk."""
    path = node.state / "drains"
    if not path.exists():
        return []
    return [one["address"] for one in read_rows(path, "override")]


@pytest.mark.parametrize("end", ["confirm", "rollback", "deadline"])
def test_overrides_at_the_end_of_a_trial(node, apply, end):
    """A drain is removed with the line of its backend; in a trial, only when it is confirmed."""
    apply([1, 2])
    node("drain", TWO)
    apply([1], "--confirm=2s")
    assert kept(node) == [TWO]
    if end == "deadline":
        expire(node)
    else:
        node(end)
    apply([1, 2])
    confirmed = end == "confirm"
    assert kept(node) == ([] if confirmed else [TWO])
    backend = node.backend(TWO)
    assert backend["state"].split(",")[0] == ("up" if confirmed else "drain")
    assert (backend["slots"] > 0) == confirmed


def test_overrides_and_a_volatile_trial(node, apply):
    apply([1, 2])
    node("drain", TWO)
    apply([1], "--confirm=20s", "--volatile")
    node("confirm")
    assert kept(node) == [TWO]


def told(node, backend):
    """The state of a backend for the datapath: `state` in struct backend. 0: up, 1: it gets no new flows."""
    folder = max(node.bpffs.glob("gen/*"), key=lambda path: int(path.name))
    [row] = json.loads(run(["bpftool", "-j", "map", "dump", "pinned", folder / "backends"]).stdout)
    table = bytes(int(byte, 16) for byte in row["value"])
    elements = [table[at:at + 64] for at in range(0, len(table), 64)]
    return [one[57] for one in elements if one[16:20] == socket.inet_aton(backend)]


@pytest.mark.parametrize("end", ["deadline", "rollback"])
def test_who_gets_new_flows_after_a_trial(node, apply, end):
    apply([1, 2])
    assert told(node, TWO) == [0]
    apply([1, 2], "--confirm=2s", weights={2: 0})
    assert (told(node, ONE), told(node, TWO)) == ([0], [1])
    if end == "deadline":
        expire(node)
        node("service", "--refresh")
    else:
        node("rollback")
    assert (told(node, ONE), told(node, TWO)) == ([0], [0])
    node("weight", TWO, 0)
    node("service", "--refresh")
    assert told(node, TWO) == [1]


MORE = 253  # more than the table has room for, with two backends and the service


def test_no_room_for_a_trial(node, apply):
    apply([1, 2])
    said = node("apply", apply.write([1, 2], idle=MORE), "--confirm=20s", check=False)
    assert said.returncode == 3 and "apply it without --confirm" in said.stderr, said.stderr
    assert len(node.service()["backends"]) == 2
    apply([1, 2], "--confirm=20s", idle=MORE - 1)
    node("rollback")
    apply([1, 2], idle=MORE)
    apply([1, 2], "--confirm=20s", idle=2 * MORE)
    node("rollback")


def test_downloads_of_a_backend_among_many(balancer, node, apply):
    """The table is shared as well if it is larger."""
    apply([1], idle=300)
    apply([1, 2], "--confirm=20s", idle=700, weights={1: 0})
    with crowd_of(balancer, 20, 24000, 6000) as crowd:
        node("rollback")
        results = crowd.results()
    assert not failed(results), failed(results)
