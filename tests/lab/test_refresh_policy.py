# SPDX-License-Identifier: GPL-2.0-only
"""Names of the active policy: weir refresh, and the agent, follow their answers; the revision stays the same one."""
import contextlib
import json
import shutil
import time

import pytest

from labnet import WEIR, until
from policylab import Policies, hits, logged_in, programs, udp

NAME, OTHER, ONE, TWO, THREE = "moving.lab", "other.lab", "203.0.113.31", "203.0.113.32", "2001:db8:113::33"
GRACE_S = 60
FLOOR_S, TTL_S = 5, 2
SET = f'set bad {{ {NAME} }}\n"bad" drop from @bad\n"named" drop proto udp from {OTHER}'
DEAD_S = 65  # a minute, and longer than the grace time
NO_SERVER = "--resolver", "10.77.0.99", "--resolver-timeout", "300ms"


@pytest.fixture(name="names", autouse=True)
def moving_names(pair):
    pair.dns(NAME, ONE)
    pair.dns(OTHER, "198.51.100.77")


@pytest.fixture(name="applied")
def policy_with_names(weir, tmp_path):
    weir.policy = Policies(weir, tmp_path)
    weir.policy(SET, "--resolver", weir.pair.resolver)
    return weir


def refresh(weir, *words, status=0):
    return weir.json("refresh", "--resolver", weir.pair.resolver, *words, status=status)


def row(document, name=NAME):
    return next(row for row in document["names"] if row["name"] == name)


def dropped(weir, *addresses):
    return [not passed for passed in weir.pair.passes(*[udp(src=address) for address in addresses])]


def record(weir):
    """{name: record} of the active revision."""
    revision = history(weir)[0]
    text = (weir.state / "accepted" / revision / "index").read_text()
    document = json.JSONDecoder().raw_decode(text[text.index("{"):])[0]
    return {name["name"]: name for name in document["names"]}


def test_quick_rules_that_are_left_out(applied):
    """The policy has a set less than they need: they do not keep its names from being followed."""
    applied.policy(f"set ban dynamic\n{SET}", "--volatile", "--resolver", applied.pair.resolver)
    applied("rule", "add", "drop proto udp from @ban to any port 9")
    applied("detach")
    assert "quick 1: unknown set '@ban'" in applied("attach", "near0").stderr
    applied.pair.dns(NAME, TWO)
    document = refresh(applied)
    assert document["switched"] and dropped(applied, ONE, TWO) == [True, True]
    assert [rule["id"] for rule in applied.json("rule", "list")["rules"]] == [1]
    status = applied.json("status", status=2)
    assert "1 quick rule is saved but not active (weir rule list)" in status["alarms"] and status["quick_rules"] == 0
    applied.policy(f"set ban dynamic\n{SET}", "--resolver", applied.pair.resolver)
    assert applied.json("status")["quick_rules"] == 1


def test_a_login_that_only_a_quick_rule_passes_for_a_time(applied):
    """The answers do not cut it off: the end of the rule does."""
    pair = applied.pair
    applied("rule", "add", "--for", "10m", f"pass proto tcp from {pair.far4} to any port 2222")
    applied.policy(f"{SET}\npass proto udp from any port 53\ndefault drop", "--force", "--resolver", pair.resolver)
    pair.dns(NAME, TWO)
    command = [WEIR, "-n", applied.name, "-j", "refresh", "--policy", "--resolver", pair.resolver]
    status, printed = logged_in(pair, pair.far4, command)
    assert status == 0 and json.loads(printed)["switched"] and row(json.loads(printed))["added"] == 1, printed


def history(weir):
    return [revision["revision"] for revision in weir.json("history")["revisions"]]


def files(weir):
    return {path: (path.read_bytes(), path.stat().st_ino) for path in weir.state.rglob("*")
            if path.is_file() and path.name != "changes"}  # the record of the command


def test_unchanged_answers_write_nothing(applied):
    before = files(applied), programs(applied)
    done = refresh(applied)
    assert (done["changed"], done["switched"], row(done)["in"]) == (0, False, "policy")
    assert (files(applied), programs(applied)) == before


def test_a_new_address_is_in_force_and_the_old_one_stays(applied):
    revisions, before = history(applied), files(applied)
    assert dropped(applied, ONE, TWO) == [True, False]
    counted = hits(applied, "bad")
    applied.pair.dns(NAME, TWO, THREE)
    applied.pair.dns(OTHER, "198.51.100.78")
    done = refresh(applied)
    assert done["switched"] and (row(done)["added"], row(done)["leaving"]) == (2, 1)
    assert dropped(applied, ONE, TWO, THREE, "198.51.100.77", "198.51.100.78") == [True] * 5
    assert hits(applied, "bad") == counted + 3
    now = time.time()
    left = record(applied)[NAME]
    assert left["addresses"] == [TWO, THREE] and left["leaving"][0]["address"] == ONE
    assert GRACE_S - 5 <= left["leaving"][0]["until_s"] - now <= GRACE_S + 1
    assert history(applied) == revisions
    assert [path for path, content in files(applied).items() if before.get(path) != content] == [
        applied.state / "accepted" / revisions[0] / "index"]
    active = programs(applied)
    assert refresh(applied)["changed"] == 0 and programs(applied) == active


def test_an_address_that_comes_back_stays(applied):
    applied.pair.dns(NAME, TWO)
    refresh(applied)
    active = programs(applied)
    applied.pair.dns(NAME, ONE)
    done = refresh(applied)
    assert done["changed"] and not done["switched"] and programs(applied) == active
    left = record(applied)[NAME]
    assert left["addresses"] == [ONE] and [one["address"] for one in left["leaving"]] == [TWO]
    assert dropped(applied, ONE, TWO) == [True, True]


@pytest.mark.parametrize("server", ["no such name", "no server"])
def test_without_an_answer_all_stays(applied, server):
    before = files(applied), programs(applied)
    if server == "no such name":
        applied.pair.dns(NAME, "none")
        done = refresh(applied, status=2)
    else:
        done = applied.json("refresh", *NO_SERVER, status=2)
    assert row(done)["error"] and done["changed"] == 0
    assert ("NXDOMAIN" in row(done)["error"]) == (server == "no such name")
    assert (files(applied), programs(applied)) == before and dropped(applied, ONE) == [True]


def test_the_file_on_disk_is_not_read(applied):
    revisions = history(applied)
    applied.policy.write(SET + '\n"all" drop proto udp to port 9')
    applied.pair.dns(NAME, TWO)
    assert refresh(applied)["switched"]
    assert dropped(applied, TWO, "198.51.100.5") == [True, False] and history(applied) == revisions
    difference = applied("diff", applied.policy.path, "--resolver", applied.pair.resolver, check=False).stdout
    assert difference.count('"all"') == 1


def test_a_trial_is_left_alone(applied):
    applied.policy(SET + '\n"more" drop proto udp to port 10', "--resolver", applied.pair.resolver, "--confirm=60s")
    active = programs(applied)
    applied.pair.dns(NAME, TWO)
    done = refresh(applied)
    assert done["trial"] and done["names"] == [] and programs(applied) == active
    applied("confirm")
    assert refresh(applied)["switched"] and dropped(applied, ONE, TWO) == [True, True]


def test_apply_rollback_and_if_revision(applied):
    first = history(applied)[0]
    applied.pair.dns(NAME, TWO)
    refresh(applied)
    again = applied.policy(SET, "--resolver", applied.pair.resolver, "--if-revision", first)
    assert "unchanged: " in again.stdout and history(applied) == [first]
    applied.policy('"none" pass', "--resolver", applied.pair.resolver)
    assert dropped(applied, ONE, TWO) == [False, False]
    applied("rollback")
    assert dropped(applied, ONE, TWO) == [True, True] and len(history(applied)) == 3


def test_what_was_looked_up_pushes_out_no_text(applied):
    first = history(applied)[0]
    for number in range(12):
        applied.pair.dns(NAME, f"203.0.113.{100 + number}")
        applied.policy(SET + '\n"more" drop proto udp to port 10', "--resolver", applied.pair.resolver)
    kept = history(applied)
    assert len(kept) == 3 and kept[-1] == first
    applied("rollback")
    assert dropped(applied, ONE, "203.0.113.111") == [True, False]  # the newest with other files
    applied("rollback", first)
    assert dropped(applied, ONE, "203.0.113.111") == [True, False]
    assert len(history(applied)) == 3  # the text of the middle has one revision now


def test_what_expect_forbids_stays_out(applied):
    applied.policy(f'{SET}\nexpect pass udp from {TWO} to 10.77.0.1 port 5', "--resolver", applied.pair.resolver)
    active = programs(applied)
    applied.pair.dns(NAME, TWO)
    done = refresh(applied, status=1)
    assert done["refused"] and programs(applied) == active and dropped(applied, ONE, TWO) == [True, False]
    assert record(applied)[NAME]["addresses"] == [ONE]


def test_a_record_that_was_not_written_is_made_up_for(applied):
    """As after a kill between the switch and the record."""
    in_the_way = applied.state / "accepted" / history(applied)[0] / "index.new"
    in_the_way.mkdir()
    applied.pair.dns(NAME, TWO)
    assert "index" in refresh(applied, status=2)["refused"]
    assert dropped(applied, ONE, TWO) == [True, True] and record(applied)[NAME]["addresses"] == [ONE]
    in_the_way.rmdir()
    assert refresh(applied)["switched"] and record(applied)[NAME]["addresses"] == [TWO]
    assert dropped(applied, ONE, TWO) == [True, True] and refresh(applied)["changed"] == 0


def test_attach_restores_the_latest_answers(applied):
    applied.pair.dns(NAME, TWO)
    refresh(applied)
    revision = history(applied)
    shutil.rmtree(applied.bpffs, ignore_errors=True)
    applied("detach", "--force", check=False)
    until(lambda: dropped(applied, ONE, TWO) == [False, False])  # the kernel detaches a moment after the last pin
    applied("attach", "near0", "--force")
    assert dropped(applied, ONE, TWO) == [True, True] and history(applied) == revision


def test_interfaces_of_the_command_line_stay(weir, tmp_path):
    policy = Policies(weir, tmp_path)
    policy(SET, "-i", "near0", "--resolver", weir.pair.resolver, devices="wg7")
    weir.pair.dns(NAME, TWO)
    assert refresh(weir)["switched"] and dropped(weir, ONE, TWO) == [True, True]


def test_entries_and_policy_apart(applied):
    applied("block", NAME, "--resolver", applied.pair.resolver)
    applied.pair.dns(NAME, TWO)
    assert refresh(applied, "--list", "--policy")["names"][0]["in"] == "policy"
    assert not refresh(applied, "--entries")["switched"] and TWO in applied.entries()
    done = refresh(applied, NAME)
    assert done["switched"] and row(done)["in"] == "both" and len(done["names"]) == 1


def test_status_shows_the_age_of_the_answers(applied):
    def shown():
        return json.loads(applied("-j", "status", check=False).stdout)["names"]

    def line():
        return next(line for line in applied("status", check=False).stdout.splitlines() if line.startswith("names"))

    def age():
        return row(refresh(applied, "--list"))["age_s"]

    before = shown()
    assert (before["names"], before["followed"]) == (2, False) and line().startswith("names     2, oldest answer ")
    time.sleep(2.1)
    assert age() >= 2 and shown() == before
    applied.pair.dns(OTHER, "none")
    refresh(applied, status=2)
    assert age() <= 1 and shown() == before  # the other one is as old as before
    applied.pair.dns(OTHER, "198.51.100.77")
    refresh(applied)
    assert shown()["oldest_answer"] > before["oldest_answer"]
    applied.run("--resolver", applied.pair.resolver)
    until(lambda: shown()["followed"] and shown()["fresh"] == 2, seconds=10, what="the agent")
    assert line().startswith("names     2, 2 fresh, 0 failing, oldest answer ")


def test_status_does_not_wait_for_the_lock(applied):
    with applied.locked():
        begin = time.monotonic()
        assert json.loads(applied("-j", "status", check=False).stdout)["names"] is None
        assert time.monotonic() - begin < 3


@pytest.mark.parametrize("agent", [True, False])
def test_apply_leaves_a_grace_time_if_somebody_ends_it(applied, agent):
    if agent:
        applied.run("--resolver", applied.pair.resolver)
    applied.pair.dns(NAME, TWO)
    applied.policy(SET + '\n"more" drop proto udp to port 10', "--resolver", applied.pair.resolver)
    assert dropped(applied, ONE, TWO) == [agent, True]


# ---- the agent ------------------------------------------------------------------------------------------


def part(weir):
    status = json.loads(weir("-j", "status", check=False).stdout)["agent"]
    return next(part for part in status["parts"] if part["name"] == "names")


def test_the_agent_follows_names_of_the_policy(applied):
    revisions = history(applied)
    agent = applied.run("--resolver", applied.pair.resolver)
    until(lambda: part(applied)["fresh"] == 2, seconds=10, what="two names")
    applied.pair.dns(NAME, TWO)
    until(lambda: dropped(applied, ONE, TWO) == [True, True], seconds=FLOOR_S + TTL_S + 2, what=TWO)
    applied.pair.dns(NAME, "none")  # for a while there is no answer
    until(lambda: part(applied)["failing"] == 1, seconds=15, what="the failure")
    time.sleep(2 * FLOOR_S)
    assert dropped(applied, ONE, TWO) == [True, True]
    applied.pair.dns(NAME, TWO)
    until(lambda: part(applied)["failing"] == 0, seconds=40, what="the recovery")
    assert dropped(applied, ONE, TWO)[1] and history(applied) == revisions
    assert sum("NXDOMAIN" in line for line in agent.said().splitlines()) == 1


def test_a_name_of_a_lax_list_comes_later(weir, tmp_path):
    """Names that apply has skipped are resolved again, without a message that they are missing."""
    weir.pair.dns(NAME, "none")
    names = tmp_path / "names"
    names.write_text(f"{NAME}\n{OTHER}\n")
    policy, asking = Policies(weir, tmp_path), ("--resolver", weir.pair.resolver)
    text = f'set bad {{ file "{names}" lax }}\n"bad" drop from @bad'
    policy(text, *asking)
    assert record(weir)[NAME]["addresses"] == []
    assert "unchanged: " in policy(text, *asking).stdout
    done = refresh(weir)
    assert row(done)["empty"] and "NXDOMAIN" in row(done)["error"] and done["changed"] == 0
    agent = weir.run(*asking)
    until(lambda: part(weir)["names"] == 2, seconds=10, what="two names")
    time.sleep(FLOOR_S + 2)
    assert (part(weir)["failing"], part(weir)["problems"]) == (0, []) and NAME not in agent.said()
    weir.pair.dns(NAME, ONE)
    until(lambda: dropped(weir, ONE, "198.51.100.77") == [True, True], seconds=4 * FLOOR_S, what=ONE)
    assert len(history(weir)) == 1
    shutil.rmtree(weir.bpffs, ignore_errors=True)
    agent.stop()
    weir("detach", "--force", check=False)
    weir("attach", "near0", "--force")
    assert dropped(weir, ONE) == [True]


@contextlib.contextmanager
def dead_name_server(pair):
    """No query arrives: time-outs."""
    def nft(*words):
        pair.near(["nft", *words])

    nft("add", "table", "inet", "dead")
    try:
        nft("add", "chain", "inet", "dead", "out", "{ type filter hook output priority 0; }")
        nft("add", "rule", "inet", "dead", "out", "udp", "dport", "53", "drop")
        nft("add", "rule", "inet", "dead", "out", "tcp", "dport", "53", "drop")
        yield
    finally:
        nft("delete", "table", "inet", "dead")


def test_the_name_server_is_dead_for_a_minute(applied):
    """Names of an entry, of the policy, and of both: all of that time no packet of theirs passes."""
    names = {"entry.lab": "198.51.100.79", OTHER: "198.51.100.77", NAME: ONE}
    applied.pair.dns("entry.lab", names["entry.lab"])
    applied("block", NAME, "entry.lab", "--resolver", applied.pair.resolver)
    agent = applied.run("--resolver", applied.pair.resolver, "--resolver-timeout", "300ms")
    until(lambda: part(applied)["fresh"] == len(names), seconds=10, what="the names")
    before = files(applied), programs(applied)
    with dead_name_server(applied.pair):
        end, failed = time.monotonic() + DEAD_S, False
        while time.monotonic() < end:
            assert dropped(applied, *names.values()) == [True] * len(names)
            failed = failed or part(applied)["failing"] == len(names)
            time.sleep(0.5)
        assert failed and part(applied)["failing"] == len(names)
        assert (files(applied), programs(applied)) == before
    said = agent.said().splitlines()
    assert [sum(name in line and "its addresses stay" in line for line in said) for name in names] == [1] * len(names)
    assert "NXDOMAIN" not in agent.said()
    until(lambda: part(applied)["failing"] == 0, seconds=60 + DEAD_S, what="the recovery")
    assert (files(applied), programs(applied)) == before and dropped(applied, *names.values()) == [True] * len(names)


def test_the_agent_releases_after_the_grace_time(applied):
    applied.run("--resolver", applied.pair.resolver)
    applied.pair.dns(NAME, TWO)
    begin = time.monotonic()
    until(lambda: dropped(applied, ONE, TWO) == [True, True], seconds=2 * FLOOR_S, what=TWO)
    until(lambda: dropped(applied, ONE, TWO) == [False, True], seconds=GRACE_S + 2 * FLOOR_S, what="the release")
    assert time.monotonic() - begin >= GRACE_S - 1 and len(history(applied)) == 1
