# SPDX-License-Identifier: GPL-2.0-only
"""Helpers for tests of policies: frames in one line, a policy file, counters of a rule."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

from labnet import Pair, run, socket_in, until

SOURCE4, SOURCE6 = "198.51.100.1", "2001:db8:100::1"
OTHER4, OTHER6 = "203.0.113.9", "2001:db8:113::9"
NINE, TEN = "drop proto udp to port 9", "drop proto udp to port 10"
PASSES_TEN, PASSES_NINE, PASSES_ALL = [False, True], [True, False], [True, True]  # by ports()
MARK = "pass ethertype 0x88b5\n"  # under 'default drop': the last frame of Pair.passes()


def packet(inner, src=SOURCE4, tags=(), **fields):
    """A frame from far to near, with the family of the source."""
    frame = Ether(dst=Pair.near_mac, src=Pair.far_mac)
    for tag in tags:
        frame /= Dot1Q(vlan=tag)
    if ":" in src:
        return frame / IPv6(src=src, dst=fields.pop("dst", Pair.near6), **fields) / inner
    return frame / IP(src=src, dst=fields.pop("dst", Pair.near4), **fields) / inner


def udp(port=9, src=SOURCE4, sport=4000, size=8, **fields):
    return packet(UDP(sport=sport, dport=port) / Raw(b"w" * size), src, **fields)


def tcp(port=80, src=SOURCE4, sport=4000, flags="S", **fields):
    return packet(TCP(sport=sport, dport=port, flags=flags), src, **fields)


def ping(src=SOURCE4, **fields):
    return packet(ICMPv6EchoRequest() if ":" in src else ICMP(), src, **fields)


class Policies:
    """apply = Policies(weir, tmp_path); apply(TEXT, OPTION...) for near0, or for devices=..."""

    def __init__(self, weir, folder):
        self.weir, self.folder = weir, folder
        self.path = folder / "lab.weir"

    def write(self, text, devices="near0"):
        self.path.write_text(f"interface {devices}\n{text}\n")
        return self.path

    def __call__(self, text, *options, devices="near0", **run_options):
        return self.weir("apply", self.write(text, devices), *options, **run_options)

    def fails(self, status, text, *options, devices="near0"):
        """Returns the output of an apply that is refused."""
        done = self(text, *options, devices=devices, check=False)
        assert done.returncode == status, f"{done.returncode}\n{done.stdout}{done.stderr}"
        return done.stderr


def ports(pair):
    """Whether packets to port 9 and to port 10 pass, without any Weir process."""
    return pair.passes(udp(9), udp(10))


def dump(path):
    return json.loads(run(["bpftool", "-j", "map", "dump", "pinned", path]).stdout)


def number(octets):
    return int.from_bytes(bytes(int(octet, 16) for octet in octets), "little")


def identity_key(identity):
    """The 128-bit FNV-1a hash by which the kernel map identifies a rule."""
    value = 0x6C62272E07BB014262B821756295C58D
    for octet in identity.encode():
        value = (value ^ octet) * 0x1000000000000000000013B % (1 << 128)
    return value


def hits(weir, identity):
    """Packets that a rule matched, by its name or text; None if no counter exists."""
    rows = {number(one["key"]): number(one["value"]) for one in dump(weir.bpffs / "identities")}
    row = rows.get(identity_key(identity))
    if row is None:
        return None
    key = ["key", *(str(octet) for octet in row.to_bytes(4, "little"))]
    found = run(["bpftool", "-j", "map", "lookup", "pinned", weir.bpffs / "rulecounters", *key])
    return sum(number(one["value"][:8]) for one in json.loads(found.stdout)["values"])


def reasons(weir):
    """{reason: packets} of 'weir stats'."""
    return {row["reason"]: row["packets"] for row in weir.json("stats")["counters"]}


def programs(weir):
    """Program ids: [active, previous]."""
    return [number(one["value"]) for one in dump(weir.bpffs / "progs")]


def in_force(weir):
    """Everything that identifies the active policy, to compare before and after."""
    objects = sorted(str(path) for path in weir.bpffs.rglob("*"))
    state = {str(path): path.read_bytes() for path in weir.state.rglob("*")
             if path.is_file() and not path.name.startswith("changes")}  # the record has refused commands too
    status = json.loads(weir("-j", "status", check=False).stdout)  # which may have alarms
    status.pop("time")
    status.pop("changes_lost", None)  # as the record
    for interface in status["interfaces"]:
        interface.pop("in_pps"), interface.pop("dropped_pps")
    shown = weir("show", check=False)
    rows = dump(weir.bpffs / "identities")
    return shown.stdout, status, programs(weir), objects, state, rows, weir("history").stdout


LOGIN = """
import ctypes, os, socket, subprocess, sys
ctypes.CDLL(None).prctl(15, sys.argv.pop(1).encode(), 0, 0, 0)
address = sys.argv[1]
family = socket.AF_INET6 if ":" in address else socket.AF_INET
server = socket.create_server((address, 2222), family=family)
print("listens", flush=True)
connection, peer = server.accept()
os.environ["SSH_CONNECTION"] = f"{peer[0]} {peer[1]} {address} 2222"
sys.exit(subprocess.run(sys.argv[2:], check=False).returncode)
"""


def runs_another(sshd):
    """Has it started its command? Before, it is a client that has not logged in."""
    children = pathlib.Path(f"/proc/{sshd.pid}/task/{sshd.pid}/children")
    comm = pathlib.Path(f"/proc/{sshd.pid}/comm").read_text()
    with contextlib.suppress(OSError):
        return any(pathlib.Path(f"/proc/{pid}/comm").read_text() != comm for pid in children.read_text().split())
    return False


@contextlib.contextmanager
def login(pair, peer, argv=("sleep", "300"), near=None, name="sshd"):
    """An 'sshd' (or another daemon) on near with a connection from this peer, and a command as its child."""
    near = near or (Pair.near6 if ":" in peer else Pair.near4)
    family = socket.AF_INET6 if ":" in peer else socket.AF_INET
    argv = [*pair.enter(pair.near_netns, False), sys.executable, "-c", LOGIN, name, near, *argv]
    with subprocess.Popen(
        [str(arg) for arg in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as sshd, socket_in(pair.far_netns, family, socket.SOCK_STREAM) as client:
        try:
            assert sshd.stdout.readline() == "listens\n"
            client.settimeout(5)
            client.bind((peer, 0))
            client.connect((near, 2222))
            until(lambda: runs_another(sshd) or sshd.poll() is not None, what="the command of the login")
            yield sshd
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(sshd.pid, signal.SIGKILL)


def logged_in(pair, peer, argv, near=None):
    """Runs a command on near in such a login."""
    with login(pair, peer, argv, near) as sshd:
        output, errors = sshd.communicate(timeout=30)
    return sshd.returncode, output + errors
