# SPDX-License-Identifier: GPL-2.0-only
"""Quick rules change while other commands and packets arrive, and in how much time."""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import time

import pytest

from labnet import run, socket_in, until
from policylab import Policies, hits, login, udp
from rulelab import POLICY, SOURCE, ids, listed, passes
from statefile import read_rows, write_rows

ADDERS = 20


@pytest.fixture(name="policy")
def policies(on, tmp_path):
    on.policy = Policies(on, tmp_path)
    return on.policy


def added_at_once(on, gate, rules):
    """Exit status and document of each `rule add`, and how many switches they took."""
    before, done = version(on), []
    wait = ["sh", "-c", f"until [ -e {gate} ]; do sleep 0.1; done; exec \"$@\"", "-"]
    running = [subprocess.Popen(wait + on.argv("-j", "rule", "add", *rule.split()), stdout=subprocess.PIPE,  # pylint: disable=consider-using-with
                                stderr=subprocess.DEVNULL, text=True) for rule in rules]
    on.started += running
    gate.touch()
    for process in running:
        document = json.loads(process.communicate(timeout=60)[0])
        done.append((process.returncode, document))
    assert not list(pathlib.Path("/run/weir", on.name, "adding").iterdir()), "files of commands that have ended"
    return done, version(on) - before


def version(on):
    """It grows by one with each switch to other quick rules."""
    return read_rows(on.state / "rules", "rule")[0]["version"] if (on.state / "rules").exists() else 0


def test_many_adders_at_once(on, policy, tmp_path):
    policy(POLICY)
    rules = [f"drop proto udp to any port {port}" for port in range(101, 101 + ADDERS)]
    done, switches = added_at_once(on, tmp_path / "gate", rules)
    assert {status for status, _ in done} == {0}, done
    assert {rule["id"]: rule["rule"] for rule in listed(on)} == {document["id"]: document["rule"] for _, document in done}
    assert [document["rule"] for _, document in done] == rules and sorted(ids(on)) == list(range(1, 1 + ADDERS))
    assert [passes(on, port) for port in (101, 100 + ADDERS, 99)] == [False, False, True]
    print(f"{ADDERS} adders took {switches} switches")
    assert switches <= ADDERS // 3
    on("rule", "add", rules[0].replace("101", "99"))
    assert version(on) == switches + 1 and not passes(on, 99)


@pytest.mark.parametrize("bad, status, said", [
    ("drop from FAR", 3, "would cut off the login"), ("drop proto udp to any port 77 to any port", 1, "the rule has errors"),
    ("--name same drop proto udp to any port 78", 1, 'has the name "same"'), ("drop proto tcp to 10.77.0.1 port 40", 3, ""),
])
def test_a_bad_adder_fails_by_itself(on, pair, policy, tmp_path, bad, status, said):
    policy(POLICY + "expect pass tcp from 203.0.113.1 to 10.77.0.1 port 40\n")
    rules = [f"drop proto udp to any port {port}" for port in range(101, 101 + ADDERS)]
    rules[::6] = [bad.replace("FAR", pair.far4)] * len(rules[::6])
    if "--name" in bad:
        on("rule", "add", *bad.split())
    kept = ids(on)
    with login(pair, pair.far4):
        done, switches = added_at_once(on, tmp_path / "gate", rules)
    for rule, (got, document) in zip(rules, done):
        assert got == (status if rule == rules[0] else 0), (rule, document)
        assert rule != rules[0] or said in str(document), document
    added = {document["id"]: document["rule"] for got, document in done if not got}
    assert {rule["id"]: rule["rule"] for rule in listed(on) if rule["id"] not in kept} == added
    assert len(added) == ADDERS - len(rules[::6]) and passes(on, 40, pair.far4)
    print(f"{ADDERS} adders took {switches} switches")
    assert switches <= ADDERS // 3


def test_adders_that_are_killed_add_nothing_later(on, policy, tmp_path):
    """What they left in /run is removed by the next that waits, and adds no rule."""
    policy(POLICY)
    with on.locked():
        running = [on.start("rule", "add", f"drop proto udp to any port {port}") for port in range(101, 105)]
        time.sleep(0.5)
        for process in running:
            process.kill()
            process.wait()
    folder = pathlib.Path("/run/weir", on.name, "adding")
    folder.mkdir(exist_ok=True)
    write_rows(folder / "000000000001.000000001-1", "add", [
        {"first": False, "before": 0, "rule": "drop proto udp to any port 9", "by": "x", "note": "", "since_s": 1, "until_s": 0}])
    (folder / "000000000001.000000002-1").write_text("damaged")
    for name in "000000000001.000000003-99999999.said", "000000000001.000000003-99999999.marked", "x":
        (folder / name).touch()
    done, _ = added_at_once(on, tmp_path / "gate", [f"drop proto udp to any port {port}" for port in range(201, 207)])
    assert {status for status, _ in done} == {0} and len(ids(on)) == 6 and passes(on, 9) and passes(on, 101)


@contextlib.contextmanager
def waiting(on, text, until_s=0):
    """The file of a command that waits to add a rule, and lives."""
    folder = pathlib.Path("/run/weir", on.name, "adding")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"000000000001.000000001-{os.getpid()}"
    write_rows(path, "add", [{"first": False, "before": 0, "rule": text, "by": "x", "note": "", "since_s": 1, "until_s": until_s}])
    with path.open(encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield path
    path.unlink(missing_ok=True)


def test_a_rule_that_has_ended_is_not_added(on):
    for until_s, added in (1, [1]), (0, [1, 2, 3]):
        with waiting(on, "drop proto udp to any port 10", until_s):
            on("rule", "add", f"drop proto udp to any port {20 + until_s}")
        assert sorted(ids(on)) == added


def test_a_rule_that_is_deleted_is_not_added_again(on):
    """Its command has switched, and is still reporting."""
    on("block", SOURCE)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write_end, b"x" * 4096)
    os.set_blocking(write_end, True)
    with subprocess.Popen(on.argv("rule", "add", f"pass from {SOURCE}"), stdout=subprocess.DEVNULL, stderr=write_end) as adder:
        try:
            until(lambda: ids(on) == [1], what="the rule")
            on("rule", "delete", "1")
            on("rule", "add", "drop proto udp to any port 10")
            assert adder.poll() is None and ids(on) == [2]
        finally:
            os.close(read_end)


def test_a_warning_about_all_rules_is_for_the_command_that_switches(on):
    with waiting(on, "drop proto udp to any port 11") as path:
        assert "shows VLAN tags only after" in on("rule", "add", "drop vlan 11").stderr and sorted(ids(on)) == [1, 2]
        said, added = (path.with_name(path.name + kind) for kind in (".said", ".added"))
        assert added.exists() and not said.exists()
        added.unlink()


def test_an_error_after_the_switch_is_reported(on, policy, tmp_path):
    """Also if the rule of another command was added with it, since that is no reason for another attempt."""
    policy(POLICY)
    log, add = tmp_path / "calls", on.argv("rule", "add", "drop proto udp to any port 10")
    run(["strace", "-f", "-qq", "-e", "trace=bpf", "-e", "signal=none", "-o", log, *add])
    calls = log.read_text().splitlines()
    last = max(n for n, line in enumerate(calls, 1) if "BPF_MAP_UPDATE_ELEM" in line)  # marks the switch as complete
    for nth in range(last - 1, last + 8):
        on("rule", "delete", "--all")
        with waiting(on, "drop proto udp to any port 11"):
            done = run(["strace", "-f", "-qq", "-e", "trace=bpf", "-e", "signal=none", "-o", log,
                        "-e", f"inject=bpf:error=ENOMEM:when={nth}", *add], check=False)
        if "later" in done.stderr:
            break
    assert done.returncode == 2 and re.search("added quick [0-9]+, but a later step failed: ", done.stderr), done.stderr
    print(f"call {nth} of {len(calls)} failed")
    assert sorted(rule["rule"][-2:] for rule in listed(on)) == ["10", "11"] and not passes(on, 10)


def test_the_folder_of_the_instance_is_open_to_all(on):
    folder = pathlib.Path("/run/weir", on.name)
    shutil.rmtree(folder)
    on("rule", "add", "drop proto udp to any port 10")
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "adding")] == [0o755, 0o700]


@pytest.mark.parametrize("name, waits", [("sshd", True), ("other", False)])
def test_a_login_that_others_would_not_find_is_not_left_to_them(on, pair, name, waits):
    """Other commands do not ask about the login over a daemon that is not sshd, so they cannot refuse the rule."""
    folder = pathlib.Path("/run/weir", on.name, "adding")
    with on.locked(), login(pair, pair.far4, on.argv("rule", "add", f"drop from {pair.far4}"), name=name) as daemon:
        time.sleep(0.7)
        assert daemon.poll() is None and bool(folder.exists() and list(folder.iterdir())) == waits


def test_a_command_that_keeps_the_lock_is_not_waited_for_again(on):
    with on.locked():
        done = on("rule", "add", "drop proto udp to any port 9", check=False, timeout=25)
    assert done.returncode == 3 and "weir block" in done.stderr
    assert listed(on) == []


def test_beside_an_apply(on, policy):
    policy(POLICY)
    adding = subprocess.Popen(  # pylint: disable=consider-using-with
        ["sh", "-c", "for n in 1 2 3 4 5 6; do \"$@\" \"drop proto udp to any port $n\" || exit 1; done", "-", *on.argv("rule", "add")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    on.started.append(adding)
    count = 0
    while adding.poll() is None:
        count += 1
        policy(POLICY + f'"c" drop proto tcp to any port {100 + count}')
    assert adding.returncode == 0, adding.communicate()[0]
    assert ids(on) == [1, 2, 3, 4, 5, 6] and count


# ---- packets meanwhile, and the time that a rule takes --------------------------------------------------

RULES = int(os.environ.get("WEIR_RULES", "100"))  # WEIR_RULES=1000 takes minutes


def test_each_packet_meets_one_set_of_rules(on, pair, policy):
    """Rules come and end. Three that all sets have decide all packets: each is counted once, and the limit forgets nothing."""
    policy('"eleven" pass proto udp to any port 11\n"limit" drop proto udp to any port 55 over 1/h burst 2')
    on("rule", "add", "drop proto udp to any port 9")
    assert [passes(on, 55) for _ in range(3)] == [True, True, False]
    ended, sent = threading.Event(), [0]

    def send():
        sock = socket_in(pair.far_netns, socket.AF_PACKET, socket.SOCK_RAW, 0)
        sock.bind((pair.far_device, 0))
        while not ended.is_set():
            for port in 9, 11, 55:
                sock.send(bytes(udp(port, SOURCE)))
            sent[0] += 1
            time.sleep(0.0003)
        sock.close()

    thread = threading.Thread(target=send)
    thread.start()
    before = version(on)
    for first in range(0, RULES, ADDERS):
        running = [on.start("rule", "add", "--for", "1s", *(["--first"] if port % 2 else []), f"drop proto udp to any port {1000 + port}")
                   for port in range(first, first + ADDERS)]
        for process in running:
            said = process.communicate(timeout=100)[0]
            assert process.returncode == 0, said
    time.sleep(1.1)
    on("rule", "add", "drop proto udp to any port 10")
    ended.set()
    thread.join()
    print(f"{sent[0] * 3} packets, {RULES} rules, {version(on) - before} switches")
    assert sent[0] > 300 and ids(on) == [1, RULES + 2]
    assert (hits(on, "quick 1"), hits(on, "eleven"), hits(on, "limit")) == (sent[0], sent[0], sent[0] + 1)


def seconds(on, *words):
    start = time.monotonic()
    on(*words, timeout=100)
    return time.monotonic() - start


@pytest.fixture(name="million")
def a_million_addresses(tmp_path):
    path = tmp_path / "million"
    path.write_text("\n".join(f"{11 + (n >> 20)}.{n >> 12 & 255}.{n >> 4 & 255}.{(n & 15) * 16 + 1}" for n in range(1_000_000)))
    return path


@pytest.mark.alone
def test_beside_a_million_entries(weir, million):
    def add(ports):
        return min(seconds(weir, "rule", "add", f"drop proto udp to any port {port}") for port in ports)

    weir("attach", "near0")
    few = add(range(1, 6))
    weir("block", "-f", million, timeout=100)
    many = add(range(6, 11))
    print(f"{few:.3f} s without entries, {many:.3f} s beside a million")
    assert many < max(0.3, 1.5 * few)  # the machine is slow by itself


@pytest.mark.alone
def test_beside_a_million_addresses_of_the_policy(on, policy, million):
    policy(f'set s {{ file "{million}" }}\n"s" drop from @s', timeout=100)
    again, add = (min(times) for times in zip(*(
        (seconds(on, "apply", "--again", "--force"), seconds(on, "rule", "add", f"drop proto udp to any port {port}"))
        for port in range(1, 7))))
    print(f"apply --again {again:.3f} s, rule add {add:.3f} s")
    assert add < 1.5 * again
