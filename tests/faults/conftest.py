# SPDX-License-Identifier: GPL-2.0-only
"""Fixtures of the fault tests: the fixtures of the lab, and a lab for each worker."""

import contextlib
import pathlib
import sys

import pytest

LAB = pathlib.Path(__file__).resolve().parents[1] / "lab"
sys.path.insert(0, str(LAB))

import scenario  # noqa: E402
from labnet import fixtures_of_the_lab, run, running_lab  # noqa: E402


_LAB = fixtures_of_the_lab()
root, shared_pair, weir_instance = _LAB.root, _LAB.shared_pair, _LAB.weir_instance
attached_weir = _LAB.attached_weir


def second_link(lab):
    """near1 and far1, for commands on two interfaces."""
    near1, far1 = ["near1", "netns", lab.near_netns], ["far1", "netns", lab.far_netns]
    run(["ip", "link", "add", *near1, "address", lab.near_mac, "type", "veth", "peer", *far1])
    lab.link("set", "near1", "up")
    lab.link("set", "far1", "up", host="far")


@pytest.fixture(scope="session", name="labs")
def one_lab_a_worker():
    with contextlib.ExitStack() as stack:
        labs = [stack.enter_context(running_lab()) for _ in range(scenario.WORKERS)]
        for lab in labs:
            second_link(lab)
        yield labs


def pytest_terminal_summary(terminalreporter):
    for line in scenario.left_out:
        terminalreporter.write_line(f"faults: {line}")
