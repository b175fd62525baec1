# SPDX-License-Identifier: GPL-2.0-only
"""What is blocked and what is not: real traffic and raw frames, both families."""

import contextlib
import json
import re
import subprocess
import time

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.packet import Raw

from blocklab import BLOCKED4, BLOCKED6, HALF_SECOND, MANY, OTHER4, OTHER6, SHARED4, answers, everything, nothing


# By address, prefix, range: traffic of real programs, then frames at both ends of each range.


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


@pytest.mark.parametrize("options, what", [
    (["--sync", "fed"], "list fed"), (["--origin", "idz"], "origin idz"),
    (["--sync", "feed", "--origin", "ids"], "list feed of origin ids"), (["198.51.100.1"], "198.51.100.1"),
])
def test_nothing_to_remove(on, options, what):
    on("block", BLOCKED4, "--origin", "ids")
    on("block", "-f", "-", "--sync", "feed", input=OTHER4)
    assert on("unblock", *options).stdout == f"nothing to remove for {what} in instance {on.name}\n"
    assert len(on.entries()) == 2


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


# Connections


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
