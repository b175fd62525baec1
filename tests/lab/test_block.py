# SPDX-License-Identifier: GPL-2.0-only
"""What is blocked and what is not: real traffic and raw frames, both families."""

import concurrent.futures
import contextlib
import fcntl
import os
import json
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.packet import Raw

from labnet import read_only, run

BLOCKED4, BLOCKED6 = "203.0.113.10", "2001:db8:113::10"
OTHER4, OTHER6 = "203.0.113.20", "2001:db8:113::20"
SHARED4, SHARED6 = "203.0.113.30", "2001:db8:113::30"
MANY = [f"198.51.100.{i}" for i in range(1, 5)] + [f"2001:db8:100::{i}" for i in range(1, 5)]
HALF_SECOND = ("-W0.5",)


def nothing(pair, *addresses):
    """True if no packet arrives from these addresses."""
    return not any(pair.free(*addresses))


def everything(pair, *addresses):
    return all(pair.free(*addresses))


# By address, prefix, range: traffic of real programs, then frames at both ends of each range.


def answers(pair, host4, host6):
    """What works with a host: [ping4, ping6, curl4, curl6]."""
    return [
        pair.ping4(host4, *HALF_SECOND), pair.ping6(host6, *HALF_SECOND),
        pair.curl4(host4), pair.curl6(host6),
    ]


def test_real_programs_meet_the_block_and_its_end(pair, on):
    assert answers(pair, BLOCKED4, BLOCKED6) == [True] * 4
    on("block", BLOCKED4, BLOCKED6)
    assert answers(pair, BLOCKED4, BLOCKED6) == [False] * 4
    assert answers(pair, OTHER4, OTHER6) == [True] * 4
    on("unblock", BLOCKED4, BLOCKED6)
    assert answers(pair, BLOCKED4, BLOCKED6) == [True] * 4


@pytest.mark.parametrize(
    "what, inside, outside",
    [
        ("203.0.113.10", ["203.0.113.10"], ["203.0.113.9", "203.0.113.11", "10.113.0.203"]),
        ("::ffff:203.0.113.10", ["203.0.113.10"], ["203.0.113.11"]),
        ("2001:db8:113::10", ["2001:db8:113::10"], ["2001:db8:113::11", "2001:db8:113::1:10"]),
        ("198.51.100.0/24", ["198.51.100.0", "198.51.100.255"], ["198.51.99.255", "198.51.101.0"]),
        ("198.51.100.4/31", ["198.51.100.4", "198.51.100.5"], ["198.51.100.3", "198.51.100.6"]),
        ("192.0.0.0/2", ["192.0.0.0", "223.255.255.255"], ["191.255.255.255"]),
        ("2001:db8:100::/48", ["2001:db8:100::", "2001:db8:100:ffff::1"],
         ["2001:db8:101::", "2001:db8:ff:ffff::1"]),
        ("2001:db8::4/127", ["2001:db8::4", "2001:db8::5"], ["2001:db8::3", "2001:db8::6"]),
        ("203.0.113.5-203.0.113.9", [f"203.0.113.{i}" for i in range(5, 10)],
         ["203.0.113.4", "203.0.113.10"]),
        ("2001:db8::fe-2001:db8::101", ["2001:db8::fe", "2001:db8::ff", "2001:db8::101"],
         ["2001:db8::fd", "2001:db8::102"]),
    ],
)
def test_what_is_named_is_blocked_and_no_more(pair, on, what, inside, outside):
    assert everything(pair, *inside, *outside)
    on("block", what)
    assert nothing(pair, *inside)
    assert everything(pair, *outside)
    on("unblock", what)
    assert everything(pair, *inside)


# Direction


@pytest.mark.parametrize(
    "option, source, target",
    [([], False, True), (["--to"], True, False), (["--both"], False, False)],
)
def test_direction(pair, on, option, source, target):
    for near, address in ("10.77.0.1", "192.0.2.99"), ("fd77::1", "2001:db8::99"):
        frames = pair.udp(address, near), pair.udp(near, address)
        assert pair.passes(*frames) == [True, True]
        on("block", *option, address)
        assert pair.passes(*frames) == [source, target]


def test_to_warns_on_a_host_that_does_not_forward(pair, on):
    assert "does not forward" in on("block", "--to", "192.0.2.99").stderr
    assert "does not forward" not in on("block", "192.0.2.99").stderr
    pair.near(["sysctl", "-qw", "net.ipv4.ip_forward=1"])
    try:
        assert on("block", "--to", "192.0.2.98").stderr == ""
    finally:
        pair.near(["sysctl", "-qw", "net.ipv4.ip_forward=0"])


# Allow


@pytest.mark.parametrize(
    "block, allow, passes, dropped",
    [
        ("198.51.100.0/24", "198.51.100.7", ["198.51.100.7"], ["198.51.100.6", "198.51.100.8"]),
        ("198.51.100.0/24", "198.51.100.8/29", ["198.51.100.8", "198.51.100.15"],
         ["198.51.100.7", "198.51.100.16"]),
        ("198.51.100.7", "198.51.100.0/24", ["198.51.100.7"], []),
        ("198.51.100.7", "198.51.100.7", ["198.51.100.7"], []),
        ("198.51.100.8/29", "198.51.100.0/24", ["198.51.100.9"], []),
        ("2001:db8:100::/48", "2001:db8:100::7", ["2001:db8:100::7"], ["2001:db8:100::8"]),
        ("2001:db8:100::7", "2001:db8:100::/48", ["2001:db8:100::7"], []),
    ],
)
def test_any_allow_beats_any_block(pair, on, block, allow, passes, dropped):
    on("block", block)
    assert nothing(pair, *passes, *dropped)
    on("allow", allow)
    assert everything(pair, *passes)
    assert nothing(pair, *dropped)
    on("unallow", allow)
    assert nothing(pair, *passes, *dropped)


def test_allowing_a_name_lets_it_through_and_warns(pair, on):
    on("block", "198.51.100.0/24", "2001:db8::/32")
    assert "the owner of the name" in on("allow", "many.lab").stderr
    assert everything(pair, *MANY)
    assert nothing(pair, "198.51.100.5", "2001:db8:100::5")
    assert len(on.json("list", "--allowed")["entries"]) == len(MANY)
    assert len(on.json("list", "--blocked")["entries"]) == 2


def test_blocking_the_allowed_says_that_it_has_no_effect(pair, on):
    on("allow", OTHER4)
    assert "allow beats block" in on("block", OTHER4).stderr
    assert everything(pair, OTHER4)


# Time


def test_a_block_ends_by_itself(pair, on):
    """In the datapath, without any command, and not before the requested time."""
    began = time.monotonic()
    on("block", "--for", "1s", BLOCKED4, "198.51.100.0/24", BLOCKED6)
    while nothing(pair, BLOCKED4, "198.51.100.9", BLOCKED6):
        assert time.monotonic() < began + 4
        time.sleep(0.02)
    assert time.monotonic() >= began + 1
    time.sleep(0.1)
    assert everything(pair, BLOCKED4, "198.51.100.9", BLOCKED6)
    assert on.entries() == {}


def test_an_expired_prefix_does_not_hide_a_wider_one(pair, on):
    on("block", "198.51.0.0/16")
    on("block", "--for", "1s", "198.51.100.0/24")
    time.sleep(2.1)
    assert nothing(pair, "198.51.100.1")
    on("unblock", "198.51.0.0/16")
    assert everything(pair, "198.51.100.1")


@pytest.mark.parametrize(
    "first, second, left_s",
    [(["--for", "1h"], ["--for", "2h"], 7200), (["--for", "2h"], ["--for", "1h"], 7200),
     ([], ["--for", "1h"], None), (["--for", "1h"], [], None)],
)
def test_the_later_of_two_expiries_wins(on, first, second, left_s):
    on("block", BLOCKED4, *first)
    on("block", BLOCKED4, *second)
    assert on.entries()[BLOCKED4].get("left_s") == pytest.approx(left_s, abs=5)


# Names


def test_all_addresses_of_a_name(pair, on):
    on("block", "many.lab")
    assert nothing(pair, *MANY)
    assert everything(pair, "198.51.100.5", "2001:db8:100::5")
    assert answers(pair, "many.lab", "many.lab") == [False] * 4
    on("unblock", "many.lab")
    assert answers(pair, "many.lab", "many.lab") == [True] * 4


@pytest.mark.parametrize("name", ["www.blocked.lab", "chain.lab", "BLOCKED.lab.", "blocked"])
def test_aliases_search_domains_and_spellings(pair, on, name):
    on("block", name)
    assert nothing(pair, BLOCKED4, BLOCKED6)
    on("unblock", name)
    assert everything(pair, BLOCKED4, BLOCKED6)


@pytest.mark.parametrize(
    "name, address", [("v4only.lab", "203.0.113.40"), ("v6only.lab", "2001:db8:113::60")]
)
def test_a_name_of_one_family(pair, on, name, address):
    on("block", name)
    assert list(on.entries()) == [address]
    assert nothing(pair, address)


def test_two_names_that_share_an_address(pair, on):
    on("block", "blocked.lab")
    on("block", "shared.lab")
    line = on.fails(3, "unblock", "blocked.lab")
    assert nothing(pair, BLOCKED4, BLOCKED6, SHARED4, SHARED6)
    assert f"{BLOCKED4} stays blocked" in line and "shared.lab" in line
    assert "; so does 1 more" in line
    on("unblock", "shared.lab")
    assert everything(pair, BLOCKED4, BLOCKED6, SHARED4, SHARED6)


def test_a_name_whose_addresses_changed(pair, on, dns):
    on("block", "blocked.lab")
    dns("blocked.lab", "192.0.2.1", "2001:db8::1")
    done = on("block", "blocked.lab")
    assert "2 former addresses removed" in done.stdout
    assert nothing(pair, "192.0.2.1", "2001:db8::1")
    assert everything(pair, BLOCKED4, BLOCKED6)
    dns("blocked.lab", "none")  # unblock does not query any server
    on("unblock", "blocked.lab")
    assert everything(pair, "192.0.2.1", "2001:db8::1")


def test_an_address_blocked_by_itself_too_survives_its_name(pair, on, dns):
    on("block", BLOCKED4)
    on("block", "blocked.lab")
    dns("blocked.lab", "192.0.2.1")
    on("block", "blocked.lab")
    assert nothing(pair, BLOCKED4, "192.0.2.1")


def test_the_hosts_file_comes_first(pair, on, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.66 other.lab alias.example\n2001:db8::66 alias.example\n")
    argv = on.argv("block", "other.lab", "alias.example")
    run(["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts, *argv])
    assert sorted(on.entries()) == ["192.0.2.66", "2001:db8::66"]
    assert everything(pair, OTHER4)


def test_search_domains_of_the_namespace(pair, on):
    """/etc/netns/NAME/resolv.conf, as 'ip netns exec' shows it to commands."""
    conf = f"/etc/netns/{pair.near_netns}/resolv.conf"
    with open(conf, encoding="ascii") as file:
        before = file.read()
    try:
        with open(conf, "w", encoding="ascii") as file:
            file.write(f"nameserver {pair.far4}\nsearch nowhere.lab blocked.lab\n")
        on("block", "www")
        assert set(on.entries()) == {BLOCKED4, BLOCKED6}
        assert "no such name" in on.fails(1, "block", "other")
    finally:
        with open(conf, "w", encoding="ascii") as file:
            file.write(before)


@pytest.mark.parametrize("resolver", ["10.77.0.2", "10.77.0.2:53", "fd77::2", "[fd77::2]:53"])
def test_resolver_option(pair, on, resolver):
    on("block", "--resolver", resolver, "v4only.lab")
    assert nothing(pair, "203.0.113.40")


@pytest.mark.parametrize(
    "options, at_least, at_most",
    [(["--resolver", "10.99.0.1", "--resolver-timeout", "300ms"], 0.25, 1),
     (["--resolver", "10.99.0.1"], 3, 5.5),
     (["--resolver", "10.77.0.2:54"], 0, 5.5)],
)
def test_an_unreachable_resolver_is_not_waited_for_long(pair, on, options, at_least, at_most):
    began = time.monotonic()
    assert "'blocked.lab'" in on.fails(2, "block", *options, OTHER4, "blocked.lab")
    assert at_least <= time.monotonic() - began <= at_most
    assert on.entries() == {}
    assert everything(pair, OTHER4)


def test_a_name_that_does_not_exist_changes_nothing(pair, on):
    line = on.fails(1, "block", OTHER4, "nothing.lab", "blocked.lab")
    assert "'nothing.lab': no such name" in line
    assert on.entries() == {}
    assert everything(pair, OTHER4, BLOCKED4)


# The owner of a name chooses its addresses, so a name never cuts off the machine.


def test_dangerous_answers_are_left_out(pair, on, dns):
    dns("other.lab", "127.0.0.1", "0.0.0.0", pair.near4, pair.far4, "192.0.2.50", "::1", pair.near6)
    done = on("block", "other.lab")
    assert list(on.entries()) == ["192.0.2.50"]
    for address in "127.0.0.1", "0.0.0.0", pair.near4, pair.far4, "::1", pair.near6:
        assert f"'other.lab' has address {address}, " in done.stderr
    dns("other.lab", "127.0.0.1")
    assert on("block", "other.lab", check=False).returncode == 3
    assert list(on.entries()) == ["192.0.2.50"]


@pytest.mark.parametrize(
    "what", ["10.77.0.1", "10.77.0.2", "10.77.0.0/24", "0.0.0.0/0", "fd77::1", "fd77::2",
             "fd00::/8", "10.77.0.0-10.77.0.9"]
)
def test_the_guard_refuses_to_cut_the_machine_off(pair, on, what):
    line = on.fails(3, "block", OTHER4, what)
    assert "would cut off" in line and "--force" in line
    assert on.entries() == {}
    assert pair.ping4(pair.far4) and pair.ping6(pair.far6)
    on("block", "--force", what)
    assert nothing(pair, what.split("-")[0].split("/")[0])


def test_the_guard_looks_into_lists(on):
    line = on.fails(3, "block", "-f", "-", input=f"{OTHER4}\n10.77.0.2\n")
    assert "would cut off 10.77.0.2" in line
    assert on.entries() == {}


def test_neighbour_discovery_survives_a_forced_block(pair, on):
    on("block", "--force", "::/0", "0.0.0.0/0")
    pair.near(["ip", "neigh", "flush", "dev", "near0"])
    assert not pair.ping6(pair.far6, *HALF_SECOND)
    on("unblock", "::/0", "0.0.0.0/0")
    assert pair.ping6(pair.far6)


# Frames that get past other filters

TAGS = [(5,), (5, 6), (0,), (5, 6, 7, 8)]


@pytest.mark.parametrize("outer", [b"\x81\0", b"\x88\xa8"], ids=["802.1Q", "802.1ad"])
@pytest.mark.parametrize("tags", TAGS)
def test_vlan_tags_hide_nothing(pair, on, tags, outer):
    def tagged(*sources):
        frames = [bytes(pair.udp(source, tags=tags)) for source in sources]
        return [frame[:12] + outer + frame[14:] for frame in frames]

    blocked, others = tagged(BLOCKED4, BLOCKED6), tagged(OTHER4, OTHER6)
    assert pair.passes(*blocked, *others) == [True] * 4
    on("block", BLOCKED4, BLOCKED6)
    assert pair.passes(*blocked, *others) == [False, False, True, True]


def fragments(pair, source):
    """First and later fragment of a datagram that resembles a port where its second half begins."""
    data = bytes(UDP(sport=9, dport=9, len=40)) + b"\0\x50" * 12
    if ":" not in source:
        header = {"src": source, "dst": pair.near4, "proto": 17, "id": 7}
        return [pair.ether() / IP(**header, flags="MF") / Raw(data),
                pair.ether() / IP(**header, frag=4) / Raw(b"\0\x50\0\x50")]
    header = pair.ether() / IPv6(src=source, dst=pair.near6)
    return [header / IPv6ExtHdrFragment(nh=17, m=1, id=7) / Raw(data),
            header / IPv6ExtHdrFragment(nh=17, offset=4, id=7) / Raw(b"\0\x50\0\x50")]


@pytest.mark.parametrize("blocked, other", [(BLOCKED4, OTHER4), (BLOCKED6, OTHER6)])
def test_fragments_obey_address_rules(pair, on, blocked, other):
    assert pair.passes(*fragments(pair, blocked)) == [True, True]
    on("block", blocked)
    frames = fragments(pair, blocked) + fragments(pair, other)
    assert pair.passes(*frames) == [False, False, True, True]


def test_large_pings_arrive_in_fragments_or_not_at_all(pair, on):
    assert pair.ping4("blocked.lab", "-s4000") and pair.ping6("blocked.lab", "-s4000")
    on("block", "blocked.lab")
    assert not pair.ping4("blocked.lab", "-s4000", *HALF_SECOND)
    assert not pair.ping6("blocked.lab", "-s4000", *HALF_SECOND)


def test_jumbo_frames(lab, weir_on):
    pair = lab(mtu=9000)
    weir = weir_on(pair)
    assert weir.json("attach", "near0")["interfaces"][0]["mode"] == "native"
    assert pair.ping4("blocked.lab", "-s8000", "-Mdo")
    assert pair.ping6("blocked.lab", "-s8000", "-Mdo")
    assert bits_a_second(pair, OTHER4) > 1e6
    weir("block", "blocked.lab", OTHER4)
    assert not pair.ping4("blocked.lab", "-s8000", "-Mdo", *HALF_SECOND)
    assert not pair.ping6("blocked.lab", "-s8000", "-Mdo", *HALF_SECOND)
    assert weir.entries()[BLOCKED4]["bytes"] == 8028
    assert bits_a_second(pair, OTHER4) == 0


def test_generic_mode(pair, weir):
    weir("attach", "near0", "--mode", "generic")
    weir("block", "blocked.lab", "198.51.100.0/24")
    assert answers(pair, "blocked.lab", "blocked.lab") == [False] * 4
    assert answers(pair, "other.lab", "other.lab") == [True] * 4
    assert nothing(pair, "198.51.100.1")
    frames = [pair.udp(source, tags=(5, 6)) for source in (BLOCKED4, OTHER4, BLOCKED6)]
    assert pair.passes(*frames) == [False, True, False]


# Counters, for addresses from which no connection of another test retransmits


QUIET4, QUIET6 = "192.0.2.201", "2001:db8::201"


def test_counters_are_the_packets_sent(pair, on):
    on("block", QUIET4, "198.18.100.0/24", QUIET6)
    on("allow", "192.0.2.1")
    sent = {
        QUIET4: [pair.udp(QUIET4, payload=b"x" * n) for n in range(50, 80)],
        "198.18.100.0/24": [pair.udp(f"198.18.100.{n}", tags=(5,)) for n in range(20)],
        QUIET6: [pair.udp(QUIET6) for _ in range(10)],
        "192.0.2.1": [pair.udp("192.0.2.1")],
    }
    for address, frames in sent.items():
        assert pair.passes(*frames) == [address == "192.0.2.1"] * len(frames)
    for address, entry in on.entries().items():
        ip = [frame[IPv6 if ":" in address else IP] for frame in sent[address]]
        assert (entry["packets"], entry["bytes"]) == (len(ip), sum(len(packet) for packet in ip))
        assert entry["last_seen_s"] <= 5
    reasons = {row["reason"]: row["packets"] for row in on.json("stats")["counters"]}
    assert (reasons["block-from"], reasons["allow"]) == (60, 1)


def test_counters_survive_other_changes(pair, on):
    on("block", QUIET4, "198.18.100.0/24")
    assert nothing(pair, QUIET4, "198.18.100.1")
    on("block", "--for", "1h", QUIET4, "192.0.2.202", "198.18.0.0/16")
    on("block", "--both", QUIET4)
    on("unblock", "192.0.2.202", "198.18.0.0/16")
    packets = {(e["address"], e["kind"]): e["packets"] for e in on.json("list")["entries"]}
    assert packets == {(QUIET4, "block-from"): 1, (QUIET4, "block-to"): 0,
                       ("198.18.100.0/24", "block-from"): 1}


# Owners


def test_origins_do_not_touch_each_other(pair, on):
    on("block", BLOCKED4, "--origin", "ids", "--note", "scan")
    on("block", BLOCKED4, "--origin", "cron", "--for", "1h")
    assert [holder["origin"] for holder in on.entries()[BLOCKED4]["holders"]] == ["cron", "ids"]
    line = on.fails(3, "unblock", BLOCKED4)
    assert "stays blocked" in line and "--origin" in line
    assert "stays blocked" in on("unblock", BLOCKED4, "--origin", "ids").stderr
    assert nothing(pair, BLOCKED4)
    on("unblock", BLOCKED4, "--origin", "cron")
    assert everything(pair, BLOCKED4)


def test_removing_a_reference_succeeds_while_others_block_the_address(pair, on):
    """Scripts rely on the exit status: 3 if the caller has no reference to remove and the address stays
    blocked."""
    on("block", BLOCKED4, "--origin", "ids", "--note", "scan")
    on("block", BLOCKED4)
    done = on.json("unblock", BLOCKED4)
    assert done["removed"] == 1 and "error" not in done
    assert [(stays["address"], stays["origin"], stays["note"]) for stays in done["stays"]] == [
        (BLOCKED4, "ids", "scan")]
    assert nothing(pair, BLOCKED4)
    document = on.json("unblock", BLOCKED4, status=3)  # the caller has no reference left
    assert document["removed"] == 0 and document["stays"][0]["origin"] == "ids"
    # With --origin, it is no failure if no reference is left: it may have expired.
    assert f"{BLOCKED4} stays blocked" in on("unblock", BLOCKED4, "--origin", "cron").stderr
    assert nothing(pair, BLOCKED4)


@pytest.mark.parametrize("options", [["--all"], []])
def test_everything_of_an_origin_and_nothing_else(pair, on, options):
    on("block", "many.lab", "198.51.100.0/24", "--origin", "ids")
    on("block", "-f", "-", "--sync", "feed", "--origin", "ids", input="192.0.2.0/24\n")
    on("block", "-f", "-", "--sync", "feed", input="192.0.2.7\n")
    on("block", "--both", BLOCKED4)
    on("block", OTHER4, "--origin", "cron")
    on("allow", SHARED4, "--origin", "ids")
    assert on.json("unblock", "--origin", "other", *options)["removed"] == 0
    assert on.json("unblock", "--origin", "ids", "--dry-run", *options)["removed"] == 10
    done = on("unblock", "--origin", "ids", *options)
    assert "unblocked 10 entries of origin ids" in done.stdout
    assert "192.0.2.0/24" not in done.stderr  # what remains inside the prefix is not reported
    assert set(on.entries()) == {"192.0.2.7", BLOCKED4, OTHER4, SHARED4}
    assert nothing(pair, "192.0.2.7", BLOCKED4, OTHER4) and everything(pair, *MANY, "192.0.2.8")
    on("unallow", "--origin", "ids", *options)
    assert set(on.entries()) == {"192.0.2.7", BLOCKED4, OTHER4}


@pytest.mark.parametrize(
    "options, what",
    [(["--origin", ""], "--origin is empty"), (["--all", "--origin", ""], "--origin is empty"),
     (["--sync", ""], "--sync is empty"), (["--all", "--sync", "feed"], "--all can be combined with"),
     (["--all", BLOCKED4], "--all can be combined with"), (["--all", "--set", "set"], "--set excludes --all"),
     (["-f", "-", "--origin", "ids"], "standard input contains no address"),
     (["-f", "-", "--sync", "feed"], "standard input contains no address"),
     (["-f", "/dev/stdin", "--all"], "contains no address")],
)
def test_what_may_be_a_mistake_takes_nothing_away(on, options, what):
    on("block", BLOCKED4, "--origin", "ids")
    on("block", "-f", "-", "--sync", "feed", input=OTHER4)
    before = on.entries()
    assert what in on.fails(1, "unblock", *options, input="# nothing\n")
    assert on.entries().keys() == before.keys()


@pytest.mark.parametrize("first, second", [("--to", "--both"), ("--both", "--to")])
def test_both_directions_are_said_to_stay_as_long_as_both_do(on, first, second):
    on("block", "192.0.2.1", first, *["--for", "30m"][:2 * (first == "--both")])
    said = on("block", "192.0.2.1", second, *["--for", "10m"][:2 * (second == "--both")]).stdout
    assert ("(10m)" in said) == (second == "--both") and ("until" not in said) == (second == "--to")
    done = on("block", "192.0.2.1", "--both", "--for", "20m")
    assert "until" in done.stdout and ("(20m)" in done.stdout) == (second == "--both")


def test_unblock_of_what_something_wider_covers(pair, on):
    on("block", "198.51.100.0/24", "--note", "abuse 4711")
    on("block", "198.51.100.7")
    line = on.fails(3, "unblock", "198.51.100.7")
    assert "198.51.100.7 stays blocked: block from 198.51.100.0/24, by root" in line
    assert "abuse 4711" in line and "weir allow 198.51.100.7" in line
    assert list(on.entries()) == ["198.51.100.0/24"]
    assert nothing(pair, "198.51.100.7")
    on("allow", "198.51.100.7")  # as the hint says
    assert everything(pair, "198.51.100.7")


def test_unblock_all(pair, on):
    on("block", "many.lab", "--origin", "ids")
    on("block", "-f", "-", "--sync", "feed", input="192.0.2.0/24\n")
    on("block", "--both", BLOCKED4)
    on("allow", OTHER4)
    on("unblock", "--all")
    assert list(on.entries()) == [OTHER4]
    assert everything(pair, *MANY, "192.0.2.1", BLOCKED4)


def test_nothing_happens_twice(on):
    what = [BLOCKED4, "198.51.100.0/24", "many.lab"]
    assert on.json("block", *what)["changed"] == 10
    assert on.json("block", *what)["changed"] == 0
    assert on.json("allow", "192.0.2.1")["changed"] == 1
    assert on.json("allow", "192.0.2.1")["changed"] == 0
    assert on.json("unblock", *what)["changed"] == 10
    assert on.json("unblock", *what)["changed"] == 0
    assert on.json("unallow", "192.0.2.2")["changed"] == 0
    assert list(on.entries()) == ["192.0.2.1"]


# Lists


def test_sync_makes_the_list_exactly_the_file(pair, on):
    def sync(first, last, *options, **how):
        text = "".join(f"192.0.2.{i}\n" for i in range(first, last))
        return on("block", "-f", "-", "--sync", "feed", *options, input=text, **how)

    on("block", "192.0.2.1")
    assert "list feed (9 entries: 9 added, 0 removed)" in sync(1, 10).stdout
    assert "list feed (7 entries: 2 added, 4 removed)" in sync(5, 12).stdout
    assert nothing(pair, "192.0.2.1", "192.0.2.5", "192.0.2.11") and everything(pair, "192.0.2.2")
    for last in 8, 5:  # less than half, an empty list
        refused = sync(5, last, check=False)
        assert refused.returncode == 3 and "--force" in refused.stderr
    assert len(on.entries()) == 8
    assert "3 entries: 0 added, 4 removed" in sync(5, 8, "--force").stdout
    assert "0 entries: 0 added, 3 removed" in sync(5, 5, "--force").stdout
    assert list(on.entries()) == ["192.0.2.1"]


def test_a_list_as_a_whole(pair, on):
    on("block", "-f", "-", "--sync", "feed", input="192.0.2.1\nmany.lab\n198.51.100.0/24 # all\n")
    assert nothing(pair, "192.0.2.1", *MANY, "198.51.100.77")
    on("unblock", "--sync", "feed")
    assert everything(pair, "192.0.2.1", *MANY, "198.51.100.77")


LIST = """\
# a list
203.0.113.10   # with a comment
198.51.100.0/24 for 1h note "abuse 4711"

2001:db8:113::10 to
192.0.2.5-192.0.2.9 both
many.lab
"""


def untils(weir):
    """When the entries expire, by address and kind."""
    return {(e["address"], e["kind"]): e["holders"][0].get("until") for e in weir.json("list")["entries"]}


def test_lists_from_files_and_standard_input(pair, on, tmp_path):
    file = tmp_path / "list"
    file.write_text(LIST)
    added = on.json("block", "-f", file)["added"]
    assert added == 1 + 1 + 1 + 2 * 3 + 8
    before = untils(on)
    again = on.json("block", "-f", "-", input=LIST)
    # The hour begins anew: in a later second that extends its entry, and no other.
    later = {key for key, until in untils(on).items() if until != before.get(key)}
    assert later <= {("198.51.100.0/24", "block-from")}
    assert again["extended"] == again["changed"] == len(later) and again["unchanged"] == added - len(later)
    assert pair.passes(
        pair.udp(BLOCKED4), pair.udp("198.51.100.200"), pair.udp(BLOCKED6),
        pair.udp(pair.near6, BLOCKED6), pair.udp("192.0.2.9"), pair.udp(pair.near4, "192.0.2.9"),
        pair.udp("2001:db8:100::4"), pair.udp(OTHER4),
    ) == [False, False, True, False, False, False, False, True]
    entry = on.entries()["198.51.100.0/24"]
    assert entry["holders"][0]["note"] == "abuse 4711" and 3500 < entry["left_s"] <= 3600


def test_lists_from_pipes(on, tmp_path):
    argv = " ".join(on.argv("block", "-f"))
    text = f"{argv} <(sleep 0.2; echo {BLOCKED4}; sleep 0.2; echo {OTHER4}) -f <(echo {BLOCKED6})"
    run(["bash", "-c", text])
    assert set(on.entries()) == {BLOCKED4, OTHER4, BLOCKED6}
    run(["mkfifo", tmp_path / "fifo"])
    waiting = on.start("unblock", "-f", tmp_path / "fifo")
    time.sleep(0.2)
    (tmp_path / "fifo").write_text(f"{BLOCKED4}\n{OTHER4}\n")
    assert waiting.wait(timeout=10) == 0 and set(on.entries()) == {BLOCKED6}
    done = run(["bash", "-c", f"{argv} <(true)"], check=False)
    assert done.returncode == 1 and "contains no address, prefix or host name" in done.stderr


def test_bad_lines_are_all_named_and_nothing_is_loaded(pair, on):
    text = f"{BLOCKED4}\n1.2.3\n\nbad bad\n{OTHER4} for years\n2001:db8::/129\n{OTHER6}\n"
    done = on("block", "-f", "-", input=text, check=False)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert [line.split(": ")[1] for line in lines[:-1]] == [f"standard input, line {n}" for n in (2, 4, 5, 6)]
    assert "nothing was changed" in lines[-1]
    assert on.entries() == {}
    assert everything(pair, BLOCKED4, OTHER4, OTHER6)
    errors = on.json("block", "-f", "-", input=text, status=1)["errors"]
    assert [error["line"] for error in errors] == [2, 4, 5, 6]


def test_keep_going_loads_the_good_lines(pair, on):
    text = f"{BLOCKED4}\n1.2.3\n{OTHER6}\n"
    done = on("block", "-f", "-", "--keep-going", input=text, check=False)
    assert done.returncode == 1 and "line 2: '1.2.3'" in done.stderr
    assert set(on.entries()) == {BLOCKED4, OTHER6}
    assert nothing(pair, BLOCKED4, OTHER6)
    on("unblock", "--all")
    document = on.json("block", "-f", "-", "--keep-going", input=text, status=1)
    assert (document["added"], document["bad"]) == (2, 1)


def test_what_list_prints_is_what_block_reads(on):
    on("block", "-f", "-", input=LIST)
    on("allow", OTHER4, "--note", "ours")
    before, plain = essence(on), on("list", "--plain").stdout
    allowed = on("list", "--plain", "--allowed").stdout
    assert allowed == f'{OTHER4} note "ours"\n' and f"{OTHER4}\n" not in plain
    on("unblock", "--all")
    on("unallow", "--all")
    assert essence(on) == []
    on("block", "-f", "-", input=plain)
    on("allow", "-f", "-", input=allowed)
    assert essence(on) == before
    assert on.json("block", "-f", "-", input=plain)["added"] == 0


def essence(weir):
    return [(e["address"], e["kind"], "left_s" in e, e["holders"][0]["note"])
            for e in weir.json("list")["entries"]]


def test_dry_run_changes_nothing(pair, on):
    state = sorted(on.state.rglob("*"))
    document = on.json("block", "--dry-run", BLOCKED4, "many.lab", "--for", "1h")
    assert (document["dry_run"], document["added"]) == (True, 9)
    assert on.entries() == {} and sorted(on.state.rglob("*")) == state
    assert everything(pair, BLOCKED4, *MANY)
    on("block", BLOCKED4)
    assert on.json("unblock", "--dry-run", BLOCKED4)["removed"] == 1
    assert nothing(pair, BLOCKED4)


# Limits, size, load


@pytest.mark.parametrize(
    "form, what",
    [("192.0.2.{}", "IPv4 host"), ("2001:db8::{}", "IPv6 host"),
     ("198.18.{}.0/24", "IPv4 prefix"), ("2001:db8:{}::/48", "IPv6 prefix")],
)
def test_a_full_table_refuses_and_takes_nothing_in(pair, weir, form, what):
    weir("attach", "near0", "--max-entries", "10")
    lines = [form.format(i) + "\n" for i in range(1, 12)]
    line = weir.fails(3, "block", "-f", "-", input=BLOCKED4 + "\n" + "".join(lines))
    assert f"11 {what}" in line or f"12 {what}" in line
    assert "limit of 10" in line and "--max-entries" in line
    assert weir.entries() == {} and everything(pair, BLOCKED4)
    weir("block", "-f", "-", input="".join(lines[:10]))
    weir.fails(3, "block", form.format(99))
    assert len(weir.entries()) == 10
    weir("unblock", "--all")
    weir("block", form.format(99))  # removed entries have made room


@pytest.fixture(scope="module")
def hundred_thousand(tmp_path_factory):
    file = tmp_path_factory.mktemp("lists") / "100k"
    numbers = range(100000)
    file.write_text("".join(f"198.{18 + (i >> 16)}.{i >> 8 & 255}.{i & 255}\n" for i in numbers))
    return file


def children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command, *args):
    """Processor seconds of a command."""
    began = children_s()
    command(*args)
    return children_s() - began


# The same addresses read, sorted, and written out by Python. Prints the processor seconds.
PLAIN = """
import socket, sys, time
began = time.process_time()
addresses = sorted({socket.inet_aton(line.strip()) for line in open(sys.argv[1])})
text = "".join(socket.inet_ntoa(address) + "\\n" for address in addresses)
print(time.process_time() - began)
"""


def test_hundred_thousand_addresses(pair, weir, hundred_thousand, capsys):
    """They cost a few times what a plain loop over them costs, at the same time on the same machine."""
    weir("attach", "near0")
    first, last, beyond = "198.18.0.0", "198.19.134.159", "198.19.134.160"
    block, unblock, plain = [], [], []
    for _ in range(3):
        plain.append(float(run([sys.executable, "-c", PLAIN, hundred_thousand]).stdout))
        block.append(timed(weir, "block", "-f", hundred_thousand))
        assert pair.free(first, last, beyond) == [False, False, True]
        unblock.append(timed(weir, "unblock", "-f", hundred_thousand))
        assert everything(pair, first, last)
    with capsys.disabled():
        print(f" [100,000: block {min(block):.2f} s, unblock {min(unblock):.2f} s, plain {min(plain):.2f} s] ", end="")
    assert min(block) < 4 * min(plain) and min(unblock) < 6 * min(plain)


@contextlib.contextmanager
def iperf_server(pair, address):
    argv = [*pair.enter(pair.far_netns), "iperf3", "-s", "-B", address]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as server:
        try:
            while f"{address}:5201" not in pair.far(["ss", "-Hltn"]).stdout:
                assert server.poll() is None
                time.sleep(0.01)
            yield
        finally:
            server.terminate()


def bits_a_second(pair, address):
    """What iperf3 receives from that address; 0 if it cannot connect."""
    client = ["iperf3", "-c", address, "-R", "-t1", "-J", "--connect-timeout", "500"]
    with iperf_server(pair, address):
        report = json.loads(pair.near(client, check=False).stdout)
    return report["end"]["sum_received"]["bits_per_second"] if report["end"] else 0


def segments_in(pair):
    """The number of TCP segments that the stack of near has received."""
    lines = pair.near(["cat", "/proc/net/snmp"]).stdout.splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("InSegs")])


def flows(pair, within=3):
    """True if the stack receives TCP segments within that many seconds."""
    start, end = segments_in(pair), time.monotonic() + within
    while segments_in(pair) < start + 100 and time.monotonic() < end:
        time.sleep(0.02)
    return segments_in(pair) >= start + 100


def test_a_block_cuts_a_connection_under_load(pair, on):
    argv = [*pair.enter(pair.near_netns), "iperf3", "-c", BLOCKED4, "-R", "-t20"]
    with iperf_server(pair, BLOCKED4), subprocess.Popen(argv, stdout=subprocess.DEVNULL) as client:
        try:
            assert flows(pair)
            on("block", BLOCKED4)
            before = segments_in(pair)
            time.sleep(0.4)
            assert segments_in(pair) == before
            assert on.entries()[BLOCKED4]["packets"] > 0
            on("unblock", BLOCKED4)
            assert flows(pair)
        finally:
            client.kill()


# The state folder


def test_what_cannot_be_saved_is_refused(pair, on):
    on("block", OTHER4)
    with read_only(on.state):
        line = on.fails(2, "block", BLOCKED4)
        assert str(on.state) in line and "--volatile" in line
        assert list(on.entries()) == [OTHER4]
        assert everything(pair, BLOCKED4) and nothing(pair, OTHER4)
        assert "; not saved" in on("block", "--volatile", BLOCKED4).stdout
        assert nothing(pair, BLOCKED4)
    assert set(on.entries()) == {OTHER4, BLOCKED4}


def test_a_lost_file_is_made_again_from_the_kernel(pair, on):
    on("block", BLOCKED4, "198.51.100.0/24")
    shutil.rmtree(on.state)
    assert sorted(on.entries()) == ["198.51.100.0/24", BLOCKED4]
    on("unblock", BLOCKED4, "198.51.100.0/24")
    assert everything(pair, BLOCKED4, "198.51.100.1")


def test_what_follows_damage_is_not_used_and_is_kept(pair, on):
    on("block", BLOCKED4, "--note", "before")
    file = on.state / "overlay"
    size = file.stat().st_size
    on("block", OTHER4, "--note", "after")
    file.write_text(file.read_text().replace("after", "aftex"))
    damaged = file.read_text()
    for command in ("list",), ("explain", BLOCKED4), ("stats",), ("block", MANY[0]):
        said = on(*command).stderr
        assert str(file) in said and f"at byte {size} " in said, said
    assert file.with_name("overlay.damaged").read_text() == damaged
    assert not on("list").stderr
    notes = {address: entry["holders"][0]["note"] for address, entry in on.entries().items()}
    assert notes[BLOCKED4] == "before" and "without a record" in notes[OTHER4]
    assert nothing(pair, BLOCKED4, OTHER4, MANY[0])


def processor_time(call):
    """Seconds of the processor that the processes of a call took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_block_costs_the_same_among_many(weir):
    """Not the time is bounded, but its ratio: a thousand entries and a million."""
    weir("attach", "near0", "--max-entries", "1100000")
    numbers = iter(range(1, 250))

    def cheapest():
        return min(processor_time(lambda: weir("block", f"192.0.2.{next(numbers)}")) for _ in range(12))

    def fill(size):
        weir("block", "-f", "-", timeout=120, input="\n".join(
            f"{32 + (i >> 18)}.{i >> 10 & 255}.{i >> 2 & 255}.{i & 3}" for i in range(size)))

    fill(1000)
    few = cheapest()
    fill(1000000)
    for _ in range(4):
        many = cheapest()
        print(f" [block: {few * 1000:.1f} ms among 1,000, {many * 1000:.1f} ms among 1,000,000] ", end="")
        if many <= 2 * few:
            break
    assert 0 < many <= 2 * few


# Several processes at once


def test_two_commands_at_once_both_take_effect(on):
    for i in range(30):
        pair = [on.start("block", f"192.0.2.{i}"), on.start("block", f"2001:db8::{i + 1:x}")]
        assert [process.wait(timeout=10) for process in pair] == [0, 0]
    assert len(on.entries()) == 60


def test_many_commands_at_once_take_turns(on):
    """100 commands, 8 at a time: each waits for as long as the queue takes."""
    def block(number):
        return on("block", f"192.0.2.{number}", check=False, timeout=120).returncode

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set(pool.map(block, range(100))) == {0}
    assert len(on.entries()) == 100


def test_who_waits_outlasts_ten_seconds_of_others(on):
    """The limit counts from the last time that the lock changed hands."""
    note = pathlib.Path("/run/weir", on.name, "lock")
    with on.locked():
        waiting = on.start("block", BLOCKED4)
        for turn in range(6):
            note.write_text(f"pid {turn}, weir block\n", encoding="ascii")
            time.sleep(2)
        assert waiting.poll() is None
    assert waiting.wait(timeout=5) == 0


def test_a_locked_instance_is_waited_for(on):
    with on.locked() as lock:
        waiting = on.start("block", BLOCKED4)
        reading = on.start("list")
        time.sleep(0.3)
        assert waiting.poll() is None and reading.poll() is None
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert (waiting.wait(timeout=1), reading.wait(timeout=1)) == (0, 0)


def test_a_lock_that_stays_names_its_process(on):
    with on.locked(command="apply edge.weir"):
        began = time.monotonic()
        line = on.fails(3, "block", BLOCKED4)
    assert line.endswith(f"is locked by another command: pid {os.getpid()}, weir apply edge.weir")
    assert 9.5 < time.monotonic() - began < 12
    assert on.entries() == {}


def test_a_lock_does_not_name_who_waits(on):
    """The former holder, which the note names, waits again; the present one has not written its name yet."""
    note = pathlib.Path("/run/weir", on.name, "lock")
    with on.locked():
        former = on.start("block", OTHER4)
        time.sleep(0.5)
        note.write_text(f"pid {former.pid}, weir block {OTHER4}\n", encoding="ascii")
        line = on.fails(3, "block", BLOCKED4)
        former.kill()
    assert line.endswith("is locked by another command: one that reads, or one with another /run/weir, as in a container")


def test_times_of_several_units(on):
    """As tables print them."""
    on("block", BLOCKED4, "--for", "1h30m")
    on("block", "-f", "-", input=f"{OTHER4} for 1d2h\n")
    left = {address: entry["left_s"] for address, entry in on.entries().items()}
    assert 5390 <= left[BLOCKED4] <= 5400 and 93590 <= left[OTHER4] <= 93600
    assert "'30m1h' is not a time" in on.fails(1, "block", BLOCKED4, "--for", "30m1h")


def test_what_is_left_is_never_more_than_was_asked_for(on):
    on("block", BLOCKED4, "--for", "10m")
    said = on("explain", BLOCKED4).stdout
    left = re.search(r", (\d+m(?: \d+s)?) left", said)[1]
    assert left == "10m" or left.startswith("9m 5"), said


LOCAL = ("0.1.2.3", "10.9.8.7", "100.64.0.1", "169.254.1.1", "172.31.255.1", "192.168.1.1", "224.0.0.251",
         "255.255.255.255", "fc00::1", "fd12::1", "fe80::1", "ff02::fb")


@pytest.mark.parametrize("address", LOCAL)
def test_a_name_blocks_no_local_address(on, dns, address):
    """The owner of a name chooses its addresses: a line in a zone must not cut off a network."""
    dns("blocked.lab", address, "203.0.113.10")
    done = on("block", "blocked.lab")
    assert address in done.stderr and "ignored" in done.stderr
    assert set(on.entries()) == {"203.0.113.10"}
    dns("blocked.lab", address)
    assert "--wide" in on("block", "blocked.lab", check=False).stderr
    assert set(on.entries()) == {"203.0.113.10"}
    on("block", "blocked.lab", "--wide")
    assert set(on.entries()) == {address}
    on("unblock", "blocked.lab")
    on("block", address)  # an address that is typed is meant
    assert set(on.entries()) == {address}


@pytest.mark.parametrize("address", ["11.0.0.1", "100.63.255.255", "100.128.0.0", "172.32.0.0", "192.169.0.1",
                                     "223.255.255.255", "2001:db8::1"])
def test_a_name_blocks_what_is_beside_local_ranges(on, dns, address):
    dns("blocked.lab", address)
    assert not on("block", "blocked.lab").stderr
    assert set(on.entries()) == {address}


def test_a_name_fills_no_table(on, dns):
    dns("blocked.lab", *[f"198.51.100.{n}" for n in range(200)], *[f"2001:db8:7::{n:x}" for n in range(1, 101)])
    done = on("block", "blocked.lab")
    assert "more than 256 addresses" in done.stderr and "36 more addresses are ignored" in done.stderr
    assert len(on.entries()) == 256
