# SPDX-License-Identifier: GPL-2.0-only
"""Changes of the pool after a command that was killed or that saved nothing to disk."""

import contextlib
import fcntl
import re
import subprocess
import time

import pytest

from labnet import Pair, run, until
from policylab import Policies
from statefile import read_rows

ONE, TWO = Pair.far4, "10.77.0.99"
SERVICE = f"""service www {{
    vip 192.0.2.10
    proto tcp
    port 80
    mode ipip
    source 10.77.0.77
    backend {ONE}
    backend {TWO}
}}"""


@pytest.fixture(name="node")
def served(weir, tmp_path):
    Policies(weir, tmp_path)(SERVICE)
    return weir


def backends(node):
    return {one["backend"]: one for one in node.json("service")["services"][0]["backends"]}


def kept(node):
    path = node.state / "drains"
    if not path.exists():
        return []
    return [one["address"] for one in read_rows(path, "override")]


def test_a_weight_outlives_a_drain_for_a_time(node):
    node("weight", "www", ONE, 3)
    node("drain", ONE, "--for", "1s")
    time.sleep(2.1)
    node("undrain", TWO)
    assert (backends(node)[ONE]["state"], backends(node)[ONE]["weight"]) == ("up, weight override", 3)


def test_what_was_volatile_can_be_kept(node):
    node("drain", ONE, "--volatile")
    assert kept(node) == []
    assert node.json("drain", ONE)["changed"] == 0
    assert kept(node) == [ONE]


def test_what_is_kept_can_be_forgotten(node):
    node("drain", ONE)
    node("undrain", ONE, "--volatile")
    assert kept(node) == [ONE]
    assert node.json("undrain", ONE)["changed"] == 0
    assert kept(node) == []


def test_refresh_keeps_the_source_of_the_policy(node):
    done = node.json("service", "--refresh", status=3)  # one does not answer
    assert done["changed"] == 0


def test_the_same_policy_again_renews_next_hops_and_no_more(node, pair, tmp_path):
    path = tmp_path / "lab.weir"
    node("drain", TWO)
    revision = node.json("history")["current"]
    again = node.json("apply", path)
    assert (again["changed"], again["revision"]) == (False, revision)
    assert any("stays drained; " in text for text in again["warnings"])
    pair.near(["ip", "neigh", "replace", ONE, "lladdr", "02:77:00:00:00:07", "dev", "near0",
               "nud", "permanent"])
    try:
        assert node.json("apply", path, "--dry-run")["changed"]
        assert "1 next hop changed" in node("apply", path).stdout
        assert "02:77:00:00:00:07" in backends(node)[ONE]["next_hop"]
    finally:
        pair.near(["ip", "neigh", "del", ONE, "dev", "near0"])
    assert node.json("history")["current"] == revision


@pytest.mark.parametrize("name", ["balance", "kept-services", "kept-members", "services", "flows/www"])
def test_nothing_starts_afresh_without_an_object_in_bpffs(node, tmp_path, name):
    (node.bpffs / "gen" / "2" / name).unlink()
    for command in ["service"], ["drain", ONE], ["apply", tmp_path / "lab.weir"]:
        done = node(*command, check=False)
        assert done.returncode == 2 and re.search("(is|are) not in bpffs", done.stderr), done.stderr
        assert "detach --force" in done.stderr


def killed(node, count, *argv):
    """Killed when it enters its bpf call number `count`."""
    done = run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject=bpf:signal=KILL:when={count}",
                *node.argv(*argv)], check=False)
    return done.returncode == -9


def calls(node, log, *argv):
    run(["strace", "-f", "-qq", "-o", log, "-e", "trace=bpf", *node.argv(*argv)])
    return sum("bpf(" in line for line in log.read_text().splitlines())


@pytest.mark.parametrize("again, slots", [("drain", 0), ("undrain", 8000)])
def test_a_killed_drain_can_be_finished_or_taken_back(node, tmp_path, again, slots):
    last = calls(node, tmp_path / "log", "drain", ONE)
    node("undrain", ONE)
    deaths = 0
    for count in range(last - 12, last + 1):  # where less has changed, there are fewer calls
        deaths += killed(node, count, "drain", ONE)
        node(again, ONE)
        assert slots <= backends(node)[ONE]["slots"] <= slots + 200, f"killed at call {count}"
        assert kept(node) == ([ONE] if again == "drain" else [])
        node("undrain", ONE)
    assert deaths > 6


def is_free(node):
    with contextlib.suppress(BlockingIOError), node.locked(fcntl.LOCK_EX | fcntl.LOCK_NB):
        return True
    return False


def test_others_go_on_while_an_attach_asks_for_neighbours(node):
    """One backend does not answer: the command that waits for it does not hold the lock."""
    node("detach")
    with subprocess.Popen(node.argv("attach", "near0")) as attach:
        time.sleep(0.5)
        until(lambda: is_free(node))
        assert attach.poll() is None, "the command did not wait"
    assert attach.returncode == 0
    assert len(backends(node)) == 2
