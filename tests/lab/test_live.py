# SPDX-License-Identifier: GPL-2.0-only
"""block --live: counters each second, and nothing remains, however it ends."""

import json
import re
import signal
import time

import pytest

from labnet import plain
from test_top import generator

BLOCKED4, BLOCKED6 = "203.0.113.10", "2001:db8:113::10"


def wait_until_blocked(pair, process):
    end = time.monotonic() + 5
    while any(pair.free(BLOCKED4, BLOCKED6)):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)


def packets_in(view):
    """{address: packets} of one view."""
    return {address: int(count) for address, count in re.findall(r"(\S+) +block-from +(\d+)", view)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_live_shows_counters_and_leaves_nothing(pair, weir, number):
    process = weir.start("block", "-i", "near0", "--live", "blocked.lab")
    wait_until_blocked(pair, process)
    start = time.monotonic()
    assert not any(pair.free(*[BLOCKED4] * 20, *[BLOCKED6] * 7))
    time.sleep(2.2)
    process.send_signal(number)
    output, _ = process.communicate(timeout=3)
    assert process.returncode == 0, output
    assert time.monotonic() - start < 4
    views = output.split("blocked for ")[1:]
    assert 2 <= len(views) <= 4 and [view.split("s\n")[0] for view in views[:2]] == ["1", "2"]
    seen = packets_in(views[-1])
    assert seen[BLOCKED4] >= 20 and seen[BLOCKED6] >= 7 and "blocked.lab" in views[-1]
    assert "unblocked" in views[-1]
    assert not pair.xdp_attached() and not weir.bpffs.exists()
    assert all(pair.free(BLOCKED4, BLOCKED6))


def test_live_takes_away_only_what_it_added(pair, on):
    on("block", BLOCKED4)
    process = on.start("block", "--live", "blocked.lab", "-i", "near0")
    wait_until_blocked(pair, process)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=3) == 0
    assert list(on.entries()) == [BLOCKED4]
    assert pair.free(BLOCKED4, BLOCKED6) == [False, True]
    assert pair.xdp_attached()


def test_two_at_once(pair, on):
    first, second = (on.start("block", "--live", "blocked.lab") for _ in range(2))
    wait_until_blocked(pair, first)
    time.sleep(0.5)  # both
    first.send_signal(signal.SIGINT)
    assert first.wait(timeout=3) == 0
    assert not any(pair.free(BLOCKED4, BLOCKED6))
    second.send_signal(signal.SIGINT)
    assert second.wait(timeout=3) == 0
    assert all(pair.free(BLOCKED4, BLOCKED6))


def test_killed_it_blocks_until_its_lease_ends(pair, weir):
    process = weir.start("block", "-i", "near0", "--live", "blocked.lab")
    wait_until_blocked(pair, process)
    time.sleep(4)  # it has renewed its lease by now
    process.kill()
    killed = time.monotonic()
    assert not any(pair.free(BLOCKED4, BLOCKED6))
    while not all(pair.free(BLOCKED4, BLOCKED6)):
        assert time.monotonic() - killed < 11
        time.sleep(0.1)
    assert weir.entries() == {}
    weir("detach")
    assert "0 overlay" not in weir("attach", "near0").stdout
    assert weir.entries() == {}


def test_live_renews_its_lease(pair, on):
    process = on.start("block", "--live", BLOCKED4, BLOCKED6)
    wait_until_blocked(pair, process)
    left = []
    for _ in range(5):
        time.sleep(1)
        left.append(on.entries()[BLOCKED4]["left_s"])
    assert min(left) >= 5 and max(left) <= 11
    assert any(later > earlier for earlier, later in zip(left, left[1:]))
    assert not any(pair.free(BLOCKED4, BLOCKED6))


def test_json_is_one_document_a_line(pair, on):
    process = on.start("-j", "block", "--live", "blocked.lab")
    wait_until_blocked(pair, process)
    time.sleep(1.3)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=3)
    documents = [plain(json.loads(line)) for line in output.splitlines()]
    assert {entry["address"] for entry in documents[0]["entries"]} == {BLOCKED4, BLOCKED6}
    assert all(entry["name"] == "blocked.lab" for entry in documents[0]["entries"])
    assert documents[-1] == {"end": True}


def test_rates_are_since_the_previous_second(pair, on):
    on("block", BLOCKED4)  # counts before: they have no rate
    pair.send_from_far(*[pair.udp(BLOCKED4)] * 5000)
    process = on.start("-j", "block", "--live", BLOCKED4)
    time.sleep(0.7)
    with generator(pair, pair.udp(BLOCKED4), 100):
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=3)
    documents = [json.loads(line) for line in output.splitlines()][:-1]
    entries = [one["entries"][0] for one in documents]
    assert all(one["packets"] >= 5000 and one["packets_per_s"] < 200 for one in entries), entries
    assert 80 < entries[-1]["packets_per_s"] < 120
    for before, now, document in zip(entries, entries[1:], documents[1:]):
        span_s = document["span_us"] / 1e6
        assert now["packets_per_s"] * span_s == pytest.approx(now["packets"] - before["packets"], abs=0.1)
        assert now["bytes_per_s"] * span_s == pytest.approx(now["bytes"] - before["bytes"], abs=1)


@pytest.mark.parametrize("option", [["--for", "1m"], ["--sync", "feed"]])
def test_what_live_excludes(on, option):
    assert "--live cannot be combined with" in on.fails(1, "block", "--live", BLOCKED4, *option)
    assert on.entries() == {}


def test_live_ends_when_the_instance_is_taken_away(pair, on):
    process = on.start("block", "--live", "blocked.lab")
    wait_until_blocked(pair, process)
    on("detach")
    output, _ = process.communicate(timeout=6)
    assert process.returncode in (1, 2, 3), output


def test_the_time_of_its_entries_begins_with_the_lock(pair, on):
    with on.locked():
        process = on.start("block", "--live", "blocked.lab")
        time.sleep(4)
    wait_until_blocked(pair, process)
    left = [entry["left_s"] for entry in on.json("list")["entries"]]
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=3) == 0
    assert left and min(left) >= 8
