# SPDX-License-Identifier: GPL-2.0-only
"""The record of changes: an error at any of its system calls refuses no change, and is counted."""

import collections

from inject import CALL, Fault, injected, traced

CALLS = ("openat", "flock", "fstat", "newfstatat", "stat", "pread64", "write", "rename", "renameat2", "ftruncate")
ERRORS = ("EIO", "ENOSPC", "ENOMEM")


def of_record(weir, argv, log):
    """The calls of a command that name the record: [(name, count of that name up to and including this one)]."""
    traced(weir, argv, log, "-y", "-e", "trace=" + ",".join(CALLS))
    counts, calls = collections.Counter(), []
    for line in log.read_text(errors="replace").splitlines():
        if match := CALL.match(line):
            counts[match[1]] += 1
            if f"/{weir.name}/changes" in line:
                calls.append((match[1], counts[match[1]]))
    return calls


def figures(weir):
    document = weir.json("changes")
    return len(document["changes"]), document["lost"], document["damaged"]


def check(weir, calls, argv, log, effect):
    for call, nth in calls:
        for error in ERRORS:
            fault = Fault(call, nth, error)
            lines, lost, _ = figures(weir)
            done = injected(weir, argv(), fault, log)
            assert (done.status, done.reached) == (0, True), f"{fault}: {done}"
            assert effect(), fault
            now = figures(weir)
            assert (now[0] - lines) + (now[1] - lost) == 1 and not now[2], f"{fault}: {lines, lost} {now}"


def test_an_entry_is_blocked_without_its_record(weir, pair, tmp_path):
    del pair
    weir("attach", "near0")
    weir("block", "203.0.113.200")
    numbers = iter(range(1, 200))
    at = []

    def argv():
        at[:] = [f"203.0.113.{next(numbers)}"]
        return "block", at[0]

    calls = of_record(weir, argv(), tmp_path / "log")
    assert {call for call, _ in calls} >= {"openat", "flock", "write"}
    check(weir, calls, argv, tmp_path / "log", lambda: at[0] in weir.entries())
    weir("block", "203.0.113.201")
    assert weir.json("changes")["changes"][-1]["command"].endswith("203.0.113.201")


def test_a_full_file_is_renamed_or_the_record_counted(weir, pair, tmp_path):
    del pair
    weir("attach", "near0")
    weir("block", "203.0.113.200")  # the first command makes other files
    path = weir.state / "changes.entries"
    line = '{"n":10000,"at_ms":1790000000000,"verb":"block","by":"x","result":"done"}\n'
    numbers = iter(range(1, 200))
    at = []

    def argv():
        at[:] = [f"203.0.113.{next(numbers)}"]
        path.write_text(line)
        return "block", at[0]

    calls = [call for call in of_record(weir, argv(), tmp_path / "log") if call[0] in ("rename", "renameat2")]
    assert len(calls) == 1
    for error in ERRORS:
        words, lost = argv(), figures(weir)[1]
        done = injected(weir, words, Fault(*calls[0], error), tmp_path / "log")
        assert (done.status, done.reached) == (0, True) and at[0] in weir.entries()
        assert figures(weir)[1] == lost + 1 and path.read_text() == line
