# SPDX-License-Identifier: GPL-2.0-only
"""What commands cost, counted in calls to the kernel: not more with more interfaces, never a wait."""
import collections
import re

import pytest

from labnet import run

BLOCKED = "203.0.113.10"
CALL = re.compile(r"^(?:\d+ +)?(\w+)\((\w+)?")
MANY = 12  # interfaces beside near0
FEW_CALLS = 60


def calls(weir, log, *args, status=0):
    """How often a command makes each system call; those of bpf() by their command, too."""
    done = run(["strace", "-f", "-qq", "-e", "signal=none", "-o", log, *weir.argv(*args)], check=False)
    assert done.returncode == status, done.stdout + done.stderr
    counted = collections.Counter()
    for line in log.read_text("ascii", errors="replace").splitlines():
        if found := CALL.match(line):
            counted[found[1]] += 1
            if found[1] == "bpf":
                counted[found[2]] += 1
    return counted


@pytest.fixture(name="cost")
def cost_of(on, tmp_path):
    return lambda *args, **options: calls(on, tmp_path / "log", *args, **options)


@pytest.fixture(name="more")
def more_interfaces(pair, on):
    """more(): attaches to MANY devices beside near0."""
    names = [f"more{number}" for number in range(MANY)]

    def attach():
        for number, name in enumerate(names):
            pair.link("add", name, "type", "veth", "peer", "name", f"peer{number}")
            pair.link("set", name, "up")
        on("attach", *names)

    yield attach
    on("detach", *names, check=False)
    for name in names:
        run(["ip", "-n", pair.near_netns, "link", "del", name], check=False)


def test_metrics_do_not_wait(cost):
    counted = cost("metrics")
    assert not counted["nanosleep"] + counted["clock_nanosleep"]
    assert cost("status")["clock_nanosleep"]  # which shows a rate


def test_a_ban_makes_few_calls(on, cost):
    on("block", "203.0.113.1")  # the first one makes a shard
    assert cost("block", BLOCKED)["bpf"] <= FEW_CALLS
    assert cost("unblock", BLOCKED)["bpf"] <= FEW_CALLS


CHANGES = [("block", BLOCKED), ("unblock", BLOCKED), ("block", "2001:db8:99::/48"), ("unblock", "2001:db8:99::/48")]


def test_as_many_calls_with_more_interfaces(on, cost, more):
    """A ban looks at all of them, and names them, all the same."""
    on("block", "203.0.113.1", "2001:db8:1::/48")
    few = [cost(*change) for change in CHANGES]
    more()
    many = [cost(*change) for change in CHANGES]
    for before, after in zip(few, many):
        assert after["bpf"] == before["bpf"]
        assert sum(after.values()) <= sum(before.values()) + MANY, (before, after)
    assert on("block", BLOCKED).stdout.count(" more") == MANY


def test_a_device_that_lost_the_program_is_named(pair, on, more):
    more()
    on.cut("more3")
    done = on("block", BLOCKED, check=False)
    assert done.returncode == 3 and "not attached to more3:" in done.stderr and " more3 " not in done.stdout


def test_a_device_that_was_renamed_is_known(pair, on, more):
    more()
    pair.link("set", "more3", "down")
    pair.link("set", "more3", "name", "other3")
    try:
        assert " other3 " in on("block", BLOCKED).stdout
    finally:
        pair.link("set", "other3", "name", "more3")
