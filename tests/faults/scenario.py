# SPDX-License-Identifier: GPL-2.0-only
"""A command, the machine on which it runs, and what must be true after any single fault in it."""

import concurrent.futures
import pathlib
import socket
import tempfile
import time

from inject import EVERYTHING, UNHARMED, calls_of, faults_of, injected
from labnet import Sniffer, Weir, numbers, socket_in

WORKERS = 4
SHOWN = 8  # failures
LATE_S, LATE_PART = 1200, 4  # after LATE_S, a quick run injects each LATE_PART-th fault: tests/run has a limit
BEGAN = time.monotonic()
FULL_CHECK = 8  # after every n-th fault the instance is also removed and created again
STATUSES = (0, 1, 2, 3)  # of a command that exited by itself
# The dynamic loader could not start it, or crashed on its first mmap: the status of strace as the first process of a
# namespace, which SIGSEGV from itself does not reach.
LOADER = (127, 128 + 11)
left_out = []  # a line for each sweep


class Prober:
    """Pair.passes() with sockets that stay open: ten times as fast."""

    def __init__(self, lab, near=None, far=None):
        self.lab = lab
        self.sniffer = Sniffer(lab.near_netns, near or lab.near_device)
        self.out = socket_in(lab.far_netns, socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.out.bind((far or lab.far_device, 0))

    def passes(self, frames):
        number = f"the end {next(numbers)}"
        end = bytes(self.lab.ether())[:12] + b"\x88\xb5" + number.encode().ljust(60)
        frames = [bytes(frame) for frame in frames]
        list(self.sniffer.frames(wait=0.0001))  # late frames of the previous call
        for frame in [*frames, end]:
            self.out.send(frame)
        got = self.sniffer.until(lambda data: data == end)
        return [frame in got for frame in frames]

    def free(self, sources):
        """Whether packets from these addresses pass."""
        return self.passes(self.lab.udp(source) for source in sources)

    def close(self):
        self.sniffer.close()
        self.out.close()


class Scenario:
    """Starts afresh in a lab for each worker. A subclass defines `whole`."""

    argv = ()
    ends = (0,)  # exit statuses of a run without a fault
    after = None  # what whole() returns after completion
    stride, rare_stride = 24, 2  # of a quick run: each rare call is met by one kind of fault
    loader = False  # a full run includes the calls of the loader, which are the same in all commands

    def __init__(self, lab):
        self.lab = lab
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-faults-"))
        self.log = self.folder / "strace"
        self.seen = set()
        self.begin()

    def begin(self):
        self.weir = Weir(self.lab)
        self.prober = Prober(self.lab)
        self.prepare()

    def end(self):
        self.prober.close()
        self.weir.remove()

    def prepare(self):
        """Runs once, and again after a failure."""

    def before(self):
        """Creates the state in which the command starts."""

    def whole(self):
        """Asserts that packets and the output of commands agree on one state; returns its name."""
        raise NotImplementedError

    def go_on(self, state, fault, outcome):
        """Asserts that the next command works."""

    def start_again(self, state):
        """Asserts that detach removes everything, and that attach restores what was accepted."""

    def check(self, number, fault, outcome):
        if not outcome.killed:
            loader = LOADER if fault.call == "mmap" and fault.nth == 1 else LOADER[:1]
            allowed = self.ends if fault is UNHARMED else (*STATUSES, *loader)
            assert outcome.status in allowed, f"exit status {outcome.status}"
            silent = (*self.ends, *LOADER[1:])
            assert outcome.status in silent or outcome.printed.strip(), "failed without a message"
        state = self.whole()
        if outcome.status in self.ends and self.after is not None:
            assert state == self.after, f"exit status 0, but the state is {state}"
        self.seen.add(state)
        self.go_on(state, fault, outcome)
        if number % FULL_CHECK == 0:
            self.start_again(state)

    def try_one(self, number, fault):
        """A report of the failure, or None; and whether the fault was reached."""
        outcome = None
        try:
            self.before()
            outcome = injected(self.weir, self.argv, fault, self.log)
            self.check(number, fault, outcome)
        except AssertionError as error:
            self.end()
            self.begin()
            said = f" (status {outcome.status}: {outcome.printed.strip()})" if outcome else ""
            return f"{fault}{said}: {str(error).splitlines()[0]}", True
        return None, outcome.reached

    def sweep(self, faults):
        return [self.try_one(number, fault) for number, fault in faults]


def is_late():
    return not EVERYTHING and time.monotonic() - BEGAN > LATE_S


def choose(scenario, late):
    """The faults for a scenario, from a run without a fault in an instance that was removed and created again, as in most
    runs: it has fewer generations to open than one after two applies."""
    for number in (0, 1):
        scenario.before()
        calls, own, outcome = calls_of(scenario.weir, scenario.argv, scenario.log)
        scenario.check(number, UNHARMED, outcome)
    every = list(faults_of(calls, 0 if scenario.loader else own, 1))
    quick = list(faults_of(calls, own, scenario.stride, scenario.rare_stride))
    faults = every if EVERYTHING else quick[:: LATE_PART if late else 1]
    left_out.append(f"{type(scenario).__name__}: {len(faults)} of {len(every)} faults at "
                    f"{len(calls)} calls, {len(every) - len(faults)} left out{', late' if late else ''}")
    return list(enumerate(faults))


def sweep(kind, labs, ways):
    """Injects every chosen fault, shared by the workers. A kill must have left the scenario in each of these
    states at least once; a late sample may miss one."""
    scenarios = [kind(lab) for lab in labs]
    late = is_late()
    try:
        faults = choose(scenarios[0], late)
        with concurrent.futures.ThreadPoolExecutor(len(labs)) as pool:
            shares = [faults[worker::len(labs)] for worker in range(len(labs))]
            results = [one for share in pool.map(kind.sweep, scenarios, shares) for one in share]
    finally:
        for scenario in scenarios:
            scenario.end()
    failures = [account for account, _ in results if account]
    shown = "\n".join(failures[:SHOWN])
    assert not failures, f"{len(failures)} of {len(faults)} faults:\n{shown}"
    # A few calls more or less, depending on the number of generations and on late programs.
    injections = [fault for worker in range(len(labs)) for _, fault in faults[worker::len(labs)]]
    unmet = [str(fault) for fault, (_, met) in zip(injections, results) if not met]
    spare = 1 + len(faults) * 0.06
    assert len(unmet) <= spare, f"{len(unmet)} of {len(faults)} faults were not met: {', '.join(unmet)}"
    seen = set().union(*(scenario.seen for scenario in scenarios))
    assert seen == ways or (late and seen < ways), f"the states are {seen}"
