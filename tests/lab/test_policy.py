# SPDX-License-Identifier: GPL-2.0-only
"""What an applied policy does with packets: real traffic and raw frames, both families."""

import json
import time

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (
    ICMPv6EchoReply, ICMPv6MLReport2, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6PacketTooBig, IPv6,
    IPv6ExtHdrFragment,
)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from labnet import Pair, run, second_link, shared_weir
from policylab import (
    MARK, OTHER4, OTHER6, SOURCE4, SOURCE6, hits, packet, ping, tcp, udp,
)


@pytest.fixture(scope="module", name="second")
def link_of_its_own(pair):
    """The same two hosts over another link, near1 and far1, to which XDP may send."""
    with second_link(pair) as link:
        pair.far(["ethtool", "-K", "far1", "gro", "on"])
        yield link


@pytest.fixture(scope="module", name="weir")
def instance_on_near0(pair):
    with shared_weir(pair) as instance:
        yield instance


def later_fragment(src=SOURCE4, proto=17):
    if ":" in src:
        return packet(IPv6ExtHdrFragment(offset=1, m=0, nh=proto) / Raw(b"f" * 16), src)
    return packet(Raw(b"f" * 16), src, frag=1, proto=proto)


def first_fragment(src=SOURCE4, port=9):
    inner = UDP(sport=4000, dport=port, len=64) / Raw(b"f" * 8)
    if ":" in src:
        return packet(IPv6ExtHdrFragment(offset=0, m=1, nh=17) / inner, src)
    return packet(inner, src, flags="MF")


def frame(ethertype):
    return Ether(dst=Pair.near_mac, src=Pair.far_mac, type=ethertype) / Raw(b"e" * 46)


# Each: what it shows, the rules, and frames with whether they pass.

PASS, DROP = True, False
FIELDS = {
    "addresses": (
        """set bad { 203.0.113.0/24, not 203.0.113.20, 2001:db8:113::/48 }
        drop from @bad
        drop to 10.77.0.99""",
        [(udp(), PASS), (udp(src=SOURCE6), PASS), (udp(src=OTHER4), DROP), (udp(src=OTHER6), DROP),
         (udp(src="203.0.113.20"), PASS), (udp(dst="10.77.0.99"), DROP), (tcp(src=OTHER4), DROP)],
    ),
    "first match": (
        """pass from 203.0.113.9
        drop from 203.0.113.0/24
        pass from 203.0.113.10""",
        [(udp(src=OTHER4), PASS), (udp(src="203.0.113.10"), DROP)],
    ),
    "negated list takes the other family whole": (
        "drop from not 198.51.100.0/24",
        [(udp(), PASS), (udp(src=OTHER4), DROP), (udp(src=SOURCE6), DROP)],
    ),
    "ports": (
        """drop proto udp to port 9, 20-22
        drop port 8080
        drop proto udp from any port 53 to any""",
        [(udp(9), DROP), (udp(9, SOURCE6), DROP), (udp(10), PASS), (udp(21), DROP), (udp(23), PASS),
         (tcp(9), PASS), (tcp(8080), DROP), (udp(8080, SOURCE6), DROP), (udp(10, sport=53), DROP),
         (udp(53), PASS)],
    ),
    "flags": (
        """drop flags fin,psh,urg/fin,psh,urg
        drop flags none
        drop flags syn to port 81""",
        [(tcp(flags="FPU"), DROP), (tcp(flags="FPUA", src=SOURCE6), DROP), (tcp(flags="FP"), PASS),
         (tcp(flags=0), DROP), (tcp(flags="S"), PASS), (tcp(81), DROP), (tcp(81, flags="SA"), PASS),
         (tcp(81, flags="SE"), DROP), (udp(81), PASS)],
    ),
    "icmp types": (
        """drop type echo-request from 203.0.113.0/24, 2001:db8:113::/48
        drop proto icmp type 13
        drop proto icmp6 type packet-too-big""",
        [(ping(), PASS), (ping(SOURCE6), PASS), (ping(OTHER4), DROP), (ping(OTHER6), DROP),
         (packet(ICMP(type=13)), DROP), (packet(ICMP(type=14)), PASS),
         (packet(ICMPv6PacketTooBig(), SOURCE6), DROP), (udp(src=OTHER4), PASS)],
    ),
    "vlan": (
        "drop vlan 7\ndrop vlan none proto udp to port 9",
        [(udp(tags=(7,)), DROP), (udp(src=SOURCE6, tags=(7,)), DROP), (udp(tags=(8,)), PASS),
         (udp(tags=(7, 8)), DROP), (udp(tags=(8, 7)), PASS), (udp(), DROP), (udp(10), PASS)],
    ),
    "fragments go through the rules without ports": (
        "drop proto udp to port 9",
        [(first_fragment(), DROP), (later_fragment(), PASS), (first_fragment(port=10), PASS),
         (first_fragment(SOURCE6), DROP), (later_fragment(SOURCE6), PASS)],
    ),
    "fragments drop proto udp": (
        "fragments drop proto udp\ndefault pass",
        [(first_fragment(), PASS), (later_fragment(), DROP), (later_fragment(proto=6), PASS),
         (later_fragment(SOURCE6), DROP), (first_fragment(SOURCE6), PASS)],
    ),
    # RFC 8200 section 4.5: the receiver uses the protocol of the first fragment, whatever this one names.
    "fragments drop proto udp, and IPv6 that names another protocol": (
        "fragments drop proto udp\ndefault pass",
        [(later_fragment(SOURCE6, nh), DROP) for nh in (0, 6, 43, 58, 59, 60, 255)],
    ),
    "fragments pass proto udp, and IPv6 that names another protocol": (
        f"fragments pass proto udp\n{MARK}default drop",
        [(later_fragment(SOURCE6, 60), PASS), (later_fragment(SOURCE6), PASS),
         (later_fragment(proto=60), DROP)],
    ),
    "rules take the protocol that a later fragment of IPv6 names": (
        "drop proto udp",
        [(later_fragment(SOURCE6), DROP), (later_fragment(SOURCE6, 6), PASS)],
    ),
    "fragments pass comes before the rules": (
        f"fragments pass\n{MARK}default drop",
        [(first_fragment(), DROP), (later_fragment(), PASS), (later_fragment(SOURCE6), PASS)],
    ),
    "the field fragment": (
        "drop fragment from 198.51.100.0/24, 2001:db8::/32",
        [(later_fragment(), DROP), (later_fragment(SOURCE6), DROP), (later_fragment(OTHER4), PASS),
         (udp(), PASS), (udp(src=SOURCE6), PASS)],
    ),
    "ethertype": (
        "drop ethertype lldp, 0x9000\ndrop from any",
        [(frame(0x88CC), DROP), (frame(0x9000), DROP), (frame(0x9001), PASS), (udp(), DROP)],
    ),
    "length of the frame": (
        "drop ethertype ipv4, ipv6, 0x9000 length 60-80",
        [(udp(size=17), PASS), (udp(size=18), DROP), (udp(size=38), DROP), (udp(size=39), PASS),
         (udp(src=SOURCE6, size=18), DROP), (udp(src=SOURCE6, size=19), PASS),
         (udp(size=14, tags=(7,)), DROP), (udp(size=35, tags=(7,)), PASS),
         (Raw(bytes(udp(size=10)) + bytes(8)), DROP), (frame(0x9000), DROP)],
    ),
    "length, ttl, dscp": (
        "drop length 100-200\ndrop ttl 1-5\ndrop dscp ef, 10",
        [(udp(size=71), PASS), (udp(size=72), DROP), (udp(size=172), DROP), (udp(size=173), PASS),
         (udp(src=SOURCE6, size=51), PASS), (udp(src=SOURCE6, size=52), DROP),
         (udp(ttl=5), DROP), (udp(ttl=6), PASS), (udp(src=SOURCE6, hlim=1), DROP),
         (udp(tos=46 << 2), DROP), (udp(tos=46 << 2 | 3), DROP), (udp(tos=47 << 2), PASS),
         (udp(src=SOURCE6, tc=10 << 2), DROP)],
    ),
    "protocols": (
        "drop proto gre, 99\ndrop proto sctp to port 9",
        [(packet(Raw(b"g" * 20), proto=47), DROP), (packet(Raw(b"g" * 20), proto=99), DROP),
         (packet(Raw(b"g" * 20), SOURCE6, nh=99), DROP), (packet(Raw(b"g" * 20), proto=98), PASS)],
    ),
    "malformed": (
        "pass from any",
        [(Raw(bytes(udp())[:30]), DROP), (Raw(bytes(udp(src=SOURCE6))[:50]), DROP)],
    ),
    "malformed pass": ("malformed pass\ndrop from any", [(Raw(bytes(udp())[:30]), PASS)]),
}


@pytest.mark.parametrize("rules, frames", FIELDS.values(), ids=FIELDS)
def test_fields(pair, apply, rules, frames):
    apply(rules)
    wanted = [passes for _, passes in frames]
    got = pair.passes(*(data for data, _ in frames))
    wrong = [data.summary() for (data, passes), one in zip(frames, got) if one != passes]
    assert got == wanted, wrong


def test_ping_and_curl_meet_a_policy(pair, apply):
    apply("drop from 203.0.113.10\ndrop proto tcp from 2001:db8:113::10")
    assert not pair.ping4("203.0.113.10", "-W0.5") and not pair.curl4("203.0.113.10")
    assert pair.ping6("2001:db8:113::10") and not pair.curl6("2001:db8:113::10")
    assert pair.ping4("203.0.113.20") and pair.curl4("203.0.113.20")
    assert pair.ping6("2001:db8:113::20") and pair.curl6("2001:db8:113::20")


def test_on_two_interfaces(pair, second, apply):
    apply("drop on near1 proto udp to port 9\ndrop on not near1 proto udp to port 10",
          devices="near0, near1")
    assert pair.passes(udp(9), udp(10), udp(9, SOURCE6)) == [True, False, True]
    assert second.passes(udp(9), udp(10), udp(9, SOURCE6)) == [False, True, False]


def test_default_drop_on_one_interface(pair, second, apply):
    apply(f"default drop on near1\n{MARK}pass proto udp to port 9", devices="near0, near1")
    assert pair.passes(udp(9), udp(10)) == [True, True]
    assert second.passes(udp(9), udp(10)) == [True, False]


def test_redirect_to_another_device(pair, second, apply):
    apply("redirect near1 from 203.0.113.0/24, 2001:db8:113::/48")
    frames = [bytes(udp(src=source)) for source in (OTHER4, OTHER6)]
    with second.sniff_far() as far1:
        assert pair.passes(*frames, udp()) == [False, False, True]
        assert far1.received(lambda data: data in frames) == frames


# Rules that count, log, limit and add to sets.


def test_count_continues(pair, apply, weir):
    apply('"all" count from any\n"odd" count proto udp to port 9\n"no" drop proto udp to port 9')
    assert pair.passes(udp(9), udp(9, SOURCE6), udp(10)) == [False, False, True]
    assert [hits(weir, name) for name in ("all", "odd", "no")] == [3, 2, 2]


def test_log_is_seen_by_watch_with_its_rule(pair, apply, weir):
    apply('"noted" pass proto udp to port 9 log 1/s')
    watch = weir.start("-j", "watch", "-c", "1")
    end = time.monotonic() + 5
    while watch.poll() is None and time.monotonic() < end:
        assert pair.passes(udp(9)) == [True]
        time.sleep(0.05)
    event = json.loads(watch.communicate(timeout=1)[0].splitlines()[0])
    assert event["rule"] == "noted" and event["verdict"] == "pass"
    assert SOURCE4 in event["packet"] and event["interface"] == "near0"


def burst(count, src=SOURCE4, port=9):
    """Different frames, each with an answer of its own."""
    return [udp(port, src, sport=7000 + number) for number in range(count)]


def test_over_and_under(pair, apply):
    apply(f"""default drop
        {MARK}drop proto udp to port 9 over 1/min burst 5
        pass proto udp to port 9
        pass proto udp to port 10 under 1/min burst 3""")
    assert pair.passes(*burst(9)) == [True] * 5 + [False] * 4
    assert pair.passes(*burst(6, SOURCE6, 10)) == [True] * 3 + [False] * 3


def test_over_per_source(pair, apply):
    apply("drop proto udp to port 9 over 1/min burst 3 per source")
    for source in SOURCE4, "198.51.100.2", SOURCE6, "2001:db8:200::1":
        assert pair.passes(*burst(5, source)) == [True] * 3 + [False] * 2, source
    assert not any(pair.passes(*burst(3, "2001:db8:100::2")))  # the same /64


@pytest.mark.parametrize("conditions", ["", "ttl 0-255 "])  # the short way, the general one
def test_over_per_source_and_port(pair, apply, conditions):
    apply(f"drop {conditions}proto udp over 1/min burst 2 per source and port")
    for source in SOURCE4, "198.51.100.2", SOURCE6, "2001:db8:200::1":
        for port in 9, 10, 265, 65535:
            assert pair.passes(*burst(3, source, port)) == [True, True, False], (source, port)
    assert not any(pair.passes(udp(9, "2001:db8:100::2"), udp(10, SOURCE4)))  # the first of the same /64


def test_per_source_and_port_beside_other_limits(pair, apply):
    apply("drop proto udp to port 9 over 1/min burst 3 per source\n"
          "drop proto udp to port 10 over 1/min burst 3 per destination\n"
          "drop proto udp to port 11 over 1/min burst 3\n"
          "drop proto udp over 1/min burst 3 per source and port")
    for port in 9, 10, 11, 12, 13:
        assert pair.passes(*burst(4, port=port)) == [True] * 3 + [False], port


def test_a_full_table_of_sources_is_counted(pair, apply, weir):
    apply("drop proto udp to port 9 over 1/min per source max 5")
    def pushed_out():
        return next(e["times"] for e in weir.json("stats")["events"] if e["event"] == "limit-pushed-out")

    before = pushed_out()
    pair.passes(*(udp(9, f"198.51.100.{host}") for host in range(1, 6)))
    assert pushed_out() == before
    pair.passes(*(udp(9, f"198.51.100.{host}") for host in range(11, 16)))
    assert pushed_out() == before + 5


def test_a_rate_comes_back_with_time(pair, apply):
    apply("drop proto udp to port 9 over 10/s burst 1")
    assert pair.passes(*burst(3)) == [True, False, False]
    time.sleep(0.15)
    assert pair.passes(*burst(3)) == [True, False, False]


def test_probability(pair, apply):
    apply("drop probability 50% proto udp to port 9")
    assert 100 < sum(pair.passes(*burst(300))) < 200


def test_dynamic_set_is_filled_by_a_rule_and_forgets(pair, apply):
    apply("""set slow dynamic max 1k expire 1h
        "slow" drop from @slow
        "trap" count proto udp to port 7 add source @slow for 2s""")
    start = time.monotonic()
    for source in SOURCE4, SOURCE6:
        assert pair.passes(udp(7, source), udp(9, source)) == [True, False]
    assert pair.passes(udp(9, OTHER4), udp(9, OTHER6)) == [True, True]
    assert time.monotonic() - start < 2
    time.sleep(start + 2.3 - time.monotonic())
    assert pair.passes(udp(9), udp(9, SOURCE6)) == [True, True]


def test_a_full_dynamic_set_is_an_alarm(pair, apply, weir):
    apply("set small dynamic max 64 expire 1h\ncount proto udp to port 7 add source @small")
    pair.passes(*(udp(7, f"198.51.100.{host}") for host in range(1, 21)))
    shown = weir.json("status", "--limits")
    assert {"table": "set @small", "used": 20, "max": 64} in shown["limits"]
    assert shown["alarms"] == []
    pair.passes(*(udp(7, f"203.0.113.{host}") for host in range(1, 250)))
    shown = weir.json("status", status=2)
    assert "set @small is full" in shown["alarms"][0]


def test_dynamic_set_survives_apply(pair, apply):
    rules = 'set kept dynamic expire 1h\n"kept" drop from @kept\n'
    apply(rules + "count proto udp to port 7 add source @kept")
    assert pair.passes(udp(7), udp(9)) == [True, False]
    apply(rules)
    assert pair.passes(udp(9), udp(9, OTHER4)) == [False, True]
    apply(rules.replace("dynamic", "dynamic max 1k"))  # another size, the same entries
    assert pair.passes(udp(9), udp(9, OTHER4)) == [False, True]


def test_a_dynamic_set_holds_what_it_says(pair, apply, weir):
    apply("set small dynamic max 300 expire 1h\ncount proto udp to port 7 add source @small")
    pair.passes(*(udp(7, f"198.51.{host >> 8}.{host & 255}") for host in range(1, 301)))
    assert {"table": "set @small", "used": 300, "max": 300} in weir.json(
        "status", "--limits", status=2)["limits"]


def set_packets(weir, name):
    return {a["address"]: a.get("packets") for a in weir.json("list", "--set", name)["addresses"]}


def test_a_set_counts_the_packets_of_each_entry(pair, apply, weir):
    text = """set ban dynamic count
        set plain dynamic
        drop proto udp to port 9 from @ban
        count proto udp to port 10 from @ban
        count from @plain
        count proto udp to port 11 add source @ban"""
    apply(text)
    weir("block", "--set", "ban", SOURCE4, SOURCE6, "--for", "1h")
    weir("block", "--set", "plain", SOURCE4)
    assert set_packets(weir, "ban") == {SOURCE4: 0, SOURCE6: 0}
    assert not any(pair.passes(*burst(3))) and all(pair.passes(*burst(2, port=10), *burst(4, port=12)))
    assert not any(pair.passes(udp(9, SOURCE6)))
    assert all(pair.passes(udp(11, "198.51.100.77")))
    weir("explain", "udp", "from", SOURCE4, "port", "7", "to", "10.77.0.1", "port", "9")  # a test packet
    expected = {SOURCE4: 5, SOURCE6: 1, "198.51.100.77": 0}
    assert set_packets(weir, "ban") == expected and set_packets(weir, "plain") == {SOURCE4: None}
    weir("block", "--set", "ban", SOURCE4, "--for", "2h")
    pair.passes(udp(11, SOURCE6))  # renewed by a rule
    apply(text + "\n count proto udp to port 99")
    assert set_packets(weir, "ban") == expected
    assert "PACKETS" in weir("list", "--set", "ban").stdout
    assert "PACKETS" not in weir("list", "--set", "plain").stdout
    weir("unblock", "--set", "ban", SOURCE4)
    weir("block", "--set", "ban", SOURCE4)
    assert set_packets(weir, "ban")[SOURCE4] == 0


def test_quick_rules_have_these_words(pair, apply, weir):
    apply("set quick dynamic count\ndefault pass")
    weir("rule", "add", "drop proto udp over 1/min burst 2 per source and port")
    weir("rule", "add", "--first", "drop proto udp to any port 10 from @quick")
    weir("block", "--set", "quick", SOURCE4)
    assert not any(pair.passes(*burst(3, port=10))) and set_packets(weir, "quick") == {SOURCE4: 3}
    for port in 9, 11:
        assert pair.passes(*burst(3, port=port)) == [True, True, False]
    assert "per source and port" in weir("rule", "list").stdout
    for rule in weir.json("rule", "list")["rules"]:
        weir("rule", "delete", str(rule["id"]))


def test_a_dynamic_set_goes_with_the_policy_that_names_it(apply, weir):
    apply("set gone dynamic\ndrop from @gone")
    assert list(weir.bpffs.glob("gen/*/dynamic/gone"))
    for host in range(1, 4):  # one is kept for rollback, the next command removes it
        apply(f"drop from 192.0.2.{host}")
    assert not list(weir.bpffs.rglob("gone"))


# Default drop, and what it does not block.


def forget_neighbours(pair):
    for host in pair.near_netns, pair.far_netns:
        run(["ip", "-n", host, "neigh", "flush", "all"])


def test_default_drop_keeps_the_essentials(pair, apply):
    apply(f'default drop\n{MARK}"ping" pass type echo-reply')
    forget_neighbours(pair)
    assert pair.ping4(Pair.far4) and pair.ping6(Pair.far6)
    assert not pair.curl4("203.0.113.20")
    local = {"src": "fe80::77:2", "dst": "fe80::77:1", "hlim": 1}
    frames = [
        (packet(ICMP(type=3, code=4) / IP(dst=SOURCE4) / UDP()), True),
        (packet(ICMP(type=11) / IP(dst=SOURCE4) / UDP()), True),
        (packet(ICMP(type=5) / IP(dst=SOURCE4) / UDP()), False),
        (packet(ICMPv6PacketTooBig() / IPv6(dst=SOURCE6) / UDP(), SOURCE6), True),
        (packet(ICMPv6MLReport2(), **local), True),
        (packet(ICMPv6ND_NS(tgt=Pair.near6), Pair.far6, hlim=255), True),
        (packet(ICMPv6ND_NS(tgt=Pair.near6), Pair.far6, hlim=64), False),
        (udp(68, sport=67), True),
        (udp(546, "fe80::77:2", sport=547), True),
        (udp(546, SOURCE6, sport=547), False),
        (ping(), False), (udp(), False), (tcp(), False), (frame(0x9000), False),
    ]
    got = pair.passes(*(data for data, _ in frames))
    assert got == [passes for _, passes in frames], list(zip(got, (f.summary() for f, _ in frames)))


def test_essentials_filter(pair, apply):
    apply(f"default drop\nessentials filter\n{MARK}pass type echo-reply")
    arp = Ether(dst=Pair.near_mac, src=Pair.far_mac) / ARP(op=1, psrc=Pair.far4, pdst=Pair.near4)
    error = packet(ICMP(type=3, code=4) / IP(dst=SOURCE4) / UDP())
    assert pair.passes(arp, error, packet(ICMP(type=0))) == [False, False, True]
    forget_neighbours(pair)
    assert not pair.ping4(Pair.far4, "-W0.5")
    assert pair.ping6(Pair.far6)  # no default blocks neighbour discovery


def test_a_rule_wins_over_the_essentials(pair, apply):
    apply(f"default drop\n{MARK}drop type destination-unreachable")
    assert pair.passes(packet(ICMP(type=3, code=4) / IP(dst=SOURCE4) / UDP()),
                       packet(ICMP(type=11) / IP(dst=SOURCE4) / UDP())) == [False, True]


def test_neighbour_discovery_meets_only_rules_with_its_type(pair, apply):
    advert = packet(ICMPv6ND_NA(tgt=Pair.far6), Pair.far6, hlim=255)
    apply("drop from fd77::/64")
    assert pair.passes(advert, packet(ICMPv6EchoReply(), Pair.far6)) == [True, False]
    apply("drop type nd-neighbor-advert from fd77::/64")
    assert pair.passes(advert) == [False]


# The overlay together with a policy, counters across several policies.


@pytest.fixture(name="overlay")
def clean_overlay(weir):
    yield weir
    weir("unblock", SOURCE4, SOURCE6)
    weir("unallow", OTHER4, OTHER6)


def test_always_comes_before_the_overlay_and_it_before_the_rules(pair, apply, overlay):
    overlay("block", SOURCE4, SOURCE6)
    overlay("allow", OTHER4, OTHER6)
    apply("""always pass proto udp to port 9
        always drop proto udp to port 10
        drop from 203.0.113.0/24, 2001:db8:113::/48""")
    for blocked, allowed in (SOURCE4, OTHER4), (SOURCE6, OTHER6):
        frames = [udp(port, src) for src in (blocked, allowed) for port in (9, 10, 11)]
        assert pair.passes(*frames) == [True, False, False, True, False, True]


def test_overlay_survives_apply(pair, apply, overlay):
    overlay("block", SOURCE4, SOURCE6)
    apply("drop proto udp to port 9")
    apply("pass from any")
    assert not any(pair.free(SOURCE4, SOURCE6)) and all(pair.free(OTHER4, OTHER6))
    assert set(overlay.entries()) == {SOURCE4, SOURCE6}


def test_counters_follow_the_identity_of_a_rule(pair, apply, weir):
    text = "drop proto udp to port 11"
    apply(f'"mine" drop proto udp to port 9\n{text}')
    assert not any(pair.passes(*burst(4), *burst(2, port=11)))
    assert [hits(weir, one) for one in ("mine", text)] == [4, 2]
    apply(f'drop proto udp to port 99\n{text}\n"mine" drop proto udp to port 10')  # moved, changed
    assert [hits(weir, one) for one in ("mine", text)] == [4, 2]
    assert not any(pair.passes(*burst(3, port=10)))
    assert hits(weir, "mine") == 7
    apply(f'"yours" drop proto udp to port 10\n{text} from 198.51.100.0/24')
    assert [hits(weir, one) for one in ("yours", f"{text} from 198.51.100.0/24")] == [0, 0]


# Sets of ports.


def test_a_set_of_ports(pair, apply, weir):
    apply("set web ports { 80, 9000-9010, not 9005 }\ndrop proto udp to any port @web")
    packets = udp(80), udp(9005), udp(9010), udp(9011)
    assert pair.passes(*packets) == [False, True, False, True]
    weir("rule", "add", "--name", "others", "drop proto udp to any port not @web")
    try:
        assert pair.passes(*packets) == [False] * 4
    finally:
        weir("rule", "delete", "others")
    done = weir("rule", "add", "drop from @web", check=False)
    assert done.returncode == 1 and "is a set of ports, not of IP addresses" in done.stderr
    assert pair.passes(*packets) == [False, True, False, True]


# Connection tracking.


@pytest.fixture(name="tracking")
def nft_tracking(pair):
    """The kernel of the near side tracks connections."""
    chain = "type filter hook input priority 0; ct state new counter;"
    pair.near(["nft", "-f", "-"], input=f"table inet lab {{ chain in {{ {chain} }}\n}}\n")
    yield
    pair.near(["nft", "delete", "table", "inet", "lab"])


def test_established_passes_answers_only(pair, apply, tracking):  # pylint: disable=unused-argument
    apply(f"default drop\n{MARK}pass established")
    assert pair.curl4("203.0.113.20") and pair.curl6("2001:db8:113::20")
    assert pair.query("other.lab")[0] == 0
    assert pair.passes(udp(40000), tcp(40000), tcp(40000, flags="A")) == [False] * 3
    assert not pair.ping4("203.0.113.20", "-W0.5")  # ICMP is never established


def test_not_established_drops_new_connections_only(pair, apply, tracking):  # pylint: disable=unused-argument
    apply(f"drop not established flags syn\n{MARK}drop proto udp not established")
    assert pair.curl4("203.0.113.20") and pair.curl6("2001:db8:113::20")
    assert pair.query("other.lab")[0] == 0
    assert pair.passes(udp(40000), tcp(40000), tcp(40000, flags="A")) == [False, False, True]
    assert pair.ping4("203.0.113.20")  # ICMP has no connection that a rule could miss


@pytest.mark.parametrize("text,calls", [("pass established", True), ("pass not established", True),
                                        ("pass proto tcp", False)])
def test_only_established_calls_connection_tracking(weir, tmp_path, tracking, text, calls):  # pylint: disable=unused-argument
    """A kernel refuses a program with a call that it cannot reach, even one that is never made."""
    policy, log = tmp_path / "p.weir", tmp_path / "log"
    policy.write_text(text + "\n")
    run(["strace", "-f", "-v", "-s0", "-etrace=bpf", "-o", log, *weir.argv("check", policy)], timeout=60)
    of_kernel = "code=BPF_JMP|BPF_K|BPF_CALL, dst_reg=BPF_REG_0, src_reg=BPF_REG_2"
    assert "prog_name=\"weir_policy\"" in log.read_text()
    assert (of_kernel in log.read_text()) == calls


def test_status_warns_while_tracking_is_off(weir, apply, pair, tracking):  # pylint: disable=unused-argument
    apply("default pass\ndrop proto tcp to any port 22 not established")
    assert not weir.json("status")["alerts"]
    pair.near(["nft", "flush", "table", "inet", "lab"])
    [alert] = weir.json("status", status=2)["alerts"]
    assert "connection tracking is off" in alert["alarm"] and alert["alarm"].endswith(")")
    pair.near(["sh", "-c", alert["alarm"][alert["alarm"].index("(nft ") + 1:-1]])
    assert not weir.json("status")["alerts"]
    pair.near(["nft", "delete", "table", "inet", "weir-track"])
    assert weir.json("status", status=2)["alerts"]
    apply("default pass")
    assert not weir.json("status")["alerts"]


def test_each_family_is_tracked_by_itself(apply, pair):
    """`not established` would match all of IPv6; `established` matches in the other family."""
    pair.near(["nft", "-f", "-"], input="table ip lab { chain in { type filter hook input priority 0; ct state new counter; }\n}\n")
    try:
        assert "needs connection tracking" in apply.fails(3, "default pass\ndrop proto tcp to any port 23 not established")
        apply("default pass\ndrop proto tcp from 0.0.0.0/0 to any port 23 not established")
        apply("default pass\npass established")
        assert "needs connection tracking" in apply.fails(3, "default pass\npass from ::/0 established")
    finally:
        pair.near(["nft", "delete", "table", "ip", "lab"])


def test_established_refuses_while_tracking_is_idle(apply):
    for word in "established", "not established":
        text = apply.fails(3, f"default drop\npass {word}")
        assert "established" in text and "nft" in text and "ct state" in text and "lab.weir:3" in text
