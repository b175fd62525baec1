# SPDX-License-Identifier: GPL-2.0-only
"""weir metrics: Prometheus reads it, and it says what weir stats and weir status say."""
import re
import shutil
import subprocess

import pytest

from apiclient import Api
from feedserver import Feed
from labnet import ROOT, until

BLOCKED = "203.0.113.10"
POLICY = 'interface near0\n"odd" drop proto udp to port 9999\nservice www {{\n vip 192.0.2.10\n proto tcp\n port 80\n mode ipip\n source 10.77.0.77\n backend {far}\n}}\n'


def read(text):
    """{(name, labels): value}; each line is a comment or a sample."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = re.fullmatch(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\} (\d+(?:\.\d{3}|\.\d{6})?)', line)
        assert match, line
        key = match[1], frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2]))
        assert key not in found, line
        found[key] = float(match[3])
    return found


@pytest.fixture(name="read_now")
def reader(weir):
    return lambda: read(weir("metrics").stdout)


def value(metrics, name, **labels):
    """Of the one sample with these labels."""
    found = [number for (which, has), number in metrics.items() if which == name and set(labels.items()) <= has]
    assert len(found) == 1, (name, labels, found)
    return found[0]


def test_counters_and_states(pair, weir, tmp_path, read_now):
    path = tmp_path / "p.weir"
    path.write_text(POLICY.format(far=pair.far4))
    weir("apply", path)
    weir("block", BLOCKED, "--origin", "ban")
    before = read_now()
    assert pair.free(BLOCKED) == [False]
    counted = {(one["verdict"], one["reason"]): one["packets"] for one in weir.json("stats", "-i")["counters"]}
    now = read_now()
    for (verdict, reason), packets in counted.items():
        assert value(now, "weir_packets_total", interface="near0", verdict=verdict, reason=reason) >= packets > 0
    assert sum(number for (name, has), number in now.items() if name == "weir_packets_total" and ("verdict", "drop") in has) >= 1
    assert value(now, "weir_origin_entries", origin="ban", verb="block") == 1
    assert value(now, "weir_origin_packets", origin="ban") > value(before, "weir_origin_packets", origin="ban")
    assert value(now, "weir_interface_attached", interface="near0") == 1
    assert value(now, "weir_service_backends", service="www", state="up") == 1
    assert value(now, "weir_alarms") == len(weir.json("status", status=2 if weir("status", check=False).returncode else 0)["alarms"])
    assert {name for name, _ in now} >= {"weir_build_info", "weir_table_entries", "weir_table_size", "weir_rule_packets_total"}


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool")
def test_promtool_finds_nothing(on):
    done = subprocess.run(["promtool", "check", "metrics"], input=on("metrics").stdout, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_without_an_instance(weir):
    assert "does not exist" in weir.fails(1, "metrics")
    assert "one form only" in weir("-j", "metrics", check=False).stderr


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool")
def test_alerts(on):
    folder = ROOT / "docs/monitoring"
    for words in ("check", folder / "weir.rules.yml"), ("test", folder / "weir.rules.test.yml"):
        done = subprocess.run(["promtool", words[0], "rules", words[1]], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    # Each metric that an alert looks at exists under this name.
    named = set(re.findall(r"\bweir_\w+", re.sub(r"\$labels\.\w+|\(weir_instance", "", (folder / "weir.rules.yml").read_text())))
    source = (ROOT / "ctl/cmd/metrics.c").read_text()
    assert named and all(f'"{name}"' in source or name == "weir_build_info" for name in named - {"weir_instance"}), named
    alerts = set(re.findall(r"alert: (\w+)", (folder / "weir.rules.yml").read_text()))
    tested = set(re.findall(r"alertname: (\w+)\n", (folder / "weir.rules.test.yml").read_text()))
    assert alerts == tested  # each has been seen to fire
    assert on("metrics").stdout


def test_two_origins_with_a_list_of_one_name(on, read_on):
    """Each has samples of its own, as it has a row of weir stats."""
    def sync(verb, addresses, *origin):
        on(verb, "-f", "-", "--sync", "attackers", *origin, input="".join(f"{one}\n" for one in addresses))

    sync("block", ["198.51.100.10"], "--origin", "bouncer")
    sync("block", ["198.51.100.20", "198.51.100.21"], "--origin", "feeds")
    sync("allow", ["198.51.100.30"], "--origin", "feeds")
    sync("block", ["198.51.100.40"])  # without an origin
    now = read_on()
    rows = on.json("stats")["lists"]
    assert len(rows) == 4
    for row in rows:
        labels = {key: row[key] for key in ("list", "origin", "verb")}
        for what in ("entries", "packets", "bytes"):
            assert value(now, f"weir_list_{what}", **labels) == row[what]
    assert value(now, "weir_list_entries", list="attackers", origin="feeds", verb="block") == 2


# ---- the agent ------------------------------------------------------------------------------------------


@pytest.fixture(name="read_on")
def reader_on(on):
    def once():
        text = on("metrics").stdout
        if shutil.which("promtool"):
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
            assert done.returncode == 0 and not done.stderr, done.stderr
        return read(text)
    return once


def samples(metrics, name, label):
    """{value of the label: number} of one family."""
    return {dict(has)[label]: number for (which, has), number in metrics.items() if which == name and label in dict(has)}


def test_without_an_agent(read_on):
    now = read_on()
    assert value(now, "weir_agent_running") == 0
    assert not {name for name, _ in now} & {"weir_names", "weir_checks_total", "weir_agent_applies_total"}


def test_an_agent_that_ended_is_not_one_that_died(on, read_on):
    def agent_of(metrics):
        return tuple(value(metrics, f"weir_agent_{word}") for word in ("running", "killed"))

    agent = on.run()
    assert agent_of(read_on()) == (1, 0)
    assert agent.stop() == 0
    assert agent_of(read_on()) == (0, 0)
    agent = on.run()
    agent.kill()
    until(lambda: agent_of(read_on()) == (0, 1), what="the end of its copies, which hold its lock for a moment")
    agent = on.run()
    assert agent_of(read_on()) == (1, 0)
    assert agent.stop() == 0
    assert agent_of(read_on()) == (0, 0)


def test_health_and_checks(pair, on, read_on, tmp_path):
    path, sick = tmp_path / "p.weir", tmp_path / "sick"
    program = tmp_path / "check"
    program.write_text(f"#!/bin/sh\nsleep 0.03\ntest ! -e {sick}\n")
    program.chmod(0o755)
    path.write_text(POLICY.format(far=pair.far4).replace("\n}", f'\n check exec "{program}" every 300ms timeout 200ms rise 2 fall 2\n keep 0%\n lost 1s\n}}'))
    on.run(path)

    def health():
        return samples(read_on(), "weir_backend_health", "state")

    until(lambda: health() == {"up": 1, "failing": 0, "down": 0}, what="health")
    sick.touch()
    until(lambda: health() == {"up": 0, "failing": 1, "down": 0}, what="the failure")
    until(lambda: health() == {"up": 0, "failing": 0, "down": 1}, what="the end of lost")
    sick.unlink()
    until(lambda: health()["up"] == 1, what="the recovery")
    until(lambda: samples(read_on(), "weir_checks_total", "result").get("failed", 0) >= 2, what="a report with the failures")
    now = read_on()
    ended = value(now, "weir_check_duration_seconds_count", service="www")
    buckets = sorted((float(le), number) for le, number in samples(now, "weir_check_duration_seconds_bucket", "le").items())
    results = samples(now, "weir_checks_total", "result")
    assert results["good"] >= 2 and results["unknown"] == 0 and sum(results.values()) == ended
    assert [number for _, number in buckets] == sorted(number for _, number in buckets) and buckets[-1] == (float("inf"), ended)
    assert all(number == 0 for le, number in buckets if le < 0.03) and dict(buckets)[5] == ended  # each takes 30 ms at least
    assert ended * 0.03 <= value(now, "weir_check_duration_seconds_sum") <= ended * 5
    path.write_text("drop from 192.0.2.1\n")
    on("apply", path)
    until(lambda: not any(name.startswith("weir_check") for name, _ in read_on()), what="the end of the service")


def applies(read_on, source):
    """(good, failed), as counted by the agent."""
    now = read_on()
    return tuple(value(now, "weir_agent_applies_total", source=source, result=result) for result in ("ok", "failed"))


def test_applies(on, read_on, tmp_path):
    path = tmp_path / "p.weir"
    path.write_text("default pass\n")
    on.run(path)
    assert applies(read_on, "file") == (1, 0)
    path.write_text("nonsense\n")
    until(lambda: applies(read_on, "file") == (1, 1), what="the failure")
    path.write_text('"odd" drop proto udp to port 9999\n')
    until(lambda: applies(read_on, "file") == (2, 1), what="the success")


@pytest.fixture(name="feed")
def feed_server(pair, tmp_path):
    feed = Feed(pair, tmp_path / "feed")
    yield feed
    feed.stop()


def test_applies_without_a_file(on, read_on, tmp_path, feed):
    """Of feeds of the active policy, and of the API; none yet are samples, too."""
    path = tmp_path / "p.weir"
    text = f'interface near0\nset list {{ url "{feed.url}" ca "{feed.ca}" every 1s }}\ndrop from @list\n'
    path.write_text(text + "expect pass udp from 192.0.2.1 to 10.77.0.1 port 9\n")
    feed.body = b"198.51.100.1\n"
    agent = on.run()
    assert [applies(read_on, source) for source in ("file", "again", "api")] == [(0, 0)] * 3
    api = Api(on.name)
    assert api("POST", "/v1/apply", {"file": str(path)})[0] == 200
    until(lambda: applies(read_on, "api") == (1, 0), what="the apply of the API")
    feed.body = b"198.51.100.2\n"
    until(lambda: applies(read_on, "again") == (1, 0), 20, "the apply of the feed")
    feed.body = b"192.0.2.1\n"
    until(lambda: applies(read_on, "again") == (1, 1), 20, "its failure")
    path.write_text("nonsense\n")
    assert api("POST", "/v1/apply", {"file": str(path), "dry-run": True})[0] == 400
    assert api("POST", "/v1/apply", {"file": str(path)})[0] == 400
    until(lambda: applies(read_on, "api") == (1, 1), what="the failure of the API")
    assert applies(read_on, "file") == (0, 0) and applies(read_on, "api") == (1, 1) and agent.process.poll() is None


def test_names(pair, on, read_on):
    name = "metrics.lab"
    pair.dns(name, BLOCKED)
    on("block", name, "--resolver", pair.resolver)
    on.run("--resolver", pair.resolver)
    until(lambda: value(read_on(), "weir_names") == 1, what="the list of names")
    assert value(read_on(), "weir_names_failing") == 0
    until(lambda: value(read_on(), "weir_names_oldest_answer_age_seconds") >= 3, what="some age")
    until(lambda: value(read_on(), "weir_names_oldest_answer_age_seconds") <= 1, what="an answer")
    pair.dns(name, "none")
    until(lambda: value(read_on(), "weir_names_failing") == 1, seconds=20, what="the failure")
    until(lambda: value(read_on(), "weir_names_oldest_answer_age_seconds") >= 6, seconds=20, what="age")


def test_feeds(pair, on, read_on, tmp_path):
    feed = Feed(pair, tmp_path)
    feed.lines(1000)
    path = tmp_path / "p.weir"
    secret = feed.url + "?key=SECRET"
    path.write_text(f'set list {{ url "{secret}" ca "{feed.ca}" every 1h }}\n"list" drop from @list\n')
    try:
        on.run(path)
        until(lambda: samples(read_on(), "weir_feed_age_seconds", "url"), what="the feed")
        assert samples(read_on(), "weir_feed_age_seconds", "url").keys() == {feed.url}
        text = on("metrics").stdout
        assert "SECRET" not in text
        now = read(text)
        assert value(now, "weir_feed_age_seconds") < 60 and value(now, "weir_feed_interval_seconds") == 3600
        assert value(now, "weir_feed_entries") == 1000 and value(now, "weir_feed_failures") == 0
    finally:
        feed.stop()
