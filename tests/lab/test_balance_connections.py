# SPDX-License-Identifier: GPL-2.0-only
"""Connections do not break while the pool changes: slow downloads run through every kind of change.

`make test` uses a hundred downloads and an `idle` of 2 s. `make connections` uses five hundred longer ones,
with an `idle` of 20 s, and changes the pool faster than that.
"""

import contextlib
import os
import random
import signal
import subprocess
import time

import pytest
from balancerlab import FULL, crowd_of, failed, policy
from labnet import PATIENCE, run

COUNT, SECONDS, RATE = (500, 50, 6000) if FULL else (100, 6 * PATIENCE, 6000)
IDLE_S = 20 if FULL else 2
SHORT_S = 2
LONGEST_S, NEWCOMERS_S = 200, 20 if FULL else 10
SEED = int(os.environ.get("SEED", "17"))
LIVE, SPARE = [1, 2, 3, 4], 5
BALANCER = {"backends": 5}


@pytest.fixture(name="apply")
def applying(balancer, node, tmp_path):
    """apply(BACKENDS, OPTION...): the service with these backends; idle_s, weights."""

    def write(backends, idle_s=IDLE_S, **options):
        path = tmp_path / "web.weir"
        path.write_text(policy(balancer, backends, f"idle {idle_s}s", "pins 65536", **options))
        return path

    def apply(backends, *options, idle_s=IDLE_S, **more):
        return node.json("apply", write(backends, idle_s, **more), *options)

    apply.write = write
    return apply


def address(number):
    return f"10.78.2.{number}"


@contextlib.contextmanager
def downloads(balancer, node, dead=None):
    """Downloads that must all complete after the body has run. Only downloads of a dead backend may fail,
    and newcomers that met it. Yields a function that examines the pins."""
    start = time.monotonic()
    most = [0]
    with crowd_of(balancer, COUNT, SECONDS * RATE, RATE, LONGEST_S, LONGEST_S * NEWCOMERS_S) as crowd:
        yield lambda: most.append(node.pinned())
        changed = time.monotonic() - start
        most.append(node.pinned())
        results = crowd.results()
    old = [one for one in results if not one["newcomer"]]
    print(f"\n{COUNT} downloads in {time.monotonic() - start:.0f} s, changes for {changed:.0f} s, "
          f"{len(results) - len(old)} newcomers; pins at most {max(most)}, full tracking "
          f"{len(results)} ({COUNT} at any time)")
    assert changed < SECONDS + 5, "downloads ended before the changes"
    if not dead:
        assert not failed(results), failed(results)
        return
    ended = failed(old)
    print(f"ended {sum(ended.values())} of {sum(one['backend'] == dead for one in old)} of {dead}")
    assert {backend for backend, _ in ended} == {dead}, ended
    assert {backend for backend, _ in failed(results)} <= {dead, None}, failed(results)


def stable_without_pins(node, idle_s):
    """Waits one idle after the last change, then runs a command that tidies."""
    node("service", "--refresh")  # expired by age
    time.sleep(idle_s + 5)  # pins count ticks of a second and live two ticks longer
    node("service", "--refresh")
    service = node.service()
    assert service["slots_stable"] == service["slots"], service
    assert node.pinned() == 0


def pause(seconds, short):
    time.sleep(seconds if FULL else short)


def test_backends_come_go_and_are_weighed(balancer, node, apply):
    apply(LIVE)
    with downloads(balancer, node) as look:
        apply([*LIVE, SPARE])
        look()
        pause(2, 0.3)
        node("drain", address(2))
        look()
        weights = random.Random(SEED)
        for _ in range(50):  # faster than idle, in total
            node("weight", "web", address(weights.choice(LIVE)), weights.randrange(1, 9))
            look()
            pause(0.3, 0.01)
        node("undrain", address(2))
        apply([1, 2, 3, SPARE])  # backend 4 is removed
        look()
    if FULL:
        apply([1, 2, 3, SPARE], idle_s=SHORT_S)
    stable_without_pins(node, SHORT_S)


def test_false_alarm_and_a_dead_backend(balancer, node, apply):
    """A backend drained by mistake has lost nothing when it is back. When a backend dies, only its
    connections break."""
    apply(LIVE)
    link = ["ip", "-n", balancer.netns("router"), "link", "set", "backend2"]
    try:
        with downloads(balancer, node, dead="backend2") as look:
            node("drain", address(1))
            look()
            pause(10, 1)
            node("undrain", address(1))
            look()
            run([*link, "down"])
            balancer.kill_web("backend2")
            pause(3, 0.5)
            node("backend", "down", address(2))
            look()
            assert_newcomers_fare_well(balancer)
            pause(5, 0.3)
            run([*link, "up"])
            balancer.start_web("backend2")
            node("backend", "up", address(2))
            assert_newcomers_fare_well(balancer)
            look()
    finally:
        run([*link, "up"])


def assert_newcomers_fare_well(balancer, count=100):
    with crowd_of(balancer, 0, 1, 1, 1, count) as newcomers:
        results = newcomers.results(newcomers=True)
    assert len(results) == count and not failed(results), failed(results)


def test_commands_while_a_backend_is_silent(balancer, node, apply):
    """A backend whose neighbour entry is gone and that does not answer for a while has not moved: no command
    removes its next hop."""
    apply(LIVE)
    link = ["ip", "-n", balancer.netns("router"), "link", "set", "backend2"]
    try:
        with downloads(balancer, node) as look:
            run([*link, "down"])
            run(["ip", "-n", balancer.netns("balancer1"), "neigh", "flush", "to", address(2)])
            said = apply(LIVE)["warnings"]
            assert any(address(2) in text for text in said), said
            said = node.json("service", "--refresh", status=3)["warnings"]
            assert any(address(2) in text for text in said), said
            look()
            run([*link, "up"])
    finally:
        run([*link, "up"])


KILLS = 6


def test_killed_commands(balancer, node, apply, tmp_path):
    """Every command that changes the pool is killed at any point, repeatedly."""
    apply(LIVE)
    more = tmp_path / "more.weir"
    more.write_text(policy(balancer, [*LIVE, SPARE], f"idle {IDLE_S}s", "pins 65536"))
    less = tmp_path / "less.weir"
    less.write_text(policy(balancer, LIVE, f"idle {IDLE_S}s", "pins 65536"))
    dice = random.Random(SEED)
    end = time.monotonic() + (SECONDS - 10 if FULL else SECONDS / 2)
    killed = done = 0
    with downloads(balancer, node) as look:
        while time.monotonic() < end or (killed < KILLS and time.monotonic() < end + SECONDS / 3):
            command = dice.choice([
                ("apply", more), ("apply", less), ("drain", address(dice.choice(LIVE))),
                ("undrain", address(dice.choice(LIVE))), ("service", "--refresh"),
                ("weight", "web", address(dice.choice(LIVE)), dice.randrange(1, 5)),
                ("apply", more, "--confirm=1s"), ("rollback",),
            ])
            with subprocess.Popen(node.argv(*command), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as process:
                time.sleep(dice.random() * 0.15)
                if process.poll() is None:
                    process.kill()
            killed += process.returncode == -signal.SIGKILL
            done += process.returncode != -signal.SIGKILL
            look()
    print(f"{killed} commands killed, {done} ended before")
    assert killed >= KILLS
    apply(LIVE)


def test_order_trial_and_rollback(balancer, node, apply):
    idle_s = max(IDLE_S, 4)  # a trial must not be longer
    apply(LIVE, idle_s=idle_s)
    with downloads(balancer, node) as look:
        apply(LIVE[::-1], idle_s=idle_s)
        assert node.service()["slots_changing"] == 0
        apply([1, 2, SPARE], "--confirm=3s" if FULL else "--confirm=1s", idle_s=idle_s)
        look()
        pause(5, 1.3)  # the trial expires
        node("service", "--refresh")
        assert len(node.service()["backends"]) == 4
        look()
        apply([2, 3, SPARE], f"--confirm={idle_s}s", idle_s=idle_s)
        pause(2, 0.3)
        node("rollback")
        look()
        apply([1, 2, 3, SPARE], f"--confirm={idle_s}s", idle_s=idle_s)
        node("confirm")
        pause(2, 0.3)
        node("rollback", node.json("history")["revisions"][1]["revision"])
        look()
