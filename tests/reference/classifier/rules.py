# SPDX-License-Identifier: GPL-2.0-only
"""Random valid rules: kind, width, and order of parts."""
from addresses import BOTH, Addresses, make_addresses
from fields import (ACK, FIN, RST, SYN, Numbers, make_dscps, make_ethertypes, make_flags, make_macs, make_on, make_port_protos,
                    make_ports, make_protos, make_span, make_types, make_vlans)

RATES = ("1000000/s", "900k/s", "50M/min", "900M/h", "10gbit/s", "900000mbit/s")
RATE_ENDS = ("", " burst 900k", " per source", " per rule", " per destination mask 24/56", " max 4096 per source",
             " burst 1M per source mask 32/64 max 65536", " per source and port", " mask 24/56 per source and port burst 2M")
CONNECTIONS = ("50 connections per source", "1 connection per source mask 24/56", "3 connections per source and port max 100")
CONNECTION_RULES = 32
LOGS = ("log", "log 10/s", "log 5/min snap 64", "log snap 96")
TTLS = (0, 1, 5, 63, 64, 65, 128, 254, 255)
IP_LENGTHS = (20, 28, 40, 48, 60, 61, 64, 80, 100, 255, 256, 576, 1280)
FRAME_LENGTHS = (60, 61, 64, 80, 100, 255, 256, 576, 1280)
NUMBERS = ("sport", "dport", "proto", "types4", "types6", "code", "vlan", "dscp", "ethertype", "ttl", "length", "mac",
           "on")


class Rule:
    """A rule as text, and as values to aim at."""
    __slots__ = ("text", "families", "source", "target", *NUMBERS, "flags_given", "flags_set", "flags_mask",
                 "fragment", "over", "under", "probability", "established", "untracked", "unroutable", "place",
                 "from_pairs", "to_pairs")

    def __init__(self):
        self.text = ""
        self.families = BOTH
        self.source, self.target = Addresses(), Addresses()
        for name in NUMBERS:
            setattr(self, name, Numbers())
        self.flags_given, self.flags_set, self.flags_mask = False, 0, 0
        self.fragment = self.over = self.under = self.probability = self.established = self.untracked = False
        self.unroutable = False
        self.from_pairs = self.to_pairs = None
        self.place = 0  # the lowest comes first: rules with many bits fixed, roughly


def is_narrow(addresses):
    if not addresses.given or addresses.negated or addresses.dynamic:
        return addresses.dynamic
    return not any(item.set is None and item.low == 0 and not item.negative for item in addresses.items)


def address_bits_fixed(addresses):
    """An estimate."""
    if not addresses.given:
        return 0
    if addresses.dynamic:
        return 24
    weight, bits = addresses.weight, 0
    while weight < 1 and bits < 24:
        weight, bits = weight * 2, bits + 1
    return bits


def takes_all_ip(ethertype):
    return ethertype.negated or any(low == 0x0800 or high >= 0x86dd for low, high, _ in ethertype.ranges)


def bits_fixed(rule):
    if rule.ethertype.given and takes_all_ip(rule.ethertype):
        return 0
    numbers = (rule.sport, rule.dport, rule.types4, rule.vlan, rule.dscp, rule.ttl, rule.length, rule.ethertype,
               rule.mac)
    return (address_bits_fixed(rule.source) + address_bits_fixed(rule.target)
            + 3 * sum(one.given and not one.negated for one in numbers)
            + 3 * (rule.flags_given or rule.fragment or rule.over))


class Sketch:
    """A rule in the making: its parts as texts, to be shuffled."""

    def __init__(self, gen):
        self.gen, self.draw = gen, gen.draw
        self.rule = Rule()
        self.parts = []
        self.bare_port = None  # must come before `from` and `to`
        self.plain_ethertype = False

    def part(self, keyword, numbers):
        self.parts.append(f"{keyword} {numbers.text}")
        return numbers

    def may_be_broad(self):
        """Only a few rules may be broad: they hide all that follow."""
        rules = self.gen.options.rules
        return self.draw.chance(50) if rules <= 6 else self.draw.below(rules) < 2

    # ---- what a rule is about -----------------------------------------------------------------------------

    def pick_source(self):
        self.rule.source = make_addresses(self.gen, self.rule.families)
        self.rule.families &= self.rule.source.families

    def pick_target(self):
        self.rule.target = make_addresses(self.gen, self.rule.families)
        self.rule.families &= self.rule.target.families

    def pick_addresses(self):
        rule, draw = self.rule, self.draw
        if draw.chance(55):
            self.pick_source()
        if rule.families and draw.chance(35 if rule.source.given else 60):
            self.pick_target()
        if self.may_be_broad():
            return
        for _ in range(20):
            if is_narrow(rule.source) or is_narrow(rule.target):
                break
            rule.families = rule.target.families if rule.target.given else BOTH
            if rule.types4.given or rule.types6.given:
                rule.families &= rule.types4.given + 2 * rule.types6.given
            self.pick_source()

    def pick_ports(self, protos):
        if self.draw.chance(80):
            self.rule.dport = make_ports(self.gen, protos)
        if not self.rule.dport.given or self.draw.chance(20):
            self.rule.sport = make_ports(self.gen, protos)

    def make_pairs(self):
        """False: the policy has no set of pairs."""
        if not self.gen.pair_sets or not self.gen.may("pairs", 40):
            return False
        for keyword in self.draw.pick((("to", ), ("to", ), ("from", ), ("from", "to"))):
            name, pairs = self.draw.pick(self.gen.pair_sets)
            self.parts.append(f"{keyword} {'not ' if self.draw.chance(10) else ''}@{name}")
            setattr(self.rule, f"{keyword}_pairs", pairs)
        return True

    def make_ports(self):
        protos = ()
        if self.draw.chance(65):
            self.rule.proto, protos = make_port_protos(self.gen)
            self.part("proto", self.rule.proto)
        if self.make_pairs():
            return
        self.pick_ports(protos)
        self.pick_addresses()

    def make_connections(self):
        """`over N connections`, which implies `flags syn`."""
        rule, draw = self.rule, self.draw
        self.gen.connections += 1
        rule.flags_given, rule.flags_set, rule.flags_mask = True, SYN, FIN | SYN | RST | ACK
        if draw.chance(30):
            self.parts.append("flags syn")
        rule.under = draw.chance(30)
        rule.over = not rule.under
        self.parts.append(f"{'under' if rule.under else 'over'} {draw.pick(CONNECTIONS)}")

    def make_flags(self):
        protos = ()
        if self.gen.connections < CONNECTION_RULES and self.gen.may("over", 20):
            self.make_connections()
        else:
            self.parts.append(make_flags(self.gen, self.rule))
        if self.draw.chance(50):
            self.parts.append("proto tcp")
            protos = ("tcp",)
        if self.draw.chance(50):
            self.pick_ports(protos)
        self.pick_addresses()

    def make_types(self):
        if not self.gen.options.uses("type"):
            self.make_ports()
            return
        self.parts.append(make_types(self.gen, self.rule))
        self.pick_addresses()

    def make_protos(self):
        self.rule.proto = self.part("proto", make_protos(self.gen))
        self.pick_addresses()

    def make_fragment(self):
        self.rule.fragment = True
        self.parts.append("fragment")
        if self.draw.chance(40):
            self.make_protos()
        else:
            self.pick_addresses()

    def make_ethertype(self):
        if not self.gen.options.uses("ethertype"):
            self.make_protos()
        elif not self.may_be_broad() and self.draw.chance(70):
            self.pick_addresses()  # with many rules the few ethertypes would soon all be taken
        else:
            self.rule.ethertype = self.part("ethertype", make_ethertypes(self.gen))
            self.plain_ethertype = True

    KINDS = ((38, make_ports), (48, make_flags), (60, make_types), (70, make_protos), (75, make_fragment),
             (80, make_ethertype), (100, pick_addresses))

    def make_kind(self):
        roll = self.draw.below(100)
        next(make for below, make in self.KINDS if roll < below)(self)

    # ---- the ends: destination ports after `to` or bare, source ports after `from` ------------------------

    def add_direction(self, keyword, addresses, ports):
        if addresses.given or ports:
            self.parts.append(keyword + (f" {addresses.text}" if addresses.given else "")
                              + (f" port {ports.text}" if ports else ""))

    def add_ends(self):
        rule, draw = self.rule, self.draw
        sport = rule.sport if rule.sport.given else None
        dport = rule.dport if rule.dport.given else None
        if dport and draw.chance(15 if rule.target.given else 40):
            self.bare_port, dport = f"port {dport.text}", None
        self.add_direction("from", rule.source, sport)
        self.add_direction("to", rule.target, dport)
        if sport and not rule.target.given and not rule.dport.given and draw.chance(50):
            self.parts.append("to any")

    # ---- conditions that any rule may have ----------------------------------------------------------------

    def add_rate(self, keyword):
        # Frames without an address cannot be counted by address.
        end = self.draw.pick(RATE_ENDS[:2] if self.plain_ethertype else RATE_ENDS)
        self.parts.append(f"{keyword} {self.draw.pick(RATES)}{end}")

    def add_chances(self):
        rule, gen = self.rule, self.gen
        if rule.over or rule.under:
            pass
        elif gen.may("over", 5):
            rule.over = True
            self.add_rate("over")
        elif not self.plain_ethertype and gen.may("over", 3):
            rule.under = True
            self.add_rate("under")
        if not rule.under and gen.may("probability", 4):
            rule.probability = True
            self.parts.append("probability 33%" if self.draw.chance(50) else "probability 0.5%")

    def may_be_established(self):
        """False: the rule would contradict itself."""
        rule = self.rule
        if rule.types4.given or rule.types6.given or rule.fragment or rule.proto.negated:
            return False
        return not rule.proto.given or all(low in (6, 17) for low, _, _ in rule.proto.ranges)

    def add_ip_conditions(self):
        rule, draw = self.rule, self.draw
        if self.may_be_established() and self.gen.may("established", 5):
            rule.established = draw.chance(50)
            rule.untracked = not rule.established
            self.parts.append("established" if rule.established else "not established")
        if self.gen.may("unroutable", 5):
            rule.unroutable = True
            self.parts.append("unroutable")
        if self.gen.may("conditions", 5):
            rule.ttl = self.part("ttl", make_span(self.gen, TTLS, 255))
        if self.gen.may("conditions", 5):
            rule.dscp = self.part("dscp", make_dscps(self.gen))

    def add_conditions(self):
        rule, draw, gen = self.rule, self.draw, self.gen
        if draw.chance(10):
            rule.on = self.part("on", make_on(gen))
        if gen.may("mac", 8):
            rule.mac = self.part("mac", make_macs(gen))
        if gen.may("vlan", 10):
            rule.vlan = self.part("vlan", make_vlans(gen))
        if gen.may("conditions", 6):
            lengths = FRAME_LENGTHS if self.plain_ethertype else IP_LENGTHS
            rule.length = self.part("length", make_span(gen, lengths, 65535))
        if not self.plain_ethertype:
            self.add_ip_conditions()
        self.add_chances()

    def add_modifiers(self):
        draw, gen = self.draw, self.gen
        last = gen.sets[-1] if gen.sets else None
        if gen.may("log", 3):
            self.parts.append(draw.pick(LOGS))
        if self.plain_ethertype or not last or not last.dynamic or not gen.may("add", 3):
            return
        end = "source" if draw.chance(60) else "destination"
        self.parts.append(f"add {end} @{last.name}{' for 10m' if draw.chance(50) else ''}")

    # ---- the line -----------------------------------------------------------------------------------------

    def order_parts(self):
        self.draw.shuffle(self.parts)
        if self.bare_port:
            ends = [at for at, part in enumerate(self.parts) if part.startswith(("from ", "to "))]
            at = min(ends, default=len(self.parts))
            self.parts.insert(self.draw.between(0, at), self.bare_port)

    def action(self):
        draw, gen = self.draw, self.gen
        roll = draw.below(100)
        if roll < 7 and gen.options.uses("count"):
            return "count"
        if roll < 14 and gen.options.uses("redirect"):
            return f"redirect {draw.pick(gen.ifaces)}"
        if roll < 28 and not self.plain_ethertype and gen.options.uses("reject"):
            return "reject"
        return "drop" if roll < 62 else "pass"

    def may_be_always(self):
        """`always` rules come before all others: with many rules only a few, and narrow ones."""
        gen = self.gen
        if gen.options.rules <= 30:
            return gen.may("always", 10)
        return (gen.options.uses("always") and bits_fixed(self.rule) > 16
                and self.draw.below(gen.options.rules) < 12)

    def line(self):
        draw, words = self.draw, []
        if draw.chance(40):
            more = " with, {marks}; # 'and' blanks" if draw.chance(10) else ""
            words.append(f'"r{len(self.gen.rules) + 1}{more}"')
        if self.may_be_always():
            words.append("always")
        words.append(self.action())
        return " ".join(words) + "".join((" \\\n\t" if self.gen.may("layout", 3) else " ") + part
                                         for part in self.parts)


def make_rule(gen):
    sketch = Sketch(gen)
    sketch.make_kind()
    while not sketch.rule.families:
        sketch = Sketch(gen)
        sketch.make_kind()
    sketch.add_ends()
    sketch.add_conditions()
    sketch.add_modifiers()
    sketch.order_parts()
    sketch.rule.text = sketch.line()
    sketch.rule.place = gen.draw.below(10) - bits_fixed(sketch.rule)
    return sketch.rule


def make_rules(gen):
    for _ in range(gen.options.rules):
        gen.rules.append(make_rule(gen))
    if gen.options.rules > 30:  # else most of them would never be met
        gen.rules.sort(key=lambda rule: rule.place)
