# SPDX-License-Identifier: GPL-2.0-only
"""apply, confirm, rollback: the old policy or the new one, complete, and the overlay unchanged."""

from inject import EVERYTHING
from labnet import Pair
from policylab import OTHER4, SOURCE4, SOURCE6, dump, udp
from scenario import Scenario, sweep

BLOCKED, LATER = "192.0.2.7", "192.0.2.8"
EXPECT = f"expect pass udp from {SOURCE4} to {Pair.near4} port 4000"
POLICIES = {
    "old": f"""interface near0
"nine" drop proto udp to port 9
"six" drop proto udp to port 11 from 2001:db8:100::/48
"both" drop proto udp to port 12
{EXPECT}
""",
    "new": f"""interface near0
"ten" drop proto udp to port 10
"other" drop from {OTHER4}
"both" drop proto udp to port 12
{EXPECT}
""",
}
FRAMES = [udp(9), udp(10), udp(11, SOURCE6), udp(4000, OTHER4), udp(12), udp(4000),
          udp(4000, BLOCKED)]
PASSES = {"old": [False, True, False, True, False, True, False],
          "new": [True, False, True, False, False, True, False]}
QUESTION = ("explain", "udp", "from", SOURCE4, "to", Pair.near4, "port", 10)


class Policy(Scenario):
    """Active: the old policy and a block."""

    after = "new"

    def prepare(self):
        self.paths = {}
        for name, text in POLICIES.items():
            self.paths[name] = self.folder / f"{name}.weir"
            self.paths[name].write_text(text)
        self.weir("attach", "near0", "--max-entries", "64")
        self.weir("block", BLOCKED)
        self.weir("apply", self.paths["old"])
        self.state = "old"

    def identities(self):
        return dump(self.weir.bpffs / "identities")

    def before(self):
        if self.state != "old" or EVERYTHING:
            self.weir("apply", self.paths["old"])
        self.state = "old"
        self.rows = self.identities()

    def packets(self):
        found = self.prober.passes(FRAMES)
        for name, passes in PASSES.items():
            if found == passes:
                return name
        raise AssertionError(f"packets meet no complete policy: {found}")

    def whole(self):
        self.state = "unknown"
        state = self.packets()
        assert list(self.weir.entries()) == [BLOCKED], "the overlay changed"
        dropped = "drop" in self.weir(*QUESTION).stdout.splitlines()[0]
        assert dropped != PASSES[state][1], "explain differs from packets"
        self.shown = self.weir("show").stdout
        assert self.shown in POLICIES.values()
        self.state = state
        return state

    def accepted(self, state):
        """The policy that the record must name."""
        return state

    def go_on(self, state, fault, outcome):
        if not outcome.killed and outcome.status and state == "old":
            assert self.identities() == self.rows, "a failure changes the ids of counters"
        recorded = self.shown == POLICIES[self.accepted(state)]
        assert recorded or outcome.status, "done, but not recorded"
        self.weir("block", LATER)
        self.weir("unblock", LATER)
        assert len(list((self.weir.bpffs / "gen").iterdir())) <= 4
        if not recorded:
            self.start_again(state)

    def start_again(self, state):
        self.weir("detach")
        assert self.lab.xdp_names()["near0"] is None
        assert not list(self.weir.bpffs.parent.glob(f"{self.weir.name}*")), "objects in bpffs are left"
        self.weir("attach", "near0", "--max-entries", "64")
        wanted = self.accepted(state)
        self.state = self.packets()
        assert self.state == wanted, "the restored state was never active"
        assert self.weir("show").stdout == POLICIES[wanted]
        assert not list(self.weir.state.rglob("*.new"))


class Apply(Policy):
    def prepare(self):
        super().prepare()
        self.argv = ("apply", self.paths["new"])


class Trial(Policy):
    """A trial is only in the kernel."""

    def prepare(self):
        super().prepare()
        self.argv = ("apply", self.paths["new"], "--confirm=60s")

    def before(self):
        if self.state != "old":
            self.weir("rollback")
            self.state = "old"
        super().before()

    def accepted(self, state):
        return "old"

    def go_on(self, state, fault, outcome):
        super().go_on(state, fault, outcome)
        left = self.weir("rollback", check=False)
        if state == "new":
            assert left.returncode == 0 and self.whole() == "old"


class Confirm(Policy):
    """Packets meet the new policy before and after; only the deadline and the record change."""

    after = "confirmed"

    def prepare(self):
        super().prepare()
        self.argv = ("confirm",)

    def before(self):
        if self.state != "trial":
            if self.state != "old":
                self.weir("apply", self.paths["old"])
            self.weir("apply", self.paths["new"], "--confirm=60s")
        self.rows = self.identities()

    def whole(self):
        state = super().whole()
        if state == "new":
            left_ms = self.weir.json("status")["trial_ms_left"]
            self.state = "trial" if left_ms else "confirmed"
        return self.state

    def accepted(self, state):
        return "new" if state == "confirmed" else "old"


class EndTrial(Confirm):
    """rollback, during a trial."""

    after = "old"

    def prepare(self):
        super().prepare()
        self.argv = ("rollback",)

    def accepted(self, state):
        return "old"


class Rollback(Apply):
    """rollback to the previous revision: an apply of its record."""

    stride, rare_stride = 48, 3

    def prepare(self):
        super().prepare()
        self.weir("apply", self.paths["new"])
        self.weir("apply", self.paths["old"])
        self.argv = ("rollback",)

    def before(self):
        if EVERYTHING:  # the revision before the active one is the new one
            self.weir("apply", self.paths["new"])
        super().before()


def test_apply(labs):
    sweep(Apply, labs, {"old", "new"})


def test_apply_on_trial(labs):
    sweep(Trial, labs, {"old", "new"})


def test_confirm(labs):
    sweep(Confirm, labs, {"trial", "confirmed"})


def test_rollback_of_a_trial(labs):
    sweep(EndTrial, labs, {"trial", "old"})


def test_rollback(labs):
    sweep(Rollback, labs, {"old", "new"})
