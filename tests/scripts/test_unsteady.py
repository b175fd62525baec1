# SPDX-License-Identifier: GPL-2.0-only
"""tests/run repeats tests that have failed: what passes alone is unsteady, what fails twice has failed."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Fails once, or whenever the folder of the test has no file of this name.
ONCE = """
import pathlib, pytest

def once(name):
    path = pathlib.Path(__file__).with_name(name + ".met")
    met = path.exists()
    path.touch()
    assert met, f"{name} is late"
"""
STEADY = "def test_steady():\n    pass\n"


def tree(folder):
    """A tree with tests/run, in which all is built."""
    (folder / "build/tests/datapath").mkdir(parents=True)
    (folder / "tests").mkdir()
    for name in "run", "unsteady.py":
        shutil.copy(ROOT / "tests" / name, folder / "tests")
    (folder / "tests/leftovers.py").write_text("def remove():\n    return 0\n", encoding="ascii")
    for name in "weir", "tests/datapath/cases.txt":
        (folder / "build" / name).touch()


@pytest.fixture(name="folder")
def folder_of_anybody():
    """NOBODY runs units; another pytest that begins closes its parents to him."""
    with tempfile.TemporaryDirectory(prefix="weir-unsteady-") as path:
        os.chmod(path, 0o777)
        yield pathlib.Path(path)


def run_of(folder, part):
    """The lines that tests/run prints of a part, and its exit status."""
    environment = {name: value for name, value in os.environ.items() if name not in ("BESIDE", "O")}
    done = subprocess.run([folder / "tests/run", part], capture_output=True, text=True, timeout=120, check=False,
                          env=environment)
    assert not done.stderr
    return done.stdout.splitlines(), done.returncode


@pytest.fixture(name="lab")
def run_of_a_lab(folder):
    """lab("test text") is what tests/run prints of a lab with these tests and test_steady, and its exit status."""

    def lab(tests):
        tree(folder)
        (folder / "tests/lab").mkdir()
        (folder / "tests/lab/conftest.py").write_text(
            'import pytest\n\ndef pytest_configure(config):\n    config.addinivalue_line("markers", "alone: times")\n\n'
            '@pytest.hookimpl(tryfirst=True)\ndef pytest_collection_modifyitems(items):\n    for item in items:\n'
            '        item.add_marker(pytest.mark.xdist_group("one"))\n')
        (folder / "tests/lab/test_a.py").write_text(ONCE + tests + STEADY)
        (folder / "tests/lab/test_b.py").write_text("import pytest\n\n@pytest.mark.alone\ndef test_alone():\n    pass\n")
        return run_of(folder, "lab")

    return lab


# A program as cmocka makes it: one test that fails once, one that always does, if wanted.
UNIT = """#!/bin/sh
again=%s/met.$(echo "$0" | tr / _)
failed="%s"
[ -e "$again" ] || failed="%s $failed"
: >"$again"
echo '[==========] Running 3 test(s).'
failed=$(echo $failed)
[ -z "$failed" ] || echo "[   LINE   ] --- because of $failed"
[ -z "$failed" ] || printf '[  FAILED  ] %%s\n' $failed
echo "[  PASSED  ] $((3 - $(echo $failed | wc -w))) test(s)."
[ -z "$failed" ] || echo "[  FAILED  ] $(echo $failed | wc -w) test(s), listed below:"
[ -z "$failed" ] || printf '[  FAILED  ] %%s\n' $failed
%s
[ -z "$failed" ]
"""


@pytest.fixture(name="unit")
def run_of_a_unit(folder):
    """unit() is what tests/run prints of a unit in both its forms, whose test `late` fails once, `wrong` always, and which
    runs a command at its end; and the exit status."""

    def unit(wrong="", late="late", end=":"):
        tree(folder)
        (folder / "tests/unit/base").mkdir(parents=True)
        (folder / "tests/unit/base/test_x.c").touch()
        for form in "tests", "asan/tests":
            program = folder / "build" / form / "unit/base/test_x"
            program.parent.mkdir(parents=True)
            program.write_text(UNIT % (folder, wrong, late, end))
            program.chmod(0o755)
        return run_of(folder, "unit")

    return unit


def lines_with(lines, word):
    return [line for line in lines if word in line]


def test_a_test_that_passes_alone(lab, folder):
    lines, status = lab("""
@pytest.mark.parametrize("word", ["a b/c - d"])
def test_late(word):
    print("said before")
    once("late")
""")
    assert not status and lines[-1] == "3 passed, 0 failed, 1 unsteady"
    assert lines_with(lines, "repeated at the end") == ["  is repeated at the end: tests/lab/test_a.py::test_late[a b/c - d]"]
    assert lines_with(lines, "unsteady: ") == ["unsteady: tests/lab/test_a.py::test_late[a b/c - d]"]
    kept = list((folder / "build/unsteady").glob("*.log"))
    assert len(kept) == 1 and "late is late" in kept[0].read_text() and "said before" in kept[0].read_text()
    assert lines_with(lines, f"unsteady/{kept[0].name}") and lines_with(lines, "  said before")


def test_a_test_that_fails_twice(lab):
    lines, status = lab("def test_wrong():\n    assert 1 == 2\n\ndef test_late():\n    once('late')\n")
    assert status == 1 and lines[-1] == "3 passed, 1 failed, 1 unsteady"
    assert lines_with(lines, "failed twice: ") == ["failed twice: tests/lab/test_a.py::test_wrong"]
    assert len(lines_with(lines, "assert 1 == 2")) >= 2


def test_what_fails_before_and_after_a_test(lab):
    lines, status = lab("""
@pytest.fixture(name="before")
def fails_before():
    once("before")

@pytest.fixture(name="after")
def fails_after():
    yield
    once("after")

def test_before(before):
    pass

def test_after(after):
    pass

def test_itself():
    once("itself")
""")
    assert not status and lines[-1] == "5 passed, 0 failed, 3 unsteady"


def test_a_file_that_cannot_be_read(lab):
    lines, status = lab("import no_such_module\n")
    assert status == 1 and not lines_with(lines, "repeated") and lines_with(lines, "no_such_module")
    assert " 0 failed" not in lines[-1]


def test_a_process_that_dies(lab):
    lines, status = lab("def test_killed():\n    import os\n    os._exit(3)\n")
    assert status == 1 and lines_with(lines, "failed") and " 0 failed" not in lines[-1]


def test_more_failures_than_a_machine_causes(lab):
    lines, status = lab('@pytest.mark.parametrize("n", range(41))\ndef test_late(n):\n    once(f"late{n}")\n')
    assert status == 1 and not lines_with(lines, "repeated") and lines[-1] == "2 passed, 41 failed"


def test_a_unit_that_passes_alone(unit, folder):
    lines, status = unit()
    assert not status and lines[-1] == "6 passed, 0 failed, 2 unsteady"
    assert lines_with(lines, "unsteady: ") == ["unsteady: unit: base/x: late", "unsteady: unit, sanitized: base/x: late"]
    kept = sorted((folder / "build/unsteady").glob("*.log"))
    assert len(kept) == 2 and all("because of late" in path.read_text() for path in kept)


def test_a_unit_that_fails_twice(unit):
    lines, status = unit("wrong")
    assert status == 1 and lines[-1] == "4 passed, 2 failed, 2 unsteady"
    assert lines_with(lines, "failed twice: ") == ["failed twice: unit: base/x: wrong",
                                                   "failed twice: unit, sanitized: base/x: wrong"]


@pytest.mark.parametrize("late, end", [("late", "kill -ABRT $$"), ("", "exit 1")])
def test_a_unit_that_dies_is_not_repeated(unit, late, end):
    lines, status = unit(late=late, end=end)
    assert status == 1 and not lines_with(lines, "repeated") and lines[-1].endswith(" 2 failed")


def test_nothing_fails(lab):
    lines, status = lab("")
    assert not status and lines[-1] == "2 passed, 0 failed"
