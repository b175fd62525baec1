# SPDX-License-Identifier: GPL-2.0-only
"""Work of more than a second has a line on a terminal, which is erased at the end, and none elsewhere."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest

from feedserver import Feed
from labnet import run

ERASE = "\r\x1b[K"
POLICY = "drop from 192.0.2.1\nexpect drop udp from 192.0.2.1 port 1 to 10.77.0.1 port 9\n"
SLOW_KERNEL = "strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=bpf:delay_enter=6000"


def on_stderr(argv, columns=80, status=0):
    """The text that reaches a terminal as standard error."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    with subprocess.Popen([str(word) for word in argv], stdout=subprocess.DEVNULL, stderr=theirs) as running:
        os.close(theirs)
        said = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # EIO: the other side is closed
                break
            said += more
        assert running.wait() == status, said
    os.close(ours)
    return said.decode()


def lines(said):
    """The lines of the work; the last one must have been erased."""
    found = re.findall(re.escape(ERASE) + r"weir: ([^\r\x1b]*) \((\d+)s\)", said)
    assert not found or said.split(" (")[-1].split("s)")[1].startswith(ERASE), said
    return found


def without_lines(said):
    return re.sub(re.escape(ERASE) + r"(?:weir: [^\r\x1b]* \(\d+s\))?", "", said)


def test_a_load_on_a_terminal(weir, apply):
    apply.write(POLICY)
    said = on_stderr([*SLOW_KERNEL, *weir.argv("apply", apply.path)])
    found = lines(said)
    assert "loading the policy" in [what for what, _ in found], said
    assert [int(seconds) for _, seconds in found] == list(range(1, len(found) + 1))
    assert all(line.startswith("weir: notice: ") for line in without_lines(said).splitlines()), said


@pytest.mark.parametrize("options", [["-q"], []])
def test_none_with_quiet_or_in_a_pipe(weir, apply, options):
    apply.write(POLICY)
    argv = [*SLOW_KERNEL, *weir.argv(*options, "apply", apply.path)]
    said = on_stderr(argv) if options else run(argv).stderr
    assert "policy (" not in said and ERASE not in said


def test_a_restore(weir, apply):
    apply(POLICY)
    weir("detach")
    said = on_stderr([*SLOW_KERNEL, *weir.argv("restore")])
    assert {what for what, _ in lines(said)} & {"loading the policy", f"restoring instance '{weir.name}'"}, said


def test_a_fetch_and_its_error(pair, on, tmp_path):
    feed = Feed(pair, tmp_path)
    try:
        feed.lines(120)
        feed.mode = "slow"
        argv = on.argv("block", "--url", feed.url, "--ca", feed.ca, "--sync", "feed")
        said = on_stderr(argv, columns=48)
        assert not run(argv, check=False).stderr
        feed.mode = "short"
        assert without_lines(on_stderr(argv, status=2)).startswith("weir: ")
    finally:
        feed.stop()
    found = lines(said)
    assert found[0][0].startswith(f"fetching 'https://{feed.address}") and found[0][1] == "1"
    assert all(len(f"weir: {what} ({seconds}s)") < 48 for what, seconds in found)


def test_a_sync_that_waits_for_another_command(on, tmp_path):
    """The message of a command that gives up is not in the line."""
    path = tmp_path / "list"
    path.write_text("192.0.2.1\n192.0.2.2\n")
    with subprocess.Popen(["flock", on.lock, "sleep", "3"]):
        said = on_stderr(on.argv("block", "-f", path, "--sync", "list"))
    assert f"waiting for another command on instance '{on.name}'" in [what for what, _ in lines(said)], said
    assert set(on.entries()) == {"192.0.2.1", "192.0.2.2"}
    path.write_text("192.0.2.3\n")
    said = on_stderr([*SLOW_KERNEL[:-1], "inject=mmap,bpf:delay_enter=25000", *on.argv("block", "-f", path, "--sync", "list", "--force")])
    assert "changing entries" in [what for what, _ in lines(said)], said


def test_a_stopped_terminal(pair, on, tmp_path):
    """^S stops the line, not the work."""
    feed = Feed(pair, tmp_path)
    ours, theirs = pty.openpty()
    try:
        feed.lines(120)
        feed.mode = "slow"
        argv = on.argv("block", "--url", feed.url, "--ca", feed.ca, "--sync", "feed")
        with subprocess.Popen([str(word) for word in argv], stdout=subprocess.DEVNULL, stderr=theirs) as running:
            try:
                assert b"fetching" in os.read(ours, 65536)
                os.write(ours, b"\x13")
                assert running.wait(timeout=30) == 0
            finally:
                running.kill()
    finally:
        os.close(theirs)
        os.close(ours)
        feed.stop()
