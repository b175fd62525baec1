# SPDX-License-Identifier: GPL-2.0-only
"""The events that the agent reads for its clients: /v1/events."""

import contextlib
import json
import os
import pathlib
import threading
import time

import pytest

from apiclient import Api, Client
from labnet import until
from policylab import Policies, udp
from test_top import generator

BLOCKED = "192.0.2.201"
POLICY = '"seven" pass proto udp to port 7 log 1000/s'
LONG_S = 120  # also on a machine that is busy


@pytest.fixture(name="logs")
def logging_rule(on, tmp_path):
    """A rule that logs, and a function that sends packets with these source ports so slowly that each is logged."""
    Policies(on, tmp_path)(POLICY)

    def send(*ports):
        for port in ports:
            on.pair.send_from_far(udp(7, sport=port))
            time.sleep(0.03)

    return send


def watches(agent):
    """{kind: pid} of the processes of `weir watch` of the agent."""
    found = {}
    for pid in pathlib.Path("/proc", str(agent.pid), "task", str(agent.pid), "children").read_text(encoding="ascii").split():
        with contextlib.suppress(OSError):  # it has ended
            words = pathlib.Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
            if b"watch" in words:
                found[words[words.index(b"watch") + 1].decode()] = int(pid)
    return found


class Listener:
    """A client of /v1/events. It keeps its documents, unless it does not read."""

    def __init__(self, on, query="", reads=True):
        self.client, self.documents = Client(Api(on.name).path), []
        self.client.request("GET", f"/v1/events{query}")
        self.thread = threading.Thread(target=self.read, daemon=True)
        if reads:
            self.thread.start()

    def read(self):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed
            answer = self.client.getresponse()
            assert answer.status == 200 and answer.headers["Content-Type"] == "application/x-ndjson"
            for line in iter(answer.readline, b""):
                self.documents.append(json.loads(line))

    def events(self):
        return [document for document in list(self.documents) if "packet" in document]

    def ports(self):
        return [event["from_port"] for event in self.events()]


def part_of_events(on):
    return next(part for part in on.json("status")["agent"]["parts"] if part["name"] == "events")


def test_clients_get_the_same_events_without_a_process_each(on, logs):
    agent = on.run()
    until(lambda: set(watches(agent)) == {"logged"}, LONG_S, "weir watch logged")
    listeners = [Listener(on, "?logged") for _ in range(5)]
    until(lambda: logs(1) or all(one.ports() for one in listeners), LONG_S, "the first events")
    logs(*range(10, 20))
    for one in listeners:
        until(lambda: 19 in one.ports(), LONG_S, "the last event")  # pylint: disable=cell-var-from-loop
        assert one.ports()[-10:] == list(range(10, 20))
    assert set(watches(agent)) == {"logged"}
    assert [os.getpriority(os.PRIO_PROCESS, pid) for pid in watches(agent).values()] == [10]


def test_drops_are_read_while_a_client_asks(pair, on, logs):
    on("block", BLOCKED)
    agent = on.run()
    without, asks = Listener(on, "?logged"), Listener(on)
    until(lambda: pair.free(BLOCKED) == [False] and asks.events(), LONG_S, "a drop")
    assert set(watches(agent)) == {"logged", "drops"}
    assert asks.events()[0]["entry"] == BLOCKED and not asks.events()[0]["logged"]
    logs(7)
    until(lambda: 7 in without.ports() and any(event["logged"] for event in asks.events()), LONG_S, "a logged packet")
    assert without.ports() == [7]
    asks.client.sock.close()
    asks.client.close()
    asks.thread.join(1)
    until(lambda: set(watches(agent)) == {"logged"}, LONG_S, "the end of weir watch drops")


def test_kept_drops_and_kept_records(pair, on, logs):
    on("block", BLOCKED)
    logs(1, 2, 3)
    agent = on.run("--keep-drops")
    until(lambda: set(watches(agent)) == {"logged", "drops"}, LONG_S, "both")
    one = Listener(on)
    until(lambda: pair.free(BLOCKED) == [False] and one.events(), LONG_S, "a drop")
    logs(4)
    until(lambda: 4 in [event.get("from_port") for event in one.events()], LONG_S, "a record")
    status, text = Api(on.name)("GET", "/v1/events?since=1h&count=4")
    documents = [json.loads(line) for line in text.splitlines()]
    assert "block-from" in text and status == 200 and [one.get("from_port") for one in documents[:3]] == [1, 2, 3]
    assert len(documents) == 5 and documents[4] == {"schema": 1, "end": True}
    assert part_of_events(on)["drops"] and not part_of_events(on)["problems"]


def test_a_quiet_client_is_not_closed(on, logs):
    on.run()
    one = Listener(on, "?logged")
    time.sleep(23)  # longer than a client may take for a request, before its first event
    logs(2)
    until(lambda: 2 in one.ports(), LONG_S, "an event after a pause")
    assert one.thread.is_alive()


def test_a_killed_watch_begins_again_without_repeating(on, logs):
    agent = on.run()
    one = Listener(on, "?logged")
    until(lambda: logs(1) or one.ports(), LONG_S, "an event")
    first = watches(agent)["logged"]
    os.kill(first, 9)
    until(lambda: watches(agent).get("logged", first) != first, LONG_S, "another weir watch")
    logs(2)
    until(lambda: 2 in one.ports(), LONG_S, "an event of the second one")
    moments = [event["monotonic_us"] for event in one.events()]
    assert moments == sorted(set(moments)) and one.ports().count(2) == 1


def test_a_detach_ends_it_and_an_attach_begins(on, tmp_path):
    Policies(on, tmp_path)(POLICY)
    agent = on.run()
    until(lambda: set(watches(agent)) == {"logged"}, LONG_S, "weir watch")
    first = watches(agent)["logged"]
    on("detach")
    until(lambda: not watches(agent), LONG_S, "its end")
    on("attach", "near0")
    until(lambda: watches(agent).get("logged", first) != first, LONG_S, "another weir watch")


def test_a_silent_client_delays_nobody_and_learns_what_it_missed(pair, on, tmp_path):
    Policies(on, tmp_path)(POLICY)
    on.run()
    silent, honest = Listener(on, "?logged", reads=False), Listener(on, "?logged")
    with generator(pair, udp(7, sport=1), 2000):
        until(lambda: len(honest.events()) > 2000, LONG_S, "many events")
        silent.thread.start()
        until(lambda: any("packet" not in one for one in silent.documents) and "packet" in silent.documents[-1],
              LONG_S, "the number of missed events")
        seen = list(silent.documents)
        until(lambda: honest.events()[-1]["monotonic_us"] >= seen[-1]["monotonic_us"], LONG_S, "the same events")
    place = {event["monotonic_us"]: n for n, event in enumerate(honest.events())}
    expected = place[seen[0]["monotonic_us"]]
    for one in seen:
        if "packet" in one:
            assert place[one["monotonic_us"]] == expected
            expected += 1
        else:
            expected += one["missed"]
    assert not [one for one in honest.documents if "packet" not in one]
    assert 1000 <= next(n for n, one in enumerate(seen) if "packet" not in one) < 2000


@pytest.mark.parametrize("query", ["?count", "?count=0", "?count=x", "?since", "?since=5", "?logged=1", "?top=3", "?drops"])
def test_refused_questions(on, query):
    on.run()
    status, document = Api(on.name)("GET", f"/v1/events{query}")
    assert status == 400 and "/v1/events has no query but" in document["error"]["text"]
    assert Api(on.name)("POST", "/v1/events", {})[0] == 405
