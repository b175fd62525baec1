# SPDX-License-Identifier: GPL-2.0-only
"""weir run --events: logged packets and changes in the journal, on standard error, in a file."""

import array
import contextlib
import json
import os
import pathlib
import signal
import socket
import stat
import struct
import subprocess
import threading
import time

import pytest

from apiclient import Api, Client
from labnet import run, until
from policylab import Policies, udp
from test_events import LONG_S, POLICY, Listener, watches
from test_top import generator

BLOCKED = "203.0.113.9"
HOSTILE = "x\x1b[31m\ny\u202e\"}"


def entry_of(data):
    """The fields of an entry: {name: [value, …]}."""
    fields = {}
    while data:
        line, _, rest = data.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:  # the binary form
            (length,) = struct.unpack("<Q", rest[:8])
            value, rest = rest[8:8 + length], rest[8 + length:]
            assert rest[:1] == b"\n"
            rest = rest[1:]
        fields.setdefault(name.decode("ascii"), []).append(value.decode())
        data = rest
    return fields


class Journal:
    """A socket in place of the journal's; it keeps the entries."""

    def __init__(self, path):
        self.path, self.entries, self.files = str(path), [], 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        descriptors = array.array("i", [0])
        while True:
            try:
                data, ancillary, _, _ = self.socket.recvmsg(1 << 20, socket.CMSG_SPACE(descriptors.itemsize))
            except OSError:
                return
            for _, _, value in ancillary:  # a file in memory
                descriptors.frombytes(value)
                with open(descriptors[-1], "rb") as file:
                    file.seek(0)
                    data = file.read()
                self.files += 1
            self.entries.append(entry_of(data))

    def ports(self):
        return [int(one["WEIR_FROM_PORT"][0]) for one in list(self.entries) if "WEIR_FROM_PORT" in one]


@pytest.fixture(name="journal")
def journal_of(tmp_path):
    journal = Journal(tmp_path / "journal")
    yield journal
    journal.socket.shutdown(socket.SHUT_RDWR)
    journal.socket.close()


@pytest.fixture(name="logs")
def logging_rule(on, tmp_path):
    """A rule that logs, and a function that sends packets with these source ports."""
    Policies(on, tmp_path)(POLICY)

    def send(*ports):
        for port in ports:
            on.pair.send_from_far(udp(7, sport=port))
            time.sleep(0.03)

    return send


def ready(agent):
    """Waits until the agent reads logged packets and changes."""
    until(lambda: "logged" in watches(agent) and follows(agent), LONG_S, "both commands")
    return agent


def children(agent):
    words = []
    for pid in pathlib.Path("/proc", str(agent.pid), "task", str(agent.pid), "children").read_text(encoding="ascii").split():
        with contextlib.suppress(OSError):  # it has ended
            words.append((int(pid), pathlib.Path("/proc", pid, "cmdline").read_bytes().split(b"\0")))
    return words


def follower(agent):
    return next((pid for pid, words in children(agent) if b"changes" in words), None)


def follows(agent):
    return follower(agent) is not None


def writer(agent):
    return next((pid for pid, words in children(agent) if b"event-writer" in words), None)


def lines(path):
    text = path.read_text(encoding="utf-8")
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def ports(path):
    return [one["from_port"] for one in lines(path) if "packet" in one]


def verbs(path):
    return [one["verb"] for one in lines_so_far(path) if "verb" in one]


def ended(pid):
    return not pathlib.Path("/proc", str(pid), "fd").exists()


def part(on):
    document = json.loads(on("-j", "status", check=False).stdout)
    return next(one for one in document["agent"]["parts"] if one["name"] == "event log")


def changed(on, path, address=BLOCKED):
    """Blocks an address until the change is recorded: the command that follows changes may have just been started."""
    tried = iter(range(1, 255))

    def recorded():
        on("block", address, "--origin", f"o{next(tried)}", "--note", "n")
        return any(one.get("verb") == "block" for one in path())

    until(recorded, LONG_S, "a change")


def test_the_journal_has_fields(on, logs, journal):
    ready(on.run("--events", "journal", WEIR_JOURNAL=journal.path))
    until(lambda: logs(1) or journal.ports(), LONG_S, "an entry")
    entry = next(one for one in journal.entries if "WEIR_FROM_PORT" in one)
    assert (entry["WEIR_RULE"], entry["WEIR_REASON"], entry["WEIR_VERDICT"]) == (["seven"], ["rule-pass"], ["pass"])
    assert entry["WEIR_TO"] == [on.pair.near4] and entry["WEIR_TO_PORT"] == ["7"] and entry["WEIR_INTERFACE"] == ["near0"]
    assert entry["PRIORITY"] == ["6"] and entry["SYSLOG_IDENTIFIER"] == ["weir"]
    assert entry["MESSAGE"][0].startswith("near0 pass rule-pass \"seven\": udp ") and "WEIR_SCHEMA" not in entry
    on("block", "0.0.0.0/0", check=False)
    on("block", BLOCKED, "--origin", "guard")
    until(lambda: [one for one in journal.entries if one.get("WEIR_ORIGIN") == ["guard"]], LONG_S, "a change")
    change = next(one for one in journal.entries if one.get("WEIR_ORIGIN") == ["guard"])
    refused = next(one for one in journal.entries if one.get("WEIR_RESULT") == ["refused"])
    assert change["MESSAGE"][0].endswith(f"block {BLOCKED} --origin guard: done, 1 added") and change["PRIORITY"] == ["5"]
    assert change["WEIR_VERB"] == ["block"] and change["WEIR_ADDED"] == ["1"] and change["WEIR_BY"][0].startswith("root (")
    assert refused["PRIORITY"] == ["4"] and "refused: " in refused["MESSAGE"][0]
    assert part(on)["to"] == "journal" and part(on)["lost"] == 0 and not part(on)["problems"]


def test_without_a_journal_standard_error(on, logs, tmp_path):
    agent = ready(on.run("--events", "journal", WEIR_JOURNAL=str(tmp_path / "none")))
    assert "there is no journal at" in agent.said() and "events are written to standard error" in agent.said()
    until(lambda: logs(3) or '"from_port":3' in agent.said(), LONG_S, "a line")
    documents = [json.loads(line) for line in agent.said().splitlines() if line.startswith("{")]
    assert documents[0]["rule"] == "seven" and part(on)["to"] == "stderr"


def test_a_file_has_documents_and_a_new_one_after_sighup(on, logs, tmp_path):
    path, old = tmp_path / "events", tmp_path / "events.1"
    agent = ready(on.run("--events", str(path)))
    until(lambda: logs(1) or 1 in ports(path), LONG_S, "a line")
    assert stat.S_IMODE(path.stat().st_mode) & ~0o640 == 0
    changed(on, lambda: lines(path))
    assert {"time", "at_ms", "by", "command", "result", "added"} <= set(next(one for one in lines(path) if "verb" in one))
    before = ports(path)
    path.rename(old)
    logs(2)
    until(lambda: 2 in ports(old), LONG_S, "a line in the old file")
    agent.send(signal.SIGHUP)
    agent.wait_for("READY=1")
    until(lambda: path.exists() and (logs(3) or 3 in ports(path)), LONG_S, "a line in the new file")
    assert ports(old)[:len(before)] == before and 3 not in ports(old) and 2 not in ports(path)
    assert agent.stop() == 0


def test_the_last_lines_are_written_at_the_end(on, logs, tmp_path):
    path = tmp_path / "events"
    agent = ready(on.run("--events", str(path)))
    until(lambda: logs(1) or 1 in ports(path), LONG_S, "a line")
    process = writer(agent)
    os.kill(process, signal.SIGSTOP)  # lines wait in its pipe
    logs(2, 3)
    time.sleep(1)
    assert 3 not in ports(path)
    assert agent.stop() == 0
    os.kill(process, signal.SIGTERM)  # as a service manager does
    os.kill(process, signal.SIGCONT)
    until(lambda: ended(process), LONG_S, "its end")
    assert ports(path)[-2:] == [2, 3]


def test_more_events_than_a_pipe_holds_are_written_at_the_end(on, logs, tmp_path):
    path = tmp_path / "events"
    agent = ready(on.run("--events", str(path)))
    until(lambda: logs(1) or 1 in ports(path), LONG_S, "a line")
    process = writer(agent)
    os.kill(process, signal.SIGSTOP)
    for port in range(1000, 1400):
        on.pair.send_from_far(udp(7, sport=port))
        time.sleep(0.005)
    one = Listener(on, "?logged&since=1h")
    until(lambda: 1399 in one.ports(), LONG_S, "the last packet")
    seen = one.ports()
    assert agent.stop() == 0
    os.kill(process, signal.SIGCONT)
    until(lambda: ended(process), LONG_S, "its end")
    assert ports(path) == seen and path.stat().st_size > 1.5 * 65536


def test_packets_before_the_start_are_not_recorded(on, logs, tmp_path):
    """The datapath keeps them: each agent reads them again, for its clients."""
    path = tmp_path / "events"
    agent = ready(on.run("--events", str(path)))
    until(lambda: logs(1) or 1 in ports(path), LONG_S, "a line")
    process = writer(agent)
    assert agent.stop() == 0
    until(lambda: ended(process), LONG_S, "its end")
    before = len(ports(path))
    logs(2, 3)
    ready(on.run("--events", str(path)))
    until(lambda: logs(4) or 4 in ports(path), LONG_S, "a line of the second agent")
    assert set(ports(path)[before:]) == {4} and part(on)["lost"] == 0
    one = Listener(on, "?logged&since=1h")
    until(lambda: {1, 2, 3, 4} <= set(one.ports()), LONG_S, "all packets, for a client")


def test_the_first_change_of_an_instance(weir, tmp_path):
    path = tmp_path / "events"
    agent = weir.run("--events", str(path))
    until(lambda: writer(agent), LONG_S, "the process")
    assert not follows(agent)  # there is no record yet
    weir("attach", "near0", "--max-entries", "1000")
    until(lambda: "attach" in verbs(path), LONG_S, "the change")


def test_a_killed_reader_of_changes_misses_and_repeats_none(on, logs, tmp_path):
    path = tmp_path / "events"
    agent = ready(on.run("--events", str(path)))
    for turn in (1, 2):
        first = follower(agent)
        os.kill(first, signal.SIGKILL)
        on("block", f"203.0.113.{turn}")
        until(lambda: verbs(path).count("block") == turn, LONG_S, "the change")  # pylint: disable=cell-var-from-loop
        assert follower(agent) not in (None, first)
    record = on.state / "changes.entries"
    change = json.loads(record.read_text(encoding="utf-8").splitlines()[-1])
    change["at_ms"] -= 3600_000  # as after a clock that was set back
    with record.open("a", encoding="utf-8") as file:
        file.write(json.dumps(change, separators=(",", ":")) + "\n")
    until(lambda: verbs(path).count("block") > 2, LONG_S, "the change of an hour ago")
    logs(1)
    until(lambda: 1 in ports(path), LONG_S, "a packet after it")
    assert verbs(path) == ["block"] * 3  # none of those before the agent


def test_a_killed_writer_begins_again_and_tells_what_was_missed(on, logs, tmp_path):
    path = tmp_path / "events"
    agent = ready(on.run("--events", str(path)))
    until(lambda: logs(1) or 1 in ports(path), LONG_S, "a line")
    first = writer(agent)
    os.kill(first, signal.SIGKILL)
    until(lambda: "the process that writes them has ended" in agent.said(), LONG_S, "an alarm")
    until(lambda: writer(agent) not in (None, first), LONG_S, "another process")
    time.sleep(2)  # its first report has no event
    assert part(on)["problems"] and "events are recorded" not in agent.said()
    second, begin = writer(agent), time.monotonic()
    os.kill(second, signal.SIGKILL)
    until(lambda: writer(agent) not in (None, second), LONG_S, "a third one")
    assert time.monotonic() - begin > 1.5  # the pauses become longer
    until(lambda: logs(2) or 2 in ports(path), LONG_S, "a line")
    until(lambda: "again" in agent.said().splitlines()[-1] and not part(on)["problems"], LONG_S, "the end of the alarm")


def test_what_a_killed_writer_has_not_read_is_counted(on, logs, tmp_path):
    path, sent = tmp_path / "events", []

    def log(port):
        logs(port)
        sent.append(port)

    agent = ready(on.run("--events", str(path)))
    until(lambda: log(1) or 1 in ports(path), LONG_S, "a line")
    os.kill(writer(agent), signal.SIGSTOP)
    for port in range(10, 30):
        log(port)
    one = Listener(on, "?logged&since=1h")
    until(lambda: 29 in one.ports(), LONG_S, "the last packet")
    os.kill(writer(agent), signal.SIGKILL)
    until(lambda: part(on)["lost"], LONG_S, "the loss")
    assert part(on)["lost"] >= 20 and part(on)["written"] + part(on)["lost"] == len(sent)
    until(lambda: log(9) or 9 in ports(path), LONG_S, "a line of another process")
    assert sum(one.get("missed", 0) for one in lines(path) if "packet" not in one) == part(on)["lost"]


@pytest.mark.parametrize("before, after", [("", ""), ('{"whole":1}\n', '{"whole":1}\n'), ('{"ha', '{"ha\n'), ("{", "{\n")])
def test_a_part_of_a_line_in_the_file(on, tmp_path, before, after):
    path, line = tmp_path / "events", '{"monotonic_us":1,"packet":"x"}\n'
    path.write_text(before, encoding="ascii")
    run(on.argv("-j", "event-writer", path), input=line)
    assert path.read_text(encoding="ascii") == after + line


def test_the_writer_is_no_client(on, tmp_path):
    on.run("--events", str(tmp_path / "events"))
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(contextlib.closing(Client(Api(on.name).path))) for _ in range(257)]
        for one in clients:
            one.request("GET", "/v1/events?logged")
        assert sorted(one.getresponse().status for one in clients) == [200] * 256 + [503]


def test_at_most_a_thousand_lines_a_second(on, tmp_path):
    """Lines as the agent sends them, faster than one rule can log."""
    path = tmp_path / "events"
    event = {"schema": 1, "monotonic_us": 1, "packet": "x", "missed": 0}
    text = "".join(json.dumps({**event, "monotonic_us": n}) + "\n" for n in range(5000))
    begin = time.monotonic()
    done = run(on.argv("-j", "event-writer", path), input=text)
    assert time.monotonic() - begin < 1, "this machine is too slow for the test"
    events = [one["monotonic_us"] for one in lines(path) if "packet" in one]
    reports = [one for one in lines(path) if "packet" not in one]
    assert events == list(range(1000)) and [one["missed"] for one in reports] == [4000]
    assert "1000 lines in a second" in reports[0]["why"] and reports[0]["time"]
    assert (json.loads(done.stdout.splitlines()[-1])["written"], json.loads(done.stdout.splitlines()[-1])["lost"]) == (1000, 4000)


def test_after_a_second_too_many_lines_are_reported(on, tmp_path):
    path = tmp_path / "events"
    with subprocess.Popen([str(word) for word in on.argv("-j", "event-writer", path)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        for turn in range(2):
            process.stdin.write("".join(f'{{"monotonic_us":{n},"packet":"{turn}"}}\n' for n in range(1500)))
            process.stdin.flush()
            until(lambda: sum("why" in one for one in lines_so_far(path)) == turn + 1, LONG_S, "a report")  # pylint: disable=cell-var-from-loop
        process.stdin.close()
    documents = lines(path)
    assert [one["missed"] for one in documents if "why" in one] == [500, 501]  # the first report is a line of the second second
    assert sum("packet" in one for one in documents) == 1999


def lines_so_far(path):
    """Also while the last one is written."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


@contextlib.contextmanager
def small_disk(folder):
    folder.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder])
    try:
        yield folder
    finally:
        run(["umount", "-l", folder])


def fill(folder):
    with contextlib.suppress(OSError), open(folder / "filler", "wb", buffering=0) as filler:
        while filler.write(b"x" * 100):
            pass


def test_a_full_disk_is_an_alarm_and_counted(on, logs, tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        path = disk / "events"
        agent = ready(on.run("--events", str(path)))
        until(lambda: logs(1) or 1 in ports(path), LONG_S, "a line")
        fill(disk)
        until(lambda: logs(*[2] * 20) or part(on)["problems"], LONG_S, "an alarm")
        assert "cannot write to" in part(on)["problems"][0] and "events are not recorded" in agent.said()
        lost = part(on)["lost"]
        assert lost >= 1 and on.json("list")  # nothing else is held up
        (disk / "filler").unlink()
        until(lambda: logs(9) or 9 in ports(path), LONG_S, "a line after it")
        until(lambda: not part(on)["problems"], LONG_S, "the end of the alarm")
        reports = [one for one in lines(path) if "missed" in one and "packet" not in one]
        assert sum(one["missed"] for one in reports) == part(on)["lost"] >= lost
        assert agent.stop() == 0


def test_a_pipe_without_a_reader_holds_up_nothing(pair, on, tmp_path):
    path = tmp_path / "pipe"
    Policies(on, tmp_path)('"seven" pass proto udp to port 7 log 1000/s')
    os.mkfifo(path)
    agent = ready(on.run("--events", str(path)))
    until(lambda: part(on)["lost"] or pair.passes(udp(7, sport=1)), LONG_S, "a loss")
    until(lambda: "no process reads the pipe" in str(part(on)["problems"]), LONG_S, "an alarm")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with generator(pair, udp(7, sport=2), 2000):
            until(lambda: "is too slow" in str(part(on)["problems"]), LONG_S, "an alarm of a full pipe")
            before = time.monotonic()
            for n in range(5):
                assert Api(on.name)("POST", "/v1/block", {"what": f"203.0.113.{n + 20}"})[0] == 200
            assert time.monotonic() - before < 20
        assert json.loads(on("-j", "status", check=False).stdout)["agent"]["running"]
        text = b""
        end = time.monotonic() + LONG_S
        while b"events were left out" not in text and b'"why"' not in text and time.monotonic() < end:
            with contextlib.suppress(BlockingIOError):
                text += os.read(reader, 65536)
            time.sleep(0.01)
        whole = [json.loads(line) for line in text.decode().split("\n")[:-1]]
        assert any("missed" in one and "packet" not in one for one in whole)
    finally:
        os.close(reader)
    assert agent.stop() == 0


def test_a_stopped_writer_holds_up_nothing(pair, on, tmp_path):
    """As a disk that hangs would: the queue of the agent is bounded, and what does not fit is reported."""
    path = tmp_path / "events"
    Policies(on, tmp_path)('"seven" pass proto udp to port 7 log 1000/s')
    agent = ready(on.run("--events", str(path)))
    until(lambda: writer(agent), LONG_S, "the process")
    os.kill(writer(agent), signal.SIGSTOP)
    before = agent.rss_kb()
    with generator(pair, udp(7, sport=2), 2000):
        until(lambda: "lines are not taken as fast" in str(part(on)["problems"]), LONG_S, "an alarm")
        time.sleep(2)
        assert Api(on.name)("POST", "/v1/block", {"what": BLOCKED})[0] == 200
    missed = part(on)["lost"]
    assert missed > 0 and agent.rss_kb() - before < 8192
    os.kill(writer(agent), signal.SIGCONT)
    until(lambda: pair.passes(udp(7, sport=3)) and 3 in [one.get("from_port") for one in lines_so_far(path)], LONG_S, "new lines")
    assert any("missed" in one and "packet" not in one for one in lines_so_far(path))
    until(lambda: not part(on)["problems"], LONG_S, "the end of the alarm")


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[31mred", "\u202eright", "quo'te\"s {}", "-n", "x" * 200])
def test_names_of_files(on, logs, tmp_path, name):
    path = tmp_path / name
    agent = ready(on.run("--events", str(path)))
    until(lambda: logs(1) or 1 in ports(path), LONG_S, "a line")
    os.kill(writer(agent), signal.SIGKILL)
    until(lambda: "not recorded" in agent.said(), LONG_S, "an alarm")
    assert not any(char in agent.said() for char in "\x1b\u202e") and "two\n" not in agent.said()
    assert part(on)["to"] == str(path)


@pytest.mark.parametrize("where, message", [
    ("jornal", "journal, stderr, none, or the absolute path of a file"), ("events", "absolute path"), ("", "absolute path"),
    ("/proc/none/events", "cannot open '/proc/none/events'"), ("/dev/null", "neither a file nor a named pipe"),
    ("/tmp", "cannot open '/tmp'"), ("/" + "x" * 300, "cannot open"), ("LINK", "is a symbolic link"),
])
def test_refused_places(on, tmp_path, where, message):
    target = tmp_path / "target"
    (tmp_path / "link").symlink_to(target)
    done = on("run", "--events", str(tmp_path / "link") if where == "LINK" else where, check=False, timeout=20)
    assert done.returncode in (1, 2) and message in done.stderr and not target.exists()


def test_notes_with_control_characters(on, logs, tmp_path, journal):
    """In a file they are escaped, in the journal a field may have them, and the message has none."""
    agent = ready(on.run("--events", "journal", WEIR_JOURNAL=journal.path))
    until(lambda: logs(1) or journal.ports(), LONG_S, "an entry")
    tried = iter(range(1, 250))
    until(lambda: on("block", f"203.0.113.{next(tried)}", "--note", HOSTILE, check=False) and
          [one for one in journal.entries if one.get("WEIR_VERB") == ["block"]], LONG_S, "a change")
    entry = next(one for one in journal.entries if one.get("WEIR_VERB") == ["block"])
    assert len(entry["MESSAGE"]) == 1 and not any(char in entry["MESSAGE"][0] for char in "\x1b\n\u202e")
    assert not [name for name in entry if not name.isascii() or name.startswith("_")]
    assert agent.stop() == 0


def test_none_is_the_default(on):
    agent = on.run()
    assert writer(agent) is None and part(on)["to"] == "none" and not follows(agent)
    agent.stop()
    agent = on.run("--events", "none")
    assert writer(agent) is None


def test_an_entry_that_exceeds_a_datagram_is_a_file(on, journal):
    """A message of the agent's command, fed by the test: larger than the buffer of a socket."""
    text = "z" * 118000 + "\n"
    document = json.dumps({"schema": 1, "time": "2026-11-28T00:00:00.000+00:00", "at_ms": 1, "verb": "block", "by": "x", "command": "y",
                           "result": "done", "text": text}, separators=(",", ":"))
    done = run(on.argv("-j", "event-writer", "journal"), input=document + "\n", env={**os.environ, "WEIR_JOURNAL": journal.path})
    until(lambda: journal.entries, LONG_S, "the entry")
    assert journal.files == 1 and journal.entries[0]["WEIR_TEXT"] == [text]
    assert journal.entries[0]["MESSAGE"][0].startswith("x: y: done: zzz")
    assert [json.loads(line) for line in done.stdout.splitlines()][-1]["written"] == 1
