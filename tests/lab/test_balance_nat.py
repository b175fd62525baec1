# SPDX-License-Identifier: GPL-2.0-only
"""Connections through nat and fullnat do not break while the pool changes, in native and generic mode, for
both families.

`make connections MODE=nat` and `MODE=fullnat` use five hundred longer downloads and twenty thousand short
connections, fifty changes and ten applies."""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import time

import pytest
from balancerlab import FULL, Flood, crowd_of, failed, running_balancer, running_node, transfers
from labnet import PATIENCE, run

MODES = [os.environ["MODE"]] if os.environ.get("MODE") else ["nat", "fullnat"]
COUNT, SECONDS, RATE = (500, 50, 6000) if FULL else (60, 6 * PATIENCE, 6000)
NEWCOMERS_S = 450 if FULL else 20
CHANGES, APPLIES, KILLS = (50, 10, 10) if FULL else (10, 3, 4)
LIVE, SPARE = [1, 2, 3, 4], 5
PREFIXES = {"web": "10.78.2.", "web6": "fd78:2::"}
SOURCES = {"web": "10.78.3.", "web6": "fd78:3::"}
FIRST, LAST = 201, 206  # numbers of sources
dice = random.Random(int(os.environ.get("SEED", "23")))


def service(lab, name, backends, blocks=(FIRST,)):
    """blocks: numbers of sources; in nat, as many blocks of connections."""
    body = [f"vip {lab.vip6 if name == 'web6' else lab.vip4}", "proto tcp, udp", "port 7, 80, 443",
            f"mode {lab.mode}", "idle 20s"]
    if lab.mode == "fullnat":
        body += [f"source {', '.join(f'{SOURCES[name]}{n}' for n in blocks)}"]
    else:
        body += [f"connections {25_000 * len(blocks)}"]
    body += [f"backend {PREFIXES[name]}{n}" for n in backends]
    return f"service {name} {{\n" + "\n".join(f"\t{line}" for line in body) + "\n}\n"


def policy(lab, backends, order=("web", "web6"), **options):
    services = "".join(service(lab, name, backends, **options) for name in order)
    return f'interface net0\nseed "lab"\n{services}'


@pytest.fixture(name="lab", scope="module", params=MODES)
def labs(request):
    with running_balancer(backends=5, mode=request.param) as lab:
        lab.mode = request.param
        if lab.mode == "fullnat":
            add_sources(lab)
        yield lab


def add_sources(lab):
    for number in range(FIRST + 1, LAST + 1):
        for prefix, length, via in (("10.78.3.", 32, "10.78.1.201"), ("fd78:3::", 128, "fd78:1::201")):
            source = f"{prefix}{number}/{length}"
            nodad = ["nodad"] * (length == 128)
            run(["ip", "-n", lab.netns("balancer1"), "address", "add", source, "dev", "lo", *nodad])
            run(["ip", "-n", lab.netns("router"), "route", "add", source, "via", via])


@pytest.fixture(name="node", params=["native", "generic"])
def nodes(lab, request):
    with running_node(lab) as node:
        node("attach", "net0", "--mode", request.param)
        yield node


@pytest.fixture(name="native")
def native_node(lab):
    with running_node(lab) as node:
        yield node


@pytest.fixture(name="write")
def writing(lab, tmp_path):
    """write(BACKENDS, order=SERVICES): a policy file."""
    numbers = itertools.count()

    def write(backends, **options):
        path = tmp_path / f"{next(numbers)}.weir"
        path.write_text(policy(lab, backends, **options))
        return path

    return write


@contextlib.contextmanager
def downloads(lab, seconds=SECONDS, newcomers=NEWCOMERS_S):
    """Downloads and short connections, all of which must succeed after the body has run."""
    begun = time.monotonic()
    with crowd_of(lab, COUNT, seconds * RATE, RATE, 200, 200 * newcomers) as crowd:
        yield
        changed = time.monotonic() - begun
        results = crowd.results()
    print(f"\n{COUNT} downloads, {len(results) - COUNT} short connections, changes for {changed:.0f} s")
    assert changed < seconds + 5, "downloads ended before the changes"
    assert not failed(results), failed(results)


def backend(name, number):
    return f"{PREFIXES[name]}{number}"


def change_at_random(node, number):
    name = dice.choice(["web", "web6"])
    if number % 3 == 0:
        node("drain", name, backend(name, dice.choice(LIVE[1:])))
    elif number % 3 == 1:
        node("weight", name, backend(name, dice.choice(LIVE)), dice.randrange(1, 9))
    else:
        for each in LIVE[1:]:
            node("undrain", name, backend(name, each), check=False)


def kill_commands(node, write, number):
    """Commands that are killed at any point; returns how many were."""
    more, less = write([*LIVE, SPARE]), write(LIVE)
    killed = tries = 0
    while killed < number and tries < 20 * number:
        tries += 1
        command = dice.choice([
            ("apply", more), ("apply", less, "--confirm=1s"), ("rollback",), ("service", "--tidy"),
            ("weight", "web", backend("web", 1), dice.randrange(1, 5)),
            ("drain", "web6", backend("web6", 2)), ("undrain", "web6", backend("web6", 2)),
        ])
        with subprocess.Popen(node.argv(*command), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            time.sleep(dice.random() * 0.15)
            if process.poll() is None:
                process.kill()
        killed += process.returncode == -signal.SIGKILL
    return killed


def test_traffic_of_each_kind(lab, node, write, tmp_path):
    node("apply", write(LIVE))
    for vip in lab.vips:
        got = {lab.curl(vip, "/name").strip() for _ in range(20)}
        assert got <= set(lab.backends) and len(got) > 1
        assert lab.udp(vip, 7, b"echo") == b"echo"
    transfers(lab, tmp_path)
    for name in ("web", "web6"):
        one = node.service(name)
        assert not any(drop["packets"] for drop in one["drops"]), one["drops"]


def test_the_pool_changes(lab, node, write):
    node("apply", write(LIVE))
    with downloads(lab):
        for number in range(CHANGES):
            change_at_random(node, number)
            time.sleep(0.8 if FULL else 0)
        for number in range(APPLIES):
            node("apply", write([*LIVE, SPARE][number % 2:], order=("web6", "web")[::1 - number % 2 * 2]))
        assert kill_commands(node, write, KILLS) == KILLS
        node("apply", write(LIVE))


def test_blocks_change(lab, native, write):
    """Sources, or the number of connections, while connections are in the former blocks."""
    native("apply", write(LIVE))
    with downloads(lab, 200 if FULL else 8 * PATIENCE, newcomers=5):
        for _ in range(200 if FULL else 6):
            blocks = dice.sample(range(FIRST, LAST + 1), dice.randrange(1, 4))
            native("apply", write(LIVE, blocks=blocks))
            native("service", "--tidy")


def test_a_trial_that_removes_a_vip(lab, native, write, tmp_path):
    """Its connections are there again after the way back."""
    native("apply", write(LIVE))
    without = tmp_path / "without.weir"
    without.write_text(f'interface net0\nseed "lab"\n{service(lab, "web", LIVE)}')
    with downloads(lab, newcomers=0):
        native("apply", without, "--confirm=1s")
        time.sleep(1.5)
        native("service", "--tidy")
        native("apply", without, "--confirm=10s")
        native("rollback")


def test_a_flood_of_syns(lab, native, write):
    """Real clients connect, and open connections continue."""
    native("apply", write(LIVE))
    seconds = 60 if FULL else 4
    with downloads(lab, seconds + 4, newcomers=2):
        flood = Flood(lab, "S", rate=1_000_000 if FULL else 200_000)
        try:
            time.sleep(seconds)
            sent, took = flood.stop()
        finally:
            flood.close()
    print(f"{sent / took:,.0f} SYNs a second for {took:.0f} s")
    assert sent / took > (500_000 if FULL else 100_000)
