# SPDX-License-Identifier: GPL-2.0-only
"""Backends whose servers refuse, hang and lie, and what the agent has found out about them."""

import contextlib
import os
import pathlib
import signal
import subprocess

from labnet import run

ONE, TWO, THREE = "10.78.2.1", "10.78.2.2", "10.78.2.3"
CHECK = 'check http "/name" port 80 every 300ms timeout 150ms rise 2 fall 2'
FAILS = "service 'web': checks fail for {} of 3 backends (weir service web shows the reason)"
FALLEN_S = 2 * 0.3 + 0.1


def states(node):
    return {one["backend"]: one["state"] for one in node.service()["backends"]}


def health(node):
    return {one["backend"]: one.get("health", "") for one in node.service()["backends"]}


def slots(node):
    return {one["backend"]: one["slots"] for one in node.service()["backends"]}


def web_pid(balancer, host):
    path = pathlib.Path("/run/weir-lab", balancer.name, f"nginx-{host}.pid")
    return int(path.read_text(encoding="ascii"))


def web_workers(balancer, host):
    master = web_pid(balancer, host)
    children = run(["pgrep", "-P", master], check=False).stdout.split()
    return [master, *map(int, children)]


@contextlib.contextmanager
def stopped_web(balancer, host):
    """The kernel still accepts connections, which no server takes: half open."""
    pids = web_workers(balancer, host)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def killed_web(balancer, host):
    balancer.kill_web(host)
    try:
        yield
    finally:
        balancer.start_web(host)


@contextlib.contextmanager
def silent(balancer, host):
    """The host drops incoming packets."""
    balancer.on(host, ["nft", "add", "table", "inet", "dead"])
    chain = "{ type filter hook prerouting priority -300; policy drop; }"
    balancer.on(host, ["nft", "add", "chain", "inet", "dead", "in", chain])
    try:
        yield
    finally:
        balancer.on(host, ["nft", "delete", "table", "inet", "dead"])


SERVER = """
import socket, struct, time
print(flush=True)
for _ in range(400):  # until the web server has ended
    try:
        listener = socket.create_server(("", 80), backlog=0)
        break
    except OSError:
        time.sleep(0.05)
"""
RESETS = SERVER + """
print(flush=True)
while True:
    one = listener.accept()[0]
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()
"""
# Connections that no server accepts fill the queue of the listener: the kernel drops later ones.
FULL_QUEUE = SERVER + """
waiting = []
while True:
    waiting.append(socket.socket())
    waiting[-1].settimeout(0.3)
    try:
        waiting[-1].connect(("127.0.0.1", 80))
    except TimeoutError:
        break
print(flush=True)
time.sleep(60)
"""
LIES = SERVER + """
print(flush=True)
while True:
    one = listener.accept()[0]
    one.recv(4096)
    one.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\nsorry\\n")
    one.close()
"""
# A body for which "ok.*ready" has to be tried at each of its bytes, and from each to the last.
MAZE = LIES.replace("sorry\\n", "ok" * 8000 + "y" + "ok" * 24000)


def server_of(program):
    @contextlib.contextmanager
    def way(balancer, host):
        """A server that replaces the web server at once. It prints a line when it has started, and one when it listens."""
        argv = ["nsenter", f"--net=/run/netns/{balancer.netns(host)}", "--", "/usr/bin/python3", "-c", program]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as server:
            assert server.stdout.readline() == b"\n"
            with killed_web(balancer, host):
                try:
                    assert server.stdout.readline() == b"\n"
                    yield
                finally:
                    server.kill()
                    server.wait()
    return way


resets, full_queue, lies = server_of(RESETS), server_of(FULL_QUEUE), server_of(LIES)


def all_ok(node):
    return set(health(node).values()) == {"ok"}


def all_fail(node):
    return all(one.startswith(("failing for ", "down for ")) and ", kept: " in one for one in health(node).values())
