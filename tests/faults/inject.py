# SPDX-License-Identifier: GPL-2.0-only
"""strace makes one system call of a command fail, or kills the command on entry to the call.

A kill on entry to each call covers all kills: the work between two calls (stores into mapped maps) is
complete. Every fault is chosen by number, so that a run can be repeated. The search for logins opens files of each
process: a command has a PID namespace of its own, or the calls would differ in number with what else runs.
"""

import collections
import os
import re
import typing

from labnet import run

EVERYTHING = os.environ.get("FAULTS") == "all"  # make faults
KILL = "KILL"
KINDS = os.environ.get("KINDS", "").split() or (
    (KILL, "ENOMEM", "EPERM", "ENOSPC", "EINTR") if EVERYTHING else (KILL, "ENOMEM"))
CALLS = (
    "bpf", "sendmsg", "sendto", "openat", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "link",
    "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "mmap", "setns", "mkdir", "mkdirat",
    "flock", "exit_group",
)
MANY = {"bpf", "openat", "mmap", "unlinkat", "mkdir"}  # a quick run injects every n-th of these
FIRST_OWN = "setns"  # of -N; calls before it are those of the loader and of the search for the login
ALONE = ("unshare", "--pid", "--fork", "--mount-proc")
KILLED = 128 + 9  # what strace returns there: SIGKILL from itself does not reach the first process of a namespace
CALL = re.compile(r"^(?:\d+ +)?([a-z_0-9]+)\(")


class Fault(typing.NamedTuple):
    call: str
    nth: int
    what: str

    def __str__(self):
        return f"{self.what} at {self.call} number {self.nth}"


class Outcome(typing.NamedTuple):
    status: int  # as in the shell, or minus the signal
    reached: bool
    printed: str

    @property
    def killed(self):
        return self.status == -9


UNHARMED = Fault("none", 0, "nothing")


def traced(weir, argv, log, *options):
    strace = [*ALONE, "strace", "-f", "-qq", "-e", "signal=none", "-o", log, *options]
    done = run([*strace, *weir.argv(*argv)], check=False)
    if done.returncode == KILLED:
        done.returncode = -9
    return done


def calls_of(weir, argv, log):
    """The injectable calls of a command without a fault, in order: [(name, count of that name up to and
    including this one)]; the number of calls before its first own one; its exit status."""
    done = traced(weir, argv, log, "-e", "trace=" + ",".join(CALLS))
    counts, calls, own = collections.Counter(), [], None
    for line in log.read_text(errors="replace").splitlines():
        if match := CALL.match(line):
            counts[match[1]] += 1
            own = len(calls) if own is None and match[1] == FIRST_OWN else own
            calls.append((match[1], counts[match[1]]))
    return calls, own or 0, Outcome(done.returncode, False, done.stdout + done.stderr)


def faults_of(calls, own, stride, rare_stride=1):
    """The faults to inject, from call `own` on: every stride-th of the frequent calls and every
    rare_stride-th of the others, another one for each kind of fault."""
    for place, kind in enumerate(KINDS):
        for number, (call, nth) in enumerate(calls):
            step = stride if call in MANY else rare_stride
            chosen = number >= own and number % step == place * step // len(KINDS)
            if chosen and (kind == KILL or call != "exit_group"):  # exit does not fail
                yield Fault(call, nth, kind)


def injected(weir, argv, fault, log):
    """Runs the command with that fault."""
    how = "signal=KILL" if fault.what == KILL else f"error={fault.what}"
    # Without a stop at every other call: a third of the time. strace sends no signals then.
    quick = [] if fault.what == KILL else ["--seccomp-bpf"]
    done = traced(weir, argv, log, *quick, "-e", f"trace={fault.call}",
                  "-e", f"inject={fault.call}:{how}:when={fault.nth}")
    reached = done.returncode == -9 or "INJECTED" in log.read_text(errors="replace")
    return Outcome(done.returncode, reached, done.stdout + done.stderr)
