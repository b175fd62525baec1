# SPDX-License-Identifier: GPL-2.0-only
"""weir top: rates are as the generator sends, whatever happens between two readings."""

import bisect
import contextlib
import datetime
import json
import re
import signal
import socket
import threading
import time

import pytest

from labnet import enter, plain, until

FAST = 0  # as fast as one process sends
SOURCE, OTHER = "198.51.100.7", "198.51.100.8"


def sent_by(statistics, device):
    """Packets that the device has given to its peer. statistics: an open /proc/net/dev."""
    statistics.seek(0)
    line = next(line for line in statistics if line.strip().startswith(f"{device}:"))
    return int(line.split(":")[1].split()[9])


class Generator(threading.Thread):
    """Sends a frame at a rate until the end, and keeps when the device had sent how many: at the highest rate queues are
    full, and lose some."""

    def __init__(self, pair, frame, rate):
        super().__init__(daemon=True)
        self.pair, self.frame, self.rate, self.ended = pair, bytes(frame), rate, False
        self.times, self.counts = [], []

    def run(self):
        turn, sent, start = 1 if self.rate else 200, 0, time.time()
        enter(self.pair.far_netns)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock, \
                open("/proc/thread-self/net/dev", encoding="ascii") as statistics:
            sock.bind((self.pair.far_device, 0))
            while not self.ended:
                for _ in range(turn):
                    sock.send(self.frame)
                sent += turn
                self.counts.append(sent_by(statistics, self.pair.far_device))
                self.times.append(time.time())
                if self.rate:
                    time.sleep(max(0, start + sent / self.rate - time.time()))

    def sent_until(self, when):
        return self.counts[max(0, bisect.bisect_right(self.times, when) - 1)]


@contextlib.contextmanager
def generator(pair, frame, rate):
    thread = Generator(pair, frame, rate)
    thread.start()
    try:
        yield thread
    finally:
        thread.ended = True
        thread.join()


def documents_of(process, timeout=30):
    output, _ = process.communicate(timeout=timeout)
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def total(document, name):
    return next(row for row in document["totals"] if row["total"] == name)


def mean(documents, name):
    """Packets per second over all documents, by their rates and spans."""
    spans = [document["span_us"] for document in documents]
    return sum(total(one, name)["packets_per_s"] * one["span_us"] for one in documents) / sum(spans)


def wall_s(document):
    return datetime.datetime.fromisoformat(document["time"]).timestamp()


@pytest.mark.parametrize("rate", [10, 1000, FAST])
def test_rates_are_those_of_the_generator(pair, on, rate):
    """Also of one that a busy machine makes uneven: what it has sent in the time of the documents is the truth."""
    on("block", SOURCE)
    with generator(pair, pair.udp(SOURCE), rate) as source:
        time.sleep(0.3)
        process = on.start("-j", "top", "-c", "8")
        time.sleep(1.5)
        process.send_signal(signal.SIGSTOP)
        time.sleep(3)
        process.send_signal(signal.SIGCONT)
        documents = documents_of(process)[:-1]
    assert len(documents) == 8 and max(one["span_us"] for one in documents) > 3e6
    since, until_s = wall_s(documents[0]) - documents[0]["span_us"] / 1e6, wall_s(documents[-1])
    assert sum(one["span_us"] for one in documents) / 1e6 == pytest.approx(until_s - since, abs=0.01)
    truth = (source.sent_until(until_s) - source.sent_until(since)) / (until_s - since)
    on_its_way = 1 / (until_s - since)  # at either end of the time
    assert mean(documents, "dropped") == pytest.approx(truth, rel=0.01, abs=2 * on_its_way)
    assert rate == 0 or truth == pytest.approx(rate, rel=0.1)
    rows = [row for one in documents for row in one["interfaces"] if row["verdict"] == "drop"]
    assert {(row["interface"], row["reason"]) for row in rows} == {("near0", "block-from")}
    # What the documents have counted is what the counters have counted: nothing is lost between two documents.
    moved = sum(round(total(one, "dropped")["packets_per_s"] * one["span_us"] / 1e6) for one in documents[1:])
    counted = total(documents[-1], "dropped")["packets"] - total(documents[0], "dropped")["packets"]
    assert moved == pytest.approx(counted, rel=0.001, abs=8)


def test_counters_are_those_of_metrics(pair, weir, tmp_path):
    path = tmp_path / "near.weir"
    path.write_text('interface near0\n"seven" drop from 198.51.100.7\n"eight" pass from 198.51.100.8\n')
    weir("apply", path)
    weir("block", "203.0.113.9", "--origin", "me")
    pair.send_from_far(*[pair.udp(SOURCE)] * 7, *[pair.udp(OTHER)] * 8, *[pair.udp("203.0.113.9")] * 9)
    until(lambda: not pair.free("203.0.113.9")[0])
    document = plain(json.loads(weir("-j", "top", "-c", "1", "--all").stdout.splitlines()[0]))
    metrics = weir("metrics").stdout
    for row in document["interfaces"]:
        if row["packets"]:
            labels = f'interface="{row["interface"]}",verdict="{row["verdict"]}",reason="{row["reason"]}"'
            assert re.search(rf'^weir_packets_total{{.*{labels}}} {row["packets"]}$', metrics, re.M), row
            assert re.search(rf'^weir_bytes_total{{.*{labels}}} {row["bytes"]}$', metrics, re.M), row
    assert {(row["rule"], row["action"], row["packets"]) for row in document["rules"]} == \
        {("seven", "drop", 7), ("eight", "pass", 8)}
    for row in document["rules"]:
        assert re.search(rf'^weir_rule_packets_total{{.*rule="{row["rule"]}"}} {row["packets"]}$', metrics, re.M), row
    assert [(row["origin"], row["verb"], row["packets"]) for row in document["origins"]] == [("me", "block", 10)]


def test_no_rate_of_what_was_counted_before(pair, weir, tmp_path):
    """Rules that are added, removed and named again, another policy, a detach, an attach: no rate above what was sent."""
    path = tmp_path / "near.weir"

    def apply(*rules):
        path.write_text("interface near0\n" + "".join(f"{rule}\n" for rule in rules))
        weir("apply", path)

    apply('"a" drop from 198.51.100.7')
    pair.send_from_far(*[pair.udp(SOURCE)] * 3000)
    process = weir.start("-j", "top", "--every", "100ms")
    time.sleep(0.5)
    apply('"b" drop from 198.51.100.8')
    time.sleep(0.7)
    apply('"b" drop from 198.51.100.8', '"a" drop from 198.51.100.7')
    time.sleep(0.7)
    weir("detach", "near0")
    weir("apply", path)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    documents = documents_of(process)
    assert process.returncode == 0 and documents[-1]["end"] and len(documents) > 8, documents[-1]
    rows = [row for one in documents[:-1] for key in ("totals", "interfaces", "rules") for row in one[key]]
    assert all(0 <= row["packets_per_s"] < 500 for row in rows), max(row["packets_per_s"] for row in rows)
    assert {row["rule"] for one in documents[:-1] for row in one["rules"]} <= {"a", "b"}


def test_rules_of_a_generation_whose_number_is_used_again(weir, tmp_path):
    """The end of a trial removes a generation, and the next apply has its number: all between two readings."""
    path = tmp_path / "near.weir"

    def apply(name, *options):
        path.write_text(f'interface near0\n"{name}" drop from 198.51.100.7\n')
        weir("apply", path, *options)

    apply("a")
    apply("b", "--confirm=1m")
    process = weir.start("-j", "top", "--all", "--every", "5s", "-c", "1")
    time.sleep(1)
    weir("rollback")
    apply("c")
    document = documents_of(process)[0]
    assert [row["rule"] for row in document["rules"]] == ["c"]


def test_patience_is_as_long_for_rare_readings(on):
    """A reading that meets a detach waits for the attach, although the last one was as long ago as the patience."""
    process = on.start("-j", "top", "--every", "4s", "-c", "1")
    time.sleep(1.5)
    on("detach")
    time.sleep(3)
    on("attach", "near0", "--max-entries", "1000")
    documents = documents_of(process)
    assert process.returncode == 0 and documents[-1]["end"], documents[-1]


def test_removed_instance_is_an_error(on):
    process = on.start("-j", "top", "--every", "100ms")
    time.sleep(0.5)
    on("detach")
    documents = documents_of(process)
    assert process.returncode == 1 and documents[-1]["error"]["text"]


def test_entries_and_owners_have_rates(pair, on):
    on("block", SOURCE, "--origin", "one")
    on("block", OTHER, "--origin", "two")
    with generator(pair, pair.udp(SOURCE), 100):
        time.sleep(0.2)
        documents = documents_of(on.start("-j", "top", "-c", "12"))[:-1]
    last = documents[-1]
    assert [one["entries_span_us"] > 0 for one in documents] == [False] * 9 + [True] * 3 or \
        9.5e6 < last["entries_span_us"] < 11.5e6
    assert [(row["address"], row["kind"]) for row in last["entries"]] == [(SOURCE, "block-from")]
    assert last["entries"][0]["packets_per_s"] == pytest.approx(100, rel=0.02)
    assert [(row["origin"], row["packets_per_s"]) for row in last["origins"]] == \
        [("one", last["entries"][0]["packets_per_s"])]


def test_rates_of_entries_after_a_standstill(pair, on):
    """While no packet meets an entry, the entries are not walked through; later packets belong to the time since."""
    on("block", SOURCE, "--origin", "one")
    process = on.start("-j", "top", "-c", "46")
    documents = []
    while len(documents) < 20 or len({one["entries_span_us"] for one in documents[-2:]}) == 1:  # until a look at entries
        documents.append(json.loads(process.stdout.readline()))
    quiet = len(documents)
    on("block", SOURCE, "--origin", "two")  # the same entry of the kernel
    with generator(pair, pair.udp(SOURCE), 100):
        documents += [json.loads(line) for line in process.stdout]
    spans = [(one["entries_span_us"], [(row["origin"], row["packets_per_s"]) for row in one["origins"]]) for one in documents[:-1]]
    assert all(9.5e6 < span < 12e6 for span, _ in spans[12:]), spans
    assert not any(owners for _, owners in spans[:quiet]), spans
    at, (span, first) = next((at, one) for at, one in enumerate(spans) if one[1])
    assert [origin for origin, _ in first] == ["one", "two"], spans
    packets = total(documents[at], "dropped")["packets"]
    assert packets > 100 and all(rate * span / 1e6 == pytest.approx(packets, rel=0.1) for _, rate in first), (packets, spans)


def test_text_is_a_table(pair, on):
    on("block", SOURCE)
    with generator(pair, pair.udp(SOURCE), 200):
        time.sleep(0.2)
        lines = on("top", "--every", "500ms").stdout.splitlines()
    assert lines[0].split() == ["TOTAL", "PACKETS/S", "BYTES/S"]
    drops = next(line.split() for line in lines if "block-from" in line)
    assert drops[:3] == ["near0", "block-from", "drop"] and 150 < int(drops[3]) < 250


@pytest.mark.parametrize("options, message", [
    (["--every", "99ms"], "--every '99ms' is not a time from 100ms to 1m (for example --every 500ms)"),
    (["--every", "61s"], "--every '61s' is not a time"), (["-c", "0"], "--count '0' is not a count"),
    (["--every", "x"], "--every 'x' is not a time"), (["near0"], "unexpected argument 'near0'")])
def test_wrong_options(on, options, message):
    assert message in on.fails(1, "top", *options)


def test_without_an_instance(weir):
    assert weir.name in weir.fails(1, "top")
