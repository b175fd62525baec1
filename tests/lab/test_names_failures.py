# SPDX-License-Identifier: GPL-2.0-only
"""Names where entries, the policy, or the record of it cannot be changed or read: told once, tried again later and later,
and what can be followed is followed."""
import contextlib
import json
import time

import pytest

from labnet import read_only, until
from nameserver import name_server
from policylab import Policies, udp

NAME, OTHER, ONE, TWO = "moving.lab", "other.lab", "203.0.113.31", "203.0.113.32"
OLD, NEW = "198.51.100.77", "198.51.100.78"
TTL_S = 5
WAIT_S = 90  # a pause is at most a minute


@pytest.fixture(name="server")
def own_name_server(pair):
    with name_server(pair) as server:
        server.names |= {NAME: (TTL_S, ONE), OTHER: (TTL_S, OLD)}
        yield server


@pytest.fixture(name="blocked")
def name_is_blocked(on, server):
    on("block", NAME, "--resolver", server.resolver)
    return on


@pytest.fixture(name="both")
def name_of_an_entry_and_name_of_a_policy(weir, server, tmp_path):
    weir.policy = Policies(weir, tmp_path)
    weir.policy(f'"bad" drop proto udp from {OTHER}', "--resolver", server.resolver)
    weir("block", NAME, "--resolver", server.resolver)
    return weir


def status(weir):
    return json.loads(weir("-j", "status", check=False).stdout)


def part(weir):
    return next(part for part in status(weir)["agent"]["parts"] if part["name"] == "names")


def alarms(weir, words):
    return [alarm for alarm in status(weir)["alarms"] if words in alarm]


def problems(weir, words):
    return [problem for problem in part(weir)["problems"] if words in problem]


def asked(server, name):
    """When a name was asked for: A alone, as AAAA is asked at the same time."""
    return [when for when, one, kind, _ in server.asked if one == name and kind == 1]


def times(agent, words):
    return sum(words in line for line in agent.said().splitlines())


def passes(weir, *addresses):
    return weir.pair.passes(*[udp(src=address) for address in addresses])


def record(weir):
    return weir.state / "accepted" / weir.json("history")["revisions"][0]["revision"]


@contextlib.contextmanager
def damaged(path, at=60):
    """One byte of a file is another one."""
    text = bytearray(path.read_bytes())
    kept = bytes(text)
    text[at] ^= 1
    path.write_bytes(bytes(text))
    yield
    path.write_bytes(kept)


# ---- entries that cannot be changed -----------------------------------------------------------------------


def test_by_hand_the_names_that_are_kept_are_told(blocked, server):
    server.names[NAME] = (TTL_S, TWO)
    with read_only(blocked.state):
        done = blocked.json("refresh", "--resolver", server.resolver, status=2)
        assert "read-only" in done["error"]["text"] and done["entries_refused"] == done["error"]["text"]
        row = done["names"][0]
        assert (row["kept"], row["errno"], row["added"], row["leaving"]) == ("entries", "EROFS", 0, 0)
        assert done["changed"] == 0 and set(blocked.entries()) == {ONE}
    done = blocked.json("refresh", "--resolver", server.resolver)
    assert "kept" not in done["names"][0] and done["entries_refused"] is None and done["names"][0]["added"] == 1


def test_the_state_folder_is_read_only(pair, blocked, server):
    """Told once, an alarm until it ends, asked for less and less often."""
    blocked("block", OTHER, "--resolver", server.resolver)
    agent = blocked.run("--resolver", server.resolver)
    until(lambda: part(blocked)["fresh"] == 2, seconds=20, what="two names")
    with read_only(blocked.state):
        server.names[NAME] = (TTL_S, TWO)
        until(lambda: (part(blocked)["fresh"], part(blocked)["failing"]) == (1, 1), seconds=30, what="the failure")
        until(lambda: alarms(blocked, "read-only"), seconds=30, what="the alarm")
        since, others = len(asked(server, NAME)), len(asked(server, OTHER))
        until(lambda: len(asked(server, NAME)) > since + 1, seconds=WAIT_S, what="two more questions")
        assert len(asked(server, OTHER)) > others + 1  # nothing is wrong with that one
        pauses = [b - a for a, b in zip(asked(server, NAME)[since - 1:], asked(server, NAME)[since:])]
        assert pauses[1] > 1.5 * TTL_S
        assert alarms(blocked, "read-only") and len(problems(blocked, "read-only")) == 1
        assert times(agent, "read-only") == 1 and "added" not in agent.said() and "resolves again" not in agent.said()
        assert pair.free(ONE, TWO) == [False, True]
    until(lambda: pair.free(ONE, TWO) == [False, False], seconds=WAIT_S, what=TWO)
    until(lambda: not alarms(blocked, "read-only") and part(blocked)["failing"] == 0, seconds=20, what="the end of the alarm")
    assert times(agent, "read-only") == 1 and times(agent, "the entries follow their names again") == 1


def test_full_tables_do_not_hold_up_the_policy(pair, weir, server, tmp_path):
    policy = Policies(weir, tmp_path)
    weir("attach", "near0", "--max-entries", "4")
    policy(f'"bad" drop proto udp from {OTHER}', "--resolver", server.resolver)
    weir("block", NAME, "--resolver", server.resolver)
    weir.run("--resolver", server.resolver)
    until(lambda: part(weir)["fresh"] == 2, seconds=20, what="two names")
    server.names |= {NAME: (TTL_S, *[f"203.0.113.{number}" for number in range(40, 60)]), OTHER: (TTL_S, NEW)}
    until(lambda: passes(weir, NEW) == [False], seconds=WAIT_S, what=NEW)
    until(lambda: problems(weir, "limit of 4"), seconds=WAIT_S, what="the problem")
    assert part(weir)["failing"] == 1 and pair.free(ONE) == [False]


def test_a_policy_whose_record_is_read_only_follows_all_the_same(both, server):
    agent = both.run("--resolver", server.resolver)
    until(lambda: part(both)["fresh"] == 2, seconds=20, what="two names")
    with read_only(both.state):
        server.names[OTHER] = (TTL_S, NEW)
        until(lambda: passes(both, OLD, NEW) == [False, False], seconds=30, what=NEW)
        until(lambda: alarms(both, "the policy has the new addresses, but its record does not: "), seconds=20, what="the alarm")
        since = len(asked(server, OTHER))
        until(lambda: len(asked(server, OTHER)) > since + 1, seconds=WAIT_S, what="two more questions")
        assert times(agent, "read-only") == 1 and part(both)["failing"] == 1 and passes(both, OLD, NEW) == [False, False]
        done = both.json("refresh", "--resolver", server.resolver, status=2)
        row = next(row for row in done["names"] if row["name"] == OTHER)
        assert done["switched"] and (row["kept"], row["added"], row["leaving"]) == ("policy", 1, 1)
    until(lambda: part(both)["problems"] == [] and part(both)["failing"] == 0, seconds=WAIT_S, what="the end")
    assert passes(both, OLD, NEW) == [False, False] and both.json("refresh", "--resolver", server.resolver)["changed"] == 0


# ---- what fails altogether --------------------------------------------------------------------------------


def test_entries_of_a_newer_version(pair, blocked, server):
    """The command prints no names at all, neither a list nor answers."""
    agent = blocked.run("--resolver", server.resolver)
    until(lambda: part(blocked)["fresh"] == 1, seconds=20, what="the name")
    file, words = blocked.state / "overlay", "unsupported version"

    def told():
        return sorted(line.split("; ")[1] for line in agent.said().splitlines() if words in line and "; " in line)

    kept = file.read_bytes()
    file.write_bytes(b"weir-overlay 99 epoch 7\nend 0\n")
    server.names[NAME] = (TTL_S, TWO)
    until(lambda: len(alarms(blocked, words)) >= 1 and part(blocked)["failing"] == 1, seconds=30, what="the alarm")
    since = len(asked(server, NAME))
    blocked("allow", "192.0.2.1", check=False)  # a command: the names are listed again
    until(lambda: len(problems(blocked, words)) == 2, seconds=30, what="both problems")
    assert pair.free(ONE, TWO) == [False, True]
    assert told() == ["all names keep their addresses", "the previous names are followed"]
    assert len(asked(server, NAME)) == since
    file.write_bytes(kept)
    until(lambda: pair.free(ONE, TWO) == [False, False], seconds=WAIT_S, what=TWO)
    until(lambda: part(blocked)["problems"] == [] and part(blocked)["failing"] == 0, seconds=WAIT_S, what="the end")
    assert len(told()) == 2


def test_a_detached_instance_is_no_failure_of_names(pair, blocked, server):
    agent = blocked.run("--resolver", server.resolver)
    until(lambda: part(blocked)["fresh"] == 1, seconds=20, what="the name")
    server.names[NAME] = (TTL_S, TWO)
    blocked("detach", "--force")
    time.sleep(2 * TTL_S)  # a list and a question
    assert "names" not in agent.said()
    blocked("attach", "near0")
    until(lambda: pair.free(ONE, TWO) == [False, False], seconds=WAIT_S, what=TWO)
    until(lambda: part(blocked)["problems"] == [], seconds=20, what="no problem")
    assert times(agent, "names") == 0


# ---- a record that cannot be read -------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["index", "0"])
def test_a_damaged_record_is_an_alarm(both, server, file):
    assert not alarms(both, "record")
    with damaged(record(both) / file, at=10):
        assert len(alarms(both, "cannot be read: ")) == 1 and alarms(both, "checksum mismatch")
        assert status(both)["names"]["names"] == (2 if file == "0" else 1)
    assert not alarms(both, "record")
    (record(both) / file).write_text("nothing")
    assert alarms(both, "cannot be read: ")
    both.policy(f'"bad" drop proto udp from {OTHER}', "--resolver", server.resolver)
    assert not alarms(both, "record")


def test_by_hand_names_of_entries_are_followed_without_the_record(pair, both, server):
    index = record(both) / "index"
    with damaged(index):
        done = both.json("refresh", "--list", status=2)
        assert [row["name"] for row in done["names"]] == [NAME]
        assert "checksum mismatch" in done["error"]["text"] and done["refused"] == done["error"]["text"]
        server.names[NAME] = (TTL_S, TWO)
        done = both.json("refresh", "--resolver", server.resolver, status=2)
        assert (done["names"][0]["added"], done["refused"]) == (1, done["error"]["text"])
        assert pair.free(ONE, TWO) == [False, False] and passes(both, OLD) == [False]
        both.fails(2, "refresh", OTHER, "--resolver", server.resolver)
    assert len(both.json("refresh", "--resolver", server.resolver)["names"]) == 2


def test_the_agent_follows_names_of_entries_without_the_record(pair, both, server):
    agent = both.run("--resolver", server.resolver)
    until(lambda: part(both)["fresh"] == 2, seconds=20, what="two names")
    with damaged(record(both) / "index"):
        server.names |= {NAME: (TTL_S, TWO), OTHER: (TTL_S, NEW)}
        until(lambda: pair.free(ONE, TWO) == [False, False], seconds=WAIT_S, what=TWO)
        until(lambda: problems(both, "checksum mismatch"), seconds=30, what="the problem")
        until(lambda: part(both)["names"] == 1, seconds=WAIT_S, what="the list of names")
        assert len(problems(both, "checksum mismatch")) == 1 and passes(both, OLD, NEW) == [False, True]
        since = len(asked(server, NAME))
        until(lambda: len(asked(server, NAME)) > since + 1, seconds=WAIT_S, what="two more questions")
        assert times(agent, "checksum mismatch") == 1
    until(lambda: passes(both, OLD, NEW) == [False, False], seconds=2 * WAIT_S, what=NEW)
    until(lambda: part(both)["problems"] == [] and part(both)["fresh"] == 2, seconds=20, what="the end")
    assert times(agent, "checksum mismatch") == 1 and times(agent, "the policy follows its names again") == 1


def test_the_agent_notices_the_record_itself(both, server):
    """No command wakes it, and no entry changes; the names of the policy are not asked for in vain."""
    both("unblock", NAME)
    both.run("--resolver", server.resolver)
    until(lambda: part(both)["fresh"] == 1, seconds=20, what="the name")
    with damaged(record(both) / "index"):
        until(lambda: problems(both, "checksum mismatch") and part(both)["names"] == 0, seconds=40, what="the problem")
        server.names[OTHER] = (TTL_S, NEW)
    until(lambda: passes(both, OLD, NEW) == [False, False], seconds=2 * WAIT_S, what=NEW)
    until(lambda: part(both)["problems"] == [], seconds=20, what="the end")


def test_a_refused_policy_is_told_once_beside_another_name(both, server):
    """Questions about names with nothing new do not end the trouble."""
    both.policy(f'"bad" drop proto udp from {OTHER}\nexpect pass udp from {NEW} to 10.77.0.1 port 5',
                "--resolver", server.resolver)
    agent = both.run("--resolver", server.resolver)
    until(lambda: part(both)["fresh"] == 2, seconds=20, what="two names")
    server.names[OTHER] = (TTL_S, NEW)
    until(lambda: problems(both, "expect"), seconds=30, what="the problem")
    since, others = len(asked(server, OTHER)), len(asked(server, NAME))
    until(lambda: len(asked(server, OTHER)) > since + 1, seconds=WAIT_S, what="two more questions")
    assert len(asked(server, NAME)) > others
    assert times(agent, "its names are tried again later") == 1 and "follows its names again" not in agent.said()
    assert part(both)["failing"] == 1 and passes(both, OLD, NEW) == [False, True]
    server.names[OTHER] = (TTL_S, OLD)
    until(lambda: part(both)["problems"] == [] and part(both)["failing"] == 0, seconds=WAIT_S, what="the end")
    assert times(agent, "the policy follows its names again") == 1
