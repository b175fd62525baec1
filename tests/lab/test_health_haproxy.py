# SPDX-License-Identifier: GPL-2.0-only
"""HAProxy beside Weir on the same balancer, before the same servers, with the same check, interval, `rise` and `fall`:
what new connections meet once both know which servers are dead, and while one comes and goes."""

import contextlib
import csv
import io
import shutil
import socket
import subprocess
import threading
import time

import pytest
from balancerlab import policy

from labnet import run, socket_in, until

pytestmark = pytest.mark.skipif(not shutil.which("haproxy"), reason="no haproxy")
BALANCER = {"mode": "ipip", "backends": 4}
EVERY_MS, RISE, FALL = 500, 2, 3
CHECK = f"check tcp port 80 every {EVERY_MS}ms timeout 200ms rise {RISE}"
CONNECTIONS = 60
PLAIN, BACKUP = 8001, 8002  # ports of HAProxy: three servers, and the same with the fourth as a backup
UP_S = DOWN_S = 0.7
CONFIG = """
global
	stats socket {socket}
defaults
	mode tcp
	timeout connect 1s
	timeout client 5s
	timeout server 5s
	timeout check 200ms
	default-server check inter {every}ms rise {rise} fall {fall}
listen plain
	bind :{plain}
	balance roundrobin
	{servers}
listen backup
	bind :{backup}
	balance roundrobin
	{servers}
	server backend4 10.78.2.4:80 backup
"""


class HAProxy:
    def __init__(self, lab, folder):
        self.lab, self.socket, self.config = lab, folder / "haproxy.sock", folder / "haproxy.cfg"
        servers = "\n\t".join(f"server backend{n} 10.78.2.{n}:80" for n in (1, 2, 3))
        self.config.write_text(CONFIG.format(socket=self.socket, every=EVERY_MS, rise=RISE, fall=FALL, plain=PLAIN,
                                             backup=BACKUP, servers=servers))
        argv = ["nsenter", f"--net=/run/netns/{lab.netns('balancer1')}", "--", "haproxy", "-db", "-f"]
        with open(folder / "haproxy.log", "wb") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [*argv, self.config], stdout=log, stderr=log)

    def states(self, backup=False):
        """By backend, of one of the two: "UP", "DOWN", "UP 1/3" while failures add up."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(self.socket))
            sock.sendall(b"show stat\n")
            text = sock.makefile().read()
        rows = csv.DictReader(io.StringIO(text.removeprefix("# ")))
        return {one["svname"]: one["status"] for one in rows
                if one["pxname"] == ("backup" if backup else "plain") and one["svname"].startswith("backend")}

    def up(self, backup=False):
        return {name for name, status in self.states(backup).items() if status.startswith("UP")}

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=10)


@pytest.fixture(name="haproxy")
def running_haproxy(balancer, tmp_path):
    haproxy = HAProxy(balancer, tmp_path)
    try:
        until(haproxy.socket.exists)
        until(lambda: len(haproxy.up(backup=True)) == 4)
        yield haproxy
    finally:
        haproxy.stop()


@pytest.fixture(name="serve")
def served(balancer, node, tmp_path):
    """serve(BACKENDS, FALL) applies the service with these backends, of which the fourth is a backup."""
    def apply(backends, fall):
        path = tmp_path / "web.weir"
        path.write_text(policy(balancer, backends, f"{CHECK} {fall}", backups=(4,)))
        node("apply", path)

    return apply


@contextlib.contextmanager
def dead(balancer, count):
    for n in range(1, count + 1):
        balancer.kill_web(f"backend{n}")
    try:
        yield
    finally:
        for n in range(1, count + 1):
            balancer.start_web(f"backend{n}")


def answers(balancer, address, port):
    with socket_in(balancer.netns("client"), socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(1)
        try:
            sock.connect((address, port))
            sock.sendall(b"GET /name HTTP/1.0\r\n\r\n")
            return sock.recv(4096).startswith(b"HTTP/1.1 200")
        except OSError:
            return False


def failures(balancer, address, port):
    return sum(not answers(balancer, address, port) for _ in range(CONNECTIONS))


def ok(node):
    """The backends that Weir knows to be well."""
    return {f"backend{one['backend'][-1]}" for one in node.service()["backends"] if one["health"] == "ok"}


def compare(balancer, node, backup):
    """Failures of connections through Weir and through HAProxy."""
    weir = failures(balancer, balancer.vip4, 80)
    haproxy = failures(balancer, "10.78.1.201", BACKUP if backup else PLAIN)
    print(f"of {CONNECTIONS} connections failed: Weir {weir}, HAProxy {haproxy}")
    assert weir <= haproxy, node("service").stdout
    return weir


@pytest.mark.parametrize("backup", (False, True), ids=("no-backup", "backup"))
@pytest.mark.parametrize("count", (1, 2, 3))
def test_new_connections_while_servers_are_dead(balancer, node, haproxy, serve, count, backup):
    """As soon as both know it, no connection meets a dead server if another one is left."""
    every = {"backend1", "backend2", "backend3"} | ({"backend4"} if backup else set())
    serve(range(1, 5 if backup else 4), f"fall {FALL}")
    node.run()
    until(lambda: ok(node) == every)
    with dead(balancer, count):
        left = every - {f"backend{n}" for n in range(1, count + 1)}
        until(lambda: ok(node) == left and haproxy.up(backup) == left)
        failed = compare(balancer, node, backup)
        assert failed == (0 if left else CONNECTIONS)
    until(lambda: ok(node) == every)
    assert not failures(balancer, balancer.vip4, 80)


def test_a_server_that_is_dead_when_an_apply_adds_it(balancer, node, serve):
    """It gets nothing before its first good check."""
    serve((1, 3), f"fall {FALL}")
    node.run()
    until(lambda: len(ok(node)) == 2)
    balancer.kill_web("backend2")
    try:
        serve((1, 2, 3), f"fall {FALL}")
        assert not failures(balancer, balancer.vip4, 80), node("service").stdout
        assert ok(node) == {"backend1", "backend3"}
    finally:
        balancer.start_web("backend2")
    until(lambda: len(ok(node)) == 3)


@contextlib.contextmanager
def flapping(balancer, host):
    """Refuses connections for DOWN_S, accepts them for UP_S, and so on."""
    balancer.on(host, ["nft", "add table inet flap; add chain inet flap in { type filter hook input priority 0; }"])
    ended = threading.Event()

    def flap():
        while not ended.wait(UP_S):
            balancer.on(host, ["nft", "add rule inet flap in tcp dport 80 reject with tcp reset"])
            ended.wait(DOWN_S)
            balancer.on(host, ["nft", "flush chain inet flap in"])

    thread = threading.Thread(target=flap)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        balancer.on(host, ["nft", "delete table inet flap"])


def shares_in(node, haproxy, seconds):
    """Of the samples, the share in which the first backend gets new connections: Weir's, HAProxy's; and after how many
    seconds Weir took it out first."""
    began, weir, proxy, out = time.monotonic(), [], [], None
    while time.monotonic() < began + seconds:
        weir.append(node.backend("10.78.2.1")["slots"] > 0)
        proxy.append("backend1" in haproxy.up())
        if out is None and not weir[-1]:
            out = time.monotonic() - began
        time.sleep(0.05)
    return sum(weir) / len(weir), sum(proxy) / len(proxy), out


def test_a_server_that_comes_and_goes(balancer, node, haproxy, serve):
    """The default of `fall`: ten checks at the most until it is out; HAProxy counts failures in a row only."""
    serve((1, 2, 3), "")
    node.run()
    until(lambda: len(ok(node)) == 3)
    with flapping(balancer, "backend1"):
        weir, proxy, out = shares_in(node, haproxy, 20)
    print(f"in the ring: Weir {weir:.0%}, taken out after {out} s; HAProxy {proxy:.0%} of the time")
    assert out is not None and out < 10 * EVERY_MS / 1000 + 1
    assert weir < 0.6 and weir < proxy
