# SPDX-License-Identifier: GPL-2.0-only
"""weir run: start, end, one agent per instance, the service manager, the report in status."""

import json
import os
import pathlib
import signal
import time

import pytest
from policylab import Policies, programs

from labnet import plain, until


def report(weir):
    return pathlib.Path("/run/weir", weir.name, "agent.json")


def test_ready_and_end(on):
    agent = on.run()
    before = programs(on)
    status = on.json("status")["agent"]
    assert (status["running"], status["pid"]) == (True, agent.pid)
    assert all(part["problems"] == [] for part in status["parts"])
    assert f"agent     runs since {status['since'][11:16]}, pid {agent.pid}\n" in on("status").stdout
    assert agent.stop() == 0
    assert "STOPPING=1" in agent.socket.recv(4096).decode()
    status = on.json("status")
    assert status["agent"].pop("ended_at")
    assert status["agent"] == {"running": False, "killed": False, "hangs": False, "ended": True}
    assert status["alarms"] == []
    assert "agent     none, the last one ended " in on("status").stdout
    assert programs(on) == before and on.pair.xdp_attached()


def test_interrupt_ends_it(on):
    assert on.run().stop(signal.SIGINT) == 0


def test_one_for_an_instance(on):
    first = on.run()
    assert f"instance '{on.name}' has an agent already, pid {first.pid}" in on.fails(3, "run")
    first.kill()
    assert on.run().stop() == 0


def test_killed_agent_is_an_alarm(on):
    agent = on.run()
    agent.kill()
    status = on.json("status", status=2)
    assert status["agent"] == {"running": False, "killed": True, "hangs": False, "ended": False}
    assert status["alarms"] == [f"the agent was killed or has crashed (weir -n {on.name} run)"]
    alert = status["alerts"][0]
    since = alert.pop("since")
    assert alert == {"alarm": status["alarms"][0], "about": "agent", "mend": f"weir -n {on.name} run"}
    time.sleep(1.1)
    assert on.json("status", status=2)["alerts"] == [alert | {"since": since}]
    on.run().stop()
    assert on.json("status")["alarms"] == []


def test_nothing_attached_yet(weir, tmp_path):
    """As at the first boot: the agent waits, with one line, and looks after what a command makes later."""
    agent = weir.run()
    assert [line for line in agent.said().splitlines() if " is ready, pid " not in line] == [
        f"weir: notice: instance {weir.name} is not attached to any interface; the agent waits for weir attach IFACE, "
        f"or for '/etc/weir/{weir.name}.weir'"]
    assert not weir.bpffs.exists()
    weir("attach", "near0")
    weir("apply", Policies(weir, tmp_path).write("drop from 192.0.2.1"), "--confirm=1s")
    until(lambda: "the trial has expired: the empty policy is active again" in agent.said())
    assert weir.json("status")["alarms"] == [] and agent.stop() == 0


def test_nothing_attached_and_a_policy_comes(weir, tmp_path):
    default = pathlib.Path("/etc/weir", f"{weir.name}.weir")
    agent = weir.run()
    default.parent.mkdir(exist_ok=True)
    try:
        default.write_text(Policies(weir, tmp_path).write("drop from 192.0.2.1").read_text(encoding="utf-8"), encoding="utf-8")
        until(weir.bpffs.exists)
        until(lambda: weir.pair.free("192.0.2.1") == [False])
    finally:
        default.unlink(missing_ok=True)
        agent.stop()


def test_policy_brings_the_interface(weir, tmp_path):
    path = Policies(weir, tmp_path).write("drop from 192.0.2.1")
    agent = weir.run(path)
    assert weir.pair.xdp_attached()
    assert weir.json("status")["path"] == str(path)
    assert not weir.pair.passes(weir.pair.udp("192.0.2.1"))[0]
    assert agent.stop() == 0
    assert agent.process.stdout.read().startswith(f"applied {path}: 1 rule")


def test_policy_that_is_in_effect_is_not_applied_again(weir, tmp_path):
    apply = Policies(weir, tmp_path)
    apply("drop from 192.0.2.1")
    before = programs(weir), weir("history").stdout
    assert weir.run(apply.path).stop() == 0
    assert (programs(weir), weir("history").stdout) == before


def test_bad_policy_with_nothing_attached(weir, tmp_path):
    path = Policies(weir, tmp_path).write("drop nonsense")
    done = weir("run", path, check=False)
    assert done.returncode == 1 and "nonsense" in done.stderr
    assert not weir.bpffs.exists()


def test_bad_policy_keeps_what_is_in_effect(weir, tmp_path):
    apply = Policies(weir, tmp_path)
    apply("drop from 192.0.2.1")
    before = programs(weir)
    agent = weir.run(apply.write("drop nonsense"))
    assert programs(weir) == before
    assert "the agent runs with the active policy" in agent.said()
    status = weir.json("status", status=2)
    assert len(status["alarms"]) == 1 and status["alarms"][0].startswith("agent, policy: ")
    assert agent.stop() == 0


def test_documents(weir, tmp_path):
    """With -j: the document of the apply, as soon as it is done, and one at the end."""
    path = Policies(weir, tmp_path).write("drop from 192.0.2.1")
    agent = weir.run(path, "-j")
    applied = json.loads(agent.process.stdout.readline())
    assert applied["changed"] and applied["rules"] == 1
    assert agent.stop() == 0
    assert plain(json.loads(agent.process.stdout.read())) == {"instance": weir.name, "end": True}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"parts": 1}', '{"parts": [{"problems": [1, {}]}, 2]}', "\0" * 100])
def test_a_report_that_cannot_be_read(on, text):
    on.run()
    time.sleep(0.2)
    report(on).write_text(text, encoding="utf-8")
    status = on.json("status")
    assert status["agent"]["running"] and status["alarms"] == []


def test_reload(on):
    agent = on.run()
    agent.send(signal.SIGHUP)
    lines = agent.wait_for("READY=1")
    assert lines[0] == "RELOADING=1" and lines[1].startswith("MONOTONIC_USEC=")
    assert agent.process.poll() is None


def test_a_reload_ends_with_its_apply(weir, tmp_path):
    """READY=1 is sent when the changed file is active; an invalid one ends the reload too."""
    apply = Policies(weir, tmp_path)
    agent = weir.run(apply.write("drop from 192.0.2.1"))
    path = apply.write("drop from 192.0.2.2")
    agent.send(signal.SIGHUP)
    lines = agent.wait_for("READY=1")
    assert lines[0] == "RELOADING=1"
    assert weir.pair.free("192.0.2.1", "192.0.2.2") == [True, False]
    path.write_text("drop nonsense")
    agent.send(signal.SIGHUP)
    agent.wait_for("READY=1")
    assert weir.pair.free("192.0.2.2") == [False]
    assert agent.process.poll() is None


def test_watchdog(on):
    agent = on.run(WATCHDOG_USEC="200000")
    agent.wait_for("WATCHDOG=1", 2)
    agent.wait_for("WATCHDOG=1", 2)


def test_watchdog_of_another_process(on):
    agent = on.run(WATCHDOG_USEC="20000", WATCHDOG_PID=str(os.getpid()))
    agent.send(signal.SIGHUP)
    agent.wait_for("READY=1")
    agent.stop()
    agent.socket.settimeout(0.1)
    assert "WATCHDOG=1" not in agent.told + agent.socket.recv(65536).decode().split("\n")


def test_status_of_the_service(on):
    assert any(line.startswith("STATUS=running, instance ") for line in on.run().told)


def test_lines_for_the_journal(on):
    """If standard error leads there, each line has its priority in place of our prefix."""
    assert on.run(JOURNAL_STREAM="1:1").stop() == 0
    agent = on.run(JOURNAL_STREAM="stderr")
    assert agent.stop() == 0
    lines = agent.said().splitlines()
    assert len(lines) == 2 and all(line.startswith("<5>the agent of instance") for line in lines)


def test_commands_work_beside_it(on):
    on.run()
    on("block", "192.0.2.7")
    assert not on.pair.free("192.0.2.7")[0]
    on("detach")
    until(lambda: not on.bpffs.exists())
