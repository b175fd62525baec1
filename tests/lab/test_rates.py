# SPDX-License-Identifier: GPL-2.0-only
"""A switch of policies refills no rate: its state belongs to the rule, as long as rule and rate are the same."""

import json
import struct
import time

import pytest

from labnet import Pair
from policylab import SOURCE4, SOURCE6, Policies, dump, number, udp

NAME = "moving.lab"
OTHER = "drop proto udp to port 11 over 1/min burst 2\ndrop proto udp to port 12 over 1/min per source"


@pytest.fixture(name="apply")
def policies(on, tmp_path):
    return Policies(on, tmp_path)


def burst(count, src=SOURCE4, port=9):
    """Different frames, each with an answer of its own."""
    return [udp(port, src, sport=7000 + sent) for sent in range(count)]


def passed(pair, count, **fields):
    return sum(pair.passes(*burst(count, **fields)))


@pytest.mark.parametrize("kind", ["", "per source", "per destination mask 24/56", "per source max 100"])
@pytest.mark.parametrize("rule", [
    "drop proto udp to port 9 over 1/min burst 3 {}",
    '"named" drop proto udp to port 9 over 1/min burst 3 {}',
    "default drop\npass ethertype 0x88b5\npass proto udp to port 9 under 1/min burst 3 {}",
])
def test_an_apply_does_not_refill(pair, apply, rule, kind):
    rule = rule.format(kind)
    apply(rule)
    assert passed(pair, 5) == 3
    for text in rule, f"{OTHER}\n{rule}", f"{rule}\n{OTHER}", rule:
        apply(text, "--force")
        assert passed(pair, 2) == 0, text


def test_of_each_address(pair, apply):
    apply("drop proto udp to port 9 over 1/min burst 3 per source")
    assert passed(pair, 5) == 3 and passed(pair, 2, src=SOURCE6) == 2
    apply(f"{OTHER}\ndrop proto udp to port 9 over 1/min burst 3 per source")
    assert passed(pair, 5) == 0 and passed(pair, 5, src=SOURCE6) == 1
    assert passed(pair, 5, src="203.0.113.77") == 3


@pytest.mark.parametrize("before, after", [
    ("over 1/min burst 3", "over 2/min burst 3"),
    ("over 1/min burst 3", "over 1/min burst 4"),
    ("over 1/min burst 3", "over 1/min burst 3 per source"),
    ("over 1/min burst 3 per source", "over 1/min burst 3 per destination"),
    ("over 1/min burst 3 per source", "over 1/min burst 3 per source mask 24/56"),
    ("over 1/min burst 3 per source", "over 1/min burst 3 per source max 1000"),
])
def test_another_rate_starts_full(pair, apply, before, after):
    """Also while the policy before it waits for the end of a trial, which it gets back as it was."""
    rule = '"named" drop proto udp to port 9 '
    apply(rule + before)
    assert passed(pair, 6) == 3
    apply(rule + after, "--confirm=30s")
    assert passed(pair, 6) >= 3
    apply.weir("rollback")
    assert passed(pair, 3) == 0


def test_another_rule_starts_full(pair, apply):
    apply("drop proto udp to port 9 over 1/min burst 3")
    assert passed(pair, 5) == 3
    apply("drop proto udp to port 9 over 1/min burst 3 length 1-1000")
    assert passed(pair, 5) == 3


@pytest.mark.parametrize("kind", ["", "per source"])
def test_a_trial_and_its_end_share_the_rate(pair, apply, kind):
    rule = f"drop proto udp to port 9 over 1/min burst 3 {kind}"
    apply(rule)
    assert passed(pair, 2) == 2
    apply(f"{OTHER}\n{rule}", "--confirm=30s")
    assert passed(pair, 3) == 1
    apply.weir("rollback")
    assert passed(pair, 3) == 0


def test_names_that_move_refill_nothing(pair, on, apply):
    pair.dns(NAME, "203.0.113.31")
    resolver = "--resolver", Pair.resolver
    apply(f"drop from {NAME}\ndrop proto udp to port 9 over 1/min burst 3", *resolver)
    assert passed(pair, 5) == 3
    pair.dns(NAME, "203.0.113.32")
    assert on.json("refresh", *resolver)["switched"]
    assert passed(pair, 5) == 0


def rules_of(on):
    """(meter, log) of each rule of the newest generation."""
    newest = max(on.bpffs.glob("gen/*"), key=lambda path: int(path.name))
    values = (bytes(int(octet, 16) for octet in one["value"]) for one in dump(newest / "rules"))
    return [(struct.unpack_from("<I", value, 68)[0], struct.unpack_from("<I", value, 36)[0]) for value in values]


def test_two_rules_of_one_text_have_a_rate_each(pair, on, apply):
    """The first one keeps the state of the first."""
    rule = "count proto udp to port 9 over 1/min burst 3 log 1/min\n"
    apply(rule + rule)
    (first, first_log), (second, second_log) = rules_of(on)
    assert first != second and first_log != second_log
    apply(f"{OTHER}\n{rule}{rule}{rule}")
    assert rules_of(on)[2:4] == [(first, first_log), (second, second_log)]
    assert rules_of(on)[4][0] not in (first, second)
    apply(rule)
    assert rules_of(on) == [(first, first_log)]


def test_a_word_is_full_when_another_rule_gets_it(pair, on, apply):
    """What no policy uses any more is used again, without what is in it."""
    apply("drop proto udp to port 9 over 1/min burst 3")
    assert passed(pair, 5) == 3
    word = rules_of(on)[0][0]
    assert number(dump(on.bpffs / "meters")[word]["value"])
    for port in 10, 11, 12:
        apply(f"drop proto udp to port {port}")
    apply("drop proto udp to port 9 over 1/min burst 3")
    assert rules_of(on)[0][0] == word
    assert passed(pair, 5) == 3


def test_the_pace_of_records_goes_on(pair, on, apply):
    rule = '"seen" pass proto udp to port 9 log 1/h\n"again" pass proto udp to port 10 log 1000/s'
    apply(rule)
    watch = on.start("-j", "watch", "-c", "3")
    time.sleep(0.3)
    pair.passes(udp(9))
    pair.passes(udp(10))
    apply(f"{OTHER}\n{rule}")
    pair.passes(udp(9))
    pair.passes(udp(10))
    events = [json.loads(line) for line in watch.communicate(timeout=10)[0].splitlines()]
    assert [event["rule"] for event in events[:-1]] == ["seen", "again", "again"]
