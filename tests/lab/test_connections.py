# SPDX-License-Identifier: GPL-2.0-only
"""`over N connections per source`: real connections, beside nft's `ct count over N` with the same rule."""

import contextlib
import json
import os
import pathlib
import random
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from scapy.all import IP, TCP

from labnet import PATIENCE, run, socket_in, until

LIMIT = 3
PORTS = (8080, 8081)  # of the rule; 9090 is not
SOURCES = ["10.77.0.21", "10.77.0.22", "fd77::21", "fd77::22", "fd77:1::21"]  # two are in one /64
RULE = f"drop proto tcp to any port 8080-8081 over {LIMIT} connections per source\n"
NFT = f"""table inet counted {{
    set four {{ type ipv4_addr; size 1000; flags dynamic; }}
    set six {{ type ipv6_addr; size 1000; flags dynamic; }}
    chain in {{
        type filter hook input priority 0;
        tcp dport 8080-8081 tcp flags & (fin|syn|rst|ack) == syn add @four {{ ip saddr ct count over {LIMIT} }} drop
        tcp dport 8080-8081 tcp flags & (fin|syn|rst|ack) == syn add @six {{ ip6 saddr & ffff:ffff:ffff:ffff:: ct count over {LIMIT} }} drop
    }}
}}"""


class Server(threading.Thread):
    """Listeners of near for both families; a connection is closed when its client closes it."""

    def __init__(self, netns, ports=(*PORTS, 9090)):
        super().__init__(daemon=True)
        self.selector, self.open, self.ended = selectors.DefaultSelector(), set(), False
        self.wake, self.woken = socket.socketpair()
        self.selector.register(self.woken, selectors.EVENT_READ)
        self.listeners = [self.listen(netns, port) for port in ports]

    def listen(self, netns, port):
        sock = socket_in(netns, socket.AF_INET6, socket.SOCK_STREAM)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("::", port))
        sock.listen(100)
        self.selector.register(sock, selectors.EVENT_READ)
        return sock

    def run(self):
        while not self.ended:
            for key, _ in self.selector.select():
                self.serve(key.fileobj)

    def serve(self, sock):
        if sock in self.listeners:
            client, _ = sock.accept()
            self.open.add(client)
            self.selector.register(client, selectors.EVENT_READ)
            return
        if sock is self.woken:
            return
        with contextlib.suppress(OSError):
            if sock.recv(100):
                return
        self.selector.unregister(sock)
        sock.close()
        self.open.discard(sock)

    def stop(self):
        self.ended = True
        self.wake.send(b"x")
        self.join()
        for sock in (*self.listeners, *self.open, self.wake, self.woken):
            sock.close()


def connect(pair, source, port, timeout=.3):
    """A connection from far; None: the SYN was dropped."""
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    sock = socket_in(pair.far_netns, family, socket.SOCK_STREAM)
    sock.settimeout(timeout)
    sock.bind((source, 0))
    try:
        sock.connect((pair.near6 if ":" in source else pair.near4, port))
    except TimeoutError:
        sock.close()
        return None
    return sock


def cgroup_root():
    mounts = (line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines())
    return next(mount[1] for mount in mounts if mount[2] == "cgroup2")


@pytest.fixture(name="sources")
def far_has_sources(pair):
    for source in SOURCES:
        pair.far(["ip", "addr", "add", f"{source}/{64 if ':' in source else 24}", "dev", "far0",
                  *(["nodad"] if ":" in source else [])])
    pair.near(["ip", "route", "add", "fd77:1::/64", "dev", "near0"])
    yield SOURCES
    pair.near(["ip", "route", "del", "fd77:1::/64"])
    for source in SOURCES:
        pair.far(["ip", "addr", "del", f"{source}/{64 if ':' in source else 24}", "dev", "far0"])


@pytest.fixture
def server(pair):
    thread = Server(pair.near_netns)
    thread.start()
    yield thread
    thread.stop()


@pytest.fixture(name="limited")
def weir_with_rule(on, tmp_path):
    path = tmp_path / "counted.weir"
    path.write_text(RULE)
    on("apply", path)
    return on


def used(weir):
    """Sources with connections, each rule by itself."""
    status = weir("-j", "status", "--limits", check=False)
    tables = {row["table"]: row["used"] for row in json.loads(status.stdout)["limits"]}
    return tables.get("sources with connections")


def alarms(weir, text):
    return [alarm for alarm in json.loads(weir("-j", "status", check=False).stdout)["alarms"] if text in alarm]


def scenario(pair, server, seed, steps=45):
    """Which of the steps of a random list open a connection."""
    rng, held, outcome = random.Random(seed), [], []
    for _ in range(steps):
        if held and rng.random() < .35:
            held.pop(rng.randrange(len(held))).close()
        else:
            sock = connect(pair, rng.choice(SOURCES), rng.choice((*PORTS, *PORTS, 9090)))
            outcome.append(sock is not None)
            held += [sock] if sock else []
        until(lambda: len(server.open) == len(held), 5, "server")
        time.sleep(.02)  # for the garbage collection of nft
    for sock in held:
        sock.close()
    until(lambda: not server.open, 5, "server")
    return outcome


@pytest.mark.parametrize("seed", [1, 2])
def test_like_nft(pair, sources, server, on, tmp_path, seed):
    run(["ip", "netns", "exec", pair.near_netns, "nft", "-f", "-"], input=NFT)
    try:
        expected = scenario(pair, server, seed)
    finally:
        pair.near(["nft", "delete", "table", "inet", "counted"])
    path = tmp_path / "counted.weir"
    path.write_text(RULE)
    on("apply", path)
    assert scenario(pair, server, seed) == expected
    assert False in expected and True in expected
    assert used(on) == 0


def test_connections_that_exist(pair, sources, server, on, tmp_path):
    """They are counted by the apply, also those that no process has accepted, and removed when they close."""
    held = [connect(pair, SOURCES[0], 8080) for _ in range(2)] + [connect(pair, SOURCES[2], 8081) for _ in range(LIMIT)]
    path = tmp_path / "counted.weir"
    path.write_text(RULE)
    on("apply", path)
    assert used(on) == 2
    assert not connect(pair, SOURCES[3], 8080) and not connect(pair, SOURCES[2], 8080)  # the same /64
    held += [connect(pair, SOURCES[0], 8081)]
    assert held[-1] and not connect(pair, SOURCES[0], 8081)
    held.pop(0).close()
    until(lambda: len(server.open) == len(held), 5, "server")
    held += [connect(pair, SOURCES[0], 8080)]
    assert held[-1] and not connect(pair, SOURCES[0], 8081)
    on("apply", path, "--force")  # a count of its own
    assert not connect(pair, SOURCES[0], 8080) and used(on) == 2
    for sock in held:
        sock.close()
    until(lambda: not server.open, 5, "server")
    assert used(on) == 0


def test_forged_packets_change_nothing(pair, sources, server, limited):
    held = [connect(pair, SOURCES[0], 8080) for _ in range(LIMIT)]
    assert all(held) and used(limited) == 1
    for flags in "R", "RA", "F", "FA", "S":
        for sock in held + [None] * 7:
            port = sock.getsockname()[1] if sock else random.randrange(1024, 65536)
            pair.send_from_far(pair.ether() / IP(src=SOURCES[0], dst=pair.near4) /
                               TCP(sport=port, dport=8080, flags=flags, seq=random.getrandbits(32), ack=1))
    assert not connect(pair, SOURCES[0], 8080) and used(limited) == 1 and len(server.open) == LIMIT
    assert connect(pair, SOURCES[1], 8080)


def test_other_namespaces_do_not_count(pair, sources, server, limited):
    """Nor do connections that processes of this host open: one counts, which a listener of near accepts."""
    other = Server(pair.far_netns, (8080,))
    other.start()
    held = [connect(pair, SOURCES[0], 8080)]
    for _ in range(LIMIT + 1):
        sock = socket_in(pair.near_netns, socket.AF_INET, socket.SOCK_STREAM)
        sock.connect((pair.far4, 8080))
        held.append(sock)
    try:
        assert used(limited) == 1
        held[0].close()
        until(lambda: used(limited) == 0, 5, "the count")
    finally:
        for sock in held:
            sock.close()
        other.stop()


SERVE = """
import socket, sys, time
sock = socket.create_server(("::", 8080), family=socket.AF_INET6, dualstack_ipv6=True, backlog=100)
print("ready", flush=True)
held = [sock.accept() for _ in range(int(sys.argv[1]))]
time.sleep(100)
"""


@pytest.mark.parametrize("accepted", [LIMIT, 1])
def test_process_that_is_killed(pair, sources, limited, accepted):
    argv = ["nsenter", f"--net=/run/netns/{pair.near_netns}", "--", sys.executable, "-c", SERVE, str(accepted)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        held = [connect(pair, SOURCES[0], 8080) for _ in range(LIMIT)]
        assert all(held) and not connect(pair, SOURCES[0], 8080) and used(limited) == 1
        process.send_signal(signal.SIGKILL)
    until(lambda: used(limited) == 0, 5, "the count")
    for sock in held:
        sock.close()


def test_listener_that_closes(pair, sources, on, tmp_path):
    """The connections in its queue were counted by the apply, and are removed although no process has them."""
    path = tmp_path / "counted.weir"
    path.write_text(RULE)
    argv = ["nsenter", f"--net=/run/netns/{pair.near_netns}", "--", sys.executable, "-c", SERVE, "1"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        held = [connect(pair, SOURCES[0], 8080) for _ in range(LIMIT)]
        on("apply", path)
        assert all(held) and not connect(pair, SOURCES[0], 8080) and used(on) == 1
        process.send_signal(signal.SIGKILL)
    # Before Linux 6.12 the agent finds it: the kernel does not report the close.
    agent = on.run() if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 12) else None
    until(lambda: used(on) == 0, 5, "the count")
    if agent:
        agent.stop()
    for sock in held:
        sock.close()


def test_close_during_the_count(pair, sources, server, on, tmp_path):
    """Connections that exist close one by one while an apply counts them: in the end none is left."""
    path = tmp_path / "counted.weir"
    path.write_text(RULE)
    held = [connect(pair, SOURCES[n % len(SOURCES)], 8080) for n in range(200)]
    assert all(held)
    with subprocess.Popen(on.argv("apply", path), stdout=subprocess.DEVNULL) as apply:
        while held and apply.poll() is None:
            held.pop().close()
            time.sleep(.003 * PATIENCE)
    assert apply.returncode == 0 and held and used(on)
    for sock in held:
        sock.close()
    until(lambda: not server.open, 5, "server")
    until(lambda: used(on) == 0, 5, "the count")


@pytest.mark.parametrize("link", ["accepted", "released"])
def test_programs_that_are_detached(pair, sources, server, limited, tmp_path, link):
    """status has an alarm, diff a difference, and their advice attaches them: apply of the same policy."""
    path = tmp_path / "counted.weir"
    assert "unchanged" in limited("apply", path).stdout and not alarms(limited, "are not attached")
    assert limited("diff", path).returncode == 0
    run(["bpftool", "link", "detach", "pinned", next((limited.bpffs / "gen").glob(f"*/{link}"))])
    assert alarms(limited, "are not attached")
    differs = limited("diff", path, check=False)
    assert differs.returncode == 3 and "programs that count connections are detached" in differs.stdout
    held = [connect(pair, SOURCES[0], 8080) for _ in range(LIMIT)]
    assert "unchanged" not in limited("apply", path).stdout
    assert not alarms(limited, "are not attached") and limited("diff", path).returncode == 0
    assert all(held) and not connect(pair, SOURCES[0], 8080) and used(limited) == 1
    for sock in held:
        sock.close()


def test_programs_end_with_the_policy(pair, on, tmp_path):
    """A policy without the word has none, and nothing stays after a detach."""
    def attached():
        return [p for p in json.loads(run(["bpftool", "-j", "cgroup", "show", cgroup_root()]).stdout.strip() or "[]")
                if p["name"] in ("weir_accepted", "weir_released")]

    before, path = len(attached()), tmp_path / "counted.weir"
    path.write_text(RULE)
    on("apply", path)
    assert len(attached()) == before + 2
    for port in 8080, 8081:  # the kernel keeps the previous policy too
        path.write_text(f"drop proto tcp to any port {port}\n")
        on("apply", path)
    on("block", "192.0.2.1")  # the next command removes what the kernel no longer needs
    until(lambda: len(attached()) == before, 10, "detached programs")
    path.write_text(RULE)
    on("apply", path)
    on("detach")
    until(lambda: len(attached()) == before, 10, "detached programs")


def test_check_asks_the_kernel(weir, tmp_path):
    """check refuses what apply would: here there is no cgroup 2, to which the programs are attached."""
    path = tmp_path / "counted.weir"
    path.write_text(RULE)
    assert weir("check", path).returncode == 0
    mounts = (line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines())
    without = "; ".join(f"umount -l {mount[1]}" for mount in mounts if mount[2] == "cgroup2")

    def check():
        return run(["unshare", "-m", "sh", "-c", f'{without}; exec "$@"', "sh", *weir.argv("check", path)], check=False)

    refused = check()
    assert refused.returncode == 2 and "'over N connections': " in refused.stderr and "cgroup 2" in refused.stderr
    path.write_text("drop proto tcp to any port 8080\n")
    assert check().returncode == 0


def test_connections_without_memory_are_missed(pair, sources, server, on, tmp_path):
    """The kernel refuses the marks of sockets: status reports it, for connections that open and for a count."""
    path = tmp_path / "counted.weir"
    path.write_text(RULE)
    counted = pathlib.Path("/proc/sys/net/core/optmem_max")
    before = run(["ip", "netns", "exec", pair.near_netns, "cat", str(counted)]).stdout.strip()
    on("apply", path)
    held = []
    try:
        pair.near(["sysctl", "-q", "-w", "net.core.optmem_max=1"])
        held = [connect(pair, SOURCES[0], PORTS[0]) for _ in range(2)]
        until(lambda: alarms(on, "2 connections were not counted"), 5, "the alarm")
        held.pop().close()
        until(lambda: len(server.open) == 1, 5, "server")
        agent = on.run()
        until(lambda: alarms(on, "1 connection was not counted"), 10, "the count of the agent")
        agent.stop()
        pair.near(["sysctl", "-q", "-w", f"net.core.optmem_max={before}"])
        agent = on.run()
        until(lambda: not alarms(on, "not counted"), 10, "the end of the alarm")
        agent.stop()
    finally:
        pair.near(["sysctl", "-q", "-w", f"net.core.optmem_max={before}"])
        for sock in held:
            sock.close()


def test_table_is_full(pair, sources, server, on, tmp_path):
    """A source without room does not count, and status reports it until a count has room for all."""
    path = tmp_path / "counted.weir"
    path.write_text("drop proto tcp to any port 8080 over 1 connection per source mask 32/128 max 1\n")
    on("apply", path)
    pair.far(["ip", "addr", "add", "10.77.1.0/24", "dev", "far0"], check=False)
    pair.near(["ip", "route", "add", "10.77.1.0/24", "dev", "near0"])
    for last in range(1, 41):
        pair.far(["ip", "addr", "add", f"10.77.1.{last}/32", "dev", "far0"])
    held = [connect(pair, f"10.77.1.{last}", 8080) for last in range(1, 41)]
    try:
        assert all(held)
        full = alarms(on, "had no room")
        assert full and used(on) < 40
        lost = 40 - used(on)
        agent = on.run()  # counts again: the same connections have no room
        until(lambda: f"{lost} connections of" in alarms(on, "had no room")[0], 5, "the alarm")
        agent.stop()
        for sock in held:
            sock.close()
        until(lambda: not server.open, 5, "server")
        agent = on.run()
        until(lambda: not alarms(on, "had no room"), 10, "the end of the alarm")
        agent.stop()
    finally:
        for sock in held:
            if sock:
                sock.close()
        pair.near(["ip", "route", "del", "10.77.1.0/24"])
        pair.far(["ip", "addr", "flush", "dev", "far0", "to", "10.77.1.0/24"])


def test_agent_counts_again(pair, sources, server, limited):
    """A table that has lost its counts is right again soon after the start of the agent."""
    held = [connect(pair, SOURCES[0], 8080) for _ in range(LIMIT)]
    table = next((limited.bpffs / "gen").glob("*/accepted")).parent / "connections"
    for element in json.loads(run(["bpftool", "-j", "map", "dump", "pinned", table]).stdout)[1:]:
        if any(int(byte, 16) for byte in element["value"]):
            run(["bpftool", "map", "update", "pinned", table, "key", *element["key"], "value", *["0"] * 64])
    assert used(limited) == 0
    agent = limited.run()
    until(lambda: used(limited) == 1, 10, "the count")
    agent.stop()
    assert all(held) and not connect(pair, SOURCES[0], 8080)


def head_of(weir):
    """The table, the half that packets read, bits of the halves that programs write, their rounds, and the rest."""
    table = next((weir.bpffs / "gen").glob("*/accepted")).parent / "connections"
    head, *_ = json.loads(run(["bpftool", "-j", "map", "dump", "pinned", table]).stdout)
    value = bytes(int(byte, 16) for byte in head["value"])
    return table, *struct.unpack_from("=II", value), list(struct.unpack_from("=II", value, 8)), value[16:]


def interrupt_count(weir):
    """As a process leaves the table that is killed before it has listed the sockets: programs write both halves."""
    table, active, counting, rounds, rest = head_of(weir)
    assert counting == 1 << active
    rounds[1 - active] += 1
    words = [str(byte) for byte in struct.pack("=IIII", active, 3, *rounds) + rest]
    run(["bpftool", "map", "update", "pinned", table, "key", "0", "0", "0", "0", "value", *words])
    return active


def test_count_that_was_interrupted(pair, sources, server, limited):
    """A connection that was counted in both halves is counted once by the next count."""
    held = [connect(pair, SOURCES[0], 8080) for _ in range(LIMIT - 1)]
    active = interrupt_count(limited)
    held.append(connect(pair, SOURCES[0], 8080))
    held.append(connect(pair, SOURCES[1], 8080))
    held.pop().close()
    assert all(held)
    until(lambda: len(server.open) == LIMIT, 5, "server")
    agent = limited.run()
    until(lambda: head_of(limited)[1:3] == (1 - active, 1 << 1 - active), 10, "the count")
    agent.stop()
    assert used(limited) == 1 and not connect(pair, SOURCES[0], 8080)
    held.pop().close()
    until(lambda: len(server.open) == LIMIT - 1, 5, "server")
    held.append(connect(pair, SOURCES[0], 8080))
    assert held[-1] and not connect(pair, SOURCES[0], 8080)
    for sock in held:
        sock.close()
    until(lambda: used(limited) == 0, 5, "the end")
