# SPDX-License-Identifier: GPL-2.0-only
"""attach and detach: each interface is complete, so any attached interface applies the accepted policy and
the entries."""

import json

from policylab import SOURCE4, udp
from scenario import Prober, Scenario, sweep

BLOCKED = ["192.0.2.7", "2001:db8:100::/48"]
FRAMES = [udp(src="192.0.2.7"), udp(src="2001:db8:100::7"), udp(9), udp(10)]
ATTACHED, FREE = [False, False, False, True], [True] * 4
POLICY = """interface near*
"nine" drop proto udp to port 9
"""


class Attach(Scenario):
    devices = ("near0",)
    argv = ("attach", "near0", "--max-entries", "64")

    def begin(self):
        super().begin()
        self.probers = {"near0": self.prober, "near1": Prober(self.lab, "near1", "far1")}

    def end(self):
        self.probers["near1"].close()
        self.weir("detach", "--force", check=False)
        for device in "near0", "near1":
            for mode in "xdpdrv", "xdpgeneric":
                self.lab.link("set", "dev", device, mode, "off")
        super().end()

    @property
    def after(self):
        return self.devices

    def attach(self):
        self.weir("attach", *self.devices, "--max-entries", "64")

    def prepare(self):
        self.policy = self.folder / "policy.weir"
        self.policy.write_text(POLICY)
        self.attach()
        self.weir("block", *BLOCKED)
        self.weir("apply", self.policy)
        self.weir("detach")

    def before(self):
        if self.weir.bpffs.exists():
            self.weir("detach")
        assert self.whole() == ()

    def whole(self):
        """The interfaces that have the program; each is tested with packets."""
        names = tuple(name for name, program in sorted(self.lab.xdp_names().items()) if program)
        for name, prober in self.probers.items():
            passes = prober.passes(FRAMES)
            wanted = ATTACHED if name in names else FREE
            assert passes == wanted, f"{names} attached, {name} allows {passes}"
        if names:
            assert self.weir.bpffs.exists(), f"{names} attached, and nothing is in bpffs"
            assert set(self.weir.entries()) == set(BLOCKED)
        return names

    def leftovers(self):
        return list(self.weir.bpffs.parent.glob(f"{self.weir.name}+*"))

    def go_on(self, state, fault, outcome):
        if fault.nth % 2:
            self.attach()
            assert self.whole() == self.devices
            assert set(self.weir.entries()) == set(BLOCKED)
            assert self.weir("show").stdout == POLICY
            assert self.leftovers() == []
        self.weir("detach")
        assert self.whole() == ()
        assert not self.weir.bpffs.exists() and self.leftovers() == []


class AttachOneMore(Attach):
    """Two at once, of which one is attached already: that one stays attached in any case."""

    devices = ("near0", "near1")
    argv = ("attach", "near0", "near1")

    def before(self):
        super().before()
        self.weir("attach", "near0", "--max-entries", "64")


class AttachOnTrial(AttachOneMore):
    """An interface on trial is never attached without the deadline that detaches it."""

    argv = ("attach", "near0", "near1", "--confirm=60s")

    def whole(self):
        names = super().whole()
        if "near1" in names:
            status = json.loads(self.weir("-j", "status", check=False).stdout)
            assert status["trial_brought"] == ["near1"] and status["trial_ms_left"], status
        return names

    def go_on(self, state, fault, outcome):
        if "near1" in state:
            self.weir("rollback")
            assert self.whole() == ("near0",)
        else:
            # A killed command may have left a trial with nothing attached yet.
            done = self.weir("attach", "near1", "--confirm=60s", check=False)
            if done.returncode == 3:
                self.weir("rollback")
                self.weir("attach", "near1", "--confirm=60s")
            assert self.whole() == self.devices
        self.weir("detach")
        assert self.whole() == () and self.leftovers() == []


class Detach(Attach):
    devices = ("near0", "near1")
    argv = ("detach",)

    @property
    def after(self):
        return ()

    def before(self):
        self.attach()
        assert self.whole() == self.devices


def test_attach(labs):
    sweep(Attach, labs, {(), ("near0",)})


def test_attach_one_more(labs):
    sweep(AttachOneMore, labs, {("near0",), ("near0", "near1")})


def test_attach_on_trial(labs):
    sweep(AttachOnTrial, labs, {("near0",), ("near0", "near1")})


def test_detach(labs):
    sweep(Detach, labs, {(), ("near1",), ("near0", "near1")})
