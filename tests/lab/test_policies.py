# SPDX-License-Identifier: GPL-2.0-only
"""The policies that come with Weir and the examples of weir-policy(5): each is valid, and the kernel agrees with
its expect lines."""

import re

import pytest

from labnet import ROOT

POLICIES = sorted((ROOT / "policies").glob("*.weir"))
PAGE = (ROOT / "docs" / "weir-policy.5.scd").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```$", PAGE, re.M | re.S)
GRAMMAR = next(block for block in BLOCKS if block.startswith("STRING ="))
UNITS = "[Service]", "[Unit]", "[Timer]"  # of systemd
EXAMPLES = [block for block in BLOCKS if block != GRAMMAR and "error:" not in block and not any(one in block for one in UNITS)]
NO_KEYWORDS = {"and", "answer", "connection", "connections", "ports"}  # words of the grammar that names may have
NAMES = {
    "x.com": ["203.0.113.200", "2001:db8:200::1"],
    "twitter.com": ["203.0.113.201", "203.0.113.202"],
    "facebook.com": ["203.0.113.210", "2001:db8:210::1"],
}


def test_there_are_enough():
    assert len(POLICIES) >= 8


@pytest.fixture(name="names")
def served_names(dns):
    for name, addresses in NAMES.items():
        dns(name, *addresses)


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_it_is_right(weir, names, path):  # pylint: disable=unused-argument
    document = weir.json("check", path)
    text = path.read_text()
    assert document["proved"]
    assert document["expects"] == len(re.findall(r"^expect ", text, re.M))
    assert not [line for line in document["diagnostics"] if line["level"] == "error"]


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_it_expects_both_verdicts_and_families(path):
    expects = re.findall(r"^expect (\w+)(.*)", path.read_text(), re.M)
    assert {"pass", "drop"} <= {verdict for verdict, _ in expects}
    for verdict in "pass", "drop":
        packets = [packet for word, packet in expects if word == verdict]
        assert any(re.search(r"from [0-9.]+[0-9] ", packet) for packet in packets)
        assert any(re.search(r"from [0-9a-f]*:[0-9a-f:]* ", packet) for packet in packets)


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_the_page_is_valid(weir, tmp_path, text):
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "drop.txt").write_text("".join(f"11.0.{n // 256}.{n % 256}\n" for n in range(1000)))
    (tmp_path / "lists" / "own.txt").write_text("203.0.113.7\n")
    path = tmp_path / "example.weir"
    path.write_text(f"{text}\ncount from any\n")  # not every example has a rule
    document = weir.json("check", path)
    assert document["proved"]
    assert document["expects"] == len(re.findall(r"^expect ", text, re.M))
    assert not [line for line in document["diagnostics"] if line["level"] == "error"]


def test_the_grammar_of_the_page_has_every_keyword():
    refused = (ROOT / "tests" / "golden" / "errors" / "keywords.weir").read_text()
    keywords = set(re.findall(r"^define (\w+)", refused, re.M))
    assert set(re.findall(r'"([a-z]+)"', GRAMMAR)) - NO_KEYWORDS | {"self"} == keywords


def test_the_page_explains_every_field():
    fields = (ROOT / "ctl" / "policy" / "rule_fields.h").read_text()
    keywords = re.findall(r'\.keyword = "(\w+)"', fields)
    section = re.search(r"^## Fields$(.*?)^## Modifiers$", PAGE, re.M | re.S)[1]
    assert len(keywords) >= 15
    assert [word for word in keywords if f"*{word}*" not in section] == []
