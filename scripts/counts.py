# SPDX-License-Identifier: GPL-2.0-only
"""What scripts/shape counts beside an aim: the patterns by which each is found in the sources, all of them here."""
import re
import subprocess
import sys
import typing

import csource

PRODUCT = ("common", "xdp", "ctl")
C = (".c", ".h")
LINES_MAX = 700

# A shape of an entry: a struct with a prefix and the kind of the entry, or the time for which it is to be there.
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\}", re.M | re.S)
ENTRY_PREFIX = re.compile(r"\bstruct prefix\b[^;*]*;")
ENTRY_REST = re.compile(r"\b(?:__u8|uint8_t|enum overlay_kind) kind;|\bfor_ms;")

# A format of our own: a file of ctl/control that ends with a checksum, that is mapped as it is in memory, or that is
# replaced by a text which is not JSON. The number of a revision, a file of one word, does not count.
STATE = "ctl/control"
SEALED = re.compile(r"\bsum_open\(|\bmmap\(")
PLAIN = re.compile(r"\bfile_(?:replace|stage)\(")
JSON = re.compile(r'#include "ctl/base/json')
ONE_WORD = {"ctl/control/revisions.c"}
STORED_TWICE = {"ctl/control/entries/store.c"}  # replaces the file of the journal, whose format is journal.c's

# A mechanism that retries later and later: a pause that is shifted by the number of failures.
BACK_OFF = re.compile(r"<<\s*\(?\s*(?:\w+(?:->|\.))?(?:doublings|failures|times|tries|attempts)\b")

# What a field of the bit matrix needs, by the example of one: its numbers, its place in lists of all fields, its
# domain, and its value in a packet, for each way. A policy that is asked whether it uses the field is no such place.
FIELD = "vlan"
FIELD_NAMES = (r"\b(?:FIELD|M|MATRIX|ROOM)_{upper}S?\b", r"\({upper}\b", r"\bdomain_{lower}\b")
FIELD_VALUE = (r"\bp(?:kt->|\.|->){lower}\b", r"\bstruct (?:packet|arrival) \{{[^}}]*\b{lower};")  # in xdp/
FIELD_ASKED = re.compile(r"\buse\[FIELD_\w+\]")
# A mode, by the example of one. Its other end, weir decap, is a part of it.
MODE = "gue"


def without_comments(text):
    return csource.PIECE.sub(lambda m: csource.blank(m[0]) if m["comment"] else m[0], text)


def sources(root):
    """{path: code without comments} of the product."""
    return {str(path): without_comments((root / path).read_text()) for path in csource.files(root, PRODUCT, C)}


def word_pattern(word):
    """The word as a name or as a part of one, in any case, '-' and '_' alike."""
    return re.compile(r"(?<![a-z0-9])" + re.sub("[-_]", "[-_]", word.lower()) + r"(?![a-z0-9])", re.I)


def product_files(tree):
    return list(tree.texts)


def product_lines(tree):
    """One item for each line."""
    return [path for path in tree.texts for _ in (tree.root / path).read_text().splitlines()]


def headers(tree):
    return [path for path in tree.texts if path.startswith("ctl/") and path.endswith(".h")]


def long_files(tree):
    """Also tests and scripts."""
    found = csource.files(tree.root, (*PRODUCT, "tests", "scripts"), None)
    return [str(path) for path in found if path.suffix in (".c", ".h", ".py", ".sh", "") and "__pycache__" not in path.parts
            and len((tree.root / path).read_text(errors="replace").splitlines()) > LINES_MAX]


def two_subjects(tree):
    """Files whose sentence has two verbs with objects of their own (scripts/files)."""
    script = csource.root_of([""]) / "scripts/files"
    done = subprocess.run([script, "--two-subjects", f"--tree={tree.root}", *PRODUCT], capture_output=True, text=True,
                          check=True)
    return done.stdout.splitlines()


def circles(tree):
    return [" ".join(circle) for circle in tree.circles()]


def entry_shapes(tree):
    return [f"{path}: {found[1]}" for path, text in tree.texts.items() for found in STRUCT.finditer(text)
            if ENTRY_PREFIX.search(found[2]) and ENTRY_REST.search(found[2])]


def formats(tree):
    return [path for path, text in tree.texts.items() if path.startswith(STATE) and path not in ONE_WORD | STORED_TWICE
            and (SEALED.search(text) or PLAIN.search(text) and not JSON.search(text))]


def back_offs(tree):
    return [path for path, text in tree.texts.items() if BACK_OFF.search(text)]


def field_files(tree):
    words = {"upper": FIELD.upper(), "lower": FIELD}
    names, value = ("|".join(patterns).format(**words) for patterns in (FIELD_NAMES, FIELD_VALUE))
    return [path for path, text in tree.texts.items()
            if re.search(f"{names}|{value}" if path.startswith("xdp/") else names, FIELD_ASKED.sub("", text))]


def mode_files(tree):
    return [path for path, text in tree.texts.items() if word_pattern(MODE).search(text)]


class Count(typing.NamedTuple):
    """A line of the table."""
    about: str
    aim: int
    items: typing.Callable
    held: bool = False  # it has reached its aim and must not grow above it


COUNTS = [
    Count("files of the product", 570, product_files),
    Count("lines of the product", 87000, product_lines),
    Count("headers of ctl", 210, headers),
    Count("files over 700 lines, tests and scripts too", 0, long_files, held=True),
    Count("files of two subjects", 0, two_subjects, held=True),
    Count("circles of modules, by calls or includes", 3, circles, held=True),
    Count("shapes of an entry", 4, entry_shapes, held=True),
    Count("formats of our own on disk", 3, formats),
    Count("mechanisms with a back-off", 1, back_offs, held=True),
    Count(f"files that a field of the matrix touches ({FIELD})", 9, field_files, held=True),
    Count(f"files that a mode touches ({MODE})", 7, mode_files, held=True),
]


class Tree:
    """Sources that are read once; circles() gives the circles of their modules."""

    def __init__(self, root, find_circles):
        self.root, self.texts = root, sources(root)
        self.circles = lambda: find_circles(root)


def table(tree, counts=None):
    """Prints each count beside its aim."""
    print(f"{'':<58} {'today':>6} {'aim':>6}")
    for count in counts or COUNTS:
        print(f"{count.about:<58} {len(count.items(tree)):>6} {count.aim:>6}{'  held' if count.held else ''}")


def problems(tree, counts=None):
    """A line for each count that has grown above an aim that it had reached, or has reached it unnoticed."""
    for count in counts or COUNTS:
        items = count.items(tree)
        if count.held and len(items) > count.aim:
            yield f"{count.about}: {len(items)}, more than {count.aim} again (scripts/shape --list '{count.about}')"
        elif not count.held and len(items) <= count.aim:
            yield f"{count.about}: {len(items)}, the aim of {count.aim} is reached: mark it 'held' in scripts/counts.py"


def listed(tree, about):
    """What a count counts, or None if there is no such count."""
    for count in COUNTS:
        if count.about.startswith(about):
            return count.items(tree)
    return None
