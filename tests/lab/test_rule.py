# SPDX-License-Identifier: GPL-2.0-only
"""weir rule: single rules in front of any policy, added, ended and deleted under the same revision."""

import re
import time

import pytest

from labnet import ROOT, WEIR, until
from policylab import Policies, hits, logged_in, login, tcp
from rulelab import POLICY, SOURCE, alarms, ids, later, listed, passes, revision
from statefile import read_rows, write_rows


@pytest.fixture(name="policy")
def policies(on, tmp_path):
    on.policy = Policies(on, tmp_path)
    return on.policy


# ---- without a policy ---------------------------------------------------------------------------------


def test_without_a_policy_the_rules_are_the_policy(on):
    done = on.json("rule", "add", "--note", "abuse 4711", "drop proto udp to any port 9")
    assert (done["id"], done["rule"], done["until"], done["changed"]) == (1, "drop proto udp to any port 9", None, True)
    assert not passes(on) and passes(on, 10)
    rule = listed(on)[0]
    assert (rule["packets"], rule["note"], rule["by"][:4]) == (1, "abuse 4711", "root") and "left_s" not in rule
    status = on.json("status")
    assert (status["revision"], status["quick_rules"]) == (None, 1)
    place = on.json("explain", *f"udp from {SOURCE} to 10.77.0.1 port 9".split())["packets"][0]
    assert (place["verdict"], place["rule"], place["at"]) == ("drop", "quick 1", "quick 1")
    on("rule", "delete", "1")
    assert passes(on) and listed(on) == [] and on.json("status")["quick_rules"] == 0


def test_words_in_one_argument_or_several(on):
    on("rule", "add", "drop", "proto", "udp", "to", "any", "port", "9,", "10")
    on("rule", "add", "drop proto udp", "to any port 11")
    assert [rule["rule"] for rule in listed(on)] == ["drop proto udp to any port 9, 10", "drop proto udp to any port 11"]
    assert [passes(on, port) for port in (9, 10, 11, 12)] == [False, False, False, True]


def test_an_id_is_never_used_again(on):
    for number in (1, 2, 3):
        assert on.json("rule", "add", f"drop proto udp to any port {number}")["id"] == number
    on("rule", "delete", "3")
    on("rule", "delete", "--all")
    assert on.json("rule", "add", "drop proto udp to any port 4")["id"] == 4
    on("detach")
    on("attach", "near0")
    assert on.json("rule", "add", "drop proto udp to any port 5")["id"] == 5


def test_names(on):
    on("rule", "add", "--name", "NTP", "drop proto udp from any port 123 to any")
    on("rule", "add", '"DNS" drop proto udp from any port 53 to any')
    assert [(rule["name"], rule["rule"]) for rule in listed(on)] == [
        ("NTP", "drop proto udp from any port 123 to any"), ("DNS", "drop proto udp from any port 53 to any")]
    assert 'rule 1 has the name "NTP"' in on.fails(1, "rule", "add", "--name", "NTP", "drop to any port 1")
    assert on.json("rule", "delete", "NTP")["deleted"] == 1
    assert on.json("rule", "delete", "DNS")["deleted"] == 1


# ---- the order ----------------------------------------------------------------------------------------


def test_the_newest_is_last_unless_a_place_is_given(on):
    on("rule", "add", "--name", "late", "drop proto udp to any port 9-20")
    on("rule", "add", "--name", "first", "--first", "pass to any port 9")
    on("rule", "add", "--name", "middle", "--before", "1", "pass to any port 10")
    assert [rule["name"] for rule in listed(on)] == ["first", "middle", "late"]
    assert [passes(on, port) for port in (9, 10, 11)] == [True, True, False]
    assert "no quick rule 9" in on.fails(1, "rule", "add", "--before", "9", "pass to any port 12")


def test_always_rules_and_entries_precede(on, policy):
    policy('"a" always pass proto udp to any port 8\n"b" pass to any port 9-12')
    on("rule", "add", f"drop from {SOURCE}")
    on("allow", "203.0.113.99")
    on("rule", "add", "drop from 203.0.113.99")
    on("block", "203.0.113.50")
    on("rule", "add", "pass from 203.0.113.50")
    assert [passes(on, 8), passes(on, 9)] == [True, False]
    assert passes(on, 9, "203.0.113.99") and not passes(on, 9, "203.0.113.50")


# ---- beside a policy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("blocked, rule, said", [
    ([SOURCE], f"pass from {SOURCE} to any port 9", f"from {SOURCE} stay blocked: 'block {SOURCE}' precedes"),
    (["203.0.113.0/24"], f"pass from {SOURCE}", f"from {SOURCE} stay blocked: 'block 203.0.113.0/24' precedes quick rules (weir allow {SOURCE} passes"),
    (["2001:db8::/32"], "pass from 2001:db8::7, 2001:db9::7", "from 2001:db8::7 stay blocked: 'block 2001:db8::/32'"),
    ([SOURCE, "203.0.113.8"], f"pass from {SOURCE}, 203.0.113.8, 203.0.113.10", f"from {SOURCE} and 1 other stay blocked"),
    (["--to", "198.51.100.1"], "pass to 198.51.100.1", "to 198.51.100.1 stay blocked: 'block 198.51.100.1' precedes quick rules (weir allow --to 198"),
    ([SOURCE], "pass proto udp to any port 9", None), ([SOURCE], f"drop from {SOURCE} to any port 9", None),
    ([SOURCE], "pass from not 10.0.0.0/8", None), (["--to", SOURCE], f"pass from {SOURCE}", None),
    ([SOURCE], "pass from 203.0.113.8", None),
])
def test_a_pass_that_a_block_entry_precedes(on, blocked, rule, said):
    on("block", "--force", *blocked)
    text = on("rule", "add", rule).stderr
    notices = on.json("rule", "add", "--force", "--first", rule)["notices"]
    assert (f"warning: quick 1: packets {said}" in text) == bool(said) and len(notices) == bool(said)
    assert not said or notices[0].startswith(f"quick 2: packets {said}"), notices


def test_a_pass_that_an_entry_allows_or_that_has_ended(on):
    on("block", "203.0.113.0/24")
    on("allow", SOURCE)
    on("block", "198.51.100.9", "--for", "1s")
    until(lambda: "198.51.100.9" not in on.entries(), what="the end of an entry")
    for rule in f"pass from {SOURCE}", "pass from 198.51.100.9":
        assert on.json("rule", "add", rule)["notices"] == []


def test_apply_rollback_and_attach_keep_them(on, policy):
    policy(POLICY)
    before = revision(on)
    on("rule", "add", "drop proto udp to any port 9")
    assert revision(on) == before and not passes(on) and len(on.json("history")["revisions"]) == 1
    assert "1 quick rule in front" in policy(POLICY + '"c" drop proto tcp to any port 78').stdout
    assert not passes(on)
    on("rollback")
    assert not passes(on) and ids(on) == [1]
    on("detach")
    assert ids(on) == [1]
    on("attach", "near0")
    assert not passes(on) and ids(on) == [1]


def test_attach_restores_them_without_a_policy(on):
    on("rule", "add", "drop proto udp to any port 9")
    on("detach")
    on("attach", "near0")
    assert not passes(on) and [rule["packets"] for rule in listed(on)] == [1]


def test_they_can_use_what_the_policy_defines(on, policy):
    policy(POLICY)
    on("rule", "add", "drop proto udp from @ban to any port 9")
    on("rule", "add", "drop proto tcp to any port $web")
    assert passes(on)
    on("block", "--set", "ban", SOURCE, "--for", "1h")
    assert not passes(on) and passes(on, 10)


def test_a_policy_with_which_one_does_not_compile_is_refused(on, policy):
    policy(POLICY)
    on("rule", "add", "drop proto udp from @ban to any port 9")
    before = revision(on)
    done = on("apply", policy.write(POLICY.replace("set ban", "set other")), check=False)
    assert done.returncode == 1 and "quick 1:1:" in done.stderr and "unknown set '@ban'" in done.stderr
    assert revision(on) == before and not alarms(on)


def test_a_name_of_the_policy(on, policy):
    policy(POLICY)
    assert 'the policy has a rule "a" already' in on("rule", "add", "--name", "a", "drop to any port 9", check=False).stderr
    on("rule", "add", "--name", "later", "drop proto udp to any port 9")
    policy(POLICY + '"later" drop proto tcp to any port 79')
    assert not passes(on)
    rows = {row["rule"]: row["packets"] for row in on.json("stats")["rules"]}
    assert rows["quick 1"] == 1 and rows["later"] == 0
    assert [rule["packets"] for rule in listed(on)] == [1]


def test_limits_forget_nothing(on, policy):
    policy(POLICY)
    assert [passes(on, 55) for _ in range(3)] == [True, True, False]
    on("rule", "add", "drop proto udp to any port 9")
    assert not passes(on, 55)
    on("rule", "delete", "1")
    assert not passes(on, 55)


def test_diff_and_apply_ignore_them(on, policy):
    policy(POLICY)
    on("rule", "add", "drop proto udp to any port 9")
    done = on.json("diff", policy.path)
    assert (done["differences"], done["quick_rules"]) == ([], 1)
    assert on.json("apply", policy.path)["changed"] is False


def test_diff_knows_what_only_they_use(on, policy):
    policy(POLICY)
    on("rule", "add", "drop proto udp to self port 9")
    on("rule", "add", "redirect near0 proto udp to any port 10")
    assert on.json("diff", policy.path)["differences"] == []


# ---- what is refused ----------------------------------------------------------------------------------

BAD = [
    ("always drop to any port 9", "it cannot be 'always'"),
    ("drop from evil.lab", "cannot have host names"), ("drop from host evil", "cannot have host names"),
    ("drop from country DE", "cannot have host names"), ("drop to any port 9 x", "unknown word 'x'"),
    ("include", "expected pass, drop"), ("expect drop tcp from 1.2.3.4 to 5.6.7.8", "expected pass, drop"),
    ("drop from @none", "unknown set"), ("drop from $none", "unknown"), ("drop from 10/8", "10"),
    ("drop to any port 9; pass", "one line"), ("drop # all", "one line"), ("drop\npass", "one line"), ("", "missing the words"),
    ("drop fragment", "decides fragments"), ('"" drop', "is empty"), ('"quick 1" drop', "quick N"),
    ('"443" drop', "not a number"), ('"a b" "c" drop', "two names"),
]


@pytest.mark.parametrize("text, said", BAD)
def test_a_bad_rule_changes_nothing(on, policy, text, said):
    policy(POLICY + "fragments drop proto udp\n")
    done = on("rule", "add", text, check=False)
    assert done.returncode == 1 and said in done.stderr
    assert on.json("rule", "add", text, status=1)["error"]
    assert listed(on) == [] and not (on.state / "rules").exists()


def test_a_rule_without_words(on):
    for words in [], [""], ["", " "]:
        assert "missing the words of a rule" in on.fails(1, "rule", "add", *words)


def test_one_that_never_matches(on, policy):
    policy(POLICY + '"first" always drop proto udp to any port 1-39')
    done = on("rule", "add", "drop proto udp to any port 9", check=False)
    assert done.returncode == 3 and "can never match" in done.stderr and "no packet would match" in done.stderr
    on("rule", "add", "--force", "drop proto udp to any port 9")
    assert on("rule", "add", "drop proto udp to any port 9", check=False).returncode == 3
    assert ids(on) == [1]


def test_at_most_256(on):
    on("rule", "add", "drop proto udp to any port 1")
    path = on.state / "rules"
    head, first, *before = read_rows(path, "rule")
    more = [first | {"id": n, "rule": f"drop proto udp to any port {n}"} for n in range(1, 256)]
    write_rows(path, "rule", [head | {"next": 256}, *more, *before])
    on("rule", "add", "drop proto udp to any port 256")
    assert "256 quick rules, which is the maximum" in on.fails(3, "rule", "add", "drop proto udp to any port 257")
    assert [passes(on, port) for port in (1, 255, 256, 257)] == [False, False, False, True]
    assert on.json("rule", "delete", "--all")["deleted"] == 256 and passes(on, 1)


def test_a_login_is_not_cut_off(on, pair):
    with login(pair, pair.far4):
        done = on("rule", "add", f"drop from {pair.far4}", check=False)
        assert done.returncode == 3 and f"login from {pair.far4}" in done.stderr
        assert listed(on) == []
        on("rule", "add", f"drop proto udp from {pair.far4} to any port 9")
        on("rule", "add", "--force", f"drop from {pair.far4}")
        on("rule", "add", "drop proto udp to any port 10")  # what was forced is not asked again


@pytest.mark.parametrize("rule", [
    "drop proto tcp to any port 2222 length 61-1500", "drop proto tcp to any port 2222 length 1400-1500",
    "drop ttl 1-63", "drop ttl 65-200", "drop proto tcp length 100-200 ttl 100-128"])
@pytest.mark.parametrize("far", ["far4", "far6"])
def test_a_login_has_packets_of_several_kinds(on, pair, far, rule):
    with login(pair, getattr(pair, far)):
        assert f"would cut off the login from {getattr(pair, far)}" in on.fails(3, "rule", "add", rule)
        assert listed(on) == []
        on("rule", "add", "drop proto tcp to any port 2222 length 1500-9000")


def test_attaching_asks_with_these_packets_too(pair, weir):
    pair.link("add", "v1", "type", "veth", "peer", "v2")
    try:
        weir("attach", "v1")
        weir("rule", "add", "drop proto tcp length 1000-1500 ttl 1-63")
        status, printed = logged_in(pair, pair.far4, [WEIR, "-n", weir.name, "attach", "near0"])
        assert status == 3 and "cut off your own login" in printed and "quick 1" in printed, printed
    finally:
        weir("detach", "--force", check=False)
        pair.link("del", "v1")


def test_a_pass_that_ends_does_not_save_a_login(on, pair):
    with login(pair, pair.far4):
        on("rule", "add", "--for", "10m", f"pass proto tcp from {pair.far4} to any port 2222")
        on("rule", "add", "--for", "1h", f"pass proto tcp from {pair.far4} to any")
        refused = on.fails(3, "rule", "add", "drop proto tcp to any port 2222")
        assert f"would cut off the login from {pair.far4}, on 'near0', when quick 2 ends: drop" in refused
        assert ids(on) == [1, 2]
        on("rule", "add", "drop proto tcp to any port 2223")
        on("rule", "add", "--for", "5m", "pass proto tcp to any port 2224")
        on("rule", "add", "pass proto tcp from 10.77.0.0/24 to any")
        on("rule", "add", "drop proto tcp to any port 2222")


def test_a_pass_that_ends_does_not_save_the_own_login(on, pair, policy):
    way_in = f"pass proto tcp from {pair.far4} to any port 2222"
    command = [WEIR, "-n", on.name, "apply", policy.write("default drop\n")]
    on("rule", "add", "--for", "10m", way_in)
    status, printed = logged_in(pair, pair.far4, command)
    assert status == 3 and "your own login" in printed and "when quick 1 ends: drop (default" in printed, printed
    on("rule", "add", "--first", way_in)
    status, printed = logged_in(pair, pair.far4, command)
    assert status == 0, printed
    on("rule", "delete", "2")  # no login: not asked
    status, printed = logged_in(pair, pair.far4, [WEIR, "-n", on.name, "rule", "add", "drop proto udp to any port 9"])
    assert status == 0, printed  # it is not what cuts off


def test_vlan_where_the_tags_are_removed(on, pair, policy):
    pair.link("add", "v1", "type", "veth", "peer", "v2")
    try:
        on("attach", "v1")
        refused = on("rule", "add", "drop vlan 10", check=False)
        assert refused.returncode == 3 and "ethtool -K v2 txvlan off" in refused.stderr and listed(on) == []
        on("rule", "add", "--force", "drop vlan 10")
        on("rule", "add", "drop proto udp to any port 9")
        warned = policy(POLICY, devices="near0, v1").stderr
        assert "warning: 'v1': VLAN tags are removed" in warned
        assert "on 'v1'" in on("rule", "add", "drop vlan 11", check=False).stderr and ids(on) == [1, 2]
        assert "'v1'" in policy.fails(3, POLICY + "drop vlan 11", devices="near0, v1")
        policy(POLICY.replace("77", "78"), devices="near0")
        on("rule", "add", "drop vlan 11")
    finally:
        on("detach", "v1", "--force", check=False)
        pair.link("del", "v1")


def test_established_without_connection_tracking(on, policy):
    assert "nft add table" in on.fails(3, "rule", "add", "pass established")
    assert "nft add table" in on.fails(3, "rule", "add", "drop not established flags syn")
    on("rule", "add", "--force", "pass established")
    on("detach", "near0")
    assert 'rule "quick 1" (quick 1) needs connection tracking' in on("attach", "near0").stderr
    on("rule", "add", "drop proto udp to any port 9")
    assert "quick 1 with 'established' does not match: connection tracking is off" in policy(POLICY).stderr
    assert on("refresh", "--policy").returncode == 0
    assert "nft add table" in policy.fails(3, POLICY + "pass established")


def test_expect_lines(on, policy):
    policy(POLICY)
    done = on("rule", "add", "drop proto udp to any port 40", check=False)
    assert done.returncode == 3 and "breaks 1 expectation" in done.stderr and "expect at" in done.stderr
    assert '(rule "quick 1"), expected' in done.stderr
    on("rule", "add", "--force", "drop proto udp to any port 40")
    on("rule", "add", "drop proto udp to any port 41")  # the line holds without quick rules
    assert "2 of 2 expectations hold" in policy(POLICY + '"c" drop proto tcp to any port 78').stdout
    wrong = policy.write(POLICY + "expect drop udp from 203.0.113.1 to 10.77.0.1 port 40\n")
    assert on("apply", wrong, check=False).returncode == 1  # it would hold by the quick rule only


def test_an_expect_line_names_no_quick_rule(on, policy):
    policy(POLICY)
    on("rule", "add", "--name", "mine", "drop proto udp to any port 9")
    said = policy.fails(1, POLICY + 'expect drop via "mine" udp from 203.0.113.1 to 10.77.0.1 port 9')
    assert "'mine' is a quick rule" in said and f"{policy.path}:8:" in said, said


def test_during_a_trial(on, policy):
    policy(POLICY)
    on("rule", "add", "--name", "ends", "--for", "1h", "drop proto udp to any port 9")
    policy(POLICY + '"c" drop proto tcp to any port 78', "--confirm=60s")
    refused = on.fails(3, "rule", "add", "drop proto udp to any port 10")
    assert "weir confirm keeps it, weir rollback ends it" in refused
    assert on("rule", "delete", "1", check=False).returncode == 3
    on("rollback")
    assert ids(on) == [1] and not passes(on)
    on("rule", "add", "drop proto udp to any port 10")
    assert ids(on) == [1, 2]


def test_a_damaged_file_is_refused(on):
    on("rule", "add", "drop proto udp to any port 9")
    path = on.state / "rules"
    path.write_text(path.read_text().replace("port 9", "port 8"))
    assert "is damaged: checksum mismatch" in on.fails(2, "rule", "add", "drop proto udp to any port 10")
    assert not passes(on) and any("damaged" in alarm for alarm in alarms(on))
    path.unlink()
    assert any("does not have the active quick rules" in alarm for alarm in alarms(on))
    on("rule", "add", "drop proto udp to any port 10")
    assert passes(on) and not passes(on, 10) and not alarms(on)


def test_a_file_that_cannot_be_read_stops_no_other_command(on, pair, policy):
    policy(POLICY + f"service web {{ vip 192.0.2.10; port 80; mode ipip; backend {pair.far4} }}", "--force")
    on("rule", "add", "drop proto udp to any port 9")
    path = on.state / "rules"
    path.write_text("weir-state 99\n")
    assert on.json("weight", pair.far4, "2")["changed"] == 1
    path.unlink()
    path.mkdir()
    assert on.json("weight", pair.far4, "3")["changed"] == 1
    assert any("/rules'" in alarm and "()" not in alarm for alarm in alarms(on)), alarms(on)
    path.rmdir()


# ---- after a failed restore ---------------------------------------------------------------------------


@pytest.mark.parametrize("lists", [1, 2])
def test_a_policy_that_cannot_be_restored_does_not_erase_them(on, policy, lists):
    policy(POLICY)
    on("rule", "add", "drop proto udp to any port 9")
    on("detach")
    path = on.state / "rules"
    rows = read_rows(path, "rule")
    assert len(rows) == 3  # a list with a rule, an empty list
    write_rows(path, "rule", rows[:lists + 1])
    for file in (on.state / "accepted").glob("*/*"):
        file.write_text("damaged")
    policy(POLICY, "--dry-run")
    assert ids(on) == [1]
    policy(POLICY)
    on("attach", "near0")
    assert ids(on) == [1] and not passes(on)


def left_out(on, policy):
    """Rules 1 and 2, of which the accepted policy lacks a set, after a reboot."""
    policy(POLICY.replace("set ban", "set other"))
    policy(POLICY, "--volatile")
    on("block", "203.0.113.50")
    on("rule", "add", "drop proto udp from @ban to any port 9")
    on("rule", "add", "drop proto udp to any port 10")
    on("detach")
    assert "quick 1: unknown set '@ban'" in on("attach", "near0").stderr
    assert not passes(on, 8, "203.0.113.50") and passes(on, 10) and on.json("status", status=2)["revision"]
    assert ids(on) == [1, 2] and any("2 quick rules are saved but not active" in alarm for alarm in alarms(on))


def test_one_that_does_not_compile_keeps_nothing_from_being_restored(on, policy):
    left_out(on, policy)
    on("rule", "delete", "1")
    assert not passes(on, 10) and ids(on) == [2] and not alarms(on)


def test_a_policy_with_which_they_compile_activates_them(on, policy):
    left_out(on, policy)
    policy(POLICY)
    on("block", "--set", "ban", SOURCE, "--for", "1h")
    assert not passes(on) and not passes(on, 10) and ids(on) == [1, 2] and not alarms(on)


def test_the_agent_ends_one_that_is_left_out(on, policy):
    """The policy does not compile with those that remain."""
    left_out(on, policy)
    agent = on.run()
    later(on, 0)
    rows = read_rows(on.state / "rules", "rule")
    write_rows(on.state / "rules", "rule", [row | ({"until_s": int(time.time()) - 1} if row.get("id") == 2 else {}) for row in rows])
    on("block", "203.0.113.51")  # the agent looks again after a command
    until(lambda: ids(on) == [1], 10)
    assert any("1 quick rule is saved but not active" in alarm for alarm in alarms(on)), alarms(on)
    assert "quick rule" in agent.said() and "error" not in agent.said(), agent.said()
    assert not [alarm for alarm in alarms(on) if "ends of quick rules" in alarm]
    assert passes(on) and on.json("rule", "add", "--dry-run", "drop proto udp to any port 8", status=1)["error"]
    policy(POLICY)
    assert ids(on) == [1] and not alarms(on)


def test_rules_alone_that_do_not_compile(on, policy):
    policy(POLICY, "--volatile")
    on("rule", "add", "drop proto udp from @ban to any port 9")
    on("detach")
    assert "quick 1: unknown set '@ban'" in on("attach", "near0").stderr
    assert ids(on) == [1]
    on("rule", "delete", "1")
    assert ids(on) == [] and not alarms(on)


def test_delete_while_detached(on):
    on("rule", "add", "drop proto udp to any port 9")
    on("rule", "add", "drop proto udp to any port 10")
    on("detach")
    assert on.json("rule", "delete", "1", "--dry-run")["deleted"] == 1 and ids(on) == [1, 2]
    on("rule", "delete", "1")
    assert ids(on) == [2] and "no quick rule '1'" in on.fails(1, "rule", "delete", "1")
    assert "not attached" in on.fails(1, "rule", "add", "drop proto udp to any port 11")
    on("attach", "near0")
    assert passes(on) and not passes(on, 10)
    assert on.json("rule", "add", "drop proto udp to any port 11")["id"] == 3


# ---- the examples of weir(8) --------------------------------------------------------------------------


def example(first):
    """A command of EXAMPLES that begins like this, in words."""
    text = (ROOT / "docs" / "weir.8.scd").read_text(encoding="utf-8").split("# EXAMPLES")[1]
    return next(line.strip().removesuffix("++") for line in text.splitlines() if line.strip().startswith(first)).split()[1:]


def test_the_example_of_a_limit(on, pair):
    on(*example("weir rule add --name ssh"))
    begins = [tcp(22, SOURCE, sport=4000 + n) for n in range(10)]
    assert pair.passes(*begins) == [True] * 6 + [False] * 4
    assert pair.passes(tcp(22, "203.0.113.8"), tcp(22, SOURCE, flags="A"), tcp(80, SOURCE)) == [True] * 3
    time.sleep(5.2)
    assert pair.passes(*begins[:2]) == [True, False]
    assert hits(on, "ssh") == 5


def test_the_example_of_a_ban(on, pair, policy):
    policy("set ban dynamic\ndefault pass")
    on(*example("weir rule add drop proto tcp to any port 22 from @ban"))
    assert pair.passes(tcp(22, SOURCE)) == [True]
    on(*example("weir block --set ban"))
    assert pair.passes(tcp(22, SOURCE), tcp(80, SOURCE), tcp(22, "203.0.113.8")) == [False, True, True]
    policy("set ban dynamic\ndrop proto udp to any port 9")
    assert pair.passes(tcp(22, SOURCE)) == [False]
    entry, = on.json(*example("weir list --set ban"))["addresses"]
    assert entry["address"] == SOURCE and 3500 < entry["left_s"] <= 3600
    on("unblock", "--set", "ban", SOURCE)
    assert pair.passes(tcp(22, SOURCE)) == [True]


# ---- ends ---------------------------------------------------------------------------------------------


def test_the_agent_ends_a_rule(on, policy):
    policy(POLICY)
    agent = on.run()
    on("rule", "add", "--for", "2s", "drop proto udp to any port 9")
    on("rule", "add", "drop proto udp to any port 10")
    assert not passes(on) and listed(on)[0]["left_s"] <= 2
    until(lambda: ids(on) == [2], 6)
    assert passes(on) and not passes(on, 10)
    assert "1 quick rule has ended" in agent.said()


def test_the_next_change_ends_a_rule(on, policy):
    policy(POLICY)
    on("rule", "add", "--for", "1s", "drop proto udp to any port 9")
    time.sleep(1.1)
    assert not passes(on) and alarms(on) == []
    assert on.json("apply", policy.path)["quick_rules"] == 0
    assert passes(on) and ids(on) == []


def test_an_overdue_end_is_an_alarm(on):
    on("rule", "add", "--for", "1h", "drop proto udp to any port 9")
    later(on, 3620)
    assert [re.sub(r"\d+s ago .*", "", alarm) for alarm in alarms(on)] == ["quick 1 should have ended "]
    on("rule", "add", "drop proto udp to any port 10")
    assert ids(on) == [2] and passes(on) and alarms(on) == []


def test_an_end_that_falls_into_a_trial(on, policy):
    policy(POLICY)
    on.run()
    on("rule", "add", "--for", "2s", "drop proto udp to any port 9")
    policy(POLICY + '"c" drop proto tcp to any port 78', "--confirm=60s")
    time.sleep(3)
    assert ids(on) == [1]
    on("confirm")
    until(lambda: ids(on) == [], 5)
    assert passes(on)


# ---- delete, forget ------------------------------------------------------------------------------------


def test_delete(on):
    for number, origin in enumerate(["x", "x", "y", None], 1):
        on("rule", "add", f"drop proto udp to any port {number}", *(["--origin", origin] if origin else []))
    assert "no quick rule '9'" in on.fails(1, "rule", "delete", "9")
    assert "no quick rule '4' of origin x" in on.fails(1, "rule", "delete", "4", "--origin", "x")
    assert "missing the number or name" in on.fails(1, "rule", "delete")
    assert "cannot be combined" in on.fails(1, "rule", "delete", "--all", "1")
    assert on.json("rule", "delete", "--all", "--dry-run")["deleted"] == 4 and ids(on) == [1, 2, 3, 4]
    assert [rule["id"] for rule in on.json("rule", "list", "--origin", "x")["rules"]] == [1, 2]
    assert on.json("rule", "delete", "--origin", "x", "--all")["deleted"] == 2 and ids(on) == [3, 4]
    assert on.json("rule", "delete", "--all")["deleted"] == 2
    assert on.json("rule", "delete", "--all")["changed"] is False


def test_forget_removes_them(on):
    on("rule", "add", "drop proto udp to any port 9")
    on("detach")
    assert on.json("forget", "--dry-run")["quick_rules"] == 1
    assert "1 quick rule" in on("forget").stdout
    assert listed(on) == []
    on("attach", "near0")
    assert passes(on)


def test_without_an_instance(weir):
    assert "not attached" in weir.fails(1, "rule", "add", "drop to any port 9")


# ---- weir block ADDRESS port ---------------------------------------------------------------------------


@pytest.mark.parametrize("words, rule", [
    ([SOURCE, "port", "22"], f"drop proto tcp, udp from {SOURCE} to any port 22"),
    ([SOURCE, "port", "22,", "80-90"], f"drop proto tcp, udp from {SOURCE} to any port 22, 80-90"),
    ([f"{SOURCE}:22"], f"drop proto tcp, udp from {SOURCE} to any port 22"),
    (["203.0.113.0/24", "proto", "udp", "port", "22"], "drop proto udp from 203.0.113.0/24 to any port 22"),
    (["[2001:db8::7]:22"], "drop proto tcp, udp from 2001:db8::7 to any port 22"),
    (["22/udp"], "drop proto udp from any to any port 22"),
    (["ssh"], "drop proto tcp from any to any port ssh"),
    (["domain"], "drop proto tcp, udp from any to any port domain"),
    (["port", "22"], "drop proto tcp, udp from any to any port 22"),
    ([SOURCE, "port", "22", "--to"], f"drop proto tcp, udp from any to {SOURCE} port 22")])
def test_a_port_of_block_is_a_rule(on, words, rule):
    said = on("block", *words, "--for", "1h", "--note", "abuse", "--origin", "jail").stdout
    assert re.match(rf"added quick 1: {re.escape(rule)}, until .* \(1h\)", said), said
    (row,) = listed(on)
    assert (row["rule"], row["note"], row["origin"]) == (rule, "abuse", "jail")
    assert not on.entries()
    to = [word for word in words if word == "--to"]
    plain = [word for word in words if word != "--to"]
    assert "deleted 0 quick rules" in on("unblock", *plain, *to, "--origin", "other").stdout
    assert "deleted 1 quick rule" in on("unblock", *plain, *to).stdout
    assert not listed(on)


def test_a_blocked_port_drops_this_port_only(on):
    assert passes(on, 22)
    on("block", f"{SOURCE}:22")
    assert [passes(on, 22), passes(on, 23), passes(on, 22, "203.0.113.8")] == [False, True, True]
    on("unblock", SOURCE, "port", "22")
    assert passes(on, 22)
    on("block", SOURCE, "port", "22", "--dry-run")
    assert passes(on, 22) and not listed(on)


def test_the_name_of_a_port_survives_what_follows(on, policy):
    """The record of the policy has no names of ports."""
    policy(POLICY)
    on("rule", "add", "drop proto tcp to any port ssh")
    on("refresh", "--policy")
    policy(POLICY.replace("77", "78"))
    assert on.json("rule", "list")["rules"][0]["rule"] == "drop proto tcp to any port ssh"
    on("rule", "add", "drop proto tcp to any port domain")
    on("detach")
    on("attach", "near0")
    assert ids(on) == [1, 2]


@pytest.mark.parametrize("words, said", [
    (["1.2.3.4:99999"], "'99999' is not a port"), (["blocked.lab", "port", "80"], "cannot have host names"),
    (["near0", "port", "80"], "'near0'")])
def test_a_port_of_block_that_is_no_rule(on, words, said):
    done = on("block", *words, check=False)
    assert done.returncode == 1 and said in done.stderr, done.stderr
    assert not listed(on)
