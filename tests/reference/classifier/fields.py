# SPDX-License-Identifier: GPL-2.0-only
"""Random lists of numbers that a rule may have: ports, protocols, types, tags and the like."""
import functools
import socket

from addresses import Define, site_address, text_of
from frames import SOURCE

PROTOS = {"tcp": 6, "udp": 17, "icmp": 1, "icmp6": 58, "sctp": 132, "gre": 47, "esp": 50, "ah": 51, "igmp": 2,
          "ipip": 4, "ip6": 41, "ospf": 89, "pim": 103, "vrrp": 112, "udplite": 136, "dccp": 33}
TYPES = {  # of ICMP and ICMPv6, None: it has none
    "echo-request": (8, 128), "echo-reply": (0, 129), "destination-unreachable": (3, 1),
    "time-exceeded": (11, 3), "parameter-problem": (12, 4), "packet-too-big": (None, 2),
    "redirect": (5, 137), "router-solicitation": (10, 133), "router-advertisement": (9, 134),
    "neighbor-solicitation": (None, 135), "neighbor-advertisement": (None, 136),
}
DSCPS = {"ef": 46, "cs0": 0, "cs1": 8, "cs7": 56, "af11": 10, "af23": 22, "af41": 34, "af43": 38}
ETHERTYPES = {"arp": (0x0806,), "lldp": (0x88cc,), "eapol": (0x888e,), "mpls": (0x8847, 0x8848),
              "pppoe": (0x8863, 0x8864), "ipv4": (0x0800,), "ipv6": (0x86dd,), "0x1234": (0x1234,),
              "0x88F7": (0x88f7,), "0x88b5": (0x88b5,)}
FLAGS = ("fin", "syn", "rst", "psh", "ack", "urg")  # bit by bit
FIN, SYN, RST, ACK = 1, 2, 4, 16
SERVICES = ("ssh", "http", "https", "domain", "ntp", "smtp", "snmp", "www", "syslog", "telnet", "ftp-data",
            "tftp")
USUAL_PORTS = (1, 22, 23, 53, 80, 123, 443, 1023, 1024, 5000, 8080, 8443, 32768, 65534, 65535)
MAC_MOST = (1 << 48) - 1
USUAL_VLANS = (1, 2, 3, 7, 8, 100, 255, 256, 4093, 4094)
PORT_PROTOS = (("tcp",), ("udp",), ("6",), ("17",), ("sctp",), ("tcp", "udp"), ("udp", "tcp"),
               ("sctp", "tcp"), ("udp", "sctp"), ("tcp", "udp", "sctp"))
PORT_PROTO_CHANCES = (4, 3, 1, 1, 1, 1, 1, 1, 1, 1)


class Numbers:
    """A list of numbers as text, and as values to aim at."""
    __slots__ = ("given", "negated", "ranges", "words", "text")

    def __init__(self):
        self.given = self.negated = False
        self.ranges = []  # (low, high, is an exception)
        self.words = []
        self.text = ""

    def has(self, low, high):
        return any(one[:2] == (low, high) for one in self.ranges)

    def put(self, low, high, word, negative=False):
        self.given = True
        self.ranges.append((low, high, negative))
        self.words.append(f"not {word}" if negative else word)

    def put_number(self, value, word=None):
        if not self.has(value, value):
            self.put(value, value, word or str(value))

    def done(self, draw, negated_percent, separator=", "):
        self.negated = draw.chance(negated_percent)
        self.text = ("not " if self.negated else "") + separator.join(self.words)
        return self


def random_port(draw):
    if draw.chance(60):
        return draw.pick(USUAL_PORTS)
    return draw.between(1, 2000 if draw.chance(50) else 65535)


@functools.cache
def service_port(name, protos):
    """The port of a service if it is the same in each of the protocols, else None."""
    try:
        ports = {socket.getservbyname(name, proto) for proto in protos}
    except OSError:
        return None
    return ports.pop() if len(ports) == 1 else None


def put_named_port(gen, ports, protos):
    if not protos or not gen.options.uses("named-ports"):
        return False
    name = gen.draw.pick(SERVICES)
    port = service_port(name, protos)
    if port:
        ports.put_number(port, name)
    return bool(port)


def put_port_range(draw, ports):
    low, high = sorted((random_port(draw), random_port(draw)))
    if draw.chance(50):
        high = min(low + draw.between(1, 40), 65535)
    if low != high and not ports.has(low, high):
        ports.put(low, high, f"{low}-{high}")


def put_port_exception(draw, ports):
    """Inside one range, adjacent to no other item, so that there is one reading. True: one was added."""
    low, high, _ = draw.pick(ports.ranges)
    low = draw.between(low, high)
    high = low if draw.chance(50) else draw.between(low, high)
    for start, end, negative in ports.ranges:
        inside = start <= low and high <= end and end - start > high - low
        if not (end < low or start > high) and (negative or not inside):
            return False
    ports.put(low, high, str(low) if low == high else f"{low}-{high}", True)
    return True


def from_define(gen, kind):
    """A list that is a define, or None."""
    define = gen.draw.pick(gen.defines) if gen.defines else None
    if not define or define.kind != kind:
        return None
    made = Numbers()
    made.given, made.ranges, made.negated = True, define.value.ranges, define.value.negated
    made.text = f"${define.name}"
    if not define.alone and kind != "protos" and gen.draw.chance(8):
        made.negated, made.text = True, f"not {made.text}"
    return made


def make_port_sets(gen):
    """Sets of ports, of the ports of rules: spans, definitions, names of services and exceptions."""
    for at in range(gen.draw.below(4) if gen.options.uses("port-sets") else 0):
        made = make_list_of_ports(gen, ("tcp", "udp", "sctp"), gen.draw.between(1, 9), False)
        gen.port_sets.append((f"{'ports' if at == 0 and gen.draw.chance(30) else f'pset_{at}'}", made))


def from_port_set(gen):
    """A list with a set of ports, or None; perhaps another port beside it."""
    if not gen.port_sets or not gen.may("port-sets", 30):
        return None
    draw, made = gen.draw, Numbers()
    name, value = draw.pick(gen.port_sets)
    made.given, made.ranges, made.words = True, list(value.ranges), [f"@{name}"]
    if draw.chance(30):
        made.put_number(random_port(draw))
    return made.done(draw, 10)


def make_ports(gen, protos):
    """protos: the names of those that are given with them"""
    draw = gen.draw
    made = from_define(gen, "ports") if draw.chance(25) else None
    made = made or from_port_set(gen)
    return made or make_list_of_ports(gen, protos, 1 if draw.chance(55) else draw.between(2, 5), True)


def make_list_of_ports(gen, protos, items, may_negate):
    draw, made = gen.draw, Numbers()
    for _ in range(items):
        if draw.chance(35):
            put_port_range(draw, made)
        elif not draw.chance(30) or not put_named_port(gen, made, protos):
            made.put_number(random_port(draw))
    if not made.ranges:
        made.put_number(random_port(draw))
    exception = draw.chance(12) and put_port_exception(draw, made)
    return made.done(draw, 0 if exception or not may_negate else 7)


def make_port_protos(gen):
    """(protocols that have ports, their names)"""
    draw = gen.draw
    made = from_define(gen, "protos") if draw.chance(15) else None
    if made:
        return made, ("tcp", "udp")
    words = draw.choices(PORT_PROTOS, PORT_PROTO_CHANCES)[0]
    names = tuple({"6": "tcp", "17": "udp"}.get(word, word) for word in words)
    made = Numbers()
    for word, name in zip(words, names):
        made.put_number(PROTOS[name], word)
    return made.done(draw, 0, draw.pick((", ", ","))), names


def make_protos(gen):
    draw, made = gen.draw, Numbers()
    for _ in range(1 if draw.chance(65) else draw.between(2, 4)):
        name = draw.pick(tuple(PROTOS))
        if draw.chance(20):
            made.put_number(draw.below(256))
        else:
            made.put_number(PROTOS[name], name)
    return made.done(draw, 7)


def put_type_name(gen, types, words, families, written):
    """The word is a type of each family that `proto` names; without `proto` of any that knows it."""
    name = gen.draw.pick(gen.types)
    numbers = {family: TYPES[name][family == 6] for family in families}
    known = {family: number for family, number in numbers.items() if number is not None}
    if (written and len(known) < len(numbers)) or any(types[f].has(n, n) for f, n in known.items()):
        return
    for family, number in known.items():
        types[family].put_number(number, name)
    words.append(name)


def make_types(gen, rule):
    """`proto … type … code …` as text; the rule gets the values."""
    draw, words = gen.draw, []
    proto, families = draw.pick((("", (4, 6)), ("proto icmp ", (4,)), ("proto icmp6 ", (6,)),
                                 ("proto icmp, icmp6 ", (4, 6))))
    types = {4: rule.types4, 6: rule.types6}
    negated = draw.chance(12)
    count, tries = 1 if draw.chance(60) else draw.between(2, 4), 0
    while tries < count or (tries < 50 and not words):
        tries += 1
        number = draw.below(20 if draw.chance(60) else 256)
        if not proto or len(families) == 2 or not draw.chance(40):
            put_type_name(gen, types, words, families, bool(proto))
        elif not types[families[0]].has(number, number):
            types[families[0]].put_number(number)
            words.append(str(number))
    rule.types4.negated = rule.types6.negated = negated
    rule.families = rule.types4.given + 2 * rule.types6.given
    text = f"{proto}type {'not ' if negated else ''}{', '.join(words)}"
    if negated or len(words) > 1 or not draw.chance(35):
        return text
    for _ in range(draw.between(1, 3)):
        rule.code.put_number(draw.below(6))
    return f"{text} code {rule.code.done(draw, 6).text}"


def flag_words(flags):
    return ",".join(name for bit, name in enumerate(FLAGS) if flags >> bit & 1)


def make_flags(gen, rule):
    """`flags …` as text; the rule gets the values."""
    draw = gen.draw
    rule.flags_given = True
    if draw.chance(10):
        rule.flags_set, rule.flags_mask = 0, 0x3f
        return "flags none"
    rule.flags_set = draw.between(1, 63)
    if draw.chance(40):
        rule.flags_set = SYN if draw.chance(60) else SYN | ACK
    if not draw.chance(60):
        rule.flags_mask = rule.flags_set | FIN | SYN | RST | ACK
        return f"flags {flag_words(rule.flags_set)}"
    rule.flags_mask = draw.between(1, 63) | rule.flags_set
    slash = "/" if draw.chance(80) else " / "
    return f"flags {flag_words(rule.flags_set)}{slash}{flag_words(rule.flags_mask)}"


def mac_text(value):
    return ":".join(f"{byte:02x}" for byte in value.to_bytes(6, "big"))


def random_mac(draw):
    """Near the source of most frames, at the ends of all addresses, or of any word."""
    roll = draw.below(100)
    if roll < 70:
        return SOURCE + draw.between(-6, 6)
    if roll < 80:
        return draw.pick((0, 1, MAC_MOST, MAC_MOST - 1, 0xffffffff, 0x100000000, SOURCE ^ 1 << 47))
    return draw.below(MAC_MOST + 1)


def make_list_of_macs(gen, items, may_negate):
    draw, made = gen.draw, Numbers()
    for _ in range(items):
        low, high = random_mac(draw), random_mac(draw)
        if draw.chance(60) or low >= high:
            high = low
        text = mac_text(low) if low == high else f"{mac_text(low)}-{mac_text(high)}"
        text = text.upper() if draw.chance(10) else text
        if not made.has(low, high):
            made.put(low, high, text, bool(made.ranges) and not may_negate and draw.chance(15))
    if not any(takes_some(made, at) for at in {low for low, _, _ in made.ranges} | {SOURCE}):
        return make_list_of_macs(gen, items, may_negate)
    return made.done(draw, 15 if may_negate else 0)


def takes_some(made, value):
    inside = [negative for low, high, negative in made.ranges if low <= value <= high]
    return bool(inside) and not any(inside)


def make_mac_sets(gen):
    for at in range(gen.draw.below(3) if gen.options.uses("mac") else 0):
        made = make_list_of_macs(gen, gen.draw.between(1, 9 if gen.draw.chance(80) else 60), False)
        gen.mac_sets.append((("macs", "mac", "mset_2")[at], made))


def make_macs(gen):
    draw = gen.draw
    if not gen.mac_sets or draw.chance(50):
        return make_list_of_macs(gen, 1 if draw.chance(55) else draw.between(2, 5), True)
    made = Numbers()
    name, value = draw.pick(gen.mac_sets)
    made.given, made.ranges, made.words = True, list(value.ranges), [f"@{name}"]
    if draw.chance(30):
        mac = random_mac(draw)
        made.put_number(mac, mac_text(mac))
    return made.done(draw, 20)


def make_pair_sets(gen):
    """(name, pairs of family, address, first and last port): few addresses, so that pairs share one."""
    for at in range(gen.draw.below(3) if gen.options.uses("pairs") else 0):
        draw, pairs = gen.draw, []
        addresses = [(family, site_address(gen, family)) for family in (4, 6) for _ in range(draw.between(1, 4))]
        for _ in range(draw.between(1, 12)):
            low = random_port(draw)
            pairs.append((*draw.pick(addresses), low, min(low + draw.pick((0, 0, 0, 1, 30)), 65535)))
        gen.pair_sets.append((f"{'pairs' if at == 0 else 'web'}{at or ''}", pairs))


def pairs_text(pairs):
    return ", ".join(f"{text_of(family, value)} port {low if low == high else f'{low}-{high}'}"
                     for family, value, low, high in pairs)


def make_vlans(gen):
    draw = gen.draw
    made = from_define(gen, "vlans") if draw.chance(15) else None
    if made:
        return made
    made = Numbers()
    for _ in range(draw.between(1, 3)):
        if draw.chance(15):
            made.put_number(0, "none")
        else:
            made.put_number(draw.pick(USUAL_VLANS))
    return made.done(draw, 10)


def make_dscps(gen):
    draw, made = gen.draw, Numbers()
    for _ in range(draw.between(1, 3)):
        if draw.chance(50):
            made.put_number(draw.below(64))
        else:
            name = draw.pick(tuple(DSCPS))
            made.put_number(DSCPS[name], name)
    return made.done(draw, 8)


def make_ethertypes(gen):
    draw, made = gen.draw, Numbers()
    if draw.chance(4):
        made.put(0x600, 0xffff, "any")
        return made.done(draw, 0)
    words = []
    for _ in range(1 if draw.chance(70) else draw.between(2, 4)):
        name = draw.pick(tuple(ETHERTYPES))
        if name not in words:
            words.append(name)
            for value in ETHERTYPES[name]:
                made.put_number(value, name)
    made.words = words
    return made.done(draw, 6)


def make_on(gen):
    """Interfaces, by their places in the list."""
    draw, made = gen.draw, Numbers()
    for _ in range(1 if draw.chance(70) else 2):
        at = draw.below(len(gen.ifaces))
        made.put_number(at, gen.ifaces[at])
    return made.done(draw, 15 if len(gen.ifaces) > len(made.ranges) else 0)


def make_span(gen, values, most):
    """One number or one range that begins with one of these values."""
    draw, made = gen.draw, Numbers()
    low = high = draw.pick(values)
    if draw.chance(65):
        high = min(low + draw.between(1, 8 if draw.chance(50) else 300), most)
    made.put(low, high, str(low) if low == high else f"{low}-{high}")
    return made.done(draw, 0)


def make_define(gen, define):
    if define.kind == "ports":
        define.value = make_ports(gen, ())
    elif define.kind == "protos":
        names = ()
        while set(names) != {"tcp", "udp"}:
            define.value, names = make_port_protos(gen)
    else:
        define.value = make_vlans(gen)
    define.alone = define.value.negated or any(negative for _, _, negative in define.value.ranges)


def make_defines(gen):
    """One after the other: a define may be used in a later one."""
    for at in range(gen.draw.below(6) if gen.options.uses("define") else 0):
        define = Define(f"num_{at}", gen.draw.pick(("ports", "protos", "vlans")))
        make_define(gen, define)
        gen.defines.append(define)
