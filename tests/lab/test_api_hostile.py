# SPDX-License-Identifier: GPL-2.0-only
"""Clients of the agent that are slow, huge, malformed, gone, or thousands: the others are answered, and memory stays.

The agent and its commands run with the sanitizers.
"""
import contextlib
import os
import pathlib
import socket
import time

import pytest
from apiclient import Api, Client

from labnet import BUILD, Agent, socket_in, until

pytestmark = pytest.mark.usefixtures("many_descriptors")

BLOCKED = "203.0.113.10"
PORT = 9117
SOCKET_CLIENTS, ADDRESS_CLIENTS = 1024, 256  # that the agent bounds
HEADERS_MAX, JSON_MAX, BODY_MAX = 8192, 256 << 10, 16 << 20
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(name="agent")
def sanitized_agent(on):
    """It ends well, and without a word of the sanitizers."""
    argv = on.argv("run", "--metrics", f"127.0.0.1:{PORT}")
    agent = Agent([str(BUILD / "asan/weir"), *argv[1:]], {"ASAN_OPTIONS": "detect_leaks=1"})
    on.started.append(agent.process)
    agent.wait_for("READY=1", 40)
    yield agent
    assert agent.process.poll() is None, agent.said()
    assert agent.stop() == 0, agent.said()
    assert "Sanitizer" not in agent.said() and "runtime error" not in agent.said(), agent.said()


@pytest.fixture(name="api")
def api_of(on, agent):
    assert agent.pid
    return Api(on.name)


@pytest.fixture(name="crowd")
def clients_of_the_test():
    """crowd(COUNT, CONNECT): as many connected sockets, closed after the test."""
    with contextlib.ExitStack() as stack:
        yield lambda count, connect: [stack.enter_context(connect()) for _ in range(count)]


@pytest.fixture(name="on_socket")
def socket_connector(api):
    def connect():
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(str(api.path))  # waits for its turn; with a timeout it would not
        sock.settimeout(30)
        return sock
    return connect


@pytest.fixture(name="on_address")
def address_connector(on, agent):
    assert agent.pid

    def connect(buffer=0):
        sock = socket_in(on.pair.near_netns, socket.AF_INET, socket.SOCK_STREAM)
        sock.settimeout(30)
        if buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sock.connect(("127.0.0.1", PORT))
        return sock
    return connect


def send(sock, data):
    with contextlib.suppress(OSError):  # it was closed
        sock.sendall(data)


def read(sock):
    """All until the other side closes; None: it was reset."""
    got = b""
    with contextlib.suppress(OSError):
        while more := sock.recv(65536):
            got += more
    return got


def is_closed(sock):
    sock.setblocking(False)
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        sock.settimeout(30)


def answers_soon(api, seconds=8):
    """An honest client, which does not wait until others are left for their silence, ten seconds."""
    begin = time.monotonic()
    assert api("GET", "/v1/overlay")[0] == 200
    assert time.monotonic() - begin < seconds


def test_thousands(agent, api, crowd, on_socket):
    """Those who have been silent for longest leave for new ones."""
    silent = crowd(3000, on_socket)
    answers_soon(api)
    assert agent.descriptors() < SOCKET_CLIENTS + 100
    until(lambda: sum(map(is_closed, silent)) >= 3000 - SOCKET_CLIENTS, what="the end of the others")
    assert not is_closed(silent[-1]) and is_closed(silent[0])
    send(silent[-1], b"GET /v1/overlay HTTP/1.1\r\nHost: x\r\n\r\n")
    assert silent[-1].recv(12) == b"HTTP/1.1 200"
    until(lambda: any("too many clients on the socket" in one for one in api("GET", "/v1/status")[1]["alarms"]), what="the alarm")
    for sock in silent:
        sock.close()
    until(lambda: agent.descriptors() < 60, what="the end of their descriptors")
    until(lambda: api("GET", "/v1/status")[1]["alarms"] == [], 20, "the end of the alarm")


def test_drip(agent, api, crowd, on_socket, on_address):
    """A byte at a time: others are answered all the while, and none of the slow ones stays."""
    slow = crowd(1000, on_socket)
    slower = crowd(200, on_address)
    for turn in range(24):
        for sock in slow + slower:
            send(sock, b"GET /v1/overlay?what="[turn % 20:][:1])
        if not turn % 4:
            answers_soon(api)
        time.sleep(0.4)
    time.sleep(1)
    assert all(map(is_closed, slower)) and not is_closed(slow[-1])
    for sock in slow:
        sock.close()
    until(lambda: agent.descriptors() < 60, what="the end of their descriptors")


JUNK = [
    b"\0" * 100000, b"GET " + b"a" * 100000, b"\r\n" * 50000, b"GET / HTTP/9.9\r\n\r\n", b"GET\r\n\r\n", b"GET  HTTP/1.1\r\n\r\n",
    b"GET http:// HTTP/1.1\r\n\r\n", b"GET * HTTP/1.1\r\n\r\n", b"GET //[ HTTP/1.1\r\n\r\n", b"CONNECT x:1 HTTP/1.1\r\n\r\n",
    b"GET /v1/status HTTP/1.1\r\n" + b"X: y\r\n" * 5000, b"GET /v1/status HTTP/1.1\r\n: y\r\nnothing\r\n\r\n",
    b"GET /v1/overlay?what=%ff&%fe=%00&&=&%zz=%9 HTTP/1.1\r\n\r\n",
    b"POST /v1/block HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n{", b"POST /v1/block HTTP/1.1\r\nContent-Length: -1\r\n\r\n{",
    b"POST /v1/block HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", b"POST /v1/batch HTTP/1.1\r\nContent-Length: 5\r\n\r\nbl",
    b"POST /v1/batch HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"POST /v1/batch HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", b"POST /v1/batch HTTP/1.1\r\nExpect: nothing\r\n\r\n",
    b"POST /v1/block HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100000,
    b"DELETE /v1/status HTTP/1.1\r\n\r\n", b"HEAD /metrics HTTP/1.0\r\n\r\n",
]


def test_malformed(on, agent, api, crowd, on_socket, on_address):
    for junk in JUNK:
        for connect in on_socket, on_address:
            for sock in crowd(3, connect):
                send(sock, junk)
                send(sock, junk)
        answers_soon(api)
        assert agent.process.poll() is None, junk[:80]
    assert on.entries() == {}


def test_huge(agent, api, crowd, on_socket):
    """Bodies beyond their limits are refused; a chunk without an end fills no memory."""
    assert api("POST", "/v1/block", b'{"what": "' + b"1" * JSON_MAX + b'"}')[0] == 400
    sock, = crowd(1, on_socket)
    send(sock, b"POST /v1/batch HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (BODY_MAX + 1))
    assert sock.recv(12) == b"HTTP/1.1 413"
    status, document = api("POST", "/v1/batch", b"block 203.0.113.10\n" + (b"#" * 999 + b"\n") * (BODY_MAX // 1001))
    assert status == 200, document
    assert agent.rss_kb() < 600_000  # with the memory that the sanitizer does not give back


def test_endless_chunk(agent, api, crowd, on_address):
    before = agent.rss_kb()
    for sock in crowd(20, on_address):
        send(sock, b"POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        sock.settimeout(0.3)
        send(sock, b"0" * (32 << 20))
    answers_soon(api)
    assert agent.rss_kb() < before + 50_000


def test_pipelined(api, crowd, on_socket, on_address):
    for connect, count in (on_socket, 20), (on_address, 200):
        sock, = crowd(1, connect)
        send(sock, GET * (count - 1) + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert read(sock).count(b"HTTP/1.1 200") == count
    answers_soon(api)


def test_gone_before_their_turn(on, api, crowd, on_socket):
    """Their commands are not run."""
    for sock in crowd(400, on_socket):
        send(sock, b"GET /v1/rules HTTP/1.1\r\nHost: x\r\n\r\n")
        sock.close()
    answers_soon(api)
    assert on.json("status")["agent"]["running"]


@pytest.mark.parametrize("query, after", [("?count=1", "overlay"), ("?count=1", "close"), ("", "close")])
def test_streams_that_end(pair, on, agent, api, query, after):
    """By their number of events, or by the client; the connection is used again, or not."""
    on("block", BLOCKED)
    for _ in range(3):
        client = Client(api.path)
        client.request("GET", f"/v1/events{query}")
        until(lambda: pair.free(BLOCKED) and agent_has_event(client), what="an event")
        if query:
            assert client.getresponse().read().count(b"\n") == 2  # the event and the end
        if after == "overlay":
            client.request("GET", "/v1/overlay")
            assert client.getresponse().read()
        client.close()
        until(lambda: pair.free(BLOCKED) and agent.descriptors() < 40, what="the end of its descriptors")
    answers_soon(api)


def agent_has_event(client):
    client.sock.settimeout(0.5)
    try:
        return b'"packet"' in client.sock.recv(4096, socket.MSG_PEEK)
    except TimeoutError:
        return False
    finally:
        client.sock.settimeout(30)


def test_metrics_under_attack(agent, crowd, on_address, on):
    """Many at once cost one command a second; slow readers and silent clients leave; an honest one is answered."""
    slow = crowd(ADDRESS_CLIENTS, lambda: on_address(buffer=2048))
    for sock in slow:
        send(sock, GET * 20)
    idle = crowd(ADDRESS_CLIENTS, on_address)
    for _ in range(5):
        begin = time.monotonic()
        sock, = crowd(1, on_address)
        send(sock, GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert b"weir_build_info{" in read(sock)
        assert time.monotonic() - begin < 8
    assert agent.descriptors() < ADDRESS_CLIENTS + 100
    assert sum(map(is_closed, idle)) or any(map(is_closed, slow))
    commands = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")
                if os.path.exists(path) and on.name.encode() in path.read_bytes() and b"metrics\0" == path.read_bytes()[-8:]]
    assert len(commands) <= 1
    until(lambda: agent.descriptors() < 60, 40, "the end of their descriptors")
