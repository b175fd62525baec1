# SPDX-License-Identifier: GPL-2.0-only
"""weir top on a terminal: what is in which cell, what reaches the terminal, and how it is left."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time

import pyte
import pytest

from labnet import on_terminal, until
from test_terminal import HOSTILE, OLD_FILE, escaped
from test_top import SOURCE, generator

VIEWS = "overview", "reasons", "rules", "entries", "owners", "services", "interfaces", "sources", "destinations", "ports"
WIDE = "\u9632\u706b\u5899" * 20  # twice as many cells
BUSY, LONG = "guard", "long-" + "x" * 250
LARGE = (80, 240)  # of the emulated terminal: larger than any that the command is told
# Sequences of the terminals linux and xterm; nothing else may control the terminal.
SEQUENCES = re.compile(r"\x1b(?:\[[?>!]?[0-9;]*[A-Za-z@`]|\][PR][0-9a-f]*|[()][0AB]|[=>78M]|c)|[\r\n\b\x0e\x0f]|\x1b\[\d*[dG]")
STEERS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


class View:
    """weir top on a terminal of its own; everything that it writes goes to an emulated one."""

    def __init__(self, weir, *options, rows=24, columns=80, shell=(), **environment):
        self.ours, theirs = pty.openpty()
        self.theirs, self.said, self.over, self.screen = theirs, b"", False, pyte.Screen(LARGE[1], LARGE[0])
        self.stream = pyte.ByteStream(self.screen)
        self.resize(rows, columns)
        self.before = termios.tcgetattr(theirs)
        self.lock = threading.Lock()
        environment = {**os.environ, "TERM": "linux", "LC_ALL": "C.UTF-8", **environment}
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [*shell, *weir.argv("top", *options)], stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with contextlib.suppress(OSError):  # EIO: the session has ended
            while not self.over:
                if select.select([self.ours], [], [], 0.1)[0]:
                    data = os.read(self.ours, 65536)
                    with self.lock:
                        self.said += data
                        self.stream.feed(data)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def lines(self):
        with self.lock:
            return list(self.screen.display)

    def inside(self):
        """The lines, none of which has a cell outside of the terminal that the command was told."""
        lines = self.lines()
        assert not any(line.strip() for line in lines[self.rows:]), lines
        for line in self.cells():
            assert not "".join(line[self.columns:]).strip(), line
        return [line.rstrip() for line in lines[:self.rows]]

    def settled(self):
        """The same once the command has drawn for the present size."""
        until(lambda: self.lines()[self.rows - 1].strip() and not any(
            "".join(line[self.columns:]).strip() for line in self.cells()), 5, "a screen of this size")
        return self.inside()

    def cells(self):
        with self.lock:
            return [[self.screen.buffer[row][column].data for column in range(LARGE[1])] for row in range(LARGE[0])]

    def type(self, keys):
        os.write(self.ours, keys.encode())

    def shows(self, text, seconds=10):
        try:
            until(lambda: text in "\n".join(self.lines()), seconds, text)
        except AssertionError as error:
            raise AssertionError("\n".join(line.rstrip() for line in self.lines()[:self.rows])) from error

    def is_ours(self):
        """Whether the terminal has the settings that it had before."""
        return termios.tcgetattr(self.theirs) == self.before

    def ended(self, status=0):
        assert self.process.wait(timeout=10) == status, self.said[-500:]
        until(lambda: b"\x1b[?25h" in self.said[-200:], 3, "a cursor")
        assert self.is_ours()

    def hang_up(self):
        """The terminal is closed, as when its window is."""
        self.over = True
        self.reader.join(timeout=5)
        os.close(self.ours)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.theirs)
        if not self.over:
            self.hang_up()


@pytest.fixture(name="view")
def views_of_a_test(weir):
    """view(OPTION..., rows=24, columns=80, VARIABLE=...) starts weir top on a terminal."""
    started = []

    def start(*options, **about):
        started.append(View(weir, *options, **about))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture(name="busy")
def traffic(pair, weir, tmp_path):
    """Rules with names of any kind, one of which drops 100 packets a second."""
    path = tmp_path / "near.weir"
    path.write_text(f'interface near0\n"{BUSY}" drop from 198.51.100.7\n"{LONG}" drop from 198.51.100.8\n')
    weir("apply", path)
    with generator(pair, pair.udp(SOURCE), 100):
        yield weir


@pytest.mark.parametrize("rows, columns", [(24, 80), (10, 40), (60, 200)])
def test_sizes(busy, view, rows, columns):
    one = view("--all", rows=rows, columns=columns)
    one.shows("q quit")
    until(lambda: re.search(r"dropped +(9\d|1[01]\d) ", "\n".join(one.inside())), 10, "the rate")
    for number, name in enumerate(VIEWS, 1):
        one.type(str(number))
        until(lambda: (f"{number}/10 {name}" if columns < 60 else name) in one.inside()[1] and
              (number == 1 or "TOTAL" not in one.inside()[2]), 10, name)
        lines = one.inside()
        assert lines[0].startswith("weir top ") and lines[0].endswith(" packets/s") and "q quit" in lines[-1]
    one.type("3")
    one.shows("long-xx")
    time.sleep(1.2)
    rule, = (line for line in one.inside() if BUSY in line)
    assert re.search(r" (9\d|1[01]\d) +(9\d|1[01]\d) ", rule + " "), rule
    assert ("\u2588" in rule or "\u2587" in rule) == (columns >= 60)
    one.type("h")
    one.shows("Esc removes it")
    one.inside()
    one.type("q")
    one.ended()


def test_resize_leaves_nothing(busy, view):
    one = view("--all", rows=60, columns=200)
    one.shows("q quit")
    one.type("2")
    one.shows("REASON")
    for rows, columns in (24, 80), (10, 40), (3, 12), (40, 120), (10, 40):
        one.resize(rows, columns)
        one.shows("too small" if rows < 5 else "q quit")
        until(lambda: [row for row, line in enumerate(one.lines()) if line.strip()][-1] == (0 if rows < 5 else rows - 1), 10,
              "the last line")
        one.inside()
    one.type("q")
    one.ended()


def test_keys(busy, view):
    one = view("--all")
    one.shows("q quit")
    one.type("3/LONG")
    one.shows("filter: LONG_")
    until(lambda: not any(BUSY in line for line in one.lines()), 5, "the filter")
    one.type("\x7f\x7f\x7f\x7f\x7fno such\n")
    one.shows("no row contains 'no such'")
    one.type("\x1b")
    one.shows(BUSY)
    one.type("b")
    one.shows("bits/s")
    one.type("sss")
    one.shows("*1 s")
    one.type("r")
    one.shows("^1 s")
    one.type("p")
    one.shows("PAUSED")
    title = one.lines()[0]
    time.sleep(2.5)
    assert one.lines()[0] == title
    one.type("p")
    until(lambda: one.lines()[0] not in (title, ""), 5, "the next reading")
    one.type("q")
    one.ended()


@pytest.fixture(name="steering")
def names_that_steer(pair, weir):
    """An origin as older files can have it: what controls a terminal, and wide characters."""
    weir.state.mkdir(parents=True)
    (weir.state / "overlay").write_text(OLD_FILE.format(escaped(HOSTILE + WIDE)))
    weir("attach", "near0", "--max-entries", "64")
    with generator(pair, pair.udp("203.0.113.7"), 50):
        yield weir


def test_names_that_steer(steering, view):
    one = view()
    one.shows("q quit")
    one.type("5")
    one.shows("a?[2Jb?c", 25)
    for columns in range(20, 90, 3):  # a wide character is at the edge of some
        one.resize(24, columns)
        one.shows(" 60 s  last" if columns >= 60 else "10 s" if columns >= 28 else "1 s")
        one.settled()
    one.resize(24, 160)
    one.shows("h" + WIDE[:2])
    one.type("4")
    one.shows("203.0.113.7")
    assert re.search(r"203\.0\.113\.7 +block-from +- +(4\d|5\d) +", "\n".join(one.inside()))
    one.type("q")
    one.ended()
    left = SEQUENCES.sub("", one.said.decode())
    assert not STEERS.search(left), repr(STEERS.search(left))


def test_ascii(steering, view):
    one = view(LC_ALL="C", NO_COLOR="1")
    one.shows("q quit")
    one.type("5")
    one.shows("a?[2Jb?c", 25)
    one.resize(24, 160)
    one.shows("h?????????")
    one.settled()
    assert one.said.isascii()


def test_colors(busy, view):
    plain, colored = view(NO_COLOR="1"), view()
    until(lambda: re.search(rb"\x1b\[[0-9;]*31m", colored.said), 10, "red")
    plain.shows("dropped")
    time.sleep(1.2)
    assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", plain.said)


@pytest.mark.parametrize("how", ["q", "\x03", "\x1c", signal.SIGTERM, signal.SIGHUP])
def test_terminal_is_restored(on, view, how):
    one = view(TERM="xterm")
    until(lambda: b"q quit" in one.said, 10, "a screen")
    assert not one.is_ours() and b"\x1b[?1049h" in one.said
    if isinstance(how, str):
        one.type(how)
    else:
        one.process.send_signal(how)
    one.ended()
    assert one.said.count(b"\x1b[?1049h") == one.said.count(b"\x1b[?1049l") == 1


def stopped(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "T"


def test_stop_and_continue(on, view):
    """SIGSTOP gives no time to restore anything: others write on the screen, and change the settings of the terminal."""
    one = view()
    one.shows("q quit")
    ours = termios.tcgetattr(one.theirs)
    one.process.send_signal(signal.SIGSTOP)
    until(lambda: stopped(one.process), 5, "a stop")
    termios.tcsetattr(one.theirs, termios.TCSANOW, one.before)
    with one.lock:
        one.stream.feed(b"\x1b[2J" + b"$ garbage of others\r\n" * 100)
    one.process.send_signal(signal.SIGCONT)
    one.shows("q quit")
    until(lambda: not any("garbage" in line for line in one.lines()), 5, "a clean screen")
    assert "weir top" in one.inside()[0]
    assert termios.tcgetattr(one.theirs)[:4] == ours[:4]
    one.type("q")
    one.ended()


SHELL = "bash", "-c", 'set -m; "$@"; echo "left with $?"; read -r line; fg; echo "ended with $?"', "bash"


def test_stop_by_key(on, view):
    one = view(shell=SHELL)
    one.shows("q quit")
    one.type("\x1a")
    one.shows("left with 148")
    assert one.is_ours()
    one.type("\n")
    one.shows("q quit")
    until(lambda: "weir top" in one.lines()[0] and "left with" not in "\n".join(one.lines()), 5, "a clean screen")
    one.type("q")
    one.shows("ended with 0")
    one.ended()


def test_stop_without_a_shell(on, view):
    """No process could continue it."""
    one = view()
    one.shows("q quit")
    one.type("\x1a3")
    one.shows("RULE")
    one.type("q")
    one.ended()


def test_terminal_that_is_closed(on, view):
    one = view()
    one.shows("q quit")
    one.hang_up()
    assert one.process.wait(timeout=10) == 0


def test_terminal_that_is_not_read(on, view):
    """As when a connection hangs: a signal ends the command while it waits for the terminal."""
    one = view("--all", rows=70, columns=230)
    one.shows("q quit")
    one.over = True
    one.reader.join(timeout=5)

    def waits():
        one.resize(60 + one.rows % 9, 230)
        with open(f"/proc/{one.process.pid}/wchan", encoding="ascii") as where:
            return where.read() == "wait_woken"

    until(waits, 30, "a full terminal")
    one.process.send_signal(signal.SIGTERM)
    assert one.process.wait(timeout=5) == -signal.SIGTERM
    assert one.is_ours()


def test_instance_that_goes_and_returns(on, view):
    one = view()
    one.shows("q quit")
    on("detach")
    one.shows("no data since ")
    one.inside()
    on("attach", "near0", "--max-entries", "1000")
    until(lambda: "no data" not in "\n".join(one.lines()), 10, "the next reading")
    one.type("q")
    one.ended()


def test_without_a_terminal(on):
    lines = on("top", "--every", "200ms").stdout.splitlines()
    assert lines[0].split() == ["TOTAL", "PACKETS/S", "BYTES/S"]
    began = time.monotonic()
    batch = on("top", "--batch", "-c", "3").stdout
    assert batch.count("TOTAL ") == 3 and time.monotonic() - began > 2.9
    process = on.start("top", "--batch", "--every", "100ms")
    tables = [process.stdout.readline() for _ in range(30)]
    assert sum("TOTAL" in line for line in tables) > 3
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=5)
    assert process.returncode == 0
    assert "TOTAL" in on_terminal(on, "top", "-c", "1")


def test_a_pipe_that_is_closed(on):
    process = on.start("top", "--batch", "--every", "100ms")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=5) in (-signal.SIGPIPE, 1)


@pytest.mark.parametrize("environment, reason", [
    ({"TERM": "dumb"}, "terminal 'dumb' cannot move its cursor"), ({"TERM": "no-such"}, "unknown terminal 'no-such'"),
    ({"LD_LIBRARY_PATH": "BROKEN"}, "cannot load 'libncursesw.so.6'")])
def test_a_table_where_no_view_is_possible(on, view, tmp_path, environment, reason):
    (tmp_path / "libncursesw.so.6").write_text("not a library")
    environment = {name: str(tmp_path) if value == "BROKEN" else value for name, value in environment.items()}
    one = view(**environment)
    assert one.process.wait(timeout=10) == 0
    until(lambda: b"dropped" in one.said, 5, "a table")
    assert reason.encode() in one.said and b"TOTAL" in one.said and one.is_ours()
