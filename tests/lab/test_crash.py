# SPDX-License-Identifier: GPL-2.0-only
"""SIGKILL at any system call leaves the machine as before or as after, and the next command works.

strace kills the command on entering the call, so the kills before all calls are all there are: what
happens between two calls (stores into mapped maps) is whole. Calls that can change something are
covered one by one, of the others every STRIDE-th. Workers with a lab each share the kill points.
"""

import collections
import concurrent.futures
import contextlib
import copy
import re

import pytest

from labnet import Weir, run, running_lab

WORKERS = 8
STRIDE = 8
CHANGING = {
    "bpf", "rename", "renameat", "renameat2", "openat", "fsync", "unlink", "unlinkat", "rmdir",
    "mkdir", "mkdirat", "flock", "sendto", "sendmsg", "write", "pwrite64", "ftruncate", "fchmod",
    "mount", "exit_group",
}

Kill = collections.namedtuple("Kill", "call nth")
UNHARMED = Kill("none", 0)
ENDS = 0, 3  # done; done, but a wider prefix still covers it


@pytest.fixture(scope="module", name="labs")
def one_lab_a_worker():
    with contextlib.ExitStack() as stack:
        labs = [stack.enter_context(running_lab()) for _ in range(WORKERS)]
        for lab in labs:
            second_link(lab)
        yield labs


def second_link(lab):
    """near1 and far1, for commands on two interfaces."""
    near1, far1 = ["near1", "netns", lab.near_netns], ["far1", "netns", lab.far_netns]
    run(["ip", "link", "add", *near1, "address", lab.near_mac, "type", "veth", "peer", *far1])
    lab.link("set", "near1", "up")
    lab.link("set", "far1", "up", host="far")


def calls_of(weir, argv, begin):
    """Every system call of a command that runs unharmed, from the first whose line matches: [(name,
    how many of that name before and with it)]."""
    done = run(["strace", "-qq", "-e", "signal=none", *weir.argv(*argv)], check=False)
    assert done.returncode in ENDS, done.stderr
    counts, calls, began = collections.Counter(), [], False
    for line in done.stderr.splitlines():
        if match := re.match(r"([a-z_0-9]+)\(", line):
            counts[match[1]] += 1
            began = began or re.search(begin, line)
            if began:
                calls.append(Kill(match[1], counts[match[1]]))
    return calls


def kill_points(calls):
    for number, kill in enumerate(calls):
        if kill.call in CHANGING or number % STRIDE == 0:
            yield kill


def killed(weir, argv, kill):
    """Runs the command until that call; False: it ended before."""
    inject = f"inject={kill.call}:signal=KILL:when={kill.nth}"
    strace = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={kill.call}", "-e", inject]
    done = run([*strace, *weir.argv(*argv)], check=False)
    assert done.returncode in (*ENDS, -9), done.stderr
    return done.returncode == -9


class Crash:
    """A command, how a machine gets ready for it, and what must hold when it was killed."""

    argv = ()
    begin = r"/run/weir|^bpf"  # before that it has changed nothing: loader, options, input

    def __init__(self, lab):
        self.lab = lab
        self.weir = Weir(lab)
        self.seen = set()  # which ways it went
        self.prepare()

    def prepare(self):
        """Once."""

    def before(self):
        """Makes the state the command starts from."""

    def after(self, kill):
        """Asserts what must hold now, whichever way it went."""

    def sweep(self, kills):
        reached = 0
        for kill in kills:
            self.before()
            reached += killed(self.weir, self.argv, kill)
            try:
                self.after(kill)
            except AssertionError as error:
                raise AssertionError(f"killed at {kill.call} number {kill.nth}: {error}") from error
        return reached


def sweep(crash, labs, ways):
    """Kills a command at every point, shared by the workers; it must have gone all these ways."""
    cases = [crash(lab) for lab in labs]
    try:
        cases[0].before()
        kills = list(kill_points(calls_of(cases[0].weir, cases[0].argv, crash.begin)))
        cases[0].after(UNHARMED)
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            reached = sum(pool.map(lambda case, share: case.sweep(kills[share::WORKERS]),
                                   cases, range(WORKERS)))
    finally:
        for case in cases:
            case.weir.remove()
    # Timing may take away a call or two, but no more.
    assert reached >= len(kills) * 0.97, f"only {reached} of {len(kills)} kills hit"
    assert set().union(*(case.seen for case in cases)) == ways


# The overlay: all of the list or nothing of it, in the datapath and in the book.


OLD = [*(f"192.0.2.{i}" for i in range(50)), "198.51.100.0/24", "2001:db8:100::/48", "2001:db8::1"]
NEW = [*(f"203.0.113.{i}" for i in range(50)), "198.51.0.0/16", "2001:db8::/32", "2001:db8::2",
       "198.51.100.128/25", "2001:db8:100:8000::/49"]  # around old ones and inside of them
LATER = "100.64.0.2"
# Source: does it pass with OLD alone, with NEW as well?
PROBES = {"192.0.2.7": (False, False), "2001:db8::1": (False, False),
          "198.51.100.9": (False, False), "198.51.100.200": (False, False),
          "2001:db8:100:8000::1": (False, False), "203.0.113.7": (True, False),
          "198.51.99.9": (True, False), "2001:db8::2": (True, False),
          "2001:db8:1::": (True, False), "100.64.0.1": (True, True)}
OLD_ONLY, ALL = ([free[way] for free in PROBES.values()] for way in (0, 1))


class Block(Crash):
    def prepare(self):
        self.weir("attach", "near0", "--max-entries", "1000")
        self.weir("block", "-f", "-", input="\n".join(OLD))
        self.file = self.weir.state / "new"
        self.file.write_text("\n".join(NEW))
        self.argv = ("block", "-f", self.file)

    def before(self):
        self.weir("unblock", "-f", self.file, check=False)
        assert set(self.weir.entries()) == set(OLD)

    def after(self, kill):
        free = self.lab.free(*PROBES)
        assert free in (OLD_ONLY, ALL), f"neither before nor after: {dict(zip(PROBES, free))}"
        self.seen.add("before" if free == OLD_ONLY else "after")
        held = set(OLD) if free == OLD_ONLY else set(OLD + NEW)
        assert set(self.weir.entries()) == held
        self.go_on()
        self.weir("block", LATER)
        assert set(self.weir.entries()) == held | {LATER}
        assert self.lab.free(*PROBES, LATER) == free + [False]
        self.weir("unblock", LATER)

    def go_on(self):
        """What comes before the next change."""


class BlockThenReattach(Block):
    def go_on(self):
        self.weir("detach")
        self.weir("attach", "near0", "--max-entries", "1000")


class Unblock(Block):
    def prepare(self):
        super().prepare()
        self.argv = ("unblock", "-f", self.file)

    def before(self):
        self.weir("block", "-f", self.file)
        assert set(self.weir.entries()) == set(OLD + NEW)


@pytest.mark.parametrize("crash", [Block, BlockThenReattach, Unblock])
def test_block_and_unblock(labs, crash):
    sweep(crash, labs, {"before", "after"})


# Interfaces: each is whole, which means that whatever is attached blocks what was blocked.


class Attach(Crash):
    devices = ("near0",)
    argv = ("attach", "near0", "--max-entries", "64")

    def prepare(self):
        self.links = []
        for number in range(2):
            self.links.append(copy.copy(self.lab))
            self.links[-1].near_device, self.links[-1].far_device = f"near{number}", f"far{number}"
        self.attach()
        self.weir("block", "-f", "-", input="\n".join(OLD))
        self.weir("detach")

    def attach(self):
        self.weir("attach", *self.devices, "--max-entries", "64")

    def attached(self):
        """The interfaces that carry the program; each is probed."""
        names = tuple(name for name, program in self.lab.xdp_names().items() if program)
        for link in self.links:
            blocks = link.near_device in names
            free = link.free("192.0.2.7", "2001:db8:100::7", "100.64.0.1")
            assert free == [not blocks, not blocks, True], f"{names} attached, {free} free"
        return names

    def after(self, kill):
        self.seen.add(self.attached())
        if kill.nth % 2:
            self.attach()
            assert self.attached() == self.devices
            assert set(self.weir.entries()) == set(OLD)
            assert self.leftovers() == []
        self.weir("detach")
        assert self.attached() == ()
        assert not self.weir.pins.exists() and self.leftovers() == []

    def leftovers(self):
        return list(self.weir.pins.parent.glob(f"{self.weir.name}+*"))


class AttachTwo(Attach):
    devices = ("near0", "near1")
    argv = ("attach", "near0", "near1", "--max-entries", "64")
    begin = r"nlmsg_type=(0x13|RTM_SETLINK)"  # near0 gets its program; what is before, see Attach


class Detach(AttachTwo):
    argv = ("detach",)
    begin = Crash.begin

    def before(self):
        self.attach()


@pytest.mark.parametrize(
    "crash, ways",
    [(Attach, [(), ("near0",)]), (AttachTwo, [(), ("near0",), ("near0", "near1")]),
     (Detach, [("near0", "near1"), ("near1",), ()])],
)
def test_attach_and_detach(labs, crash, ways):
    sweep(crash, labs, set(ways))
