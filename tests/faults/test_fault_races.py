# SPDX-License-Identifier: GPL-2.0-only
"""Two commands at once, repeatedly: each result equals that of the two commands in sequence."""

import subprocess
import time

import pytest

from inject import EVERYTHING
from policylab import Policies, dump, udp

ROUNDS = 1000 if EVERYTHING else 100
NINE, TEN = '"nine" drop proto udp to port 9', '"ten" drop proto udp to port 10'
ADDRESSES = [*(f"203.0.113.{i}" for i in range(20)), "2001:db8::/32"]


def both(weir, one, other, later_s=0.0):
    """Starts two commands, the second that much later; returns their exit statuses and output."""
    running = []
    for argv in one, other:
        running.append(subprocess.Popen(weir.argv(*argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        time.sleep(later_s if argv is one else 0)
    said = [process.communicate(timeout=60)[0] for process in running]
    return [process.returncode for process in running], said


def test_block_against_unblock(pair, on, tmp_path):
    listed = tmp_path / "list"
    listed.write_text("\n".join(ADDRESSES))
    on("block", "192.0.2.1")
    seen = set()
    for turn in range(ROUNDS):
        commands = ("block", "-f", listed), ("unblock", "-f", listed)
        # One of the two does more before it takes the lock, and would always be the last.
        statuses, said = both(on, *commands[::1 if turn % 2 else -1], turn % 20 / 500)
        assert statuses == [0, 0], said
        held = frozenset(on.entries())
        assert held in ({"192.0.2.1"}, {"192.0.2.1", *ADDRESSES})
        seen.add(held)
        if turn % 10 == 0:
            free = pair.free("192.0.2.1", ADDRESSES[0], ADDRESSES[-2], "2001:db8::1", "100.64.0.1")
            blocked = len(held) > 1
            assert free == [False, *[not blocked] * 3, True]
    assert len(seen) == 2


def test_apply_against_apply(pair, on, tmp_path):
    """The command that gets the lock second is applied second; the record names the same policy."""
    paths = {}
    for name, text in ("nine", NINE), ("ten", TEN):
        paths[name] = Policies(on, tmp_path).write(text).rename(tmp_path / name)
    last = set()
    for turn in range(ROUNDS if EVERYTHING else ROUNDS // 2):
        order = ("nine", "ten") if turn % 2 else ("ten", "nine")
        statuses, said = both(on, *(("apply", paths[name]) for name in order))
        assert statuses == [0, 0], said
        passes = pair.passes(udp(9), udp(10))
        assert passes in ([False, True], [True, False])
        last.add(passes[0])
        assert on("show").stdout == paths["ten" if passes[0] else "nine"].read_text()
    assert last == {True, False}
    assert len(list((on.bpffs / "gen").iterdir())) <= 3
    assert len(dump(on.bpffs / "identities")) == 2
    assert not list(on.state.rglob("*.new"))


@pytest.mark.parametrize("argv", [("detach",), ("block", "192.0.2.9")])
def test_attach_against(pair, weir, argv):
    """An instance that is created and removed during another command, which never sees a part of it."""
    for turn in range(ROUNDS // 5):
        attach = ("attach", "near0", "--max-entries", "64")
        statuses, said = both(weir, *(attach, argv)[::1 if turn % 2 else -1])
        assert set(statuses) <= {0, 1}, said
        assert weir.bpffs.exists() == pair.xdp_attached(), said
        weir("detach", check=False)
        assert not list(weir.bpffs.parent.glob(f"{weir.name}*")) and not pair.xdp_attached()
