# SPDX-License-Identifier: GPL-2.0-only
"""Many bans at once through the API of the agent: all active, each soon, whatever else changes the entries."""
import fcntl
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import signal
import time

import pytest

from apiclient import Client
from feedserver import Feed
from labnet import until

CLIENTS, BANS = 8, 1000
FAST = 0.02  # seconds, for 99 of 100
WAITS = 5    # for a processor
SLOWER = 3   # while a feed changes
PAUSE = 0.015
LIST = 200000
ROUNDS = 8


def address(client, number):
    return f"198.18.{client}.{number + 1}"


def ban_some(path, client, pause, results, echo):
    connection = Client(path)
    took, floor = [], []
    for number in range(BANS // CLIENTS):
        time.sleep(pause)
        begin = time.monotonic()
        status, document = connection.ask("POST", "/v1/block", {"what": address(client, number)})
        end = time.monotonic()
        took.append(end - begin)
        assert status == 200 and document["added"] == 1, document
        echo.send(number)
        echo.recv()
        floor.append(time.monotonic() - end)
    results.put((took, floor))


def echo_all(pipes):
    """How long an answer takes here that needs nothing."""
    while True:
        for one in multiprocessing.connection.wait(pipes):
            one.send(one.recv())


def ban_all(path, pause=0):
    """By processes of their own, so that the time is that of the agent. Sorted times, and those of the echo."""
    results = multiprocessing.Queue()
    pipes = [multiprocessing.Pipe() for _ in range(CLIENTS)]
    clients = [multiprocessing.Process(target=ban_some, args=(path, client, pause, results, here))
               for client, (here, _) in enumerate(pipes)]
    echo = multiprocessing.Process(target=echo_all, args=([there for _, there in pipes],))
    for one in [echo, *clients]:
        one.start()
    times = [results.get(timeout=60) for _ in clients]
    for one in clients:
        one.join()
    echo.kill()
    echo.join()
    return [sorted(one for all_of_client in times for one in all_of_client[which]) for which in (0, 1)]


def everyone():
    return {address(client, number) for client in range(CLIENTS) for number in range(BANS // CLIENTS)}


def percentile(took, part):
    return took[int(len(took) * part) - 1]


@pytest.fixture(name="path")
def path_of_agent(weir):
    weir("attach", "near0")
    weir.run()
    return f"/run/weir/{weir.name}/api"


def ban_and_free(weir, pair, path, pause=0, banned=lambda: None):
    """The times of ban_all()."""
    times = ban_all(path, pause)
    banned()
    print("ms:", *(f"{1000 * percentile(one, each):.1f}" for one in times for each in (0.5, 0.9, 0.99, 1)))
    assert everyone() <= set(weir.entries())
    assert not any(pair.free(*sorted(everyone())[::100]))
    weir("batch", "-q", input="".join(f"unblock {one}\n" for one in everyone()))
    return times


@pytest.mark.alone
def test_eight_clients(weir, path, pair):
    """Other processes of the machine make a round slower, which the echo sees at the same time: a ban waits for a
    processor more often, in three processes and for those before it."""
    for _ in range(ROUNDS):
        took, floor = ban_and_free(weir, pair, path)
        if percentile(took, 0.99) < max(FAST, WAITS * percentile(floor, 0.99)):
            return
    pytest.fail("too slow")


@pytest.mark.alone
@pytest.mark.parametrize("changed, part", [(1000, 0.99), (LIST // 2, 0.9)])
def test_eight_clients_while_a_feed_is_synced(tmp_path, pair, weir, changed, part):
    """Beside the same bans while the feed stays as it is. The commit of half of the list holds up each client; nine bans
    of ten are fast then."""
    feed = Feed(pair, tmp_path)
    weir("attach", "near0")
    agent = weir.run()
    feed.lines(LIST)
    weir("block", "--url", feed.url, "--ca", feed.ca, "--sync", "feed", "--every", "1s")
    path = f"/run/weir/{weir.name}/api"

    def changes():
        return agent.said().count("removed)")

    def check_happened(done):
        assert changes() > done, "the round was too short"

    try:
        for turn in range(1, ROUNDS + 1):
            calm = ban_and_free(weir, pair, path, PAUSE)[0]
            done = changes()
            feed.lines(LIST, changed * (turn % 2))
            took = ban_and_free(weir, pair, path, PAUSE, lambda done=done: check_happened(done))[0]
            if percentile(took, part) < max(FAST, SLOWER * percentile(calm, part)):
                return
    finally:
        feed.stop()
    pytest.fail("too slow")


def test_a_batch_of_a_thousand(weir, path):
    status, document = Client(path).ask("POST", "/v1/batch", "".join(f"block {one}\n" for one in everyone()))
    assert status == 200 and document["added"] == BANS
    assert set(weir.entries()) == everyone()


def test_answers_are_those_of_the_command(weir, path):
    client = Client(path)
    weir("block", "203.0.113.0/24")
    for words, body in ((["block", "198.18.0.1"], {"what": "198.18.0.1"}),
                        (["block", "198.18.0.2", "--note", "a \\ 'b' #"], {"what": "198.18.0.2", "note": "a \\ 'b' #"}),
                        (["block", "198.18.0.2", "--note", 'a "b"'], {"what": "198.18.0.2", "note": 'a "b"'}),
                        (["block", "198.18.0.2", "--for", "1 day"], {"what": "198.18.0.2", "for": "1 day"}),
                        (["block", "198.18.0.8-198.18.0.9"], {"what": "198.18.0.8-198.18.0.9"}),
                        (["block", "10.77.0.1"], {"what": "10.77.0.1"}),
                        (["block", "198.18.0.1", "--origin", "a\nb"], {"what": "198.18.0.1", "origin": "a\nb"}),
                        (["unblock", "203.0.113.9"], {"what": ["203.0.113.9"]}),
                        (["unblock", "198.18.0.1"], {"what": "198.18.0.1"})):
        answer = client.ask("POST", f"/v1/{words[0]}", body)
        if words[0] == "unblock" and answer[0] == 200:
            weir("block", "198.18.0.1")
        document = weir.json(*words, status={200: 0, 400: 1, 409: 3}[answer[0]])
        changing = {"added", "changed", "unchanged", "until"}
        assert {key: answer[1].get(key) for key in set(document) - changing} == \
            {key: document[key] for key in set(document) - changing}, words


def test_a_killed_process_is_replaced(weir, path):
    client = Client(path)
    assert client.ask("POST", "/v1/block", {"what": "198.18.0.1"})[0] == 200
    name = weir.name.encode()
    mark = b"\0batch\0--each\0"
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if name in line and mark in line:
            os.kill(int(folder.name), signal.SIGKILL)
    until(lambda: client.ask("POST", "/v1/block", {"what": "198.18.0.2"})[0] == 200, 5)
    assert set(weir.entries()) == {"198.18.0.1", "198.18.0.2"}


def test_a_change_waits_for_its_turn(weir, path):
    """After a command that has the lock; those that come later wait with it."""
    with weir.locked() as lock:
        answers = multiprocessing.Queue()
        waiting = [multiprocessing.Process(target=lambda one=one: answers.put(Client(path).ask("POST", "/v1/block", {"what": one})[0]))
                   for one in ("198.18.0.1", "198.18.0.2", "198.18.0.3")]
        for one in waiting:
            one.start()
        time.sleep(0.3)
        assert answers.empty()
        fcntl.flock(lock, fcntl.LOCK_UN)  # the processes have the file, too
    assert [answers.get(timeout=10) for _ in waiting] == [200] * 3
    assert len(weir.entries()) == 3


class TestListsPreparedWithoutTheLock:
    """A list is compared before its command has the lock; what others change meanwhile is not lost."""

    OLD = [f"198.51.100.{n}" for n in range(1, 11)]
    NEW = [f"198.51.100.{n}" for n in range(6, 16)]

    @pytest.fixture(name="after")
    def run_both(self, on):
        """after(COMMAND, path=FILE): the list NEW comes after the command that it has not seen."""
        on("block", "-f", "-", "--sync", "feed", input="\n".join(self.OLD))

        def run_them(*words, **options):
            with on.locked(fcntl.LOCK_SH):
                second = on.start("block", "-f", options["path"], "--sync", "feed", *options.get("more", ()))
                time.sleep(0.5)
                assert second.poll() is None
                second.send_signal(signal.SIGSTOP)  # while it waits for the lock
                stat = pathlib.Path(f"/proc/{second.pid}/stat")
                until(lambda: stat.read_text(encoding="ascii").split()[2] == "T")
            assert on(*words, check=False).returncode in options.get("status", [0])
            second.send_signal(signal.SIGCONT)
            assert second.wait(10) == 0, second.stdout.read()
            return {address: {holder["list"] for holder in entry["holders"]} for address, entry in on.entries().items()}

        return run_them

    @pytest.fixture(name="path")
    def list_of_addresses(self, tmp_path):
        path = tmp_path / "list"
        path.write_text("\n".join(self.NEW))
        return path

    @pytest.mark.parametrize("banned", ["198.51.100.1", "198.51.100.7", "198.51.100.12", "203.0.113.1"])
    def test_a_ban(self, pair, on, after, path, banned):
        found = after("block", banned, path=path)
        expected = {address: {"feed"} for address in self.NEW}
        expected.setdefault(banned, set()).add("")
        assert found == expected
        assert not any(pair.free(*found))
        on("unblock", banned, check=False)
        assert set(on.entries()) == set(self.NEW)
        on("unblock", "--sync", "feed")
        assert not on.entries() and all(pair.free(*found))

    @pytest.mark.parametrize("freed", ["198.51.100.1", "198.51.100.12"])
    def test_an_address_of_others_freed(self, pair, on, after, path, freed):
        on("block", freed)
        found = after("unblock", freed, path=path, status=(0, 3))
        assert found == {address: {"feed"} for address in self.NEW}
        assert pair.free(freed) == [freed not in self.NEW]

    def test_the_same_list(self, tmp_path, after, path):
        other = tmp_path / "other"
        other.write_text("\n".join(f"203.0.113.{n}" for n in range(1, 11)))
        assert after("block", "-f", other, "--sync", "feed", path=path) == {address: {"feed"} for address in self.NEW}

    def test_the_list_removed(self, after, path):
        assert after("unblock", "--sync", "feed", path=path) == {address: {"feed"} for address in self.NEW}

    def test_an_end(self, on, after, path):
        """The latest end of all owners counts."""
        after("block", "198.51.100.12", "--for", "2h", path=path, more=("--for", "1h"))
        entries = on.entries()
        assert entries["198.51.100.12"]["left_s"] > 3700 > entries["198.51.100.11"]["left_s"] > 3500
