# SPDX-License-Identifier: GPL-2.0-only
"""weir run --hook PROGRAM: each change is a line of JSON, one at a time; slow and broken programs hold nothing up."""
import json
import pathlib
import re
import time

import pytest

from feedserver import Feed
from labnet import until
from policylab import Policies

SERVICE = """service web {
    vip 192.0.2.10
    port 80
    mode dr
    backend 10.77.0.2
    check exec "%s" every 200ms fall 1 rise 1
    keep 0%%
}
"""


class Hook:
    """A program that appends its standard input to a file, after `extra`."""

    def __init__(self, folder, extra=""):
        self.path, self.told, self.sick = folder / "hook", folder / "told", folder / "sick"
        self.path.write_text(f"#!/bin/sh\n{extra}\ncat >>{self.told}\n")
        self.path.chmod(0o755)
        self.probe = folder / "probe"
        self.probe.write_text(f"#!/bin/sh\ntest ! -e {self.sick}\n")
        self.probe.chmod(0o755)

    def events(self, kind=None):
        lines = self.told.read_text(encoding="utf-8").splitlines() if self.told.exists() else []
        found = [json.loads(line) for line in lines]
        for one in found:
            assert list(one) == ["time", "event", "object", "from", "to", "why"], one
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d", one["time"])
        return [one for one in found if kind in (None, one["event"])]

    def states(self, kind):
        return [(one["object"], one["from"], one["to"]) for one in self.events(kind)]


@pytest.fixture(name="hook")
def hook_program(tmp_path):
    return Hook(tmp_path)


def part(weir):
    parts = weir.json("status", status=weir("status", check=False).returncode)["agent"]["parts"]
    return next(one for one in parts if one["name"] == "hooks")


def test_backends_and_services(weir, hook, tmp_path):
    path = Policies(weir, tmp_path).write(SERVICE % hook.probe)
    weir.run(path, "--hook", hook.path)
    until(lambda: "ok" in weir("service").stdout)
    hook.sick.touch()
    until(lambda: len(hook.events("service")) == 1)
    hook.sick.unlink()
    until(lambda: len(hook.events("service")) == 2 and len(hook.events("backend")) == 2)
    down, up = hook.events("backend")
    assert (down["object"], down["from"], up["from"], up["to"]) == ("web 10.77.0.2", "up", down["to"], "up")
    assert down["to"] in ("down", "kept") and "exited with status 1" in down["why"] and up["why"] is None
    assert hook.states("service") == [("web", "up", "down"), ("web", "down", "up")]


def test_trials(weir, hook, tmp_path):
    apply = Policies(weir, tmp_path)
    apply("drop from 192.0.2.1")
    agent = weir.run(apply.path, "--hook", hook.path)
    apply.path = tmp_path / "other.weir"
    for number, (end, after) in enumerate({"confirmed": ["confirm"], "ended": ["rollback"], "expired": None}.items()):
        apply(f"drop from 192.0.2.{10 + number}", "--confirm=2s" if after is None else "--confirm=60s")
        until(lambda: len(hook.events("trial")) == 2 * number + 1)  # pylint: disable=cell-var-from-loop
        if after:
            weir(*after)
        until(lambda: len(hook.events("trial")) == 2 * number + 2)  # pylint: disable=cell-var-from-loop
        (revision, *begun), (same, *ended) = hook.states("trial")[-2:]
        assert revision == same and re.fullmatch("revision [0-9a-f]+", revision)
        assert begun == [None, "running"] and ended == ["running", end]
    until(lambda: agent.said().count("the trial has expired") == 1)


def test_a_trial_of_interfaces(pair, on, hook):
    on.run("--hook", hook.path)
    pair.link("add", "near7", "type", "veth", "peer", "name", "far7")
    try:
        for n, end in (1, "rollback"), (2, "confirm"):
            on("attach", "near7", "--confirm=60s")
            until(lambda: len(hook.events("trial")) == 2 * n - 1)  # pylint: disable=cell-var-from-loop
            on(end)
            until(lambda: len(hook.events("trial")) == 2 * n)  # pylint: disable=cell-var-from-loop
        assert hook.states("trial") == [("interfaces", None, "running"), ("interfaces", "running", "ended"),
                                        ("interfaces", None, "running"), ("interfaces", "running", "confirmed")]
    finally:
        pair.link("del", "near7")


def test_feeds(pair, on, hook, tmp_path):
    feed = Feed(pair, tmp_path)
    try:
        feed.lines(3)
        on.run("--hook", hook.path)
        on("block", "--url", feed.url, "--ca", feed.ca, "--sync", "feed", "--every", "1s")
        feed.mode = "404"
        until(lambda: hook.events("feed"))
        feed.mode = ""
        until(lambda: len(hook.events("feed")) == 2, 30)
    finally:
        feed.stop()
    failing, good = hook.events("feed")
    assert hook.states("feed") == [(feed.url, "ok", "failing"), (feed.url, "failing", "ok")]
    assert "404" in failing["why"] and good["why"] is None


def test_alarms(on, hook):
    """Each begins and ends once, although the time in its text changes."""
    on.run("--hook", hook.path)
    on("bypass", "--for", "70s")
    until(lambda: hook.events("alarm"))
    time.sleep(13)  # two more looks: "1m 2s more", "54s more"
    on("bypass", "--off")
    until(lambda: len(hook.events("alarm")) == 2)
    begin, end = hook.events("alarm")
    assert begin["object"] == end["object"] and "'near0' is BYPASSED" in begin["object"]
    assert (begin["from"], begin["to"], end["from"], end["to"]) == ("off", "on", "on", "off")


def is_dead(pid):
    """Also one whose exit status no process has asked for."""
    status = pathlib.Path(f"/proc/{pid}/status")
    return not status.exists() or "\nState:\tZ" in status.read_text(encoding="utf-8")


def test_one_that_hangs_is_killed_with_what_it_has_started(on, tmp_path):
    """One runs at a time, and the events that waited come after it, in their order."""
    started = tmp_path / "started"
    hook = Hook(tmp_path, f"test -e {started} || {{ sleep 1000 & echo $! >{started}; sleep 1000; }}")
    agent = on.run("--hook", hook.path)
    on("bypass")
    until(started.exists)
    on("bypass", "--off")
    until(lambda: f"hook '{hook.path}' was killed after 10 seconds" in agent.said(), 20)
    assert is_dead(started.read_text().strip())
    until(lambda: any("BYPASSED" in one["object"] and one["to"] == "off" for one in hook.events("alarm")), 20)
    until(lambda: part(on)["problems"] == [] and not part(on)["waiting"])
    assert (part(on)["failed"], part(on)["waiting"]) == (1, 0) and agent.stop() == 0


def test_events_beyond_the_queue_are_counted(weir, tmp_path):
    """At most a hundred wait; the program gets the number of those that were lost."""
    gate = tmp_path / "gate"
    hook = Hook(tmp_path, f"while test ! -e {gate}; do sleep 0.05; done")
    backends = "".join(f"    backend 10.77.0.{n}\n" for n in range(100, 160))
    text = (SERVICE % hook.probe).replace("    backend 10.77.0.2\n", backends)
    agent = weir.run(Policies(weir, tmp_path).write(text), "--hook", hook.path)
    for wave in 1, 2:
        (hook.sick.touch if wave == 1 else hook.sick.unlink)()
        until(lambda: part(weir)["waiting"] + part(weir)["lost"] >= 60 * wave, 30)  # pylint: disable=cell-var-from-loop
    until(lambda: part(weir)["lost"])
    assert part(weir)["waiting"] == 100 and "100 events wait, more are lost" in agent.said()
    gate.touch()
    until(lambda: hook.events("lost") and part(weir)["waiting"] == 0, 30)
    assert sum(int(one["to"]) for one in hook.events("lost")) == part(weir)["lost"]
    assert {(one["object"], one["why"]) for one in hook.events("lost")} == {("events", "the hook was too slow")}

    def all_told():
        counted = part(weir)
        return counted["ended"] > 100 and counted["ended"] - counted["failed"] <= len(hook.events()) <= counted["ended"]

    until(all_told)  # a hook that was too late may have written its event


def test_one_that_fails_is_logged_once_and_an_alarm(on, tmp_path):
    hook = Hook(tmp_path, "echo said by the hook; cat >/dev/null; exit 3")
    agent = on.run("--hook", hook.path)
    on("bypass")
    until(lambda: part(on)["failed"] >= 2, 30)  # of the bypass, and of the alarm about the hook itself
    assert agent.said().count(f"hook '{hook.path}' exited with status 3") == 1
    assert "said by the hook" in agent.said()
    assert part(on)["problems"] == [f"hook '{hook.path}' exited with status 3"]
    hook.path.unlink()
    on("bypass", "--off")
    until(lambda: f"hook '{hook.path}' cannot be started: it does not exist" in agent.said(), 20)
    assert agent.stop() == 0


def test_its_end_ends_the_hook(on, tmp_path):
    started = tmp_path / "started"
    hook = Hook(tmp_path, f"echo $$ >{started}; sleep 1000")
    agent = on.run("--hook", hook.path)
    on("bypass")
    until(started.exists)
    pid = int(started.read_text())
    assert agent.stop() == 0
    until(lambda: is_dead(pid))


@pytest.mark.parametrize("name, why", [
    ("hook", "is not an absolute path"), ("/nonexistent/hook", "cannot be run: it does not exist"),
    ("/etc/passwd", "cannot be run: it is not executable")])
def test_a_program_that_cannot_be_run(on, name, why):
    assert f"--hook '{name}' {why}" in on.fails(1, "run", "--hook", name)
