# SPDX-License-Identifier: GPL-2.0-only
"""block -f, unblock -f, batch: all of the list or nothing, in the datapath and in the store."""

import pytest
from inject import KILL, Fault, injected
from scenario import Scenario, sweep

from labnet import read_only

OLD = [*(f"192.0.2.{i}" for i in range(50)), "198.51.100.0/24", "2001:db8:100::/48", "2001:db8::1"]
NEW = [*(f"203.0.113.{i}" for i in range(50)), "198.51.0.0/16", "2001:db8::/32", "2001:db8::2",
       "198.51.100.128/25", "2001:db8:100:8000::/49"]  # around old ones and inside of them
MANY = [f"100.65.{i // 250}.{i % 250}" for i in range(850)]  # changes of so many let the journal be replaced
LATER = "100.64.0.2"
# Source: whether it passes with OLD only, and with NEW as well.
PROBES = {"192.0.2.7": (False, False), "2001:db8::1": (False, False),
          "198.51.100.9": (False, False), "198.51.100.200": (False, False),
          "2001:db8:100:8000::1": (False, False), "203.0.113.7": (True, False),
          "198.51.99.9": (True, False), "2001:db8::2": (True, False),
          "2001:db8:1::": (True, False), "100.64.0.1": (True, True)}
PASSES = {"old": [free[0] for free in PROBES.values()], "all": [free[1] for free in PROBES.values()]}
HELD = {"old": set(OLD), "all": set(OLD + NEW)}


class Block(Scenario):
    after = "all"
    undo = "unblock"
    starts = "old"
    stride, rare_stride = 5, 1
    loader = True
    ends = (0, 3)  # done; done, but a wider prefix still covers it

    def prepare(self):
        self.weir("attach", "near0", "--max-entries", "1000")
        self.file = self.folder / "new"
        self.file.write_text("\n".join(NEW))
        self.weir("block", "-f", "-", input="\n".join(OLD))
        self.argv = ("block", "-f", self.file)
        self.state = "old"

    def before(self):
        if self.state != self.starts:
            self.weir(self.undo, "-f", self.file, check=False)
            assert self.whole() == self.starts

    def whole(self):
        self.state = "unknown"
        free = self.prober.free(PROBES)
        for name, passes in PASSES.items():
            if free == passes:
                break
        else:
            raise AssertionError(f"neither before nor after: {dict(zip(PROBES, free))}")
        assert set(self.weir.entries()) == self.held(name), "list differs from packets"
        self.state = name
        return name

    def held(self, state):
        return HELD[state]

    def go_on(self, state, fault, outcome):
        self.weir("block", LATER)
        assert set(self.weir.entries()) == self.held(state) | {LATER}
        assert self.prober.free([LATER]) == [False]
        self.weir("unblock", LATER)
        assert self.whole() == state

    def start_again(self, state):
        self.weir("detach")
        assert not list(self.weir.bpffs.parent.glob(f"{self.weir.name}*")), "objects in bpffs are left"
        self.weir("attach", "near0", "--max-entries", "1000")
        assert self.whole() == state
        assert not list(self.weir.state.rglob("*.new"))


class Unblock(Block):
    after = "old"
    undo = "block"
    starts = "all"
    loader = False

    def prepare(self):
        super().prepare()
        self.argv = ("unblock", "-f", self.file)


class Batch(Block):
    """As many commands as entries, in one commit."""

    stride = 16
    loader = False

    def prepare(self):
        super().prepare()
        commands = self.folder / "commands"
        commands.write_text("".join(f"block {address}\n" for address in NEW))
        self.argv = ("batch", "-f", commands)


class UnblockAndShrink(Unblock):
    """What is removed outweighs what is left, so a snapshot replaces the journal."""

    stride = 8

    def prepare(self):
        super().prepare()
        self.file.write_text("\n".join(NEW + MANY))

    def held(self, state):
        return HELD[state] | (set(MANY) if state == "all" else set())


GROUPED = {"old": {"203.0.113.1", "203.0.113.2"}, "all": {"203.0.113.0/24"}}


class Group(Block):
    """The third host of an origin makes one prefix of all three: a reference more, two entries less."""

    stride = 8
    loader = False
    third = ("203.0.113.3", "--origin", "jail")

    def prepare(self):
        self.weir("attach", "near0", "--max-entries", "1000")
        self.weir("block", *GROUPED["old"], "--origin", "jail", "--group", "3")
        self.argv = ("block", *self.third, "--group", "3")
        self.state = "old"

    def before(self):
        if self.state != self.starts:
            self.weir(*(("unblock", *self.third) if self.starts == "old" else ("block", *self.third, "--group", "3")))
            assert self.whole() == self.starts

    def whole(self):
        self.state = "all" if set(self.weir.entries()) == GROUPED["all"] else "old"
        assert set(self.weir.entries()) == GROUPED[self.state]
        others = self.state == "old"
        assert self.prober.free(["203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.9"]) == [False, False, others, others]
        return self.state

    def held(self, state):
        return GROUPED[state]


class Ungroup(Group):
    after = "old"
    starts = "all"

    def prepare(self):
        super().prepare()
        self.argv = ("unblock", *self.third)


class BlockThenReattach(Block):
    """The instance is removed and created before anything else tidies."""

    stride = 16
    loader = False

    def go_on(self, state, fault, outcome):
        self.start_again(state)


def test_block(labs):
    sweep(Block, labs, {"old", "all"})


def test_unblock(labs):
    sweep(Unblock, labs, {"old", "all"})


def test_batch(labs):
    sweep(Batch, labs, {"old", "all"})


def test_unblock_that_replaces_the_journal(labs):
    sweep(UnblockAndShrink, labs, {"old", "all"})


def test_block_then_detach_and_attach(labs):
    sweep(BlockThenReattach, labs, {"old", "all"})


def test_a_group_forms(labs):
    sweep(Group, labs, {"old", "all"})


def test_a_group_ends(labs):
    sweep(Ungroup, labs, {"old", "all"})


def agree(pair, weir, expected):
    """The list has these addresses, and of all in question packets from them alone are dropped."""
    assert set(weir.entries()) == set(expected)
    sources = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"]
    assert dict(zip(sources, pair.free(*sources))) == {source: source not in expected for source in sources}


@pytest.mark.parametrize("commits", (1, 2, 3))
def test_volatile_after_a_kill(pair, on, tmp_path, commits):
    """The change that a killed command has appended cannot be cut off, and does not come into force later."""
    on("block", "192.0.2.1")
    outcome = injected(on, ("block", "192.0.2.2"), Fault("fdatasync", 1, KILL), tmp_path / "log")
    assert outcome.killed and "192.0.2.2" in (on.state / "overlay").read_text()
    with read_only(on.state):
        agree(pair, on, ["192.0.2.1"])
        for turn in range(commits):
            on("unblock" if turn % 2 else "block", "--volatile", "192.0.2.3")
    blocked = ["192.0.2.1", "192.0.2.3"] if commits % 2 else ["192.0.2.1"]
    agree(pair, on, blocked)
    on("block", "192.0.2.4")
    agree(pair, on, [*blocked, "192.0.2.4"])
    on("unblock", "--all")
    agree(pair, on, [])


@pytest.mark.parametrize("commits", (1, 2, 3))
def test_attach_to_a_read_only_folder(pair, on, commits):
    """The file is that of an instance with as many commits: it is not taken for that of the new one."""
    for source in ["192.0.2.1", "192.0.2.2", "192.0.2.3"][:commits]:
        on("block", "--volatile", source)
    on("detach")
    with read_only(on.state):
        on("attach", "near0")
        agree(pair, on, [])
        on("block", "--volatile", "192.0.2.4")
        agree(pair, on, ["192.0.2.4"])


def test_volatile_changes_an_end(on):
    """The list has the kernel's end, and the next command leaves it."""
    on("block", "192.0.2.1", "--for", "1h")
    with read_only(on.state):
        on("block", "--volatile", "192.0.2.1", "--for", "5h")
        assert on.entries()["192.0.2.1"]["left_s"] > 4 * 3600
    on("block", "192.0.2.2")
    assert on.entries()["192.0.2.1"]["left_s"] > 4 * 3600
