# SPDX-License-Identifier: GPL-2.0-only
"""tests/executed/run: budgets decide, goals are shown, floors are counted."""

import pytest
from labnet import BUILD, run

RUN = BUILD / "tests/executed/run"


@pytest.fixture(name="counted")
def counted_with_budgets(tmp_path):
    """counted(TEXT, ROW) gives the run with these budgets."""

    def counted(budgets, row):
        (tmp_path / "budgets").write_text(budgets)
        return run([RUN, "-v", "-b", tmp_path / "budgets", row], check=False, timeout=300)

    return counted


@pytest.mark.parametrize("goal, word", [("1", "missed"), ("900", "reached")])
def test_a_goal_is_shown_and_does_not_fail(counted, goal, word):
    done = counted(f"hosts-1k 500 {goal} # a reason\n", "hosts-1k")
    line = next(line.split() for line in done.stdout.splitlines() if line.startswith("hosts-1k "))
    assert done.returncode == 0 and line[4:7] == ["500", goal, word]


def test_more_than_the_budget_fails_with_or_without_a_goal(counted):
    for goal in "", "900":
        done = counted(f"hosts-1k 1 {goal}\n", "hosts-1k")
        assert done.returncode == 1 and "FAILED: hosts-1k:" in done.stdout


def test_floors_are_counted_beside_their_row(counted):
    done = counted("hosts-1k 500\n", "hosts-1k")
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert {"hosts-1k/floor-filter", "hosts-1k/floor-padded"} <= set(names) and done.returncode == 0


@pytest.mark.parametrize("line", ["filter-1", "filter-1 x", "filter-1 180 x", "filter-1 180 0", "filter-1 180 190 200"])
def test_a_malformed_line_is_named(counted, line):
    done = counted(f"# budgets\n{line}\n", "filter-1")
    assert done.returncode == 2 and "budgets:2: expected a row, its budget and perhaps its goal" in done.stderr
