# SPDX-License-Identifier: GPL-2.0-only
"""Many events: each reader sees the same ones, or reports how many it missed."""

import json
import signal
import threading
import time

import pytest

from labnet import until
from policylab import Policies, udp
from test_event_log import Journal
from test_events import LONG_S
from test_page import Page
from test_top import generator
from test_top_by import flood

RATE = 100_000  # drops per second; the highest of the lab may be lower
KEPT, HOUR = 1024, 3600
BLOCKED = "192.0.2.201"
POLICY = '"seven" pass proto udp to port 7 log 1000/s'


class Reader:
    """A running `weir -j watch`. It can be stopped for a while."""

    def __init__(self, on):
        self.process, self.documents = on.start("-j", "watch", "--since", "0s"), []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.documents.append(json.loads(line))

    def events(self):
        return [one for one in list(self.documents) if "packet" in one]


def key_of(event):
    return event["monotonic_us"], event["packet"], event["missed"]


def compared(truth, documents):
    """Follows the documents of a reader in those of one that missed nothing. Returns how many it reports as missed."""
    place = {key_of(event): n for n, event in enumerate(truth)}
    assert len(place) == len(truth)
    expected = place[key_of(next(one for one in documents if "packet" in one))]
    missed = 0
    for one in documents:
        if "packet" in one:
            assert place[key_of(one)] == expected
            expected += 1
        elif "missed" in one:
            expected += one["missed"]
            missed += one["missed"]
    return missed


@pytest.mark.alone
def test_readers_of_a_flood_see_the_same_events(pair, on, tmp_path):
    Policies(on, tmp_path)(POLICY)
    on("block", BLOCKED)
    journal, page = Journal(tmp_path / "journal"), Page(on)
    on.run("--events", "journal", WEIR_JOURNAL=journal.path)
    readers, live, done = [Reader(on) for _ in range(3)], [], threading.Event()

    def read_page():
        while not done.is_set():
            live.extend(page.live(4, "/v1/live?state"))

    threading.Thread(target=read_page, daemon=True).start()
    with flood(pair, pair.udp(BLOCKED), RATE), generator(pair, udp(7, sport=1), 50):
        until(lambda: all(len(one.events()) > 500 for one in readers) and journal.ports(), LONG_S, "events")
        readers[2].process.send_signal(signal.SIGSTOP)
        before, start = dropped(on), time.monotonic()
        time.sleep(8)
        rate = (dropped(on) - before) / (time.monotonic() - start)
        readers[2].process.send_signal(signal.SIGCONT)
        until(lambda: any("packet" not in one for one in readers[2].documents), LONG_S, "the number of missed events")
        time.sleep(1)
    done.set()
    time.sleep(1)
    missed = [compared(max((one.events() for one in readers[:2]), key=len), list(one.documents)) for one in readers]
    logged = [event["monotonic_us"] for event in readers[0].events() if event["logged"]]
    entries = [int(one["WEIR_MONOTONIC_US"][0]) for one in journal.entries if "WEIR_FROM_PORT" in one]
    common = [one for one in entries if logged[0] <= one <= logged[-1]]
    print(f"\n{rate:.0f} drops/s: {[len(one.events()) for one in readers]} events, missed {missed}, {len(common)} in the journal")
    assert missed[:2] == [0, 0] and missed[2] > 0
    assert len(common) > 100 and common == [one for one in logged if entries[0] <= one <= entries[-1]]
    assert rate > 20_000 and max(total["packets_per_s"] for document in live if "span_us" in document
                                 for total in document["totals"] if total["total"] == "dropped") > 20_000
    assert any(document.get("events") for document in live)


def dropped(on):
    return next(one["packets"] for one in on.json("stats")["counters"] if one["reason"] == "block-from")


def test_an_hour_of_records_without_a_reader(on, tmp_path):
    """As many as an hour of `log 1/s`, in seconds: the last ones remain, in order, and the number of the others."""
    Policies(on, tmp_path)(POLICY)
    for port in range(1, HOUR + 1):
        on.pair.send_from_far(udp(7, sport=port))
        time.sleep(0.0015)  # two in a tick of the clock are one record
    shown = [one["from_port"] for one in on.json("page", "--document")["events"]]  # which is no reader
    lost = kept([on.start("-j", "watch", "logged", "-c", KEPT) for _ in range(2)])
    events = {one["event"]: one["times"] for one in on.json("stats", "--all")["events"]}
    assert len(shown) == 12 and shown[-1] == HOUR and events["log-lost"] == lost
    assert HOUR * 0.9 < lost + KEPT <= HOUR
    on.run()
    until(lambda: len(on("watch", "-c", 1).stdout.splitlines()) == 2, LONG_S, "the records")
    assert kept([on.start("-j", "watch", "-c", KEPT) for _ in range(2)]) == lost  # through the agent


def kept(processes):
    """Checks that each has printed the last records. Returns how many others it reports."""
    seen = [[json.loads(line) for line in process.communicate(timeout=60)[0].splitlines()][:-1] for process in processes]
    ports = [[one["from_port"] for one in events] for events in seen]
    assert ports[0] == ports[1] == sorted(set(ports[0])) and len(ports[0]) == KEPT and ports[0][-1] == HOUR
    assert HOUR - ports[0][0] < KEPT * 1.1
    lost = [[one["missed"] for one in events] for events in seen]
    assert lost[0] == lost[1] and not any(lost[0][1:])
    return lost[0][0]
