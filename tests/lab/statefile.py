# SPDX-License-Identifier: GPL-2.0-only
"""Files of state (ctl/control/state.h), read and written without Weir, and their forms before that format."""

import functools
import json

HEAD = "weir-state 1\n"


def checksum(text):
    """64 bits of FNV-1a in hexadecimal."""
    return f"{functools.reduce(lambda h, b: (h ^ b) * 0x100000001b3 % 2**64, text.encode(), 0xcbf29ce484222325):016x}"


def sealed(text):
    return f"{text}sum {checksum(text)}\n"


def read_rows(path, kind):
    """The rows of a file; all are of this kind, and its checksum is right."""
    text = path.read_text()
    rows, _, _ = text.rpartition("sum ")
    assert text == sealed(rows) and rows.startswith(HEAD), text
    found = [line.split(" ", 1) for line in rows.removeprefix(HEAD).splitlines()]
    assert all(name == kind for name, _ in found), text
    return [json.loads(value) for _, value in found]


def write_rows(path, kind, rows):
    path.write_text(sealed(HEAD + "".join(f"{kind} {json.dumps(row)}\n" for row in rows)), encoding="utf-8")


def write_old_drains(path, rows):
    """The overrides, as versions before this format wrote them: a document, with a weight only where one is set."""
    path.write_text(sealed(json.dumps({"drains": rows}, indent=2) + "\n"), encoding="utf-8")


def read_drains(path):
    """The overrides, in either form; the checksum is right."""
    text = path.read_text()
    if text.startswith(HEAD):
        return read_rows(path, "override")
    document = text.rpartition("sum ")[0]
    assert text == sealed(document), text
    return json.loads(document)["drains"]
