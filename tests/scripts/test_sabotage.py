# SPDX-License-Identifier: GPL-2.0-only
"""Each defect of tests/sabotage has its place: a line that has changed would leave it out silently."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_each_defect_has_one_place():
    said = subprocess.run([ROOT / "tests/sabotage/run", "--list"], capture_output=True, text=True, check=True).stdout
    lines = said.splitlines()
    assert len(lines) > 50 and not [line for line in lines if not line.startswith("1 ")]
