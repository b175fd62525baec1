# SPDX-License-Identifier: GPL-2.0-only
"""A policy for each kind of table (common/table4.h, table6.h, matrix.h), and packets at the edges of its sets."""
import dataclasses
import ipaddress
import itertools

from draw import Draw
from frames import ICMP, ICMP6, TCP, UDP, Spec, build

BITS = {4: 32, 6: 128}
ADDRESS = {4: ipaddress.IPv4Address, 6: ipaddress.IPv6Address}
MOST_EDGES = 400  # of a set


@dataclasses.dataclass(frozen=True)
class Prefix:
    family: int
    value: int
    length: int

    def __str__(self):
        tail = "" if self.length == BITS[self.family] else f"/{self.length}"
        return f"{ADDRESS[self.family](self.value)}{tail}"

    def edges(self):
        """The addresses before, at and after both ends."""
        last = self.value | (1 << BITS[self.family] - self.length) - 1
        most = (1 << BITS[self.family]) - 1
        return [at for at in (self.value - 1, self.value, last, last + 1) if 0 <= at <= most]


@dataclasses.dataclass
class Made:
    """A policy under way."""
    draw: Draw
    sets: dict = dataclasses.field(default_factory=dict)  # name: prefixes
    lines: list = dataclasses.field(default_factory=list)  # of rules
    default: str = "pass"
    ifaces: list = dataclasses.field(default_factory=list)  # none: any

    def text(self):
        blocks = ["set %s {\n%s\n}" % (name, "\n".join(map(str, items))) for name, items in self.sets.items()]
        named = [f"interface {', '.join(self.ifaces)}"] if self.ifaces else []
        return "\n".join([*named, f"default {self.default}", *blocks, *self.lines, ""])


# ---- sets -----------------------------------------------------------------------------------------------

def random4(draw, length, low=11 << 24, high=223 << 24):
    return Prefix(4, draw.between(low, high) >> 32 - length << 32 - length, length)


def random6(draw, length):
    value = (0x2001 << 112) + draw.getrandbits(112)
    return Prefix(6, value >> 128 - length << 128 - length, length)


def some(count, make):
    """So many different ones, sorted."""
    found = set()
    while len(found) < count:
        found.add(make())
    return sorted(found, key=lambda one: (one.value, one.length))


def prefixes4(draw, count, lengths=(16, 20, 22, 23, 24, 24, 24, 25, 28, 32)):
    return some(count, lambda: random4(draw, draw.pick(lengths)))


def prefixes6(draw, count, lengths=(32, 36, 40, 44, 48, 48, 56, 64, 96, 127)):
    return some(count, lambda: random6(draw, draw.pick(lengths)))


def dense4(draw, count):
    """All in three /16, and every second pair of addresses in one /24: more ranges than nodes can tell apart."""
    low = 203 << 24 | 7 << 16
    pairs = [Prefix(4, low + at, 31) for at in range(0, 256, 4)]
    return pairs + some(count - len(pairs), lambda: random4(draw, draw.between(25, 31), low + 256, low + 0x2ffff))


def hosts4(draw, count):
    return some(count, lambda: random4(draw, 32))


def hosts6(draw, count):
    """A quarter in one /64: the neighbours of these differ in the low word only."""
    near = some(count // 4, lambda: Prefix(6, 0x20010db800010002 << 64 | draw.getrandbits(64), 128))
    return near + some(count - len(near), lambda: random6(draw, 128))


def combined(made, prefixes, sets, size, family):
    """Each prefix in other sets than all others, `size` of them: a row for each prefix."""
    lists = [[] for _ in range(sets)]
    for prefix, numbers in zip(prefixes, itertools.combinations(range(sets), size)):
        for number in numbers:
            lists[number].append(prefix)
    for number, items in enumerate(lists):
        made.sets[f"s{family}x{number}"] = items
        made.lines.append(f"{'drop' if number % 2 else 'pass'} proto tcp from @s{family}x{number} to port {2000 + number}")


# ---- rules ----------------------------------------------------------------------------------------------

RULES = (
    "pass proto tcp to port {port}",
    "drop proto udp from port 1-{port}",
    "drop proto tcp flags fin/fin to port {port}",
    "drop vlan {vlan} proto udp",
    "pass proto udp to port {port}",
    "drop proto tcp to 198.19.{byte}.0/24 port {port}",
    "drop type echo-request to 2001:db8:{byte}::/48",
    "drop type echo-request to 198.19.{byte}.0/25",
)


def add_rules(made, upto):
    """Rules about other fields until there are so many."""
    for at in range(len(made.lines), upto):
        made.lines.append(RULES[at % len(RULES)].format(port=1000 + at, vlan=100 + at % 3900, byte=at % 256))


def two_sided(made, first, second, rules=12):
    made.sets.update(a=first, b=second)
    made.lines += ["drop from @a", "pass to @b proto tcp", "drop to @b"]
    add_rules(made, rules)


def one_sided(made, items, rules=8):
    made.sets["a"] = items
    made.lines += ["drop from @a"]
    add_rules(made, rules)


def many_rows(made):
    draw = made.draw
    combined(made, some(66000, lambda: random4(draw, 24)), 80, 3, 4)


def many_rows6(made):
    combined(made, prefixes6(made.draw, 1000), 16, 4, 6)


def few_rules(count):
    def make(made):
        made.default = "drop"
        one_sided(made, prefixes4(made.draw, 20) + prefixes6(made.draw, 20), count)
    return make


def all_words(made):
    made.default = "drop"
    one_sided(made, prefixes4(made.draw, 20) + prefixes6(made.draw, 20), 0)
    made.lines += [f"{'drop' if at % 3 else 'pass'} proto {'tcp' if at % 2 else 'udp'} to port {at}" for at in range(1, 4096)]


def uneven(count):
    """Ports from and to that fit in each word, but seldom in one rule: the summary promises what no word keeps."""
    def make(made):
        made.default = "drop"
        made.lines += [f"{'drop' if at % 3 else 'pass'} proto {'tcp' if at % 2 else 'udp'} from port {1 + at % 31} "
                       f"to port {1000 + at % 29}" for at in range(count)]
    return make


def on_ifaces(count):
    """Rules of one interface each, including rules in the second word of the matrix."""
    def make(made):
        made.ifaces = ["eth0", "eth1", "eth2"]
        made.default = "drop"
        made.lines += [f"{'drop' if at % 3 else 'pass'} on {made.ifaces[at % 3]} proto {'tcp' if at % 2 else 'udp'} "
                       f"to port {1000 + at % 40}-{1030 + at % 40}" for at in range(count)]
    return make


def asks(made):
    """First rules with actions that only the general program has, and no condition."""
    made.default = "drop"
    made.lines += ["reject proto tcp to port 1000-1030", "count proto udp to port 1000-1060", "reject vlan 100, 101, 102 proto udp",
                   "pass proto udp to port 1010-1090", "drop proto tcp to port 1020-1090"]
    add_rules(made, 20)


def mostly_hosts(made):
    draw = made.draw
    two_sided(made, hosts4(draw, 60000) + prefixes4(draw, 150), hosts6(draw, 8000) + prefixes6(draw, 100))


def many_bits(made):
    """Some ranges end within the third word of a /24."""
    draw = made.draw
    made.sets["b"] = [prefix for at in some(100, lambda: random4(draw, 24))
                      for prefix in (Prefix(4, at.value, 25), Prefix(4, at.value + 128, 28))]
    made.sets["a"] = prefixes4(draw, 70000)
    made.lines += ["drop from @a, @b"]
    add_rules(made, 8)


# Name: how it is made, and what its tables must be (describe.c).
KINDS = {
    "one": (lambda m: m.lines.extend(["drop from 10.1.2.0/24", "pass proto tcp to 192.0.2.0-192.0.2.77", "drop to 192.0.2.0/24 proto udp"]),
            "words=1 cell=1 source4=one source6=one"),
    "family": (lambda m: one_sided(m, prefixes6(m.draw, 300), 4), "source4=all source6=nodes"),
    "ranges": (lambda m: two_sided(m, prefixes4(m.draw, 3000), prefixes4(m.draw, 3000)),
               "source4=ranges source6=one destination4=ranges"),
    "cells": (lambda m: two_sided(m, dense4(m.draw, 3000), dense4(m.draw, 1500)),
              "source4=ranges source4-cells destination4-cells"),
    "long": (lambda m: (m.sets.update(c=prefixes4(m.draw, 30000)), m.lines.append("pass proto udp from @c"),
                        two_sided(m, prefixes4(m.draw, 60000), prefixes4(m.draw, 100))),
             "source4=long destination4=ranges"),
    "bits": (many_bits, "source4=bits source4-cells"),
    "bits-to": (lambda m: (m.sets.update(a=prefixes4(m.draw, 70000)), m.lines.extend(["drop to @a", "pass to port 1000"])),
                "destination4=bits destination4-cells"),
    "rows": (many_rows, "words=2 cell=4 source4=wide"),
    "hosts": (lambda m: one_sided(m, hosts4(m.draw, 20)), "source4-hosts=one source4=all"),
    "hosts-overflow": (lambda m: one_sided(m, hosts4(m.draw, 40000)), "source4-hosts=one source4-overflow"),
    "hosts-two": (lambda m: (m.sets.update(c=hosts4(m.draw, 20000)), m.lines.append("pass proto tcp from @c"),
                             one_sided(m, hosts4(m.draw, 20000))), "source4-hosts=rows source4-overflow"),
    "hosts-mixed": (mostly_hosts, "source4-hosts=one source4-table-always source4-overflow destination6-hosts=lines destination6=nodes"),
    "nodes6": (lambda m: two_sided(m, prefixes6(m.draw, 2000), prefixes6(m.draw, 2000)),
               "source6=nodes destination6=nodes source4=all"),
    "wide6": (lambda m: one_sided(m, prefixes6(m.draw, 40000)), "source6=wide"),
    "wide6-both": (lambda m: two_sided(m, prefixes6(m.draw, 40000) + prefixes4(m.draw, 60000),
                                       prefixes6(m.draw, 40000) + prefixes4(m.draw, 60000), 4000),
                   "words=63 source6=wide destination6=wide"),
    "rows6": (many_rows6, "source6=wide cell=2"),
    "hosts6": (lambda m: one_sided(m, hosts6(m.draw, 20000)), "source6-hosts=lines source6=one source6-second"),
    "asks": (asks, "words=1"),
    "ifaces-1": (on_ifaces(40), "words=1"),
    "ifaces-3": (on_ifaces(140), "words=3"),
    "words-1": (few_rules(64), "words=1 cell=1"),
    "words-2": (few_rules(65), "words=2"),
    "words-3": (uneven(140), "words=3"),
    "words-7": (uneven(448), "words=7"),
    "words-8": (few_rules(512), "words=8"),
    "words-9": (few_rules(513), "words=9 cell=2"),
    "words-15": (uneven(960), "words=15"),
    "words-64": (all_words, "words=64 cell=2"),
}


# The tables are the same with a service, but packets meet other code.
SERVICE = "+service"
# It has as many rules as there may be.
ALONE = "words-64"
NAMES = [*KINDS, *(name + SERVICE for name in KINDS if name != ALONE)]

# No packet is to it, from it or from its backend.
SERVICE_TEXT = """service unmet {
    vip 192.88.99.77, 2001:db8:ffff::77
    port 9
    mode ipip
    check none
    backend 192.88.99.78
}
"""


def add_service(policy):
    """To the file of a policy; the reference does not know services."""
    with open(policy, "a", encoding="ascii") as text:
        text.write(SERVICE_TEXT)


# ---- packets --------------------------------------------------------------------------------------------

def edges(made):
    """Addresses by family: at the edges of the sets and of the rules, and others."""
    found = {4: [10 << 24 | 1 << 16 | 2 << 8, (10 << 24 | 1 << 16 | 3 << 8) - 1, 10 << 24 | 1 << 16 | 3 << 8,
                 192 << 24 | 2 << 8 | 77, 192 << 24 | 2 << 8 | 78], 6: []}
    for items in made.sets.values():
        for item in items if len(items) <= MOST_EDGES else [made.draw.pick(items) for _ in range(MOST_EDGES)]:
            found[item.family] += item.edges()
    for _ in range(100):
        found[4] += [made.draw.getrandbits(32), (198 << 24 | 19 << 16) + made.draw.below(65536)]
        found[6] += [(0x2001 << 112) + made.draw.getrandbits(112), (0x20010db8 << 96) + made.draw.getrandbits(88)]
    return found


def packet(made, addresses):
    draw, spec = made.draw, Spec()
    spec.family = 4 if draw.chance(50) else 6
    spec.src, spec.dst = draw.pick(addresses[spec.family]), draw.pick(addresses[spec.family])
    spec.proto = draw.pick((TCP, TCP, TCP, UDP, UDP, ICMP if spec.family == 4 else ICMP6, 47))
    spec.type = draw.pick((8, 0, 3)) if spec.family == 4 else draw.pick((128, 129, 1))
    most = max(len(made.lines), 90)
    spec.sport = draw.below(draw.pick((33, 1200))) if draw.chance(50) else draw.below(65536)
    spec.dport = draw.pick((1000, 2000)) + draw.between(-1, most) if draw.chance(85) else draw.below(65536)
    spec.flags, spec.ttl, spec.length = draw.pick((2, 16, 17, 1)), 64, draw.between(60, 90)
    if draw.chance(15):
        spec.tags = [(0x8100 if draw.chance(50) else 0x88a8, 100 + draw.below(most) | draw.below(8) << 13)]
    if draw.chance(5) and spec.family == 4:
        spec.options = 1
    return build(spec).bytes.hex()


def arrival(made):
    """The interface of arrival: perhaps one that the policy does not name."""
    return made.draw.pick((*made.ifaces, "other0")) if made.ifaces else "-"


def write(name, folder, packets):
    """Writes p.weir, frames and words; the policy without its service."""
    name = name.removesuffix(SERVICE)
    make, words = KINDS[name]
    made = Made(Draw(name))
    make(made)
    addresses = edges(made)
    (folder / "p.weir").write_text(made.text(), encoding="ascii")
    (folder / "words").write_text(words + "\n", encoding="ascii")
    (folder / "frames").write_text("".join(f"{arrival(made)} - {packet(made, addresses)}\n" for _ in range(packets)), encoding="ascii")
