# SPDX-License-Identifier: GPL-2.0-only
"""What time ends, ended by the agent without a command: entries, trials, overrides, transitions, holds."""

import subprocess
import time

import pytest
from balancerlab import apply_web, crowd_of, failed
from policylab import Policies, programs
from test_balance_floods import flood

from labnet import until

BALANCER = {"mode": "ipip"}
IDLE_S = 2
ONE, TWO = "10.78.2.1", "10.78.2.2"


def fill(weir):
    """Entries in the tables, expired ones too."""
    return sum(row["used"] for row in weir.json("status", "--limits")["limits"] if not row["table"].startswith("set"))


def commands(weir):
    """How often a command has written its name into the lock file."""
    return (weir.bpffs, subprocess.run(["stat", "-c", "%y", f"/run/weir/{weir.name}/lock"], check=True,
                                       capture_output=True, text=True).stdout)


# Entries


def test_expired_entries_are_removed(on):
    on.run()
    on("block", "192.0.2.1", "192.0.2.2", "2001:db8::7", "198.51.100.0/24", "--for", "2s")
    on("block", "192.0.2.9")
    assert fill(on) == 5
    until(lambda: fill(on) == 1)
    assert list(on.entries()) == ["192.0.2.9"]
    assert on.pair.free("192.0.2.1", "192.0.2.9") == [True, False]


def test_entries_that_expired_before_the_start(on):
    on("block", "192.0.2.1", "--for", "1s")
    time.sleep(1.5)
    assert fill(on) == 1
    on.run()
    until(lambda: fill(on) == 0)


def test_an_extended_entry_stays(on):
    on.run()
    on("block", "192.0.2.1", "--for", "2s")
    on("block", "192.0.2.1", "--for", "1h")
    on("block", "192.0.2.2", "--for", "1s")
    until(lambda: fill(on) == 1)
    time.sleep(1.5)
    assert list(on.entries()) == ["192.0.2.1"]


def test_many_entries_expire_at_once(on, tmp_path):
    """In several commits: none of them takes long."""
    on("detach")
    on("attach", "near0", "--max-entries", "100000")
    bans = tmp_path / "bans"
    bans.write_text("".join(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}\n" for n in range(30000)))
    on("block", "-f", bans, "--for", "2s")
    agent = on.run(WATCHDOG_USEC="200000")
    until(lambda: fill(on) == 0, 30)
    assert agent.process.poll() is None and on.json("status")["alarms"] == []


def test_nothing_due_takes_no_lock(on):
    """The deadline is known: until then the agent writes nothing."""
    on.run()
    on("block", "192.0.2.1", "--for", "1h")
    time.sleep(2)
    before = commands(on)
    time.sleep(3)
    assert commands(on) == before


def test_a_command_that_holds_the_lock_delays_it(on):
    on.run()
    on("block", "192.0.2.1", "--for", "1s")
    with subprocess.Popen(["flock", on.lock, "sleep", "4"]) as holder:
        time.sleep(3)
        assert on.json("status", "--limits")["alarms"] == []
        assert fill(on) == 1
        assert holder.wait() == 0
    until(lambda: fill(on) == 0)


# Trials


def test_the_end_of_a_trial_is_made_permanent(weir, tmp_path):
    apply = Policies(weir, tmp_path)
    apply("drop from 192.0.2.1")
    first, _ = programs(weir)
    agent = weir.run()
    apply("drop from 192.0.2.2", "--confirm=1s")
    assert programs(weir)[0] != first
    until(lambda: programs(weir)[0] == first)
    until(lambda: "the trial has expired: revision" in agent.said())
    assert weir.pair.free("192.0.2.1", "192.0.2.2") == [False, True]
    assert "no trial is running" in weir.fails(3, "confirm")


def test_the_end_of_a_trial_is_logged_once(weir_on, pair, weir, tmp_path):
    """Also beside the agent of another instance, and by the next agent no more."""
    apply, other = Policies(weir, tmp_path), weir_on(pair)
    apply("drop from 192.0.2.1")
    agent, beside = weir.run(), other.run()
    apply("drop from 192.0.2.2", "--confirm=1s")
    until(lambda: "the trial has expired: revision" in agent.said())
    weir("status")
    assert agent.stop() == 0
    after = weir.run()
    assert weir("block", "192.0.2.3").stderr == ""
    assert [one.said().count("has expired") for one in (agent, beside, after)] == [1, 0, 0]


def test_interfaces_on_trial_are_detached(weir):
    weir("attach", "near0", "--confirm=2s")
    agent = weir.run()
    until(lambda: not weir.pair.xdp_attached())
    until(lambda: not weir.bpffs.exists())
    until(lambda: "the trial of near0 has expired: detached" in agent.said())
    assert agent.process.poll() is None  # it waits for the next attach
    weir("attach", "near0", "--max-entries", "1000")
    weir("block", "192.0.2.1", "--for", "1s")
    until(lambda: fill(weir) == 0)


def test_a_confirmed_trial_stays(weir, tmp_path):
    apply = Policies(weir, tmp_path)
    weir("attach", "near0")
    agent = weir.run()
    apply("drop from 192.0.2.2", "--confirm=1s")
    weir("confirm")
    before = programs(weir)
    time.sleep(1.5)
    assert programs(weir) == before and "expired" not in agent.said()


# Services


@pytest.fixture(name="node")
def served_node(node, tmp_path):
    apply_web(node, tmp_path, [1, 2, 3], f"idle {IDLE_S}s", "pins 65536")
    return node


def test_a_drain_ends_in_time(balancer, node):
    agent = node.run()
    node("drain", TWO, "--for", "3s")
    began = time.monotonic()
    assert node.backend(TWO)["slots"] == 0
    until(lambda: node.backend(TWO)["state"] == "up")
    assert 1.5 < time.monotonic() - began < 4.5
    assert node.backend(TWO)["slots"] > 4000
    until(lambda: "weir: notice: the drain of 10.78.2.2 in web has ended\n" in agent.said())
    until(lambda: TWO not in (node.state / "drains").read_text())
    assert balancer.answers(balancer.vip4)


def test_transitions_are_closed(balancer, node):
    node.run()
    with crowd_of(balancer, 20, 12000, 6000) as crowd:
        node("weight", TWO, 3)
        assert node.service()["slots_changing"] > 1000
        results = crowd.results()
    assert not failed(results), failed(results)
    until(lambda: node.service()["slots_stable"] == node.service()["slots"], 3 * IDLE_S + 70)


def test_hold_rises_and_falls(balancer, node):
    """As test_ack_flood_while_the_ring_changes, where commands do that."""
    node.run()
    with crowd_of(balancer, 100, 6 * 6000, 6000) as crowd:
        with flood(node, "A") as end:  # which begins late on a busy machine, and slots change for as long as `idle`
            node("weight", "web", ONE, 4)
            until(lambda: node.service()["hold"] > 1, 3 * IDLE_S)
            end()
        results = crowd.results()
    assert not failed(results), failed(results)
    until(lambda: node.service()["hold"] == 1, 4 * IDLE_S)
