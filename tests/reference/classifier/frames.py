# SPDX-License-Identifier: GPL-2.0-only
"""Ethernet frames from a description. Independent of how they are read."""
import struct

from layout import HEADERS

WHOLE, FIRST, LATER, ATOMIC = range(4)
TCP, UDP, SCTP, ICMP, ICMP6 = 6, 17, 132, 1, 58
HOP_BY_HOP, ROUTING, FRAGMENT, DESTINATION = 0, 43, 44, 60
IPV4, IPV6 = 0x0800, 0x86dd
MORE = 0x2000  # fragments
LARGEST = 65535
REST_OF_DATAGRAM = 1000  # bytes of a UDP datagram after its first fragment
NO_OPERATION = b"\1\1\1\1"  # IPv4's and TCP's option, so many that they fill a word
TARGET, SOURCE = bytes.fromhex("020000000001"), 0x020000000002
FILLER = bytes((i * 7 + 1) & 0xff for i in range(LARGEST + 100))
BYTES = {4: 4, 6: 16}

pack_ip4, pack_ip6 = HEADERS["IP4"].form.pack, HEADERS["IP6"].form.pack
pack_ext, pack_fragment = HEADERS["EXT"].form.pack, HEADERS["FRAGMENT"].form.pack
pack_tcp, pack_udp = HEADERS["TCP"].form.pack, HEADERS["UDP"].form.pack
IP4_BYTES, IP6_BYTES = HEADERS["IP4"].bytes, HEADERS["IP6"].bytes
TCP_BYTES, UDP_BYTES = HEADERS["TCP"].bytes, HEADERS["UDP"].bytes
PORTS = struct.Struct("!HH")
IP4_WORDS = struct.Struct(f"!{IP4_BYTES // 2}H")


class Spec:
    """The description of a frame. Addresses are numbers; lengths of options in words of 4 bytes."""
    __slots__ = ("tags", "family", "ethertype", "src", "dst", "proto", "ttl", "dscp", "options", "exts",
                 "fragment", "offset", "fragment_at", "sport", "dport", "flags", "tcp_options", "type",
                 "code", "length", "padding", "mac")

    def __init__(self):
        self.mac = SOURCE
        self.tags = []  # pairs of TPID and TCI, outermost first
        self.family = 0  # 0: ethertype, and bytes up to `length`
        self.ethertype = self.src = self.dst = 0
        self.proto = self.ttl = self.dscp = 0
        self.options = 0
        self.exts = []  # IPv6: pairs of type and units of 8 bytes after the first; no fragment header
        self.fragment = WHOLE
        self.offset = 0  # of a later fragment, in units of 8 bytes
        self.fragment_at = 0  # IPv6: so many extension headers come before the fragment header
        self.sport = self.dport = self.flags = self.tcp_options = 0
        self.type = self.code = 0
        self.length = 0  # to reach with payload: of IP, without a family of the frame
        self.padding = 0  # bytes after the packet


class Frame:
    """Its bytes, and where IP and the transport header begin."""
    __slots__ = ("bytes", "ip", "transport")

    def __init__(self, content, ip, transport):
        self.bytes, self.ip, self.transport = bytearray(content), ip, transport


def link(spec):
    ethertype = {4: IPV4, 6: IPV6, 0: spec.ethertype}[spec.family]
    macs = TARGET + spec.mac.to_bytes(6, "big")
    if not spec.tags:
        return macs + ethertype.to_bytes(2, "big")
    return macs + b"".join(PORTS.pack(*tag) for tag in spec.tags) + ethertype.to_bytes(2, "big")


def ip4(spec, payload):
    """The header of a packet with so many bytes after it."""
    words = IP4_BYTES // 4 + spec.options
    fragment = MORE if spec.fragment == FIRST else spec.offset & 0x1fff if spec.fragment == LATER else 0
    fields = [0x40 | words, spec.dscp << 2, words * 4 + payload, 0x1234, fragment, spec.ttl, spec.proto, 0,
              spec.src.to_bytes(4, "big"), spec.dst.to_bytes(4, "big")]
    options = NO_OPERATION * spec.options
    total = sum(IP4_WORDS.unpack(pack_ip4(*fields))) + 2 * spec.options * 0x0101
    total = (total & 0xffff) + (total >> 16)
    fields[7] = ~(total + (total >> 16)) & 0xffff  # RFC 1071
    return pack_ip4(*fields) + options


def extensions(spec):
    """(the first next header, the extension headers)"""
    chain = list(spec.exts)
    if spec.fragment != WHOLE:
        chain.insert(spec.fragment_at, (FRAGMENT, 0))
    if not chain:
        return spec.proto, b""
    out = b""
    for (kind, words), (following, _) in zip(chain, [*chain[1:], (spec.proto, 0)]):
        if kind == FRAGMENT:
            offset = {FIRST: 1, LATER: spec.offset << 3 & 0xfff8, ATOMIC: 0}[spec.fragment]
            out += pack_fragment(following, 0xff, offset, 0x4321)  # reserved, no length
        else:  # one PadN, or a routing type that does not exist
            out += pack_ext(following, words, 1, 0 if kind == ROUTING else 4, 0) + bytes(8 * words)
    return chain[0][0], out


def ip6(spec, payload):
    first, exts = extensions(spec)
    length = min(len(exts) + payload, LARGEST)
    return pack_ip6(0x6000 | spec.dscp << 6, 0, length, first, spec.ttl, spec.src.to_bytes(16, "big"),
                    spec.dst.to_bytes(16, "big")) + exts


def transport_bytes(spec):
    if spec.proto == TCP:
        return TCP_BYTES + 4 * spec.tcp_options
    if spec.proto == UDP:
        return UDP_BYTES
    if spec.proto == SCTP:
        return HEADERS["SCTP"].bytes
    return HEADERS["ICMP"].bytes if spec.proto == (ICMP if spec.family == 4 else ICMP6) else 0


def transport(spec, length):
    """length: from here to the end of the packet"""
    if spec.proto == TCP:
        words = TCP_BYTES // 4 + spec.tcp_options
        return pack_tcp(spec.sport, spec.dport, 0x01020304, 0, words << 4 & 0xff, spec.flags, 0x7210, 0,
                        0) + NO_OPERATION * spec.tcp_options
    if spec.proto == UDP:
        datagram = length + (REST_OF_DATAGRAM if spec.fragment == FIRST else 0)
        return pack_udp(spec.sport, spec.dport, datagram & 0xffff, 0)
    if spec.proto == SCTP:
        return PORTS.pack(spec.sport, spec.dport) + FILLER[:8]
    if spec.proto == (ICMP if spec.family == 4 else ICMP6):
        return bytes((spec.type, spec.code)) + FILLER[:6]
    return b""


def network_bytes(spec):
    if spec.family == 4:
        return IP4_BYTES + 4 * spec.options
    exts = sum(8 + 8 * words for _, words in spec.exts) if spec.exts else 0
    return IP6_BYTES + exts + (8 if spec.fragment != WHOLE else 0)


def build(spec):
    before = link(spec)
    at, length = len(before), min(spec.length, LARGEST)
    if not spec.family:
        return Frame(before + FILLER[:max(0, length - at)] + FILLER[:spec.padding], at, at)
    network, carried = network_bytes(spec), transport_bytes(spec)
    payload = max(0, length - network - carried)
    header = (ip4 if spec.family == 4 else ip6)(spec, carried + payload)
    return Frame(before + header + transport(spec, carried + payload) + FILLER[:payload]
                 + FILLER[:spec.padding], at, at + network)
