# SPDX-License-Identifier: GPL-2.0-only
"""tests/run repeats tests of the lab that have failed: what passes alone is unsteady, what fails twice has failed."""

import os
import pathlib
import shutil
import subprocess

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


@pytest.fixture(name="lab")
def run_of_a_lab(tmp_path):
    """lab("test text") is what tests/run prints of a lab with these tests and test_steady, and its exit status."""

    def lab(tests):
        (tmp_path / "tests/lab").mkdir(parents=True)
        (tmp_path / "build/tests/datapath").mkdir(parents=True)
        for name in "run", "unsteady.py":
            shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
        for name in "weir", "tests/datapath/cases.txt":
            (tmp_path / "build" / name).touch()
        (tmp_path / "tests/lab/conftest.py").write_text(
            'import pytest\n\ndef pytest_configure(config):\n    config.addinivalue_line("markers", "alone: times")\n\n'
            '@pytest.hookimpl(tryfirst=True)\ndef pytest_collection_modifyitems(items):\n    for item in items:\n'
            '        item.add_marker(pytest.mark.xdist_group("one"))\n')
        (tmp_path / "tests/lab/test_a.py").write_text(ONCE + tests + STEADY)
        (tmp_path / "tests/lab/test_b.py").write_text("import pytest\n\n@pytest.mark.alone\ndef test_alone():\n    pass\n")
        environment = {name: value for name, value in os.environ.items() if name not in ("BESIDE", "O")}
        done = subprocess.run([tmp_path / "tests/run", "lab"], capture_output=True, text=True, timeout=120, check=False,
                              env=environment)
        assert not done.stderr
        return done.stdout.splitlines(), done.returncode

    return lab


def lines_with(lines, word):
    return [line for line in lines if word in line]


def test_a_test_that_passes_alone(lab, tmp_path):
    lines, status = lab("""
@pytest.mark.parametrize("word", ["a b/c - d"])
def test_late(word):
    print("said before")
    once("late")
""")
    assert not status and lines[-1] == "3 passed, 0 failed, 1 unsteady"
    assert lines_with(lines, "repeated at the end") == ["  is repeated at the end: tests/lab/test_a.py::test_late[a b/c - d]"]
    assert lines_with(lines, "unsteady: ") == ["unsteady: tests/lab/test_a.py::test_late[a b/c - d]"]
    kept = list((tmp_path / "build/unsteady").glob("*.log"))
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
    lines, status = lab('@pytest.mark.parametrize("n", range(21))\ndef test_late(n):\n    once(f"late{n}")\n')
    assert status == 1 and not lines_with(lines, "repeated") and lines[-1] == "2 passed, 21 failed"


def test_nothing_fails(lab):
    lines, status = lab("")
    assert not status and lines[-1] == "2 passed, 0 failed"
