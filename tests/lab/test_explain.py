# SPDX-License-Identifier: GPL-2.0-only
"""`weir explain`: the answers of the kernel, the lines of the policy for them, and no side effects."""

import json
import os
import struct

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import PcapNgWriter

from labnet import WEIR, run

POLICY = """\
interface near0
set feeds { 203.0.112.0/22, not 203.0.113.9, file "list.txt" }
set unused { 198.51.100.0/24 }
set slow dynamic max 1000 expire 1m
default pass
fragments drop proto udp
always pass from 198.51.100.7
"feeds" drop from @feeds log 1/s
"dns" count proto udp to port 53 add source @slow
"flood" drop proto udp to port 53 over 1/s burst 3 per source
"slow" drop from @slow proto tcp to port 25
"telnet" reject proto tcp to port 23
"ping" reject proto icmp
"vlan" drop vlan 7
"""
LIST = "# from elsewhere\n192.0.2.0/25\n2001:db8:bad::/48\n"


@pytest.fixture(name="policy")
def policy_file(tmp_path):
    (tmp_path / "list.txt").write_text(LIST)
    path = tmp_path / "p.weir"
    path.write_text(POLICY)
    return path


@pytest.fixture(name="running")
def running_policy(weir, policy):
    weir("apply", policy, "--force")
    return weir


@pytest.fixture(name="offline")
def offline_explain(policy):
    """offline("tcp from …") with the file, without an instance."""
    return lambda words, *more: json.loads(
        run([WEIR, "-j", "explain", "--policy", policy, *words.split(), *more]).stdout
    )["packets"]


TOOLS = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")


def one(packets):
    assert len(packets) == 1
    return packets[0]


def explained(weir, words):
    return one(weir.json("explain", *words.split())["packets"])


CASES = [
    ("tcp from 192.0.2.5 to 10.77.0.1 port 22", "drop", "rule", "feeds"),
    ("tcp from 192.0.2.200 to 10.77.0.1 port 22", "pass", "default", None),
    ("tcp from 203.0.113.9 to 10.77.0.1 port 22", "pass", "default", None),
    ("udp from 203.0.113.9 to 10.77.0.1 port 53", "pass", "default", None),
    ("tcp from 2001:db8:bad::1 to fd77::1", "drop", "rule", "feeds"),
    ("from 198.51.100.7 to 10.77.0.1", "pass", "rule", "always pass from 198.51.100.7"),
    ("tcp from 192.0.2.200 to 10.77.0.1 port 23", "reject", "rule", "telnet"),
    ("icmp from 192.0.2.200 to 10.77.0.1 type echo-request", "reject", "rule", "ping"),
    ("udp from 192.0.2.200 to 10.77.0.1 fragment", "drop", "fragments", None),
    ("udp from 192.0.2.200 to 10.77.0.1 port 53 over", "drop", "rule", "flood"),
    ("from 192.0.2.200 to 10.77.0.1 vlan 7", "drop", "rule", "vlan"),
    ("ethertype arp", "pass", "default", None),
]


def answers(packet):
    return packet["verdict"], packet["by"], packet.get("rule")


def test_by_a_file(offline):
    for words, *wanted in CASES:
        assert answers(one(offline(words))) == tuple(wanted)


def test_the_policy_in_force(running):
    for words, *wanted in CASES:
        packet = explained(running, words)
        assert answers(packet) == tuple(wanted)
        assert packet["live"] == (not words.endswith("over"))


def test_lines_and_entries(policy, offline):
    packet = one(offline("tcp from 192.0.2.5 to 10.77.0.1 port 22"))
    assert packet["at"] == f"{policy}:8"
    assert packet["text"] == '"feeds" drop from @feeds log 1/s'
    assert packet["from"] == {
        "set": "feeds", "entry": "192.0.2.0/25", "entry_at": f"{policy.parent}/list.txt:2",
    }
    packet = one(offline("udp from 192.0.2.200 to 10.77.0.1 port 53 over"))
    assert packet["conditions"] == "over 1/s burst 3 per source"
    assert [rule["rule"] for rule in packet["counted_by"]] == ["dns"]


def test_the_answer_of_a_reject(offline):
    packet = one(offline("tcp from 192.0.2.200 port 5000 to 10.77.0.1 port 23 flags syn"))
    reply = Ether(bytes.fromhex(packet["answer_hex"]))
    assert (reply[IP].src, reply[IP].dst) == ("10.77.0.1", "192.0.2.200")
    assert (reply[TCP].sport, reply[TCP].dport, str(reply[TCP].flags)) == (23, 5000, "RA")
    reply = Ether(bytes.fromhex(one(offline("icmp from 192.0.2.9 to 10.77.0.1"))["packet_hex"]))
    assert reply[ICMP].type == 8


def test_several_packets(offline):
    packets = offline("from 192.0.2.5, 2001:db8:5::1 to 10.77.0.1, fd77::1")
    assert [packet["verdict"] for packet in packets] == ["drop", "pass"]
    assert len(offline("from @feeds to 10.77.0.1, fd77::1")) > 2


# ---- frames


def frames():
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    return [
        ether / IP(src="192.0.2.200", dst="10.77.0.1") / TCP(dport=23),
        ether / Dot1Q(vlan=9) / IPv6(src="2001:db8:bad::1", dst="fd77::1") / UDP(),
        ether / ARP(),
        ether / IP(src="192.0.2.201", dst="10.77.0.1") / UDP(dport=54) / Raw(b"x" * 900),
        bytes(ether / IP(src="192.0.2.201", dst="10.77.0.1") / TCP())[:40],
    ]


VERDICTS = [("reject", "rule"), ("drop", "rule"), ("pass", "default"), ("pass", "default"),
            ("drop", "malformed")]


def capture(path, packets, order="<", magic=0xA1B2C3D4, link=1, snap=65535):
    data = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)
    for packet in map(bytes, packets):
        data += struct.pack(order + "IIII", 1, 2, min(len(packet), snap), len(packet))
        data += packet[:snap]
    path.write_bytes(data)
    return path


def test_captures_in_pcapng(offline, tmp_path):
    path = tmp_path / "a.pcapng"
    with PcapNgWriter(str(path)) as file:
        for frame in frames():
            file.write(frame)
    packets = offline("", "--pcap", path)
    assert [(packet["verdict"], packet["by"]) for packet in packets] == VERDICTS


def block(kind, body):
    """A block of pcapng (draft-ietf-opsawg-pcapng)."""
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def option(number, text):
    return struct.pack("<HH", number, len(text)) + text + bytes(-len(text) % 4) + bytes(4)


@pytest.mark.parametrize("comment, verdict", [
    (b"of somebody", "pass"), (b"pass default, share 1 of 1", "drop"),
])
def test_the_interface_of_a_capture(weir, tmp_path, comment, verdict):
    """Only in a file of weir capture: an interface of another computer may have the same name."""
    policy, path = tmp_path / "two.weir", tmp_path / "a.pcapng"
    policy.write_text("interface near0, near1\ndefault pass\ndrop on near1\n")
    frame = bytes(Ether() / IP(src="192.0.2.1", dst="192.0.2.2") / UDP(dport=53))
    head = struct.pack("<IIIII", 0, 0, 0, len(frame), len(frame))
    path.write_bytes(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) +
                     block(1, struct.pack("<HHI", 1, 0, 0) + option(2, b"near1")) +
                     block(6, head + frame + bytes(-len(frame) % 4) + option(1, comment)))
    found = json.loads(weir("-j", "explain", "--policy", policy, "--pcap", path, check=False).stdout)
    assert [one["verdict"] for one in found["packets"]] == [verdict]


def test_captures_without_their_library(weir, policy, tmp_path):
    """The rest of `explain` does not need it."""
    for name in "libpcap.so.1", "libpcap.so.0.8":
        (tmp_path / name).write_text("not a library")
    environment = dict(os.environ, LD_LIBRARY_PATH=str(tmp_path))
    path = capture(tmp_path / "a.pcap", frames())
    one_packet = "tcp from 192.0.2.1 to 10.77.0.1 port 22 on near0"
    weir("explain", "--policy", policy, *one_packet.split(), env=environment)
    error = weir.fails(2, "explain", "--policy", policy, "--pcap", path, env=environment)
    assert "cannot load 'libpcap.so.0.8'" in error and "apt install libpcap0.8" in error


@pytest.mark.parametrize("order, magic", [("<", 0xA1B2C3D4), (">", 0xA1B23C4D)])
def test_captures(offline, tmp_path, order, magic):
    path = capture(tmp_path / "a.pcap", frames(), order, magic)
    packets = offline("", "--pcap", path)
    assert [(packet["verdict"], packet["by"]) for packet in packets] == VERDICTS
    packet = one(offline("", "--pcap", path, "--packet", "2"))
    assert (packet["verdict"], packet["by"]) == VERDICTS[1]
    assert packet["packet_hex"] == bytes(frames()[1]).hex()


def test_hex(offline):
    frame = bytes(frames()[1])
    for text in frame.hex(), frame.hex(":").upper(), frame.hex(" "):
        packet = one(offline("", "--hex", text))
        assert answers(packet) == ("drop", "rule", "feeds")
        assert packet["packet_hex"] == frame.hex()


def test_what_a_capture_cut_off_does_not_matter(offline, tmp_path):
    path = capture(tmp_path / "a.pcap", frames()[:4], snap=70)
    packets = offline("", "--pcap", path)
    assert [(packet["verdict"], packet["by"]) for packet in packets] == VERDICTS[:4]
    assert one(offline("", "--pcap", path, "--packet", "4"))["captured"] == 70
    assert "captured" not in one(offline("", "--pcap", path, "--packet", "1"))


# ---- addresses


def test_an_address(running, policy):
    running("block", "192.0.2.5", "--note", "abuse", "--force")
    text = running("explain", "192.0.2.5").stdout.splitlines()
    place = f'{policy.parent}/list.txt:2 192.0.2.0/25 -> rule "feeds" {policy}:8'
    assert text[0].startswith("from 192.0.2.5 is dropped: overlay block 192.0.2.5 from, by ")
    assert text[1].startswith("to 192.0.2.5 is passed: default pass, ")
    assert f"  also in:  @feeds {place} (not reached)" in text
    assert "  not in:   always rules, overlay allow" in text
    running("unblock", "192.0.2.5")
    assert running("explain", "192.0.2.5").stdout.startswith(
        f'from 192.0.2.5 is dropped: rule "feeds" {policy}:8, @feeds {policy.parent}/list.txt:2 '
    )


def test_an_address_that_an_always_rule_and_a_set_know(running, policy):
    text = running("explain", "198.51.100.7").stdout.splitlines()
    assert text[0] == (
        f'from 198.51.100.7 is passed: rule "always pass from 198.51.100.7" {policy}:7, '
        f"{policy}:7 198.51.100.7"
    )
    assert f"  also in:  @unused {policy}:3 198.51.100.0/24" in text
    assert "  not in:   overlay allow, overlay block" in text
    document = running.json("explain", "198.51.100.7")
    assert (document["from"], document["to"]) == ("pass", "pass")
    assert [rule["decides"] for rule in document["rules"]] == [True]
    assert [entry["set"] for entry in document["sets"]] == ["unused"]


def test_the_overlay_by_packet(running):
    words = "from 192.0.2.200 to 10.77.0.1"
    running("block", "192.0.2.0/24", "--note", "wide", "--force")
    running("block", "192.0.2.200", "--note", "narrow", "--force")
    packet = explained(running, words)
    assert (packet["verdict"], packet["by"]) == ("drop", "overlay")
    assert packet["overlay"]["note"] == "narrow"
    running("allow", "192.0.2.128/25", "--note", "pass")
    packet = explained(running, words)
    assert (packet["verdict"], packet["overlay"]["note"]) == ("pass", "pass")


# ---- no side effects


def moving_maps(weir):
    """The contents of every map that real packets change, and the counters of entries."""
    paths = [weir.bpffs / name for name in ("counters", "rulecounters", "nets4", "meters", "logpace")]
    for name in ("dynamic", "rates"):
        paths += weir.bpffs.glob(f"gen/*/{name}/*")
    assert len(paths) >= 7
    maps = {
        path: run(["bpftool", "-j", "map", "dump", "pinned", path], env=TOOLS).stdout
        for path in sorted(paths)
    }
    return maps | {entry["address"]: entry["packets"] for entry in weir.json("list")["entries"]}


def test_no_counter_moves(weir_on, lab, policy):
    """Explaining a packet changes no counter and no set, and does not use up a rate."""
    own = lab()  # with no other traffic
    running = weir_on(own)
    running("apply", policy, "--force")
    own.link("set", "dev", own.far_device, "down", host="far")
    running("block", "192.0.2.66", "--force")
    before = moving_maps(running)
    for words, *_ in CASES:
        running("explain", *words.split())
    running("explain", "from", "192.0.2.66", "to", "10.77.0.1")
    for _ in range(5):
        assert explained(running, "udp from 192.0.2.200 to 10.77.0.1 port 53")["verdict"] == "pass"
    assert moving_maps(running) == before
    own.link("set", "dev", own.far_device, "up", host="far")
    own.send_from_far(own.udp("192.0.2.66"))
    assert moving_maps(running) != before


def test_the_live_rate_and_set_are_asked(running, pair):
    query = "udp from 192.0.2.201 to 10.77.0.1 port 53"
    assert explained(running, query)["by"] == "default"
    packet = pair.ether() / IP(src="192.0.2.201", dst=pair.near4) / UDP(dport=53)
    pair.send_from_far(*[packet] * 10)
    assert explained(running, query)["rule"] == "flood"
    assert explained(running, "from 192.0.2.201 to 10.77.0.1 port 25")["rule"] == "slow"
    assert explained(running, "from 192.0.2.202 to 10.77.0.1 port 25")["by"] == "default"


# ---- refused


REFUSED = [
    ("xtcp from 192.0.2.1 to 10.77.0.1", "'xtcp' is not a protocol, did you mean 'tcp'?"),
    ("tcp from @fed to 10.77.0.1", "unknown set '@fed'"),
    ("tcp from 192.0.2.1 to fd77::1", "no packet is possible"),
    ("tcp from 192.0.2.1", "expected 'to'"),
    ("tcp from 192.0.2.1 to 10.77.0.1 on eth9", "'eth9' is not an interface of this policy"),
    ("tcp from 192.0.2.1 to 10.77.0.1;drop", "a packet description must be one line"),
    ("tcp from 192.0.2.1 to 10.77.0.1 length 10", "length 10 is too small"),
    ("twitter", "'twitter' is not an address"),
    ("10/8", "'10/8'"),
    ("", "missing address or packet"),
    ("--hex 0", "does not begin with two hexadecimal digits"),
    ("--hex 0011", "frame of 2 bytes is too short (minimum 14)"),
    ("--hex 00 192.0.2.1", "only one of"),
    ("--packet 1 192.0.2.1", "--packet needs --pcap"),
    ("--on near0 192.0.2.1", "need a packet, not an address"),
    ("--pcap /nowhere/a.pcap", "/nowhere/a.pcap"),
]


def test_what_is_refused(running, policy):
    for words, text in REFUSED:
        assert text in running.fails(1, "explain", *words.split())
        assert text in running.fails(1, "explain", "--policy", policy, *words.split())


def test_other_captures_are_refused(weir, policy, tmp_path):
    path = tmp_path / "a.pcapng"
    path.write_bytes(b"\x0a\x0d\x0d\x0a" + bytes(40))
    error = weir.fails(1, "explain", "--policy", policy, "--pcap", path)
    assert "is not a pcap or pcapng file" in error and "editcap" in error
    capture(path, [], link=113)
    assert "link type 113" in weir.fails(1, "explain", "--policy", policy, "--pcap", path)
    capture(path, frames())
    assert "has only 5 packets" in weir.fails(
        1, "explain", "--policy", policy, "--pcap", path, "--packet", "6"
    )


# ---- without rules


def test_the_empty_policy(on):
    packet = explained(on, "tcp from 192.0.2.1 to 10.77.0.1 port 22 on near0")
    assert (packet["verdict"], packet["by"]) == ("pass", "default")
    assert on("explain", "192.0.2.1").stdout.startswith("from 192.0.2.1 is passed: default pass\n")


def test_interfaces_of_the_command_line(weir, policy):
    """-i replaces the interfaces of the policy; the record has only the text."""
    policy.write_text("interface eth8, eth9\ndefault drop\n")
    weir("apply", policy, "-i", "tap*", "-i", "near0", "--force")
    words = "tcp from 192.0.2.1 to 10.77.0.1 port 22"
    for iface in "tap7", "near0":
        assert explained(weir, f"{words} on {iface}")["verdict"] == "drop"
    assert "'eth8' is not" in weir.fails(1, "explain", *words.split(), "on", "eth8")


def test_each_interface_has_its_rules(weir, policy):
    policy.write_text("interface tap*, near0\n\"here\" drop on near0\ndefault drop on tap*\n")
    weir("apply", policy, "--force")
    words = "tcp from 192.0.2.1 to 10.77.0.1 port 22"
    assert explained(weir, f"{words} on near0")["rule"] == "here"
    assert explained(weir, f"{words} on tap1")["why"] == f"default drop, {policy}:3"
    assert explained(weir, words)["by"] == "default"
    frame = bytes(frames()[0]).hex()
    for iface, by in ("near0", "rule"), ("tap1", "default"):
        packet = one(weir.json("explain", "--hex", frame, "--on", iface)["packets"])
        assert packet["by"] == by
    for folder in (weir.state / "accepted").iterdir():
        folder.rename(folder.with_name(f".{folder.name}"))
    assert explained(weir, f"{words} on near0")["rule_number"] == 1
    assert explained(weir, f"{words} on tap1")["why"] == "default drop"


def test_a_lost_record(running):
    for folder in (running.state / "accepted").iterdir():
        folder.rename(folder.with_name(f".{folder.name}"))
    document = running.json("explain", *CASES[0][0].split())
    packet = one(document["packets"])
    assert not document["recorded"]
    assert (packet["verdict"], packet["rule_number"]) == ("drop", 2)
    text = running("explain", "192.0.2.5").stdout
    assert "the rules are not known" in text and "is missing" in text
    said = running.fails(2, "stats")
    assert "is missing: its rules have no names (weir apply " in said
    assert any("is missing" in alarm for alarm in running.json("status", status=2)["alarms"])


def test_services_that_share_an_address(pair, weir, tmp_path):
    """Each at its own line, although the address is the same."""
    path = tmp_path / "shared.weir"
    path.write_text("".join(
        f"service {name} {{ vip 10.77.9.1; proto tcp; port {port}; mode dr; backend {pair.far4} }}\n"
        for name, port in (("web", 80), ("more", 81))))
    said = weir.json("explain", "10.77.9.1", "--policy", path)
    assert [(one["service"], one["at"]) for one in said["services"]] == [
        ("web", f"{path}:1"), ("more", f"{path}:2")]
