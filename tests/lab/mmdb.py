#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes small MaxMind databases (https://maxmind.github.io/MaxMind-DB/, version 2).

usage: mmdb.py FILE [IP_VERSION [RECORD_SIZE]] < LINES     A line: PREFIX country DE | PREFIX asn 64500 | PREFIX RECORD
RECORD is JSON. A tree over IPv6 has IPv4 below ::/96, and aliases of it below ::ffff:0:0/96 and 2002::/16.
"""
import ipaddress
import json
import sys

TYPES = {"pointer": 1, "string": 2, "uint16": 5, "uint32": 6, "map": 7, "uint64": 9, "array": 11}
MARKER = b"\xab\xcd\xefMaxMind.com"


def control(kind, size):
    first = min(size, 29) | (0 if TYPES[kind] > 7 else TYPES[kind] << 5)
    extended = bytes([TYPES[kind] - 7]) if TYPES[kind] > 7 else b""
    more = bytes([size - 29]) if size >= 29 else b""
    assert size < 29 + 256
    return bytes([first]) + extended + more


def number(kind, value):
    data = value.to_bytes(8, "big").lstrip(b"\0")
    return control(kind, len(data)) + data


def encode(value, kind=None):
    if isinstance(value, str):
        return control("string", len(value.encode())) + value.encode()
    if isinstance(value, dict):
        return control("map", len(value)) + b"".join(encode(k) + encode(v) for k, v in value.items())
    if isinstance(value, list):
        return control("array", len(value)) + b"".join(map(encode, value))
    return number(kind or "uint32", value)


def record_of(words):
    if words[0] == "country":
        return {"country": {"iso_code": words[1], "names": {"en": f"country {words[1]}"}}}
    if words[0] == "asn":
        return {"autonomous_system_number": int(words[1]), "autonomous_system_organization": f"AS {words[1]}"}
    return json.loads(" ".join(words))


class Tree:
    """A node is a list of two: None, a node, or the bytes of a record."""

    def __init__(self, version):
        self.version = version
        self.root = [None, None]

    def path(self, text):
        net = ipaddress.ip_network(text)
        bits = f"{int(net.network_address):0{net.max_prefixlen}b}"[:net.prefixlen]
        return "0" * 96 + bits if self.version == 6 and net.version == 4 else bits

    def node(self, path):
        node = self.root
        for bit in map(int, path):
            if not isinstance(node[bit], list):
                node[bit] = [node[bit], node[bit]]
            node = node[bit]
        return node

    def add(self, prefix, record):
        path = self.path(prefix)
        self.node(path[:-1])[int(path[-1])] = record

    def alias(self, prefix):
        path = self.path(prefix)
        self.node(path[:-1])[int(path[-1])] = self.node("0" * 96)

    def nodes(self):
        found, seen, stack = [], set(), [self.root]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            found.append(node)
            stack += [side for side in reversed(node) if isinstance(side, list)]
        return found


def pack(left, right, size):
    if size == 28:
        middle = (left >> 24) << 4 | right >> 24
        return (left & 0xffffff).to_bytes(3, "big") + bytes([middle]) + (right & 0xffffff).to_bytes(3, "big")
    return left.to_bytes(size // 8, "big") + right.to_bytes(size // 8, "big")


def build(entries, version=6, size=24, kind="Weir-Test"):
    """entries: {PREFIX: RECORD as words or a dictionary}; wider prefixes first."""
    tree, data, places = Tree(version), b"", {}
    for prefix, record in entries.items():
        record = encode(record if isinstance(record, dict) else record_of(record.split()))
        places.setdefault(record, None)
        tree.add(prefix, record)
    if version == 6:
        tree.alias("::ffff:0:0/96")
        tree.alias("2002::/16")
    for record in places:
        places[record] = len(data)
        data += record
    nodes = tree.nodes()
    numbers = {id(node): i for i, node in enumerate(nodes)}

    def value(side):
        if side is None:
            return len(nodes)
        return numbers[id(side)] if isinstance(side, list) else len(nodes) + 16 + places[side]

    search = b"".join(pack(value(left), value(right), size) for left, right in nodes)
    about = (control("map", 9) + encode("node_count") + number("uint32", len(nodes))
             + encode("record_size") + number("uint16", size) + encode("ip_version") + number("uint16", version)
             + encode("database_type") + encode(kind) + encode("languages") + encode(["en"])
             + encode("binary_format_major_version") + number("uint16", 2)
             + encode("binary_format_minor_version") + number("uint16", 0)
             + encode("build_epoch") + number("uint64", 1700000000)
             + encode("description") + encode({"en": "made by a test"}))
    return search + b"\0" * 16 + data + MARKER + about


def main():
    path, numbers = sys.argv[1], [int(word) for word in sys.argv[2:]]
    lines = [line.split(None, 1) for line in sys.stdin if line.strip()]
    with open(path, "wb") as file:
        file.write(build(dict(lines), *numbers))


if __name__ == "__main__":
    main()
