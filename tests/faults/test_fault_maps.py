# SPDX-License-Identifier: GPL-2.0-only
"""Changes of the maps by others while a command works on them: strace holds the command before a call, and
the test meanwhile fills a map or deletes a key."""

import contextlib
import re
import subprocess
import time

from labnet import run

HELD_S = 3  # delay of strace, which the test ends
POSSIBLE = "/sys/devices/system/cpu/possible"
ROOM = 64
# Prefixes: hosts are in memory that is mapped, where no call fails.
OLD = [f"100.64.{i}.0/24" for i in range(10)]
NEW = [f"100.65.{i}.0/24" for i in range(20)]


def traced(weir, argv, log, *options):
    return ["strace", "-f", "-qq", "-o", log, "-e", "trace=bpf", *options, *weir.argv(*argv)]


def number_of(weir, argv, log, operation):
    """The number of bpf calls up to and including the first one of that operation, in a run without a fault."""
    run(traced(weir, argv, log))
    calls = [line for line in log.read_text().splitlines() if re.match(r"\d+ +bpf\(", line)]
    return next(n for n, line in enumerate(calls, 1) if operation in line)


@contextlib.contextmanager
def held(weir, argv, log, nth):
    """The command, held before its nth bpf call while the body runs; then it continues."""
    log.write_text("")
    delay = f"inject=bpf:delay_enter={HELD_S * 1000000}:when={nth}"
    process = subprocess.Popen([str(word) for word in traced(weir, argv, log, "-e", delay)],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    begin = time.monotonic()
    while log.read_text().count("bpf(") < nth - 1:
        assert time.monotonic() - begin < 20, log.read_text()
        time.sleep(0.01)
    time.sleep(0.1)
    start = time.monotonic()
    yield process
    assert process.poll() is None and time.monotonic() - start < HELD_S - 1, "not in time"
    process.said = process.communicate(timeout=30)[0]


def key(prefix):
    """The bytes of the key of a blocked source: length and kind, little-endian, and the address."""
    address, length = prefix.split("/")
    return [str(32 + int(length)), *["0"] * 7, *address.split(".")]


def source(prefix):
    return prefix.replace("0/24", "7")


def batch(folder, lines):
    """Runs many bpftool commands at once."""
    script = folder / "batch"
    script.write_text("\n".join(" ".join(line) for line in lines) + "\n")
    run(["bpftool", "batch", "file", script])


def value_bytes(path):
    shown = run(["bpftool", "-j", "map", "show", "pinned", path]).stdout
    return int(re.search(r'"bytes_value":(\d+)', shown)[1])


def test_map_full_in_the_middle_of_a_batch(pair, weir, tmp_path):
    weir("attach", "near0", "--max-entries", ROOM)
    weir("block", *OLD)
    listed, log, path = tmp_path / "new", tmp_path / "log", weir.bpffs / "nets4"
    listed.write_text("\n".join(NEW))
    nth = number_of(weir, ("block", "-f", listed), log, "BPF_MAP_UPDATE_BATCH")
    weir("unblock", "-f", listed)
    size = value_bytes(path)
    strangers = [f"100.66.{i}.0/24" for i in range(ROOM + 1 - len(OLD) - len(NEW) // 2)]
    with held(weir, ("block", "-f", listed), log, nth) as command:
        batch(tmp_path, [["map", "update", "pinned", str(path), "key", *key(prefix), "value",
                          *["0"] * size] for prefix in strangers])
    # The values of foreign keys are empty: they are cleared away with what was staged, and it is staged again.
    assert command.returncode == 0, command.said
    assert log.read_text().count("BPF_MAP_UPDATE_BATCH") == 2
    assert set(weir.entries()) == {*OLD, *NEW}
    assert pair.free(*map(source, (OLD[0], NEW[0], NEW[-1], strangers[0]))) == \
        [False, False, False, True]


def delete_while(weir, tmp_path, operation, address):
    """unblock of an address whose key is deleted before the command reaches that operation."""
    log, path = tmp_path / "log", weir.bpffs / "nets4"
    nth = number_of(weir, ("unblock", address), log, operation)
    weir("block", address)
    with held(weir, ("unblock", address), log, nth) as command:
        batch(tmp_path, [["map", "delete", "pinned", str(path), "key", *key(address)]])
    return command


def test_delete_of_a_missing_key(pair, on, tmp_path):
    on("block", *OLD)
    command = delete_while(on, tmp_path, "BPF_MAP_DELETE_ELEM", OLD[0])
    assert command.returncode == 0, command.said
    assert set(on.entries()) == set(OLD[1:])
    assert pair.free(*map(source, OLD[:2])) == [True, False]


def test_update_of_a_missing_key(pair, on, tmp_path):
    """Nothing is committed; the deleted key is missing nevertheless, until its entry is added again."""
    on("block", *OLD)
    command = delete_while(on, tmp_path, "BPF_MAP_UPDATE_ELEM", OLD[0])
    assert command.returncode == 2 and "cannot write the overlay: it does not exist" in command.said
    assert pair.free(*map(source, OLD[:2])) == [True, False]
    on("unblock", OLD[0])
    assert set(on.entries()) == set(OLD[1:])
    on("block", OLD[0])
    assert set(on.entries()) == set(OLD) and pair.free(*map(source, OLD[:2])) == [False, False]


POLICY = """\
interface near0
set slow dynamic max 64
service web {
	vip 10.77.9.1
	proto tcp
	port 80
	mode dr
	backend 10.77.0.101
}
"bad" drop from 198.51.100.1
"slow" drop from @slow
"""


def test_an_unknown_number_of_cpus(pair, weir, tmp_path):
    """A value of a per-CPU map has one element for each CPU, however little room there is."""
    policy, log = tmp_path / "policy.weir", tmp_path / "log"
    policy.write_text(POLICY)
    uncounted = ["strace", "-f", "-qq", "-e", "signal=none", "-o", log, "-P", POSSIBLE,
                 "-e", "inject=openat:error=ENOMEM"]

    def fails(*argv):
        done = run([*uncounted, *weir.argv(*argv)], check=False)
        assert done.returncode == 2, f"{argv}: {done.returncode} {done.stdout}{done.stderr}"
        assert "cannot count the CPUs: out of memory" in done.stderr
        assert "INJECTED" in log.read_text(), f"{argv} opens no {POSSIBLE}"

    run(["ip", "-n", pair.near_netns, "neigh", "replace", "10.77.0.101", "lladdr", pair.far_mac,
         "dev", "near0", "nud", "permanent"])
    fails("attach", "near0")
    weir("attach", "near0")
    fails("apply", policy)
    weir("apply", policy)
    for argv in ("apply", policy), ("status",), ("stats",), ("service", "web"):
        fails(*argv)
    assert pair.free("198.51.100.1", "198.51.100.2") == [False, True]
