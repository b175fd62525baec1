# SPDX-License-Identifier: GPL-2.0-only
"""block --out, unblock --out: calls and packets follow the store, and no program stays without an entry."""

import socket

from scenario import Scenario, sweep

from labnet import socket_in

TARGETS = ["203.0.113.10", "198.51.100.0/24", "2001:db8:113::10"]
PROBES = ["203.0.113.10", "198.51.100.9", "2001:db8:113::10"]
LATER = "100.64.0.2"
KINDS = ("block-from", "block-out")


def refused(netns, address):
    """Whether connect() of a UDP socket, which sends nothing, is denied."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket_in(netns, family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))
        except PermissionError:
            return True
    return False


class BlockOut(Scenario):
    argv = ("block", "--out", *TARGETS)
    undo = ("unblock", "--out", *TARGETS)
    after, starts = "all", "old"
    stride, rare_stride = 4, 1

    def prepare(self):
        self.weir("attach", "near0", "--max-entries", "1000")
        self.weir("block", "--out", LATER)  # the first command also makes files
        self.weir("unblock", LATER)
        self.state = "old"

    def before(self):
        if self.state != self.starts:
            self.weir(*self.undo)
            assert self.whole() == self.starts
        if self.starts == "old":
            self.weir("unblock", LATER)  # a commit: it detaches what a killed command has left

    def kinds(self):
        return {(entry["address"], entry["kind"]) for entry in self.weir.json("list")["entries"]}

    def whole(self):
        self.state = "unknown"
        calls = [refused(self.lab.near_netns, address) for address in PROBES]
        packets = [not free for free in self.prober.free(PROBES)]
        assert calls == packets and len(set(calls)) == 1, f"calls {calls}, packets {packets}"
        state = "all" if calls[0] else "old"
        held = {(target, kind) for target in TARGETS for kind in KINDS} if calls[0] else set()
        assert self.kinds() == held, "list differs from calls"
        self.state = state
        return state

    def go_on(self, state, fault, outcome):
        self.weir("block", "--out", LATER)
        assert refused(self.lab.near_netns, LATER)
        self.weir("unblock", LATER)
        assert self.whole() == state and not refused(self.lab.near_netns, LATER)
        assert (self.weir.bpffs / "out").exists() == (state == "all"), "programs without entries, or the reverse"

    def start_again(self, state):
        self.weir("detach")
        assert not list(self.weir.bpffs.parent.glob(f"{self.weir.name}*")), "objects in bpffs are left"
        assert not any(refused(self.lab.near_netns, address) for address in PROBES)
        self.weir("attach", "near0", "--max-entries", "1000")
        assert self.whole() == state


class UnblockOut(BlockOut):
    argv, undo = BlockOut.undo, BlockOut.argv
    after, starts = "old", "all"


class DetachOut(BlockOut):
    """Detached, or still attached; in between one program after the other, as interfaces are."""

    argv = ("detach",)
    after, starts = "old", "all"

    def before(self):
        self.weir("attach", "near0", "--max-entries", "1000")
        self.weir(*BlockOut.argv)
        assert self.whole() == "all"

    def whole(self):
        calls = {refused(self.lab.near_netns, address) for address in PROBES}
        return "part" if len(calls) > 1 else "all" if calls == {True} else "old"

    def go_on(self, state, fault, outcome):
        self.weir("detach", "--force")
        assert self.whole() == "old"

    def start_again(self, state):
        self.weir("attach", "near0", "--max-entries", "1000")
        assert self.whole() == "all"


class AttachOut(DetachOut):
    """No program is active while no command finds its instance, and the next attach completes what is missing."""

    argv = ("attach", "near0", "--max-entries", "1000")
    after, starts = None, "old"  # a machine that cannot attach the programs is attached with a warning
    stride = 24

    def before(self):
        self.weir("attach", "near0", "--max-entries", "1000")
        self.weir(*BlockOut.argv)
        self.weir("detach")
        assert super().whole() == "old"

    def whole(self):
        state = super().whole()
        assert state == "old" or self.weir.bpffs.exists(), "programs without an instance"
        return state

    def go_on(self, state, fault, outcome):
        self.weir(*self.argv)
        assert self.whole() == "all"
        super().go_on(state, fault, outcome)


def test_block_out(labs):
    sweep(BlockOut, labs, {"old", "all"})


def test_unblock_out(labs):
    sweep(UnblockOut, labs, {"old", "all"})


def test_detach_out(labs):
    sweep(DetachOut, labs, {"old", "part", "all"})


def test_attach_out(labs):
    sweep(AttachOut, labs, {"old", "part", "all"})
