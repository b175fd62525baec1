# SPDX-License-Identifier: GPL-2.0-only
"""Reads C for the scripts that check the tree: files, code without comments, comments, strings."""
import pathlib
import re
import signal

# A comment, a string or a character constant; whatever comes first is taken whole.
PIECE = re.compile(r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\\n])*")|'(?:\\.|[^'\\\n])+'""", re.S)


def root_of(argv):
    """The tree to look at: the argument, or the one that the script is in."""
    names = [a for a in argv[1:] if not a.startswith("-")]
    return pathlib.Path(names[0] if names else pathlib.Path(__file__).parent.parent).resolve()


def excepted(argv):
    """The prefixes of --except=PREFIX,PREFIX: files with these names are not looked at."""
    given = [a.removeprefix("--except=") for a in argv if a.startswith("--except=")]
    return tuple(",".join(given).split(",")) if given else ()


def files(root, folders, suffixes):
    """Paths from root of the files below these folders, folder by folder; None: with any suffix."""
    return [p.relative_to(root) for f in folders for p in sorted((root / f).rglob("*"))
            if (not suffixes or p.suffix in suffixes) and p.is_file()]


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def code(text):
    """The text with comments and the content of strings blanked; lines and columns stay."""
    def keep(found):
        if found["comment"]:
            return blank(found[0])
        return found[0][0] + blank(found[0][1:-1]) + found[0][-1]
    return PIECE.sub(keep, text)


def pieces(text, kind):
    """(offset, text) of each comment or string."""
    return [(m.start(), m[0]) for m in PIECE.finditer(text) if m[kind]]


ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\) ?")


def functions(text):
    """(name, first line, lines, whether static) of each function; a body begins with '{' in the first column."""
    lines = ATTRIBUTE.sub("", text).splitlines()
    for start, line in enumerate(lines):
        if line != "{":
            continue
        end = next((i for i in range(start, len(lines)) if lines[i] == "}"), len(lines) - 1)
        head = start - 1
        while head > 0 and not re.match(r"[A-Za-z_]", lines[head]):
            head -= 1
        name = re.search(r"(\w+)\(", lines[head])
        yield (name[1] if name else "?", head + 1, end - head + 1, lines[head].startswith("static"))


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def finish(found):
    """Prints what was found, one a line; the exit status of a check."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for line in found:
        print(line)
    return 1 if found else 0
