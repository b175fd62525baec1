# SPDX-License-Identifier: GPL-2.0-only
"""tests/executed/budgets and docs/benchmarks.md name the same goals, and the page says truly which are missed."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def goals():
    """{row: (budget, goal)}"""
    rows = (line.split("#")[0].split() for line in (ROOT / "tests/executed/budgets").read_text().splitlines())
    return {row[0]: (int(row[1]), int(row[2])) for row in rows if len(row) == 3}


def test_the_page_has_each_goal_and_says_whether_it_is_missed():
    page = (ROOT / "docs/benchmarks.md").read_text()
    shown = {name: (int(goal), int(executed), word) for name, goal, executed, word in
             re.findall(r"^\| `([\w-]+)` \| (\d+) \| (\d+) \| (reached|missed) \|$", page, re.MULTILINE)}
    assert shown.keys() == goals().keys()
    for name, (budget, goal) in goals().items():
        executed = shown[name][1]
        assert shown[name] == (goal, executed, "reached" if executed <= goal else "missed")
        assert executed <= budget and (budget <= goal or executed > goal), f"{name}: the budget allows to miss its goal"
