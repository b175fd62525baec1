# SPDX-License-Identifier: GPL-2.0-only
"""weir rule, with a kill or an error at each system call: packets, the list and the file agree on one set of rules."""
from policylab import udp

from scenario import Scenario, sweep

POLICY = """interface near0
"nine" drop proto udp to port 9
"""
OLD, NEW = "drop proto udp to any port 11", "drop proto udp to any port 10"
FRAMES = [udp(9), udp(10), udp(11), udp(12)]
PASSES = {"old": [False, True, False, True], "new": [False, False, False, True]}
RULES = {"old": [OLD], "new": [OLD, NEW]}


class Add(Scenario):
    """Active: a policy and one quick rule."""

    argv = ("rule", "add", "--origin", "new", "--for", "1h", NEW)
    after = "new"
    starts = "old"

    def prepare(self):
        policy = self.folder / "policy.weir"
        policy.write_text(POLICY)
        self.weir("attach", "near0", "--max-entries", "64")
        self.weir("apply", policy)
        self.weir("rule", "add", OLD)
        self.state = "old"

    def become(self, state):
        if self.state == "new" and state == "old":
            self.weir("rule", "delete", "--origin", "new", "--all")
        if self.state == "old" and state == "new":
            self.weir(*Add.argv)
        self.state = state

    def before(self):
        self.become(self.starts)

    def packets(self):
        found = self.prober.passes(FRAMES)
        for name, passes in PASSES.items():
            if found == passes:
                return name
        raise AssertionError(f"packets meet neither set of rules: {found}")

    def whole(self):
        state = self.packets()
        rules = self.weir.json("rule", "list")["rules"]
        assert [rule["rule"] for rule in rules] == RULES[state], "the list differs from packets"
        assert self.weir.json("stats")["rules"][-1]["rule"] == "nine"
        assert self.weir.json("status")["alarms"] == []
        self.state = state
        self.ids = [rule["id"] for rule in rules]
        return state

    def go_on(self, state, fault, outcome):
        added = self.weir.json("rule", "add", "drop proto udp to any port 13")["id"]
        assert added > max(self.ids), "an id is used again"
        self.weir("rule", "delete", added)
        assert self.whole() == state

    def start_again(self, state):
        self.weir("detach")
        self.weir("attach", "near0", "--max-entries", "64")
        assert self.whole() == state, "other rules are restored"
        assert not list(self.weir.state.rglob("*.new"))


class Delete(Add):
    argv = ("rule", "delete", "--origin", "new", "--all")
    after = "old"
    starts = "new"


def test_add(labs):
    sweep(Add, labs, {"old", "new"})


def test_delete(labs):
    sweep(Delete, labs, {"old", "new"})
