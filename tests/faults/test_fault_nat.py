# SPDX-License-Identifier: GPL-2.0-only
"""apply and the end of a trial with a service in nat: ends and blocks come and go, and no connection is lost."""

from scenario import sweep
from test_fault_pool import Change, EndOfTrial, pool

OPTIONS = {"before": "port 80, 81; connections 50000", "after": "port 80, 82; connections 100000"}


class Nat:
    """A port is replaced and a block is added; the connections are to the port that stays."""

    def text(self, name, backends):
        return pool(backends, f"mode nat; idle 3h; {OPTIONS[name]}")


class NatChange(Nat, Change):
    stride, rare_stride = 96, 8


class NatEndOfTrial(Nat, EndOfTrial):
    stride, rare_stride = 48, 4


def test_apply_with_nat(labs):
    sweep(NatChange, labs, {"before", "after"})


def test_end_of_a_trial_with_nat(labs):
    sweep(NatEndOfTrial, labs, {"before", "after"})
