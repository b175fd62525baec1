# SPDX-License-Identifier: GPL-2.0-only
"""apply of `over N connections`: the old policy, or the new one with every connection counted; no program stays."""

import glob
import json
import pathlib
import socket

from labnet import Pair, run, socket_in, until
from scenario import Scenario, sweep

POLICIES = {
    "old": "drop proto tcp to any port 9\n",
    "new": "drop proto tcp to any port 8080 over 1 connection per source\n",
}
LATER = "192.0.2.8"


def shown(*argv):
    return json.loads(run(["bpftool", "-j", *map(str, argv)], check=False).stdout.strip() or "[]")


def strays():
    """Numbers of programs whose table is in no generation of any instance: scenarios run side by side."""
    mounts = (line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines())
    root = next(mount[1] for mount in mounts if mount[2] == "cgroup2")
    programs = {p["id"] for p in shown("cgroup", "show", root) if p["name"] in ("weir_accepted", "weir_released")}
    programs |= {p["id"] for p in shown("prog", "show") if p.get("name") == "weir_found"}
    tables = {shown("map", "show", "pinned", path).get("id") for path in glob.glob("/sys/fs/bpf/weir/*/gen/*/connections")}
    return {number for number in programs if not tables & set(shown("prog", "show", "id", number).get("map_ids", []))}


def no_program_stays():
    """Those of other scenarios that are not pinned yet are gone soon, or pinned."""
    if first := strays():
        until(lambda: not first & strays(), 10, "programs without a generation")


class ApplyConnections(Scenario):
    after = "new"
    stride, rare_stride = 8, 2

    def prepare(self):
        self.paths = {}
        for name, text in POLICIES.items():
            self.paths[name] = self.folder / f"{name}.weir"
            self.paths[name].write_text(text)
        self.argv = ("apply", self.paths["new"])
        self.weir("attach", "near0", "--max-entries", "64")
        self.weir("apply", self.paths["old"])
        self.end_connections()
        self.listener = socket_in(self.lab.near_netns, socket.AF_INET, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("0.0.0.0", 8080))
        self.listener.listen(50)
        self.held = self.connect()  # before the apply
        assert self.held
        self.accepted = self.listener.accept()[0]
        self.state = "old"

    def end_connections(self):
        for name in "listener", "held", "accepted":
            if sock := getattr(self, name, None):
                sock.close()

    def end(self):
        self.end_connections()
        super().end()

    def connect(self):
        sock = socket_in(self.lab.far_netns, socket.AF_INET, socket.SOCK_STREAM)
        sock.settimeout(.3)
        try:
            sock.connect((Pair.near4, 8080))
        except TimeoutError:
            sock.close()
            return None
        return sock

    def before(self):
        if self.state != "old":
            self.weir("apply", self.paths["old"])
        self.state = "old"

    def whole(self):
        self.state = "unknown"
        second = self.connect()
        if second:
            second.close()
            self.listener.accept()[0].close()
        self.state = "old" if second else "new"
        assert self.weir("show").stdout in POLICIES.values()
        return self.state

    def go_on(self, state, fault, outcome):
        self.weir("block", LATER)
        self.weir("unblock", LATER)
        no_program_stays()
        assert self.whole() == state
        if state == "new":
            self.accepted.close()  # the connection that existed is removed once, and only once
            self.held.close()
            self.held = self.connect()
            assert self.held, "a closed connection counts"
            self.accepted = self.listener.accept()[0]
            assert not self.connect()

    def start_again(self, state):
        self.weir("detach")
        assert not list(self.weir.bpffs.parent.glob(f"{self.weir.name}*")), "objects in bpffs are left"
        no_program_stays()
        self.weir("attach", "near0", "--max-entries", "64")
        self.state = self.whole()


def test_apply(labs):
    sweep(ApplyConnections, labs, {"old", "new"})
