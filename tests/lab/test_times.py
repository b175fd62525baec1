# SPDX-License-Identifier: GPL-2.0-only
"""What commands cost, counted in calls to the kernel: not more with more interfaces, never a wait."""
import collections
import fcntl
import json
import os
import re
import subprocess

import pytest

from labnet import run

BLOCKED = "203.0.113.10"
CALL = re.compile(r"^(?:\d+ +)?(\w+)\((\w+)?")
MANY = 12  # interfaces beside near0
FEW_CALLS = 60


def calls(weir, log, *args, status=0):
    """How often a command makes each system call; calls of bpf() by their command, too."""
    done = run(["strace", "-f", "-qq", "-e", "signal=none", "-o", log, *weir.argv(*args)], check=False)
    assert done.returncode == status, done.stdout + done.stderr
    counted = collections.Counter()
    for line in log.read_text("ascii", errors="replace").splitlines():
        if found := CALL.match(line):
            counted[found[1]] += 1
            if found[1] == "bpf":
                counted[found[2]] += 1
    return counted


@pytest.fixture(name="cost")
def cost_of(on, tmp_path):
    return lambda *args, **options: calls(on, tmp_path / "log", *args, **options)


@pytest.fixture(name="more")
def more_interfaces(pair, on):
    """more(): attaches to MANY devices beside near0."""
    names = [f"more{number}" for number in range(MANY)]

    def attach():
        for number, name in enumerate(names):
            pair.link("add", name, "type", "veth", "peer", "name", f"peer{number}")
            pair.link("set", name, "up")
        on("attach", *names)

    yield attach
    on("detach", *names, check=False)
    for name in names:
        run(["ip", "-n", pair.near_netns, "link", "del", name], check=False)


def test_metrics_do_not_wait(cost):
    counted = cost("metrics")
    assert not counted["nanosleep"] + counted["clock_nanosleep"]
    assert cost("status")["clock_nanosleep"]  # which shows a rate


def test_a_ban_makes_few_calls(on, cost):
    on("block", "203.0.113.1")  # the first one makes a shard
    assert cost("block", BLOCKED)["bpf"] <= FEW_CALLS
    assert cost("unblock", BLOCKED)["bpf"] <= FEW_CALLS


CHANGES = [("block", BLOCKED), ("unblock", BLOCKED), ("block", "2001:db8:99::/48"), ("unblock", "2001:db8:99::/48")]


def test_as_many_calls_with_more_interfaces(on, cost, more):
    """A ban looks at all of them, and names them, all the same."""
    on("block", "203.0.113.1", "2001:db8:1::/48")
    few = [cost(*change) for change in CHANGES]
    more()
    many = [cost(*change) for change in CHANGES]
    for before, after in zip(few, many):
        assert after["bpf"] == before["bpf"]
        assert sum(after.values()) <= sum(before.values()) + MANY, (before, after)
    assert on("block", BLOCKED).stdout.count(" more") == MANY


def test_a_device_that_lost_the_program_is_named(pair, on, more):
    more()
    on.cut("more3")
    done = on("block", BLOCKED, check=False)
    assert done.returncode == 3 and "not attached to more3:" in done.stderr and " more3 " not in done.stdout


def test_a_device_that_was_renamed_is_known(pair, on, more):
    more()
    pair.link("set", "more3", "down")
    pair.link("set", "more3", "name", "other3")
    try:
        assert " other3 " in on("block", BLOCKED).stdout
    finally:
        pair.link("set", "other3", "name", "more3")


class Listed:
    """An active policy with a list file of many addresses."""

    def __init__(self, weir, folder):
        self.weir, self.path, self.list = weir, folder / "p.weir", folder / "list.txt"

    def __call__(self, count, more=""):
        self.list.write_text("".join(f"11.{n >> 16}.{n >> 8 & 255}.{n & 255}\n" for n in range(1, count + 1)))
        self.path.write_text(f'interface near0\nset s {{ file "list.txt" }}\n"listed" drop from @s\n{more}')
        self.weir("apply", self.path, "--force")

    @property
    def record(self):
        return self.weir.state / "accepted" / self.weir.json("status")["revision"]


@pytest.fixture(name="listed")
def listed_policy(on, tmp_path):
    return Listed(on, tmp_path)


ASKED = "11.0.0.99"
QUESTIONS = [("stats",), ("metrics",), ("explain", ASKED), ("explain", "192.0.2.1"),
             ("explain", "tcp", "from", ASKED, "to", "10.77.0.1", "port", "22")]


def test_questions_read_no_list_again(on, tmp_path, cost, listed):
    """As many calls with ten times as many addresses, and none that reads the list; with the same answers."""
    costs = []
    listed(5000)  # from here on there is a previous policy, too
    for count in 6000, 60000:
        listed(count)
        on("metrics")  # the first one looks at the whole record
        costs.append([cost(*question) for question in QUESTIONS])
        list_file = str(listed.record / "1")
        for question in QUESTIONS:
            cost(*question)
            assert (tmp_path / "log").read_text().count(f'"{list_file}"') == ("metrics" in question), question
    for question, few, many in zip(QUESTIONS, *costs):
        assert many["bpf"] == few["bpf"] and abs(many["read"] - few["read"]) <= 2, (question, few, many)


def answers(weir):
    return [weir.json(*question) for question in QUESTIONS if question[0] == "explain"]


@pytest.mark.parametrize("damage", ["missing", "begin", "middle", "cut"])
def test_the_answers_do_not_depend_on_what_is_kept(on, listed, damage):
    listed(6000, "drop from @s, not 11.0.0.99\nexpect drop tcp from @s to 10.77.0.1\n")
    kept, before = listed.record / "addresses", answers(on)
    assert before[0]["from"] == "drop" and "list.txt:99" in json.dumps(before[0]) and before[1]["from"] == "pass"
    content = bytearray(kept.read_bytes())
    at = {"begin": 70, "middle": len(content) // 2}.get(damage)
    if damage == "missing":
        kept.unlink()
    elif damage == "cut":
        kept.write_bytes(content[:-100])
    else:
        content[at] ^= 0x40
        kept.write_bytes(content)
    assert answers(on) == before
    rows = on.json("stats")["rules"]
    assert [(row["place"].split(":")[-1], row["rule"]) for row in rows][0] == ("3", "listed")


def test_names_of_a_packet_beside_a_list(on, listed):
    """What the words of a packet ask for beyond what is kept is read in the lists."""
    listed(6000)
    packets = on.json("explain", "tcp", "from", "@s,", "192.0.2.1", "to", "10.77.0.1", "port", "22")["packets"]
    assert {packet["verdict"] for packet in packets} == {"drop", "pass"}


def test_a_packet_is_asked_without_a_load(on, cost, listed):
    """The test program of the active policy is kept, also by the attach that restores the policy."""
    listed(200)
    question = QUESTIONS[-1]
    for again in False, True:
        if again:
            on("detach")
            on("attach", "near0", "--max-entries", "1000")
        assert not cost(*question)["BPF_PROG_LOAD"]
        assert "is dropped" in on(*question).stdout
    kept, = on.bpffs.glob("gen/*/test")
    (kept / "program").unlink()
    assert cost(*question)["BPF_PROG_LOAD"] and "is dropped" in on(*question).stdout


def test_packets_are_asked_in_turn(on, listed):
    """Commands share the answer of the test program: who finds it in use waits."""
    listed(200)
    kept, = on.bpffs.glob("gen/*/test")
    folder = os.open(kept, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        asked = on.start(*QUESTIONS[-1])
        with pytest.raises(subprocess.TimeoutExpired):
            asked.wait(timeout=1)
        fcntl.flock(folder, fcntl.LOCK_UN)
        assert asked.wait(timeout=30) == 0 and "is dropped" in asked.stdout.read()
    finally:
        os.close(folder)
