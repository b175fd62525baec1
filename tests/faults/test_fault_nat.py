# SPDX-License-Identifier: GPL-2.0-only
"""apply and the end of a trial with a service in nat: ends and blocks come and go, and no connection is lost."""

import socket
import struct

from inject import EVERYTHING, KILL, Fault, calls_of, injected
from policylab import dump
from scenario import sweep
from test_fault_pool import Change, EndOfTrial, pool

OPTIONS = {"before": "port 80, 81; connections 50000", "after": "port 80, 82; connections 100000"}
PORTS = {"before": {80, 81}, "after": {80, 82}}
BLOCKS = {"before": 1, "after": 2}  # that take new connections
READS = ("BPF_MAP_LOOKUP_ELEM", "BPF_MAP_LOOKUP_BATCH", "BPF_MAP_GET_FD_BY_ID", "BPF_OBJ_GET", "BPF_OBJ_GET_INFO_BY_FD",
         "BPF_PROG_GET_FD_BY_ID")
NUMBERS, END, PEER = 4096, 24, 16  # ends and peers are the last arrays of the table, and their elements' bytes


class Nat:
    """A port is replaced and a block is added; the connections are to the port that stays."""

    def text(self, name, backends):
        return pool(backends, f"mode nat; idle 3h; {OPTIONS[name]}")


class NatChange(Nat, Change):
    stride, rare_stride = 96, 8


class NatEndOfTrial(Nat, EndOfTrial):
    stride, rare_stride = 48, 4


class NatTidied(NatChange):
    """The next command is not an apply."""

    def table(self):
        """The ports of the ends, and how many blocks take new connections."""
        [row] = dump(self.weir.bpffs / "nat")
        table = bytes(int(byte, 16) for byte in row["value"])
        ends = struct.iter_unpack("=16xII", table[-NUMBERS * (END + PEER):-NUMBERS * PEER])
        ports = {socket.ntohs(port_proto & 0xffff) for port_proto, _ in ends if port_proto}
        blocks = self.weir.json("service")["nat_blocks"]
        assert all(block["takes_new"] or block["connections"] for block in blocks), "a block is left"
        return ports, sum(block["takes_new"] for block in blocks)

    def kill(self, call, nth):
        """Kills apply on entry to the call. Returns the state, and whether something was left in the table."""
        self.before()
        outcome = injected(self.weir, self.argv, Fault(call, nth, KILL), self.log)
        assert outcome.killed
        state = self.whole()
        whole = PORTS[state], BLOCKS[state]
        left = self.table() != whole
        self.weir("service", "--tidy")
        assert self.table() == whole, f"killed at {call} number {nth}, state {state}"
        assert self.whole() == state
        return state, left


def test_apply_with_nat(labs):
    sweep(NatChange, labs, {"before", "after"})


def test_end_of_a_trial_with_nat(labs):
    sweep(NatEndOfTrial, labs, {"before", "after"})


def changes_after_the_pins(log):
    """The numbers of the calls of bpf that change something after the last pin: the switch, and what follows it."""
    commands = [line.split(" bpf(")[1].split(",")[0] for line in log.read_text().splitlines() if " bpf(" in line]
    last = max(number for number, command in enumerate(commands, 1) if command == "BPF_OBJ_PIN")
    return [number for number, command in enumerate(commands, 1) if number > last and command not in READS]


def kill_until_whole(scenario):
    """What kill() has returned, until the table is as it must be."""
    for _ in range(2):  # as choose() does
        scenario.before()
        _, _, outcome = calls_of(scenario.weir, scenario.argv, scenario.log)
        assert outcome.status == 0 and scenario.whole() == "after"
        assert scenario.table() == (PORTS["after"], BLOCKS["after"])
    met = set()
    for number in changes_after_the_pins(scenario.log)[::1 if EVERYTHING else 2]:
        if ("after", False) not in met:
            met.add(scenario.kill("bpf", number))
    return met


def test_tidy_completes_an_apply(labs):
    scenario = NatTidied(labs[0])
    try:
        met = kill_until_whole(scenario)
    finally:
        scenario.end()
    assert met == {("before", True), ("after", True), ("after", False)}
