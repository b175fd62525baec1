# SPDX-License-Identifier: GPL-2.0-only
"""weir watch: dropped packets as they happen."""

import json
import re
import signal
import threading
import time

import pytest
from scapy.layers.inet import TCP

from labnet import on_terminal, plain, until
from policylab import OTHER4, SOURCE4, SOURCE6, Policies, packet, ping, tcp, udp

BLOCKED4, BLOCKED6 = "192.0.2.201", "2001:db8::201"  # no other traffic from there


@pytest.fixture(name="drops")
def dropped_all_the_time(pair, on):
    """Frames that are dropped, repeatedly while the test watches."""
    on("block", BLOCKED4, BLOCKED6)
    done = threading.Event()

    def send():
        frames = [pair.udp(BLOCKED4), pair.udp(BLOCKED6, tags=(5,))]
        while not done.is_set():
            for frame in frames:
                pair.send_from_far(frame)
                time.sleep(0.02)  # the maximum is one event per jiffy and CPU

    sender = threading.Thread(target=send)
    sender.start()
    yield
    done.set()
    sender.join()


@pytest.mark.usefixtures("drops")
def test_watch_says_what_was_dropped_where_and_why(on):
    lines = on("watch", "--count", "6").stdout.splitlines()
    events = [line for line in lines if not line.startswith("  (")]
    assert len(events) == 6
    udp4 = f"near0 drop block-from: udp {BLOCKED4} port 53 > 10.77.0.1 port 9, 50 bytes"
    udp6 = f"near0 drop block-from: vlan 5 udp {BLOCKED6} port 53 > fd77::1 port 9, 74 bytes"
    assert {line.split(" ", 1)[1] for line in events} == {udp4, udp6}
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}", line.split(" ", 1)[0]) for line in events)


@pytest.mark.usefixtures("drops")
def test_long_lines_are_folded_on_a_terminal(on):
    """The packet moves to a second line; with --wide it stays."""
    text = on_terminal(on, "watch", "-c", "6", NO_COLOR="1")
    assert max(map(len, text.splitlines())) <= 80 and "\n    vlan 5 udp" in text
    wide = on_terminal(on, "watch", "-c", "6", "--wide", NO_COLOR="1")
    assert "\n    vlan" not in wide and "block-from: vlan 5 udp" in wide


@pytest.mark.usefixtures("drops")
def test_json_is_one_document_a_line(on):
    documents = [json.loads(line) for line in on("-j", "watch", "-c", "4").stdout.splitlines()]
    assert plain(documents[-1]) == {"end": True}
    assert len(documents) == 5
    for event in documents[:-1]:
        assert (event["interface"], event["verdict"]) == ("near0", "drop")
        assert event["reason"] == "block-from"
        assert event["length"] in (50, 74) and event["missed"] >= 0 and plain(event)


def watched(pair, on, count, *frames):
    """What -j watch prints about frames that are sent until there are that many events."""
    process = on.start("-j", "watch", "-c", count)
    time.sleep(0.3)
    while process.poll() is None:
        for frame in frames:
            pair.send_from_far(frame)
            time.sleep(0.02)
    events = [json.loads(line) for line in process.communicate()[0].splitlines()]
    assert all(event["schema"] == 1 for event in events) and events[-1]["end"]
    return events[:-1]


def test_json_has_fields_and_the_entry(pair, on):
    on("block", "192.0.2.0/24", BLOCKED6)
    on("block", "--force", "--to", "10.77.0.0/16", "10.77.0.0/24")
    seen = {event["entry"]: event for event in watched(
        pair, on, 12, pair.udp(BLOCKED4, tags=(5, 6)), pair.udp(BLOCKED6),
        packet(TCP(sport=4, dport=5, flags="SA"), src="198.51.100.9"))}
    assert seen.keys() == {"192.0.2.0/24", BLOCKED6, "10.77.0.0/24"}
    four, six, to = seen["192.0.2.0/24"], seen[BLOCKED6], seen["10.77.0.0/24"]
    assert (four["vlans"], four["ethertype"], four["from"]) == ([5, 6], "0x0800", BLOCKED4)
    assert (four["to"], four["protocol"], four["from_port"], four["to_port"]) == (pair.near4, "udp", 53, 9)
    assert not four["fragment"] and not four["logged"] and "rule" not in four and "flags" not in four
    assert (six["vlans"], six["ethertype"], six["from"], six["to"]) == ([], "0x86dd", BLOCKED6, pair.near6)
    assert (to["reason"], to["flags"]) == ("block-to", ["syn", "ack"])
    on("unblock", "192.0.2.0/24")
    on("block", BLOCKED4)  # changes made meanwhile apply
    assert {event["entry"] for event in watched(pair, on, 2, pair.udp(BLOCKED4))} == {BLOCKED4}


def test_a_drop_names_its_rule(pair, on, tmp_path):
    apply = Policies(on, tmp_path)
    apply('"first" drop proto icmp type echo-request\ndrop proto udp to port 9\n'
          '"third" pass proto udp to port 7 log 1000/s\nreject proto tcp')
    frames = ping(), udp(9), udp(7), tcp(80)
    seen = {event["rule"]: event for event in watched(pair, on, 12, *frames)}
    assert seen.keys() == {"first", "drop proto udp to port 9", "third"}  # the reject is answered
    assert (seen["first"]["type"], seen["first"]["code"], seen["first"]["logged"]) == (8, 0, False)
    assert (seen["third"]["verdict"], seen["third"]["logged"]) == ("pass", True)
    process = on.start("watch", "-c", "20")  # begins with the records of log that are kept
    time.sleep(0.3)
    while process.poll() is None:
        pair.send_from_far(frames[0])
        time.sleep(0.02)
    assert 'near0 drop rule-drop "first": icmp ' in process.communicate()[0]


def test_what_passes_is_not_shown(pair, on):
    process = on.start("watch")
    time.sleep(0.3)
    assert all(pair.free(*[BLOCKED4] * 20))
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=3)[0] == ""
    assert process.returncode == 0


def test_malformed_packets_are_shown_with_their_reason(pair, on):
    process = on.start("watch", "-c", "1")
    time.sleep(0.3)
    cut = bytes(pair.udp(BLOCKED4))[:30]
    while process.poll() is None:
        assert pair.passes(cut) == [False]
        time.sleep(0.05)
    assert "drop ip4-truncated" in process.communicate()[0]


@pytest.mark.usefixtures("drops")
def test_one_watcher_at_a_time_and_the_next_when_it_is_gone(on):
    first = on.start("watch")
    assert "drop" in first.stdout.readline()
    line = on.fails(3, "watch")
    assert str(first.pid) in line and "weir watch logged" in line
    first.kill()
    first.wait()
    assert len(on("watch", "-c", "1").stdout.splitlines()) >= 1


@pytest.mark.parametrize("command", [["watch", "logged"], ["-j", "watch", "logged"], ["changes", "-f"]])
def test_a_pipe_that_is_closed(on, command):
    """Its reader may end while there is nothing to print: an agent that was killed, or head."""
    process = on.start(*command)
    process.stdout.close()
    assert process.wait(timeout=20) in (0, -signal.SIGPIPE)


def documents(process):
    return [json.loads(line) for line in process.communicate()[0].splitlines()][:-1]


@pytest.fixture(name="logs")
def logging_rules(on, tmp_path):
    """Rules that log, and a function that sends frames so slowly that each is logged."""
    Policies(on, tmp_path)('"seven" pass proto udp to port 7 log 1000/s\n"eight" drop proto udp to port 8 log 1000/s')

    def send(*frames):
        for frame in frames:
            on.pair.send_from_far(frame)
            time.sleep(0.03)

    return send


def test_three_watchers_see_the_same_records(on, logs):
    watchers = [on.start("-j", "watch", "-c", 5), *(on.start("-j", "watch", "logged", "-c", 5) for _ in range(2))]
    sport = 20000
    while any(process.poll() is None for process in watchers):
        logs(udp(7, sport=sport))
        sport += 1
    seen = [[event["from_port"] for event in documents(process)] for process in watchers]
    assert len(seen[0]) == 5 and seen[0] == sorted(set(seen[0])) and seen == [seen[0]] * 3


def test_records_wait_for_a_watcher(on, logs):
    logs(*(udp(7, sport=20000 + n) for n in range(4)))
    for _ in range(2):  # any number of readers
        seen = documents(on.start("-j", "watch", "-c", 4))
        assert [(event["from_port"], event["missed"], event["rule"]) for event in seen] == [
            (20000 + n, 0, "seven") for n in range(4)]
    later = on.start("-j", "watch", "--since", "0s", "-c", 1)
    time.sleep(0.3)
    while later.poll() is None:
        logs(udp(7, sport=30000))
    assert [event["from_port"] for event in documents(later)] == [30000]
    assert [event["from_port"] for event in documents(on.start("-j", "watch", "--since", "1h", "-c", 1))] == [20000]


@pytest.mark.parametrize("agent", [False, True])
@pytest.mark.parametrize("condition, expected", [
    ("from 198.51.100.0/24", [1, 4]), ("not from 198.51.100.0/24", [2, 3]), ("from 2001:db8::/32", [3]),
    ("to 0.0.0.0/0", [1, 2, 4]), ("not to fd77::1", [1, 2, 4]), ("rule eight", [4]), ("not rule eight", [1, 2, 3]),
    ("reason rule-drop", [4]), ("not reason rule-drop from 203.0.113.9", [2]), ("interface near0", [1, 2, 3, 4]),
    ("not interface near0", []), ("interface near", []), ("not not logged rule seven", [1, 2, 3]), ("not drops", [1, 2, 3, 4]),
    ("drops", []),
])
def test_conditions(on, logs, condition, expected, agent):
    if agent:
        on.run()
    logs(udp(7, sport=1, src=SOURCE4), udp(7, sport=2, src=OTHER4), udp(7, sport=3, src=SOURCE6), udp(8, sport=4, src=SOURCE4))
    process = on.start("-j", "watch", *condition.split())
    seen = [json.loads(process.stdout.readline())["from_port"] for _ in expected]
    time.sleep(0.5)  # for others, which it must not show
    process.send_signal(signal.SIGINT)
    assert seen + [event["from_port"] for event in documents(process)] == expected


def seen_by(on, *words):
    """Text without times, and documents, of a watch that ends after some events."""
    text = [line.split(" ", 1)[1] if line[0].isdigit() else line for line in on("watch", *words).stdout.splitlines()]
    return text, [plain(json.loads(line)) for line in on("-j", "watch", *words).stdout.splitlines()]


def test_the_agent_changes_neither_text_nor_documents(on, logs):
    logs(udp(7, sport=1, src=SOURCE4), udp(8, sport=2, src=OTHER4), udp(7, sport=3, src=SOURCE6), udp(8, sport=4, src=SOURCE4))
    before = [seen_by(on, "-c", 4), seen_by(on, "rule", "eight", "-c", "2"), seen_by(on, "logged", "--since", "1h", "-c", "3")]
    on.run()
    until(lambda: len(on("watch", "-c", 4).stdout.splitlines()) == 4, 60, "the records")
    assert [seen_by(on, "-c", 4), seen_by(on, "rule", "eight", "-c", "2"), seen_by(on, "logged", "--since", "1h", "-c", "3")] == before
    assert before[0][0][1].startswith('near0 drop rule-drop "eight": udp ') and before[1][1][0]["from_port"] == 2


@pytest.mark.usefixtures("drops")
def test_several_see_the_same_drops_through_the_agent(on):
    on.run()
    watchers = [on.start("-j", "watch", "drops", "-c", 60) for _ in range(3)]
    seen = [{event["monotonic_us"]: event["entry"] for event in documents(process)} for process in watchers]
    common = seen[0].keys() & seen[1].keys() & seen[2].keys()
    assert len(common) > 20 and all(len(one) == 60 for one in seen)
    for one in seen:  # between the first and the last of all, each has each
        assert {key for key in one if min(common) <= key <= max(common)} == common
    assert {one["entry"] for one in map(json.loads, on("-j", "watch", "-c", 9).stdout.splitlines()[:-1])} == {BLOCKED4, BLOCKED6}


@pytest.mark.usefixtures("drops")
def test_drops_of_before_with_since(on):
    on.run("--keep-drops")
    time.sleep(1)
    first = time.monotonic()
    early = json.loads(on("-j", "watch", "--since", "1h", "-c", 1).stdout.splitlines()[0])
    assert early["reason"] == "block-from" and early["monotonic_us"] < first * 1e6
    first = time.monotonic()
    assert json.loads(on("-j", "watch", "-c", 1).stdout.splitlines()[0])["monotonic_us"] > first * 1e6


@pytest.mark.usefixtures("drops")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_continues_without_the_agent_and_repeats_nothing(on, logs, number):
    logs(udp(7, sport=1))
    agent = on.run()
    process = on.start("-j", "watch")
    lines = []
    threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True).start()
    until(lambda: any("block-from" in line for line in lines) and any('"seven"' in line for line in lines), 60, "events")
    agent.stop(number)
    until(lambda: any("reads events itself" in line for line in lines), 60, "the end of the agent")
    count = len(lines)
    logs(udp(7, sport=2))
    until(lambda: any("block-from" in line for line in lines[count:]) and any('"from_port":2' in line for line in lines), 60, "more events")
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0
    moments = [json.loads(line)["monotonic_us"] for line in lines if "monotonic_us" in line]
    assert len(moments) == len(set(moments)) and len([line for line in lines if '"from_port":1,' in line]) == 1


@pytest.mark.usefixtures("drops")
def test_one_of_two_continues_without_the_agent(on):
    """And the other one ends, with the reason."""
    agent = on.run()
    both = [on.start("watch") for _ in range(2)]
    lines = {process: [] for process in both}
    for process in both:
        threading.Thread(target=lambda one=process: lines[one].extend(one.stdout), daemon=True).start()
    until(lambda: all(any("block-from" in line for line in lines[one]) for one in both), 60, "events")
    agent.stop()
    until(lambda: any(one.poll() is not None for one in both), 30, "the end of one")
    other, reader = sorted(both, key=lambda one: one.poll() is None)
    assert reader.poll() is None and other.returncode == 3
    until(lambda: any("weir watch logged" in line for line in lines[other]), 10, "the hint")
    assert any("reads events itself" in line for line in lines[reader])
    assert not any("reads events itself" in line for line in lines[other])
    reader.send_signal(signal.SIGINT)
    assert reader.wait(10) == 0


@pytest.mark.usefixtures("drops")
def test_an_agent_that_cannot_read_drops_is_told(on):
    """Another process has the ring."""
    first = on.start("watch")
    assert "drop" in first.stdout.readline()
    on.run()
    second = on.start("watch")
    assert "drops are not read: " in second.stdout.readline()
    first.kill()
    assert any("block-from" in second.stdout.readline() for _ in range(20))


def test_an_agent_that_hangs(on):
    agent = on.run()
    agent.send(signal.SIGSTOP)
    try:
        assert "the agent does not answer" in on.fails(2, "watch", "-c", 1)
    finally:
        agent.send(signal.SIGCONT)


@pytest.mark.parametrize("words, message", [
    ("fron 192.0.2.1", "did you mean 'from'?"), ("from", "missing value after 'from'"), ("from near0", "'near0'"),
    ("reason blokc-from", "did you mean 'block-from'?"), ("reason x", "no reason has the name 'x'"),
    ("not", "missing condition after 'not'"), ("drops logged", "exclude both"), ("not drops not logged", "exclude both"),
    ("--since 5", "--since '5'"), ("--since x", "'x' is not a time"), ("--out logged", "--out"), ("--out --since 5m", "--out"),
])
def test_conditions_that_are_none(on, words, message):
    assert message in on.fails(1, "watch", *words.split())


@pytest.mark.parametrize("count", ["0", "x", "-1", "1.5", ""])
def test_counts_that_are_none(on, count):
    assert "--count" in on.fails(1, "watch", f"--count={count}")
