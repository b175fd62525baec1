# SPDX-License-Identifier: GPL-2.0-only
"""Random whole policies: interfaces, defines, sets, defaults and rules, in any order.

Only valid ones, and by default none that can be read in two ways: exceptions between sets
are full-length hosts or follow short prefixes, exceptions among ports lie inside one range, no set is empty,
a list has no item twice, rates are too high to be exceeded by accident."""
import dataclasses

import addresses
import fields
from draw import Draw
from rules import make_rules

# Features of a policy. The last one is off by default: exceptions between sets, which can be read in two ways.
FEATURES = ("add", "always", "conditions", "count", "default-on", "define", "dynamic", "essentials", "established",
            "ethertype", "file", "fragments", "layout", "log", "mac", "malformed", "named-ports", "over", "probability",
            "pairs", "port-sets", "redirect", "reject", "type", "uncommon", "unroutable", "vlan", "hard-joins")
# Features that the short program leaves to the general one. `uncommon`: most options, extension headers and fragments.
HANDED_ON = frozenset(("add", "always", "conditions", "count", "dynamic", "established", "log", "mac", "over",
                       "pairs", "probability", "redirect", "reject", "uncommon", "unroutable"))
DYNAMIC_ENDS = ("", " max 4096", " max 64k expire 10m", " mask 24/64 expire 1h", " count",
                " count max 4096")
LINE_ENDS = ("\n", "\n\n", '\t# a comment, "quoted\n', " ; ", "\r\n")


@dataclasses.dataclass
class Options:
    """Options of the generator."""
    policy: str  # path
    seed: int = 1
    rules: int = 20
    set_size: int = 50
    without: frozenset = frozenset()
    hard_joins: bool = False
    min_frame: int = 14  # bytes of a broken frame, at least

    def uses(self, feature):
        return self.hard_joins if feature == "hard-joins" else feature not in self.without


class Policy:
    """A random policy: as text, and as values to aim packets at."""

    def __init__(self, options):
        self.options = options
        self.draw = Draw(options.seed)
        most = self.draw.between(1, 4) if self.draw.chance(70) else self.draw.between(5, 10)
        self.ifaces = [f"eth{number}" for number in range(most)]
        self.types = tuple(fields.TYPES)  # names of ICMP that it may use
        self.sites = addresses.make_sites(self.draw)
        self.sets, self.port_sets, self.mac_sets, self.pair_sets, self.defines, self.rules = [], [], [], [], [], []
        self.connections = 0  # rules that count connections
        fields.make_defines(self)
        fields.make_port_sets(self)
        fields.make_mac_sets(self)
        fields.make_pair_sets(self)
        addresses.make_defines(self)
        addresses.make_sets(self)
        make_rules(self)
        self.text = assemble(self, statements(self))

    def may(self, feature, percent):
        return self.options.uses(feature) and self.draw.chance(percent)

    def files(self):
        """(path, text) of the policy and its lists"""
        yield self.options.policy, self.text
        for one in self.sets:
            if one.file:
                yield one.file, one.file_text

    def write(self):
        for path, text in self.files():
            with open(path, "w", encoding="ascii", newline="") as file:
                file.write(text)


def interfaces(gen):
    text = f"interface {gen.ifaces[0]}"
    for iface in gen.ifaces[1:]:
        separator = ", "
        if gen.draw.chance(20):
            separator = "\ninterface " if gen.draw.chance(50) else " ; interface "
        text += separator + iface
    return text


def defaults(gen):
    draw = gen.draw
    drop = draw.chance(55)
    if drop or draw.chance(80):
        yield "default drop" if drop else "default pass"
    if gen.may("default-on", 35):
        yield f"default {'pass' if drop else 'drop'} on {draw.pick(gen.ifaces)}"
    if gen.may("malformed", 20):
        yield "malformed pass" if draw.chance(60) else "malformed drop"
    if gen.may("essentials", 25):
        yield "essentials filter" if draw.chance(70) else "essentials pass"
    if gen.may("fragments", 45):
        protos = f" proto {fields.make_protos(gen).text}" if draw.chance(70) else ""
        yield f"fragments {draw.pick(('filter', 'drop', 'pass'))}{protos}"


def sets(gen):
    for one in gen.sets:
        if one.dynamic:
            yield f"set {one.name} dynamic{gen.draw.pick(DYNAMIC_ENDS)}"
        else:
            yield f"set {one.name} {{ {one.addresses.text}{',' if gen.draw.chance(20) else ''} }}"


def statements(gen):
    """All but the rules, in random order."""
    made = [interfaces(gen), *defaults(gen), *sets(gen)]
    made += [f"define {define.name} = {define.value.text}" for define in gen.defines]
    made += [f"set {name} ports {{ {value.text} }}" for name, value in gen.port_sets]
    made += [f"set {name} macs {{ {value.text} }}" for name, value in gen.mac_sets]
    made += [f"set {name} pairs {{ {fields.pairs_text(pairs)} }}" for name, pairs in gen.pair_sets]
    gen.draw.shuffle(made)
    return made


def assemble(gen, made):
    """The rules in order, with a statement between them now and then."""
    draw, out = gen.draw, [f"# made by generate, seed {gen.options.seed}\n"]
    late = len(made) // 4 if gen.options.uses("layout") else 0

    def put(statement):
        out.append(statement + (draw.pick(LINE_ENDS) if gen.may("layout", 25) else "\n"))

    if draw.chance(20):
        out.append("version 1\n")
    while len(made) > late:
        put(made.pop())
    for rule in gen.rules:
        if made and draw.chance(20):
            put(made.pop())
        put(rule.text)
    while made:
        put(made.pop())
    return "".join(out) + "\n"
