# SPDX-License-Identifier: GPL-2.0-only
"""What the datapath has to make of a frame: the rules of the policy language's manual and the meaning of
the drop reasons, written a second time. It looks at one header after the other, each in three steps: is
its fixed part there, is what it says possible, and does what it says lie inside the packet."""
import ipaddress
import struct

TPIDS = (0x8100, 0x88a8)
IPV4, IPV6 = 0x0800, 0x86dd
HOPOPTS, ROUTING, FRAGMENT, DSTOPTS = 0, 43, 44, 60
EXTENSIONS = (HOPOPTS, ROUTING, FRAGMENT, DSTOPTS)
ICMP, TCP, UDP, ICMP6, SCTP = 1, 6, 17, 58, 132
MAX_TAGS, MAX_EXTENSIONS = 4, 8


class Malformed(Exception):
    """Its argument is the reason's name."""


class Packet:
    """What is known about a frame so far."""

    def __init__(self, frame, linear):
        self.frame = frame
        self.linear = linear  # bytes that are in the first buffer
        self.length = len(frame)  # that is counted: of the frame until there is an IP packet
        self.end = len(frame)  # of the IP packet, in the frame
        self.family = 0
        self.src = self.dst = None
        self.hops = 0
        self.proto = None
        self.fragment = None  # "first" or "later"
        self.fragment_header = False
        self.neighbour = False

    def fixed(self, at, size, short):
        """The fixed part of a header; `short` is the reason when the packet ends inside it."""
        if at + size > self.end:
            raise Malformed(short)
        if at + size > self.linear:
            raise Malformed("header-split")
        return self.frame[at:at + size]

    def inside(self, short):
        """The reason for a header that the packet does not hold whole (RFC 7112)."""
        return "fragment-header" if self.fragment else short


def link(packet):
    """Ethernet and tags: the ethertype behind them, and where its header begins."""
    at, ethertype, tags = 14, struct.unpack("!H", packet.frame[12:14])[0], 0
    while ethertype in TPIDS:
        tags += 1
        if tags > MAX_TAGS:
            raise Malformed("vlan-too-deep")
        ethertype = struct.unpack("!2xH", packet.fixed(at, 4, "vlan-truncated"))[0]
        at += 4
    return ethertype, at


def fragment(packet, offset, more, payload):
    """`offset` and `payload` in bytes."""
    if payload == 0 or (more and payload % 8) or offset + payload > 65535:
        raise Malformed("fragment-length")
    packet.fragment = "later" if offset else "first"


def ip4(packet, at):
    head = packet.fixed(at, 20, "ip4-truncated")
    version, header = head[0] >> 4, (head[0] & 15) * 4
    total, flags = struct.unpack("!2xH2xH12x", head)
    if version != 4 or header < 20:
        raise Malformed("ip4-header")
    if total < header or at + total > len(packet.frame):
        raise Malformed("ip4-length")
    packet.family, packet.length, packet.end = 4, total, at + total
    packet.src, packet.dst = ipaddress.ip_address(head[12:16]), ipaddress.ip_address(head[16:20])
    packet.hops, packet.proto = head[8], head[9]
    offset, more = (flags & 0x1fff) * 8, bool(flags & 0x2000)
    if offset or more:
        fragment(packet, offset, more, total - header)
    return at + header


def ip6_fragment(packet, at, head):
    if packet.fragment_header:
        raise Malformed("ip6-ext-order")
    packet.fragment_header = True
    word = struct.unpack("!2xH4x", head)[0]
    offset, more = word & 0xfff8, bool(word & 1)
    if offset or more:  # else it is atomic: a whole packet (RFC 6946)
        fragment(packet, offset, more, packet.end - at - 8)
    return at + 8


def extensions(packet, at):
    walked = 0
    while packet.proto in EXTENSIONS and packet.fragment != "later":
        if walked == MAX_EXTENSIONS:
            raise Malformed("ip6-ext-too-many")
        head = packet.fixed(at, 8, packet.inside("ip6-ext-truncated"))
        if packet.proto == HOPOPTS and walked:
            raise Malformed("ip6-ext-order")
        if packet.proto == FRAGMENT:
            at = ip6_fragment(packet, at, head)
        else:
            at += (head[1] + 1) * 8
        if at > packet.end:
            raise Malformed(packet.inside("ip6-ext-truncated"))
        packet.proto = head[0]
        walked += 1
    return at


def ip6(packet, at):
    head = packet.fixed(at, 40, "ip6-truncated")
    payload, following, hops = struct.unpack("!4xHBB32x", head)
    if head[0] >> 4 != 6:
        raise Malformed("ip6-header")
    if at + 40 + payload > len(packet.frame) or (payload == 0 and following == HOPOPTS):
        raise Malformed("ip6-length")
    packet.family, packet.length, packet.end = 6, 40 + payload, at + 40 + payload
    packet.src, packet.dst = ipaddress.ip_address(head[8:24]), ipaddress.ip_address(head[24:40])
    packet.hops, packet.proto = hops, following
    return extensions(packet, at + 40)


def tcp(packet, at):
    header = (packet.fixed(at, 20, packet.inside("tcp-truncated"))[12] >> 4) * 4
    if header < 20:
        raise Malformed("tcp-offset")
    if at + header > packet.end:
        raise Malformed(packet.inside("tcp-offset"))


def udp(packet, at):
    length = struct.unpack("!4xH2x", packet.fixed(at, 8, packet.inside("udp-truncated")))[0]
    # In a fragment it is the length of the whole datagram.
    if length < 8 or (not packet.fragment and at + length > packet.end):
        raise Malformed("udp-length")


def icmp6(packet, at):
    kind = packet.fixed(at, 8, packet.inside("icmp6-truncated"))[0]
    packet.neighbour = (133 <= kind <= 136 and packet.hops == 255
                        and not packet.fragment_header)


def transport(packet, at):
    if packet.fragment == "later":
        return  # what lies here is payload
    if packet.proto == TCP:
        tcp(packet, at)
    elif packet.proto == UDP:
        udp(packet, at)
    elif packet.proto == SCTP:
        packet.fixed(at, 12, packet.inside("sctp-truncated"))
    elif packet.proto == ICMP and packet.family == 4:
        packet.fixed(at, 8, packet.inside("icmp-truncated"))
    elif packet.proto == ICMP6 and packet.family == 6:
        icmp6(packet, at)


def read(frame, linear=None):
    """(packet, reason that it is malformed or None)"""
    packet = Packet(frame, linear or len(frame))
    try:
        ethertype, at = link(packet)
        if ethertype == IPV4:
            transport(packet, ip4(packet, at))
        elif ethertype == IPV6:
            transport(packet, ip6(packet, at))
    except Malformed as why:
        return packet, why.args[0]
    return packet, None


def known_by(packet, entries, kind):
    """The entry of this kind that counts the packet: its host, else the longest prefix, else None."""
    address = packet.src if kind.endswith("from") else packet.dst
    found = [net for has, net in entries if has == kind and address in net]
    return max(found, key=lambda net: net.prefixlen, default=None)


def overlay(packet, entries):
    """(reason, entry that counts it) or (None, None)"""
    if not packet.family or packet.neighbour:
        return None, None
    for kind in ("allow-from", "allow-to", "block-from", "block-to"):
        net = known_by(packet, entries, kind)
        if net is not None:
            return ("allow" if kind.startswith("allow") else kind), (kind, net)
    return None, None


def judge(frame, entries=(), lenient=False, linear=None):
    """(verdict, reason, bytes, entry that counts it or None); entries: pairs of kind and network"""
    packet, malformed = read(frame, linear)
    if malformed and lenient:
        return "pass", "malformed-pass", packet.length, None
    if malformed:
        return "drop", malformed, packet.length, None
    reason, hit = overlay(packet, entries)
    if not reason:
        reason = ("neighbour" if packet.neighbour else "default") if packet.family else "not-ip"
    return "drop" if reason.startswith("block") else "pass", reason, packet.length, hit
