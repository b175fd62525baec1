# SPDX-License-Identifier: GPL-2.0-only
"""A feed of 200,000 that the agent follows over HTTPS, while its server fails in each way: what is blocked stays so, the
agent's loop is never held, and its memory returns."""
import contextlib
import json
import signal
import subprocess
import sys
import threading
import time

import pytest

from feedserver import Authority, Feed
from labnet import until
from policylab import Policies, udp

COUNT = 200_000
KEPT, FIRST, LAST = "100.66.0.1", "100.64.0.0", "100.67.13.63"
SLICE = 1 / 4  # of the processor time that a new list takes (reading the record takes 1/8): more would hold the loop

# Asks the agent without a pause for what its loop answers by itself, and prints how many milliseconds of processor time
# the agent used until each answer.
CALLS = """
import http.client, socket, sys, time
class Client(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(sys.argv[1])
def used():
    return int(open(f"/proc/{sys.argv[2]}/schedstat").read().split()[0])
client = Client("weir")
while True:
    before = used()
    client.request("GET", "/none")
    client.getresponse().read()
    print((used() - before) / 1e6, flush=True)
    time.sleep(0.002)
"""


class Large(Feed):
    """A feed with 200,000 addresses."""

    def __init__(self, pair, folder):
        super().__init__(pair, folder)
        self.lines(COUNT + 10)
        self.all = self.body.splitlines(keepends=True)
        self.part(0, COUNT)

    def part(self, first, end):
        self.body = b"".join(self.all[first:end])


@contextlib.contextmanager
def calls(weir, agent):
    """Yields a list of milliseconds, which is filled at the end."""
    argv = [sys.executable, "-c", CALLS, f"/run/weir/{weir.name}/api", str(agent.pid)]
    got = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        reader = threading.Thread(target=lambda: got.extend(map(float, process.stdout)))
        reader.start()
        try:
            yield got
        finally:
            process.terminate()
            reader.join()


@contextlib.contextmanager
def blocked_traffic(pair, source):
    """Packets from a blocked source all the time, of which none may come through."""
    end = threading.Event()
    frame = bytes(udp(src=source))
    sent = []

    def send():
        while not end.wait(0.005):
            pair.send_from_far(frame)
            sent.append(1)

    with pair.sniff_near() as sniffer:
        thread = threading.Thread(target=send)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()
        last = bytes(pair.ether())[:12] + b"\x88\xb5" + bytes(46)
        pair.send_from_far(last)
        got = sniffer.until(lambda data: data[12:14] == b"\x88\xb5")
        assert sent and frame not in got


class Story:
    """What happens to the feed, and what the agent says."""

    def __init__(self, pair, weir, agent, feed, html):
        self.pair, self.weir, self.agent, self.feed = pair, weir, agent, feed
        self.html = html  # what is said of a page

    def fetch(self):
        """The agent fetches what fails, and lists, at once."""
        seen = self.feed.clients
        self.agent.send(signal.SIGHUP)
        until(lambda: self.feed.clients > seen or not self.feed.server, 5, "a fetch")

    def alarms(self):
        alarms = json.loads(self.weir("-j", "status", check=False).stdout)["alarms"]
        return [one for one in alarms if "agent, feeds" in one]

    def fails(self, why):
        """The failure is told once, and is an alarm; what was active stays."""
        before = self.agent.said().count(why)
        self.fetch()
        until(lambda: self.agent.said().count(why) > before, 15, why)
        until(lambda: any(why in one for one in self.alarms()), 5, why)
        self.fetch()
        assert len(self.alarms()) == 1
        assert self.agent.said().count(why) == before + 1
        assert self.pair.free(FIRST, LAST) == [False, False]

    def is_back(self):
        self.feed.mode = ""
        before = self.agent.said().count("is good again")
        self.feed.part(0, COUNT)
        self.fetch()
        until(lambda: self.agent.said().count("is good again") > before, 15)
        until(lambda: not self.alarms(), 5)
        assert self.pair.free(FIRST, LAST) == [False, False]

    def changes(self):
        """Ten lines go and ten come, and return. Yields between the two the milliseconds that the first has cost."""
        before = self.agent.processor_ms()
        self.feed.part(10, COUNT + 10)
        until(lambda: self.pair.free(FIRST, LAST) == [True, False], 15)
        yield self.agent.processor_ms() - before
        self.feed.part(0, COUNT)
        until(lambda: self.pair.free(FIRST, LAST) == [False, False], 15)

    def each_text_is_refused(self):
        feed = self.feed
        broken = feed.all[:COUNT]
        broken[100_000:101_000] = [b"192.0.2/bad\n"] * 1000
        feed.body = b"".join(broken)
        self.fails("line 100001: ")
        assert self.agent.said().count("bad") < 5
        feed.part(0, COUNT)
        feed.mode = "type"
        self.fails(self.html)
        feed.mode = ""
        feed.part(0, COUNT // 10)
        self.fails("would shrink from 200000 to 20000 entries")

    def each_answer_is_refused(self):
        feed = self.feed
        feed.part(0, COUNT)
        for mode, why in ("cut", "the gzip body is cut off"), ("short", "transfer closed"), (
                "bomb", "more than 100 times"), ("404", "the server answered 404"), ("html", self.html), (
                    "500", "the server answered 500"):
            feed.mode = mode
            self.fails(why)

    def each_certificate_is_refused(self, folder):
        feed = self.feed
        feed.mode = ""
        for cert, why in (
                (feed.authority.certificate("past", days=-1), "certificate has expired"),
                (feed.authority.certificate("name", names="DNS:other.lab"), "no alternative certificate subject name"),
                (Authority(folder / "strange").certificate("good"), "unable to get local issuer certificate")):
            feed.use(*cert)
            self.fails(why)
        feed.use(*feed.authority.certificate("good"))

    def the_server_goes_and_comes(self):
        self.feed.stop()
        self.fails("connect to server")
        self.feed.start()
        self.is_back()

    def the_server_is_slow(self, answers):
        """It drips: the loop answers meanwhile, and a reload does not wait for the end."""
        self.feed.part(10, COUNT + 10)
        self.feed.mode = "slow"
        self.fetch()
        before = len(answers)
        time.sleep(0.5)
        assert len(answers) > before + 20
        assert self.pair.free(FIRST, LAST) == [False, False]
        self.feed.mode = ""
        self.agent.send(signal.SIGHUP)
        until(lambda: self.pair.free(FIRST) == [True], 5)


@pytest.fixture(name="feed")
def large_feed(pair, tmp_path):
    feed = Large(pair, tmp_path)
    yield feed
    feed.stop()


def check(cost_ms, answers, agent, rss_kb, descriptors):
    # What holds the loop does so with each text; a machine that is slow for a moment, once.
    assert len(answers) > 100 and sorted(answers)[-4] < cost_ms * SLICE, (cost_ms, sorted(answers)[-8:])
    until(lambda: agent.descriptors() <= descriptors, 5)
    assert agent.rss_kb() < rss_kb + 8192


def test_list(pair, weir, feed, tmp_path):
    weir("attach", "near0")
    weir("block", "--url", feed.url, "--ca", feed.ca, "--sync", "feed", "--every", "1s")
    agent = weir.run()
    story = Story(pair, weir, agent, feed, "HTML")
    journal = weir.state / "overlay"
    with calls(weir, agent) as answers, blocked_traffic(pair, KEPT):
        size = journal.stat().st_size
        for cost_ms in story.changes():
            rss_kb, descriptors = agent.rss_kb(), agent.descriptors()
        assert 0 < journal.stat().st_size - size < 8192  # the difference alone
        story.each_text_is_refused()
        story.each_answer_is_refused()
        story.each_certificate_is_refused(tmp_path)
        story.is_back()
        story.the_server_goes_and_comes()
        story.the_server_is_slow(answers)
    check(cost_ms, answers, agent, rss_kb, descriptors)
    assert len(weir.entries()) == COUNT


def test_policy(pair, weir, feed, tmp_path):
    path = Policies(weir, tmp_path).write(f'set list {{ url "{feed.url}" ca "{feed.ca}" every 1s }}\n'
                                          '"list" drop from @list\n')
    agent = weir.run(path)
    story = Story(pair, weir, agent, feed, "is not an address")
    with calls(weir, agent) as answers, blocked_traffic(pair, KEPT):
        for cost_ms in story.changes():
            rss_kb, descriptors = agent.rss_kb(), agent.descriptors()
        story.each_text_is_refused()
        story.the_server_goes_and_comes()
    check(cost_ms, answers, agent, rss_kb, descriptors)
