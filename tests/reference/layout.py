# SPDX-License-Identifier: GPL-2.0-only
"""The headers of layout.h: HEADERS["IP4"].bytes, .at["TTL"], .form for all fields in order, .fields(bytes)."""
import pathlib
import re
import struct

FIELD = re.compile(r"FIELD\((\w+), (\w+), (\d+), (\d+)\)")
LETTERS = {1: "B", 2: "H", 4: "I"}


class Header:
    """Numbers in network order; addresses are bytes."""

    def __init__(self, name, fields):
        ends = [0, *(at + size for _, at, size in fields)]
        assert ends[:-1] == [at for _, at, _ in fields], f"{name} has a gap"
        self.bytes = ends[-1]
        self.at = {field: at for field, at, _ in fields}
        self.names = tuple(self.at)
        self.form = struct.Struct("!" + "".join(letter(field, size) for field, _, size in fields))

    def fields(self, content):
        """The fields of this header's bytes, by name."""
        return dict(zip(self.names, self.form.unpack(content)))


def letter(field, size):
    return f"{size}s" if field in ("FROM", "TO") else LETTERS[size]


def read(path):
    rows = {}
    for header, name, at, size in FIELD.findall(path.read_text(encoding="ascii")):
        rows.setdefault(header, []).append((name, int(at), int(size)))
    return {header: Header(header, fields) for header, fields in rows.items()}


HEADERS = read(pathlib.Path(__file__).with_name("layout.h"))
