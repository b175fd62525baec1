# SPDX-License-Identifier: GPL-2.0-only
"""Random packets: at the edges of what a rule allows, one step off, of a special kind, or broken."""
from addresses import BITS, FAMILY_BIT, MOST, site_address, value_of
from fields import MAC_MOST, PROTOS
from frames import (ATOMIC, DESTINATION, FIRST, HEADERS, HOP_BY_HOP, ICMP, ICMP6, LATER, ROUTING, SCTP,
                    TCP, UDP, WHOLE, Spec, build)
from rules import Rule

ANYTHING = Rule()
STRAY = "other0"  # an interface that no policy names

PORTS_PROTOS = (TCP, UDP, SCTP)
OTHER_PROTOS = tuple(PROTOS[name] for name in ("gre", "esp", "ah", "igmp", "ipip", "ip6", "ospf", "udplite", "dccp")
                     ) + (59, 253, 135)
USUAL_PORTS = (53, 80, 443, 22, 1023, 1024, 40000, 67, 68, 546, 547, 0)
USUAL_TYPES = {4: (8, 0, 3, 11, 12, 5, 13), 6: (128, 129, 1, 2, 3, 4, 133, 134, 135, 136, 137, 143, 130)}
USUAL_FLAGS = (0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0x14, 0x29, 0, 0xc2)
USUAL_TTLS = (64, 64, 63, 1, 128, 254, 255)
USUAL_VIDS = (0, 1, 2, 7, 8, 100, 256, 4094, 4095)
OFFSETS = (1, 2, 3, 185, 0x1000, 0x1fff)
EXTENSIONS = (HOP_BY_HOP, ROUTING, DESTINATION, DESTINATION, ROUTING)
ETHERTYPES = (0x0806, 0x0806, 0x0806, 0x88cc, 0x888e, 0x8847, 0x8848, 0x8863, 0x8864, 0x0026, 0x05dc, 0x0600,
              0x9100, 0x1234, 0x88f7, 0x8035, 0xffff, 0x0000)
IP4, IP6 = 0x0800, 0x86dd


class Packet:
    """A frame with its interface and flags."""
    __slots__ = ("iface", "over", "established", "unroutable", "frame")

    def __init__(self, iface, over=False, established=False):
        self.iface, self.over, self.established, self.unroutable = iface, over, established, False
        self.frame = None

    def end(self):
        """The line from the flags on."""
        flags = ",".join(name for name in ("over", "established", "unroutable") if getattr(self, name))
        return f"{flags or '-'} {self.frame.bytes.hex() or '-'}\n"


# ---- a packet that satisfies a rule ---------------------------------------------------------------------

def item_address(draw, item, outside):
    """The first, the last or some address of an item; just outside of an exception."""
    value = item.low if draw.chance(50) else item.high
    if outside:
        return value + (-1 if value == item.low else 1) & MOST[item.family]
    if draw.chance(35):
        return item.low + draw.getrandbits(BITS[item.family]) % (item.high - item.low + 1)
    return value


def pick_address(gen, addresses, family):
    """Mostly one that the list matches; None: no such address was found."""
    draw = gen.draw
    for _ in range(12 if addresses.items else 0):
        item = draw.pick(addresses.items)
        outside = item.negative != addresses.negated and draw.chance(75)
        if item.set is not None:
            found = pick_address(gen, item.set.addresses, family)
            if found is not None:
                return found
        elif item.family == family:
            return item_address(draw, item, outside)
    return None


def aim_address(gen, addresses, family):
    found = None
    if addresses.given and not (addresses.negated and gen.draw.chance(50)):
        found = pick_address(gen, addresses, family)
    return site_address(gen, family) if found is None else found


def takes(numbers, value):
    taken = False
    for low, high, negative in numbers.ranges:
        if low <= value <= high:
            if negative:
                return False
            taken = True
    return taken


def aim_number(draw, numbers, most):
    """A value that the list matches, mostly at an edge; any value if none is found."""
    anything, value = draw.chance(10), 0
    for _ in range(30):
        low, high, negative = draw.pick(numbers.ranges)
        value = low if draw.chance(50) else high
        if draw.chance(25):
            value = draw.between(low, high)
        if negative != numbers.negated and not anything:
            value = low - 1 if draw.chance(50) else high + 1
            if draw.chance(30):
                value = draw.below(most + 1)
        if 0 <= value <= most and (anything or takes(numbers, value) != numbers.negated):
            return value
    return min(max(value, 0), most)


def usual_proto(draw, family):
    roll = draw.below(100)
    if roll < 42:
        return TCP
    if roll < 72:
        return UDP
    if roll < 78:
        return SCTP
    if roll < 88:
        return ICMP if family == 4 else ICMP6
    return draw.pick(OTHER_PROTOS)


def aim_proto(draw, rule, family):
    if rule.types4.given or rule.types6.given:
        return ICMP if family == 4 else ICMP6
    if rule.flags_given:
        return TCP
    if rule.proto.given and not (rule.proto.negated and draw.chance(50)):
        return aim_number(draw, rule.proto, 255)
    if rule.proto.given:
        return usual_proto(draw, family)
    if rule.sport.given or rule.dport.given or rule.from_pairs or rule.to_pairs:
        return draw.pick(PORTS_PROTOS)
    return draw.pick(PORTS_PROTOS[:2]) if rule.established or rule.untracked else usual_proto(draw, family)


def aim_port(draw, numbers):
    if numbers.given:
        return aim_number(draw, numbers, 65535)
    return draw.pick(USUAL_PORTS) if draw.chance(50) else draw.below(65536)


def aim_type(draw, rule, spec):
    types = rule.types4 if spec.family == 4 else rule.types6
    spec.type = aim_number(draw, types, 255) if types.given else draw.pick(USUAL_TYPES[spec.family])
    if rule.code.given:
        spec.code = aim_number(draw, rule.code, 255)
    elif not draw.chance(60):
        spec.code = draw.below(7)


def aim_transport(draw, rule, spec):
    if spec.proto in (ICMP, ICMP6):
        aim_type(draw, rule, spec)
    spec.sport, spec.dport = aim_port(draw, rule.sport), aim_port(draw, rule.dport)
    if spec.proto == TCP:
        spec.flags = draw.below(256) if draw.chance(15) else draw.pick(USUAL_FLAGS)
        if rule.flags_given:
            spec.flags = spec.flags & ~rule.flags_mask | rule.flags_set
        if draw.chance(20):
            spec.tcp_options = draw.between(1, 10)


def add_extensions(draw, spec):
    count = draw.between(1, 3) if draw.chance(70) else draw.between(4, 8)
    spec.exts = [(draw.pick(EXTENSIONS), 0 if draw.chance(70) else draw.below(5)) for _ in range(count)]
    if draw.chance(70):
        spec.exts[0] = (HOP_BY_HOP, spec.exts[0][1])


def aim_fragment(draw, rule, spec):
    roll = draw.below(100)
    if rule.fragment or roll < 3:
        spec.fragment = LATER
    elif roll < 6:
        spec.fragment = FIRST
    elif roll < 9 and spec.family == 6:
        spec.fragment = ATOMIC
    else:
        return
    spec.offset = draw.pick(OFFSETS)
    del spec.exts[7:]
    spec.fragment_at = len(spec.exts) if draw.chance(70) else draw.between(0, len(spec.exts))


def aim_header(gen, rule, spec):
    draw = gen.draw
    spec.ttl = aim_number(draw, rule.ttl, 255) if rule.ttl.given else draw.pick(USUAL_TTLS)
    if rule.dscp.given:
        spec.dscp = aim_number(draw, rule.dscp, 63)
    elif draw.chance(20):
        spec.dscp = draw.below(64)
    if not gen.options.uses("uncommon") and not rule.fragment and draw.chance(90):
        return
    if spec.family == 4:
        if draw.chance(12):
            spec.options = draw.between(1, 10)
    elif draw.chance(18):
        add_extensions(draw, spec)
    aim_fragment(draw, rule, spec)


def aim_length(draw, rule, spec):
    if rule.length.given:
        spec.length = aim_number(draw, rule.length, 1500)
        if draw.chance(70):
            spec.options, spec.exts, spec.tcp_options, spec.fragment_at = 0, [], 0, 0
            return
    elif draw.chance(30):
        spec.length = draw.between(60, 140) if draw.chance(93) else draw.between(140, 1500)
    if draw.chance(15):
        spec.padding = draw.between(1, 20)


def aim_pair(draw, pairs, spec, address, port):
    """A pair of the family, or its address with the port of another one."""
    some = [one for one in pairs or () if one[0] == spec.family]
    if some:
        setattr(spec, address, draw.pick(some)[1])
        _, value, low, high = draw.pick(some)
        setattr(spec, port, low if draw.chance(50) else high)
        if draw.chance(80):
            setattr(spec, address, value)


def aim_ip(gen, rule, spec):
    draw, families = gen.draw, rule.families
    if (rule.types4.given or rule.types6.given) and draw.chance(10):
        families = 3  # also the family that does not know the type
    if families == 3:
        families = 1 if draw.chance(55) else 2
    spec.family = family = 4 if families == 1 else 6
    spec.src, spec.dst = aim_address(gen, rule.source, family), aim_address(gen, rule.target, family)
    spec.proto = aim_proto(draw, rule, family)
    aim_transport(draw, rule, spec)
    aim_pair(draw, rule.from_pairs, spec, "src", "sport")
    aim_pair(draw, rule.to_pairs, spec, "dst", "dport")
    aim_header(gen, rule, spec)
    aim_length(draw, rule, spec)


def aim_ethertype(gen, rule, spec):
    draw = gen.draw
    spec.ethertype = aim_number(draw, rule.ethertype, 0xffff)
    spec.length = aim_number(draw, rule.length, 1500) if rule.length.given else 60
    if spec.ethertype not in (IP4, IP6):
        return
    length = spec.length - HEADERS["ETHER"].bytes - HEADERS["TAG"].bytes * len(spec.tags)
    ip = Rule()
    ip.families = FAMILY_BIT[4 if spec.ethertype == IP4 else 6]
    aim_ip(gen, ip, spec)
    spec.padding = 0
    if rule.length.given:  # of the frame
        spec.length = max(length, 0)


def add_tag(draw, spec, vid):
    priority = draw.below(16) << 12 if draw.chance(30) else 0
    spec.tags.append((0x8100 if draw.chance(75) else 0x88a8, vid | priority))


def aim_tags(draw, rule, spec):
    if rule.vlan.given:
        vid = aim_number(draw, rule.vlan, 4094)
        if vid == 0 and draw.chance(60):
            return
    elif draw.chance(8):
        vid = draw.pick(USUAL_VIDS)
    else:
        return
    add_tag(draw, spec, vid)
    while len(spec.tags) < 4 and draw.chance(30):
        add_tag(draw, spec, draw.pick(USUAL_VIDS))


def aim(gen, rule):
    """(packet without a frame, its description)"""
    draw, spec = gen.draw, Spec()
    at = aim_number(draw, rule.on, len(gen.ifaces) - 1) if rule.on.given else draw.below(len(gen.ifaces))
    packet = Packet(gen.ifaces[at])
    packet.over = draw.chance(85) if rule.over or rule.probability else not rule.under and draw.chance(8)
    packet.established = draw.chance(85 if rule.established else 15 if rule.untracked else 8)
    packet.unroutable = draw.chance(85 if rule.unroutable else 8)
    aim_tags(draw, rule, spec)
    if rule.mac.given:
        spec.mac = aim_number(draw, rule.mac, MAC_MOST)
    if rule.ethertype.given:
        aim_ethertype(gen, rule, spec)
    else:
        aim_ip(gen, rule, spec)
    return packet, spec


# ---- one step off what the rule allows ------------------------------------------------------------------

def step(draw, value, most):
    return value + (1 if draw.chance(50) else -1) & most


def nudge_address(draw, family, value):
    if draw.chance(70):
        return step(draw, value, MOST[family])
    return value ^ 1 << draw.below(BITS[family])


def nudge_src(draw, spec):
    spec.src = nudge_address(draw, spec.family, spec.src)


def nudge_dst(draw, spec):
    spec.dst = nudge_address(draw, spec.family, spec.dst)


def nudge_sport(draw, spec):
    spec.sport = step(draw, spec.sport, 0xffff)


def nudge_dport(draw, spec):
    spec.dport = step(draw, spec.dport, 0xffff)


def nudge_flags(draw, spec):
    spec.flags ^= 1 << draw.below(8)


def nudge_type(draw, spec):
    if draw.chance(60):
        spec.type = step(draw, spec.type, 0xff)
    else:
        spec.code = step(draw, spec.code, 0xff)


def nudge_ttl(draw, spec):
    spec.ttl = step(draw, spec.ttl, 0xff)


def nudge_dscp(draw, spec):
    spec.dscp = step(draw, spec.dscp, 0x3f)


def nudge_length(draw, spec):
    spec.length = step(draw, spec.length, 0xffff) if spec.length else 61


def nudge_proto(draw, spec):
    spec.proto = UDP if draw.chance(50) else draw.below(256)


def nudge_fragment(draw, spec):
    spec.fragment = draw.pick((WHOLE, FIRST, LATER, ATOMIC)[:4 if spec.family == 6 else 3])
    spec.offset = 1
    if spec.fragment != WHOLE:
        del spec.exts[7:]
    spec.fragment_at = len(spec.exts)


# The fields that can be changed by a step, and whether a rule has them.
STEPS = (
    (nudge_src, lambda rule: rule.source.given),
    (nudge_dst, lambda rule: rule.target.given),
    (nudge_sport, lambda rule: rule.sport.given),
    (nudge_dport, lambda rule: rule.dport.given),
    (nudge_flags, lambda rule: rule.flags_given),
    (nudge_type, lambda rule: rule.types4.given or rule.types6.given),
    (nudge_ttl, lambda rule: rule.ttl.given),
    (nudge_dscp, lambda rule: rule.dscp.given),
    (nudge_length, lambda rule: rule.length.given),
    (nudge_proto, lambda rule: rule.proto.given),
    (nudge_fragment, lambda rule: rule.fragment),
)


def nudge_ip(draw, rule, spec):
    """Mostly in a field that the rule has."""
    nudge_one, given = draw.pick(STEPS)
    for _ in range(12 if draw.chance(85) else 0):
        if given(rule):
            break
        nudge_one, given = draw.pick(STEPS)
    nudge_one(draw, spec)


def nudge_tags(draw, spec):
    if not spec.tags:
        spec.tags.append((0x8100, 7))
    elif draw.chance(50):
        spec.tags[0] = (spec.tags[0][0], spec.tags[0][1] ^ 1 << draw.below(12))
    else:
        spec.tags.pop()


def nudge(gen, rule, packet, spec):
    draw = gen.draw
    roll = draw.below(100)
    if roll < (20 if rule.vlan.given else 5):
        nudge_tags(draw, spec)
    elif roll < (35 if rule.mac.given else 6):
        spec.mac = step(draw, spec.mac, MAC_MOST)
    elif roll < (45 if rule.on.given else 8):
        packet.iface = draw.pick(gen.ifaces)
    elif roll < (45 if rule.over or rule.under or rule.probability else 11):
        packet.over = not packet.over
    elif roll < (45 if rule.established or rule.untracked else 12):
        packet.established = not packet.established
    elif roll < (60 if rule.unroutable else 13):
        packet.unroutable = not packet.unroutable
    elif spec.family:
        nudge_ip(draw, rule, spec)
    elif draw.chance(50):
        spec.ethertype = step(draw, spec.ethertype, 0xffff)
    else:
        nudge_length(draw, spec)


def aimed(gen, rule):
    packet, spec = aim(gen, rule)
    if gen.draw.chance(35):
        nudge(gen, rule, packet, spec)
    packet.frame = build(spec)
    return packet


# ---- special kinds: essentials, neighbour discovery, and near misses of them ------------------------------

def set_addresses(spec, src, dst):
    spec.src, spec.dst = value_of(src), value_of(dst)


def make_nd(gen, spec):
    draw = gen.draw
    spec.family, spec.proto = 6, ICMP6
    set_addresses(spec, draw.pick(("fe80::1", "::", "2001:db8::1", "fd00::5")),
                  "ff02::1" if draw.chance(50) else "fe80::2")
    spec.type = draw.between(132, 138)
    spec.ttl = 255 if draw.chance(75) else draw.between(253, 254)
    spec.length = 72 if draw.chance(50) else 64
    if draw.chance(15):
        spec.fragment = ATOMIC if draw.chance(50) else FIRST
    if draw.chance(10):
        spec.exts = [(HOP_BY_HOP, 0)]


def make_mld(gen, spec):
    make_nd(gen, spec)
    spec.type = gen.draw.pick((130, 131, 132, 143, 129, 142, 144))
    spec.ttl = 1
    spec.exts = [(HOP_BY_HOP, 0)]  # router alert


def make_icmp_error(gen, spec):
    draw = gen.draw
    spec.family = 4 if draw.chance(50) else 6
    spec.proto = ICMP if spec.family == 4 else ICMP6
    spec.src, spec.dst = site_address(gen, spec.family), site_address(gen, spec.family)
    spec.type, spec.code = draw.below(14 if spec.family == 4 else 6), draw.below(6)
    spec.ttl, spec.length = 60, 100


def make_dhcp(gen, spec):
    draw = gen.draw
    spec.family = 4 if draw.chance(50) else 6
    spec.proto = UDP if draw.chance(90) else TCP
    if spec.family == 4:
        set_addresses(spec, "192.0.2.1", "255.255.255.255")
    else:
        set_addresses(spec, draw.pick(("fe80::1", "febf:ffff::1", "fec0::1", "2001:db8::1", "fe7f::1")), "fe80::9")
    spec.sport, spec.dport = (67, 68) if draw.chance(85 if spec.family == 4 else 15) else (547, 546)
    if draw.chance(20):
        spec.sport, spec.dport = spec.dport, spec.sport
    spec.ttl, spec.length, spec.offset = 64, 120, 10
    if draw.chance(10):
        spec.fragment = FIRST if draw.chance(50) else LATER


def make_ethertype(gen, spec):
    draw = gen.draw
    spec.ethertype = draw.pick(ETHERTYPES)
    spec.length = 60 if draw.chance(70) else draw.between(14, 100)
    if draw.chance(20):
        nudge_tags(draw, spec)


def make_odd_family(gen, spec):
    make_icmp_error(gen, spec)
    spec.proto = ICMP6 if spec.family == 4 else ICMP
    spec.length = gen.draw.between(40, 60)


SPECIAL = (make_nd, make_nd, make_mld, make_icmp_error, make_dhcp, make_ethertype, make_ethertype,
           make_odd_family, None, None)


def special(gen):
    draw, make = gen.draw, gen.draw.pick(SPECIAL)
    packet, spec = Packet(draw.pick(gen.ifaces), draw.chance(8), draw.chance(8)), Spec()
    if make:
        make(gen, spec)
    else:  # any address and port: nearly a rule's, or nothing of the kind
        spec = aim(gen, ANYTHING)[1]
    packet.frame = build(spec)
    return packet


# ---- broken: a frame with a byte or its end changed -------------------------------------------------------

def put8(frame, at, value):
    if at < len(frame.bytes):
        frame.bytes[at] = value & 0xff


def put16(frame, at, value):
    put8(frame, at, value >> 8)
    put8(frame, at + 1, value)


def truncate(gen, frame, least):
    least = max(least, gen.options.min_frame)
    if least < len(frame.bytes):
        del frame.bytes[gen.draw.between(least, len(frame.bytes) - 1):]


def length_at(frame, family):
    return frame.ip + HEADERS["IP4" if family == 4 else "IP6"].at["LENGTH"]


def break_ip_length(draw, frame, family):
    left = len(frame.bytes) - frame.ip - (0 if family == 4 else HEADERS["IP6"].bytes)
    put16(frame, length_at(frame, family),
          draw.pick((0, 1, 19, 20, 21, 7, left + 1, left - 1, left, 65535, draw.below(80))))


def break_transport(draw, frame, proto):
    left = len(frame.bytes) - frame.transport
    if proto == UDP:
        put16(frame, frame.transport + HEADERS["UDP"].at["LENGTH"],
              draw.pick((0, 1, 7, 8, 9, left, left + 1, 65535)))
    else:
        put8(frame, frame.transport + HEADERS["TCP"].at["OFFSET"], draw.below(16) << 4)


def break_payload(gen, frame, family):
    """A shorter IP payload, with the rest of the frame left as padding or cut off too."""
    keep = min(frame.transport - frame.ip + gen.draw.below(24), len(frame.bytes) - frame.ip)
    put16(frame, length_at(frame, family), keep - (0 if family == 4 else HEADERS["IP6"].bytes))
    if gen.draw.chance(50) and frame.ip + keep >= gen.options.min_frame:
        del frame.bytes[frame.ip + keep:]


def break_extension(draw, frame):
    ip6 = HEADERS["IP6"]
    if frame.transport > frame.ip + ip6.bytes:
        put8(frame, frame.ip + ip6.bytes + HEADERS["EXT"].at["LENGTH"], draw.below(256))
    else:
        put8(frame, frame.ip + ip6.at["NEXT"], HOP_BY_HOP if draw.chance(50) else DESTINATION)


def break_fragment(draw, frame):
    put16(frame, frame.ip + HEADERS["IP4"].at["FRAGMENT"], draw.below(65536) if draw.chance(50) else 0x2000)


def break_bytes(draw, frame):
    for _ in range(draw.between(1, 3)):
        put8(frame, frame.ip + draw.below(64), draw.below(256))


def break_frame(gen, frame, spec):
    draw, roll = gen.draw, gen.draw.below(12)
    if roll < 1:
        truncate(gen, frame, 0)
    elif roll < 3:
        truncate(gen, frame, frame.ip)
    elif roll < 4:
        put8(frame, frame.ip, draw.below(256))
    elif roll < 5:
        break_ip_length(draw, frame, spec.family)
    elif roll < 7:
        break_transport(draw, frame, spec.proto)
    elif roll < 9:
        break_payload(gen, frame, spec.family)
    elif roll < 10:
        (break_extension if spec.family == 6 else break_fragment)(draw, frame)
    else:
        break_bytes(draw, frame)


def overfill(draw, spec):
    """Too many tags or extension headers."""
    if spec.family == 6 and draw.chance(60):
        spec.exts = [(DESTINATION, 0)] * draw.between(7, 12)
    else:
        spec.tags = [(0x8100, 7)] * draw.between(4, 6)


def broken(gen, rule):
    draw = gen.draw
    packet, spec = aim(gen, rule)
    if spec.family and draw.chance(20):
        spec.fragment = FIRST
    whole = draw.chance(15)
    if whole:
        overfill(draw, spec)
    packet.frame = build(spec)
    if spec.family and not whole:
        break_frame(gen, packet.frame, spec)
    elif not whole:
        truncate(gen, packet.frame, 0)
    return packet
