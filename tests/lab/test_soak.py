# SPDX-License-Identifier: GPL-2.0-only
"""The agent under load and hostile clients, while Prometheus scrapes it: memory, descriptors, and what it does on time.

SOAK_S=10: seconds; `make soak` takes ten minutes and prints the figures.
"""
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import threading
import time
import types

import pytest
from apiclient import Api
from balancerlab import crowd_of, failed, running_balancer, running_node
from feedserver import Feed
from waiting import Waiting

from labnet import run, until

pytestmark = pytest.mark.usefixtures("many_descriptors")

SOAK_S = float(os.environ.get("SOAK_S", "10"))
HERE = pathlib.Path(__file__).parent
METRICS, PROMETHEUS, DNS, CHECKED = 9117, 9090, 5300, 8099
BACKENDS = 48
NAMES = 20
TTL_S = 5
EVERY_S = 1
HOSTILE, HOSTILE_ADDRESS = 3000, 300
SCRAPE_S = 2 if SOAK_S < 60 else 5
CLIENTS_MOST = 1024 + 256  # that the agent takes
CALLBACK_MOST_US = 5000  # of a processor, which a run of LONG_S or more asserts
LONG_S = 60


class Helper:
    """A program of this folder in a network namespace."""

    def __init__(self, netns, name, *args):
        argv = ["nsenter", f"--net=/run/netns/{netns}", "--", "/usr/bin/python3", "-ES", HERE / name, *args]
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [str(arg) for arg in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True)

    def running(self):
        assert self.process.stdout.readline() == "running\n"
        return self

    def tell(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def result(self):
        self.process.stdin.close()
        text = self.process.stdout.read()
        assert self.process.wait(timeout=30) == 0
        return json.loads(text)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()


class Prometheus:
    """Debian's, in a network namespace."""

    def __init__(self, netns, folder):
        self.netns = netns
        config = folder / "prometheus.yml"
        config.write_text(f"global:\n  scrape_interval: {SCRAPE_S}s\n  scrape_timeout: {SCRAPE_S}s\nscrape_configs:\n"
                          f"- job_name: weir\n  static_configs:\n  - targets: ['127.0.0.1:{METRICS}']\n")
        argv = ["nsenter", f"--net=/run/netns/{netns}", "--", "prometheus", f"--config.file={config}",
                f"--storage.tsdb.path={folder}/prometheus", f"--web.listen-address=127.0.0.1:{PROMETHEUS}"]
        self.log = (folder / "prometheus.log").open("w")
        self.process = subprocess.Popen(argv, stdout=self.log, stderr=self.log)  # pylint: disable=consider-using-with
        until(lambda: self.get("/-/ready"), 30, "a Prometheus that is ready")

    def get(self, path, *options):
        argv = ["nsenter", f"--net=/run/netns/{self.netns}", "--", "curl", "-sf", "--max-time", "5", *options,
                f"http://127.0.0.1:{PROMETHEUS}{path}"]
        return run(argv, check=False).stdout

    def query(self, text):
        """The values of an expression."""
        answer = json.loads(self.get("/api/v1/query", "--get", "--data-urlencode", f"query={text}"))
        assert answer["status"] == "success", answer
        return [float(one["value"][1]) for one in answer["data"]["result"]]

    def rejected(self):
        """Samples that it has not taken, by reason."""
        lines = self.get("/metrics").splitlines()
        return {line.split()[0]: float(line.split()[1]) for line in lines
                if line.startswith(("prometheus_target_scrapes_sample_", "prometheus_target_scrapes_exceeded_",
                                    "prometheus_target_scrape_pool_exceeded_"))}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Honest:
    """A client of the socket, which measures how long its answers take."""

    def __init__(self, api):
        self.api, self.over = api, threading.Event()
        self.took = {"/v1/nothing": [], "/v1/overlay": [], "/metrics": []}
        self.errors = []
        self.thread = threading.Thread(target=self.ask)

    def ask(self):
        wanted = {"/v1/nothing": 404}
        for turn in itertools.count():
            path = ("/v1/nothing", "/v1/overlay", "/v1/nothing", "/metrics")[turn % 4]
            began = time.monotonic()
            try:
                status = self.api("GET", path)[0]
                if status != wanted.get(path, 200):
                    self.errors.append((path, status))
            except OSError as error:
                self.errors.append((path, repr(error)))
            self.took[path].append((began, time.monotonic()))
            if self.over.wait(0.2):
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()


def lateness(instants, wanted_s, since, to, waiting, server):
    """How much later than wanted each came after the one before, less what the agent or the server waited for a processor
    from when it was due. Those that follow at once are repetitions."""
    late = []
    for series in instants.values():
        series = [one for one in series if since <= one <= to]
        late += [after - before - wanted_s - waiting.between(before + wanted_s, after, "agent", server)
                 for before, after in zip(series, series[1:]) if after - before > 0.2]
    return late


def show(what, seconds):
    """Prints the figures; returns the 99th percentile."""
    ordered = sorted(seconds) or [0]
    at = {name: ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000 for name, part in (("p50", .5), ("p99", .99))}
    print(f"{what}: {len(ordered)}, p50 {at['p50']:.0f} ms, p99 {at['p99']:.0f} ms, most {ordered[-1] * 1000:.0f} ms")
    return at["p99"] / 1000


def write_policy(path, balancer, feed):
    many = "".join(f"\tbackend 10.99.0.{n + 1}\n" for n in range(BACKENDS))
    real = "".join(f"\tbackend 10.78.2.{n}\n" for n in (1, 2, 3))
    path.write_text(
        f'interface net0\nseed "lab"\nset feed {{ url "{feed.url}" ca "{feed.ca}" every 5s }}\n"feed" drop from @feed\n'
        f'"name" drop from p.lab\n'
        f'service web {{\n\tvip {", ".join(balancer.vips)}\n\tproto tcp, udp\n\tport 7, 80, 443\n\tmode ipip\n'
        f'\tcheck http "/name" port 80 every 1s timeout 500ms rise 2 fall 3\n{real}}}\n'
        f'service many {{\n\tvip 10.78.80.9\n\tport 80\n\tmode ipip\n'
        f'\tcheck http "/" port {CHECKED} every {EVERY_S}s timeout 500ms rise 2 fall 2\n{many}}}\n')


@contextlib.contextmanager
def more_backends(balancer):
    """backend1 has the addresses of BACKENDS more."""
    at = ["ip", "-n", balancer.netns("backend1"), "route"]
    to = ["ip", "-n", balancer.netns("router"), "route"]
    run([*at, "add", "local", "10.99.0.0/24", "dev", "lo"])
    run([*to, "add", "10.99.0.0/24", "via", "10.78.2.1", "dev", "backend1"])
    with Helper(balancer.netns("backend1"), "instants.py", "web", CHECKED) as server:
        yield server.running()


def commands(node, api, feed, turn):
    """Something for each part of the agent."""
    feed.lines(2000, first=turn // 50 % 20 * 100)
    node("block", f"192.0.2.{turn % 250}", "--for", "1s")
    assert api("POST", "/v1/block", {"what": f"198.18.0.{turn % 250}", "for": "2s"})[0] == 200
    if not turn % 5:
        node("drain", "10.78.2.2", "--for", "1s", "--volatile")
    if not turn % 10:
        node.json("status", status=0 if node("status", check=False).returncode == 0 else 2)


def usage(agent):
    """Descriptors and memory: the most of two seconds."""
    seen = []
    for _ in range(20):
        seen.append((agent.descriptors(), agent.rss_kb()))
        time.sleep(0.1)
    return tuple(map(max, zip(*seen)))


def fail_one(agent, many, address):
    """When a backend failed, and when the agent had reported it."""
    many.tell(address)
    began = time.monotonic()
    while f"{address} fails its checks" not in agent.said():
        assert time.monotonic() - began < 30
        time.sleep(0.005)
    return began, time.monotonic()


def soak(agent, node, feed, many):
    """(first, last): descriptors and memory under load, after a fifth of the time and at its end."""
    api, first, reacted = Api(node.name), None, []
    began = time.monotonic()
    victims = iter(range(1, BACKENDS // 3))
    for turn in itertools.count():
        commands(node, api, feed, turn)
        passed = time.monotonic() - began
        if not first and passed > SOAK_S / 5:
            first = usage(agent)
        if passed > (len(reacted) + 1) * SOAK_S / 11 and (victim := next(victims, None)):
            reacted.append(fail_one(agent, many, f"10.99.0.{victim}"))
        if passed > SOAK_S:
            return first, usage(agent), reacted
        time.sleep(0.2)
    return None


def at_rest(agent, seconds=2):
    """Descriptors without a client, and memory, after the last requests are answered."""
    time.sleep(seconds)
    return min((agent.descriptors(), agent.rss_kb()) for _ in range(20) if not time.sleep(0.05))


def judge(waiting, late, refreshed, honest, reacted):
    """What has to be done on time was, but for what the machine is to blame for."""
    def own(spans, *whose):
        return [to - since - waiting.between(since, to, "agent", *whose) for since, to in spans]

    shares = ", ".join(f"{who} {waited:.0%}" for who, (_, waited) in waiting.shares().items())
    print(f"the agent: {waiting.shares()['agent'][0]:.0%} of a processor; waiting for one: {shares}")
    slow = {path: show(f"answers of {path}", own(spans, "client")) for path, spans in honest.took.items()}
    checks, names = show("checks, later than every", late), show("names, later than TTL + 0.5 s", refreshed)
    failure = show("backends that fail, until the agent says it", own(reacted, "checks", "test"))
    print(f"errors of the honest client: {honest.errors}")
    assert not honest.errors
    assert slow["/v1/nothing"] < 0.5 and checks < 0.4 and names < 1
    assert failure < 2 * EVERY_S + 0.5
    assert statistics.median(late) <= 0 and max(late) < EVERY_S


@pytest.mark.alone
@pytest.mark.skipif(not shutil.which("prometheus"), reason="no prometheus")
def test_soak(tmp_path):
    with contextlib.ExitStack() as stack:
        balancer = stack.enter_context(running_balancer(mode="ipip"))
        node = stack.enter_context(running_node(balancer))
        here = balancer.netns("balancer1")
        many = stack.enter_context(more_backends(balancer))
        names = stack.enter_context(Helper(here, "instants.py", "dns", "127.0.0.1", DNS, TTL_S)).running()
        feed = Feed(types.SimpleNamespace(far_netns=balancer.netns("backend2"), far4="10.78.2.2"), tmp_path)
        stack.callback(feed.stop)
        feed.lines(2000)
        write_policy(tmp_path / "soak.weir", balancer, feed)
        agent = node.run(tmp_path / "soak.weir", "--metrics", f"127.0.0.1:{METRICS}", "--resolver", f"127.0.0.1:{DNS}")
        node("block", *(f"n{n}.lab" for n in range(NAMES)), "--resolver", f"127.0.0.1:{DNS}")
        prometheus = stack.enter_context(Prometheus(here, tmp_path))
        until(lambda: prometheus.query("up") == [1], 20, "the first scrape")
        before = at_rest(agent)
        lasts = SOAK_S + 12
        crowd = stack.enter_context(crowd_of(balancer, 20, int(lasts * 3000), 3000, lasts, int(lasts * 10)))
        api = Api(node.name)
        hostile = stack.enter_context(Helper(here, "hostile.py", api.path, HOSTILE, "127.0.0.1", METRICS, HOSTILE_ADDRESS))
        time.sleep(4)  # for all of them to come
        with Honest(api) as honest, Waiting(
                agent=agent.pid, checks=many.process.pid, names=names.process.pid,
                client=honest.thread.native_id, test=threading.get_native_id()) as waiting:
            since = time.monotonic()
            first, last, reacted = soak(agent, node, feed, many)
            to = time.monotonic()
        print(f"{SOAK_S:.0f} s; hostile clients closed: {hostile.result()}")
        seconds = int(to - since)
        ups = prometheus.query(f"avg_over_time(up[{seconds}s])"), prometheus.query(f"count_over_time(up[{seconds}s])")
        print(f"scrapes: {ups}, {prometheus.rejected()}")
        after = at_rest(agent, 10)
        longest = node.json("status", status=0 if node("status", check=False).returncode == 0 else 2)["agent"]
        print(f"the longest callback: {longest['longest_callback_us'] / 1000} ms, {longest['longest_callback']}")
        results = crowd.results()
        print(f"descriptors and KB: at rest {before}, then {after}; under load {first}, then {last}")
        checked, refreshed = many.result(), names.result()
        judge(waiting, lateness(checked, EVERY_S, since, to, waiting, "checks"),
              lateness(refreshed, TTL_S + 0.5, since, to, waiting, "names"), honest, reacted)
        assert len(checked) == BACKENDS and len(refreshed) == NAMES + 1
        missed = round(ups[1][0] * (1 - ups[0][0]))
        assert missed <= max(1, ups[1][0] / 20) and ups[1][0] >= seconds / SCRAPE_S - 2
        assert set(prometheus.rejected().values()) == {0}
        assert not failed(results), failed(results)
        # A batch that waits for more changes has two pipes and the descriptor of its process.
        assert after[0] <= before[0] + 3 and after[1] < before[1] + 32768
        assert last[0] < CLIENTS_MOST + BACKENDS + 100 and max(first[1], last[1]) < 512 << 10
        assert longest["longest_callback_us"] > 0
        assert longest["longest_callback_us"] <= CALLBACK_MOST_US or SOAK_S < LONG_S, longest
        assert agent.process.poll() is None and agent.stop() == 0
