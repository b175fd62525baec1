#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the cases that tests/datapath/run sends through the datapath; the format is described in run.c.

Where a case names the reason it wants, that is the tester's word and the model has to agree; the rest,
truncations and random frames, is what the model expects."""
import logging
import random
import struct
import sys

logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.layers.inet import ICMP, IP, TCP, UDP  # noqa: E402
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoRequest, ICMPv6ND_NA,  # noqa: E402
                                ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_Redirect, ICMPv6ND_RS, IPv6,
                                IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop,
                                IPv6ExtHdrRouting)
from scapy.layers.ipsec import AH, ESP  # noqa: E402
from scapy.layers.l2 import ARP, GRE, LLC, Dot3  # noqa: E402
from scapy.layers.sctp import SCTP, SCTPChunkInit  # noqa: E402
from scapy.packet import Raw  # noqa: E402

import balance_policies  # noqa: E402
import decap_cases  # noqa: E402
import path_cases  # noqa: E402
import model  # noqa: E402
from frame_book import (DST4, DST6, LL, MACS, NO_NEXT, SRC4, SRC6, add, around, cases, chain, ether, ext,  # noqa: E402
                        frag, ip4, ip6, put, put16, raw4, raw6, raw_tcp, raw_udp, tagged, tcp, udp)

RANDOM_FRAMES = 1500
COMMON_FRAMES = 3000


# Link layer

def link_cases():
    arp = ether(ARP(psrc=SRC4, pdst=DST4))
    add("link/arp", arp, "not-ip")
    add("link/arp with padding", arp + bytes(18), "not-ip")
    add("link/lldp", ether(bytes.fromhex("0207040200000000010403"), 0x88cc), "not-ip")
    add("link/802.3 llc", bytes(Dot3(**MACS) / LLC(dsap=0x42, ssap=0x42, ctrl=3) / bytes(35)), "not-ip")
    add("link/802.3 of 1500 bytes", ether(bytes(1500), 1500), "not-ip")
    add("link/802.3 snap with ip in it", ether(bytes.fromhex("aaaa030000000800") + ip4(udp())[14:], 50),
        "not-ip")
    add("link/14 bytes, ethertype 0", ether(b"", 0), "not-ip")
    add("link/14 bytes, not ip", ether(b"", 0x88b5), "not-ip")
    add("link/14 bytes, ip4", ether(b"", 0x0800), "ip4-truncated")
    add("link/14 bytes, ip6", ether(b"", 0x86dd), "ip6-truncated")
    add("link/14 bytes, 802.1q", ether(b"", 0x8100), "vlan-truncated")
    for ethertype in (0x0801, 0x07ff, 0x8863, 0x8864, 0x8847, 0x9000, 0x888e, 0x86dc, 0x86de, 0x0008):
        add(f"link/ethertype 0x{ethertype:04x} with ip in it", ether(ip4(udp())[14:], ethertype),
            "not-ip")
    add("link/ip6 under the ethertype of ip4", ether(ip6(udp())[14:], 0x0800), "ip4-header")
    add("link/ip4 under the ethertype of ip6", ether(ip4(udp(bytes(40)))[14:], 0x86dd), "ip6-header")


def vlan_cases():
    bodies = {"udp4": ip4(udp()), "udp6": ip6(udp()), "tcp4": ip4(tcp()),
              "arp": ether(ARP(psrc=SRC4, pdst=DST4))}
    for name, body in bodies.items():
        passed = "not-ip" if name == "arp" else "default"
        for n in range(1, 5):
            add(f"vlan/{name} in {n} tags", tagged(body, *[(0x8100, 7 + i) for i in range(n)]), passed)
        for n in (5, 6):
            add(f"vlan/{name} in {n} tags", tagged(body, *[(0x8100, 7)] * n), "vlan-too-deep")
        for tpid in (0x88a8,):
            add(f"vlan/{name} in 0x{tpid:04x}", tagged(body, (tpid, 7)), passed)
            add(f"vlan/{name} in 0x{tpid:04x} and 802.1q", tagged(body, (tpid, 7), (0x8100, 8)), passed)
        add(f"vlan/{name} with a priority tag", tagged(body, (0x8100, 0xe000)), passed)
        add(f"vlan/{name} with priority, dei and vid", tagged(body, (0x8100, 0xffff)), passed)
        add(f"vlan/{name} in mixed tags",
            tagged(body, (0x88a8, 1), (0x88a8, 2), (0x8100, 0), (0x88a8, 4095)), passed)
        add(f"vlan/{name} in five mixed tags",
            tagged(body, (0x88a8, 1), (0x88a8, 2), (0x8100, 0), (0x88a8, 4), (0x88a8, 5)),
            "vlan-too-deep")
        for tpid in (0x9100, 0x9200, 0x8101, 0x88a9):  # to Linux these are no tags either
            add(f"vlan/{name} in 0x{tpid:04x}", tagged(body, (tpid, 7)), "not-ip")
            add(f"vlan/{name} in 802.1q and 0x{tpid:04x}", tagged(body, (0x8100, 7), (tpid, 7)), "not-ip")
    for n in range(1, 6):
        whole = tagged(bodies["udp4"], *[(0x8100, 7)] * n)
        for end in range(14 + 4 * (n - 1), 14 + 4 * n + 1):
            want = ("vlan-too-deep" if n == 5 else
                    "ip4-truncated" if end == 14 + 4 * n else "vlan-truncated")
            add(f"vlan/{n} tags cut after {end} bytes", whole[:end], want)


# IPv4

def ip4_cases():
    body = bytes(udp())
    add("ip4/udp", ip4(udp()), "default")
    add("ip4/bare syn, 54 bytes", ip4(tcp()), "default")
    assert len(cases[-2].frame) == 54
    for ihl in range(5):
        add(f"ip4/ihl {ihl}", raw4(body, ihl=ihl), "ip4-header")
    for ihl in range(6, 16):
        add(f"ip4/ihl {ihl}", raw4(body, ihl=ihl, options=bytes([1]) * 4 * (ihl - 5)), "default")
    for version in (0, 3, 5, 6, 15):
        add(f"ip4/version {version}", raw4(body, version=version), "ip4-header")
    add("ip4/source route", raw4(body, ihl=7, options=bytes.fromhex("830704cb00710100")), "default")
    add("ip4/router alert", raw4(body, ihl=6, options=bytes.fromhex("94040000")), "default")
    for total, want in ((0, "ip4-length"), (19, "ip4-length"), (20, "udp-truncated"),
                        (27, "udp-truncated"), (28, "udp-length"), (36, "default"),
                        (37, "ip4-length"), (65535, "ip4-length")):
        add(f"ip4/total length {total} in a frame of 36", raw4(body, total=total), want)
    for total, want in ((27, "ip4-length"), (28, "udp-truncated"), (44, "default"), (45, "ip4-length")):
        add(f"ip4/total length {total} with 8 bytes of options",
            raw4(body, total=total, ihl=7, options=bytes(8)), want)
    add("ip4/options beyond the frame", raw4(b"", ihl=15, total=60), "ip4-length")
    add("ip4/options beyond the total length", raw4(body, ihl=15, total=36), "ip4-length")
    for padding in (1, 2, 18, 46):
        add(f"ip4/padding {padding}", raw4(body) + bytes([0xff]) * padding, "default")
        add(f"ip4/padding {padding} is no header", raw4(body[:7]) + bytes([0xff]) * padding,
            "udp-truncated")
    add("ip4/no payload, unknown protocol", raw4(b"", proto=253), "default")
    for proto in (0, 2, 4, 41, 43, 44, 47, 50, 51, 58, 59, 60, 89, 103, 112, 136, 255):
        add(f"ip4/protocol {proto} with one byte", raw4(b"\x00", proto=proto), "default")
    add("ip4/gre", ip4(GRE() / IP(src="10.0.0.1", dst="10.0.0.2") / udp()), "default")
    add("ip4/in ip4: the outer source counts", ip4(IP(src="10.0.0.1", dst="10.0.0.2") / udp()), "default",
        overlay="block-from 10.0.0.1, block-to 10.0.0.2")
    for dscp in (1, 0xff):
        add(f"ip4/tos {dscp}", put(raw4(body), 15, dscp), "default")
    for ttl in (0, 1, 255):
        add(f"ip4/ttl {ttl}", put(raw4(body), 22, ttl), "default")


def fragment4_cases():
    more, dont, evil = 0x2000, 0x4000, 0x8000
    eight = b"payload."
    add("fragment4/don't fragment", raw4(bytes(udp()), fragment=dont), "default")
    add("fragment4/reserved flag", raw4(bytes(udp()), fragment=evil), "default")
    add("fragment4/first, udp header alone", raw4(raw_udp(1000), fragment=more), "default")
    add("fragment4/first, udp", raw4(raw_udp(1000, eight), fragment=more), "default")
    add("fragment4/first, udp, reserved and don't fragment",
        raw4(raw_udp(1000, eight), fragment=more | dont | evil), "default")
    add("fragment4/first, udp length 7", raw4(raw_udp(7, eight), fragment=more), "udp-length")
    for size, want in ((0, "fragment-length"), (1, "fragment-length"), (7, "fragment-length"),
                       (8, "default"), (9, "fragment-length"), (15, "fragment-length"), (16, "default")):
        add(f"fragment4/first of {size} bytes, unknown protocol",
            raw4(bytes(size), proto=253, fragment=more), want)
        add(f"fragment4/later of {size} bytes, more follow",
            raw4(bytes(size), proto=17, fragment=more | 10), want)
        add(f"fragment4/last of {size} bytes", raw4(bytes(size), proto=17, fragment=10),
            "default" if size else "fragment-length")
    for size, want in ((8, "fragment-header"), (16, "fragment-header"), (24, "default")):
        add(f"fragment4/first of {size} bytes, tcp",
            raw4(raw_tcp(5, payload=bytes(8))[:size], proto=6, fragment=more), want)
    for offset, size, want in ((6, 24, "default"), (7, 24, "fragment-header"), (7, 32, "default"),
                               (15, 56, "fragment-header"), (15, 64, "default"), (4, 24, "tcp-offset")):
        add(f"fragment4/first of {size} bytes, tcp of {offset * 4}",
            raw4(raw_tcp(offset, bytes(60))[:size], proto=6, fragment=more), want)
    for size, want in ((8, "fragment-header"), (16, "default")):
        add(f"fragment4/first of {size} bytes, sctp", raw4(bytes(size), proto=132, fragment=more), want)
    add("fragment4/first, icmp", raw4(bytes(8), proto=1, fragment=more), "default")
    for payload, name in ((raw_udp(0), "udp of no length"), (raw_tcp(0)[:8], "tcp without offset"),
                          (struct.pack("!HH", 53, 80) * 4, "ports 53 and 80")):
        for proto in (1, 6, 17, 132):
            add(f"fragment4/later, protocol {proto}, payload spells {name}",
                raw4(payload, proto=proto, fragment=more | 1), "default")
            add(f"fragment4/last, protocol {proto}, payload spells {name}",
                raw4(payload, proto=proto, fragment=185), "default")
    for proto in (1, 6, 17, 132):
        add(f"fragment4/last of one byte, protocol {proto}", raw4(b"x", proto=proto, fragment=1), "default")
    for offset, size, want in ((8189, 23, "default"), (8189, 24, "fragment-length"),
                               (8191, 7, "default"), (8191, 8, "fragment-length"),
                               (8191, 100, "fragment-length"), (8100, 735, "default"),
                               (8100, 736, "fragment-length")):
        add(f"fragment4/offset {offset * 8}, {size} bytes (ping of death)",
            raw4(bytes(size), proto=1, fragment=offset), want)
    add("fragment4/beyond 65,535, more follow", raw4(bytes(8), proto=1, fragment=more | 8191),
        "fragment-length")
    add("fragment4/with options", raw4(raw_udp(100, eight), fragment=more, ihl=6, options=bytes(4)), "default")
    add("fragment4/with options, header counted out",
        raw4(bytes(4), fragment=more, ihl=6, options=bytes(4)), "fragment-length")
    add("fragment4/padding is not payload", raw4(bytes(9), proto=253, fragment=more, total=28), "default")


# IPv6

def ip6_cases():
    body = bytes(udp())
    add("ip6/udp", ip6(udp()), "default")
    add("ip6/tcp", ip6(tcp()), "default")
    for version in (0, 4, 5, 7, 15):
        add(f"ip6/version {version}", raw6(body, version=version), "ip6-header")
    for length, want in ((0, "udp-truncated"), (7, "udp-truncated"), (8, "udp-length"), (16, "default"),
                         (17, "ip6-length"), (65535, "ip6-length")):
        add(f"ip6/payload length {length} in a frame of 16", raw6(body, length=length), want)
    for padding in (1, 8, 46):
        add(f"ip6/padding {padding}", raw6(body) + bytes([0xff]) * padding, "default")
        add(f"ip6/padding {padding} is no header", raw6(body[:7]) + bytes([0xff]) * padding,
            "udp-truncated")
    jumbo = bytes.fromhex("1100c20400010000")
    add("ip6/jumbogram", raw6(jumbo + body, following=0, length=0), "ip6-length")
    add("ip6/no payload, hop-by-hop", raw6(b"", following=0), "ip6-length")
    add("ip6/no payload, no next header", raw6(b"", following=NO_NEXT), "default")
    add("ip6/no next header and bytes after it", raw6(body, following=NO_NEXT), "default")
    add("ip6/no payload, unknown protocol", raw6(b"", following=253), "default")
    for following in (43, 44, 60):
        add(f"ip6/no payload, header {following}", raw6(b"", following=following), "ip6-ext-truncated")
    for proto in (1, 2, 4, 41, 47, 50, 51, 89, 135, 139, 140, 253, 255):
        add(f"ip6/protocol {proto} with one byte", raw6(b"\x00", following=proto), "default")
    add("ip6/traffic class and flow label", put(raw6(body), 14, 0x6f, 0xff, 0xff, 0xff), "default")
    add("ip6/ah", ip6(AH() / udp()), "default")
    add("ip6/esp", ip6(ESP(spi=1, seq=1, data=b"\x00" * 8)), "default")
    add("ip6/ip4 inside: the outer source counts", ip6(IP(src="10.0.0.1", dst=DST4) / udp()), "default",
        overlay="block-from 10.0.0.1, block-to 198.51.100.1")


def extension_cases():
    for kind in model.EXTENSIONS:
        following, payload = chain([kind])
        add(f"ext/one of {kind}", raw6(payload, following), "default")
        for size in range(8):
            add(f"ext/one of {kind} cut to {size}", raw6(payload[:size], following),
                "ip6-length" if kind == 0 and size == 0 else "ip6-ext-truncated")
    for kind in (model.HOPOPTS, model.ROUTING, model.DSTOPTS):
        for units in (1, 2, 31, 255):
            body = ext(17, units) + bytes(udp())
            add(f"ext/{kind} of {8 + 8 * units} bytes", raw6(body, kind), "default")
            add(f"ext/{kind} of {8 + 8 * units} bytes, one missing",
                raw6(ext(17, units)[:-1], kind), "ip6-ext-truncated")
            add(f"ext/{kind} of {8 + 8 * units} bytes, nothing after it", raw6(ext(17, units), kind),
                "udp-truncated")
            add(f"ext/{kind} of {8 + 8 * units} bytes, no next header",
                raw6(ext(NO_NEXT, units), kind), "default")
        add(f"ext/{kind} padding is no header", raw6(ext(17, 1), kind, length=15) + bytes(64),
            "ip6-ext-truncated")
    add("ext/scapy's hop-by-hop", ip6(IPv6ExtHdrHopByHop() / udp()), "default")
    add("ext/scapy's routing", ip6(IPv6ExtHdrRouting(addresses=["2001:db8::9"]) / udp()), "default")
    add("ext/scapy's destination options", ip6(IPv6ExtHdrDestOpt() / udp()), "default")
    add("ext/scapy's atomic fragment", ip6(IPv6ExtHdrFragment() / udp()), "default")
    for n in range(1, 12):
        want = "default" if n <= 8 else "ip6-ext-too-many"
        add(f"ext/{n} destination options", raw6(*reversed(chain([60] * n))), want)
        add(f"ext/hop-by-hop and {n - 1} routing", raw6(*reversed(chain([0] + [43] * (n - 1)))), want)
        add(f"ext/{n} and no next header",
            raw6(*reversed(chain([60] * n, NO_NEXT, b""))), want)
    add("ext/eight and a ninth that is cut", raw6(*reversed(chain([60] * 8, 60, b"\x11"))),
        "ip6-ext-too-many")
    add("ext/all four kinds", raw6(*reversed(chain([0, 60, 43, 44, 60]))), "default")
    for kinds, name in (([60, 0], "after destination options"), ([43, 0], "after routing"),
                        ([0, 0], "twice"), ([44, 0], "after a fragment header"),
                        ([60, 60, 60, 60, 60, 60, 60, 0], "in the eighth place")):
        add(f"ext/hop-by-hop {name}", raw6(*reversed(chain(kinds))), "ip6-ext-order")
    add("ext/two fragment headers", raw6(*reversed(chain([44, 44]))), "ip6-ext-order")
    add("ext/two fragment headers apart", raw6(*reversed(chain([44, 60, 44]))), "ip6-ext-order")
    for kinds in ([0], [60], [0, 43, 60]):
        for last, payload, name in ((51, bytes(AH() / udp()), "ah"), (50, bytes(16), "esp")):
            add(f"ext/{kinds} then {name}", raw6(*reversed(chain(kinds, last, payload))), "default")
    add("ext/after ah nothing is read", raw6(bytes([60, 4]) + bytes(22) + b"\xff" * 8, 51), "default")
    add("ext/reserved byte of the fragment header", raw6(frag(17, reserved=255) + bytes(udp()), 44), "default")
    add("ext/reserved byte of the fragment header, tcp", raw6(frag(6, reserved=1) + raw_tcp(5), 44), "default")
    add("ext/reserved byte of the fragment header hides no header",
        raw6(frag(17, reserved=2) + raw_udp(7) + bytes(16), 44), "udp-length")


def fragment6_cases():
    eight = b"payload."
    for bits in (0, 1, 2, 3):
        add(f"fragment6/atomic, reserved bits {bits}", raw6(frag(17, bits=bits) + bytes(udp()), 44), "default")
    add("fragment6/atomic, udp cut", raw6(frag(17) + raw_udp(8)[:7], 44), "udp-truncated")
    add("fragment6/atomic, udp length beyond", raw6(frag(17) + raw_udp(9), 44), "udp-length")
    add("fragment6/atomic, tcp cut", raw6(frag(6) + raw_tcp(5)[:16], 44), "tcp-truncated")
    add("fragment6/atomic, odd length", raw6(frag(253) + b"abc", 44), "default")
    add("fragment6/atomic, nothing after it", raw6(frag(NO_NEXT), 44), "default")
    add("fragment6/first, udp", raw6(frag(17, more=1) + raw_udp(1000), 44), "default")
    add("fragment6/first, udp, reserved bits", raw6(frag(17, more=1, bits=3) + raw_udp(1000), 44), "default")
    for size, want in ((0, "fragment-length"), (1, "fragment-length"), (7, "fragment-length"),
                       (8, "default"), (9, "fragment-length"), (16, "default")):
        add(f"fragment6/first of {size} bytes, unknown protocol",
            raw6(frag(253, more=1) + bytes(size), 44), want)
        add(f"fragment6/later of {size} bytes, more follow",
            raw6(frag(17, 10, 1) + bytes(size), 44), want)
        add(f"fragment6/last of {size} bytes", raw6(frag(17, 10) + bytes(size), 44),
            "default" if size else "fragment-length")
        add(f"fragment6/last of {size} bytes, reserved bits", raw6(frag(17, 10, bits=3) + bytes(size), 44),
            "default" if size else "fragment-length")
    for size, want in ((8, "fragment-header"), (16, "fragment-header"), (24, "default")):
        add(f"fragment6/first of {size} bytes, tcp",
            raw6(frag(6, more=1) + raw_tcp(5, payload=bytes(8))[:size], 44), want)
    for offset, size, want in ((7, 24, "fragment-header"), (7, 32, "default"), (4, 24, "tcp-offset")):
        add(f"fragment6/first of {size} bytes, tcp of {offset * 4}",
            raw6(frag(6, more=1) + raw_tcp(offset, bytes(60))[:size], 44), want)
    add("fragment6/first of 8 bytes, sctp", raw6(frag(132, more=1) + bytes(8), 44), "fragment-header")
    add("fragment6/first of 16 bytes, sctp", raw6(frag(132, more=1) + bytes(16), 44), "default")
    add("fragment6/first, icmp6", raw6(frag(58, more=1) + bytes(8), 44), "default")
    add("fragment6/first, extension header and udp",
        raw6(frag(60, more=1) + ext(17) + raw_udp(1000), 44), "default")
    add("fragment6/first, extension header alone", raw6(frag(60, more=1) + ext(17), 44), "fragment-header")
    add("fragment6/first, extension header cut", raw6(frag(60, more=1) + ext(17, 1)[:8], 44),
        "fragment-header")
    add("fragment6/first, extension header, no next header",
        raw6(frag(60, more=1) + ext(NO_NEXT), 44), "default")
    add("fragment6/first, hop-by-hop in it", raw6(frag(0, more=1) + ext(17) + raw_udp(100), 44), "ip6-ext-order")
    add("fragment6/first, second fragment header",
        raw6(frag(44, more=1) + frag(17, more=1) + raw_udp(100), 44), "ip6-ext-order")
    for following in (0, 43, 44, 60, 6, 17, 58, 132):
        add(f"fragment6/later, next header {following} is not read",
            raw6(frag(following, 1, 1) + b"\xff" * 8, 44), "default")
        add(f"fragment6/last byte, next header {following} is not read",
            raw6(frag(following, 1) + b"\x00", 44), "default")
    add("fragment6/later, payload spells ports", raw6(frag(17, 1) + struct.pack("!HH", 53, 80) * 2, 44),
        "default")
    for offset, size, want in ((8189, 23, "default"), (8189, 24, "fragment-length"),
                               (8191, 7, "default"), (8191, 8, "fragment-length")):
        add(f"fragment6/offset {offset * 8}, {size} bytes", raw6(frag(58, offset) + bytes(size), 44), want)
    add("fragment6/after options", raw6(ext(44) + frag(17, more=1) + raw_udp(100, eight), 60), "default")
    add("fragment6/after options, later", raw6(ext(44) + frag(17, 7, 1) + eight, 0), "default")
    add("fragment6/after options, odd", raw6(ext(44) + frag(17, 7, 1) + eight[:7], 0), "fragment-length")
    add("fragment6/cut after options", raw6(ext(44) + frag(17, more=1)[:7], 60), "ip6-ext-truncated")
    add("fragment6/padding is not payload",
        raw6(frag(253, more=1) + bytes(9), 44, length=16), "default")


# Transport, over either family

def over(name, payload, proto, want):
    add(f"{name} over ip4", raw4(payload, proto=proto), want)
    add(f"{name} over ip6", raw6(payload, proto), want)
    add(f"{name} over ip6 and options", raw6(ext(proto) + payload, 60), want)
    add(f"{name} over ip4 with options", raw4(payload, proto=proto, ihl=8, options=bytes([1]) * 12), want)


def transport_cases():
    for size in (0, 1, 4, 13, 19):
        over(f"tcp/{size} bytes", raw_tcp(5)[:size], 6, "tcp-truncated")
    over("tcp/20 bytes", raw_tcp(5), 6, "default")
    for offset in range(5):
        over(f"tcp/offset {offset}", raw_tcp(offset, bytes(40)), 6, "tcp-offset")
    for offset in (6, 10, 15):
        options = bytes(4 * (offset - 5))
        over(f"tcp/offset {offset}", raw_tcp(offset, options), 6, "default")
        over(f"tcp/offset {offset}, payload", raw_tcp(offset, options, b"x"), 6, "default")
        over(f"tcp/offset {offset}, one byte short", raw_tcp(offset, options[:-1]), 6, "tcp-offset")
    for flags in (0, 1, 0x29, 0xff):
        over(f"tcp/flags 0x{flags:02x}", put(raw_tcp(5), 13, flags), 6, "default")
    for size in (0, 1, 4, 7):
        over(f"udp/{size} bytes", raw_udp(8)[:size], 17, "udp-truncated")
    for length, want in ((0, "udp-length"), (1, "udp-length"), (7, "udp-length"), (8, "default"),
                         (9, "default"), (16, "default"), (17, "udp-length"), (65535, "udp-length")):
        over(f"udp/length {length} of 16", raw_udp(length, bytes(8)), 17, want)
    over("udp/length 8 of 8", raw_udp(8), 17, "default")
    for size in (0, 1, 4, 11):
        over(f"sctp/{size} bytes", bytes(size), 132, "sctp-truncated")
    over("sctp/12 bytes", bytes(12), 132, "default")
    add("sctp/init over ip4", ip4(SCTP(sport=1, dport=2) / SCTPChunkInit()), "default")
    for size in (0, 1, 7):
        add(f"icmp/{size} bytes", raw4(bytes(size), proto=1), "icmp-truncated")
        add(f"icmp6/{size} bytes", raw6(bytes(size), 58), "icmp6-truncated")
        add(f"icmp6/{size} bytes after options", raw6(ext(58) + bytes(size), 0), "icmp6-truncated")
        add(f"icmp6/{size} bytes over ip4 is unknown", raw4(bytes(size), proto=58), "default")
        add(f"icmp/{size} bytes over ip6 is unknown", raw6(bytes(size), 1), "default")
    add("icmp/8 bytes", raw4(bytes(8), proto=1), "default")
    add("icmp6/8 bytes", raw6(bytes(8), 58), "default")
    add("icmp/echo request", ip4(ICMP() / bytes(56)), "default")
    add("icmp6/echo request", ip6(ICMPv6EchoRequest(data=bytes(56))), "default")
    add("icmp/unreachable that quotes 8 bytes",
        ip4(ICMP(type=3, code=4) / IP(src=DST4, dst=SRC4) / Raw(raw_tcp(5)[:8])), "default")
    add("icmp6/unreachable", ip6(ICMPv6DestUnreach() / IPv6(src=DST6, dst=SRC6) / udp()), "default")


# Neighbour discovery

def neighbour(message, hops=255, src=LL, dst="ff02::1"):
    return ip6(message, src=src, dst=dst, hlim=hops)


def neighbour_cases():
    blocks = ("block-from fe80::/10", "block-to ff02::/16", "block-from fe80::1", "block-to ff02::1",
              "block-from ::/0, block-to ::/0", "allow-from fe80::1")
    messages = {"router solicitation": ICMPv6ND_RS(), "router advertisement": ICMPv6ND_RA(),
                "neighbour solicitation": ICMPv6ND_NS(tgt=DST6),
                "neighbour advertisement": ICMPv6ND_NA(tgt=DST6)}
    for name, message in messages.items():
        frame = neighbour(message)
        add(f"nd/{name}", frame, "neighbour")
        for block in blocks:
            add(f"nd/{name} under {block}", frame, "neighbour", overlay=block)
        add(f"nd/{name} in a tag under a block", tagged(frame, (0x8100, 7)), "neighbour", overlay=blocks[0])
        add(f"nd/{name} from :: under a block", neighbour(message, src="::"), "neighbour",
            overlay="block-from ::")
        for hops in (0, 1, 64, 254):
            add(f"nd/{name} with hop limit {hops}", neighbour(message, hops), "default")
            add(f"nd/{name} with hop limit {hops} under a block", neighbour(message, hops), "block-from",
                overlay=blocks[0])
        for bits, kind in ((0, "an atomic"), (1, "a first")):
            body = bytes(message)
            body += bytes(-len(body) % 8)
            frame = raw6(frag(58, more=bits) + body, 44, hops=255, src=LL, dst="ff02::1")
            add(f"nd/{name} in {kind} fragment", frame, "default")
            add(f"nd/{name} in {kind} fragment under a block", frame, "block-from", overlay=blocks[0])
            frame = raw6(ext(44) + frag(58, more=bits) + body, 60, hops=255, src=LL, dst="ff02::1")
            add(f"nd/{name} in {kind} fragment after options under a block", frame, "block-from",
                overlay=blocks[0])
        add(f"nd/{name} after hop-by-hop under a block",
            raw6(ext(58) + bytes(message), 0, hops=255, src=LL), "neighbour", overlay=blocks[0])
        add(f"nd/{name} cut to 7 bytes",
            raw6(bytes(message)[:7], 58, hops=255, src=LL), "icmp6-truncated")
    for kind in (0, 128, 130, 132, 137, 138, 143, 255):
        frame = raw6(bytes([kind, 0]) + bytes(38), 58, hops=255, src=LL)
        add(f"nd/type {kind} is not discovery", frame, "default")
        add(f"nd/type {kind} is not discovery, under a block", frame, "block-from", overlay=blocks[0])
    add("nd/redirect under a block", neighbour(ICMPv6ND_Redirect(), dst="fe80::2"), "block-from",
        overlay=blocks[0])
    for kind in range(133, 137):
        add(f"nd/type {kind} over ip4 under a block", put(raw4(bytes([kind]) + bytes(23), 58), 22, 255),
            "block-from", overlay=f"block-from {SRC4}")
        add(f"nd/type {kind} of icmp over ip4 under a block",
            put(raw4(bytes([kind]) + bytes(23), 1), 22, 255), "block-from", overlay=f"block-from {SRC4}")
        add(f"nd/type {kind}, code 1", raw6(bytes([kind, 1]) + bytes(22), 58, hops=255, src=LL), "neighbour")
        add(f"nd/a later fragment that spells type {kind} under a block",
            raw6(frag(58, 1) + bytes([kind]) + bytes(23), 44, hops=255, src=LL), "block-from",
            overlay=blocks[0])
        add(f"nd/udp that spells type {kind} under a block",
            raw6(bytes([kind, 0, 0, 0, 0, 8, 0, 0]), 17, hops=255, src=LL), "block-from",
            overlay=blocks[0])


# Overlay: every kind of packet obeys address rules

def overlay_cases():
    frames = {"udp4": ip4(udp()), "tcp4": ip4(tcp()), "icmp4": ip4(ICMP()), "gre4": raw4(bytes(4), 47),
              "later fragment4": raw4(b"x", 17, fragment=1), "tagged udp4": tagged(ip4(udp()), (0x8100, 0)),
              "udp6": ip6(udp()), "tcp6": ip6(tcp()), "icmp6": ip6(ICMPv6EchoRequest()),
              "esp6": raw6(bytes(16), 50), "later fragment6": raw6(frag(17, 1) + b"x", 44),
              "tagged udp6": tagged(ip6(udp()), (0x88a8, 1), (0x8100, 2)),
              "udp6 after options": raw6(*reversed(chain([0, 43, 60])))}
    for name, frame in frames.items():
        packet, _ = model.read(frame)
        src, dst, wide = packet.src, packet.dst, "0.0.0.0/0" if packet.family == 4 else "::/0"
        for entries in (f"block-from {src}", f"block-to {dst}", f"block-from {around(src)}",
                        f"block-to {around(dst)}", f"block-from {wide}", f"block-to {wide}",
                        f"block-from {dst}", f"block-to {src}",
                        f"block-from {src}, allow-to {dst}", f"block-to {dst}, allow-from {wide}",
                        f"block-from {wide}, block-from {src}, block-to {around(dst)}",
                        f"block-to {wide}, block-to {around(dst)}, allow-from {dst}"):
            add(f"overlay/{name} under {entries}", frame, overlay=entries)


# Truncations

def typical():
    """Usual packets, by name."""
    opened = TCP(sport=1000, dport=443, flags="S", options=[("MSS", 1460), ("SAckOK", b""),
                                                            ("Timestamp", (1, 0)), ("WScale", 7)])
    return {
        "syn4": ip4(opened), "syn6": ip6(opened), "udp4": ip4(udp()), "udp6": ip6(udp()),
        "icmp4": ip4(ICMP() / Raw(b"abcdefgh")), "icmp6": ip6(ICMPv6EchoRequest(data=b"abcdefgh")),
        "sctp4": ip4(SCTP(sport=1, dport=2) / SCTPChunkInit()),
        "options4": raw4(raw_tcp(6, bytes(4), b"x"), 6, ihl=15, options=bytes([1]) * 40),
        "tag4": tagged(ip4(udp()), (0x8100, 7)),
        "qinq6": tagged(ip6(tcp()), (0x88a8, 7), (0x8100, 8)),
        "fourtags4": tagged(ip4(tcp()), *[(0x8100, 7)] * 4),
        "chain6": raw6(*reversed(chain([0, 60, 43, 44, 60]))),
        "longchain6": raw6(*reversed(chain([0] + [60] * 7))),
        "wide6": raw6(ext(60, 3) + ext(6, 1) + raw_tcp(7, bytes(8), b"abc"), 0),
        "first4": raw4(raw_tcp(8, bytes(12), bytes(16)), 6, fragment=0x2000),
        "first6": raw6(ext(44) + frag(60, more=1) + ext(6) + raw_tcp(7, bytes(8), bytes(12)), 0),
        "later4": raw4(bytes(16), 17, fragment=0x2000 | 100),
        "later6": raw6(ext(44) + frag(17, 100, 1) + bytes(16), 60),
        "ns6": neighbour(ICMPv6ND_NS(tgt=DST6)), "esp6": raw6(bytes(16), 50),
        "arp": ether(ARP(psrc=SRC4, pdst=DST4)),
    }


def header_at(frame):
    """(offset of the IP header, its ethertype)"""
    at = 12
    while struct.unpack_from("!H", frame, at)[0] in model.TPIDS:
        at += 4
    return at + 2, struct.unpack_from("!H", frame, at)[0]


def with_length(frame, cut):
    """The first `cut` bytes, with that length in the IP header; None: the length itself is cut off."""
    at, ethertype = header_at(frame)
    if ethertype == model.IPV4 and cut >= at + 20:
        return put16(frame[:cut], at + 2, cut - at)
    if ethertype == model.IPV6 and cut >= at + 40:
        return put16(frame[:cut], at + 4, cut - at - 40)
    return None


def truncation_cases():
    for name, frame in typical().items():
        for cut in range(14, len(frame)):
            add(f"cut/{name} to {cut} of {len(frame)}", frame[:cut], alone=True)
            fitting = with_length(frame, cut)
            if fitting:
                add(f"cut/{name} to {cut} of {len(frame)}, length fits", fitting, alone=cut % 5)
            if fitting and cut % 5 == 1:
                add(f"cut/{name} to {cut} of {len(frame)}, length fits, padded", fitting + bytes(64),
                    alone=True)


def split_cases():
    packets = typical()
    for name in ("syn4", "udp6", "options4", "fourtags4", "qinq6", "chain6", "first6", "ns6", "arp"):
        frame = packets[name]
        for linear in range(14, len(frame) + 1):
            add(f"split/{name} of {len(frame)} after {linear}", frame, linear=linear)


def iface_cases():
    for iface in (0, 2, 63):
        add(f"iface/{iface}", ip4(udp()), "default", iface=iface)
        add(f"iface/{iface}, malformed", ip4(udp())[:20], "ip4-truncated", iface=iface)
        add(f"iface/{iface}, blocked", ip4(udp()), "block-to", iface=iface, overlay=f"block-to {DST4}")


# Random frames, the same in every run

def mutate(rng, frame):
    frame = bytearray(frame)
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        at = rng.randrange(12, min(len(frame), 100))
        frame[at] = rng.choice((rng.randrange(256), 0, 255, frame[at] ^ 1 << rng.randrange(8),
                                *model.EXTENSIONS, 6, 17, 58, 132))
    if rng.random() < 0.3:
        frame = frame[:rng.randrange(14, len(frame) + 1)]
    if rng.random() < 0.2:
        frame += bytes(rng.randrange(64))
    return bytes(frame)


def random_chain(rng):
    """IPv6 with any extension headers in any order, sometimes truncated."""
    kinds = [rng.choice((0, 43, 44, 60, 60, 43)) for _ in range(rng.randrange(11))]
    if kinds and rng.random() < 0.5:
        kinds = [rng.choice((0, 43, 60))] + [rng.choice((43, 60)) for _ in kinds[1:]]
    last = rng.choice((6, 17, 58, 132, 59, 50, 51, 253))
    out, following = bytes(rng.randrange(256) for _ in range(rng.choice((0, 7, 8, 16, 24, 40)))), last
    if last == 17 and len(out) >= 8:
        out = put16(out, 4, len(out))
    for kind in reversed(kinds):
        if kind == model.FRAGMENT:
            head = frag(following, rng.choice((0, 0, 0, 1, 8191)), rng.randrange(2), rng.randrange(256),
                        rng.randrange(4))
        else:
            head = ext(following, rng.choice((0, 0, 0, 1, 3)))
        out, following = head + out, kind
    if rng.random() < 0.3:
        out = out[:rng.randrange(len(out) + 1)]
    return raw6(out, following, length=len(out) + rng.choice((0, 0, 0, 0, 0, -1, 1)) if out else 0,
                hops=rng.choice((64, 255)))


def random_cases():
    rng = random.Random("weir")
    seeds = list(typical().values())
    for n in range(RANDOM_FRAMES):
        frame = mutate(rng, rng.choice(seeds)) if n % 3 else random_chain(rng)
        add(f"random/{n}", frame, alone=n % 5)


def common_cases():
    """What most packets are, with entries of hosts: the short way has them all."""
    rng = random.Random("common")
    for n in range(COMMON_FRAMES):
        version = rng.choice((4, 6))
        src, dst = ((f"10.{rng.randrange(4)}.0.{rng.randrange(1, 9)}" if version == 4 else f"2001:db8:{rng.randrange(4)}::{rng.randrange(1, 9)}")
                    for _ in range(2))
        data = bytes(rng.randrange(256) for _ in range(rng.randrange(64)))
        ports = {"sport": rng.randrange(1, 65536), "dport": rng.randrange(1, 65536)}
        payload = rng.choice((UDP(**ports) / Raw(data), TCP(flags=rng.choice(("S", "SA", "A", "FA", "R")), **ports) / Raw(data),
                              (ICMP(type=8) if version == 4 else ICMPv6EchoRequest()) / Raw(data)))
        frame = ether((IP if version == 4 else IPv6)(src=src, dst=dst) / payload)
        if rng.random() < 0.3:
            frame = tagged(frame, (rng.choice((0x8100, 0x88a8)), rng.randrange(65536)))
        # A change of entries waits for a grace period, which takes long in a virtual machine.
        entries = "" if n % 10 else rng.choice((f"block-from {src}", f"block-to {dst}", f"block-from {dst}", f"block-from {src}, allow-to {dst}",
                              f"block-to {dst}, block-from {src}, allow-from {src}"))
        add(f"common/{n}", frame, overlay=entries) if entries else add(f"common/{n}", frame, alone=True)


def lenient_cases():
    """malformed pass: each reason once; well-formed packets are treated as before."""
    seen = set()
    for case in list(cases):
        if case.reason not in seen and not case.linear:
            seen.add(case.reason)
            add(f"lenient/{case.reason}", case.frame, overlay=case.overlay, lenient=True)
    add("lenient/malformed, source blocked", raw4(raw_udp(7)), "malformed-pass", lenient=True,
        overlay=f"block-from {SRC4}")


def check_complete():
    reached = {case.reason for case in cases}
    for reason in ("vlan-truncated vlan-too-deep ip4-truncated ip4-header ip4-length ip6-truncated "
                   "ip6-header ip6-length ip6-ext-truncated ip6-ext-too-many ip6-ext-order "
                   "fragment-header fragment-length tcp-truncated tcp-offset udp-truncated udp-length "
                   "icmp-truncated icmp6-truncated sctp-truncated header-split default not-ip neighbour "
                   "allow block-from block-to malformed-pass").split():
        if reason not in reached:
            sys.exit(f"cases.py: no case ends as '{reason}'")


def main():
    for make in (link_cases, vlan_cases, ip4_cases, fragment4_cases, ip6_cases, extension_cases,
                 fragment6_cases, transport_cases, neighbour_cases, overlay_cases, truncation_cases,
                 split_cases, random_cases, common_cases, lenient_cases, iface_cases):
        make()
    check_complete()
    print("# SPDX-License-Identifier: GPL-2.0-only")
    print("# Made by tests/datapath/cases.py.")
    for case in cases:
        case.write(sys.stdout)
    decap_cases.write(sys.stdout)
    balance_policies.write(sys.stdout, path_cases.policies)


main()
