# SPDX-License-Identifier: GPL-2.0-only
"""Drivers: the table in the documents, and programs that are attached and see no packets."""
import fcntl
import json
import os
import pathlib
import re
import struct
import subprocess
import threading
import time

import pytest

from labnet import CLONE_NEWNET, WEIR, Weir, libc, run

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "kernels.md"
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454ca, 2, 0x1000


def test_the_documents_have_the_table():
    rows = json.loads(run([WEIR, "-j", "doctor", "--drivers"]).stdout)["drivers"]
    table = KERNELS.read_text().split("### What is known of drivers")[1].split("\n| driver ")[1].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert cells == [list(row.values()) for row in rows]
    text = run([WEIR, "doctor", "--drivers"]).stdout
    assert [line.split()[0] for line in text.splitlines()[1:]] == [row["driver"].split()[0] for row in rows]


@pytest.fixture(name="steal")
def steal_program(pair, on):
    """steal(): the root program of near0 jumps to the policy of another instance, which counts elsewhere."""
    other = Weir(pair)
    pair.link("add", "other0", "type", "veth", "peer", "name", "other1")
    for name in "other0", "other1":
        pair.link("set", name, "up")

    def pinned(weir, name):
        return max(weir.bpffs.glob(f"gen/*/{name}"), key=lambda path: int(path.parent.name))

    def steal():
        other("attach", "other0")
        for name in "program", "general":
            here = pinned(on, name)
            here.unlink()
            run(["bpftool", "prog", "pin", "pinned", pinned(other, name), here])
        for slot in "01":
            run(["bpftool", "map", "update", "pinned", on.bpffs / "progs", "key", slot, "0", "0", "0", "value",
                 "pinned", pinned(on, "program")])

    yield steal
    other.remove()
    pair.link("del", "other0")


@pytest.fixture(name="stolen")
def stolen_program(on, steal):
    steal()
    return on


@pytest.fixture(name="traffic")
def traffic_from_far(pair):
    ping = subprocess.Popen(pair.enter(pair.far_netns) + ["ping", "-q", "-i", "0.005", "10.77.0.1"],
                            stdout=subprocess.DEVNULL)
    yield
    ping.terminate()
    ping.wait()


UNSEEN = "receives packets that Weir does not see: driver 'veth' does not run the program"
MEND = "weir detach near0, weir attach near0 --mode generic"


def test_a_program_that_does_not_run_is_an_alarm(stolen, traffic):
    done = stolen("status", check=False)
    assert done.returncode == 2 and f"alarm     'near0' {UNSEEN}" in done.stdout and MEND in done.stdout
    done = stolen("-j", "doctor", "near0", check=False)
    assert done.returncode == 2
    problems = [one for one in json.loads(done.stdout)["findings"] if one["level"] == "problem"]
    assert [(one["about"], one["mend"]) for one in problems] == [("near0", MEND)]
    assert problems[0]["text"].startswith(UNSEEN)
    for line in MEND.split(", "):
        stolen(*line.split()[1:])
    assert stolen("status").returncode == 0


def alarms_of_metrics(weir):
    """Of three runs some time apart."""
    found = []
    for _ in range(3):
        found.append(re.search(r"^weir_alarms\{.*\} (\d+)$", weir("metrics").stdout, re.M)[1])
        time.sleep(0.3)
    return found


def test_metrics_know_it_by_three_runs(stolen, traffic):
    assert alarms_of_metrics(stolen) == ["0", "0", "1"]
    for line in MEND.split(", "):
        stolen(*line.split()[1:])
    assert alarms_of_metrics(stolen) == ["0"] * 3


def test_metrics_of_a_program_that_runs(on, traffic):
    assert alarms_of_metrics(on) == ["0"] * 3


def test_a_program_that_runs_is_none(on, traffic):
    assert "not see" not in on("status").stdout
    assert "not see" not in on("doctor", "near0").stdout


def test_without_traffic_nothing_is_said(stolen):
    assert "not see" not in stolen("status").stdout


class Tap:
    """A tap device of near, up, into which frames are written: its driver, tun, is in no table."""

    def __init__(self, pair):
        self.pair = pair
        self.file = None
        self.stop = threading.Event()
        self.writer = threading.Thread(target=self.write)

    def make(self):
        with open(f"/run/netns/{self.pair.near_netns}", "rb") as there:
            assert not libc.setns(there.fileno(), CLONE_NEWNET)
        self.file = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
        fcntl.ioctl(self.file, TUNSETIFF, struct.pack("16sH14x", b"tap7", IFF_TAP | IFF_NO_PI))

    def __enter__(self):
        maker = threading.Thread(target=self.make)  # the only one that enters the namespace
        maker.start()
        maker.join()
        self.pair.link("set", "tap7", "up")
        self.writer.start()
        return self

    def write(self):
        while not self.stop.is_set():
            os.write(self.file, b"\xff" * 6 + b"\2\0\0\0\0\7" + b"\x88\xb5" + bytes(46))
            time.sleep(0.002)

    def __exit__(self, *_):
        self.stop.set()
        self.writer.join()
        os.close(self.file)


def test_attach_looks_at_a_driver_that_is_not_tested(pair, on):
    with Tap(pair):
        assert "not see" not in on("attach", "tap7").stderr


def test_attach_warns_of_a_driver_that_is_not_tested(pair, stolen):
    with Tap(pair):
        done = stolen("attach", "tap7")
        assert "warning: 'tap7' receives packets that Weir does not see: driver 'tun' does not run" in done.stderr
        assert "weir detach tap7, weir attach tap7 --mode generic" in done.stderr
        assert "attached to tap7, native mode" in done.stdout


def test_attach_does_not_wait_long_without_traffic(pair, on):
    pair.near(["ip", "tuntap", "add", "tap8", "mode", "tap"])
    try:
        begin = time.monotonic()
        on("attach", "tap8")
        assert time.monotonic() - begin < 3
    finally:
        pair.near(["ip", "link", "del", "tap8"])


def test_apply_warns_too(pair, on, steal, tmp_path):
    policy = tmp_path / "tap.weir"
    policy.write_text("interface near0\ninterface tap7 optional\ndefault pass\n")
    on("apply", policy)
    steal()
    with Tap(pair):
        done = on("apply", policy)
        assert "unchanged" in done.stdout and "attached to tap7" in done.stdout
        assert "warning: 'tap7' receives packets that Weir does not see: driver 'tun'" in done.stderr


def test_forced_rules_with_vlan_are_warned_about(pair, on, tmp_path):
    """The peer, in the same network namespace, leaves the tag of a frame beside it."""
    policy = tmp_path / "vlan.weir"
    policy.write_text("interface tagged0\n\"seven\" drop vlan 7\n")
    pair.link("add", "tagged0", "type", "veth", "peer", "name", "tagged1")
    try:
        assert "ethtool -K tagged1 txvlan off" in on.fails(3, "apply", policy)
        warning = ("warning: 'tagged0': VLAN tags are removed before XDP sees the packet: rules with 'vlan' do not match "
                   "(ethtool -K tagged1 txvlan off)")
        assert warning in on("apply", "--force", policy).stderr
        pair.near(["ethtool", "-K", "tagged1", "txvlan", "off"])
        assert "VLAN" not in on("apply", "--force", policy).stderr
    finally:
        pair.link("del", "tagged0")
