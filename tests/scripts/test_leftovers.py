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
    return str(child.pid)


@pytest.fixture(name="marks", autouse=True)
def marks_of_this_test(tmp_path, monkeypatch):
    for name in "NETNS", "MARKS":
        monkeypatch.setattr(leftovers, name, str(tmp_path / name))
    monkeypatch.setattr(leftovers, "FOLDERS", [str(tmp_path / name) for name in ("weir", "run", "none")])
    return tmp_path / "MARKS"


def write(marks, pid, namespace=None, started="1"):
    marks.mkdir(exist_ok=True)
    (marks / pid).write_text(f"{namespace or os.readlink('/proc/self/ns/pid')} {started}\n", encoding="ascii")


def test_processes(marks, ended):
    assert not leftovers.ended()
    leftovers.mark()
    assert not leftovers.ended()  # it runs
    write(marks, ended)
    assert leftovers.ended() == {ended}
    write(marks, ended, "pid:[1]")  # where this process sees nothing
    assert not leftovers.ended()
    write(marks, str(os.getppid()))  # another one has its number now
    assert leftovers.ended() == {str(os.getppid())}


def test_folders(marks, ended, tmp_path):
    leftovers.mark()
    write(marks, ended)
    mine, others = f"t{os.getpid()}-1", ("default", "t1-edge", f"edge-t{ended}-1", f"t{ended}")
    for folder in tmp_path / "weir", tmp_path / "run":
        for name in mine, *others, f"t{ended}-1", f"t{ended}-b3+new":
            (folder / name / "gen").mkdir(parents=True)
    assert leftovers.remove() == 2
    for folder in tmp_path / "weir", tmp_path / "run":
        assert {path.name for path in folder.iterdir()} == {mine, *others}
    assert leftovers.remove() == 0 and {path.name for path in marks.iterdir()} == {str(os.getpid())}


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_namespaces(marks, ended, monkeypatch):
    monkeypatch.setattr(leftovers, "NETNS", "/run/netns")
    write(marks, ended)
    name = f"t{ended}-near"
    subprocess.run(["ip", "netns", "add", name], check=True)
    with subprocess.Popen(["ip", "netns", "exec", name, "sleep", "600"]) as inside:
        assert leftovers.remove() == 1
        assert inside.wait(timeout=10) == -9
    assert not pathlib.Path("/run/netns", name).exists()
