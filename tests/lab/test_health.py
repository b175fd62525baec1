# SPDX-License-Identifier: GPL-2.0-only
"""Checks of backends by the agent: what they find, and how soon it counts."""

import contextlib
import os
import pathlib
import socket
import struct
import subprocess
import time

import pytest
from balancerlab import crowd_of, failed

from feedserver import Authority, TlsServer
from healthlab import (CHECK, FAILS, FALLEN_S, MAZE, ONE, THREE, TWO, all_fail, all_ok, full_queue, health,
                       killed_web, lies, resets, server_of, silent, slots, states, stopped_web)
from labnet import socket_in, until
from waiting import Waiting

BALANCER = {"mode": "ipip"}


def test_all_well(node, serve):
    serve(CHECK)
    status = node.json("status", status=2)
    assert status["services"][0]["checked"] is False
    assert "service 'web': its backends are not checked (weir run checks them)" in status["alarms"]
    assert "0 down, not checked; stable" in node("status", check=False).stdout
    assert set(health(node).values()) == {"not checked"}
    node.run()
    until(lambda: all_ok(node))
    status = node.json("status")
    assert status["alarms"] == [] and status["services"][0]["checked"] is True
    assert set(states(node).values()) == {"up"}
    assert status["services"][0]["fingerprint"] == status["services"][0]["configuration_fingerprint"]


# Opens connections to ADDRESS, several each millisecond.
OPENS = """
import socket, sys, time
while True:
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex((sys.argv[1], 80))
    one.close()
    time.sleep(0.0003)
"""
SO_TIMESTAMPNS, SO_RCVBUFFORCE, ETH_P_ALL, ETH_P_IP = 35, 33, 3, 0x800
SYN, RST = 2, 4


class Clocked:
    """Packets that the router exchanges with a backend, with the kernel's times."""

    def __init__(self, balancer, host):
        self.socket = socket_in(balancer.netns("router"), socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.socket.bind((host, ETH_P_ALL))
        self.socket.setblocking(False)
        self.refused, self.answered, self.opens = [], [], []

    def close(self):
        self.socket.close()

    def packets(self):
        """Of TCP: time, whether in a tunnel, source, flags, whether with a payload."""
        with contextlib.suppress(BlockingIOError):
            while True:
                data, ancillary, _, address = self.socket.recvmsg(256, 256)
                if address[1] != ETH_P_IP:
                    continue
                s, ns = struct.unpack("qq", ancillary[0][2])
                tunnel = data[9] == 4
                if tunnel:
                    data = data[(data[0] & 15) * 4:]
                if data[9] == 6:
                    head = (data[0] & 15) * 4
                    length, = struct.unpack("!H", data[2:4])
                    payload = length > head + (data[head + 12] >> 4) * 4
                    yield s + ns / 1e9, tunnel, data[12:16], data[head + 13], payload

    def collect(self):
        for at, tunnel, source, flags, payload in self.packets():
            if source == socket.inet_aton(TWO) and payload:
                self.answered.append(at)
            elif source == socket.inet_aton(TWO) and flags & RST:
                self.refused.append(at)
            elif tunnel and flags == SYN:
                self.opens.append(at)

    def until(self, true):
        """Until true() is, and half a second longer. Reads often enough for the socket to take all packets.

        The times of the resets and of the answers of the backend to checks, and of clients' connections to it."""
        self.refused, self.answered, self.opens = [], [], []
        until(lambda: self.collect() or true())
        end = time.monotonic() + 0.5
        until(lambda: self.collect() or time.monotonic() > end)
        return self.refused, self.answered, self.opens


def less_waiting(since, to, waiting, *whose):
    """Seconds between two of the kernel's times, without those for which the machine kept them from running."""
    shift = time.monotonic() - time.time()
    return to - since - waiting.between(since + shift, to + shift, *whose)


def measure_round(balancer, node, clocked, waiting):
    """Seconds from the answer that decides to the last connection to a backend that has failed, and to the first to
    one that is well again."""
    with killed_web(balancer, "backend2"):
        refused, _, opens = clocked.until(lambda: states(node)[TWO] == "failing")
        assert sum(refused[1] - 1 < at < refused[1] for at in opens) > 5
        out = less_waiting(refused[1], max(opens), waiting, "agent")
    _, answered, opens = clocked.until(lambda: states(node)[TWO] == "up")
    assert min(opens) > answered[1]
    back = less_waiting(answered[1], min(opens), waiting, "agent", "client")
    print(f"out of the ring after {out * 1e3:.0f} ms, back after {back * 1e3:.0f} ms")
    return out, back


@pytest.mark.alone
def test_in_force_within_100_ms(balancer, node, serve):
    """As packets see it, in each of three rounds."""
    serve('check http "/name" port 80 every 300ms timeout 290ms rise 2 fall 2')
    agent = node.run()
    until(lambda: all_ok(node))
    argv = ["nsenter", f"--net=/run/netns/{balancer.netns('client')}", "--", "/usr/bin/python3", "-c", OPENS, balancer.vip4]
    with subprocess.Popen(argv) as client, contextlib.closing(Clocked(balancer, "backend2")) as clocked:
        try:
            clocked.until(lambda: clocked.opens)
            with Waiting(agent=agent.pid, client=client.pid) as waiting:
                rounds = [measure_round(balancer, node, clocked, waiting) for _ in range(3)]
        finally:
            client.kill()
    assert all(out < 0.1 and back < 0.1 for out, back in rounds), rounds


@pytest.mark.parametrize("way, why", [
    (killed_web, "connection refused"), (stopped_web, "no answer within 150ms"), (silent, "no answer within 150ms"),
    (full_queue, "no answer within 150ms"), (resets, "peer"),
])
def test_a_dead_backend_costs_no_new_connection(balancer, node, serve, way, why):
    """After `fall` times `every` and 0.1 s all new connections reach the others."""
    serve(CHECK)
    node.run()
    until(lambda: all_ok(node))
    before = node.json("status")["services"][0]
    with way(balancer, "backend2"):
        time.sleep(FALLEN_S)
        with crowd_of(balancer, 0, 1, 1, 0.05, 60) as crowd:
            results = crowd.results(newcomers=True)
        assert not failed(results), failed(results)
        assert {one["backend"] for one in results} <= {"backend1", "backend3"}
        assert states(node)[TWO] == "failing" and slots(node)[TWO] == 0
        assert health(node)[TWO].startswith("failing for ") and health(node)[TWO].endswith(why)
        status = node.json("status", status=2)
        assert (status["services"][0]["up"], status["services"][0]["failing"]) == (2, 1)
        assert status["alarms"] == [FAILS.format(1)]
        assert status["services"][0]["configuration_fingerprint"] == before["configuration_fingerprint"]
        assert status["services"][0]["fingerprint"] != before["fingerprint"]
    until(lambda: all_ok(node))
    assert set(states(node).values()) == {"up"} and slots(node)[TWO] > 5000


def test_lost(balancer, node, serve):
    """Flows stay until `lost` has passed, then they move."""
    serve(CHECK, "lost 2s")
    agent = node.run()
    until(lambda: all_ok(node))
    with killed_web(balancer, "backend2"):
        while "fails its checks" not in agent.said():
            time.sleep(0.005)
        began = time.monotonic()
        time.sleep(0.1)
        assert states(node)[TWO] == "failing" and slots(node)[TWO] == 0
        until(lambda: states(node)[TWO] == "down")
        assert 1.5 < time.monotonic() - began < 3
        until(lambda: health(node)[TWO].startswith("down for "))  # the agent writes this file after the slots
    until(lambda: all_ok(node))
    said = agent.said()
    assert "service 'web': 10.78.2.2 fails its checks: connection refused" in said
    assert "service 'web': 10.78.2.2 is down" in said and "service 'web': 10.78.2.2 is up again" in said


def test_a_lie_is_found(balancer, node, serve):
    serve(CHECK + ' body "^backend(1|3)$"')
    agent = node.run()
    until(lambda: states(node)[TWO] == "failing")
    time.sleep(2)  # and many checks later
    assert agent.process.poll() is None
    assert health(node)[TWO].endswith("status 200, but the body does not match")
    assert {states(node)[ONE], states(node)[THREE]} == {"up"}
    assert balancer.answers(balancer.vip4)


def test_a_lie_does_not_hold_up_the_agent(balancer, node, serve):
    """A body that takes the expression long: the check fails, and a dead backend is found in time."""
    serve(CHECK + ' body "^backend|ok.*ready"')
    agent = node.run()
    until(lambda: all_ok(node))
    with server_of(MAZE)(balancer, "backend2"):
        until(lambda: health(node)[TWO].endswith("body: the expression took too long"))
        with killed_web(balancer, "backend3"):
            began = time.monotonic()
            until(lambda: f"{THREE} fails its checks" in agent.said())
            assert time.monotonic() - began < 2
    until(lambda: all_ok(node))


HTTP = 'http "/name" port 80'


@pytest.mark.parametrize("way, blind, sees", [
    (stopped_web, "tcp port 80", HTTP),  # the kernel accepts, the server is dead
    (lies, HTTP, f'{HTTP} body "^backend"'),
    (full_queue, "none", "tcp port 80"),
])
def test_who_sees_what_is_half_open(balancer, node, serve, way, blind, sees):
    """Each kind of check finds what it asks for, and nothing more."""
    times = "every 300ms timeout 150ms rise 2 fall 2"
    serve()
    node.run()
    with way(balancer, "backend2"):
        serve(f"check {blind}{'' if blind == 'none' else ' ' + times}")
        time.sleep(3 * FALLEN_S)
        assert states(node)[TWO] == "up" and slots(node)[TWO] > 5000
        serve(f"check {sees} {times}")
        until(lambda: states(node)[TWO] == "failing" and slots(node)[TWO] == 0)
        assert {states(node)[ONE], states(node)[THREE]} == {"up"}
    until(lambda: all_ok(node))


def test_slow(balancer, node, serve):
    """It answers well, but later than `timeout`."""
    serve(CHECK)
    node.run()
    until(lambda: all_ok(node))
    program = ("import socket, time\n"
               "listener = socket.create_server(('', 80))\n"
               "while True:\n"
               "    one = listener.accept()[0]\n"
               "    time.sleep(0.3)\n"
               "    one.sendall(b'HTTP/1.0 200 OK\\r\\n\\r\\nbackend2\\n')\n"
               "    one.close()\n")
    with killed_web(balancer, "backend2"):
        argv = ["nsenter", f"--net=/run/netns/{balancer.netns('backend2')}", "--", "/usr/bin/python3", "-c", program]
        with subprocess.Popen(argv) as server:
            try:
                until(lambda: health(node)[TWO].endswith(": no answer within 150ms"))
                assert states(node)[TWO] == "failing" and slots(node)[TWO] == 0
            finally:
                server.kill()
    until(lambda: all_ok(node))


def test_statuses(node, serve):
    serve('check http "/none" expect 200, 404 port 80 every 300ms timeout 200ms')
    node.run()
    until(lambda: all_ok(node))
    serve('check http "/none" port 80 every 300ms timeout 200ms')
    until(lambda: all_fail(node))
    assert all(one.endswith("status 404") for one in health(node).values())
    assert sum(slots(node).values()) == 16381 and 0 not in slots(node).values()  # a wrong check empties nothing


def test_certificates(balancer, node, serve):
    """The lab's certificate is self-signed."""
    serve('check https "/name" port 443 every 300ms timeout 250ms')
    node.run()
    until(lambda: all_fail(node))
    serve('check https "/name" port 443 every 300ms timeout 250ms insecure')
    until(lambda: all_ok(node))
    assert balancer.answers(balancer.vip4)


class TestAuthority:
    """check https with `ca`: servers of the test's own on the backends, with certificates of an authority of it."""

    @pytest.fixture(name="authority")
    def of_the_test(self, tmp_path):
        return Authority(tmp_path)

    @pytest.fixture(name="servers")
    def of_all_backends(self, balancer):
        servers = [TlsServer(balancer.netns(host)) for host in balancer.backends]
        yield servers
        for server in servers:
            server.stop()

    def test_each_has_its_own_reason(self, node, serve, servers, authority, tmp_path):
        other = Authority(tmp_path / "other")
        good = authority.certificate("good", names="DNS:web.lab")
        for server in servers:
            server.use(*good)
        check = f'check https "/" host "web.lab" ca "{authority.path}" port 8443 every 300ms timeout 250ms'
        serve(check)
        agent = node.run()
        until(lambda: all_ok(node))
        servers[0].use(*authority.certificate("past", days=-1, names="DNS:web.lab"))
        servers[1].use(*authority.certificate("strange", names="DNS:strange.lab"))
        servers[2].use(*other.certificate("stranger", names="DNS:web.lab"))
        until(lambda: all_fail(node))
        for backend, why in (ONE, "certificate has expired"), (TWO, "not valid for 'web.lab'"), (
                THREE, "unable to get local issuer certificate"):
            assert health(node)[backend].endswith(f"s, kept: bad certificate: {why}"), health(node)
        for server in servers:
            server.use(*good)
        until(lambda: all_ok(node))
        authority.path.rename(tmp_path / "away")  # says nothing of the servers
        until(lambda: "checks cannot be made" in node("status", check=False).stdout)
        assert "cannot read the certificates of '/" in agent.said() and all_ok(node)

    def test_the_name_is_that_of_sni(self, node, serve, servers, authority):
        cert = authority.certificate("sni", names="DNS:sni.lab")
        for server in servers:
            server.use(*cert)
        check = f'check https "/" host "web.lab" {{}} ca "{authority.path}" port 8443 every 300ms timeout 250ms'
        serve(check.format('sni "sni.lab"'))
        node.run()
        until(lambda: all_ok(node))
        assert {name for server in servers for name in server.names} == {"sni.lab"}
        serve(check.format(""))
        until(lambda: all_fail(node))
        assert health(node)[ONE].endswith("not valid for 'web.lab'")


def test_the_authorities_of_the_system_are_not_read_each_time(node, serve):
    """Reading them takes 40 ms, in which the loop does nothing else."""
    serve('check https "/name" port 443 every 100ms timeout 90ms')
    agent = node.run()
    until(lambda: all_fail(node))
    stat = pathlib.Path(f"/proc/{agent.pid}/stat")

    def seconds():
        return sum(map(int, stat.read_text().rsplit(")")[-1].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    before = seconds()
    time.sleep(2)
    assert seconds() - before < 0.4  # 60 checks; 1 s if each reads them


def test_tcp_and_programs(balancer, node, serve, tmp_path):
    program = tmp_path / "check"
    seen = f"{tmp_path}/$WEIR_ADDRESS"
    program.write_text(f"#!/bin/sh\nenv >{seen}.new && mv {seen}.new {seen}\ntest ! -e {tmp_path}/bad-$WEIR_BACKEND\n")
    program.chmod(0o755)
    serve(f'check exec "{program}" "a b" every 300ms timeout 200ms fall 2')
    node.run()
    until(lambda: all_ok(node))
    seen = (tmp_path / ONE).read_text()
    assert "WEIR_SERVICE=web\n" in seen and f"WEIR_BACKEND={ONE}\n" in seen and "WEIR_PORT=7\n" in seen
    (tmp_path / f"bad-{THREE}").touch()
    until(lambda: states(node)[THREE] == "failing")
    assert health(node)[THREE].endswith("the program exited with status 1")
    serve("check tcp port 80 every 300ms timeout 200ms fall 2")
    until(lambda: all_ok(node))
    with killed_web(balancer, "backend1"):
        until(lambda: states(node)[ONE] == "failing")


def test_name_servers(balancer, node, tmp_path):
    path = tmp_path / "dns.weir"
    path.write_text(f'interface net0\nseed "lab"\nservice web {{\n\tvip {balancer.vip4}\n\tproto udp\n\tport 53\n'
                    f"\tmode ipip\n\tbackend {ONE}\n\tbackend {TWO}\n"
                    f"\tcheck dns www.example.com type a every 300ms timeout 150ms fall 2\n}}\n")
    argv = ["nsenter", f"--net=/run/netns/{balancer.netns('backend1')}", "--", "dnsmasq", "--keep-in-foreground",
            "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file=", "--user=root", "--bind-interfaces",
            f"--listen-address={ONE}", "--address=/www.example.com/192.0.2.7"]
    node("apply", path)
    node.run()
    until(lambda: health(node)[ONE].endswith("connection refused"))
    with subprocess.Popen(argv) as server:
        try:
            until(lambda: health(node)[ONE] == "ok")
            assert health(node)[TWO].endswith("connection refused") and slots(node)[TWO] == 0
        finally:
            server.kill()
    until(lambda: health(node)[ONE].startswith("failing"))
