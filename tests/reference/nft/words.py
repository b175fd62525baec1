# SPDX-License-Identifier: GPL-2.0-only
"""Random rules with one word, in the language of Weir and in nft's, and frames that meet or just miss them."""
import socket

from frames import (ATOMIC, DESTINATION, FIRST, HOP_BY_HOP, ICMP, ICMP6, LATER, SCTP, TCP, UDP, WHOLE, Spec, build)
from lab import FAR4, FAR6, GROUP, TCP_PORT, UDP_PORT

NETS = range(12)
PROTOS = {TCP: "tcp", UDP: "udp", SCTP: "sctp"}
FLAGS = {"syn": ("syn/syn,ack", "tcp flags & (syn | ack) == syn"),
         "ack": ("ack/syn,ack", "tcp flags & (syn | ack) == ack"), "none": ("none/syn", "tcp flags & syn == 0"), "": ("", "")}
FLAG_BITS = (0x02, 0x10, 0x12, 0x18, 0x04, 0x14, 0x11, 0x01, 0x29, 0)
LIVE_BITS = (0x10, 0x18)  # that leave a connection open
WINDOW = 40  # ports around those of rules
INTERVALS = 8  # of a set, at most


def number4(text):
    return int.from_bytes(socket.inet_pton(socket.AF_INET, text), "big")


def number6(text):
    return int.from_bytes(socket.inet_pton(socket.AF_INET6, text), "big")


def shown(low, high):
    return str(low) if low == high else f"{low}-{high}"


class Rule:
    """weir: the line after the action; nft: matches, each a rule of nft with the same number."""

    def __init__(self, weir, nft):
        self.weir, self.nft = weir, nft


def to_net(draw, weir, nft):
    """The same for a destination: of both families, of one, or any."""
    net = draw.choice(NETS)
    four, six = f"10.0.{net}.0/24", f"2001:db8:{net:x}::/64"
    if draw.random() < 0.6:
        return f"to {four}, {six} {weir}", [f"ip daddr {four} {nft}", f"ip6 daddr {six} {nft}"]
    if draw.random() < 0.5:
        return f"to {four} {weir}", [f"ip daddr {four} {nft}"]
    return f"to {six} {weir}", [f"ip6 daddr {six} {nft}"]


# ---- sets of ports --------------------------------------------------------------------------------------


class PortSet:
    """Spans with exceptions for Weir, intervals for nft, which has no exceptions."""

    def __init__(self, draw, name, base):
        self.name = name
        spans = [self.span(draw, base) for _ in range(draw.randint(1, INTERVALS))]
        without = [draw.randint(*draw.choice(spans)) for _ in range(draw.choice((0, 0, 1, 2)))]
        self.ports = {port for low, high in spans for port in range(low, high + 1)} - set(without)
        words = [shown(*span) for span in dict.fromkeys(spans) if span[0] != span[1] or span[0] not in without]
        words += [f"not {port}" for port in dict.fromkeys(without)]
        if not self.ports:
            self.ports, words = {base}, [str(base)]
        draw.shuffle(words)
        self.weir = f"set {name} ports {{ {', '.join(words)} }}"
        self.nft = (f"set {name} {{ type inet_service; flags interval; auto-merge; "
                    f"elements = {{ {', '.join(intervals(self.ports))} }}; }}")

    @staticmethod
    def span(draw, base):
        low = min(max(base + draw.randint(-WINDOW, WINDOW), 0), 65535)
        return low, min(low + draw.choice((0, 1, 2, 5, 12, 30)), 65535)


def intervals(ports):
    """As nft writes them."""
    out, ordered = [], sorted(ports)
    first = last = ordered[0]
    for port in ordered[1:]:
        if port != last + 1:
            out.append(shown(first, last))
            first = port
        last = port
    return [*out, shown(first, last)]


class Ports:
    """`port @set`, of source and destination. At ingress, nft reads the first bytes of later fragments as ports, so its
    rules exclude them by a mark."""
    before = ("ip frag-off & 0x1fff != 0 meta mark set 1", "frag frag-off != 0 meta mark set 1")
    tracks = attached = False
    hook = "type filter hook ingress device n0 priority 0"
    family = "netdev"

    def __init__(self, draw, lab, rules):  # pylint: disable=unused-argument
        self.draw = draw
        self.bases = (20, 8000, 65535)
        self.sets = [PortSet(draw, f"{'ports' if n == 0 else 'web'}{n or ''}", self.bases[n % len(self.bases)])
                     for n in range(10)]
        self.rules = [self.rule() for _ in range(rules)]

    def statements(self):
        return [one.weir for one in self.sets]

    def nft_statements(self):
        return [one.nft for one in self.sets]

    def one(self, keyword):
        """(Weir, nft) of one end."""
        one, roll = self.draw.choice(self.sets), self.draw.random()
        if roll < 0.65:
            return f"port @{one.name}", f"{keyword} @{one.name}"
        if roll < 0.75:
            return f"port not @{one.name}", f"{keyword} != @{one.name}"
        extra = {self.draw.choice(self.bases), 65535}
        return (f"port @{one.name}, {', '.join(map(str, extra))}",
                f"{keyword} {{ {', '.join(intervals(one.ports | extra))} }}")

    def rule(self):
        protos = self.draw.sample(list(PROTOS), self.draw.randint(1, 3))
        if self.draw.random() < 0.1:  # later fragments may match
            weir_to, nft_to = to_net(self.draw, "", f"ip_proto {{ {', '.join(map(str, protos))} }}")
            weir_to += f" dscp 8 proto {', '.join(PROTOS[proto] for proto in protos)}"
            return Rule(weir_to, [one.replace("ip_proto", "ip dscp 8 meta l4proto" if one.startswith("ip ") else
                                              "ip6 dscp 8 meta l4proto") for one in nft_to])
        source = self.one("th sport") if self.draw.random() < 0.5 else ("", "")
        target = self.one("th dport") if not source[0] or self.draw.random() < 0.5 else ("", "")
        nft = f"meta mark 0 meta l4proto {{ {', '.join(map(str, protos))} }} {source[1]} {target[1]}"
        weir = f"proto {', '.join(PROTOS[proto] for proto in protos)}"
        if source[0]:
            weir += f" from any {source[0]}"
        weir_to, nft_to = to_net(self.draw, target[0], nft)
        return Rule(f"{weir} {weir_to}", nft_to)

    def port(self):
        return min(max(self.draw.choice(self.bases) + self.draw.randint(-WINDOW - 15, WINDOW + 15), 0), 65535)

    def spec(self):
        spec = usual_spec(self.draw)
        spec.sport, spec.dport = self.port(), self.port()
        spec.dscp = self.draw.choice((0, 8))
        return spec


# ---- MAC addresses --------------------------------------------------------------------------------------

MAC = 0x020000000002  # around which those of rules are
MAC_MOST = (1 << 48) - 1


def mac_text(value):
    return ":".join(f"{byte:02x}" for byte in value.to_bytes(6, "big"))


def mac_span(low, high):
    return mac_text(low) if low == high else f"{mac_text(low)}-{mac_text(high)}"


class MacSet:
    """Addresses and spans, disjoint and not adjacent: nft has no exceptions."""

    def __init__(self, draw, name):
        self.name = name
        edges = sorted(draw.sample(range(MAC - WINDOW, MAC + WINDOW), 2 * draw.randint(1, INTERVALS)))
        if draw.random() < 0.2:
            edges = sorted({0, draw.choice((0, 1, 1 << 33)), *edges, MAC_MOST - draw.choice((0, 1, 1 << 40)), MAC_MOST})
        if len(edges) % 2:
            edges.pop()
        self.spans = [pair for pair in zip(edges[::2], edges[1::2]) if draw.random() < 0.7] or [(MAC, MAC)]
        self.spans = [(low, low) if draw.random() < 0.5 else (low, high) for low, high in self.spans]
        self.text = f"{{ {', '.join(mac_span(*span) for span in self.spans)} }}"
        self.weir = f"set {name} macs {self.text}"
        self.nft = f"set {name} {{ type ether_addr; flags interval; auto-merge; elements = {self.text}; }}"


class Macs:
    """`mac`, with sets, lists and `not`."""
    before, tracks, attached = (), False, False
    hook = "type filter hook ingress device n0 priority 0"
    family = "netdev"

    def __init__(self, draw, lab, rules):  # pylint: disable=unused-argument
        self.draw = draw
        self.sets = [MacSet(draw, f"{'macs' if n == 0 else 'lab'}{n or ''}") for n in range(10)]
        self.rules = [self.rule() for _ in range(rules)]

    def statements(self):
        return [one.weir for one in self.sets]

    def nft_statements(self):
        return [one.nft for one in self.sets]

    def rule(self):
        draw, negated = self.draw, self.draw.random() < 0.3
        if draw.random() < 0.5:
            weir = nft = f"@{draw.choice(self.sets).name}"
        else:
            one = MacSet(draw, "")
            weir, nft = one.text[2:-2], one.text
        weir, nft = f"mac {'not ' if negated else ''}{weir}", f"ether saddr {'!= ' if negated else ''}{nft}"
        protos = draw.sample(list(PROTOS), draw.randint(1, 3))
        if draw.random() < 0.6:
            weir += f" proto {', '.join(PROTOS[proto] for proto in protos)}"
            nft = f"meta l4proto {{ {', '.join(map(str, protos))} }} {nft}"
        weir += (dscp := draw.choice(("", "", " dscp 8")))
        weir_to, nft_to = to_net(draw, weir, nft)
        return Rule(weir_to, [f"{one} ip{'' if one.startswith('ip ') else '6'} dscp 8" if dscp else one for one in nft_to])

    def spec(self):
        draw, spec = self.draw, usual_spec(self.draw)
        spec.sport, spec.dport, spec.dscp = draw.randint(1, 65535), draw.randint(1, 65535), draw.choice((0, 8))
        spec.mac = MAC + draw.randint(-WINDOW - 5, WINDOW + 5)
        if draw.random() < 0.3:
            low, high = draw.choice(draw.choice(self.sets).spans)
            spec.mac = min(max(draw.choice((low, high)) + draw.randint(-1, 1), 0), MAC_MOST)
        return spec


# ---- sets of address and port ---------------------------------------------------------------------------


class PairSet:
    """Addresses of one net in both families, each with some ports; a set of nft for each family."""

    def __init__(self, draw, name):
        self.name, self.pairs = name, {}
        for _ in range(draw.randint(1, 24)):
            family, net = draw.choice((4, 6)), draw.choice(NETS)
            host = draw.choice((1, 2, 3, 254))
            address = f"10.0.{net}.{host}" if family == 4 else f"2001:db8:{net:x}::{host:x}"
            low = draw.choice((0, 80, 443, 8000, 65535)) + draw.choice((0, 0, 0, 1))
            low = min(low, 65535)
            high = min(low + draw.choice((0, 0, 0, 1, 9)), 65535)
            if not any(port in range(*span) for port in range(low - 1, high + 2)
                       for span in [(one, two + 1) for one, two in self.pairs.get((family, address), ())]):
                self.pairs.setdefault((family, address), []).append((low, high))
        self.weir = f"set {name} pairs {{ {', '.join(f'{address} port {shown(*span)}' for _, address, span in self.each())} }}"
        self.nft = "".join(self.nft_set(family) for family in (4, 6))

    def each(self):
        return [(family, address, span) for (family, address), spans in self.pairs.items() for span in spans]

    def nft_set(self, family):
        elements = ", ".join(f"{address} . {shown(*span)}" for one, address, span in self.each() if one == family)
        elements = f"elements = {{ {elements} }}; " if elements else ""
        return f"set {self.name}{family} {{ type ipv{family}_addr . inet_service; flags interval; {elements}}}\n"


class Pairs:
    """`from` and `to` a set of pairs, also after `not`. Later fragments have no ports: see Ports."""
    before, hook, family, tracks, attached = Ports.before, Ports.hook, Ports.family, False, False

    def __init__(self, draw, lab, rules):  # pylint: disable=unused-argument
        self.draw = draw
        self.sets = [PairSet(draw, f"web{n}") for n in range(max(12, rules))]
        self.rules = [self.rule() for _ in range(rules)]

    def statements(self):
        return [one.weir for one in self.sets]

    def nft_statements(self):
        return [one.nft for one in self.sets]

    def rule(self):
        draw = self.draw
        protos = draw.sample(list(PROTOS), draw.randint(1, 3))
        weir, ends = f"proto {', '.join(PROTOS[proto] for proto in protos)}", []
        for keyword, address, port in (("from", "saddr", "sport"), ("to", "daddr", "dport")):
            if draw.random() < (0.3 if keyword == "from" else 1 if not ends else 0.6):
                one, negated = draw.choice(self.sets), draw.random() < 0.12
                weir += f" {keyword} {'not ' if negated else ''}@{one.name}"
                ends.append((address, port, one, negated))
        if any(negated for *_, negated in ends) or draw.random() < 0.2:
            weir += " dscp 8"
        nft = [" ".join([f"meta mark 0 meta l4proto {{ {', '.join(map(str, protos))} }}", *(
            f"{ip} {address} . th {port} {'!= ' if negated else ''}@{one.name}{family}"
            for address, port, one, negated in ends), f"{ip} dscp 8" if "dscp" in weir else ""])
               for family, ip in ((4, "ip"), (6, "ip6"))]
        return Rule(weir, nft)

    def spec(self):
        draw, spec = self.draw, usual_spec(self.draw)
        spec.dscp = draw.choice((0, 8))
        spec.sport, spec.dport = draw.randint(0, 65535), draw.randint(0, 65535)
        for address, port in (("src", "sport"), ("dst", "dport")):
            pairs = [one for one in draw.choice(self.sets).each() if one[0] == spec.family]
            if not pairs or address == "src" and draw.random() < 0.5:
                continue
            family, text, span = draw.choice(pairs)
            setattr(spec, address, (number4 if family == 4 else number6)(text))
            setattr(spec, port, min(max(draw.choice(span) + draw.choice((0, 0, 0, 0, 1, -1)), 0), 65535))
            if draw.random() < 0.25:
                setattr(spec, port, draw.choice((0, 80, 443, 8000, 65535)))
        return spec


# ---- connections ----------------------------------------------------------------------------------------


class Tracked:
    """`established` and `not established`. First fragments are left out: nft sees only packets that are whole again."""
    tracks, attached, before = True, False, ()
    hook = "type filter hook prerouting priority -150"
    family = "inet"

    def __init__(self, draw, lab, rules):
        self.draw = draw
        lab.track()
        lab.add_vlan()
        self.vlans = lab.vlans
        self.connections = lab.connect(draw, 48)
        self.rules = [self.rule() for _ in range(rules)]

    @staticmethod
    def statements():
        return []

    nft_statements = statements

    def rule(self):
        draw = self.draw
        negated = draw.random() < 0.6
        protos = draw.choice(((TCP, ), (UDP, ), (TCP, UDP)))
        flags = draw.choice(tuple(FLAGS)) if protos == (TCP, ) else ""
        weir = f"proto {', '.join(PROTOS[proto] for proto in protos)} {'not ' if negated else ''}established"
        state = f"ct state {'!= ' if negated else ''}established"
        nft = f"meta l4proto {{ {', '.join(map(str, protos))} }} {FLAGS[flags][1]} {state}"
        if draw.random() < 0.4:
            weir, nft = f"ttl 64-128 {weir}", f"TTL {nft}"
        if flags:
            weir += f" flags {FLAGS[flags][0]}"
        weir_to, nft_to = to_net(draw, "", nft)
        return Rule(f"{weir_to} {weir}", [one.replace("TTL", "ip ttl 64-128" if one.startswith("ip ") else
                                                      "ip6 hoplimit 64-128") for one in nft_to])

    def spec(self):
        draw, spec = self.draw, usual_spec(self.draw)
        spec.tags = [(0x8100, 7)] if spec.tags and self.vlans else []
        if spec.fragment == FIRST:
            spec.fragment = WHOLE
        spec.ttl = draw.choice((1, 63, 64, 100, 128, 129, 255))
        spec.sport, spec.dport = draw.choice((TCP_PORT, UDP_PORT)), draw.randint(32768, 60999)
        spec.flags = draw.choice(FLAG_BITS)
        if draw.random() < 0.25:
            return spec
        family, proto, net, port = draw.choice(self.connections)
        spec.family, spec.dport = family, port
        spec.dst = number4(f"10.0.{net}.1") if family == 4 else number6(f"2001:db8:{net:x}::1")
        spec.src = number4(FAR4) if family == 4 else number6(FAR6)
        spec.proto, spec.sport = proto, TCP_PORT if proto == TCP else UDP_PORT
        self.miss(spec)
        return spec

    def miss(self, spec):
        """Half are frames of the connection; the others differ in one part."""
        draw, roll = self.draw, self.draw.randint(0, 11)
        spec.exts, spec.options = [], 0
        if roll < 6:
            spec.flags = draw.choice(LIVE_BITS)
        elif roll == 6:
            spec.dport ^= 1
        elif roll == 7:
            spec.sport ^= 1
        elif roll == 8:
            spec.src ^= 4
        elif roll == 9:
            spec.dst ^= 2
        else:
            spec.proto = UDP if spec.proto == TCP else TCP


# ---- routes to the source -------------------------------------------------------------------------------


class Unroutable:
    """`unroutable`, with routes of all kinds. Weir is attached: the programs ask the kernel of `near`. Broadcast addresses
    of subnets are left out, which nft takes for routable, and link-local sources without a route."""
    tracks, attached, before = False, True, ()
    statements = nft_statements = staticmethod(Tracked.statements)
    hook = "type filter hook prerouting priority -450"
    family = "inet"
    SOURCES4 = ("10.9.0.", "10.20.0.", "10.30.1.", "10.40.0.", "10.41.0.", "10.42.0.", "10.50.0.", "10.60.0.", "10.70.0.",
                "10.0.3.", "127.0.0.", "192.0.2.", "0.0.0.", "224.0.0.")
    SOURCES6 = ("2001:db8:9::", "2001:db8:20::", "2001:db8:30::", "2001:db8:40::", "2001:db8:41::", "2001:db8:42::",
                "2001:db8:50::", "2001:db8:60::", "2001:db8:70::", "2001:db8:3::", "2001:db9::", "fe80::", "::")
    TARGETS4 = ("255.255.255.255", "224.0.0.5", "224.0.1.5", "10.0.3.1")
    TARGETS6 = ("ff02::1", "ff05::1", "fe80::7", "2001:db8:3::1")

    def __init__(self, draw, lab, rules):
        self.draw = draw
        lab.add_vlan()
        self.vlans = lab.vlans
        lab.add_routes()
        self.rules = [self.rule() for _ in range(rules)]

    def rule(self):
        draw = self.draw
        weir, nft = "unroutable", "fib saddr . iif oif missing"
        if draw.random() < 0.5:
            protos = draw.sample((TCP, UDP), draw.randint(1, 2))
            weir += f" proto {', '.join(PROTOS[proto] for proto in protos)}"
            nft = f"meta l4proto {{ {', '.join(map(str, protos))} }} {nft}"
        dscp = draw.choice((None, None, 0, 4))
        if dscp is not None:
            weir, nft = f"{weir} dscp {dscp}", f"IP dscp {dscp} {nft}"
        if draw.random() < 0.8:
            low = draw.randint(0, 255)
            ttls = shown(low, min(low + draw.randint(0, 120), 255))
            weir, nft = f"{weir} ttl {ttls}", f"IP TTL {ttls} {nft}"
        if draw.random() < 0.12:
            four, six = draw.choice(self.TARGETS4), draw.choice(self.TARGETS6)
            weir, nft = f"to {four}, {six} {weir}", [f"ip daddr {four} {nft}", f"ip6 daddr {six} {nft}"]
        else:
            weir, nft = to_net(draw, weir, nft)
        return Rule(weir, [one.replace("IP", "ip").replace("TTL", "ttl") if one.startswith("ip ") else
                           one.replace("IP", "ip6").replace("TTL", "hoplimit") for one in nft])

    def spec(self):
        draw, spec = self.draw, usual_spec(self.draw)
        spec.tags = [(0x8100, 7)] if spec.tags and self.vlans else []
        spec.dscp, spec.ttl = draw.choice((0, 0, 4)), draw.randint(1, 255)
        spec.sport, spec.dport = draw.randint(1, 65535), draw.randint(1, 65535)
        if spec.family == 4:
            spec.src = number4(f"{draw.choice(self.SOURCES4)}{draw.randint(2, 250)}")
        else:
            spec.src = number6(f"{draw.choice(self.SOURCES6)}{draw.randint(2, 250):x}")
            if draw.random() < 0.1:
                spec.src, spec.proto, spec.type = 0, ICMP6, draw.choice((128, 143))
        if draw.random() < 0.15:
            spec.dst = (number4 if spec.family == 4 else number6)(draw.choice(
                self.TARGETS4 if spec.family == 4 else self.TARGETS6))
        return spec


# ---- frames ---------------------------------------------------------------------------------------------


def usual_spec(draw):
    spec = Spec()
    spec.family = draw.choice((4, 6))
    net = draw.choice(NETS)
    spec.dst = number4(f"10.0.{net}.{draw.randint(1, 254)}") if spec.family == 4 else \
        number6(f"2001:db8:{net:x}::{draw.randint(1, 99):x}")
    spec.src = number4(f"10.9.0.{draw.randint(2, 253)}") if spec.family == 4 else \
        number6(f"2001:db8:9::{draw.randint(2, 99):x}")
    spec.proto = draw.choice((TCP, TCP, TCP, UDP, UDP, UDP, SCTP, 47, ICMP if spec.family == 4 else ICMP6))
    spec.type, spec.ttl = (8 if spec.family == 4 else 128), 64
    spec.flags = draw.choice(FLAG_BITS)
    spec.length = draw.choice((0, 60, 100))
    if draw.random() < 0.25:
        spec.tags = [(0x8100, draw.choice((1, 7, 0, 4095)))]
    roll = draw.random()
    if roll < 0.08:
        spec.fragment, spec.length = FIRST, 104 if spec.family == 6 else 100
    elif roll < 0.20:
        spec.fragment, spec.offset, spec.length = LATER, draw.randint(1, 100), 100
    elif roll < 0.23 and spec.family == 6:
        spec.fragment = ATOMIC
    elif roll < 0.30 and spec.family == 6:
        spec.exts = [(draw.choice((HOP_BY_HOP, DESTINATION)), 0)]
    elif roll < 0.35 and spec.family == 4:
        spec.options = draw.randint(1, 3)
    return spec


def numbered(spec, number):
    """Its bytes, with the number in IPv4's identification or IPv6's flow label."""
    frame = build(spec)
    content, at = frame.bytes, frame.ip
    if spec.family == 6:
        content[at + 1] = content[at + 1] & 0xf0 | number >> 16
        content[at + 2:at + 4] = (number & 0xffff).to_bytes(2, "big")
        if spec.fragment != WHOLE:  # of another packet than all other fragments
            content[at + 44:at + 48] = number.to_bytes(4, "big")
        return bytes(content)
    content[at + 4:at + 6] = number.to_bytes(2, "big")
    content[at + 10:at + 12] = b"\0\0"
    header = content[at:at + (content[at] & 15) * 4]
    total = sum(int.from_bytes(header[n:n + 2], "big") for n in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    content[at + 10:at + 12] = (~total & 0xffff).to_bytes(2, "big")
    return bytes(content)


def last_frame():
    """Reported by the first rule of nft, as `end`."""
    spec = Spec()
    spec.family, spec.proto, spec.ttl = 4, UDP, 64
    spec.src, spec.dst, spec.sport, spec.dport = number4("10.9.0.254"), number4("10.9.0.1"), 9, 9
    return numbered(spec, 0xffff)


def nft_text(word):
    """The table: the first match is reported and decides."""
    lines = [f"table {word.family} words {{", *word.nft_statements(), f"chain in {{ {word.hook}; policy accept;"]
    lines.append(f'ip saddr 10.9.0.254 udp dport 9 log prefix "end" group {GROUP} drop')
    lines += word.before
    for number, rule in enumerate(word.rules, 1):
        lines += [f'{match} log prefix "{number}" group {GROUP} drop' for match in rule.nft]
    return "\n".join([*lines, "ip saddr 10.9.0.0/24 drop" if word.tracks else "",
                      "ip6 saddr 2001:db8:9::/64 drop" if word.tracks else "", "drop" if word.attached else "", "}", "}", ""])


def weir_text(word):
    return "\n".join(["interface n0 optional", *word.statements(), *(f"drop {rule.weir}" for rule in word.rules), ""])


WORDS = {"ports": Ports, "mac": Macs, "pairs": Pairs, "established": Tracked, "unroutable": Unroutable}
