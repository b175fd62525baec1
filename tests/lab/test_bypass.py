# SPDX-License-Identifier: GPL-2.0-only
"""weir bypass: all packets pass for a limited time, and the kernel ends it."""

import os
import subprocess
import time

import pytest

BLOCKED = "192.0.2.201"


def test_bypass_passes_everything_and_counts_it(pair, on):
    on("block", BLOCKED)
    assert pair.free(BLOCKED) == [False]
    on("bypass")
    assert pair.free(BLOCKED, "203.0.113.20") == [True, True]
    rows = {row["reason"]: row["packets"] for row in on.json("stats")["counters"]}
    assert rows["bypass"] >= 2 and rows["block-from"] == 1
    assert on("bypass", "--off").stdout.startswith("bypass is off")
    assert pair.free(BLOCKED) == [False]


def test_the_kernel_ends_it(pair, on):
    on("block", BLOCKED)
    began = time.monotonic()
    on("bypass", "--for", "1s")
    while pair.free(BLOCKED) == [True]:
        assert time.monotonic() < began + 3
        time.sleep(0.02)
    assert time.monotonic() - began >= 0.99
    assert on("status", check=False).returncode == 0


def test_one_interface(pair, on):
    pair.link("add", "near7", "type", "veth", "peer", "name", "far7")
    try:
        on("attach", "near7")
        on("block", BLOCKED)
        on("bypass", "near7")
        assert pair.free(BLOCKED) == [False]
        alarms = on.json("status", status=2)["alarms"]
        assert len(alarms) == 1 and "'near7' is BYPASSED" in alarms[0]
        on("bypass", "near0")
        assert pair.free(BLOCKED) == [True]
        on("bypass", "--off", "near0")
        assert pair.free(BLOCKED) == [False]
    finally:
        pair.link("del", "near7")


def test_two_at_once(pair, on):
    """The end of one interface's bypass does not hide the end of another, which the programs read first."""
    pair.link("add", "near7", "type", "veth", "peer", "name", "far7")
    try:
        on("attach", "near7")
        on("block", BLOCKED)
        for _ in range(20):
            on("bypass", "near7", "--for", "1h")
            both = [subprocess.Popen(on.argv("bypass", *words), stdout=subprocess.DEVNULL)
                    for words in (("near0", "--for", "1m"), ("near7", "--off"))]
            assert [process.wait() for process in both] == [0, 0]
            assert pair.free(BLOCKED) == [True]
            on("bypass", "--off")
            assert pair.free(BLOCKED) == [False]
    finally:
        pair.link("del", "near7")


def test_a_stopped_command_does_not_prevent_a_bypass(pair, on):
    on("block", BLOCKED)
    with on.locked():
        began = time.monotonic()
        on("bypass", "--for", "1m")
        assert time.monotonic() - began < 1
        assert pair.free(BLOCKED) == [True]
        on("bypass", "--off")
        assert pair.free(BLOCKED) == [False]


def test_a_stopped_command_does_not_prevent_a_detach(pair, on):
    on("block", BLOCKED)
    with on.locked():
        done = on("detach", "--force")
        assert f"pid {os.getpid()}, weir block; removed anyway" in done.stderr
    assert not pair.xdp_attached() and not on.bpffs.exists()
    assert pair.free(BLOCKED) == [True]


def test_status_and_explain_shout_it(on):
    on("block", BLOCKED)
    on("bypass", "--for", "10s")
    status = on("status", check=False)
    assert status.returncode == 2 and "'near0' is BYPASSED for " in status.stdout
    assert "a bypass is on" in on("explain", BLOCKED).stdout


def test_it_does_not_survive_detach(pair, on):
    on("block", BLOCKED)
    on("bypass")
    on("detach")
    on("attach", "near0")
    assert pair.free(BLOCKED) == [False]


@pytest.mark.parametrize(
    "words, said",
    [(["nope0"], "'nope0' is not attached"), (["--for", "0s"], "1s to 24h"),
     (["--for", "25h"], "1s to 24h"), (["--for", "soon"], "'soon'"),
     (["near0", "near1"], "unexpected argument 'near1'")],
)
def test_wrong_words(pair, on, words, said):
    on("block", BLOCKED)
    assert said in on.fails(1, "bypass", *words)
    assert pair.free(BLOCKED) == [False]
