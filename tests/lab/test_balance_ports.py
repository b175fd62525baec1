# SPDX-License-Identifier: GPL-2.0-only
"""A client that reuses its ports: the connection is new, also if the previous one was pinned to a backend
that gets no new connections now."""

import collections
import socket
import subprocess
import threading

import pytest
from balancerlab import policy, running_balancer
from labnet import socket_in

ONE, TWO = "10.78.2.1", "10.78.2.2"
CONNECTIONS = 5000
PORTS = "40000 41999"  # each is reused again and again


@pytest.fixture(scope="module", name="balancer")
def shared_lab():
    with running_balancer(mode="ipip") as lab:
        lab.on("client", ["sysctl", "-qw", f"net.ipv4.ip_local_port_range={PORTS}"])
        yield lab


def connect(balancer):
    """The backend of one connection of an ordinary client, closed by the server first."""
    with socket_in(balancer.netns("client"), socket.AF_INET, socket.SOCK_STREAM, 0) as sock:
        sock.settimeout(10)
        sock.connect((balancer.vip4, 80))
        sock.sendall(b"GET /name HTTP/1.0\r\n\r\n")
        said = b""
        while part := sock.recv(4096):
            said += part
    return said.split()[-1].decode()


def connections(balancer, count=CONNECTIONS):
    return collections.Counter(connect(balancer) for _ in range(count))


def apply(balancer, node, tmp_path, backends, *lines):
    path = tmp_path / "web.weir"
    path.write_text(policy(balancer, backends, "pins 65536", *lines))
    node("apply", path)


class Clients:
    """Connections, one after the other, until stopped."""

    def __init__(self, balancer):
        self.balancer, self.over, self.seen = balancer, threading.Event(), collections.Counter()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.is_set():
            self.seen[connect(self.balancer)] += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def check_drain(balancer, node, backends):
    """TWO gets no new connections once it is drained, and becomes silent although clients continue."""
    before = node.backend(TWO)["opened"]
    assert before > 1000, before
    node("drain", "web", TWO)
    seen = connections(balancer)
    assert set(seen) == backends and sum(seen.values()) == CONNECTIONS, seen
    with Clients(balancer) as clients:
        done = subprocess.run(node.argv("-j", "drain", "web", TWO, "--wait=3s"), text=True, check=False,
                              stdout=subprocess.PIPE, timeout=30)
    assert done.returncode == 0 and '"quiet":true' in done.stdout
    assert set(clients.seen) <= backends and sum(clients.seen.values()) > 500, clients.seen
    assert node.backend(TWO)["opened"] == before


def test_ports_used_again(balancer, node, tmp_path):
    apply(balancer, node, tmp_path, [1, 3])
    apply(balancer, node, tmp_path, [1, 2, 3])  # connections that open in the slots of TWO are pinned
    seen = connections(balancer)
    assert set(seen) == set(balancer.backends) and seen["backend2"] > CONNECTIONS / 4, seen
    assert node.backend(TWO)["pins"] > 100
    check_drain(balancer, node, {"backend1", "backend3"})
    assert node.events()["reopened"] > 500


def test_ports_used_again_with_hash_source(balancer, node, tmp_path):
    """All connections of the client are in one slot; pins are for single connections."""
    apply(balancer, node, tmp_path, [1], "hash source")
    apply(balancer, node, tmp_path, [2], "hash source")
    assert set(connections(balancer)) == {"backend2"}
    apply(balancer, node, tmp_path, [1, 2], "hash source")
    check_drain(balancer, node, {"backend1"})
