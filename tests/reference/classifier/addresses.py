# SPDX-License-Identifier: GPL-2.0-only
"""Random addresses, prefixes and ranges, sets and lists of them, close enough to meet each other."""
import ipaddress
import os
import socket
import typing

BITS = {4: 32, 6: 128}
INET = {4: socket.AF_INET, 6: socket.AF_INET6}
FAMILY_BIT = {4: 1, 6: 2}
BOTH = 3
MOST = {family: (1 << bits) - 1 for family, bits in BITS.items()}
# Which addresses differ in the bits after a prefix of this length.
HOST = {family: [(1 << bits - length) - 1 for length in range(bits + 1)] for family, bits in BITS.items()}
USUAL_LENGTHS = {4: (32, 32, 32, 24, 24, 28, 16, 30), 6: (128, 128, 64, 64, 48, 56, 96, 127)}
SEPARATORS = (", ", ",", ",\n\t", "\n\t", "\n\n\t# a comment\n\t")


class Item(typing.NamedTuple):
    """Of a list: the addresses low … high, or a set."""
    family: int
    low: int
    high: int
    negative: bool
    set: object = None


class Addresses:
    """A list of addresses as text, and as values to aim at."""
    __slots__ = ("given", "negated", "dynamic", "families", "weight", "items", "text")

    def __init__(self):
        self.given = self.negated = self.dynamic = False
        self.families = 0  # that it may match: sum of FAMILY_BIT
        self.weight = 0.0  # roughly the share of the addresses it takes, so that broad rules come last
        self.items = []
        self.text = ""

    def copy(self):
        made = Addresses()
        for name in Addresses.__slots__:
            setattr(made, name, getattr(self, name))
        return made

    def negate(self):
        self.negated, self.families, self.weight = True, BOTH, 1.0
        self.text = f"not {self.text}"


class Set:
    """A set of the policy."""

    def __init__(self, name, hosts=False, dynamic=False):
        self.name, self.hosts, self.dynamic = name, hosts, dynamic  # hosts: few and long, may follow `not`
        self.addresses = Addresses()
        self.file = None  # the path of its list, and what is in it
        self.file_text = ""


class Define:
    """A define of the policy; kind: "addresses", "ports", "protos" or "vlans"."""

    def __init__(self, name, kind):
        self.name, self.kind = name, kind
        self.alone = False  # negated or with exceptions: not in a list with others
        self.value = None


def text_of(family, value):
    return socket.inet_ntop(INET[family], value.to_bytes(BITS[family] // 8, "big"))


def value_of(text):
    return int(ipaddress.ip_address(text))


def prefixes_of_range(family, low, high):
    """The fewest prefixes with exactly these addresses: pairs of address and length."""
    while low <= high:
        size = BITS[family] if low == 0 else (low & -low).bit_length() - 1
        while low + (1 << size) - 1 > high:
            size -= 1
        yield low, BITS[family] - size
        low += 1 << size


def weight_of(family, low, high):
    """The sites leave about 24 bits of IPv4 and 96 of IPv6 to choose from, but not evenly."""
    bits = (high - low).bit_length()
    return 0.5 ** max(0, 24 - bits if family == 4 else (96 - bits) // 4)


# ---- sites: where addresses come from -------------------------------------------------------------------

def make_sites(draw):
    def some(family, first, lengths):
        length = draw.between(*lengths)
        value = first | draw.getrandbits(BITS[family]) & HOST[family][8 if family == 4 else 4]
        return value & ~HOST[family][length], length

    def fixed(*texts):
        return [(value_of(text.split("/")[0]), int(text.split("/")[1])) for text in texts]

    return {
        4: fixed("10.0.0.0/8", "192.0.2.0/24", "198.51.100.0/24", "172.16.0.0/12")
        + [some(4, draw.between(11, 120) << 24, lengths) for lengths in ((8, 12), (12, 20), (16, 24))],
        6: fixed("2001:db8::/32", "fd00::/16", "fe80::/64")
        + [some(6, 0x2 << 124, lengths) for lengths in ((20, 32), (32, 56))],
    }


def site_address(gen, family):
    value, length = gen.draw.pick(gen.sites[family])
    return value | gen.draw.getrandbits(BITS[family]) & HOST[family][length]


# ---- one list -------------------------------------------------------------------------------------------

class Maker:
    """A list in the making."""

    def __init__(self, gen, families=BOTH):
        self.gen, self.draw = gen, gen.draw
        self.list = Addresses()
        self.list.given = True
        self.words = []
        self.seen = set()  # no item may be in a list twice
        self.separator = ",\n\t" if gen.may("layout", 6) else ", "
        self.families = families  # to take items from
        self.spread = 90 if gen.options.rules > 500 else 50  # percent of items that are not near others
        self.shortest, self.longest = {4: 9, 6: 17}, {4: 32, 6: 128}

    def done(self):
        self.list.text = self.separator.join(self.words)
        return self.list

    def family(self):
        if self.families == BOTH:
            return 4 if self.draw.chance(55) else 6
        return 4 if self.families == 1 else 6

    def is_new(self, *what):
        if what in self.seen:
            return False
        self.seen.add(what)
        return True

    def note(self, family, low, high, negative=False):
        self.list.items.append(Item(family, low, high, negative))
        if not negative:
            self.list.families |= FAMILY_BIT[family]
            self.list.weight += weight_of(family, low, high)

    def word(self, text, negative=False):
        self.words.append(f"not {text}" if negative else text)

    def address(self, family, value):
        """As text; now and then with all groups, to see that both are read alike."""
        if family == 6 and self.draw.chance(5):
            return ":".join(f"{value >> shift & 0xffff:x}" for shift in range(112, -1, -16))
        return text_of(family, value)

    def length(self, family, low, high):
        length = self.draw.pick(USUAL_LENGTHS[family])
        if self.draw.chance(30):
            length = self.draw.between(low, high)
        return min(max(length, low), high)

    def site_prefix(self, family):
        """In a site: one of the few in its first part, or any."""
        draw, bits = self.draw, BITS[family]
        value, inside = draw.pick(self.gen.sites[family])
        low, high = self.shortest[family], self.longest[family]
        length = self.length(family, max(low, min(inside, high)), high)
        if draw.chance(self.spread):
            value |= draw.getrandbits(bits) & HOST[family][inside]
        elif length > inside:
            value |= draw.below(48) << bits - length & HOST[family][inside]
        return family, value & ~HOST[family][length], length

    def near_prefix(self, item):
        """A part, the neighbour or the surroundings of an item."""
        draw, family, value = self.draw, item.family, item.low
        length = BITS[family] - (item.low ^ item.high).bit_length()
        if draw.chance(60):
            length += draw.between(1, 8)
        elif draw.chance(50):
            value ^= 1 << BITS[family] - length if length else 0
        elif length > 4:
            length -= draw.between(1, 4)
        length = min(max(length, self.shortest[family]), self.longest[family])
        if draw.chance(50):
            value |= draw.getrandbits(BITS[family]) & (item.low ^ item.high)
        return family, value & ~HOST[family][length], length

    def put_prefix(self, family, value, length, negative=False):
        """True: it is new."""
        if not self.is_new(family, value, length):
            return False
        text = self.address(family, value)
        if family == 4 and length == 32 and self.draw.chance(1):
            text = f"::ffff:{text}"
        elif length < BITS[family] or not self.draw.chance(90):
            text = f"{text}/{length}"
        self.word(text, negative)
        self.note(family, value, value | HOST[family][length], negative)
        return True

    def put_range(self, family, negative):
        """A range that is not a prefix."""
        draw = self.draw
        low = self.site_prefix(family)[1] + draw.below(200)
        high = low + draw.between(1, 20 if draw.chance(70) else 5000)
        if high > MOST[family] or (low & high - low == 0 and high - low + 1 & high - low == 0):
            return False
        if not self.is_new(family, low, high, "range"):
            return False
        self.word(f"{self.address(family, low)}-{self.address(family, high)}", negative)
        self.note(family, low, high, negative)
        return True

    def put_any(self, exceptions, ranges):
        draw, items = self.draw, self.list.items
        near = items and draw.chance(60 if exceptions else 30)
        negative = bool(exceptions and items and draw.chance(35))
        item = draw.pick(items) if near else None
        if draw.chance(ranges):
            return self.put_range(self.family(), negative)
        if item and item.set is None:
            return self.put_prefix(*self.near_prefix(item), negative)
        return self.put_prefix(*self.site_prefix(self.family()), negative)

    def put_items(self, count, exceptions=False, ranges=0):
        """ranges: percent of them"""
        for _ in range(4 * count + 20):
            if not count:
                break
            count -= self.put_any(exceptions, ranges)
        if exceptions:
            self.put_ties()

    def put_ties(self):
        """An exception that is exactly one of the prefixes of a range: `not` wins the tie."""
        for item in list(self.list.items):
            if item.set is not None or item.negative:
                continue
            cut = list(prefixes_of_range(item.family, item.low, item.high))
            if len(cut) > 1 and self.draw.chance(40):
                self.put_prefix(item.family, *self.draw.pick(cut), True)

    def joined_address(self):
        """The first or last address of an item of a set in this list: (family, value), or None."""
        for _ in range(8 if self.list.items else 0):
            item = self.draw.pick(self.list.items)
            if item.set is not None:
                item = self.draw.pick(item.set.addresses.items)
            if item.set is None:
                return item.family, item.low if self.draw.chance(50) else item.high
        return None

    def put_host_exceptions(self, count):
        """Full-length exceptions read the same however sets are joined."""
        for _ in range(count):
            host = self.site_prefix(self.family())[:2]
            if self.draw.chance(70):
                host = self.joined_address() or host
            self.put_prefix(*host, BITS[host[0]], True)

    def put_set(self, one, negative=False):
        if not self.is_new(one.name):
            return
        self.word(f"@{one.name}", negative)
        self.list.items.append(Item(0, 0, 0, negative, one))
        if not negative:
            self.list.families |= one.addresses.families
            self.list.weight += one.addresses.weight

    def put_joined(self, items):
        """With other sets: unions with host exceptions, or short prefixes without a set of hosts."""
        gen, draw = self.gen, self.draw
        hard = gen.may("hard-joins", 60)
        hosts = find_set(gen, BOTH, True)
        if not hard and hosts and draw.chance(40):
            self.longest = {4: 24, 6: 64}
            self.put_items(items)
            self.put_set(hosts, True)
            return
        self.put_items(items, hard, 10 if hard else 0)
        for _ in range(draw.between(1, 3)):
            one = find_set(gen, self.families, False)
            if one:
                self.put_set(one, bool(hard and self.words and draw.chance(30)))
        if not hard and draw.chance(50):
            self.put_host_exceptions(draw.between(1, 4))

    def put_define(self):
        """A define in the middle of a list."""
        define = find_define(self.gen, self.families, False)
        if define:
            self.word(f"${define.name}")
            for item in define.value.items:
                self.note(*item[:3])


# ---- sets -----------------------------------------------------------------------------------------------

def find_set(gen, families, hosts):
    """One fit for these families, never a dynamic one; or None."""
    for _ in range(20 if gen.sets else 0):
        one = gen.draw.pick(gen.sets)
        if not one.dynamic and one.addresses.families & families and one.hosts == hosts:
            return one
    return None


def to_file(gen, one, maker):
    """The elements go into a list, one a line."""
    one.file = f"{gen.options.policy}.{one.name}.txt"
    one.file_text = "\n".join(maker.words) + "\n"
    least = " min 1" if gen.draw.chance(30) else ""
    maker.words = [f'file "{os.path.basename(one.file)}"{least}']


def make_set(gen, one, size):
    draw = gen.draw
    maker = Maker(gen, BOTH if draw.chance(70) else draw.between(1, 2))
    file = size >= 4 and gen.may("file", 60 if size > 1000 else 25)
    if size > 500:
        maker.spread = 95
        maker.shortest = {4: 18 if draw.chance(30) else 26, 6: 40 if draw.chance(30) else 56}
    maker.separator = draw.pick(SEPARATORS) if gen.options.uses("layout") else SEPARATORS[0]
    if one.hosts:
        maker.shortest = {4: 29, 6: 120}
        maker.put_items(draw.between(1, 12))
    elif gen.sets and not file and size < 200 and draw.chance(40):
        maker.put_joined(min(size, 10))
    else:
        maker.put_items(size, not file and draw.chance(60), 8)
    if not maker.words or not maker.list.families:
        maker.put_prefix(*maker.site_prefix(4))
    if file and not one.hosts:
        to_file(gen, one, maker)
    one.addresses = maker.done()


def make_sets(gen):
    draw, size = gen.draw, gen.options.set_size
    most = min(2 + gen.options.rules // 12, 40)
    for at in range(draw.between(3 if size else 2, max(most, 3))):
        one = Set(f"s{at}", hosts=at < 2)
        length = size if at == 2 else draw.between(1, max(size >> draw.below(18), 1))
        make_set(gen, one, max(length, 1))
        gen.sets.append(one)
    for at in range(draw.between(1, 3) if gen.may("dynamic", 50) else 0):
        one = Set(f"dyn-{at}", dynamic=True)
        one.addresses.families = BOTH
        gen.sets.append(one)


# ---- defines, and what follows `from` and `to` ----------------------------------------------------------

def make_define(gen, define):
    maker = Maker(gen)
    exceptions = gen.draw.chance(30)
    maker.put_items(gen.draw.between(1, 8), exceptions, 8)
    define.value, define.alone = maker.done(), exceptions
    if not exceptions and gen.draw.chance(15):
        define.value.negate()
        define.alone = True


def make_defines(gen):
    for at in range(gen.draw.below(6) if gen.options.uses("define") else 0):
        define = Define(f"net{at}", "addresses")
        make_define(gen, define)
        gen.defines.append(define)


def find_define(gen, families, alone):
    for _ in range(8 if gen.defines else 0):
        define = gen.draw.pick(gen.defines)
        if define.kind == "addresses" and (alone or not define.alone) and define.value.families & families:
            return define
    return None


def from_define(gen, families):
    define = find_define(gen, families, True)
    if not define:
        return None
    made = define.value.copy()
    made.text = f"${define.name}"
    if not define.alone and gen.draw.chance(10):
        made.negate()
    return made


def from_dynamic(gen):
    last = gen.sets[-1]
    if gen.options.rules <= 8 or not gen.may("dynamic", 6) or not last.dynamic:
        return None
    made = Addresses()
    made.given = made.dynamic = True
    made.families, made.text = BOTH, f"@{last.name}"
    return made


def from_set(gen, families):
    draw = gen.draw
    dynamic = from_dynamic(gen)
    one = find_set(gen, families, draw.chance(10))
    if dynamic or not one:
        return dynamic
    maker = Maker(gen, families)
    maker.put_set(one)
    if draw.chance(20):
        maker.put_items(draw.between(1, 3))
    exceptions = draw.chance(10)
    if exceptions:
        maker.put_host_exceptions(2)
    made = maker.done()
    if not exceptions and draw.chance(8):
        made.negate()
    return made


def make_any(gen):
    """`any`, with or without exceptions."""
    maker = Maker(gen)
    maker.word("any")
    for family in (4, 6):
        maker.note(family, 0, MOST[family])
    if gen.draw.chance(40):
        maker.put_host_exceptions(gen.draw.between(1, 3))
    return maker.done()


def make_list(gen, families):
    draw = gen.draw
    count = 1 if draw.chance(55) else draw.between(2, 7)
    maker = Maker(gen, families)
    exceptions = count > 1 and draw.chance(35)
    maker.put_items(count, exceptions, 10)
    if not exceptions and draw.chance(8):
        maker.put_define()
    made = maker.done()
    if not exceptions and draw.chance(5):
        made.negate()
    return made


def make_addresses(gen, families):
    """What follows `from` or `to`."""
    roll = gen.draw.below(100)
    if roll < 3:
        return make_any(gen)
    made = None
    if roll < 35:
        made = from_set(gen, families)
    elif roll < 45:
        made = from_define(gen, families)
    return made or make_list(gen, families)
