# SPDX-License-Identifier: GPL-2.0-only
"""The expected verdict of the datapath for a frame: the rules of the policy language's manual and the meaning of
the drop reasons, written a second time. It looks at one header after the other, each in three steps: is
its fixed part present, are its values possible, and do the lengths that it tells fit the packet."""
import ipaddress
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "reference"))
from layout import HEADERS  # noqa: E402 pylint: disable=wrong-import-position

TPIDS = (0x8100, 0x88a8)
IPV4, IPV6 = 0x0800, 0x86dd
HOPOPTS, ROUTING, FRAGMENT, DSTOPTS = 0, 43, 44, 60
EXTENSIONS = (HOPOPTS, ROUTING, FRAGMENT, DSTOPTS)
ICMP, TCP, UDP, ICMP6, SCTP = 1, 6, 17, 58, 132
MAX_TAGS, MAX_EXTENSIONS = 4, 8


class Malformed(Exception):
    """Its argument is the name of the reason."""


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

    def fixed(self, at, header, short):
        """The fields of a header's fixed part; `short` is the reason when the packet ends inside it."""
        end = at + HEADERS[header].bytes
        if end > self.end:
            raise Malformed(short)
        if end > self.linear:
            raise Malformed("header-split")
        return HEADERS[header].fields(self.frame[at:end])

    def inside(self, short):
        """The reason for an incomplete header (RFC 7112)."""
        return "fragment-header" if self.fragment else short


def link(packet):
    """Ethernet and tags: the ethertype after them, and where its header begins."""
    at, tags = HEADERS["ETHER"].bytes, 0
    ethertype = HEADERS["ETHER"].fields(packet.frame[:at])["TYPE"]
    while ethertype in TPIDS:
        tags += 1
        if tags > MAX_TAGS:
            raise Malformed("vlan-too-deep")
        ethertype = packet.fixed(at, "TAG", "vlan-truncated")["TYPE"]
        at += HEADERS["TAG"].bytes
    return ethertype, at


def fragment(packet, offset, more, payload):
    """`offset` and `payload` in bytes."""
    if payload == 0 or (more and payload % 8) or offset + payload > 65535:
        raise Malformed("fragment-length")
    packet.fragment = "later" if offset else "first"


def ip4(packet, at):
    head = packet.fixed(at, "IP4", "ip4-truncated")
    version, header = head["VERSION"] >> 4, (head["VERSION"] & 15) * 4
    total, flags = head["LENGTH"], head["FRAGMENT"]
    if version != 4 or header < HEADERS["IP4"].bytes:
        raise Malformed("ip4-header")
    if total < header or at + total > len(packet.frame):
        raise Malformed("ip4-length")
    packet.family, packet.length, packet.end = 4, total, at + total
    packet.src, packet.dst = ipaddress.ip_address(head["FROM"]), ipaddress.ip_address(head["TO"])
    packet.hops, packet.proto = head["TTL"], head["PROTO"]
    offset, more = (flags & 0x1fff) * 8, bool(flags & 0x2000)
    if offset or more:
        fragment(packet, offset, more, total - header)
    return at + header


def ip6_fragment(packet, at, head):
    if packet.fragment_header:
        raise Malformed("ip6-ext-order")
    packet.fragment_header = True
    offset, more = head["OFFSET"] & 0xfff8, bool(head["OFFSET"] & 1)
    if offset or more:  # else it is atomic: a whole packet (RFC 6946)
        fragment(packet, offset, more, packet.end - at - HEADERS["FRAGMENT"].bytes)
    return at + HEADERS["FRAGMENT"].bytes


def extensions(packet, at):
    walked = 0
    while packet.proto in EXTENSIONS and packet.fragment != "later":
        if walked == MAX_EXTENSIONS:
            raise Malformed("ip6-ext-too-many")
        header = "FRAGMENT" if packet.proto == FRAGMENT else "EXT"
        head = packet.fixed(at, header, packet.inside("ip6-ext-truncated"))
        if packet.proto == HOPOPTS and walked:
            raise Malformed("ip6-ext-order")
        if packet.proto == FRAGMENT:
            at = ip6_fragment(packet, at, head)
        else:
            at += (head["LENGTH"] + 1) * 8
        if at > packet.end:
            raise Malformed(packet.inside("ip6-ext-truncated"))
        packet.proto = head["NEXT"]
        walked += 1
    return at


def ip6(packet, at):
    head, size = packet.fixed(at, "IP6", "ip6-truncated"), HEADERS["IP6"].bytes
    payload, following = head["LENGTH"], head["NEXT"]
    if head["VERSION"] >> 12 != 6:
        raise Malformed("ip6-header")
    if at + size + payload > len(packet.frame) or (payload == 0 and following == HOPOPTS):
        raise Malformed("ip6-length")
    packet.family, packet.length, packet.end = 6, size + payload, at + size + payload
    packet.src, packet.dst = ipaddress.ip_address(head["FROM"]), ipaddress.ip_address(head["TO"])
    packet.hops, packet.proto = head["HOPS"], following
    return extensions(packet, at + size)


def tcp(packet, at):
    header = (packet.fixed(at, "TCP", packet.inside("tcp-truncated"))["OFFSET"] >> 4) * 4
    if header < HEADERS["TCP"].bytes:
        raise Malformed("tcp-offset")
    if at + header > packet.end:
        raise Malformed(packet.inside("tcp-offset"))


def udp(packet, at):
    length = packet.fixed(at, "UDP", packet.inside("udp-truncated"))["LENGTH"]
    # In a fragment this is the length of the whole datagram.
    if length < HEADERS["UDP"].bytes or (not packet.fragment and at + length > packet.end):
        raise Malformed("udp-length")


def icmp6(packet, at):
    kind = packet.fixed(at, "ICMP", packet.inside("icmp6-truncated"))["TYPE"]
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
        packet.fixed(at, "SCTP", packet.inside("sctp-truncated"))
    elif packet.proto == ICMP and packet.family == 4:
        packet.fixed(at, "ICMP", packet.inside("icmp-truncated"))
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
