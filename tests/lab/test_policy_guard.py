# SPDX-License-Identifier: GPL-2.0-only
"""The owner of a name cuts off no login and no service of this host: drop and reject rules leave protected addresses out of its answers."""
import json
import pathlib
import re

import pytest

from labnet import Pair, run, until
from policylab import MARK, Policies, login, programs, udp

NAME, GOOD, NEXT = "moving.lab", "203.0.113.31", "203.0.113.32"
PEER, PRIVATE, RESOLVER, OWN = "198.51.100.1", "192.168.7.7", Pair.far4, Pair.near4
FORMS = "2002:c0a8:707::1", "64:ff9b::c0a8:707", f"2002:{0x0a4d:x}:{0x0001:x}::1", "fec0::7"  # the third: of OWN
BAD = PRIVATE, PEER, RESOLVER, *FORMS
DROP = f'"bad" drop from {NAME}'
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(name="applied")
def policy_with_a_name(pair, weir, tmp_path):
    weir.policy = Policies(weir, tmp_path)
    weir.asking = "--resolver", pair.resolver
    pair.dns(NAME, GOOD)
    return weir


def dropped(weir, *addresses):
    return [address for address, passed in
            zip(addresses, weir.pair.passes(*[udp(src=address) for address in addresses])) if not passed]


def status(weir):
    done = weir("-j", "status", check=False)
    return done.returncode, json.loads(done.stdout)["alarms"]


def refresh(weir, code=0):
    return weir.json("refresh", *weir.asking, status=code)


def record(weir):
    revision = weir.json("history")["revisions"][0]["revision"]
    text = (weir.state / "accepted" / revision / "index").read_text()
    return json.JSONDecoder().raw_decode(text[text.index("{"):])[0]["names"][0]


@pytest.mark.parametrize("rule", [DROP, f'"bad" reject from {NAME}', f'set s {{ {NAME} }}\n"bad" drop from @s',
                                  f'define d = host {NAME}\n"bad" drop proto udp from 192.0.2.1, $d'])
def test_an_apply_leaves_them_out_and_reports_it(applied, rule):
    applied.pair.dns(NAME, GOOD, *BAD, OWN)
    with login(applied.pair, PEER):
        said = applied.policy(rule, *applied.asking).stderr
    assert dropped(applied, GOOD, *BAD) == [GOOD]
    assert status(applied) == (0, [])
    assert f"'{NAME}' has the address {OWN}, an address of this host: not dropped" in said
    assert f"'{NAME}' has the address {PRIVATE}, a private address: not dropped" in said
    assert re.search("'moving.lab': [1-9] more addresses are not dropped", said), said
    passed = applied.json("explain", "udp", "from", PEER, "to", OWN)
    assert passed["packets"][0]["verdict"] == "pass", passed


def test_check_reports_them(applied):
    applied.pair.dns(NAME, GOOD, PRIVATE)
    said = applied("check", applied.policy.write(DROP), *applied.asking).stderr
    assert f"{PRIVATE}, a private address: not dropped" in said and "'wide' after the name" in said


def test_the_peer_of_a_login_is_left_out_only_while_it_is_one(applied):
    applied.policy(DROP, *applied.asking)
    applied.pair.dns(NAME, GOOD, PEER)
    with login(applied.pair, PEER):
        assert refresh(applied)["switched"]
        assert dropped(applied, GOOD, PEER) == [GOOD]
        active = programs(applied)
        assert not refresh(applied)["switched"] and programs(applied) == active
        assert record(applied)["left_out"] == [PEER]
    applied("detach", "--force")
    applied("attach", "near0", "--force")  # the record decides, whoever has logged in or out
    assert dropped(applied, GOOD, PEER) == [GOOD]
    explained = applied.json("explain", "udp", "from", PEER, "to", OWN)
    assert explained["packets"][0]["verdict"] == "pass"
    assert refresh(applied)["switched"] and "left_out" not in record(applied)
    assert dropped(applied, GOOD, PEER) == [GOOD, PEER]


def test_a_rollback_looks_who_has_logged_in(applied):
    applied.pair.dns(NAME, GOOD, PEER)
    applied.policy(DROP, *applied.asking)
    assert dropped(applied, GOOD, PEER) == [GOOD, PEER]
    applied.policy('"other" drop proto udp to port 10')
    with login(applied.pair, PEER):
        applied("rollback")
    assert dropped(applied, GOOD, PEER) == [GOOD]


def test_an_unchanged_answer_with_another_login_is_another_policy(applied):
    applied.pair.dns(NAME, GOOD, PEER)
    with login(applied.pair, PEER):
        applied.policy(DROP, *applied.asking)
        assert "unchanged: " in applied.policy(DROP, *applied.asking).stdout
    assert "unchanged: " not in applied.policy(DROP, *applied.asking).stdout
    assert dropped(applied, GOOD, PEER) == [GOOD, PEER]


def sandboxed():
    """The capabilities of the packaged unit."""
    unit = run([ROOT / "scripts/unit", "/usr/bin", "weir@.service"]).stdout
    words = " ".join(re.findall("^CapabilityBoundingSet=(.*)$", unit, re.MULTILINE)).lower().split()
    return ["setpriv", "--no-new-privs", "--bounding-set=-all" + "".join(f",+{word[4:]}" for word in words)]


@pytest.mark.parametrize("unit", [False, True])
def test_the_agent_cuts_off_no_login(applied, unit):
    """It has no login of its own."""
    applied.policy(DROP, *applied.asking)
    with login(applied.pair, PEER):
        argv = applied.argv
        if unit:
            applied.argv = lambda *words: [*sandboxed(), *argv(*words)]
        agent = applied.run(*applied.asking)
        applied.argv = argv
        applied.pair.dns(NAME, GOOD, NEXT, *BAD)
        until(lambda: dropped(applied, NEXT), seconds=15, what=NEXT)
        assert dropped(applied, GOOD, NEXT, *BAD) == [GOOD, NEXT]
        assert status(applied) == (0, []) and "not dropped" not in agent.said()
        agent.stop()


def test_pass_rules_have_the_whole_answer(applied):
    applied.pair.dns(NAME, PRIVATE, PEER)
    said = applied.policy(f'default drop\n{MARK}"in" pass from {NAME}\nexpect pass from {NAME} to {OWN}\n'
                          f'expect drop tcp from {GOOD} to {OWN}', *applied.asking).stderr
    assert dropped(applied, PRIVATE, PEER, GOOD) == [GOOD] and PRIVATE not in said
    applied.policy(f'"out" drop proto udp from not {NAME}', *applied.asking)
    assert dropped(applied, PRIVATE, PEER, GOOD) == [GOOD]


def test_a_set_of_both_kinds_of_rules(applied):
    """A pass rule before the drop rule has the whole answer, and so has an exception: who is protected stays in it."""
    applied.pair.dns(NAME, GOOD, PRIVATE)
    text = f'set s {{ {NAME} }}\n"in" pass proto udp from @s port 4000\n"out" drop from @s'
    said = applied("check", applied.policy.write(text), *applied.asking).stderr
    assert said.count('not dropped') == 1 and PRIVATE in said and '@s' not in said.replace('from @s', '')
    applied.policy(text + f'\n"rest" drop proto udp from {PRIVATE}', *applied.asking)
    assert dropped(applied, GOOD, PRIVATE) == []
    applied.policy(f'set s {{ {NAME} }}\n"out" drop from @s\n"not" drop proto udp from not @s', *applied.asking)
    assert dropped(applied, GOOD, PRIVATE, PEER) == [GOOD, PEER]


@pytest.mark.parametrize("name", [f"{NAME} wide", f"host {NAME} wide"])
def test_wide_drops_them(applied, name):
    applied.pair.dns(NAME, GOOD, PRIVATE)
    said = applied.policy(f'"bad" drop from {name}', *applied.asking).stderr
    assert dropped(applied, GOOD, PRIVATE) == [GOOD, PRIVATE] and "not dropped" not in said
    applied.pair.dns(NAME, NEXT, PRIVATE)
    assert refresh(applied)["switched"] and dropped(applied, NEXT, PRIVATE) == [NEXT, PRIVATE]


def test_expectations_draw_from_what_is_left(applied):
    """Otherwise one bad address would stop every update."""
    applied.policy(f"{DROP}\nexpect drop tcp from {NAME} to {OWN}", *applied.asking)
    applied.pair.dns(NAME, NEXT, PRIVATE)
    assert refresh(applied)["switched"]
    assert dropped(applied, NEXT, PRIVATE) == [NEXT]


def test_an_answer_of_which_nothing_is_left_counts_as_none(applied):
    applied.policy(DROP, *applied.asking)
    applied.pair.dns(NAME, PRIVATE, RESOLVER)
    done = refresh(applied, code=2)
    assert done["names"][0]["error"] == f"all addresses of '{NAME}' are protected" and not done["switched"]
    assert dropped(applied, GOOD, PRIVATE, RESOLVER) == [GOOD]
    alarm = f"all addresses of '{NAME}' are protected: the policy keeps the previous ones"
    assert status(applied) == (2, [alarm])
    written = record(applied)
    refresh(applied, code=2)
    assert record(applied) == written
    said = applied.policy(DROP + ' log', *applied.asking).stderr
    assert "its last good answer is used" in said and status(applied) == (2, [alarm])
    assert record(applied)["refused_s"] == written["refused_s"]
    applied.pair.dns(NAME, GOOD)
    refresh(applied)
    assert status(applied) == (0, []) and dropped(applied, GOOD) == [GOOD]


def test_a_first_answer_of_which_nothing_is_left_is_an_error(applied):
    applied.pair.dns(NAME, PRIVATE)
    assert f"all addresses of '{NAME}' are protected" in applied.policy.fails(1, DROP, *applied.asking)
    assert not applied.bpffs.exists()
    names = applied.policy.folder / "names"
    names.write_text(f"{NAME}\n")
    applied.policy(f'set s {{ file "{names}" lax }}\n"bad" drop from @s', *applied.asking)
    assert status(applied) == (2, [f"all addresses of '{NAME}' are protected: the policy has no address of it"])
    names.write_text("")
    applied.policy(f'set s {{ file "{names}" lax, {GOOD} }}\n"bad" drop from @s', *applied.asking)
    assert status(applied) == (0, [])


def test_the_agent_raises_the_alarm_and_ends_it(applied):
    applied.policy(DROP, *applied.asking)
    applied.run(*applied.asking)
    applied.pair.dns(NAME, PRIVATE)
    until(lambda: any("are protected" in alarm for alarm in status(applied)[1]), seconds=15, what="the alarm")
    assert dropped(applied, GOOD, PRIVATE) == [GOOD]
    applied.pair.dns(NAME, NEXT)
    until(lambda: status(applied) == (0, []), seconds=20, what="its end")
    assert dropped(applied, GOOD, NEXT, PRIVATE) == [GOOD, NEXT]


def test_what_leaves_stays_left_out(applied):
    applied.pair.dns(NAME, GOOD, PRIVATE)
    applied.policy(DROP, *applied.asking)
    applied.pair.dns(NAME, NEXT)
    refresh(applied)
    assert [one["address"] for one in record(applied)["leaving"]] == [PRIVATE, GOOD]
    assert dropped(applied, GOOD, NEXT, PRIVATE) == [GOOD, NEXT]


def test_entries_leave_out_the_same(applied):
    """The peers of other logins, and addresses of IPv6 that are another form of a protected one."""
    applied("attach", "near0")
    applied.pair.dns(NAME, GOOD, PEER, *FORMS)
    with login(applied.pair, PEER):
        said = applied("block", NAME, *applied.asking).stderr
    assert set(applied.entries()) == {GOOD}
    assert f"{PEER}, the peer of a login: ignored" in said
    assert "2002:a4d:1::1, an address of this host: ignored" in said
    assert "fec0::7, a site-local address: ignored" in said
    applied("block", PEER)  # by its address it can be blocked
    assert PEER in applied.entries()
