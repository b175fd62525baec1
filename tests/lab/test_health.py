# SPDX-License-Identifier: GPL-2.0-only
"""Checks of backends by the agent: backends that refuse, hang, lie and flap; what commands and trials do meanwhile."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest
from balancerlab import crowd_of, failed, policy

from feedserver import Authority, TlsServer
from labnet import WEIR, run, socket_in, until
from waiting import Waiting

ONE, TWO, THREE = "10.78.2.1", "10.78.2.2", "10.78.2.3"
CHECK = 'check http "/name" port 80 every 300ms timeout 150ms rise 2 fall 2'
FAILS = "service 'web': checks fail for {} of 3 backends (weir service web shows the reason)"
BALANCER = {"mode": "ipip"}
FALLEN_S = 2 * 0.3 + 0.1


@pytest.fixture(name="serve")
def served(balancer, node, tmp_path):
    """serve(LINE, ...) applies the service with these options; names of backends to numbers."""
    path = tmp_path / "web.weir"

    def apply(*lines, backends=(1, 2, 3), options=(), **more):
        path.write_text(policy(balancer, backends, "idle 2s", "pins 65536", *lines, **more))
        node("apply", path, *options)
        return path

    return apply


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
for _ in range(50):  # until the web server has ended
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
        """A server that prints a line when it is ready, in place of the web server."""
        argv = ["nsenter", f"--net=/run/netns/{balancer.netns(host)}", "--", "/usr/bin/python3", "-c", program]
        with killed_web(balancer, host), subprocess.Popen(argv, stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout.readline() == b"\n"
                yield
            finally:
                server.kill()
    return way


resets, full_queue, lies = server_of(RESETS), server_of(FULL_QUEUE), server_of(LIES)


def all_ok(node):
    return set(health(node).values()) == {"ok"}


def all_fail(node):
    return all(one.startswith(("failing for ", "down for ")) and ", kept: " in one for one in health(node).values())


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
        assert health(node)[TWO].startswith("down for ")
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
    program.write_text(f"#!/bin/sh\nenv >{tmp_path}/$WEIR_ADDRESS\ntest ! -e {tmp_path}/bad-$WEIR_BACKEND\n")
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


def test_flapping(balancer, node, serve):
    """A backend that changes faster than `rise` and `fall` does not move a slot."""
    serve('check http "/name" port 80 every 200ms timeout 100ms rise 3 fall 4')
    agent = node.run()
    until(lambda: all_ok(node))
    before = node.json("service", "web")["services"][0]["fingerprint"]
    for _ in range(4):
        with killed_web(balancer, "backend2"):
            time.sleep(0.3)
        time.sleep(0.4)
    assert node.json("service", "web")["services"][0]["fingerprint"] == before
    assert "fails its checks" not in agent.said()


def test_ramp(balancer, node, serve):
    serve(CHECK, "ramp 4s")
    node.run()
    until(lambda: all_ok(node))
    full = slots(node)[TWO]
    with killed_web(balancer, "backend2"):
        until(lambda: states(node)[TWO] == "failing")
    until(lambda: states(node)[TWO] == "up")
    seen = []
    while "ramp" in health(node)[TWO]:
        seen.append(slots(node)[TWO])
    assert seen == sorted(seen) and 0 < seen[0] < full / 4 and len(set(seen)) > 5
    assert slots(node)[TWO] == full


KEPT = "service 'web': {} new flows although {} checks fail, {}"
OPEN = KEPT.format("{} backends get", "their", "because no backend passes its checks")


def test_keep(balancer, node, serve):
    """So much of the weight stays as the policy says; those that failed last stay."""
    serve(CHECK, "keep 50%", "lost 1s")
    agent = node.run()
    until(lambda: all_ok(node))
    with contextlib.ExitStack() as dead:
        dead.enter_context(killed_web(balancer, "backend1"))
        until(lambda: states(node)[ONE] == "failing")
        dead.enter_context(killed_web(balancer, "backend3"))
        until(lambda: ", kept: connection refused" in health(node)[THREE])
        assert states(node)[ONE] in ("failing", "down") and states(node)[THREE] == "up"
        assert slots(node)[ONE] == 0 and slots(node)[THREE] > 5000
        until(lambda: states(node)[ONE] == "down")
        status = node.json("status", status=2)
        assert (status["services"][0]["down"], status["services"][0]["kept"]) == (1, 1)
        assert FAILS.format(2) in status["alarms"]
        assert KEPT.format("1 backend gets", "its", "because of 'keep 50%'") in status["alarms"]
        node("drain", THREE)  # 10.78.2.1 and 10.78.2.2 are left, of which half is up
        assert states(node)[THREE] == "drain, override, checks fail" and slots(node)[THREE] == 0
        said = node("undrain", THREE).stdout
        assert f"the checks of {THREE} fail (" in said and "gets new flows all the same, because of 'keep 50%'" in said
        assert slots(node)[THREE] > 5000  # at once: the command decides as the agent does
        until(lambda: health(node)[THREE].startswith("down for "))
        said = agent.said()
        assert f"{THREE} fails its checks, kept: connection refused" in said and f"{ONE} is down" in said
        assert f"{THREE} is down" not in said
    until(lambda: all_ok(node))
    assert node.json("status")["alarms"] == []


@pytest.mark.parametrize("keep", ["0%", "50%"])
def test_a_backup_is_better_than_a_dead_one(balancer, node, serve, keep):
    """Whatever `keep` says and the backends weigh; among backends without a backup a dead one is never better."""
    serve(CHECK, f"keep {keep}", weights={1: 1, 2: 9, 3: 4}, backups=(3,))
    node.run()
    until(lambda: all_ok(node))
    assert slots(node)[THREE] == 0
    with contextlib.ExitStack() as dead:
        dead.enter_context(killed_web(balancer, "backend2"))
        until(lambda: slots(node)[TWO] == 0)
        assert slots(node)[ONE] > 16000 and slots(node)[THREE] == 0 and states(node)[TWO] == "failing"
        assert FAILS.format(1) in node.json("status", status=2)["alarms"]
        dead.enter_context(killed_web(balancer, "backend1"))
        until(lambda: slots(node)[THREE] > 16000)
        assert (slots(node)[ONE], slots(node)[TWO]) == (0, 0)
        assert {one.split()[0] for one in (states(node)[ONE], states(node)[TWO])} <= {"failing", "down"}
        assert node.json("status", status=2)["services"][0]["kept"] == 0
        with crowd_of(balancer, 0, 1, 1, 0.05, 60) as crowd:
            results = crowd.results(newcomers=True)
        assert not failed(results), failed(results)
        assert {one["backend"] for one in results} == {"backend3"}
    until(lambda: all_ok(node) and slots(node)[THREE] == 0)


def exec_check(tmp_path):
    """Fails for those backends for which there is a file bad-ADDRESS, although they are well."""
    program = tmp_path / "check"
    program.write_text(f"#!/bin/sh\ntest ! -e {tmp_path}/bad-$WEIR_BACKEND\n")
    program.chmod(0o755)
    return f'check exec "{program}" every 300ms timeout 200ms rise 2 fall 2'


def test_a_wrong_check_empties_no_service(balancer, node, serve, tmp_path):
    """Where all fail, all get new flows again: one server alone could not carry them. The first that is well again
    is the only one."""
    check = exec_check(tmp_path)
    serve(check, "lost 1s")
    agent = node.run()
    until(lambda: all_ok(node))
    for one in ONE, TWO, THREE:
        (tmp_path / f"bad-{one}").touch()
        until(lambda bad=one: "the program exited with status 1" in health(node)[bad])
    until(lambda: min(slots(node).values()) > 5000)
    assert all(", kept: " in one for one in health(node).values()) and set(states(node).values()) == {"up"}
    status = node.json("status", status=2)
    assert status["services"][0]["kept"] == 3
    assert FAILS.format(3) in status["alarms"] and OPEN.format(3) in status["alarms"]
    until(lambda: all(one.startswith("down for ") for one in health(node).values()))  # after `lost`, too
    assert min(slots(node).values()) > 5000
    with crowd_of(balancer, 0, 1, 1, 0.05, 60) as crowd:
        results = crowd.results(newcomers=True)
    assert not failed(results) and {one["backend"] for one in results} == set(balancer.backends)
    agent.kill()  # packets do not know of it, nor does an apply
    serve(check, "lost 1s", "ramp 1s")
    assert min(slots(node).values()) > 5000
    agent = node.run()
    (tmp_path / f"bad-{TWO}").unlink()
    until(lambda: health(node)[TWO] == "ok")
    assert slots(node) == {ONE: 0, TWO: 16381, THREE: 0}
    assert {states(node)[ONE], states(node)[THREE]} <= {"failing", "down"}
    until(lambda: f"{TWO} is up again" in agent.said())
    assert f"{ONE} is down" in agent.said()


def test_drain_beside_failing_ones(balancer, node, serve, tmp_path):
    """The command prints the consequence, and its exit status shows it."""
    check = exec_check(tmp_path)
    serve(check)
    node.run()
    until(lambda: all_ok(node))
    for one in ONE, TWO:
        (tmp_path / f"bad-{one}").touch()
    until(lambda: slots(node) == {ONE: 0, TWO: 0, THREE: 16381})
    meant = (f"no backend of service 'web' that passes its checks is left: {ONE}, {TWO} get new flows although "
             "their checks fail")
    assert meant in node.fails(3, "drain", THREE, "--dry-run") and slots(node)[THREE] == 16381
    assert meant in node.fails(3, "drain", THREE)
    assert slots(node)[THREE] == 0 and min(slots(node)[ONE], slots(node)[TWO]) > 8000
    assert meant in node.fails(3, "drain", THREE, "--wait=1s")
    assert "no backend of service 'web' accepts new flows" not in node.fails(3, "weight", THREE, 0)
    assert "new flows all the same" in node("undrain", ONE).stdout
    node("undrain", THREE)
    assert slots(node) == {ONE: 0, TWO: 0, THREE: 16381}
    assert "it gets no new flows before they succeed" in node("undrain", ONE).stdout


def test_all_dead_in_both_rings(balancer, node, serve, tmp_path):
    """The ring of a trial and the one before open."""
    check = exec_check(tmp_path)
    serve(check)
    node.run()
    until(lambda: all_ok(node))
    serve(check, weights={1: 2}, options=["--confirm=4s", "--force"])
    for one in ONE, TWO, THREE:
        (tmp_path / f"bad-{one}").touch()
    until(lambda: all_fail(node))
    assert slots(node)[ONE] > 8000 and min(slots(node).values()) > 4000
    assert "trial" in node("status", check=False).stdout
    until(lambda: "trial" not in node("status", check=False).stdout)
    assert 5000 < min(slots(node).values()) and max(slots(node).values()) < 6000


def test_commands_win(balancer, node, serve):
    serve(CHECK, "lost 1s")
    node.run()
    until(lambda: all_ok(node))
    node("drain", TWO)
    with killed_web(balancer, "backend2"):
        until(lambda: health(node)[TWO].startswith("down for "))
        assert states(node)[TWO] == "drain, override, checks fail"  # its flows stay
        said = node("undrain", TWO).stdout
        assert f"{TWO} of web: down, weight 1\n" in said
        assert f"the checks of {TWO} fail (down for " in said and "it gets no new flows before they succeed" in said
        assert slots(node)[TWO] == 0
        node("backend", "down", TWO)
        node("backend", "up", TWO)
        assert states(node)[TWO] == "down"
        drains = pathlib.Path(node.state, "drains")
        assert not drains.exists() or TWO not in drains.read_text(encoding="ascii")
    until(lambda: all_ok(node))
    assert states(node)[TWO] == "up"


def test_a_restart_changes_nothing(balancer, node, serve):
    """An agent that is killed, or ended, leaves the states; the next one continues with them."""
    serve(CHECK, "lost 1h")
    agent = node.run()
    until(lambda: all_ok(node))
    with killed_web(balancer, "backend2"):
        until(lambda: states(node)[TWO] == "failing")
        mark = node.json("service", "web")["services"][0]["fingerprint"]
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            assert agent.stop(number) == (0 if number == signal.SIGTERM else -number)
            assert node.json("service", "web")["services"][0]["fingerprint"] == mark
            assert health(node)[TWO] == "not checked"
            agent = node.run()
            until(lambda: health(node)[TWO].startswith("failing for "))
            time.sleep(0.3)
            assert node.json("service", "web")["services"][0]["fingerprint"] == mark
            assert "fails its checks" not in agent.said() and "up again" not in agent.said()
        pathlib.Path(f"/run/weir/{node.name}/health").unlink()
        agent.stop(signal.SIGKILL)
        agent = node.run()  # without the file, the kernel tells
        until(lambda: health(node)[TWO].startswith("failing for "))
        assert node.json("service", "web")["services"][0]["fingerprint"] == mark
        assert "up again" not in agent.said()
    until(lambda: all_ok(node))


def test_applies_go_on_with_the_states(balancer, node, serve):
    serve(CHECK)
    node.run()
    until(lambda: all_ok(node))
    with killed_web(balancer, "backend2"):
        until(lambda: states(node)[TWO] == "failing")
        serve(CHECK, backends=(2, 3))
        assert states(node)[TWO] == "failing"
        serve(CHECK, backends=(1, 2, 3))
        until(lambda: health(node)[ONE] == "ok")
        assert states(node)[TWO] == "failing"
        serve()  # nothing checks them any more
        assert set(states(node).values()) == {"up"} and health(node)[TWO] == ""
        assert node.json("status")["alarms"] == []


def test_a_new_backend_gets_nothing_before_its_first_check(balancer, node, serve):
    """It is dead when an apply adds it: no connection fails. One good check is enough, whatever `rise` says."""
    check = 'check http "/name" port 80 every 300ms timeout 250ms rise 99 fall 2'
    serve(check, backends=(1, 3))
    agent = node.run()
    until(lambda: all_ok(node))
    with killed_web(balancer, "backend2"), crowd_of(balancer, 0, 1, 1, 0.01, 300) as crowd:
        serve(check)
        until(lambda: health(node)[TWO].endswith(": connection refused"))
        assert states(node)[TWO] == "failing" and slots(node)[TWO] == 0
        results = crowd.results(newcomers=True)
    assert len(results) >= 300 and not failed(results), failed(results)
    until(lambda: health(node)[TWO] == "ok", 8)
    assert slots(node)[TWO] > 5000
    until(lambda: f"{TWO} is up\n" in agent.said())


def stop_without_lock(agent):
    """A process that is stopped while it holds a lock keeps it: then it runs for a moment, and is stopped again."""
    def stopped():
        os.kill(agent.pid, signal.SIGSTOP)
        if locks(agent.pid) <= 1:  # its own, /run/weir/NAME/agent
            return True
        os.kill(agent.pid, signal.SIGCONT)
        return False

    until(stopped, 5)


def locks(pid):
    lines = pathlib.Path("/proc/locks").read_text().splitlines()
    return sum("->" not in line and line.split()[4] == str(pid) for line in lines)


@contextlib.contextmanager
def hung(agent):
    stop_without_lock(agent)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(agent.pid, signal.SIGCONT)


def waits(node, *backends):
    assert {states(node)[one] for one in backends} == {"waiting"}
    assert {health(node)[one] for one in backends} == {"not checked yet"}
    assert not any(slots(node)[one] for one in backends)


def test_a_hung_agent_while_all_wait(node, serve):
    """A new service gets no flows, which is an alarm before it is known that the agent hangs."""
    def alarms():
        return json.loads(node("-j", "status", check=False).stdout)["alarms"]

    node("attach", "net0")
    with hung(node.run()):
        serve(CHECK)
        waits(node, ONE, TWO, THREE)
        until(lambda: "service 'web': 3 backends get no new flows before a first check, which the agent does not make" in alarms(), 8)
    until(lambda: all_ok(node) and alarms() == [])


@pytest.mark.parametrize("how", ["command", "agent"])
def test_an_agent_that_dies_while_one_waits(balancer, node, serve, how):
    """The next command after the wait ends it, and so does the next agent, by a check."""
    serve(CHECK, backends=(1, 2))
    agent = node.run()
    until(lambda: all_ok(node))
    with hung(agent):
        serve(CHECK)
        waits(node, THREE)
        status = node.json("status", status=0)["services"][0]
        assert (status["up"], status["waiting"], status["drained"]) == (2, 1, 0)
        assert "1 not checked yet" in node("status").stdout
        agent.kill()
    assert states(node)[THREE] == "waiting" and health(node)[THREE] == "not checked"
    if how == "agent":
        node.run()
        until(lambda: all_ok(node))
    else:
        time.sleep(3.5)  # 3 s and `timeout`
        node("service", "--refresh")
        assert states(node)[THREE] == "up"
    assert slots(node)[THREE] > 5000 and balancer.answers(balancer.vip4)


def test_a_new_service_waits_three_seconds(balancer, node, serve, tmp_path):
    """Then its backends get flows as without checks. Those that an agent finds keep their flows."""
    nothing = tmp_path / "nothing.weir"
    nothing.write_text("interface net0\ndefault pass\n")
    node("apply", nothing)
    agent = node.run()
    with contextlib.ExitStack() as dead:
        for host in balancer.backends:
            dead.enter_context(silent(balancer, host))
        serve('check tcp port 80 every 20s timeout 20s', "lost 1s")
        began = time.monotonic()
        waits(node, ONE, TWO, THREE)
        assert node.json("status")["alarms"] == []
        until(lambda: min(slots(node).values()) > 5000)
        assert 2 < time.monotonic() - began < 6
        assert set(states(node).values()) == {"up"} and set(health(node).values()) == {"not checked yet"}
    agent.stop()
    node.run()
    assert set(states(node).values()) == {"up"} and min(slots(node).values()) > 5000
    node("apply", nothing)
    serve(CHECK)
    until(lambda: all_ok(node), 2.5)  # no wait where checks end sooner


def test_health_changes_both_rings_of_a_trial(balancer, node, serve):
    """After the trial the previous ring has what the checks have said meanwhile."""
    serve(CHECK)
    node.run()
    until(lambda: all_ok(node))
    serve(CHECK, weights={1: 2}, options=["--confirm=2s"])
    with killed_web(balancer, "backend2"):
        until(lambda: slots(node)[TWO] == 0)
        assert states(node)[TWO] == "failing" and "trial" in node("status", check=False).stdout
        until(lambda: "trial" not in node("status", check=False).stdout)
        assert node.backend(ONE)["weight"] == 1
        assert states(node)[TWO] == "failing" and slots(node)[TWO] == 0
        assert balancer.answers(balancer.vip4)
    until(lambda: all_ok(node))
    assert slots(node)[TWO] > 5000


@contextlib.contextmanager
def without_carrier(balancer):
    """Of net0 of the balancer. The router's end is down, which costs the router its routes."""
    ip, end = ["ip", "-n", balancer.netns("router")], ["dev", "balancer1"]
    routes = {family: run([*ip, family, "route", "show", *end]).stdout.splitlines() for family in ("-4", "-6")}
    run([*ip, "link", "set", *end, "down"])
    try:
        yield
    finally:
        run([*ip, "link", "set", *end, "up"])
        for family, lines in routes.items():
            for line in lines:
                run([*ip, family, "route", "replace", *line.split(), *end], check=False)


def test_a_dead_link(balancer, node, serve):
    """A device without carrier is a state, not evidence: its backends are down at once."""
    serve(CHECK)
    node.run()
    until(lambda: all_ok(node))
    with without_carrier(balancer):
        until(lambda: set(states(node).values()) == {"down"}, 1)
        until(lambda: all(one.endswith(": its link is dead") for one in health(node).values()), 1)
        time.sleep(0.5)  # checks that fail for it do not hide the reason
        assert all(one.endswith(": its link is dead") for one in health(node).values()), health(node)
    until(lambda: all_ok(node), 20)


MANY = "10.99.0.0/22"


@pytest.fixture(name="many")
def many_backends(balancer):
    """The web server of backend1 has a thousand more addresses."""
    at = ["ip", "-n", balancer.netns("backend1"), "route"]
    to = ["ip", "-n", balancer.netns("router"), "route"]
    run([*at, "add", "local", MANY, "dev", "lo"])
    run([*to, "add", MANY, "via", ONE, "dev", "backend1"], check=False)
    decap = [WEIR, "-N", balancer.netns("backend1"), "decap", "net0"]
    run([*decap, "--off"])  # it takes the addresses that the host has when it starts
    run([*decap, "--from", "10.78.0.0/16"])
    yield lambda count: [f"10.99.{n // 250}.{n % 250 + 1}" for n in range(count)]
    run([*to, "del", MANY])
    run([*at, "del", "local", MANY, "dev", "lo"])


def write_many(path, balancer, addresses, *lines):
    backends = "".join(f"\tbackend {address}\n" for address in addresses)
    inside = "".join(f"\t{line}\n" for line in lines)
    path.write_text(f'interface net0\nseed "lab"\nservice web {{\n\tvip {balancer.vip4}\n\tport 80\n\tmode ipip\n'
                    f"{inside}{backends}}}\n")


def cpu_s(agent):
    fields = pathlib.Path(f"/proc/{agent.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("keep, left", [("0%", 1), ("50%", 32)])
def test_one_survivor_of_64(balancer, node, many, tmp_path, keep, left):
    """All but one die at once: one rewrite of the ring."""
    addresses = many(64)
    path = tmp_path / "many.weir"
    write_many(path, balancer, addresses, 'check http "/name" every 500ms timeout 200ms rise 2 fall 2', f"keep {keep}")
    node("apply", path)
    node.run()
    until(lambda: all_ok(node))
    balancer.on("backend1", ["nft", "add", "table", "ip", "dead"])
    try:
        chain = "{ type filter hook prerouting priority -300; }"
        balancer.on("backend1", ["nft", "add", "chain", "ip", "dead", "in", chain])
        rule = f"ip daddr {MANY} ip daddr != {addresses[40]} drop"
        balancer.on("backend1", ["nft", "add", "rule", "ip", "dead", "in", *rule.split()])
        until(lambda: sum(one.startswith("failing") for one in health(node).values()) == 63)
        until(lambda: sum(count > 0 for count in slots(node).values()) == left, 2)
        assert slots(node)[addresses[40]] >= 16381 // left
        assert "checks fail for 63 of 64 backends" in node("status", check=False).stdout
    finally:
        balancer.on("backend1", ["nft", "delete", "table", "ip", "dead"])
    until(lambda: all_ok(node))


# The same checks in a loop of Python. Prints the seconds of processor time that one takes.
PLAIN = """
import socket, ssl, sys, time
kind, port = sys.argv[1:]
addresses = sys.stdin.read().split()
context = ssl._create_unverified_context()
began = time.process_time()
for address in addresses:
    with socket.create_connection((address, int(port))) as sock:
        if kind == "tcp":
            continue
        if kind == "https":
            sock = context.wrap_socket(sock)
        sock.sendall(b"GET /name HTTP/1.1\\r\\nHost: web\\r\\nConnection: close\\r\\n\\r\\n")
        while sock.recv(4096):
            pass
print((time.process_time() - began) / len(addresses))
"""


def plain_s(balancer, addresses, check):
    kind = check.split()[0]
    port = 443 if kind == "https" else 80
    argv = [sys.executable, "-c", PLAIN, kind, str(port)]
    return float(balancer.on("balancer1", argv, input="\n".join(addresses)).stdout)


@pytest.mark.parametrize("count, check, most", [
    (1000, "tcp", 4), (1000, 'http "/name"', 3), (1000, 'http "/name" via path', 4.5),
    (200, 'https "/name" port 443 insecure', 3),  # a handshake each: see docs/balancer.md
])
def test_a_thousand_backends(balancer, node, many, tmp_path, count, check, most):
    """A check costs at most that many times what a loop of system calls costs, at the same time on the same machine."""
    path, addresses = tmp_path / "many.weir", many(count)
    write_many(path, balancer, addresses, f"check {check} every 2s timeout 1s")
    node("apply", path)
    agent = node.run()
    until(lambda: all_ok(node), 30)
    plain = [plain_s(balancer, addresses, check)]
    used_s = 0
    for _ in range(2):
        before, began = cpu_s(agent), time.monotonic()
        time.sleep(5)
        used_s += (cpu_s(agent) - before) / (time.monotonic() - began) / 2
        plain.append(plain_s(balancer, addresses, check))
    each_s, loop_s = used_s * 2 / count, sum(plain) / len(plain)
    print(f"{count} by {check}: {used_s:.1%} of one core, {each_s / loop_s:.2f} of a plain loop")
    assert each_s < most * loop_s
    assert not {address: one for address, one in health(node).items() if one != "ok"}


def test_this_host_as_a_backend(balancer, node, tmp_path):
    """It is checked over lo, at the VIP. The other one is checked from an address whose answers are not balanced."""
    path = tmp_path / "here.weir"
    path.write_text(f'interface net0\nseed "lab"\nservice web {{\n\tvip {balancer.vip4}\n\tport any\n\tmode ipip\n'
                    f'\tbackend here\n\tbackend {TWO}\n\tcheck tcp port 80 every 300ms timeout 200ms fall 2\n}}\n')
    own = ["ip", "-n", balancer.netns("balancer1")]
    run([*own, "address", "add", f"{balancer.vip4}/32", "dev", "lo"])
    # The kernel would choose the VIP as the source.
    via = run([*own, "route", "get", TWO]).stdout.split(" via ")[1].split()[0]
    run([*own, "route", "add", f"{TWO}/32", "via", via, "dev", "net0", "src", balancer.vip4])
    try:
        node("apply", path)
        node.run()
        until(lambda: health(node).get("here", "").endswith(": connection refused"))
        until(lambda: health(node)[TWO] == "ok")
        listen = "import socket; s = socket.create_server(('', 80)); [s.accept() for _ in iter(int, 1)]"
        argv = ["nsenter", f"--net=/run/netns/{balancer.netns('balancer1')}", "--", "/usr/bin/python3", "-c", listen]
        with subprocess.Popen(argv) as server:
            try:
                until(lambda: health(node)["here"] == "ok")
            finally:
                server.kill()
        until(lambda: health(node)["here"].startswith("failing"))
    finally:
        run([*own, "route", "del", f"{TWO}/32", "via", via, "dev", "net0"])
        run([*own, "address", "del", f"{balancer.vip4}/32", "dev", "lo"])


def test_killed_agents_under_load(balancer, node, serve):
    """No connection notices, and the ring does not change, however often agents are killed and started."""
    serve(CHECK, "lost 1h")
    agent = node.run()
    until(lambda: all_ok(node))
    with killed_web(balancer, "backend2"):
        until(lambda: states(node)[TWO] == "failing")
        mark = node.service()["fingerprint"]
        with crowd_of(balancer, 0, 1, 1, 0.02, 600) as crowd:
            for number in range(25):
                agent.kill()
                agent = node.run()
                time.sleep(number * 0.02)  # at any point of its work
                assert node.service()["fingerprint"] == mark
            results = crowd.results(newcomers=True)
        assert not failed(results), failed(results)
        assert {one["backend"] for one in results} <= {"backend1", "backend3"}
    until(lambda: all_ok(node))
