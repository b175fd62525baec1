# SPDX-License-Identifier: GPL-2.0-only
"""Tests that fail beside others and pass when nothing else runs: what tests/run repeats, and what it reports of them.

As a plugin of pytest (`-p unsteady`) this module records each failure in the file that FAILURES names. A machine that
others use refuses a good tree otherwise: most tests of the lab wait for times, and units measure them.
"""
import json
import os
import pathlib
import re
import typing

MOST = 40  # tests that are repeated: if more fail, it is not the machine
LAST = 15  # lines of a first failure that are printed


class Failure(typing.NamedTuple):
    """A report of pytest: of the test itself ("call"), or of what it wants ("setup") and leaves ("teardown")."""
    name: str
    when: str
    text: str


class Plugin:
    """Writes what fails. In a worker of xdist it is silent: the process that started the workers hears of all."""

    def __init__(self, config):
        self.config = config

    def name(self, report):
        """Without the name of the group that xdist adds."""
        node, at, group = report.nodeid.rpartition("@")
        grouped = at and "]" not in group and self.config.getoption("dist", "no") == "loadgroup"
        return self.config.cwd_relative_nodeid(node if grouped else report.nodeid)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            text = "\n".join([report.longreprtext, *(f"--- {title}\n{said}" for title, said in report.sections)])
            with open(os.environ["FAILURES"], "a", encoding="utf-8") as log:
                print(json.dumps([self.name(report), report.when, text]), file=log)


def pytest_configure(config):
    if "FAILURES" in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Plugin(config))


def environment(path):
    """What pytest needs to record failures in this file, which is emptied."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    return {**os.environ, "FAILURES": str(path.resolve()), "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH")]))}


def recorded(path):
    return [Failure(*json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def of_program(program, output):
    """The failures in what a program with tests of cmocka has printed; each has the whole text."""
    tests = dict.fromkeys(re.findall(r"^\[  FAILED  \] ([^\W\d]\w*)$", output, re.M))
    return [Failure(f"{program}: {test}", "call", output) for test in tests]


def names(failures):
    """Each test once, in the order of their failures."""
    return list(dict.fromkeys(failure.name for failure in failures))


def can_repeat(failures, failed):
    """All that has failed is tests, and not too many. A file that cannot be read, for one, has no report of a test."""
    return len(failures) == failed and 0 < len(names(failures)) <= MOST


def already_passed(failures):
    """How many of these tests pytest has counted as passed, too: only their ends have failed."""
    return sum(all(failure.when == "teardown" for failure in failures if failure.name == name) for name in names(failures))


def text_of(failures, name):
    return "\n".join(failure.text for failure in failures if failure.name == name)


def keep(folder, failures, name):
    """Writes the first failure of a test that passed later; returns the name of the file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = re.sub(r"[^\w.-]+", "-", name.rpartition("/test_")[2] or name)[:200] + ".log"
    (folder / file).write_text(text_of(failures, name) + "\n", encoding="utf-8")
    return file


def tell(folder, first, second):
    """Prints for each test how it ended; `second` has the failures of the repetition. Returns the unsteady tests."""
    passed = [name for name in names(first) if name not in names(second)]
    for name in names(second):
        print(f"failed twice: {name}\n{text_of(first, name)}\n--- alone\n{text_of(second, name)}", flush=True)
    for name in passed:
        print(f"unsteady: {name}\n  the first failure is in {folder.name}/{keep(folder, first, name)}; its end:")
        print("\n".join(f"  {line}" for line in text_of(first, name).splitlines()[-LAST:]), flush=True)
    return passed
