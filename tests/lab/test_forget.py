# SPDX-License-Identifier: GPL-2.0-only
"""weir forget: a detached instance keeps nothing and starts afresh."""

import fcntl
import pathlib

import pytest

from labnet import Pair
from policylab import Policies

BLOCKED, SOURCE = "203.0.113.10", "198.51.100.1"
POLICY = f"""drop from {SOURCE}
service www {{
    vip 192.0.2.10
    proto tcp
    port 80
    mode ipip
    source 10.77.0.77
    backend {Pair.far4}
    backend 10.77.0.99
}}"""


@pytest.fixture(name="kept")
def detached(weir, tmp_path):
    """Policy, entries, an override and a seed in the state folder, and nothing in the kernel."""
    apply = Policies(weir, tmp_path)
    apply(POLICY)
    apply(f"{POLICY}\n# again")
    weir("drain", "10.77.0.99")
    weir("block", BLOCKED, "192.0.2.0/24")
    weir("detach", "--force")  # slots change after the drain
    assert files(weir) == {"accepted", "drains", "overlay", "seed"}
    return weir


def files(weir):
    """Without the record of changes, which remains."""
    names = {path.name for path in weir.state.iterdir()} if weir.state.exists() else set()
    return {name for name in names if not name.startswith("changes")}


def free(pair, weir):
    """What passes after an attach: the address of the policy, that of an entry."""
    weir("attach", "near0")
    return pair.free(SOURCE, BLOCKED)


@pytest.mark.parametrize(
    "options, revisions, entries, left, passes",
    [(["--policy"], 2, 0, {"overlay", "seed"}, [True, False]),
     (["--entries"], 0, 2, {"accepted", "drains", "seed"}, [False, True]),
     ([], 2, 2, {"seed"}, [True, True]), (["--policy", "--entries"], 2, 2, {"seed"}, [True, True]),
     (["--all"], 2, 2, set(), [True, True])],
)
def test_forget(pair, kept, options, revisions, entries, left, passes):
    before = files(kept)
    for dry in ["--dry-run"], []:
        assert files(kept) == before
        said = kept.json("forget", *options, *dry)
        assert (said["changed"], said["dry_run"]) == (True, bool(dry))
        assert (said["revisions"], said["entries"]) == (revisions, entries)
    assert files(kept) == left
    assert not kept.json("forget", *options)["changed"]
    assert "nothing to remove from instance" in kept("forget", *options).stdout
    assert free(pair, kept) == passes


def test_what_is_attached_is_not_forgotten(pair, kept):
    kept("attach", "near0")
    before = files(kept)
    line = kept.fails(3, "forget", "--all")
    assert "is attached" in line and "weir detach" in line
    assert files(kept) == before and pair.free(SOURCE, BLOCKED) == [False, False]


def test_damaged_entries_can_be_forgotten(pair, kept):
    (kept.state / "overlay").write_bytes(b"weir\0")
    (kept.state / "overlay.new").write_bytes(b"")
    assert kept.json("forget", "--entries")["entries_damaged"]
    assert files(kept) == {"accepted", "drains", "seed"} and free(pair, kept) == [False, True]


def test_a_damaged_policy_can_be_forgotten(pair, kept):
    (kept.state / "accepted" / "current").write_text("zzzz\n")
    assert kept("attach", "near0", check=False).returncode != 0
    kept("forget", "--policy")
    assert free(pair, kept) == [True, False]


def test_forget_says_what_it_cannot_do(weir):
    assert "cannot be combined" in weir.fails(1, "forget", "--all", "--policy")
    assert "unexpected argument 'everything'" in weir.fails(1, "forget", "everything")
    assert not weir.json("forget")["changed"] and not weir.state.exists()


def test_all_leaves_no_files(on):
    """Neither what the instance has saved nor what commands and an agent have left."""
    folder = pathlib.Path("/run/weir", on.name)
    on("block", "192.0.2.1")
    on("detach")
    (folder / "agent").write_text("1\n", encoding="ascii")
    with open(folder / "agent", encoding="ascii") as agent:
        fcntl.flock(agent, fcntl.LOCK_EX)
        on("forget", "--all")
        assert (folder / "lock").exists()  # an agent runs
    on("forget", "--all", check=False)
    assert not folder.exists() and not files(on)
    on("attach", "near0")
