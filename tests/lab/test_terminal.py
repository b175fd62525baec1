# SPDX-License-Identifier: GPL-2.0-only
"""External text reaches the terminal without control characters and characters that change direction."""

import json
import re

import pytest

from labnet import on_terminal

HOSTILE = "a\x1b[2Jb\x07c\x9b31md\u202ee\u2066f\u200fg\u2028h"
# Content of older files: strings unchanged, without a checksum line, like a file that was edited.
OLD_FILE = r"""weir-overlay 1 epoch 1
holder 0 since 1790000000 origin "{0}" list "" name "" note "{0} \"q\"" by "{0}"
block from 203.0.113.7 by 0 until never
end 1
"""
COLORS = re.compile(r"\x1b\[(?:0|1|31|32|33|1;31|1;35)m")
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escaped(text):
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def quiet(text):
    """The text, if its only control sequences are our colors."""
    left = COLORS.sub("", text)
    assert not STEERS.search(left), repr(left)
    return text


@pytest.fixture(name="old")
def old_notes(weir):
    weir.state.mkdir(parents=True)
    (weir.state / "overlay").write_text(OLD_FILE.format(escaped(HOSTILE)))
    weir("attach", "near0", "--max-entries", "64")
    return weir


@pytest.mark.parametrize("argv", [
    ("list",), ("status",), ("explain", "203.0.113.7"), ("block", "203.0.113.8", "--note", "x"),
    ("stats",)])
def test_words_of_old_files(old, argv):
    for options in ("--color=always",), ("--color=never",), ("-j",), ("-p",):
        done = old(*options, *argv)
        quiet(done.stdout.replace("\n", ""))
        quiet(done.stderr.replace("\n", ""))
    assert "\x1b" not in old("--color=never", *argv).stdout


def test_json_has_the_text_whole(old):
    entry, = old.json("list")["entries"]
    assert HOSTILE in json.dumps(entry, ensure_ascii=False).replace("\\u001b", "\x1b").replace(
        "\\u0007", "\x07")


def test_plain_lists_are_read_back(old):
    old("block", "203.0.113.0/28", "--for", "36525d", "--note", "n" * 255)
    old("block", "--to", "2001:db8::1", "--note", "tab\u00e9")
    plain = quiet(old("list", "--plain").stdout.replace("\n", "|")).replace("|", "\n")
    assert "q" in plain and len(plain.splitlines()) == 3
    old("unblock", "--all")
    old("block", "-f", "-", input=plain)
    assert set(old.entries()) == {"203.0.113.7", "203.0.113.0/28", "2001:db8::1"}


@pytest.mark.parametrize("note, saved", [("\x1b[1m", "?[1m"), ("\x9b1m", "??1m"), ("\u202e", "???"), ("tab\t", "tab "), ("\udcff", "?")])
def test_notes_that_steer_are_cleaned(on, note, saved):
    """A note never refuses a block; an origin, and a line of a list, are refused."""
    assert "--origin contains a control character or is not UTF-8" in quiet(on.fails(1, "block", "192.0.2.1", "--origin", note))
    if note != "\udcff":
        assert "unprintable" in quiet(
            on("block", "-f", "-", input=f'192.0.2.1 note "{note}"\n', check=False).stderr.replace("\n", ""))
    assert not on.entries()
    done = on("block", "192.0.2.1", "--note", note)
    assert done.stderr.endswith(f'the note is saved as "{saved}"\n') and quiet(done.stderr.replace("\n", ""))
    assert on.entries()["192.0.2.1"]["holders"][0]["note"] == saved


def test_paths_and_names_of_policies(on, tmp_path):
    path = tmp_path / f"{HOSTILE}\nweir: all is well"
    path.write_text('"rule" drop from 203.0.113.7\n')
    for argv in ("check", path), ("apply", path), ("history",), ("stats",), ("status",), (
            "explain", "203.0.113.7"), ("diff", path), ("check", f"{path}.none"):
        for color in "always", "never":
            done = on(f"--color={color}", *argv, check=False)
            for line in (done.stdout + done.stderr).split("\n"):
                quiet(line)
                assert not line.startswith("weir: all is well")
    path.write_text(f'"{HOSTILE}" drop from 203.0.113.7\ndrop frm "{HOSTILE}"\n')
    done = on("--color=always", "check", path, check=False)
    assert done.returncode == 1
    quiet(done.stderr.replace("\n", ""))


# Width and colors of tables


LONG4, LONG6 = "198.51.100.255", "2001:db8:ffff:ffff:ffff:ffff:ffff:fff0/124"
ANY_COLOR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(name="full")
def full_tables(on):
    on("block", LONG6, "--both", "--note", "a note that alone is longer than what is left of a line " * 3,
       "--origin", "a-long-origin-of-a-feed")
    on("block", LONG4, "--for", "10d", "--note", "abuse 4711")
    return on


@pytest.mark.parametrize("argv, columns", [
    (("list",), 80), (("list",), 60), (("stats", "--all"), 80), (("stats", "--all"), 60),
    (("status", "--limits"), 80), (("history",), 80)])
def test_tables_fit_the_terminal(full, argv, columns):
    lines = ANY_COLOR.sub("", on_terminal(full, *argv, columns=columns)).splitlines()
    assert max(map(len, lines), default=0) <= columns, lines


def test_what_does_not_fit_moves_to_another_line_or_is_cut(full):
    text = ANY_COLOR.sub("", on_terminal(full, "list"))
    assert LONG6 in text and LONG4 in text and "abuse 4711" in text and "\u2026" in text
    assert re.search(r"\n    \S", text)  # a line that continues the one above
    wide = on_terminal(full, "list", "--wide")
    assert "\u2026" not in wide and max(map(len, wide.splitlines())) > 80
    assert ANY_COLOR.sub("", wide).split() == full("list").stdout.split()  # as in a pipe


def test_verdicts_have_colors_on_a_terminal_only(full):
    assert "\x1b[31mblock-from\x1b[0m" in on_terminal(full, "list")
    assert "\x1b[32mpass\x1b[0m" in on_terminal(full, "stats", "--all")
    assert "\x1b" not in on_terminal(full, "list", NO_COLOR="1") + full("list").stdout


def test_policies_and_differences(weir, tmp_path):
    """A policy file that others wrote: neither its text nor a difference steers the terminal."""
    path = tmp_path / "lab.weir"
    path.write_text("interface near0\n# \u00e4 and a\ttab\ndrop from 192.0.2.1\n")
    weir("apply", path)
    evil = "# \x1b]0;title\x07 \x9b2J \u202e reversed \u2066 \x7f \x00\x01"
    path.write_bytes(f"interface near0\r\n{evil}\n# \u00e4 and a\ttab\ndefault pass".encode())
    done = weir("diff", path, check=False)
    assert done.returncode == 3 and "+# ?]0;title? ??2J ??? reversed ??? ? ??\n" in done.stdout, done.stdout
    weir("apply", path)
    shown = weir("show").stdout
    assert shown == "interface near0\n# ?]0;title? ??2J ??? reversed ??? ? ??\n# \u00e4 and a\ttab\ndefault pass\n"
    for text in done.stdout, done.stderr, shown:
        quiet(text)
