# SPDX-License-Identifier: GPL-2.0-only
"""Cases for policies with services: frames as clients send them, and the expected output frames, which
scapy builds. The format is described in balance.c."""
import struct

from scapy.layers.inet import (ICMP, IP, TCP, UDP, IPOption_LSRR, IPOption_NOP, IPOption_RR, IPOption_SSRR)
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NS,
                                ICMPv6PacketTooBig, ICMPv6ParamProblem, ICMPv6TimeExceeded, IPv6,
                                IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop,
                                IPv6ExtHdrRouting)
from scapy.layers.l2 import ARP, Ether
from scapy.layers.sctp import (SCTP, SCTPChunkCookieEcho, SCTPChunkData, SCTPChunkInit,
                               SCTPChunkShutdownComplete)
from scapy.packet import Raw

from balance_model import (CAME, HERE, SCTP_PROTO, SEED, TCP_PROTO, UDP_PROTO, Hop, Service, link,
                           one_hop, ones_complement, pseudo_sum)

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


def mode_services():
    number = 0
    for mode, outer in (("dr", 4), ("ipip", 4), ("ipip", 6), ("gue", 4), ("gue", 6)):
        for device, vlan in (("in", 0), ("out", 0), ("in", 77), ("out", 4094)):
            number += 1
            address = f"10.1.0.{number}" if outer == 4 else f"2001:db8:b::{number:x}"
            name = f"{mode}{outer if mode != 'dr' else ''}-{device}{vlan or ''}"
            yield define(name, vips(number), {address: Hop(device, vlan, number=number)}, mode)


def mode_cases(service):
    """All cases where frames return untagged; for other egresses those that could differ."""
    for family in 4, 6:
        about = f"{service.name}: {family}"
        ZERO[family] = zero_checksum(ip(service, family))
        few = not service.name.endswith("-in")
        for name, proto, payload, events in payloads(family, few):
            sent(f"{about} {name}", service, ip(service, family) / payload,
                 flow_of(service, family, proto), **events)
        for name, tags in TAGS.items():
            sent(f"{about} udp{name}", service, ip(service, family) / udp(b"tagged"),
                 flow_of(service, family, UDP_PROTO), tags=tags)
        sent(f"{about} padding", service, ip(service, family) / tcp(), flow_of(service, family, TCP_PROTO),
             padding=b"padding")
        if few:
            continue
        header_cases(about, service, family)
        whole_cases(about, service, family)
        quote_cases(about, service, family)
    if few:
        return
    options_cases(service)
    extension_cases(service)
    fragment_first_cases(service)


def header_cases(about, service, family):
    flow = flow_of(service, family, UDP_PROTO)
    hops, field = ("ttl", "tos") if family == 4 else ("hlim", "tc")
    for n in 2, 3, 128, 255:
        sent(f"{about} {n} hops", service, ip(service, family, **{hops: n}) / udp(b"hops"), flow)
    for n in 0, 1:
        late = ip(service, family, **{hops: n}) / udp(b"hops")
        turned(f"{about} {n} hops", late, time_exceeded_answer(late), "service-ttl")
        for payload in tcp("S"), tcp("RA"), udp(counting(3000)):
            late = ip(service, family, **{hops: n}) / payload
            turned(f"{about} {n} hops {payload.summary()}", late, time_exceeded_answer(late), "service-ttl")
    for n in 1, 2, 3, 0xb8, 0xff:
        sent(f"{about} tos {n}", service, ip(service, family, **{field: n}) / udp(b"tos"), flow)
    if family == 6:
        for n in 0, 0xfffff:
            sent(f"{about} flow label {n}", service, ip(service, 6, fl=n) / udp(b"label"), flow)
        return
    for n in 0xfeff, 0xfefe, 0xff00, 0xfffe, 0x0000, 0x0100:
        packet = ip(service, 4, id=0) / udp(b"header")
        sum_without = 0xffff ^ built(packet)[IP].chksum
        packet[IP].id = ones_complement(0xffff - n - sum_without)
        assert built(packet)[IP].chksum == n
        sent(f"{about} header checksum {n:#06x}", service, packet, flow)
        if not n:
            after = one_hop(packet)
            packet[IP].chksum = 0xffff
            sent(f"{about} header checksum 0xffff for 0", service, packet, flow, after=after)
    for flags in "", "DF", "evil":
        sent(f"{about} flags '{flags}'", service, ip(service, 4, flags=flags) / udp(b"flags"), flow)


def options_cases(service):
    flow = flow_of(service, 4, TCP_PROTO)
    for n in 1, 10:
        packet = ip(service, 4, options=[IPOption_NOP()] * 4 * n)
        sent(f"{service.name}: {4 * n} bytes of options", service, packet / tcp("PA", b"abc"), flow)
    sent(f"{service.name}: record route", service,
         ip(service, 4, options=[IPOption_RR(routers=["0.0.0.0"] * 3)]) / tcp("PA", b"abc"), flow)
    # The checksum of TCP is for the last address of a source route, which is not the VIP: RFC 1122.
    whole = built(ip(service, 4, dst="198.51.100.9") / tcp("PA", b"abc"))
    sent(f"{service.name}: source route", service,
         ip(service, 4, options=[IPOption_LSRR(routers=["198.51.100.9"])])
         / tcp("PA", b"abc", chksum=whole[TCP].chksum), flow)


def extension_cases(service):
    flow = flow_of(service, 6, TCP_PROTO)
    for name, kinds in {
            "destination options": lambda: [IPv6ExtHdrDestOpt()],
            "hop by hop": lambda: [IPv6ExtHdrHopByHop()],
            "atomic fragment": lambda: [IPv6ExtHdrFragment(id=9)],
            "used routing header": lambda: [IPv6ExtHdrRouting(segleft=0)],
            "routing header": lambda: [IPv6ExtHdrRouting(segleft=1, addresses=["2001:db8::99"])],
            "four": lambda: [IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt(), IPv6ExtHdrRouting(segleft=0),
                             IPv6ExtHdrDestOpt()]}.items():
        sent(f"{service.name}: {name}", service, ext(service, kinds(), TCP_PROTO, tcp("PA", b"abc")),
             flow)
        sent(f"{service.name}: {name}, syn", service, ext(service, kinds(), TCP_PROTO, tcp("S")), flow,
             opened=1)


def fragment_first_cases(service):
    whole = bytes(ip(service, 4) / udp(counting(800)))
    first = ip(service, 4, flags="MF", proto=17) / Raw(whole[20:20 + 400])
    sent(f"{service.name}: first fragment of 4", service, first, flow_of(service, 4, UDP_PROTO))
    whole = bytes(ip(service, 6) / udp(counting(800)))
    first = ext(service, [IPv6ExtHdrFragment(m=1, id=5)], UDP_PROTO, Raw(whole[40:40 + 400]))
    sent(f"{service.name}: first fragment of 6", service, first, flow_of(service, 6, UDP_PROTO))


# Checksums

def partial_of(packet, field):
    """The same with only the sum of the pseudo-header as its checksum."""
    whole = built(packet)
    length = len(bytes(whole[field]))
    proto = TCP_PROTO if field is TCP else UDP_PROTO
    left = packet.copy()
    left[field].chksum = pseudo_sum(packet.src, packet.dst, proto, length)
    return left


def looking_partial(packet, field, at):
    """A complete packet whose checksum happens to be the sum of its pseudo-header: two zero bytes of its
    payload, at an even offset, are chosen for that."""
    whole = built(packet)
    proto = TCP_PROTO if field is TCP else UDP_PROTO
    pseudo = pseudo_sum(packet.src, packet.dst, proto, len(bytes(whole[field])))
    word = ones_complement(whole[field].chksum - pseudo)
    payload = bytearray(packet[Raw].load)
    payload[at:at + 2] = struct.pack("!H", word)
    packet[Raw].load = bytes(payload)
    packet = built(packet)
    again = built(packet.__class__(bytes(packet)))
    del again[field].chksum
    assert packet[field].chksum == pseudo == built(again)[field].chksum
    return packet


def whole_cases(about, service, family):
    for field, proto, make in (TCP, TCP_PROTO, tcp_data), (UDP, UDP_PROTO, udp):
        name, flow = f"{about} {field.__name__.lower()}", flow_of(service, family, proto)
        for size in 2, 33, 512 - 20, 512, 1025, 8000:
            packet = ip(service, family) / make(counting(size))
            given = partial_of(packet, field)
            sent(f"{name} partial, {size} bytes", service, given, flow, after=one_hop(packet),
                 completed=1)
        generic_case(f"{name} partial in generic mode", service, packet, field, flow)
        packet = looking_partial(ip(service, family) / make(bytes(40)), field, 4)
        sent(f"{name} whole but looking partial", service, packet, flow)


def generic_case(name, service, packet, field, flow):
    """The partial checksum is completed on output. The outer checksum covers the completed packet."""
    hop, given = service.backends[service.backend(flow)][0], partial_of(packet, field)
    outer_packet = built(service.encapsulated(service.backend(flow), one_hop(packet), service.flow_hash(flow)))
    raw = bytearray(bytes(outer_packet))
    length, left = length_of(packet), bytes(one_hop(given))
    raw[len(raw) - length:] = left
    case(name, link(CAME, (), bytes(given)), hop.verdict(), "service", length,
         out=hop.frame(outer_packet.__class__(bytes(raw))), service=service,
         address=service.backend(flow), settings=[("generic", 1)])


def tcp_data(payload):
    return tcp("PA", payload)


def partial_cases(service):
    """Checksums that are not partial, or in unusual places."""
    for family in 4, 6:
        about = f"{service.name}: {family}"
        syn = ip(service, family) / tcp("S")
        sent(f"{about} partial syn", service, partial_of(syn, TCP), flow_of(service, family, TCP_PROTO),
             after=one_hop(syn), opened=1, completed=1)
        packet = ip(service, family) / udp(counting(60))
        for name, tags in TAGS.items():
            sent(f"{about} partial{name}, padding", service, partial_of(packet, UDP),
                 flow_of(service, family, UDP_PROTO), after=one_hop(packet), tags=tags,
                 padding=b"odd", completed=1)
        zero = ip(service, family) / udp(bytes(4))
        word = built(zero)[UDP].chksum  # makes the sum all ones: the checksum is 0, written as 0xffff
        zero[Raw].load = struct.pack("!HH", word, 0)
        assert built(zero)[UDP].chksum == 0xffff
        sent(f"{about} partial that becomes 0", service, partial_of(zero, UDP),
             flow_of(service, family, UDP_PROTO), after=one_hop(zero), completed=1)
    packet = ip(service, 4, options=[IPOption_NOP()] * 8) / tcp("PA", b"abc")
    sent(f"{service.name}: partial after options", service, partial_of(packet, TCP),
         flow_of(service, 4, TCP_PROTO), after=one_hop(packet), completed=1)
    packet = ext(service, [IPv6ExtHdrDestOpt()], TCP_PROTO, tcp("PA", b"abc"))
    sent(f"{service.name}: partial after an extension header", service, partial_of(packet, TCP),
         flow_of(service, 6, TCP_PROTO), after=one_hop(packet), completed=1)


def surplus_cases(service):
    """IP may be longer than UDP (RFC 9868): the checksum does not cover the rest."""
    for family in 4, 6:
        flow = flow_of(service, family, UDP_PROTO)
        datagram = bytes(ip(service, family) / udp(counting(40)))[20 if family == 4 else 40:]
        for extra in b"surplus!", b"odd":
            packet = built(ip(service, family, **PROTO_UDP[family]) / Raw(datagram + extra))
            sent(f"{service.name}: {family} {len(extra)} bytes after UDP", service, packet, flow)
        # The checksum looks partial for the length of IP, but the datagram is shorter and complete.
        size = 8 + 32 + 8
        packet = ip(service, family) / udp(bytes(32))
        pseudo = pseudo_sum(packet.src, packet.dst, UDP_PROTO, size)
        word = ones_complement(built(packet)[UDP].chksum - pseudo)
        packet[Raw].load = struct.pack("!H", word) + bytes(30)
        datagram = bytes(packet)[20 if family == 4 else 40:]
        assert datagram[6:8] == struct.pack("!H", pseudo)
        packet = built(ip(service, family, **PROTO_UDP[family]) / Raw(datagram + counting(8)))
        sent(f"{service.name}: {family} looks partial with the bytes after UDP", service, packet, flow)


PROTO_UDP = {4: {"proto": 17}, 6: {"nh": 17}}


def outer_zero_cases(service):
    """GUE in IPv6 whose checksum sums up to 0 is sent with 0xffff."""
    flow = flow_of(service, 4, UDP_PROTO)
    packet = ip(service, 4) / udp(bytes(8), chksum=0)
    address = service.backend(flow)
    outer = built(service.encapsulated(address, one_hop(packet), service.flow_hash(flow)))
    packet[Raw].load = struct.pack("!H", outer[UDP].chksum) + bytes(6)
    outer = built(service.encapsulated(address, one_hop(packet), service.flow_hash(flow)))
    assert outer[UDP].chksum == 0xffff
    sent(f"{service.name}: checksum of 0", service, packet, flow)


# ICMP

def error(family, kind="unreachable", **fields):
    if family == 4:
        return ICMP(**{"unreachable": {"type": 3, "code": 1}, "frag needed": {"type": 3, "code": 4},
                       "exceeded": {"type": 11}, "parameter": {"type": 12}}[kind], **fields)
    return {"unreachable": ICMPv6DestUnreach, "frag needed": ICMPv6PacketTooBig,
            "exceeded": ICMPv6TimeExceeded, "parameter": ICMPv6ParamProblem}[kind](**fields)


def answer_of(service, family, payload, **fields):
    """A packet of the backend to the client that a router has dropped."""
    fields = {"src": service.vip(family), "dst": CLIENT[family], **fields}
    return bytes(ip(service, family, **fields) / payload)


def quoting(service, family, quote, kind="unreachable", **fields):
    return (ip(service, family, src=ROUTER[family], **fields) / error(family, kind) / Raw(quote))


def quote_cases(about, service, family):
    header = 20 if family == 4 else 40
    answers = {"tcp": (TCP_PROTO, TCP(sport=80, dport=SPORT, flags="SA") / Raw(counting(40))),
               "udp": (UDP_PROTO, UDP(sport=80, dport=SPORT) / Raw(counting(40))),
               "sctp": (SCTP_PROTO, SCTP(sport=80, dport=SPORT, tag=5) / Raw(counting(40)))}
    for name, (proto, payload) in answers.items():
        flow, quote = flow_of(service, family, proto), answer_of(service, family, payload)
        for size in 8, 9, 28, len(quote):
            sent(f"{about} icmp quotes {size} bytes of {name}", service,
                 quoting(service, family, quote[:header + size]), flow, quoted=1)
    for kind in "frag needed", "exceeded", "parameter":
        sent(f"{about} icmp {kind}", service, quoting(service, family, quote[:header + 8], kind), flow,
             quoted=1)


def quote_more_cases(service):
    """Unusual quotes that are followed, and those that are not."""
    payload = TCP(sport=80, dport=SPORT, flags="PA") / Raw(counting(40))
    for n in 4, 40:
        quote = answer_of(service, 4, payload, options=[IPOption_NOP()] * n)
        flow = flow_of(service, 4, TCP_PROTO)
        sent(f"icmp quotes {n} bytes of options", service, quoting(service, 4, quote[:20 + n + 8]), flow,
             quoted=1)
        for size in 20 + n + 7, 20 + n, 20 + n - 1, 21:
            passed(f"icmp quotes {n} bytes of options, {size} in all", quoting(service, 4, quote[:size]))
        sent(f"icmp in options, quotes {n} bytes of options", service,
             quoting(service, 4, quote[:20 + n + 8], options=[IPOption_NOP()] * 40), flow, quoted=1)
    first = answer_of(service, 4, payload, flags="MF")
    sent("icmp quotes a first fragment", service, quoting(service, 4, first[:28]), flow, quoted=1)
    syn = answer_of(service, 4, TCP(sport=80, dport=SPORT, flags="S"))
    sent("icmp quotes a syn: opens nothing", service, quoting(service, 4, syn), flow, quoted=1)
    dropped("icmp without hops", quoting(service, 4, syn, ttl=1), "service-ttl-silent", service)
    for family, header in (4, 20), (6, 40):
        quote_not_cases(service, family, header, answer_of(service, family, payload))


def quote_not_cases(service, family, header, quote):
    for size in 0, 1, header - 1, header, header + 7:
        passed(f"{family} icmp quotes {size} bytes", quoting(service, family, quote[:size]))
    elsewhere = {4: "203.0.113.250", 6: "2001:db8:f::fa"}[family]
    for name, other in {
            "another address": answer_of(service, family, tcp(sport=80), src=elsewhere),
            "another port": answer_of(service, family, tcp(sport=81)),
            "a client's packet": bytes(ip(service, family) / tcp("S")),
            "another protocol": answer_of(service, family, Raw(bytes(20)),
                                          **({"proto": 47} if family == 4 else {"nh": 47})),
            "another error": answer_of(service, family, error(family) / Raw(quote)),
            "an echo": answer_of(service, family, ICMP() if family == 4 else ICMPv6EchoRequest()),
            "another version": bytes([quote[0] ^ 0x20]) + quote[1:],
            "no version": b"\0" + quote[1:]}.items():
        passed(f"{family} icmp quotes {name}", quoting(service, family, other))
    foreign = ip(service, family, src=ROUTER[family], dst=elsewhere) / error(family) / Raw(quote)
    passed(f"{family} icmp to another address", foreign)
    if family == 4:
        passed("4 icmp quotes a later fragment", quoting(
            service, 4, answer_of(service, 4, Raw(bytes(20)), frag=9, proto=6)))
        for words in range(5):
            passed(f"4 icmp quotes a header of {words} words",
                   quoting(service, 4, bytes([0x40 | words]) + quote[1:]))
        fragment = quoting(service, 4, quote[:32], flags="MF")
        passed("4 icmp that is a first fragment itself", fragment)
    else:
        passed("6 icmp quotes a fragment", quoting(service, 6, bytes(ext(
            service, [IPv6ExtHdrFragment(m=1)], TCP_PROTO, Raw(bytes(24)), src=service.vip(6),
            dst=CLIENT[6]))))


def echo(service, family, request, **fields):
    """Request and answer, built by scapy."""
    packet = ip(service, family, **fields)
    back = ip(service, family, **fields)
    back.src, back.dst = packet.dst, packet.src
    if family == 4:
        back.ttl = 64
        return packet / ICMP(type=8, **request[0]) / Raw(request[1]), (
            back / ICMP(type=0, **request[0]) / Raw(request[1]))
    back.hlim = 64
    return packet / ICMPv6EchoRequest(**request[0], data=request[1]), (
        back / ICMPv6EchoReply(**request[0], data=request[1]))


def echo_cases(service):
    for family in 4, 6:
        hops, field = ("ttl", "tos") if family == 4 else ("hlim", "tc")
        requests = {"empty": ({"id": 7, "seq": 1}, b""), "odd": ({"id": 7, "seq": 1}, counting(57)),
                    "all ones": ({"id": 0xffff, "seq": 0xffff}, b"\xff" * 32),
                    "all zeros": ({"id": 0, "seq": 0}, bytes(32)),
                    "zeros, empty": ({"id": 0, "seq": 0}, b""),
                    "1400": ({"id": 7, "seq": 1}, counting(1400)),
                    "8000": ({"id": 7, "seq": 1}, counting(8000))}
        for name, request in requests.items():
            turned(f"{family} echo, {name}", *echo(service, family, request), "service-echo")
        if family == 4:
            # The sum of this one is all ones and not 0; an answer with 0xffff is as valid as one with 0.
            ask, back = echo(service, 4, ({"id": 0, "seq": 0}, b"\xff\xff"))
            back[ICMP].chksum = 0xffff
            turned("4 echo, sum of all ones", ask, back, "service-echo")
        request = requests["odd"]
        for name, tags in TAGS.items():
            turned(f"{family} echo{name}", *echo(service, family, request), "service-echo", tags=tags,
                   padding=b"padding")
        for n in 0, 1, 63, 64, 65, 255:
            turned(f"{family} echo, {n} hops", *echo(service, family, request, **{hops: n}),
                   "service-echo")
        turned(f"{family} echo, tos", *echo(service, family, request, **{field: 0xbb}), "service-echo")
        echo_not_cases(service, family, request)
    turned("4 echo, options", *echo(service, 4, request, options=[IPOption_NOP()] * 8), "service-echo")


def echo_not_cases(service, family, request):
    elsewhere = {4: "203.0.113.250", 6: "2001:db8:f::fa"}[family]
    ask = echo(service, family, request)[0]
    passed(f"{family} echo to another address", echo(service, family, request, dst=elsewhere)[0])
    own = [("own", f"203.0.113.7 {CLIENT[family]} 2001:db8:ffff::1")]
    dropped(f"{family} echo from an address of this host", ask, "service-echo-silent", settings=own)
    turned(f"{family} echo from another host", *echo(service, family, request), "service-echo",
           settings=[("own", "203.0.113.7 2001:db8:ffff::1")])
    wrong = bytearray(bytes(ask))
    wrong[-1] ^= 4
    dropped(f"{family} echo with a wrong checksum", ask.__class__(bytes(wrong)), "service-echo-silent")
    passed(f"{family} echo answer", echo(service, family, request)[1].__class__(
        bytes(ip(service, family) / (ICMP(type=0) if family == 4 else ICMPv6EchoReply()))))
    for source in {4: ("0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.1", "240.0.0.1"),
                   6: ("::", "ff02::1", "::1")}[family]:
        dropped(f"{family} echo from {source}", echo(service, family, request, src=source)[0],
                "service-martian")
    for name, head in {"to all": {"dst": "ff:ff:ff:ff:ff:ff", "src": CAME["src"]},
                       "to a group": {"dst": "33:33:00:00:00:01", "src": CAME["src"]},
                       "from a group": {"dst": CAME["dst"], "src": "01:00:5e:00:00:01"}}.items():
        case(f"{family} echo, frame {name}", link(head, (), bytes(ask)), "pass", "default",
             length_of(ask))
    if family == 4:
        passed("4 echo with a code", ip(service, 4) / ICMP(type=8, code=1))
        passed("4 echo, first fragment", ip(service, 4, flags="MF") / ICMP() / Raw(bytes(8)))
        passed("4 timestamp", ip(service, 4) / ICMP(type=13, ts_ori=1, ts_rx=2, ts_tx=3))
    else:
        passed("6 neighbour solicitation", ip(service, 6, hlim=255) / ICMPv6ND_NS(tgt=service.vip(6)),
               "neighbour")
        passed("6 echo of protocol 1", ip(service, 6, nh=1) / Raw(bytes(ask[ICMPv6EchoRequest])))


# Size

def error_answer(packet, icmp, icmp6):
    """From the VIP, to the sender, with a quote of the packet."""
    raw = bytes(packet)
    if packet.version == 4:
        header = (raw[0] & 15) * 4
        return IP(src=packet.dst, dst=packet.src, id=0, flags="DF", ttl=64) / icmp / Raw(raw[:header + 8])
    return IPv6(src=packet.dst, dst=packet.src, hlim=64) / icmp6 / Raw(raw[:48])


def too_big_answer(packet, mtu):
    return error_answer(packet, ICMP(type=3, code=4, nexthopmtu=mtu), ICMPv6PacketTooBig(mtu=mtu))


def time_exceeded_answer(packet):
    return error_answer(packet, ICMP(type=11, code=0), ICMPv6TimeExceeded(code=0))


def size_cases(service, over):
    """over: bytes of the outer headers."""
    mtu = 1500
    for family, header in (4, 28), (6, 48):
        fits = mtu - over - header
        flow = flow_of(service, family, UDP_PROTO)
        about = f"{service.name}: {family}"
        flags = [{"flags": "DF"}, {"flags": ""}] if family == 4 else [{}]
        for fields in flags:
            sent(f"{about} of the right size {fields}", service,
                 ip(service, family, **fields) / udp(counting(fits)), flow)
            for more in 1, 2, 3000:
                packet = ip(service, family, **fields) / udp(counting(fits + more))
                turned(f"{about} too big by {more} {fields}", packet, too_big_answer(packet, mtu - over),
                       "service-too-big")
        for name, tags in TAGS.items():
            turned(f"{about} too big{name}, padding", packet, too_big_answer(packet, mtu - over),
                   "service-too-big", tags=tags, padding=b"padding")
        data = ip(service, family) / tcp("PA", counting(fits + 60))
        turned(f"{about} too big tcp", data, too_big_answer(data, mtu - over), "service-too-big")
        reset = ip(service, family) / tcp("RA", counting(fits + 60))
        turned(f"{about} too big reset", reset, too_big_answer(reset, mtu - over), "service-too-big")
        late = ip(service, family, **{"ttl" if family == 4 else "hlim": 1}) / udp(counting(fits + 1))
        turned(f"{about} too big, no hops", late, time_exceeded_answer(late), "service-ttl")
        for name, tags in TAGS.items():
            turned(f"{about} no hops{name}, padding", late, time_exceeded_answer(late), "service-ttl",
                   tags=tags, padding=b"padding")
        size_silent_cases(service, family, about, fits)
    packet = ip(service, 4, options=[IPOption_NOP()] * 40) / udp(counting(fits + 1))
    turned(f"{service.name}: too big after options", packet, too_big_answer(packet, mtu - over),
           "service-too-big")


def size_silent_cases(service, family, about, fits):
    reason = "service-too-big-silent"
    quote = answer_of(service, family, UDP(sport=80, dport=SPORT) / Raw(counting(fits + 60)))
    dropped(f"{about} too big icmp", quoting(service, family, quote), reason, service)
    for source in {4: ("0.0.0.0", "255.255.255.255", "224.0.0.9", "127.1.2.3"),
                   6: ("::", "::1", "ff02::1")}[family]:
        dropped(f"{about} too big from {source}",
                ip(service, family, src=source) / udp(counting(fits + 1)), "service-martian")
    for name, packet in {"fits": ip(service, family) / udp(b"abc"), "opens": ip(service, family) / tcp(),
                         "too big": ip(service, family) / udp(counting(fits + 1))}.items():
        case(f"{about} {name}, in a frame to all",
             link({"dst": "ff:ff:ff:ff:ff:ff", "src": CAME["src"]}, (), bytes(packet)), "pass", "default",
             length_of(packet))


def martian_cases(service, other):
    """Sources that no outside host can have. The addresses next to them are valid, and served."""
    for family in 4, 6:
        bad = {4: ["0.0.0.0", "127.0.0.1", "127.255.255.255", "224.0.0.1", "239.1.2.3", "240.0.0.1",
                   "255.255.255.255"],
               6: ["::", "::1", "ff02::1", "ff0e::5"]}[family]
        good = {4: ["1.0.0.1", "126.255.255.255", "128.0.0.1", "223.255.255.255", "203.0.113.250"],
                6: ["::2", "fe80::7", "2001:db8:f::fa", "fe00::1"]}[family]
        for source in [*bad, service.vip(family), other.vip(family)]:
            vip = source not in bad
            about = f"{family} from {'a VIP' if vip else source}"
            for name, payload in {"syn": tcp("S"), "udp": udp(b"x"), "reset": tcp("R"),
                                  "sctp": sctp(SCTPChunkInit(), tag=0)}.items():
                dropped(f"martian: {about}, {name}", ip(service, family, src=source) / payload,
                        "service-martian")
            dropped(f"martian: {about}, echo",
                    echo(service, family, ({"id": 1, "seq": 2}, b"ping"), src=source)[0],
                    "service-martian")
            quote = answer_of(service, family, TCP(sport=80, dport=SPORT), dst=source)
            packet = quoting(service, family, quote)
            packet.src = source
            dropped(f"martian: {about}, icmp", packet, "service-martian")
        for source in bad + [service.vip(family)]:
            dropped(f"martian: {family} from {source}, ack", ip(service, family, src=source) / tcp("A"),
                    "service-martian")
        sent(f"martian: {family} from another VIP, ack", service,
             ip(service, family, src=other.vip(family)) / tcp("A"),
             flow_of(service, family, TCP_PROTO, src=other.vip(family)))
        for source in good:
            sent(f"no martian: {family} from {source}", service, ip(service, family, src=source) / udp(b"x"),
                 flow_of(service, family, UDP_PROTO, src=source))


def routed_echo_cases(service):
    """An echo request in transit is not answered."""
    for kinds, on_the_way in (([IPv6ExtHdrRouting(segleft=1, addresses=["2001:db8::99"])], True),
                              ([IPv6ExtHdrRouting(segleft=255, addresses=["2001:db8::99"])], True),
                              ([IPv6ExtHdrDestOpt(), IPv6ExtHdrRouting(type=4, segleft=2)], True),
                              ([IPv6ExtHdrRouting(segleft=0, addresses=["2001:db8::99"])], False),
                              ([IPv6ExtHdrDestOpt()], False)):
        ask = built(ext(service, kinds, 58, ICMPv6EchoRequest(id=1, seq=2, data=b"ping")))
        back = built(ext(service, kinds, 58, ICMPv6EchoReply(id=1, seq=2, data=b"ping"), hlim=64))
        back.src, back.dst = ask.dst, ask.src
        name = f"6 echo after {kinds[-1].name} with {getattr(kinds[-1], 'segleft', 0)} left"
        if on_the_way:
            passed(name, ask)
            continue
        back[ICMPv6EchoReply].cksum = (ask[ICMPv6EchoRequest].cksum or 0) - 0x0100
        turned(name, ask, back, "service-echo")
    for route in IPOption_LSRR, IPOption_SSRR:
        request = {"id": 1, "seq": 2}, b"ping"
        for pointer, on_the_way in (4, True), (8, False):
            options = [IPOption_NOP(), route(routers=["198.51.100.9"], pointer=pointer)]
            ask, back = echo(service, 4, request, options=options)
            name = f"4 echo with {route.__name__} at {pointer}"
            if on_the_way:
                passed(name, ask)
            else:
                turned(name, ask, back, "service-echo")
    turned("4 echo, record route", *echo(service, 4, ({"id": 1, "seq": 2}, b"ping"), options=[
        IPOption_RR(routers=["0.0.0.0"] * 3)]), "service-echo")


def size_fragment_cases(service, over):
    """A first fragment is answered, whatever identifies its flow, and a later one is not (RFC 1122)."""
    mtu, size = 1500 - over, (1500 - over + 16) // 8 * 8
    for family in 4, 6:
        about, later = f"{service.name}: {family} too big", Raw(counting(size))
        raw = bytes(ip(service, family) / udp(counting(2000)))
        if family == 4:
            first = ip(service, 4, flags="MF", proto=17) / Raw(raw[20:20 + size])
            later = ip(service, 4, flags="MF", proto=17, frag=size // 8) / later
        else:
            first = ext(service, [IPv6ExtHdrFragment(m=1)], UDP_PROTO, Raw(raw[40:40 + size]))
            later = ext(service, [IPv6ExtHdrFragment(m=1, offset=size // 8)], UDP_PROTO, later)
        turned(f"{about} first fragment", first, too_big_answer(first, mtu), "service-too-big")
        dropped(f"{about} later fragment", later, "service-too-big-silent" if service.hash == "source"
                else "service-fragment", service)


def trailing_cases(service, over):
    """The frame is unchanged if the egress can carry it, else the bytes after the packet are trimmed."""
    room = 1500 - over
    for family in 4, 6:
        about = f"{service.name}: {family}"
        syn, flow = ip(service, family) / tcp("S"), flow_of(service, family, TCP_PROTO)
        left = room - length_of(syn)
        for name, tags in TAGS.items():
            sent(f"{about} syn in a frame of the right size{name}", service, syn, flow, tags=tags,
                 padding=counting(left), opened=1)
            for more in 1, 1554 - 14 - room, 7000:
                sent(f"{about} syn in a frame too long by {more}{name}", service, syn, flow, tags=tags,
                     padding=counting(left + more), cut=True, opened=1)
        for size in 0, 1, 4, 6, 10:
            sent(f"{about} syn, {size} bytes after it", service, syn, flow, padding=bytes(size), opened=1)
        full = ip(service, family) / tcp("A", counting(left))
        assert length_of(full) == room
        for size in 1, 4, 200:
            sent(f"{about} of the right size, {size} bytes after it", service, full, flow,
                 padding=counting(size), cut=True)
        sent(f"{about} partial, in a frame too long", service, partial_of(syn, TCP), flow,
             after=one_hop(syn), padding=counting(left + 1), cut=True, opened=1, completed=1)
        quote = quoting(service, family, answer_of(service, family, TCP(sport=80, dport=SPORT)))
        sent(f"{about} icmp in a frame too long", service, quote, flow,
             padding=counting(room - length_of(quote) + 1), cut=True, quoted=1)
        data = ip(service, family) / tcp("A", counting(200))
        for linear in 100, 14 + length_of(data) - 1, 14 + length_of(data) + 1, 1514:
            sent(f"{about} in a frame too long, split after {linear}", service, data, flow,
                 padding=counting(1500), cut=True, settings=[("linear", linear)])
        sent(f"{about} in a frame of the right size, split", service, data, flow,
             padding=counting(room - length_of(data)), settings=[("linear", 100)])


def burst_case(service):
    packet = ip(service, 4) / udp(counting(1490))
    turned("too big, many at once", packet, too_big_answer(packet, 1500), "service-too-big",
           settings=[("burst", 4000)])


# Which service, which backend

def ring_cases(pool, by_source, mixed):
    for n in range(60):
        sport = 1024 + n * 997
        for family in 4, 6:
            for name, proto, payload in (("tcp", TCP_PROTO, tcp("A", sport=sport)),
                                         ("udp", UDP_PROTO, udp(b"x", sport=sport))):
                sent(f"pool: {family} {name} {sport}", pool, ip(pool, family) / payload,
                     flow_of(pool, family, proto, sport))
    for n in range(40):
        for family, client in (4, f"192.0.2.{n}"), (6, f"2001:db8:c::{n}"):
            for service in by_source, mixed:
                sent(f"{service.name}: from {client}", service,
                     ip(service, family, src=client) / udp(b"x"),
                     flow_of(service, family, UDP_PROTO, src=client))


def fragment_cases(by_source, by_tuple):
    """All fragments of `hash source` are sent to the backend of the first one."""
    for n in range(12):
        client = {4: f"192.0.2.{100 + n}", 6: f"2001:db8:c::1:{n}"}
        for family in 4, 6:
            flow = flow_of(by_source, family, UDP_PROTO, src=client[family])
            for service in by_source, by_tuple:
                whole = bytes(ip(service, family, src=client[family]) / udp(counting(800)))
                for part, (begin, more) in enumerate(((0, 1), (400, 1), (800, 0))):
                    payload = Raw(whole[20 if family == 4 else 40:][begin:begin + 400])
                    if family == 4:
                        packet = ip(service, 4, src=client[4], flags="MF" if more else "", proto=17,
                                    frag=begin // 8) / payload
                    else:
                        packet = ext(service, [IPv6ExtHdrFragment(m=more, offset=begin // 8, id=n)],
                                     UDP_PROTO, payload, src=client[6])
                    name = f"{service.name}: {family} fragment {part} of {client[family]}"
                    if service is by_source:
                        sent(name, service, packet, flow)
                    elif part:
                        dropped(name, packet, "service-fragment", service)
                    else:
                        sent(name, service, packet,
                             flow_of(service, family, UDP_PROTO, src=client[family]))
    spells = ip(by_tuple, 4, frag=100, proto=6) / Raw(struct.pack("!HH", SPORT, 80) + bytes(36))
    dropped("later fragment that spells a port", spells, "service-fragment", by_tuple)


def foreign_fragment_cases(one):
    """Fragments of no service: to another address, or of a protocol that the service does not have."""
    for family in 4, 6:
        elsewhere = {4: "203.0.113.250", 6: "2001:db8:f::fa"}[family]
        for name, fields, proto in (("to another address", {"dst": elsewhere}, TCP_PROTO),
                                    ("of another protocol", {}, UDP_PROTO)):
            if family == 4:
                packet = ip(one, 4, frag=64, proto=proto, **fields) / Raw(bytes(40))
            else:
                packet = ext(one, [IPv6ExtHdrFragment(offset=64)], proto, Raw(bytes(40)), **fields)
            passed(f"{family} later fragment {name}", packet)


def split_cases(service):
    """The bytes after the headers are in a second buffer; only some kernels support this test."""
    for family, header in (4, 20), (6, 40):
        at = 14 + header
        about = f"{service.name}: {family}"
        for name, proto, payload, size in (("tcp", TCP_PROTO, tcp("PA", counting(1001)), 20),
                                           ("udp", UDP_PROTO, udp(counting(1001)), 8),
                                           ("sctp", SCTP_PROTO, sctp(SCTPChunkData(data=counting(99))), 12)):
            packet = ip(service, family) / payload
            flow = flow_of(service, family, proto)
            for more in 0, 1, 77:
                sent(f"{about} {name} split {more} after the header", service, packet, flow,
                     settings=[("linear", at + size + more)])
            dropped(f"{about} {name} split in the header", packet, "header-split",
                    settings=[("linear", at + size - 1)])
            if name != "sctp":
                field = TCP if name == "tcp" else UDP
                sent(f"{about} partial {name}, split", service, partial_of(packet, field), flow,
                     after=one_hop(packet), completed=1, settings=[("linear", at + size)])
        quote = answer_of(service, family, TCP(sport=80, dport=SPORT) / Raw(counting(200)))
        packet = quoting(service, family, quote)
        for size in ERROR_HEAD + header + 4, ERROR_HEAD + header + 8:
            sent(f"{about} icmp split after {size} bytes", service, packet,
                 flow_of(service, family, TCP_PROTO), quoted=1, settings=[("linear", at + size)])
        for size in ERROR_HEAD, ERROR_HEAD + header - 1, ERROR_HEAD + header + 3:
            passed(f"{about} icmp split after {size} bytes", packet, settings=[("linear", at + size)])
        turned(f"{about} echo, split", *echo(service, family, ({"id": 1, "seq": 2}, counting(300))),
               "service-echo", settings=[("linear", at + 8)])


def split_size_case(service):
    packet = ip(service, 4) / udp(counting(1600))
    turned("too big, split", packet, too_big_answer(packet, 1500), "service-too-big",
           settings=[("linear", 14 + 28)])


def member_cases(ranges, every, prefix, one):
    for dport in 80, 443, 8000, 8005, 8010:
        sent(f"ranges: port {dport}", ranges, ip(ranges, 4) / tcp(dport=dport),
             flow_of(ranges, 4, TCP_PROTO, dport=dport))
    for dport in 0, 79, 81, 442, 444, 7999, 8011, 65535:
        passed(f"ranges: port {dport}", ip(ranges, 4) / tcp(dport=dport))
    for dport in 0, 1, 80, 65535:
        for family in 4, 6:
            sent(f"any port: {family} port {dport}", every, ip(every, family) / tcp(dport=dport),
                 flow_of(every, family, TCP_PROTO, dport=dport))
    passed("any port: another protocol", ip(every, 4) / udp(b"x"))
    passed("any port: gre", ip(every, 4, proto=47) / Raw(bytes(20)))
    for last in 160, 161, 175:
        vip = f"203.0.113.{last}"
        sent(f"prefix: {vip}", prefix, ip(prefix, 4, dst=vip) / tcp(),
             flow_of(prefix, 4, TCP_PROTO, dst=vip))
    for last in 159, 176:
        passed(f"prefix: 203.0.113.{last}", ip(prefix, 4, dst=f"203.0.113.{last}") / tcp())
    for vip in "2001:db8:f:1::", "2001:db8:f:1:ffff:ffff:ffff:ffff":
        sent(f"prefix: {vip}", prefix, ip(prefix, 6, dst=vip) / tcp(),
             flow_of(prefix, 6, TCP_PROTO, dst=vip))
    for family in 4, 6:
        passed(f"one protocol: {family} udp", ip(one, family) / udp(b"x"))
        passed(f"one protocol: {family} sctp", ip(one, family) / sctp(SCTPChunkInit(), tag=0))
        for dport in 79, 81, 22:
            passed(f"one protocol: {family} port {dport}", ip(one, family) / tcp("S", dport=dport))
        passed(f"from the service's port, {family}", ip(one, family) / tcp(sport=80, dport=SPORT))
        swapped = ip(one, family)
        swapped.src, swapped.dst = swapped.dst, swapped.src
        passed(f"from the VIP, {family}", swapped / tcp(sport=80, dport=SPORT))
    passed("protocol 58 in IPv4", ip(one, 4, proto=58) / Raw(bytes(ICMPv6EchoRequest())))


def end_cases(used):
    for family in 4, 6:
        packet = ip(used["at-home"], family) / tcp("S")
        case(f"here: {family} syn", link(CAME, (), bytes(packet)), "pass", "service-here",
             length_of(packet), service=used["at-home"], address=HERE, opened=1)
        packet = partial_of(ip(used["at-home"], family, **{"ttl" if family == 4 else "hlim": 1})
                            / udp(counting(1600)), UDP)
        case(f"here: {family} partial, last hop, big", link(CAME, ((0x8100, 7),), bytes(packet)), "pass",
             "service-here", length_of(packet), service=used["at-home"], address=HERE)
        for name, reason in {"no-backend": "service-no-backend", "no-hop": "service-no-next-hop",
                             "no-device": "service-no-next-hop", "no-xmit": "service-egress"}.items():
            service = used[name]
            dropped(f"{name}: {family}", ip(service, family) / tcp("S"), reason, service)
            quote = answer_of(service, family, TCP(sport=80, dport=SPORT))
            dropped(f"{name}: {family} icmp", quoting(service, family, quote), reason, service)
            turned(f"{name}: {family} echo", *echo(service, family, ({"id": 1, "seq": 2}, b"ping")),
                   "service-echo")
        service = used["no-xmit"]
        sent(f"no-xmit in generic mode: {family}", service, ip(service, family) / tcp(),
             flow_of(service, family, TCP_PROTO), settings=[("generic", 1)])
        service = used["no-xmit-back"]
        sent(f"no-xmit but back: {family}", service, ip(service, family) / tcp(),
             flow_of(service, family, TCP_PROTO))


def source_cases(service, lengths):
    for n in range(8):
        for family in 4, 6:
            sent(f"{service.name}: source {lengths}, {family}, flow {n}", service,
                 ip(service, family) / udp(b"x", sport=2000 + n),
                 flow_of(service, family, UDP_PROTO, 2000 + n))


def malformed_cases(service, reasons):
    """They never reach the balancer."""
    for name, packet, reason in (
            ("tcp offset", ip(service, 4) / tcp(dataofs=4), "tcp-offset"),
            ("tcp cut", ip(service, 4, proto=6) / Raw(bytes(tcp())[:19]), "tcp-truncated"),
            ("udp cut", ip(service, 6, nh=17) / Raw(bytes(udp())[:7]), "udp-truncated"),
            ("udp length", ip(service, 4) / udp(b"abc", len=7), "udp-length"),
            ("udp too long", ip(service, 6) / udp(b"abc", len=12), "udp-length"),
            ("sctp cut", ip(service, 4, proto=132) / Raw(struct.pack("!HHI", SPORT, 80, 0)),
             "sctp-truncated"),
            ("icmp cut", ip(service, 4, proto=1) / Raw(bytes(7)), "icmp-truncated"),
            ("icmp6 cut", ip(service, 6, nh=58) / Raw(bytes(7)), "icmp6-truncated"),
            ("tiny fragment", ip(service, 4, proto=6, flags="MF") / Raw(bytes(tcp())[:16]),
             "fragment-header"),
            ("empty fragment", ip(service, 4, proto=6, frag=9), "fragment-length")):
        if reasons:
            dropped(f"malformed: {name}", packet, reason)
        else:
            passed(f"malformed pass: {name}", packet, "malformed-pass")


# The policies

def hop(number, **fields):
    return Hop(number=number, **fields)


def main_policy():
    modes = list(mode_services())
    both = {"10.2.0.1": hop(1), "10.2.0.2": (hop(2, device="out"), 3),
            "2001:db8:b2::3": hop(3, vlan=9), "2001:db8:b2::4": (hop(4, device="out", vlan=10), 2)}
    pool = define("pool", vips(30), both, "ipip")
    by_source = define("by-source", vips(31), both, "gue", hash="source")
    mixed = define("mixed", vips(32), {a: h for a, h in both.items() if "." in a}, "dr", hash="source")
    spread = [
        define("spread-1", vips(33), {"10.3.0.1": hop(1), "2001:db8:b3::1": hop(2)}, "ipip",
               sources={4: "10.9.0.0/16", 6: "2001:db8:9::/64"}),
        define("spread-2", vips(34), {"10.3.0.1": hop(1), "2001:db8:b3::1": hop(2)}, "gue",
               sources={4: "10.9.9.8/31", 6: "2001:db8:9::/97"}),
        define("spread-3", vips(35), {"10.3.0.1": hop(1), "2001:db8:b3::1": hop(2)}, "gue",
               sources={4: "10.0.0.0/8", 6: "2001:db8:9::fe/127"}, hash="source")]
    small = [(define("small-dr", vips(40), {"10.4.0.1": hop(1, mtu=1500)}, "dr"), 0),
             (define("small-ipip4", vips(41), {"10.4.0.2": hop(1, mtu=1500)}, "ipip"), 20),
             (define("small-ipip6", vips(42), {"2001:db8:b4::3": hop(1, mtu=1500, vlan=5)}, "ipip"), 40),
             (define("small-gue4", vips(43), {"10.4.0.4": hop(1, mtu=1500, device="out")}, "gue"), 28),
             (define("small-source", vips(45), {"10.4.0.6": hop(1, mtu=1500)}, "ipip", hash="source"), 20),
             (define("small-gue6", vips(44), {"2001:db8:b4::5": hop(1, mtu=1500)}, "gue"), 48)]
    ranges = define("ranges", vips(50), {"10.5.0.1": hop(1)}, "ipip", port="80, 443, 8000-8010")
    every = define("all-ports", vips(51), {"10.5.0.2": hop(1)}, "ipip", port="any", proto="tcp")
    prefix = define("prefix", ["203.0.113.160/28", "2001:db8:f:1::/64"], {"10.5.0.3": hop(1)}, "dr")
    one = define("one", vips(53), {"10.5.0.4": hop(1)}, "ipip", proto="tcp")
    ends = {service.name: service for service in (
        define("at-home", vips(60), {HERE: Hop()}, "dr"),
        define("no-backend", vips(61), {"10.6.0.1": (hop(1), 0)}, "ipip"),
        define("no-hop", vips(62), {"10.6.0.2": hop(1, device="none")}, "ipip"),
        define("no-device", vips(63), {"10.6.0.3": hop(1, device="lost")}, "gue"),
        define("no-xmit", vips(64), {"10.6.0.4": hop(1, device="out", no_xmit=1)}, "ipip"),
        define("no-xmit-back", vips(65), {"10.6.0.5": hop(1, no_xmit=1)}, "ipip"))}
    load([], services.values())
    for service in modes:
        mode_cases(service)
    for name in "dr-in", "ipip4-out", "ipip6-in77", "gue4-out4094", "gue6-in":
        partial_cases(services[name])
        split_cases(services[name])
        surplus_cases(services[name])
    for name in "gue6-in", "gue6-out4094":
        outer_zero_cases(services[name])
    echo_cases(services["ipip4-in"])
    routed_echo_cases(services["ipip4-in"])
    martian_cases(services["gue4-in"], services["dr-out"])
    quote_more_cases(services["gue6-in"])
    for service, over in small:
        size_cases(service, over)
        trailing_cases(service, over)
        size_fragment_cases(service, over)
    burst_case(small[0][0])
    split_size_case(small[0][0])
    ring_cases(pool, by_source, mixed)
    fragment_cases(by_source, pool)
    foreign_fragment_cases(one)
    member_cases(ranges, every, prefix, one)
    end_cases(ends)
    for service, name in zip(spread, ("/16 and /64", "/31 and /97", "/8 and /127")):
        source_cases(service, name)
    malformed_cases(services["ipip4-in"], True)
    arp = bytes(Ether(**CAME) / ARP())
    case("arp", arp, "pass", "not-ip", len(arp))


def reset_of(syn):
    return (IP(src=syn.dst, dst=syn.src, id=0, flags="DF", ttl=64)
            / TCP(sport=80, dport=SPORT, flags="RA", seq=0, ack=syn[TCP].seq + 1, window=0))


def rule_policies():
    """Services come last: an earlier drop wins."""
    web = Service("web", vips(1), {"10.7.0.1": hop(1)}, "ipip")
    flow4, flow6 = flow_of(web, 4, TCP_PROTO), flow_of(web, 6, TCP_PROTO)
    load(["drop from 192.0.2.66", "drop to web port 80 flags fin",
          "reject to 203.0.113.1 port 80 from 192.0.2.67", "pass to web from 192.0.2.68",
          "drop from 192.0.2.68", "always drop from 192.0.2.69"], [web])
    syn = ip(web, 4) / tcp("S")
    sent("rules: no rule", web, syn, flow4, opened=1)
    dropped("rules: drop", ip(web, 4, src="192.0.2.66") / tcp("S"), "rule-drop")
    dropped("rules: drop the service's", ip(web, 4) / tcp("F"), "rule-drop")
    dropped("rules: always drop", ip(web, 4, src="192.0.2.69") / tcp("S"), "rule-drop")
    dropped("rules: no echo", ip(web, 4, src="192.0.2.66") / ICMP(), "rule-drop")
    refused = ip(web, 4, src="192.0.2.67") / tcp("S")
    turned("rules: reject", refused, reset_of(refused), "reply")
    passes = ip(web, 4, src="192.0.2.68") / tcp("S")
    sent("rules: pass", web, passes, flow_of(web, 4, TCP_PROTO, src="192.0.2.68"), opened=1)
    block = (f"block-from {CLIENT[4]}", f"block-to {web.vip(6)}")
    dropped("overlay: block from", syn, "block-from", settings=entries(0, *block))
    dropped("overlay: block to", ip(web, 6) / tcp("S"), "block-to", settings=entries(1, *block))
    dropped("overlay: no echo", ip(web, 6) / ICMPv6EchoRequest(), "block-to", settings=entries(1, *block))
    allow = entries(0, f"allow-from {CLIENT[6]}", f"block-to {web.vip(6)}")
    sent("overlay: allow", web, ip(web, 6) / tcp("S"), flow6, opened=1, settings=allow)
    load(["default drop", "pass to web proto tcp"], [web])
    sent("default drop: passed", web, syn, flow4, opened=1)
    dropped("default drop: udp", ip(web, 4) / udp(b"x"), "default-drop")
    dropped("default drop: echo", ip(web, 4) / ICMP(), "default-drop")
    quote = answer_of(web, 4, TCP(sport=80, dport=SPORT))
    sent("default drop: an error is essential", web, quoting(web, 4, quote), flow4, quoted=1)
    passed("default drop: an error for others", quoting(web, 4, quote[:20]), "essential-icmp")
    load(["malformed pass", "fragments drop proto udp"], [web])
    malformed_cases(web, False)
    sent("malformed pass: whole", web, syn, flow4, opened=1)
    dropped("fragments drop: udp", ip(web, 4, frag=9, proto=17) / Raw(bytes(32)), "fragments-drop")
    dropped("fragments drop: tcp", ip(web, 4, frag=9, proto=6) / Raw(bytes(32)), "service-fragment", web)


def entries(hit, *words):
    """The overlay, and which of its entries counts the packet."""
    return [("overlay", ", ".join(words)), ("hit", words[hit])]


def allow_policies():
    """What an entry allows may be for a service: the entry counts it once, whichever program ends it. Not only the
    first look at its packets tells that the short program cannot forward them."""
    narrow = Service("narrow", vips(1), {"10.7.0.2": hop(1, mtu=1500)}, "ipip")
    away = Service("away", vips(2), {HERE: Hop()}, "dr", port="1-100")
    load(["drop from 192.0.2.0/24, 2001:db8:c::/48"], [narrow, away])
    for family in 4, 6:
        for kind, given in {"from": CLIENT[family], "to": narrow.vip(family)}.items():
            about, allow = f"allow: {kind}, {family}", entries(0, f"allow-{kind} {given}")
            sent(f"{about} syn", narrow, ip(narrow, family) / tcp("S"), flow_of(narrow, family, TCP_PROTO), opened=1,
                 settings=allow)
            late = ip(narrow, family, **{"ttl" if family == 4 else "hlim": 1}) / udp(b"late")
            turned(f"{about} no hops", late, time_exceeded_answer(late), "service-ttl", settings=allow)
            big = ip(narrow, family) / udp(counting(1480))
            turned(f"{about} too big", big, too_big_answer(big, 1480), "service-too-big", settings=allow)
            turned(f"{about} echo", *echo(narrow, family, ({"id": 1, "seq": 2}, b"ping")), "service-echo", settings=allow)
            passed(f"{about} another port", ip(narrow, family) / tcp(dport=81), "allow", settings=allow)
        allow = entries(0, f"allow-from {CLIENT[family]}")
        passed(f"allow: {family} no service's", ip(narrow, family, dst=ROUTER[family]) / tcp(), "allow", settings=allow)
        passed(f"allow: {family} icmp to another address", echo(narrow, family, ({}, b""), dst=ROUTER[family])[0],
               "allow", settings=allow)
        packet = ip(away, family) / tcp("S")
        case(f"allow: {family} here", link(CAME, (), bytes(packet)), "pass", "service-here", length_of(packet),
             service=away, address=HERE, opened=1, settings=allow)


def interface_policies():
    """On an interface that the policy does not name there are no rules and no services."""
    web = Service("web", vips(1), {"10.7.0.1": hop(1)}, "ipip")
    load(["interface other0", "drop from 192.0.2.66, 2001:db8:c::66", "default drop"], [web])
    for family in 4, 6:
        about, blocked = f"another interface: {family}", {4: "192.0.2.66", 6: "2001:db8:c::66"}[family]
        for name, payload in {"syn": tcp("S"), "ack": tcp(), "udp": udp(b"x"), "sctp": sctp(SCTPChunkInit(), tag=0)}.items():
            passed(f"{about} {name}", ip(web, family) / payload)
        passed(f"{about} echo", echo(web, family, ({"id": 1, "seq": 2}, b"ping"))[0])
        passed(f"{about} a dropped source", ip(web, family, src=blocked) / tcp("S"))
        passed(f"{about} a tag", ip(web, family) / tcp("S"), tags=((0x8100, 7),))
        passed(f"{about} allowed", ip(web, family) / tcp("S"), "allow",
               settings=entries(0, f"allow-from {CLIENT[family]}"))
        dropped(f"{about} blocked", ip(web, family) / tcp("S"), "block-to",
                settings=entries(0, f"block-to {web.vip(family)}"))


def budget_cases():
    """A flood exhausts the limit of one kind of answer to one receiver, and no other limit."""
    narrow = Service("narrow", vips(1), {"10.7.0.2": hop(1, mtu=1500)}, "ipip")
    load(["reject from 192.0.2.64/27, 2001:db8:d::/64 proto tcp"], [narrow])
    def flood(packet):
        return [("flood", link(CAME, (), bytes(packet)).hex())]
    for family in 4, 6:
        here, near, far = {4: ("192.0.2.67", "192.0.2.68", "192.0.2.80"),
                           6: ("2001:db8:d::7", "2001:db8:d::8", "2001:db8:e::7")}[family]
        big, refused, ask = {}, {}, {}
        for source in here, near, far:
            big[source] = ip(narrow, family, src=source) / udp(counting(1480))
            refused[source] = ip(narrow, family, src=source) / tcp("S")
            ask[source] = echo(narrow, family, ({"id": 1, "seq": 2}, b"ping"), src=source)
        about = f"budgets: {family}"
        echoes = flood(ask[here][0])
        for name, other in {"rejects": refused, "echo": {s: a for s, (a, _) in ask.items()}}.items():
            turned(f"{about} too big, in a flood of {name}", big[here], too_big_answer(big[here], 1480),
                   "service-too-big", settings=flood(other[here]))
        turned(f"{about} echo, in a flood of too big", *ask[here], "service-echo",
               settings=flood(big[here]))
        dropped(f"{about} echo, in a flood of itself", ask[here][0], "service-echo-silent",
                settings=echoes)
        late = ip(narrow, family, src=here, **{"ttl" if family == 4 else "hlim": 1}) / udp(b"late")
        turned(f"{about} no hops, in a flood of too big", late, time_exceeded_answer(late), "service-ttl",
               settings=flood(big[here]))
        dropped(f"{about} no hops, in a flood of itself", late, "service-ttl-silent", narrow,
                settings=flood(late))
        dropped(f"{about} too big, in a flood of itself", big[here], "service-too-big-silent", narrow,
                settings=flood(big[here]))
        turned(f"{about} echo, in a flood of another's", *ask[far], "service-echo", settings=echoes)
        turned(f"{about} too big, in a flood of another's", big[far], too_big_answer(big[far], 1480),
               "service-too-big", settings=flood(big[here]))
        if family == 4:
            turned(f"{about} reject, in a flood of too big", refused[here], reset_of(refused[here]),
                   "reply", settings=flood(big[here]))
            dropped(f"{about} reject, in a flood of itself", refused[here], "rule-reject",
                    settings=flood(refused[here]))
            turned(f"{about} reject, in a flood of another's", refused[near], reset_of(refused[near]),
                   "reply", settings=flood(refused[here]))
        else:  # a host may have all the addresses of its /64
            dropped(f"{about} echo, in a flood from its /64", ask[near][0], "service-echo-silent",
                    settings=echoes)


def crowd_policies():
    """All receivers together get 5,000 answers a second of echo and as many of reject."""
    web = Service("web", vips(1), {"10.7.0.1": hop(1, mtu=1500)}, "ipip")
    load(["reject proto tcp"], [web])
    refused = ip(web, 4) / tcp("S")
    turned("crowd: echo", *echo(web, 4, ({"id": 1, "seq": 2}, b"ping")), "service-echo", settings=[("crowd", 9000)])
    turned("crowd: reject", refused, reset_of(refused), "reply", settings=[("crowd", 9000)])
    dropped("crowd: reject to an address of this host", refused, "rule-reject", settings=[("own", CLIENT[4])])


def station_policies():
    """Frames to other stations are neither balanced nor answered; if no station is known, all frames are ours."""
    web = Service("web", vips(1), {"10.7.0.1": hop(1, mtu=1500)}, "ipip")
    load(["reject from 192.0.2.67", "drop from 192.0.2.68"], [web])
    ours, other = CAME["dst"], "02:99:00:00:00:05"
    near = [ours[:-2] + "03", "02:00:00:00:01:01", "03" + ours[2:], "02:01" + ours[5:]]
    near = [mac for mac in near if not int(mac[:2], 16) & 1]
    refused, blocked = ip(web, 4, src="192.0.2.67") / tcp("S"), ip(web, 4, src="192.0.2.68") / tcp("S")
    for name, stations in {"its own": ours, "a device above": f"{other} {ours}",
                           "one of many": " ".join([other, *near, ours])}.items():
        known = [("stations", stations)]
        for family in 4, 6:
            sent(f"stations: {name}, {family}", web, ip(web, family) / tcp("S"),
                 flow_of(web, family, TCP_PROTO), opened=1, settings=known)
            turned(f"stations: {name}, {family} echo",
                   *echo(web, family, ({"id": 1, "seq": 2}, b"ping")), "service-echo", settings=known)
        turned(f"stations: {name}, reject", refused, reset_of(refused), "reply", settings=known)
    for name, stations in {"another": other, "many others": " ".join([other, *near])}.items():
        foreign = [("stations", stations), ("foreign", 1)]
        for family in 4, 6:
            quote = answer_of(web, family, TCP(sport=80, dport=SPORT))
            big = ip(web, family) / udp(counting(1600))
            for what, packet in {"syn": ip(web, family) / tcp("S"), "too big": big,
                                 "icmp": quoting(web, family, quote),
                                 "no hops": ip(web, family, **{"ttl" if family == 4 else "hlim": 1}) / tcp(),
                                 "echo": echo(web, family, ({"id": 1, "seq": 2}, b"ping"))[0],
                                 "martian": ip(web, family, src=web.vip(family)) / tcp("S")}.items():
                passed(f"stations: {name}, {family} {what}", packet, settings=foreign)
            unasked = [("stations", stations)]
            passed(f"stations: {name}, {family} no service's", ip(web, family) / tcp(dport=81),
                   settings=unasked)
            passed(f"stations: {name}, {family} icmp to another address",
                   echo(web, family, ({}, b""), dst=ROUTER[family])[0], settings=unasked)
        dropped(f"stations: {name}, reject", refused, "rule-reject", settings=foreign)
        dropped(f"stations: {name}, drop", blocked, "rule-drop", settings=[("stations", stations)])
        dropped(f"stations: {name}, block", ip(web, 4) / tcp(), "block-from",
                settings=[("stations", stations), *entries(0, f"block-from {CLIENT[4]}")])


def mode_policies():
    """Each mode separately: the program has no code for the others."""
    for mode, address in ("dr", "10.8.0.1"), ("ipip", "10.8.0.2"), ("gue", "2001:db8:b8::3"):
        alone = Service("alone", vips(1), {address: hop(1)}, mode)
        load([], [alone])
        for family in 4, 6:
            sent(f"only {mode}: {family}", alone, ip(alone, family) / tcp("S"),
                 flow_of(alone, family, TCP_PROTO), opened=1)
            turned(f"only {mode}: {family} echo", *echo(alone, family, ({"id": 1, "seq": 2}, b"ping")),
                   "service-echo")
        passed(f"only {mode}: another port", ip(alone, 4) / tcp(dport=81))


def await_words(packet, ms=60000, **fields):
    """The check that this packet answers; fields: what differs."""
    layer = packet.getlayer(TCP) or packet.getlayer(UDP)
    flow = {"proto": packet.proto if packet.version == 4 else packet.nh, "src": packet.src, "sport": layer.sport,
            "dst": packet.dst, "dport": layer.dport, **fields}
    return "await", f"{flow['proto']} {flow['src']} {flow['sport']} {flow['dst']} {flow['dport']} {ms}"


def taken(name, packet, tags=()):
    """The agent takes it as an answer: its last ethertype is another one."""
    given = link(CAME, tags, bytes(packet))
    at = 12 + 4 * len(tags)
    case(name, given, "pass", "service-answer", length_of(packet), out=given[:at] + b"\x88\xb5" + given[at + 2:],
         settings=[await_words(packet)])


def answer_policies():
    """Answers to checks via path come before all rules; those that nothing awaits are packets like others."""
    rules = [f"drop from {vip}" for vip in vips(1)]
    for kind, policy, reason in (("short", rules, "rule-drop"), ("always", [f"always {line}" for line in rules], "rule-drop"),
                                 ("default drop", ["default drop"], "default-drop")):
        web = Service("web", vips(1), {"10.7.0.1": hop(1)}, "ipip", check="tcp via path")
        load(policy, [web])
        for family in 4, 6:
            answer_cases(f"answers: {kind}, {family}", web, family, reason)
    without = Service("web", vips(1), {"10.7.0.1": hop(1)}, "ipip")
    load(rules, [without])
    for family in 4, 6:
        packet = answer_from(without, family, TCP(sport=80, dport=0x7000, flags="SA"))
        dropped(f"answers: no such check, {family}", packet, "rule-drop", settings=[await_words(packet)])


def answer_from(service, family, payload):
    return ip(service, family, src=service.vip(family), dst=CLIENT[family]) / payload


def answer_cases(about, web, family, reason):
    packet = answer_from(web, family, TCP(sport=80, dport=0x7123, flags="SA"))
    for name, tags in TAGS.items():
        taken(f"{about}{name}", packet, tags)
    taken(f"{about}, a reset", answer_from(web, family, TCP(sport=80, dport=0x7fff, flags="RA")))
    taken(f"{about}, data", answer_from(web, family, TCP(sport=443, dport=0x7000, flags="PA") / Raw(counting(900))))
    taken(f"{about}, UDP", answer_from(web, family, UDP(sport=80, dport=0x7001) / Raw(counting(64))))
    dropped(f"{about}, not awaited", packet, reason)
    dropped(f"{about}, awaited no longer", packet, reason, settings=[await_words(packet, ms=0)])
    for name, fields in {"another source": {"src": ROUTER[family]}, "another destination": {"dst": ROUTER[family]},
                         "another port": {"sport": 81}, "another port of the check": {"dport": 0x7124},
                         "another protocol": {"proto": UDP_PROTO}}.items():
        dropped(f"{about}, {name}", packet, reason, settings=[await_words(packet, **fields)])
    awaited = await_words(packet)
    dropped(f"{about}, in a frame to another station", packet, reason,
            settings=[("stations", "02:99:00:00:00:05"), awaited])
    if family == 4:
        first = answer_from(web, 4, TCP(sport=80, dport=0x7123, flags="SA") / Raw(bytes(4)))
        first.flags = "MF"
        dropped(f"{about}, a first fragment", first, reason, settings=[awaited])
    for dport in 0x6fff, 0x8000, 0x0123:
        packet = answer_from(web, family, TCP(sport=80, dport=dport, flags="SA"))
        dropped(f"{about}, port {dport} is no check's", packet, reason, settings=[await_words(packet)])


def write(out, *more):
    main_policy()
    rule_policies()
    allow_policies()
    interface_policies()
    budget_cases()
    crowd_policies()
    station_policies()
    mode_policies()
    answer_policies()
    for policies in more:
        policies()
    print("\n".join(lines), file=out)
