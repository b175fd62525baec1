# SPDX-License-Identifier: GPL-2.0-only
"""Random rules with a word that nft has, too: both must pass the same frames. WEIR_NFT_RULES=200 for more rules,
WEIR_NFT_FRAMES=10000 for more frames of each."""

import contextlib
import ipaddress
import json
import os
import random
import struct

import pytest

from labnet import shared_weir
from nftlab import MARK, Nft

RULES = int(os.environ.get("WEIR_NFT_RULES", "8"))
FRAMES = int(os.environ.get("WEIR_NFT_FRAMES", "60"))
SOURCES4 = [bytes(a) for a in ((198, 51, 100, 1), (198, 51, 100, 2), (198, 51, 101, 1))]
SOURCES6 = [bytes.fromhex("20010db8010000") + bytes(a) for a in ((0, *[0] * 7, 1), (0, *[0] * 7, 2), (1, *[0] * 7, 1))]
TO4, TO6 = bytes((10, 77, 0, 1)), bytes.fromhex("fd77" + "00" * 13 + "01")
TCP, UDP, SCTP, ICMP, ICMP6, GRE = 6, 17, 132, 1, 58, 47
PROTOS = {"tcp": TCP, "udp": UDP, "sctp": SCTP}
PORTS = [9, 10, 265, 2313, 65535]


@pytest.fixture(scope="module", name="weir")
def instance_on_near0(pair):
    with shared_weir(pair) as instance:
        yield instance


@pytest.fixture(scope="module", name="nft")
def link_with_nft(pair):
    with contextlib.closing(Nft(pair)) as nft:
        yield nft


# ---- frames -----------------------------------------------------------------------------------------------


def transport(draw, proto, port, payload):
    sport = draw.randrange(1, 65536)
    if proto == UDP:
        return struct.pack("!HHHH", sport, port, 8 + len(payload), 0) + payload
    if proto == TCP:
        return struct.pack("!HHIIBBHHH", sport, port, 1, 0, 0x50, draw.choice([2, 16]), 1000, 0, 0) + payload
    if proto == SCTP:
        return struct.pack("!HHII", sport, port, 1, 0) + payload
    return struct.pack("!BBHI", 8 if proto == ICMP else 128 if proto == ICMP6 else 0, 0, 0, 0) + payload


def ip4(draw, proto, rest, later):
    options = b"\x01" * 4 if draw.random() < 0.2 else b""
    fragment = 8 if later else draw.choice([0, 0x4000, 0x2000]) if len(rest) % 8 == 0 else 0
    length = 20 + len(options) + len(rest)
    return struct.pack("!BBHHHBBH", 0x45 + len(options) // 4, 0, length, 1, fragment, 64, proto, 0) + \
        draw.choice(SOURCES4) + TO4 + options + rest


def ip6(draw, proto, rest, later):
    head = b""
    if later:
        head = struct.pack("!BBHI", proto, 0, 64, 1)
    elif draw.random() < 0.2:
        head = struct.pack("!BB", proto, 0) + b"\x01\x04" + bytes(4)
    following = 44 if later else 60 if head else proto
    return struct.pack("!IHBB", 6 << 28, len(head + rest), following, 64) + draw.choice(SOURCES6) + TO6 + head + rest


def frame(pair, draw, number):
    six, later = draw.random() < 0.5, draw.random() < 0.15
    proto = draw.choice([TCP, TCP, UDP, UDP, SCTP, ICMP6 if six else ICMP, GRE])
    payload = bytes(draw.choice([8, 16])) + MARK + number.to_bytes(4, "big")
    rest = payload if later else transport(draw, proto, draw.choice(PORTS), payload)
    packet = (ip6 if six else ip4)(draw, proto, rest, later)
    macs = bytes.fromhex((pair.near_mac + pair.far_mac).replace(":", ""))
    tag = struct.pack("!HH", 0x8100, draw.choice([0, 5, 4094])) if draw.random() < 0.3 else b""
    return macs + tag + (b"\x86\xdd" if six else b"\x08\x00") + packet


def compare(pair, nft, draw):
    frames = [frame(pair, draw, number) for number in range(FRAMES)]
    weir, other = nft.passed(frames)
    return [(frames[n].hex(), "weir passes" if n in weir else "nft passes") for n in weir ^ other], len(weir)


# ---- per source and port ----------------------------------------------------------------------------------


def random_limit(draw):
    """A rule, the sets of nft, its rules."""
    word, burst = draw.choice(["over", "under"]), draw.randrange(1, 4)
    protos = draw.sample(sorted(PROTOS), draw.randrange(0, 3))
    ports = draw.sample(PORTS, draw.randrange(1, 4)) if draw.random() < 0.5 else []
    mask4, mask6 = draw.choice([(32, 64), (24, 56), (32, 128), (16, 48)])
    rule = ["drop", *([f"proto {', '.join(protos)}"] if protos else []),
            *([f"to any port {', '.join(map(str, ports))}"] if ports else []),
            f"{word} 1/h burst {burst} per source and port mask {mask4}/{mask6}",
            *(["ttl 0-255"] if draw.random() < 0.4 else [])]  # for the general program
    limit = f"limit rate {'over ' if word == 'over' else ''}1/hour burst {burst} packets"
    numbers = ", ".join(str(PROTOS[name]) for name in protos or PROTOS)
    sets, rules = [], []
    for ip, kind, proto, bits, mask, whole in (
            ("ip", "ipv4_addr", "ip", 32, mask4, "ip frag-off & 0x1fff == 0"),
            ("ip6", "ipv6_addr", "ip6", 128, mask6, "exthdr frag missing")):
        value = (1 << bits) - (1 << (bits - mask))
        text = ".".join(str(b) for b in value.to_bytes(4, "big")) if bits == 32 else \
            ":".join(f"{value >> at & 0xffff:x}" for at in range(112, -1, -16))
        source = f"{ip} saddr & {text}"
        sets += [f"set p{bits} {{ type {kind} . inet_service; flags dynamic; size 999; }}",
                 f"set n{bits} {{ type {kind}; flags dynamic; size 999; }}"]
        port = f"th dport {{ {', '.join(map(str, ports))} }}" if ports else ""
        rules.append(f"meta protocol {proto} {whole} meta l4proto {{ {numbers} }} {port} "
                     f"update @p{bits} {{ {source} . th dport {limit} }} drop")
        if ports:
            continue
        only = f"meta l4proto {{ {numbers} }}" if protos else ""
        part = whole.replace("==", "!=").replace("missing", "exists")
        rules.append(f"meta protocol {proto} {part} {only} update @n{bits} {{ {source} {limit} }} drop")
        if not protos:
            rules.append(f"meta protocol {proto} {whole} meta l4proto != {{ {numbers} }} "
                         f"update @n{bits} {{ {source} {limit} }} drop")
    return " ".join(rule), sets, rules


@pytest.mark.parametrize("seed", range(RULES))
def test_per_source_and_port(pair, apply, nft, seed):
    draw = random.Random(seed)
    rule, sets, rules = random_limit(draw)
    apply(f'"r{seed} {os.getpid()}" {rule}')  # a new name: a new limit
    nft.rules(sets, rules)
    differences, passed = compare(pair, nft, draw)
    assert not differences, (rule, rules, differences[:3])
    assert 0 < passed


# ---- packets of each entry of a set -----------------------------------------------------------------------


def text_of(address):
    return str(ipaddress.ip_address(address))


def packets_in_nft(nft, name):
    listed = json.loads(nft.pair.near(["nft", "-j", "list", "set", "netdev", "words", name]).stdout)
    elements = next(item["set"] for item in listed["nftables"] if "set" in item).get("elem", [])
    return {e["elem"]["val"]: e["elem"]["counter"]["packets"] for e in elements}


@pytest.mark.parametrize("seed", range(RULES))
def test_packets_of_entries(pair, weir, apply, nft, seed):
    draw = random.Random(seed)
    name, protos = f"s{seed}", draw.sample(sorted(PROTOS), draw.randrange(0, 3))
    ports = draw.sample(PORTS, draw.randrange(1, 4)) if draw.random() < 0.5 else []
    apply(" ".join([f"set {name} dynamic count\n drop from @{name}",
                    *([f"proto {', '.join(protos)}"] if protos else []),
                    *([f"to any port {', '.join(map(str, ports))}"] if ports else []),
                    *(["ttl 0-255"] if draw.random() < 0.4 else [])]))
    members = [[text_of(a) for a in draw.sample(all_of, draw.randrange(1, 3))] for all_of in (SOURCES4, SOURCES6)]
    weir("block", "--set", name, *members[0], *members[1])
    sets = [f"set s{n} {{ type {kind}; counter; elements = {{ {', '.join(these)} }} }}"
            for n, kind, these in ((4, "ipv4_addr", members[0]), (6, "ipv6_addr", members[1]))]
    only = f"meta l4proto {{ {', '.join(str(PROTOS[p]) for p in protos or PROTOS)} }}" if protos or ports else ""
    port = f"th dport {{ {', '.join(map(str, ports))} }}" if ports else ""
    whole = {4: "ip frag-off & 0x1fff == 0", 6: "exthdr frag missing"} if ports else {4: "", 6: ""}
    nft.rules(sets, [f"meta protocol ip {whole[4]} {only} {port} ip saddr @s4 drop",
                     f"meta protocol ip6 {whole[6]} {only} {port} ip6 saddr @s6 drop"])
    differences, _ = compare(pair, nft, draw)
    counted = {a["address"]: a["packets"] for a in weir.json("list", "--set", name)["addresses"]}
    assert not differences, differences[:3]
    assert counted == {**packets_in_nft(nft, "s4"), **packets_in_nft(nft, "s6")}
