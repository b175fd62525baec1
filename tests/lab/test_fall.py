# SPDX-License-Identifier: GPL-2.0-only
"""How many failed checks take a backend out: `fall N of M`, and the counts of checks."""

import pytest
from balancerlab import policy

from labnet import until

ONE, TWO = "10.78.2.1", "10.78.2.2"
BALANCER = {"mode": "ipip", "backends": 2}
# Fails every other time for the second backend. What a check leaves, the next one finds.
ALTERNATES = """#!/bin/sh
test "$WEIR_BACKEND" = 10.78.2.2 || exit 0
mkdir "{folder}/odd" 2>/dev/null && exit 1
rmdir "{folder}/odd"
"""


@pytest.fixture(name="checked")
def alternating_checks(balancer, node, tmp_path):
    """checked(WORDS) applies a service whose check has these words, and returns a query for the second backend."""
    program = tmp_path / "check"
    program.write_text(ALTERNATES.format(folder=tmp_path))
    program.chmod(0o755)

    def apply(words):
        path = tmp_path / "web.weir"
        path.write_text(policy(balancer, (1, 2), f'check exec "{program}" every 600ms timeout 600ms {words}'))
        node("apply", path)
        return lambda: node.backend(TWO)

    return apply


def fallen(one):
    return one["health"].startswith("failing")


def checks(one):
    return one.get("checks", 0)  # absent until the agent has written them


def test_a_backend_that_fails_every_other_check_is_taken_out(node, checked):
    shown = checked("")
    node.run()
    until(lambda: fallen(shown()) and shown()["slots"] == 0)
    assert node.backend(ONE)["health"] == "ok"
    assert 3 <= shown()["checks_failed"] <= shown()["checks"]


def test_a_bare_fall_counts_failures_in_a_row(node, checked):
    shown = checked("fall 2")
    node.run()
    until(lambda: checks(shown()) >= 16, 40)
    assert shown()["health"] == "ok" and 6 <= shown()["checks_failed"] <= shown()["checks"] - 6
    checked("fall 2 of 3")
    until(lambda: fallen(shown()))


def test_counts_of_checks(node, checked):
    """They continue across an apply, and begin again with the agent."""
    shown = checked("fall 10")
    assert "checks" not in shown()
    agent = node.run()
    until(lambda: checks(shown()) >= 30, 60)  # more than a new agent has when it first writes them
    good = node.backend(ONE)
    assert good["checks"] >= 20 and good["checks_failed"] == 0
    before = shown()
    assert abs(2 * before["checks_failed"] - before["checks"]) <= 1
    checked("fall 11")
    until(lambda: checks(shown()) > before["checks"], 40)
    agent.stop()
    assert "checks" not in shown() and "checks_failed" not in shown()
    node.run()
    until(lambda: 0 < checks(shown()) < before["checks"])
