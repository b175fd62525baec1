# SPDX-License-Identifier: GPL-2.0-only
"""Entries outlast damage in the state folder, and commands that run at once."""

import concurrent.futures
import fcntl
import os
import pathlib
import resource
import shutil
import time

from blocklab import BLOCKED4, MANY, OTHER4, everything, nothing
from labnet import read_only


# The state folder


def test_what_cannot_be_saved_is_refused(pair, on):
    on("block", OTHER4)
    with read_only(on.state):
        line = on.fails(2, "block", BLOCKED4)
        assert str(on.state) in line and "--volatile" in line
        assert list(on.entries()) == [OTHER4]
        assert everything(pair, BLOCKED4) and nothing(pair, OTHER4)
        assert "; not saved" in on("block", "--volatile", BLOCKED4).stdout
        assert nothing(pair, BLOCKED4)
    assert set(on.entries()) == {OTHER4, BLOCKED4}


def test_a_lost_file_is_made_again_from_the_kernel(pair, on):
    on("block", BLOCKED4, "198.51.100.0/24")
    shutil.rmtree(on.state)
    assert sorted(on.entries()) == ["198.51.100.0/24", BLOCKED4]
    on("unblock", BLOCKED4, "198.51.100.0/24")
    assert everything(pair, BLOCKED4, "198.51.100.1")


def test_what_follows_damage_is_not_used_and_is_kept(pair, on):
    on("block", BLOCKED4, "--note", "before")
    file = on.state / "overlay"
    size = file.stat().st_size
    on("block", OTHER4, "--note", "after")
    file.write_text(file.read_text().replace("after", "aftex"))
    damaged = file.read_text()
    for command in ("list",), ("explain", BLOCKED4), ("stats",), ("block", MANY[0]):
        said = on(*command).stderr
        assert str(file) in said and f"at byte {size} " in said, said
    assert file.with_name("overlay.damaged").read_text() == damaged
    assert not on("list").stderr
    notes = {address: entry["holders"][0]["note"] for address, entry in on.entries().items()}
    assert notes[BLOCKED4] == "before" and "without a record" in notes[OTHER4]
    assert nothing(pair, BLOCKED4, OTHER4, MANY[0])


def processor_time(call):
    """Seconds of the processor that the processes of a call took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_block_costs_the_same_among_many(weir):
    """Not the time is bounded, but its ratio: a thousand entries and a million."""
    weir("attach", "near0", "--max-entries", "1100000")
    numbers = iter(range(1, 250))

    def cheapest():
        return min(processor_time(lambda: weir("block", f"192.0.2.{next(numbers)}")) for _ in range(12))

    def fill(size):
        weir("block", "-f", "-", timeout=120, input="\n".join(
            f"{32 + (i >> 18)}.{i >> 10 & 255}.{i >> 2 & 255}.{i & 3}" for i in range(size)))

    fill(1000)
    few = cheapest()
    fill(1000000)
    for _ in range(4):
        many = cheapest()
        print(f" [block: {few * 1000:.1f} ms among 1,000, {many * 1000:.1f} ms among 1,000,000] ", end="")
        if many <= 2 * few:
            break
    assert 0 < many <= 2 * few


# Several processes at once


def test_two_commands_at_once_both_take_effect(on):
    for i in range(30):
        pair = [on.start("block", f"192.0.2.{i}"), on.start("block", f"2001:db8::{i + 1:x}")]
        assert [process.wait(timeout=10) for process in pair] == [0, 0]
    assert len(on.entries()) == 60


def test_many_commands_at_once_take_turns(on):
    """100 commands, 8 at a time: each waits for as long as the queue takes."""
    def block(number):
        return on("block", f"192.0.2.{number}", check=False, timeout=120).returncode

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set(pool.map(block, range(100))) == {0}
    assert len(on.entries()) == 100


def test_who_waits_outlasts_ten_seconds_of_others(on):
    """The limit counts from the last time that the lock changed hands."""
    note = pathlib.Path("/run/weir", on.name, "lock")
    with on.locked():
        waiting = on.start("block", BLOCKED4)
        for turn in range(6):
            note.write_text(f"pid {turn}, weir block\n", encoding="ascii")
            time.sleep(2)
        assert waiting.poll() is None
    assert waiting.wait(timeout=5) == 0


def test_a_locked_instance_is_waited_for(on):
    with on.locked() as lock:
        waiting = on.start("block", BLOCKED4)
        reading = on.start("list")
        time.sleep(0.3)
        assert waiting.poll() is None and reading.poll() is None
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert (waiting.wait(timeout=1), reading.wait(timeout=1)) == (0, 0)


def test_a_lock_that_stays_names_its_process(on):
    with on.locked(command="apply edge.weir"):
        began = time.monotonic()
        line = on.fails(3, "block", BLOCKED4)
    assert line.endswith(f"is locked by another command: pid {os.getpid()}, weir apply edge.weir")
    assert 9.5 < time.monotonic() - began < 12
    assert on.entries() == {}


def test_a_lock_does_not_name_who_waits(on):
    """The former holder, which the note names, waits again; the present one has not written its name yet."""
    note = pathlib.Path("/run/weir", on.name, "lock")
    with on.locked():
        former = on.start("block", OTHER4)
        time.sleep(0.5)
        note.write_text(f"pid {former.pid}, weir block {OTHER4}\n", encoding="ascii")
        line = on.fails(3, "block", BLOCKED4)
        former.kill()
    assert line.endswith("is locked by another command: one that reads, or one with another /run/weir, as in a container")
