# SPDX-License-Identifier: GPL-2.0-only
"""The cases for frames without a service: how each is written, and the frames that scapy does not build."""
import ipaddress
import struct
import sys

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

import model

SRC4, DST4 = "192.0.2.1", "198.51.100.1"
SRC6, DST6 = "2001:db8:1::1", "2001:db8:2::1"
LL = "fe80::1"
MACS = {"src": "02:00:00:00:00:02", "dst": "02:00:00:00:00:01"}
NO_NEXT = 59

cases = []


class Case:
    def __init__(self, name, frame, overlay="", lenient=False, linear=None, iface=1):
        self.name, self.frame, self.overlay, self.lenient = name, bytes(frame), overlay, lenient
        self.linear, self.iface = linear, iface
        entries = [entry.split() for entry in overlay.split(", ") if entry]
        entries = [(kind, ipaddress.ip_network(net)) for kind, net in entries]
        self.verdict, self.reason, self.length, self.hit = model.judge(
            self.frame, entries, lenient, linear)

    def write(self, out):
        print(f"case {self.name}", file=out)
        if self.overlay:
            print(f"overlay {self.overlay}", file=out)
        if self.lenient:
            print("policy malformed-pass", file=out)
        if self.linear:
            print(f"linear {self.linear}", file=out)
        if self.iface != 1:
            print(f"iface {self.iface}", file=out)
        if self.hit:
            kind, net = self.hit
            print(f"hit {kind} {net.with_prefixlen}", file=out)
        print(f"frame {self.frame.hex()}", file=out)
        print(f"expect {self.verdict} {self.reason} {self.length}", file=out)


def add(name, frame, want=None, alone=False, **settings):
    """One case; unless `alone`, also with its source blocked and, if it is malformed, with its source
    allowed."""
    case = Case(name, frame, **settings)
    if want is not None and case.reason != want:
        sys.exit(f"cases.py: '{name}': the model says '{case.reason}', the case '{want}'")
    cases.append(case)
    packet, malformed = model.read(case.frame)
    if alone or settings or not packet.family:
        return
    block = packet.src if len(cases) % 2 else around(packet.src)
    cases.append(Case(f"{name}, source blocked", frame, overlay=f"block-from {block}"))
    if malformed:
        cases.append(Case(f"{name}, source allowed", frame, overlay=f"allow-from {packet.src}"))


def around(address):
    return ipaddress.ip_network((address, 24 if address.version == 4 else 48), strict=False)


# Building

def ether(payload, ethertype=None):
    return bytes(Ether(type=ethertype, **MACS) / payload if ethertype is not None
                 else Ether(**MACS) / payload)


def ip4(payload, **fields):
    return ether(IP(src=SRC4, dst=DST4, **fields) / payload)


def ip6(payload, **fields):
    return ether(IPv6(src=fields.pop("src", SRC6), dst=fields.pop("dst", DST6), **fields) / payload)


def udp(payload=b"payload.", **fields):
    return UDP(sport=1000, dport=2000, **fields) / Raw(payload)


def tcp(payload=b"", **fields):
    return TCP(sport=1000, dport=80, flags="S", **fields) / Raw(payload)


def put(frame, at, *values):
    """The frame with these bytes at this offset."""
    return frame[:at] + bytes(values) + frame[at + len(values):]


def put16(frame, at, value):
    return put(frame, at, value >> 8 & 255, value & 255)


def tagged(frame, *tags):
    """Tags are pairs of TPID and TCI, outermost first."""
    return frame[:12] + b"".join(struct.pack("!HH", *tag) for tag in tags) + frame[12:]


def raw4(payload, proto=17, fragment=0, total=None, ihl=5, version=4, options=b""):
    """An IPv4 packet with fields as given, valid or not."""
    total = 20 + len(options) + len(payload) if total is None else total
    head = struct.pack("!BBHHHBBH4s4s", version << 4 | ihl, 0, total, 1, fragment, 64, proto, 0,
                       ipaddress.ip_address(SRC4).packed, ipaddress.ip_address(DST4).packed)
    return ether(head + options + payload, 0x0800)


def raw6(payload, following=17, length=None, version=6, hops=64, src=SRC6, dst=DST6):
    length = len(payload) if length is None else length
    head = struct.pack("!IHBB16s16s", version << 28, length, following, hops,
                       ipaddress.ip_address(src).packed, ipaddress.ip_address(dst).packed)
    return ether(head + payload, 0x86dd)


def ext(following, units=0, fill=0):
    """A hop-by-hop, routing or destination options header of 8 + 8 * units bytes."""
    return bytes([following, units]) + bytes([fill]) * (6 + 8 * units)


def frag(following, offset=0, more=0, reserved=0, bits=0):
    """offset in units of 8 bytes; reserved: the second byte; bits: the two between offset and more"""
    return struct.pack("!BBHI", following, reserved, offset << 3 | bits << 1 | more, 0x01020304)


def chain(kinds, last=17, payload=None):
    """Extension headers in this order, each 8 bytes, then the payload: (first next header, bytes)."""
    out, following = payload if payload is not None else bytes(udp(b"")), last
    for kind in reversed(kinds):
        out = (frag(following) if kind == model.FRAGMENT else ext(following)) + out
        following = kind
    return following, out


def raw_udp(length, payload=b""):
    return struct.pack("!HHHH", 1000, 2000, length, 0) + payload


def raw_tcp(offset, options=b"", payload=b""):
    return struct.pack("!HHIIBBHHH", 1000, 80, 1, 0, offset << 4, 2, 1024, 0, 0) + options + payload
