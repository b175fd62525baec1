# SPDX-License-Identifier: GPL-2.0-only
"""Cases for policies with services: how each is written, and the packets of clients."""
import struct

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import (IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop,
                                IPv6ExtHdrRouting)
from scapy.layers.sctp import (SCTP, SCTPChunkCookieEcho, SCTPChunkData, SCTPChunkInit,
                               SCTPChunkShutdownComplete)
from scapy.packet import Raw

from balance_model import CAME, SCTP_PROTO, SEED, TCP_PROTO, UDP_PROTO, Hop, Service, link, one_hop

CLIENT = {4: "192.0.2.7", 6: "2001:db8:c::7"}
ROUTER = {4: "192.0.2.254", 6: "2001:db8:c::fe"}
SPORT = 40001
ERROR_HEAD = 8
TAGS = {"": (), ", a tag": ((0x8100, 7),), ", two tags": ((0x88a8, 5), (0x8100, 0xe007)),
        ", four tags": ((0x88a8, 5), (0x8100, 6), (0x8100, 7), (0x8100, 8))}

lines = []
services = {}


def emit(word, value):
    lines.append(f"balance-{word} {value}")


# Policies

def vips(number, *more):
    return [f"203.0.113.{number}", f"2001:db8:f::{number}", *more]


def define(*args, **fields):
    service = Service(*args, **fields)
    services[service.name] = service
    return service


def load(policy, used):
    emit("policy", f'seed "{SEED}"')
    for line in policy:
        emit("policy", line)
    for service in used:
        for line in service.policy():
            emit("policy", line)
    for service in used:
        for hop in service.nexthops():
            emit("hop", hop)


# Cases

def count(service, address, **by):
    names = {"completed": "checksum-completed"}
    words = " ".join(f"{names.get(name, name)} {n}" for name, n in by.items() if n)
    emit("count", f"{service.name} {address} {words}")


def length_of(packet):
    """Length of IP, as in its header."""
    raw = bytes(packet)
    return struct.unpack("!H", raw[2:4])[0] if raw[0] >> 4 == 4 else 40 + struct.unpack("!H", raw[4:6])[0]


def case(name, given, verdict, reason, length, *, out=None, service=None, address=None, dropped=False,
         settings=(), **events):
    emit("case", f"balance: {name}")
    for word, value in settings:
        emit(word, value)
    emit("frame", given.hex())
    if out is not None and out != given:
        emit("out", out.hex())
    if dropped:
        count(service, "-", **{reason: 1})
    elif address:
        both = {event: n for event, n in events.items() if event != "completed"}
        count(service, "-", packets=1, bytes=length, **events)
        count(service, address, packets=1, bytes=length, **both)
    emit("expect", f"{verdict} {reason} {length}")


def sent(name, service, packet, flow, *, after=None, tags=(), padding=b"", cut=False, settings=(),
         **events):
    """Is sent to the backend of its flow; `after`: the inner packet there, if more changes than the TTL; `cut`:
    without the bytes after the packet in its frame."""
    address = service.backend(flow)
    hop = service.backends[address][0]
    after = one_hop(packet) if after is None else after
    out = hop.frame(service.encapsulated(address, after, service.flow_hash(flow)),
                    b"" if cut else padding)
    case(name, link(CAME, tags, bytes(packet), padding), hop.verdict(), "service", length_of(packet),
         out=out, service=service, address=address, settings=settings, **events)


def passed(name, packet, reason="default", tags=(), settings=()):
    case(name, link(CAME, tags, bytes(packet)), "pass", reason, length_of(packet), settings=settings)


def dropped(name, packet, reason, service=None, tags=(), settings=()):
    case(name, link(CAME, tags, bytes(packet)), "drop", reason, length_of(packet), service=service,
         dropped=service is not None, settings=settings)


def turned(name, packet, answer, reason, tags=(), padding=b"", settings=()):
    """Is answered to the sender with `answer`."""
    head = {"src": CAME["dst"], "dst": CAME["src"]}
    case(name, link(CAME, tags, bytes(packet), padding), "tx", reason, length_of(packet),
         out=link(head, tags, bytes(answer), padding if reason == "service-echo" else b""),
         settings=settings)


# Packets

def ip(service, family, **fields):
    if family == 4:
        return IP(src=fields.pop("src", CLIENT[4]), dst=fields.pop("dst", service.vip(4)),
                  id=fields.pop("id", 0x1234), **fields)
    return IPv6(src=fields.pop("src", CLIENT[6]), dst=fields.pop("dst", service.vip(6)),
                fl=fields.pop("fl", 0xabcde), **fields)


def flow_of(service, family, proto, sport=SPORT, dport=80, src=None, dst=None):
    return (src or CLIENT[family], dst or service.vip(family), sport, dport, proto)


def tcp(flags="A", payload=b"", dport=80, sport=SPORT, **fields):
    return TCP(sport=sport, dport=dport, flags=flags, seq=1000, ack=2000, **fields) / Raw(payload)


def udp(payload=b"", dport=80, sport=SPORT, **fields):
    return UDP(sport=sport, dport=dport, **fields) / Raw(payload)


def sctp(chunk, tag=0x11223344, dport=80, sport=SPORT):
    return SCTP(sport=sport, dport=dport, tag=tag) / chunk


def counting(size):
    return bytes(n * 7 + 1 & 255 for n in range(size))


def built(packet):
    """With all fields that scapy computes."""
    return packet.__class__(bytes(packet))


def ext(service, kinds, proto, payload, **fields):
    """IPv6 with extension headers; scapy gets the number of each, so that the last is right too."""
    numbers = {IPv6ExtHdrHopByHop: 0, IPv6ExtHdrRouting: 43, IPv6ExtHdrFragment: 44,
               IPv6ExtHdrDestOpt: 60}
    packet = ip(service, 6, nh=numbers[type(kinds[0])], **fields)
    for n, kind in enumerate(kinds):
        kind.nh = numbers[type(kinds[n + 1])] if n + 1 < len(kinds) else proto
        packet = packet / kind
    return packet / payload


# Cases for every mode

def payloads(family, few):
    """Name, protocol, the bytes after IP, how it is counted."""
    yield "tcp syn", TCP_PROTO, tcp("S", options=[("MSS", 1460), ("SAckOK", b"")]), {"opened": 1}
    yield "udp", UDP_PROTO, udp(b"question"), {}
    yield "tcp odd", TCP_PROTO, tcp("PA", counting(333)), {}
    yield "sctp data", SCTP_PROTO, sctp(SCTPChunkData(data=counting(55))), {}
    yield "udp 8001", UDP_PROTO, udp(counting(8001)), {}
    if few:
        return
    yield "tcp syn with ecn", TCP_PROTO, tcp("SEC"), {"opened": 1}
    yield "tcp syn ack", TCP_PROTO, tcp("SA"), {}
    yield "tcp ack", TCP_PROTO, tcp("A"), {}
    yield "tcp reset", TCP_PROTO, tcp("R"), {}
    yield "tcp fin", TCP_PROTO, tcp("FA"), {}
    yield "tcp null", TCP_PROTO, tcp(""), {}
    yield "tcp data", TCP_PROTO, tcp("PA", b"GET / HTTP/1.0\r\n\r\n"), {}
    yield "tcp checksum zero", TCP_PROTO, ZERO[family], {}
    yield "udp empty", UDP_PROTO, udp(), {}
    yield "udp odd", UDP_PROTO, udp(counting(511)), {}
    yield "udp 1400", UDP_PROTO, udp(counting(1400)), {}
    yield "sctp init", SCTP_PROTO, sctp(SCTPChunkInit(init_tag=7), tag=0), {"opened": 1}
    yield "sctp cookie", SCTP_PROTO, sctp(SCTPChunkCookieEcho(cookie=b"cookie")), {}
    yield "sctp shutdown", SCTP_PROTO, sctp(SCTPChunkShutdownComplete()), {}
    if family == 4:
        yield "udp without checksum", UDP_PROTO, udp(counting(33), chksum=0), {}


def zero_checksum(packet):
    """TCP with the checksum 0, which is valid."""
    whole = built(packet / tcp("PA", bytes(2)))
    return tcp("PA", struct.pack("!H", whole[TCP].chksum))


ZERO = {4: zero_checksum(IP(src=CLIENT[4], dst="203.0.113.1")),
        6: zero_checksum(IPv6(src=CLIENT[6], dst="2001:db8:f::1"))}


def hop(number, **fields):
    return Hop(number=number, **fields)
