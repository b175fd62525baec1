# SPDX-License-Identifier: GPL-2.0-only
"""Cases for the decapsulating program: frames in tunnels, built by scapy, and the expected output frame,
which scapy builds around the inner packet. The format is described in decap.c."""
import struct

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import (ICMPv6EchoRequest, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                                IPv6ExtHdrHopByHop, IPv6ExtHdrRouting)
from scapy.layers.l2 import ARP, GRE, Ether
from scapy.packet import Raw

HERE4, HERE6 = "198.51.100.1", "2001:db8:2::1"
LOCAL4, LOCAL6 = "203.0.113.128/25", "2001:db8:f:1::/64"  # local as a whole
BALANCERS = ["192.0.2.0/28", "192.0.2.77", "2001:db8:1::/64", "2001:db8:4::7"]
FROM4, FROM6 = "192.0.2.1", "2001:db8:1::1"
CLIENT4, CLIENT6, VIP4, VIP6 = "203.0.113.5", "2001:db8:c::5", "203.0.113.80", "2001:db8:f::80"
MACS = {"src": "02:00:00:00:00:02", "dst": "02:00:00:00:00:01"}
PORT = 6080
TYPES = {4: 0x0800, 6: 0x86dd}
PROTO = {4: 4, 6: 41}

cases = []


def frame(packet, family, tags=(), padding=b""):
    head = bytes(Ether(**MACS))[:12] + b"".join(struct.pack("!HH", *tag) for tag in tags)
    return head + struct.pack("!H", TYPES[family]) + bytes(packet) + padding


def add(name, given, counter=None, out=None, length=None, linear=None):
    """counter None: not counted. out None: dropped if the counter drops, else unchanged."""
    cases.append((name, given, counter, out, length, linear))


# Packets

def inner(family, payload=None, dst=None, **fields):
    payload = TCP(sport=1234, dport=80, flags="S") if payload is None else payload
    if family == 4:
        return IP(src=CLIENT4, dst=dst or VIP4, id=77, **fields) / payload
    return IPv6(src=CLIENT6, dst=dst or VIP6, fl=0x12345, **fields) / payload


def head(family, proto, **fields):
    if family == 4:
        return IP(src=fields.pop("src", FROM4), dst=fields.pop("dst", HERE4), proto=proto, **fields)
    return IPv6(src=fields.pop("src", FROM6), dst=fields.pop("dst", HERE6), nh=proto, fl=0x54321, **fields)


def udp(**fields):
    return UDP(sport=40000, dport=fields.pop("dport", PORT), **fields)


def gue0(proto, first=0, flags=0):
    return Raw(struct.pack("!BBH", first, proto, flags))


TUNNELS = {
    "ipip": lambda f, packet, **o: head(f, PROTO[packet.version], **o) / Raw(bytes(packet)),
    "gue": lambda f, packet, **o: head(f, 17, **o) / udp() / Raw(bytes(packet)),
    "gue variant 0": lambda f, packet, **o: (head(f, 17, **o) / udp() / gue0(PROTO[packet.version])
                                             / Raw(bytes(packet))),
}


def counter_of(tunnel, outer, packet):
    return "gue" if tunnel.startswith("gue") else f"{packet.version}in{outer}"


def stripped(name, tunnel, outer, packet, want=None, tags=(), padding=b"", **fields):
    """The packet in a tunnel is decapsulated unchanged, or as `want`."""
    wrapped = TUNNELS[tunnel](outer, packet, **fields)
    add(name, frame(wrapped, outer, tags, padding), counter_of(tunnel, outer, packet),
        frame(packet if want is None else want, packet.version, tags, padding), len(bytes(wrapped)))


def everywhere():
    for tunnel in TUNNELS:
        for outer in 4, 6:
            for family in 4, 6:
                yield f"{tunnel} {family}in{outer}", tunnel, outer, family


# Decapsulated

def whole_cases():
    payloads = {
        "tcp": TCP(sport=1, dport=80, flags="PA") / Raw(b"GET / HTTP/1.0\r\n\r\n"),
        "udp": UDP(sport=1, dport=443) / Raw(bytes(range(200))),
        "nothing": Raw(b""),
        "1400 bytes": UDP(sport=1, dport=443) / Raw(bytes(1392)),
        "8000 bytes": UDP(sport=1, dport=443) / Raw(bytes(i & 255 for i in range(7992))),
    }
    tags = {"": (), ", a tag": ((0x8100, 7),), ", two tags": ((0x88a8, 5), (0x8100, 0xe007)),
            ", four tags": ((0x88a8, 5), (0x8100, 6), (0x8100, 7), (0x8100, 8))}
    for name, tunnel, outer, family in everywhere():
        for what, payload in payloads.items():
            for tagged, list_of in tags.items():
                stripped(f"{name}: {what}{tagged}", tunnel, outer, inner(family, payload), tags=list_of)
        stripped(f"{name}: ping", tunnel, outer,
                 inner(family, ICMP() if family == 4 else ICMPv6EchoRequest()))
        stripped(f"{name}: padding is removed", tunnel, outer, inner(family), padding=b"padding")


def field_cases():
    """Only the ECN field is ever changed."""
    for name, tunnel, outer, family in everywhere():
        for hops in 1, 2, 255:
            packet = inner(family, **({"ttl": hops} if family == 4 else {"hlim": hops}))
            stripped(f"{name}: {hops} hops left", tunnel, outer, packet)
        later = IP(src=CLIENT4, dst=VIP4, frag=100, proto=6) / Raw(bytes(64))
        if family == 6:
            later = IPv6(src=CLIENT6, dst=VIP6) / IPv6ExtHdrFragment(offset=100, nh=6) / Raw(bytes(64))
        stripped(f"{name}: an inner fragment", tunnel, outer, later)
        broken = inner(4, chksum=0x1234) if family == 4 else inner(6, TCP(chksum=0x1234))
        stripped(f"{name}: a wrong checksum stays wrong", tunnel, outer, broken)
    options = inner(4, options=[IPOption_NOP()] * 40)
    stripped("inner options", "ipip", 4, options)
    stripped("inner extension headers", "ipip", 6,
             inner(6, IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / TCP()))


def outer_cases():
    """Other fields that the outer header may have."""
    for family in 4, 6:
        packet = inner(family)
        for options in 4, 40:
            stripped(f"{family}in4: {options} bytes of options", "ipip", 4, packet,
                     options=[IPOption_NOP()] * options)
        stripped(f"gue {family}in4: options", "gue", 4, packet, options=[IPOption_NOP()] * 8)
        chains = {
            "destination options": [IPv6ExtHdrDestOpt],
            "hop by hop": [IPv6ExtHdrHopByHop],
            "an atomic fragment": [IPv6ExtHdrFragment],
            "a used routing header": [lambda **o: IPv6ExtHdrRouting(segleft=0, **o)],
            "four": [IPv6ExtHdrHopByHop, IPv6ExtHdrDestOpt,
                     lambda **o: IPv6ExtHdrRouting(segleft=0, **o), IPv6ExtHdrDestOpt],
        }
        for what, kinds in chains.items():
            for tunnel, last, middle in (("", PROTO[family], b""), ("gue ", 17, udp())):
                wrapped = headers(kinds, last, middle / packet if middle else packet)
                add(f"{tunnel}{family}in6: {what}", frame(wrapped, 6),
                    "gue" if tunnel else f"{family}in6", frame(packet, family), len(bytes(wrapped)))


def headers(kinds, last, payload, **fields):
    """An IPv6 packet to this host with extension headers."""
    numbers = {"IPv6ExtHdrHopByHop": 0, "IPv6ExtHdrRouting": 43, "IPv6ExtHdrFragment": 44,
               "IPv6ExtHdrDestOpt": 60}
    following, built = last, bytes(payload)
    for kind in reversed(kinds):
        header = kind(nh=following)
        built = bytes(header) + built
        following = numbers[type(header).__name__]
    return head(6, following, **fields) / Raw(built)


def ecn_cases():
    """RFC 6040, figure 4; codepoints: 0 none, 1 ECT(1), 2 ECT(0), 3 CE."""
    table = {0: (0, 0, 0, None), 2: (2, 1, 2, 3), 1: (1, 1, 1, 3), 3: (3, 3, 3, 3)}
    for name, tunnel, outer, family in everywhere():
        field = {4: "tos", 6: "tc"}
        for inside, row in table.items():
            for outside, becomes in enumerate(row):
                for dscp in 0, 46:
                    packet = inner(family, **{field[family]: dscp << 2 | inside})
                    options = {field[outer]: (63 - dscp) << 2 | outside}
                    title = f"{name}: ecn {outside} around {inside}, dscp {dscp}"
                    if becomes is None:
                        wrapped = TUNNELS[tunnel](outer, packet, **options)
                        add(title, frame(wrapped, outer), "ecn", None, len(bytes(wrapped)))
                    else:
                        stripped(title, tunnel, outer, packet,
                                 inner(family, **{field[family]: dscp << 2 | becomes}), **options)


# Dropped

def in_all_tunnels(name, family, raw, counter, outers=(4, 6)):
    """These bytes, as IP of that family, in every tunnel that can carry it."""
    for outer in outers:
        ways = {
            "ipip": head(outer, PROTO[family]) / Raw(raw),
            "gue variant 0": head(outer, 17) / udp() / gue0(PROTO[family]) / Raw(raw),
        }
        if raw and raw[0] >> 4 == family:
            ways["gue"] = head(outer, 17) / udp() / Raw(raw)
        for tunnel, packet in ways.items():
            add(f"{tunnel} in {outer}: {name}", frame(packet, outer), counter, None, len(bytes(packet)))


def dropped_cases():
    for family, size in (4, 20), (6, 40):
        packet = bytes(inner(family))
        for length in (0, 1, size - 1):
            in_all_tunnels(f"{length} bytes of IPv{family}", family, packet[:length], "inner-truncated")
        for version in (0, 5, 10 - family, 15):
            raw = bytes([version << 4 | packet[0] & 15]) + packet[1:]
            in_all_tunnels(f"version {version} as IPv{family}", family, raw, "inner-version")
        cut = bytes(inner(family, UDP() / Raw(bytes(32))))
        for missing in (1, 8, 40):
            in_all_tunnels(f"IPv{family}, {missing} bytes missing", family, cut[:-missing], "inner-length")
    for nibble in 5, 7:
        raw = bytes([nibble << 4]) + bytes(inner(4))[1:]
        for outer in 4, 6:
            packet = head(outer, 17) / udp() / Raw(raw)
            add(f"gue in {outer}: version {nibble}", frame(packet, outer), "inner-version", None,
                len(bytes(packet)))
    packet = bytes(inner(4))
    for words in range(5):
        in_all_tunnels(f"{words} words of header", 4, bytes([0x40 | words]) + packet[1:], "inner-header")
    for total in (0, 19, 20 + 4 * 10 - 1):
        words = 5 if total < 20 else 15
        raw = bytes([0x40 | words, 0]) + struct.pack("!H", total) + packet[4:] + bytes(60)
        in_all_tunnels(f"total length {total}, header {words * 4}", 4, raw, "inner-length")
    raw = bytes(IPv6(src=CLIENT6, dst=VIP6, plen=0, nh=0) / Raw(bytes(1000)))
    in_all_tunnels("a jumbogram", 6, raw, "inner-length")


def slack_cases():
    """The inner packet may end before the outer one does."""
    for name, tunnel, outer, family in everywhere():
        packet = bytes(inner(family)) + b"slack"
        proto = 17 if tunnel.startswith("gue") else PROTO[family]
        wrapped = head(outer, proto)
        if proto == 17:
            wrapped = wrapped / udp() / (gue0(PROTO[family]) if tunnel != "gue" else Raw(b""))
        wrapped = wrapped / Raw(packet)
        add(f"{name}: slack", frame(wrapped, outer), "gue" if proto == 17 else f"{family}in{outer}",
            frame(packet, family), len(bytes(wrapped)))


# Passed unchanged

def passed_cases():
    for name, tunnel, outer, family in everywhere():
        elsewhere = "198.51.100.2" if outer == 4 else "2001:db8:2::2"
        packet = TUNNELS[tunnel](outer, inner(family), dst=elsewhere)
        add(f"{name}: to another host", frame(packet, outer), "not-here", None, len(bytes(packet)))
    add("6in4: to this host's IPv6 address in IPv4 clothes",
        frame(head(4, 41, dst="32.1.13.184") / Raw(bytes(inner(6))), 4), "not-here", None, 80)
    for family in 4, 6:
        raw = bytes(inner(family, UDP() / Raw(bytes(64))))[:64]
        for what, fields in (("first", {"flags": "MF"}), ("later", {"frag": 8})):
            packet = head(4, PROTO[family], **fields) / Raw(raw)
            add(f"{family}in4: a {what} outer fragment", frame(packet, 4), "fragment", None, 84)
        packet = headers([lambda **o: IPv6ExtHdrFragment(m=1, **o)], PROTO[family], Raw(raw))
        add(f"{family}in6: an outer fragment", frame(packet, 6), "fragment", None, 112)
        for kinds in ([IPv6ExtHdrRouting], [IPv6ExtHdrHopByHop, IPv6ExtHdrRouting],
                      [IPv6ExtHdrDestOpt, IPv6ExtHdrRouting, IPv6ExtHdrDestOpt]):
            kinds = [kind if kind != IPv6ExtHdrRouting else
                     lambda **o: IPv6ExtHdrRouting(segleft=1, addresses=[HERE6], **o)
                     for kind in kinds]
            packet = headers(kinds, PROTO[family], inner(family))
            add(f"{family}in6: {len(kinds)} headers, segments left", frame(packet, 6), "routed", None,
                len(bytes(packet)))
    first = head(4, 17, flags="MF") / udp(len=1000) / Raw(bytes(inner(4)))
    add("gue 4in4: first outer fragment", frame(bytes(first)[:20 + 8 + 40], 4), "fragment", None, 68)


def gue_other_cases():
    packet = bytes(inner(4))
    others = {
        "nothing": b"",
        "one byte of variant 0": b"\0",
        "three bytes of variant 0": b"\0\x04\0",
        "control": struct.pack("!BBH", 0x20, 4, 0) + packet,
        "an extension": struct.pack("!BBHI", 1, 4, 0x8000, 0) + packet,
        "flags without extension": struct.pack("!BBH", 0, 4, 1) + packet,
        "no IP in it": struct.pack("!BBH", 0, 6, 0) + packet,
        "version 2": b"\x80" + packet,
        "version 3": b"\xc0" + packet,
    }
    for outer in 4, 6:
        for name, raw in others.items():
            wrapped = head(outer, 17) / udp() / Raw(raw)
            add(f"gue in {outer}: {name}", frame(wrapped, outer), "gue-other", None, len(bytes(wrapped)))


def untouched_cases():
    """Not counted: not a tunnel, or a malformed outer packet, which the stack checks too."""
    for outer in 4, 6:
        for name, packet in {
                "tcp": head(outer, 6) / TCP() / Raw(bytes(inner(4))),
                "another port": head(outer, 17) / udp(dport=6081) / Raw(bytes(inner(4))),
                "from the port": head(outer, 17) / UDP(sport=PORT, dport=53) / Raw(bytes(inner(4))),
                "gre": head(outer, 47) / GRE() / Raw(bytes(inner(4))),
                "sctp, the port": head(outer, 132) / Raw(struct.pack("!HHII", 1, PORT, 0, 0)),
        }.items():
            add(f"{name} in {outer}", frame(packet, outer))
        too_long = head(outer, 17) / udp(len=2000) / Raw(bytes(inner(4)))
        add(f"gue in {outer}: UDP length beyond the packet", frame(too_long, outer))
        for tunnel in TUNNELS.values():
            whole = frame(tunnel(outer, inner(10 - outer)), outer, ((0x8100, 7),))
            for length in range(14, len(whole)):
                add(f"in {outer}: cut after {length} bytes", whole[:length])
    add("arp", bytes(Ether(**MACS) / ARP()))
    deep = tuple((0x8100, n) for n in range(1, 6))
    add("4in4: five tags", frame(TUNNELS["ipip"](4, inner(4)), 4, deep))
    add("4in4: IPv4 header of 16 bytes", frame(head(4, 4, ihl=4) / Raw(bytes(inner(4))), 4))


def split_cases():
    """The inner header after the first buffer; only some kernels support this test."""
    for family, size in (4, 20), (6, 40):
        packet = inner(family, UDP() / Raw(bytes(1000)))
        wrapped = TUNNELS["ipip"](4, packet)
        given = frame(wrapped, 4)
        add(f"{family}in4: split in the inner header", given, "header-split", None, len(bytes(wrapped)),
            34 + size - 1)
        add(f"{family}in4: split after it", given, f"{family}in4", frame(packet, family),
            len(bytes(wrapped)), 34 + size)


# Sources of tunnels, and inner packets

SOURCES = {  # and whether tunnels are taken from there
    4: {"192.0.2.0": True, "192.0.2.15": True, "192.0.2.16": False, "192.0.2.77": True, "192.0.2.76": False,
        "203.0.113.5": False, HERE4: False, "32.1.13.184": False, "0.0.0.0": False},
    6: {"2001:db8:1::": True, "2001:db8:1::ffff": True, "2001:db8:1:1::": False, "2001:db8:4::7": True,
        "2001:db8:4::6": False, HERE6: False, "::c000:201": False, "::ffff:192.0.2.1": False},
}


def source_cases(anybody=False):
    for name, tunnel, outer, family in everywhere():
        for source, taken in SOURCES[outer].items():
            title = f"{name}: {'any, ' if anybody else ''}from {source}"
            if taken or anybody:
                stripped(title, tunnel, outer, inner(family), src=source)
            else:
                packet = TUNNELS[tunnel](outer, inner(family), src=source)
                add(title, frame(packet, outer), "foreign", None, len(bytes(packet)))


TARGETS = {  # and whether they are this host's
    4: {HERE4: True, "203.0.113.128": True, "203.0.113.255": True, "203.0.113.127": False, "127.0.0.1": False,
        "198.51.100.2": False, "224.0.0.1": False, "255.255.255.255": False, "10.0.0.9": False},
    6: {HERE6: True, "2001:db8:f:1:ffff::": True, "2001:db8:f:2::": False, "::1": False, "ff02::1": False,
        "2001:db8:2::2": False, "::ffff:198.51.100.1": False},
}


def target_cases(forward=False):
    for name, tunnel, outer, family in everywhere():
        for target, here in TARGETS[family].items():
            title = f"{name}: {'forward, ' if forward else ''}for {target}"
            packet = inner(family, dst=target)
            if here or forward:
                stripped(title, tunnel, outer, packet)
            else:
                wrapped = TUNNELS[tunnel](outer, packet)
                add(title, frame(wrapped, outer), "inner-elsewhere", None, len(bytes(wrapped)))
    for local, outer in (("203.0.113.200", 4), ("2001:db8:f:1::9", 6)):
        stripped(f"a tunnel to {local}", "ipip", outer, inner(4), dst=local)


def write(out):
    for make in (whole_cases, field_cases, outer_cases, ecn_cases, dropped_cases, slack_cases,
                 passed_cases, gue_other_cases, untouched_cases, split_cases, source_cases, target_cases):
        make()
    here = [HERE4, HERE6, VIP4, VIP6, LOCAL4, LOCAL6]
    write_block(out, here, BALANCERS)
    target_cases(forward=True)
    write_block(out, here, BALANCERS, "decap-forward 1")
    source_cases(anybody=True)
    write_block(out, here, ["0.0.0.0/0", "::/0"])


def write_block(out, here, sources, *more):
    print(f"decap-begin {PORT}", *(f"decap-here {prefix}" for prefix in here),
          *(f"decap-from {prefix}" for prefix in sources), *more, sep="\n", file=out)
    for name, given, counter, result, length, linear in cases:
        print(f"decap-case decap: {name}", file=out)
        if linear:
            print(f"decap-linear {linear}", file=out)
        print(f"decap-frame {given.hex()}", file=out)
        if result is not None:
            print(f"decap-out {result.hex()}", file=out)
        print(f"decap-expect {counter} {length}" if counter else "decap-expect none 0", file=out)
    cases.clear()
