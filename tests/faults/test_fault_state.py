# SPDX-License-Identifier: GPL-2.0-only
"""The state folder: full, read-only, and with files that are truncated or damaged."""

import contextlib
import random
import re
import shutil

import pytest

from inject import EVERYTHING
from labnet import run
from policylab import Policies, in_force, udp

NINE, TEN = '"nine" drop proto udp to port 9', '"ten" drop proto udp to port 10'
NINE_DROPS, TEN_DROPS, NOTHING_DROPS = [False, True], [True, False], [True, True]
BLOCKED = ["192.0.2.7", "192.0.2.128/25", "2001:db8::1"]
SAMPLE = 4  # positions in a file, in a quick run
SMALL = 4096  # bytes; a full run uses each of them


@contextlib.contextmanager
def small_disk(weir, size):
    """A separate file system for the state of the instance."""
    weir.state.mkdir(parents=True, exist_ok=True)
    run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "weir-faults", weir.state])
    try:
        yield
    finally:
        weir("detach", "--force", check=False)
        run(["umount", weir.state])


def ports(pair):
    return pair.passes(udp(9), udp(10))


def free(pair, *sources):
    """Whether packets from there pass, to a port that no policy names."""
    return pair.passes(*(udp(4000, source) for source in sources))


def with_others(folder, address):
    """A list with this address whose change takes more than a page of the disk, in which a file may have room."""
    path = folder / address
    path.write_text("\n".join([address, *(f"{address.replace('.', ':')}:{n:x}::1" for n in range(150))]))
    return path


def test_full_disk(pair, weir, tmp_path):
    apply = Policies(weir, tmp_path)
    many = tmp_path / "many"
    many.write_text("\n".join(f"203.0.{i // 250}.{i % 250}" for i in range(3000)))
    with small_disk(weir, "64k"):
        weir("attach", "near0")
        apply(NINE)
        weir("block", *BLOCKED)
        before = in_force(weir)
        assert "no space left" in weir.fails(2, "block", "-f", many)
        assert "no space left" in apply.fails(2, f"{TEN}\n" + "# much\n" * 10000)
        assert in_force(weir) == before and ports(pair) == NINE_DROPS
        assert free(pair, "203.0.0.1", "192.0.2.7") == [True, False]
        (weir.state / "filler").write_bytes(b"")
        with contextlib.suppress(OSError), open(weir.state / "filler", "wb", buffering=0) as filler:
            while filler.write(b"x" * 512):
                pass
        some = with_others(tmp_path, "203.0.113.1")
        assert "no space left" in weir.fails(2, "block", "-f", some)
        assert "no space left" in apply.fails(2, TEN)
        assert ports(pair) == NINE_DROPS and set(weir.entries()) == set(BLOCKED)
        weir("block", "-f", some, "--volatile")
        apply(TEN, "--volatile")
        assert ports(pair) == TEN_DROPS and free(pair, "203.0.113.1") == [False]
        (weir.state / "filler").unlink()
        weir("block", "203.0.113.2")
        apply(TEN)
        weir("detach")
        weir("attach", "near0")
        assert ports(pair) == TEN_DROPS
        assert set(weir.entries()) == {*BLOCKED, "203.0.113.2"}  # the volatile one is lost


def hinted(line):
    """The option that the hint of this message names."""
    option, = set(re.findall(r"--[a-z-]+", line[line.rindex("("):]))
    return option


@pytest.mark.parametrize("where", ["full", "read-only"])
def test_hints_lead_out(pair, weir, tmp_path, where):
    """Each command that cannot save names its option, and has its effect with that option."""
    apply = Policies(weir, tmp_path)
    with small_disk(weir, "64k"):
        weir("attach", "near0")
        apply(TEN)
        apply(NINE)
        seven, both, eight, nine = (with_others(tmp_path, address) for address in
                                    ("192.0.2.7", "203.0.113.7", "192.0.2.8", "192.0.2.9"))
        weir("block", "-f", seven)
        weir("block", "203.0.113.7")
        weir("allow", "-f", both)
        if where == "full":
            with contextlib.suppress(OSError), open(weir.state / "filler", "wb", buffering=0) as filler:
                while filler.write(b"x" * 512):
                    pass
        else:
            remount(weir, "ro")
        apply.path.write_text(TEN)
        commands = [("unblock", "-f", seven), ("unallow", "-f", both), ("block", "-f", eight),
                    ("allow", "-f", nine), ("apply", apply.path), ("rollback",)]
        for command in commands:
            weir(*command, hinted(weir.fails(2, *command)))
        assert free(pair, "192.0.2.7", "203.0.113.7", "192.0.2.8") == [True, False, False]
        assert {(e["address"], e["kind"]) for e in weir.json("list")["entries"] if ":" not in e["address"]} == {
            ("203.0.113.7", "block-from"), ("192.0.2.8", "block-from"), ("192.0.2.9", "allow-from")}
        assert "not saved" in weir("unblock", "--all", "--volatile").stderr
        assert not [e for e in weir.json("list")["entries"] if e["kind"] == "block-from"]


def remount(weir, mode):
    run(["mount", "-o", f"remount,{mode}", weir.state])


def test_read_only(pair, weir, tmp_path):
    apply = Policies(weir, tmp_path)
    with small_disk(weir, "1m"):
        weir("attach", "near0")
        apply(NINE)
        weir("block", *BLOCKED)
        remount(weir, "ro")
        before = in_force(weir)
        assert "read-only" in weir.fails(2, "block", "203.0.113.1")
        assert "read-only" in weir.fails(2, "unblock", BLOCKED[0])
        for options in (), ("--confirm=60s",):
            assert "read-only" in apply.fails(2, TEN, *options)
        assert in_force(weir) == before and ports(pair) == NINE_DROPS
        weir("detach")
        weir("attach", "near0")
        assert ports(pair) == NINE_DROPS and set(weir.entries()) == set(BLOCKED)
        said = apply(TEN, "--volatile").stdout
        assert ports(pair) == TEN_DROPS and ", revision ," not in said and f", instance {weir.name}" in said
        assert apply.weir.json("apply", apply.path, "--volatile", "--force")["revision"] is None
        remount(weir, "rw")
        weir("detach")
        weir("attach", "near0")
        assert ports(pair) == NINE_DROPS


def test_confirm_on_a_disk_that_became_read_only(pair, weir, tmp_path):
    """The trial has expired, the policy is active; its record is updated as soon as it can be written."""
    apply = Policies(weir, tmp_path)
    with small_disk(weir, "1m"):
        weir("attach", "near0")
        apply(NINE)
        apply(TEN, "--confirm=60s")
        remount(weir, "ro")
        assert "read-only" in weir.fails(2, "confirm")
        assert ports(pair) == TEN_DROPS
        remount(weir, "rw")
        assert "no trial is running" in weir.fails(3, "confirm")
        assert weir("show").stdout == apply.path.read_text()
        weir("detach")
        weir("attach", "near0")
        assert ports(pair) == TEN_DROPS


def test_a_confirmed_trial_that_was_volatile_is_not_accepted(pair, weir, tmp_path):
    apply = Policies(weir, tmp_path)
    weir("attach", "near0", "--max-entries", "64")
    apply(NINE)
    apply(TEN, "--confirm=60s", "--volatile")
    weir("confirm")
    assert ports(pair) == TEN_DROPS
    apply.fails(1, "drop frm any")
    assert "ten" in weir("explain", "udp", "from", "192.0.2.1", "to", pair.near4, "port", 10).stdout
    weir("detach")
    weir("attach", "near0", "--max-entries", "64")
    assert ports(pair) == NINE_DROPS


# Damaged files.


@pytest.fixture(name="saved")
def saved_state(pair, weir, tmp_path):
    """A detached instance with a policy and a block on record."""
    weir("attach", "near0", "--max-entries", "64")
    Policies(weir, tmp_path)(NINE)
    weir("block", *BLOCKED, "--note", "abuse 4711")
    weir("detach")
    copy = tmp_path / "state"
    shutil.copytree(weir.state, copy)
    return copy


def state_files(folder):
    """Without the record of changes, whose damage test_changes.py has."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("changes"))


def places(size, seed):
    if EVERYTHING and size <= SMALL:
        return range(size)
    return sorted(random.Random(seed).sample(range(size), min(SAMPLE, size)))


def damages(path):
    """(description, bytes): every truncation and every changed byte, or a sample of both."""
    whole = path.read_bytes()
    for length in places(len(whole), "cut"):
        yield f"cut to {length}", whole[:length]
    for place in places(len(whole), "flip"):
        bit = 1 << place % 8
        yield f"bit {bit} of byte {place}", whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1:]


def restore(weir, saved):
    shutil.rmtree(weir.state)
    shutil.copytree(saved, weir.state)


def try_damage(pair, weir, apply):
    """attach restores everything, or of the entries what precedes the damage, with a line about that; or it is
    refused with one line, and then there is a way to recover."""
    done = weir("attach", "near0", "--max-entries", "64", check=False)
    assert done.returncode in (0, 2), f"{done.returncode} {done.stderr}"
    partly = "/overlay' is damaged" in done.stderr
    if done.returncode:
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert "accepted" in done.stderr or "overlay" in done.stderr, done.stderr
        assert not weir.bpffs.exists() and not pair.xdp_attached()
        if "/overlay'" in done.stderr:
            (weir.state / "overlay").rename(weir.state / "overlay.away")
        apply(NINE)
        assert ports(pair) == NINE_DROPS
    else:
        assert ports(pair) == NINE_DROPS
        assert partly or set(weir.entries()) == set(BLOCKED)
        assert set(weir.entries()) <= set(BLOCKED)
        assert free(pair, "192.0.2.7", "192.0.2.8") == ["192.0.2.7" not in weir.entries(), True]
        assert partly == (weir.state / "overlay.damaged").exists()
    weir("history")
    weir("block", "203.0.113.1")
    weir("detach")


def test_damaged_files(pair, weir, saved, tmp_path):
    apply = Policies(weir, tmp_path)
    files = state_files(saved)
    assert {path.name for path in files} == {"0", "index", "current", "overlay"}
    failures = []
    for path in files:
        name = path.relative_to(saved)
        for what, content in damages(path):
            restore(weir, saved)
            (weir.state / name).write_bytes(content)
            try:
                try_damage(pair, weir, apply)
            except AssertionError as error:
                failures.append(f"{name}, {what}: {str(error).splitlines()[0]}")
                weir("detach", "--force", check=False)
    assert not failures, "\n".join(failures)


def test_damage_while_it_runs(pair, weir, tmp_path):
    """The kernel is authoritative: the active policy stays, and commands that only read continue to work."""
    apply = Policies(weir, tmp_path)
    weir("attach", "near0", "--max-entries", "64")
    apply(NINE)
    weir("block", *BLOCKED)
    for path in state_files(weir.state):
        path.write_bytes(path.read_bytes()[:-3] + b"#")
    assert ports(pair) == NINE_DROPS and free(pair, "192.0.2.7") == [False]
    assert "overlay' is damaged at byte" in weir("block", "203.0.113.1").stderr
    assert set(weir.entries()) == {*BLOCKED, "203.0.113.1"}
    apply(TEN)
    assert ports(pair) == TEN_DROPS
    assert weir("show").stdout == apply.path.read_text()
