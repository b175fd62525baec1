# SPDX-License-Identifier: GPL-2.0-only
"""An agent that hangs, has ended, or never ran: an alarm of status, doctor and metrics where it is missed, and only there."""

import json
import os
import pathlib
import re
import signal
import struct
import time

import pytest
from policylab import Policies

from apiclient import Api
from feedserver import Feed
from labnet import run, until
from nameserver import name_server
from statefile import sealed, write_rows
from test_metrics import POLICY

LEAST_MS, PATIENCE = 5000, 3
OFTEN = {"WATCHDOG_USEC": "2000000"}  # the loop turns each second
NAME, ADDRESS = "moving.lab", "203.0.113.31"
DAY_S = 86400


def heart(weir):
    """(milliseconds of CLOCK_MONOTONIC of the last turn, from when on the agent is late)"""
    return struct.unpack("QQ", pathlib.Path("/run/weir", weir.name, "agent.heart").read_bytes())


def sleep_ms(weir):
    turned, late = heart(weir)
    return (late - turned) / PATIENCE


def alarms(weir):
    return weir.json("status", status=2 if weir("status", check=False).returncode else 0)["alarms"]


def checked(weir):
    """Whether the agent checks the first service."""
    return json.loads(weir("-j", "status", check=False).stdout)["services"][0]["checked"]  # with or without alarms


def problems(weir):
    """(text, mend) of what doctor finds about the agent."""
    findings = weir.json("doctor", status=weir("doctor", check=False).returncode)["findings"]
    about = [(one["level"], one["text"], one["mend"]) for one in findings if one["about"] == "agent"]
    assert len(about) == 1 or all(level == "problem" for level, *_ in about)
    return [(text, mend) for level, text, mend in about if level == "problem"]


def metric(weir, name):
    return int(re.search(rf"^{name}{{.*}} (\d+)$", weir("metrics").stdout, re.MULTILINE)[1])


# It hangs


def test_an_agent_that_hangs(on):
    agent = on.run(**OFTEN)
    until(lambda: sleep_ms(on) == LEAST_MS)
    assert problems(on) == [] and metric(on, "weir_agent_hangs") == 0
    agent.send(signal.SIGSTOP)
    assert alarms(on) == []
    time.sleep(PATIENCE * LEAST_MS / 1000)
    alarm, = alarms(on)
    assert re.fullmatch(rf"the agent hangs: it has done nothing for 1[567]s \(kill -KILL {agent.pid}, weir -n {on.name} run\)", alarm)
    assert on.json("status", status=2)["agent"]["hangs"]
    assert f"pid {agent.pid}, HANGS\n" in on("status", check=False).stdout
    (text, mend), = problems(on)
    assert alarm.startswith(text[:30]) and alarm.endswith(f"({mend})")
    assert (metric(on, "weir_agent_hangs"), metric(on, "weir_alarms")) == (1, 1)
    agent.send(signal.SIGCONT)
    until(lambda: alarms(on) == [])
    assert problems(on) == []


def test_no_backend_is_checked_while_it_hangs(pair, weir, tmp_path):
    path = tmp_path / "p.weir"
    path.write_text(POLICY.format(far=pair.far4).replace("\n}", "\n check tcp every 1s timeout 500ms\n}"), encoding="ascii")
    agent = weir.run(path)
    assert checked(weir)
    agent.send(signal.SIGSTOP)
    until(lambda: not checked(weir), 20)
    assert any("its backends are not checked" in alarm for alarm in alarms(weir))


def test_an_agent_that_takes_long_to_start(on):
    """The page of a former agent does not count."""
    on.run(**OFTEN).stop()
    before = heart(on)
    on.run()
    assert heart(on)[1] > before[1] and alarms(on) == []


def test_an_idle_agent_sleeps(on):
    """It looks for services to check every five seconds; its page costs no further turn. The history takes a document each
    second."""
    on.run("--no-history")
    until(lambda: heart(on)[0] < time.monotonic() * 1000 - 1000)
    times, end = set(), time.monotonic() + 2.5 * LEAST_MS / 1000
    while time.monotonic() < end:
        times.add(heart(on)[0])
        assert sleep_ms(on) == LEAST_MS
        time.sleep(0.02)
    times = sorted(times)
    assert sum(later - earlier > 1000 for earlier, later in zip(times, times[1:])) <= 3


@pytest.mark.parametrize("event", ("signal", "request"))
def test_each_turn_is_in_the_page(on, event):
    agent = on.run("--no-history")
    until(lambda: heart(on)[0] < time.monotonic() * 1000 - 1000)
    turned = heart(on)[0]
    if event == "signal":
        agent.send(signal.SIGHUP)
    else:
        Api(on.name)("GET", "/v1/status")
    until(lambda: heart(on)[0] > turned, 2)


# It has ended


@pytest.fixture(name="server")
def own_name_server(pair):
    with name_server(pair) as server:
        server.names[NAME] = 5, ADDRESS
        yield server


@pytest.fixture(name="named")
def entry_with_a_name(on, server):
    on("block", NAME, "--resolver", server.resolver)
    return on


def test_missed_for_names(named, server):
    assert alarms(named) == []
    named.run("--resolver", server.resolver).stop()
    alarm, = alarms(named)
    assert re.fullmatch(rf"the agent ended \d+m?s ago and is missed for: host names; 'weir forget --agent' ends "
                        rf"this alarm \(weir -n {named.name} run\)", alarm)
    assert problems(named)[0][1] == f"weir -n {named.name} run" and metric(named, "weir_agent_ended") == 1
    agent = named.run("--resolver", server.resolver)
    assert alarms(named) == []
    agent.stop()
    assert len(alarms(named)) == 1
    named("unblock", NAME)
    assert alarms(named) == []


def test_nobody_wants_it_any_more(named, server):
    agent = named.run("--resolver", server.resolver)
    assert "runs" in named.fails(3, "forget", "--agent")
    agent.stop()
    assert named.json("forget", "--agent", "--dry-run")["agent"] and len(alarms(named)) == 1
    assert "the end of the agent" in named("forget", "--agent").stdout
    assert alarms(named) == [] and problems(named) == []
    assert not named.json("forget", "--agent")["changed"]
    assert "cannot be combined" in named.fails(1, "forget", "--agent", "--all")
    named.run("--resolver", server.resolver).kill()
    until(lambda: named("forget", "--agent", check=False).returncode == 0)  # a child may have the lock for a moment
    assert alarms(named) == []


def test_missed_for_its_file(weir, tmp_path):
    path = Policies(weir, tmp_path).write("drop from 192.0.2.1")
    weir.run(path).stop()
    alarm, = alarms(weir)
    assert f"is missed for: {path};" in alarm
    path.unlink()
    assert alarms(weir) == []


def test_a_start_that_fails(named):
    """A service manager tries it again and again: no one reads its errors."""
    address = "--metrics", "192.0.2.99:1"
    named("run", *address, check=False)
    assert alarms(named) == []
    run(named.argv("run", *address), check=False, env={**os.environ, "NOTIFY_SOCKET": "/dev/null"})
    alarm, = alarms(named)
    assert re.match(r"the agent failed \d+m?s ago: .*192\.0\.2\.99.*; it is missed for: host names ", alarm), alarm


# None has run


def change(journal, pattern, replacement):
    """In a file of entries, with its checksums (FNV-1a of each frame)."""
    first, *rest = journal.read_text(encoding="ascii").split("\n", 1)
    frames = re.sub(pattern, replacement, rest[0])
    done = first + "\n"
    for frame in re.findall(r"(.*?)sum [0-9a-f]{16}\n", frames, re.DOTALL):
        done += sealed(frame)
    journal.write_text(done, encoding="ascii")


def later(weir, *argv):
    """On a machine that was booted long ago, so that a file may be old."""
    done = run(["unshare", "--time", "--boottime", str(9 * DAY_S), *weir.argv(*argv)], check=False)
    return [line.removeprefix("alarm     ") for line in done.stdout.splitlines() if line.startswith("alarm")]


@pytest.mark.parametrize("ttl_s, age_s, late", [
    (300, 3600 + 290, False), (300, 3600 + 310, True), (7200, 5 * 7200 - 10, False), (7200, 5 * 7200 + 10, True)])
def test_names_without_an_agent(named, ttl_s, age_s, late):
    """Late by four times the TTL, and by an hour: a timer that comes each hour is enough."""
    answered = pathlib.Path("/run/weir", named.name, "answered")
    change(named.state / "overlay", r"since \d+", f"since {int(time.time()) - DAY_S}")
    write_rows(answered, "answer", [{"name": NAME, "at_s": int(time.time()) - age_s, "ttl_s": ttl_s}])
    found = later(named, "status")
    assert len(found) == late
    if late:
        assert f"1 host name is overdue, such as {NAME}: " in found[0] and found[0].endswith(" (weir refresh)")


def test_a_list_without_an_agent(on, pair, tmp_path):
    feed = Feed(pair, tmp_path)
    feed.lines(10)
    try:
        on("block", "--url", feed.url, "--ca", feed.ca, "--sync", "drop", "--every", "1h")
        for age_s, late in (5 * 3600 - 10, False), (5 * 3600 + 10, True):
            for path in pathlib.Path(on.state, "feeds").iterdir():
                os.utime(path, (time.time() - age_s,) * 2)
            found = later(on, "status")
            assert len(found) == late
        assert "list 'drop' is overdue: it was fetched 5h" in found[0] and found[0].endswith(f"(weir -n {on.name} run)")
        on("block", "--url", feed.url, "--ca", feed.ca, "--sync", "drop", "--every", "1h")
        assert later(on, "status") == []
    finally:
        feed.stop()
