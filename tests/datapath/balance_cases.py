# SPDX-License-Identifier: GPL-2.0-only
"""Cases for one service: frames as clients send them, and the expected output frames, which scapy builds. The format
is described in balance.c."""
import struct

from scapy.layers.inet import (ICMP, IP, IPOption_LSRR, IPOption_NOP, IPOption_RR, IPOption_SSRR, TCP, UDP)
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NS,
                                ICMPv6PacketTooBig, ICMPv6ParamProblem, ICMPv6TimeExceeded, IPv6,
                                IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting)
from scapy.layers.sctp import SCTP, SCTPChunkData, SCTPChunkInit
from scapy.packet import Raw

from balance_book import (CLIENT, ERROR_HEAD, ROUTER, SPORT, TAGS, ZERO, built, case, counting, define,
                          dropped, ext, flow_of, hop, ip, length_of, passed, payloads, sctp, sent, tcp,
                          turned, udp, vips, zero_checksum)
from balance_model import (CAME, SCTP_PROTO, TCP_PROTO, UDP_PROTO, Hop, link, one_hop, ones_complement,
                           pseudo_sum)


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
