# SPDX-License-Identifier: GPL-2.0-only
"""The rates of the agent: /v1/live and /v1/history, for many clients, and for clients that do not read."""

import contextlib
import datetime
import json
import os
import pathlib
import selectors
import signal
import socket
import threading
import time

import pytest

from apiclient import Api, Client
from labnet import plain, run, until
from test_top import SOURCE, generator


@pytest.fixture(name="agent")
def agent_of(on):
    return on.run()


@pytest.fixture(name="api")
def api_of(on, agent):
    assert agent.pid
    return Api(on.name)


def tops(agent):
    """Processes of `weir top` of the agent."""
    children = pathlib.Path("/proc", str(agent.pid), "task", str(agent.pid), "children").read_text(encoding="ascii").split()
    found = []
    for pid in children:
        with contextlib.suppress(OSError):  # it has ended
            if b"top" in pathlib.Path("/proc", pid, "cmdline").read_bytes().split(b"\0"):
                found.append(int(pid))
    return found


def live(api, count):
    """The first documents that a new client gets."""
    client = Client(api.path)
    client.request("GET", "/v1/live")
    answer = client.getresponse()
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/x-ndjson"
    documents = [json.loads(answer.readline()) for _ in range(count)]
    client.close()
    return documents


def series_of(document, name):
    return next(one for one in document["series"] if one["series"] == name)


def part_of_history(on):
    return next(part for part in on.json("status")["agent"]["parts"] if part["name"] == "history")


def test_history_has_the_rates(pair, on, agent, api):
    on("block", SOURCE)
    with generator(pair, pair.udp(SOURCE), 200):
        time.sleep(8)
    status, document = api("GET", "/v1/history?span=5m")
    assert status == 200 and set(plain(document)) == {"interval_s", "end", "series"} and document["interval_s"] == 1
    drops = series_of(document, "totals/dropped")
    assert len(drops["packets_per_s"]) == len(drops["bytes_per_s"]) == 300
    assert drops == series_of(document, "interfaces/near0/block-from") | {"series": "totals/dropped"}
    measured = [value for value in drops["packets_per_s"] if value is not None]
    assert 6 <= len([value for value in measured if 150 < value < 250]) <= 9, measured
    assert drops["packets_per_s"][0] is None
    minutes = api("GET", "/v1/history?span=24h&series=totals/dropped%0Ainterfaces/near0/block-from")[1]
    assert [one["series"] for one in minutes["series"]] == ["totals/dropped", "interfaces/near0/block-from"]
    assert len(minutes["series"][0]["packets_per_s"]) == 1440 and minutes["interval_s"] == 60
    assert 20 < max(filter(None, minutes["series"][0]["packets_per_s"])) < 250
    coarse = api("GET", "/v1/history?span=24h")[1]
    assert coarse["interval_s"] == 300 and len(coarse["series"][0]["packets_per_s"]) == 288
    until(lambda: part_of_history(on)["series"] >= 4, 60)  # the agent writes its file from time to time
    part = part_of_history(on)
    assert part["kept"] and not part["problems"] and len(tops(agent)) == 1


@pytest.mark.parametrize("target, status, text", [
    ("/v1/history?span=1h", 400, "'span' of /v1/history must be 5m or 24h"),
    ("/v1/history?span", 400, "'span' of /v1/history must be 5m or 24h"),
    ("/v1/history?series", 400, "'series' of /v1/history must be names of series"),
    ("/v1/history?series=", 400, "'series' of /v1/history must be names of series"),
    ("/v1/history?series=rules/none", 404, "there is no series 'rules/none'"),
    ("/v1/history?top=3", 400, "/v1/history has no 'top'"),
    ("/v1/history?span=5m&span=24h", 400, "the query has 'span' twice"),
    ("/v1/history?series=a%00b", 400, "'series' of the query has a zero byte")])
def test_refused_questions(api, target, status, text):
    got, document = api("GET", target)
    assert (got, document["error"]["text"]) == (status, text)


def test_methods(api):
    for path in "/v1/live", "/v1/history":
        assert api("POST", path, {})[0] == 405


def test_live_begins_at_once_and_ends_with_the_client(api, agent, on):
    first = live(api, 2)
    begin = time.monotonic()
    second = live(api, 1)
    assert time.monotonic() - begin < 0.5 and second[0]["time"] == first[-1]["time"]
    assert all(plain(document)["instance"] == on.name and document["span_us"] > 0 for document in first)
    assert api("GET", "/v1/history?series=totals/passed")[0] == 200 and len(tops(agent)) == 1


def test_without_history_it_is_measured_for_readers(on):
    agent = on.run("--no-history")
    api = Api(on.name)
    status, document = api("GET", "/v1/history")
    assert status == 404 and document["error"]["text"] == "the agent keeps no history (weir run --no-history)"
    assert not tops(agent)
    assert len(live(api, 2)) == 2 and tops(agent)
    until(lambda: not tops(agent), what="the end of weir top")


def test_a_killed_top_begins_again_and_a_detach_ends_it(on, agent, api):
    until(lambda: tops(agent), what="weir top")
    first = tops(agent)
    os.kill(first[0], 9)
    until(lambda: tops(agent) and tops(agent) != first, what="another weir top")
    assert len(live(api, 1)) == 1
    on("detach")
    until(lambda: not tops(agent), what="the end of weir top")
    on("attach", "near0", "--max-entries", "1000")
    until(lambda: tops(agent), what="weir top")
    assert on.json("status")["alarms"] == []


def test_slow_readers_hold_up_nobody(agent, api):
    """Fifty clients, one that reads nothing: all others get each document of one weir top."""
    silent = socket.socket(socket.AF_UNIX)
    silent.connect(str(api.path))
    silent.sendall(b"GET /v1/live HTTP/1.1\r\nHost: x\r\n\r\n")
    got = []

    def read():
        got.append([document["time"] for document in live(api, 4)])

    threads = [threading.Thread(target=read) for _ in range(49)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(got) == 49
    common = set.intersection(*map(set, got))
    assert len(common) >= 3 and len(tops(agent)) == 1
    silent.close()


def posts_ms(api, number):
    """How long each of so many changes takes, sorted."""
    took = []
    for n in range(number):
        begin = time.monotonic()
        assert api("POST", "/v1/block", {"what": f"203.0.113.{n % 250}", "for": "1m"})[0] == 200
        took.append((time.monotonic() - begin) * 1000)
    return sorted(took)


@pytest.mark.alone
def test_readers_do_not_slow_changes(agent, api):
    """Fifty clients that read everything: the 99th percentile of a change is at most twice as high. By turns, as other
    work on the machine slows both."""
    without, among = [], []
    for _ in range(3):
        without.append(posts_ms(api, 100)[98])
        clients = []
        for _ in range(50):
            client = socket.socket(socket.AF_UNIX)
            client.connect(str(api.path))
            client.sendall(b"GET /v1/live HTTP/1.1\r\nHost: x\r\n\r\n")
            clients.append(client)
        with reading(clients):
            among.append(posts_ms(api, 100)[98])
    assert min(among) <= 2 * min(without), (without, among)
    assert agent.pid


@contextlib.contextmanager
def reading(clients):
    ended = threading.Event()

    def drain():
        with selectors.DefaultSelector() as ready:
            for client in clients:
                ready.register(client, selectors.EVENT_READ)
            while not ended.is_set():
                for key, _ in ready.select(timeout=0.2):
                    key.fileobj.recv(1 << 16)

    thread = threading.Thread(target=drain)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        for client in clients:
            client.close()


def rates_now(api, count):
    """The last values of the drops, without the present one."""
    document = api("GET", "/v1/history?series=totals/dropped")[1]
    return document["end"], document["series"][0]["packets_per_s"][-count:]


def test_seconds_are_those_of_the_reading(pair, on, agent, api):
    """An agent that was stopped receives four documents at once: each still belongs to its own second."""
    on("block", SOURCE)
    with generator(pair, pair.udp(SOURCE), 200):
        time.sleep(3)
        os.kill(agent.pid, signal.SIGSTOP)
        time.sleep(4)
        os.kill(agent.pid, signal.SIGCONT)
        time.sleep(1.5)
        _, rates = rates_now(api, 6)
    assert all(rate and 150 < rate < 250 for rate in rates), rates


CLOCK = r"""
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	static int (*real)(clockid_t, struct timespec *);

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	if (real(clock, ret))
		return -1;
	if (clock == CLOCK_REALTIME && !access(JUMPED, F_OK))
		ret->tv_sec -= 7200;
	return 0;
}
"""


def test_a_clock_that_jumps_changes_nothing(pair, on, tmp_path):
    """The wall clock of agent and top goes back by two hours, and forth again: no rate and no second changes."""
    source, library, jumped = tmp_path / "clock.c", tmp_path / "clock.so", tmp_path / "jumped"
    source.write_text(CLOCK)
    run(["gcc", "-D_GNU_SOURCE", f'-DJUMPED="{jumped}"', "-shared", "-fPIC", "-o", library, source])
    assert on.run(LD_PRELOAD=str(library)).pid
    api = Api(on.name)
    on("block", SOURCE)
    with generator(pair, pair.udp(SOURCE), 200):
        time.sleep(3)
        jumped.touch()
        time.sleep(3)
        early, _ = rates_now(api, 1)
        jumped.unlink()
        time.sleep(3)
        end, rates = rates_now(api, 8)
    assert all(rate and 150 < rate < 250 for rate in rates), rates
    ends = [datetime.datetime.fromisoformat(text).timestamp() for text in (early, end)]
    assert 7190 < ends[1] - ends[0] < 7210 and abs(ends[1] - time.time()) < 5
