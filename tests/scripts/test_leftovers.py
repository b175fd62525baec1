# SPDX-License-Identifier: GPL-2.0-only
"""tests/run removes what tests that were killed have left, and nothing else."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import leftovers  # noqa: E402 # pylint: disable=wrong-import-position


@pytest.fixture(name="ended")
def pid_of_an_ended_process():
    with subprocess.Popen(["true"]) as child:
        pass
    return child.pid


def test_names(ended):
    assert leftovers.is_left(f"t{ended}-1") and leftovers.is_left(f"t{ended}-b3-near")
    assert not leftovers.is_left(f"t{os.getpid()}-1")
    for name in "default", f"{ended}", f"t{ended}", f"edge-t{ended}-1", "t-1":
        assert not leftovers.is_left(name), name


def test_folders(ended, tmp_path, monkeypatch):
    folders = tmp_path / "weir", tmp_path / "run"
    for folder in folders:
        for name in f"t{ended}-1", f"t{os.getpid()}-1", "default":
            (folder / name / "gen").mkdir(parents=True)
    monkeypatch.setattr(leftovers, "FOLDERS", [*map(str, folders), str(tmp_path / "none")])
    monkeypatch.setattr(leftovers, "NETNS", str(tmp_path / "none"))
    assert leftovers.remove() == 1
    for folder in folders:
        assert sorted(path.name for path in folder.iterdir()) == sorted((f"t{os.getpid()}-1", "default"))
    assert leftovers.remove() == 0
