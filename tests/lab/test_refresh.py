# SPDX-License-Identifier: GPL-2.0-only
"""weir refresh, and the agent that does it when TTLs end: entries follow their names, and nothing is unblocked too early."""
import json
import subprocess
import time

import pytest

from labnet import until

NAME, ONE, TWO, THREE = "moving.lab", "203.0.113.31", "203.0.113.32", "2001:db8:113::33"
GRACE_S = 60


@pytest.fixture(name="name", autouse=True)
def moving_name(pair):
    pair.dns(NAME, ONE)
    return NAME


def of_name(weir):
    """{address: seconds left} of the entries; None: no end."""
    return {address: entry.get("left_s") for address, entry in weir.entries().items()}


def refresh(weir, *words, status=0):
    return weir.json("refresh", "--resolver", weir.pair.resolver, *words, status=status)


@pytest.fixture(name="blocked")
def name_is_blocked(on):
    on("block", NAME, "--resolver", on.pair.resolver, "--note", "moves")
    assert of_name(on) == {ONE: None}
    return on


def test_a_new_address_is_added_and_the_old_one_leaves(pair, blocked):
    assert refresh(blocked)["changed"] == 0
    pair.dns(NAME, TWO, THREE)
    row = refresh(blocked)["names"][0]
    assert (row["name"], row["addresses"], row["added"], row["leaving"]) == (NAME, 2, 2, 1)
    left = of_name(blocked)
    assert left[TWO] is None and left[THREE] is None and GRACE_S - 5 <= left[ONE] <= GRACE_S
    assert pair.free(ONE, TWO) == [False, False]
    assert blocked.entries()[TWO]["holders"][0]["note"] == "moves"
    assert refresh(blocked)["changed"] == 0  # what leaves keeps its time


def test_an_address_that_comes_back_stays(pair, blocked):
    pair.dns(NAME, TWO)
    refresh(blocked)
    pair.dns(NAME, ONE)
    refresh(blocked)
    left = of_name(blocked)
    assert left[ONE] is None and left[TWO] <= GRACE_S


def test_a_limited_time_stays_limited(pair, on):
    on("block", NAME, "--resolver", pair.resolver, "--for", "30s")
    pair.dns(NAME, TWO)
    refresh(on)
    assert all(20 <= left <= 30 for left in of_name(on).values()) and len(of_name(on)) == 2


@pytest.mark.parametrize("server", ["no such name", "no answer"])
def test_without_an_answer_all_stays(pair, blocked, server):
    if server == "no such name":
        pair.dns(NAME, "none")
        done = refresh(blocked, status=2)
    else:
        done = blocked.json("refresh", "--resolver", "10.77.0.99", "--resolver-timeout", "500ms", status=2)
    assert done["names"][0]["error"] and done["changed"] == 0
    assert of_name(blocked) == {ONE: None}


def test_a_mapped_address_is_one_of_ipv4(pair, on):
    """What is listed is what the list gives when it is read again; an own address is not hidden in another form."""
    pair.dns(NAME, f"::ffff:{ONE}", f"::ffff:{pair.near4}")
    on("block", NAME, "--resolver", pair.resolver)
    assert set(of_name(on)) == {ONE} and pair.free(ONE) == [False]
    plain = on("list", "--plain").stdout
    on("unblock", NAME)
    on("block", "-f", "-", input=plain)
    assert set(of_name(on)) == {ONE}


def test_dangerous_answers_are_left_out(pair, blocked):
    pair.dns(NAME, TWO, pair.near4, "127.0.0.1")
    refresh(blocked)
    assert set(of_name(blocked)) == {ONE, TWO}


def test_names_of_the_command_line(pair, blocked):
    assert [row["name"] for row in blocked.json("refresh", "--list")["names"]] == [NAME]
    assert "no entry and no policy has the name 'other.lab'" in blocked.fails(1, "refresh", "other.lab", "--resolver", pair.resolver)
    assert refresh(blocked, NAME.upper())["names"][0]["name"] == NAME
    blocked("unblock", NAME)
    assert blocked.json("refresh")["names"] == []


def test_an_owner_does_not_lose_what_another_has(pair, blocked):
    blocked("block", NAME, "--resolver", pair.resolver, "--origin", "other")
    blocked("block", ONE)
    pair.dns(NAME, TWO)
    refresh(blocked)
    left = of_name(blocked)
    assert left == {ONE: None, TWO: None}
    blocked("unblock", ONE, check=False)  # the name still has it
    assert of_name(blocked)[ONE] <= GRACE_S


# ---- the agent ------------------------------------------------------------------------------------------

FLOOR_S = 5  # of the TTL, which is 2 s in the lab


def test_the_agent_follows_a_name(pair, blocked):
    blocked.run("--resolver", pair.resolver)
    time.sleep(1)
    for address in TWO, ONE, TWO:
        pair.dns(NAME, address)
        begin = time.monotonic()
        until(lambda address=address: of_name(blocked).get(address, 1) is None, seconds=20, what=address)
        assert time.monotonic() - begin < 2 * FLOOR_S + 2
    pair.dns(NAME, "none")

    def parts():
        document = json.loads(blocked("-j", "status", check=False).stdout)
        return {part["name"]: part for part in document["agent"]["parts"]}

    until(lambda: parts()["names"]["failing"] == 1, seconds=20, what="the failure")
    assert parts()["names"]["problems"] and of_name(blocked)[TWO] is None
    pair.dns(NAME, TWO)
    until(lambda: parts()["names"]["failing"] == 0, seconds=30, what="the recovery")


def test_the_agent_learns_names_and_forgets_them(pair, on):
    agent = on.run("--resolver", pair.resolver)
    on("block", NAME, "--resolver", pair.resolver)
    pair.dns(NAME, TWO)
    until(lambda: TWO in of_name(on), seconds=20, what=TWO)
    on("unblock", NAME)
    pair.dns(NAME, ONE)
    time.sleep(FLOOR_S + 3)
    assert of_name(on) == {}
    assert subprocess.run(["kill", "-0", str(agent.pid)], check=False).returncode == 0
