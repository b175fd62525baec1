# SPDX-License-Identifier: GPL-2.0-only
"""contrib/ansible: Debian's Ansible puts a policy into effect, once; a bad one and one that cuts it off change nothing."""
import json
import os
import re
import shutil
import subprocess

import pytest

from labnet import ROOT, WEIR, until
from policylab import udp

TASKS = ROOT / "contrib" / "ansible" / "weir.yml"
FIRST = 'interface near0\n"odd" drop proto udp to port 9999\nexpect drop udp from 203.0.113.9 to 10.77.0.1 port 9999\n'
SECOND = FIRST.replace("9999", "8888")
pytestmark = pytest.mark.skipif(not shutil.which("ansible-playbook"), reason="no ansible-playbook (apt-cache policy ansible-core)")


class Play:
    def __init__(self, on, folder):
        self.on, self.folder, self.policy = on, folder, folder / "new.weir"
        self.target = folder / "etc" / f"{on.name}.weir"
        self.variables = {
            "weir_policy": str(self.policy), "weir_instance": on.name, "weir_folder": str(folder / "etc"),
            "weir_command": f"{WEIR} -N {on.pair.near_netns}", "weir_agent": "false"}  # as `-e weir_agent=false` has it

    def __call__(self, *options, policy=None, status=0, **variables):
        """What the recap says of the host: changed, failed, ...; and its output."""
        if policy is not None:
            self.policy.write_text(policy)
        book = self.folder / "book.yml"
        book.write_text(f"- hosts: all\n  gather_facts: false\n  tasks:\n    - ansible.builtin.import_tasks: {TASKS}\n")
        done = subprocess.run(
            ["ansible-playbook", "-i", "localhost,", "-c", "local", "-e", json.dumps({**self.variables, **variables}), *options, book],
            capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_LOCAL_TEMP": str(self.folder), "ANSIBLE_REMOTE_TEMP": str(self.folder),
                 "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3"})
        assert done.returncode == status, done.stdout + done.stderr
        recap = done.stdout[done.stdout.index("PLAY RECAP"):]
        return {key: int(number) for key, number in re.findall(r"(\w+)=(\d+)", recap)}, done.stdout


@pytest.fixture(name="play")
def playbook(on, tmp_path):
    return Play(on, tmp_path)


def test_twice_and_another_policy(pair, on, play):
    assert play(policy=FIRST)[0]["changed"] >= 3
    assert play.target.read_text() == FIRST and pair.passes(udp(9999), udp(8888)) == [False, True]
    status = on.json("status")
    assert status["trial_ms_left"] == 0
    assert status["path"] == str(play.target)
    assert {revision["path"] for revision in on.json("history")["revisions"]} == {str(play.target)}
    assert all(".staged" not in on(command).stdout for command in ("status", "history", "metrics"))
    second, _ = play()
    assert (second["changed"], second["failed"]) == (0, 0)
    assert on.json("status")["revision"] == status["revision"]
    assert play(policy=SECOND)[0]["changed"] >= 3
    assert pair.passes(udp(9999), udp(8888)) == [True, False]


def test_a_bad_policy_changes_nothing(pair, on, play):
    play(policy=FIRST)
    for bad, why in ("nonsense\n", "nonsense"), (SECOND.replace("expect drop", "expect pass"), "expect"):
        stats, said = play(policy=bad, status=2)
        assert (stats["changed"], stats["failed"]) == (0, 1) and why in said
    assert play.target.read_text() == FIRST and pair.passes(udp(9999)) == [False]


def test_without_a_confirmation_the_policy_returns(pair, on, play):
    play(policy=FIRST)
    # The connection works, so the command that confirms is what is missing: a wrapper of the same name, without it.
    wrapper = play.folder / "weir"
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *confirm) exit 1;; esac\nexec {play.variables["weir_command"]} "$@"\n')
    wrapper.chmod(0o755)
    play(policy=SECOND, status=2, weir_command=str(wrapper), weir_trial="3s")
    assert play.target.read_text() == FIRST  # a boot restores the one that was kept
    until(lambda: pair.passes(udp(9999)) == [False], what="the end of the trial")


def test_beside_the_agent(pair, on, play):
    play(policy=FIRST)
    agent = on.run(play.target)
    revision = on.json("status")["revision"]
    assert play(policy=SECOND)[0]["changed"] >= 3
    until(lambda: pair.passes(udp(9999), udp(8888)) == [True, False], what="the second policy")
    assert on.json("status")["revision"] != revision
    assert play()[0]["changed"] == 0
    assert agent.stop() == 0


def test_check_mode(on, play):
    assert play("--check", policy=FIRST)[0]["changed"] >= 1
    assert not play.target.exists()
