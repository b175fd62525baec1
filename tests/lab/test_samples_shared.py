# SPDX-License-Identifier: GPL-2.0-only
"""The samples that the agent reads for all commands: /v1/samples, weir top --by and the views beside each other."""

import contextlib
import json
import pathlib
import signal
import subprocess
import time

import pytest

import mmdb
from apiclient import Api, Client
from labnet import until
from test_top import SOURCE, generator
from test_top_by import documents, row, written
from test_top_view import views_of_a_test  # pylint: disable=unused-import

ABOUT = pytest.approx


@pytest.fixture(name="sampled")
def agent_and_traffic(pair, on):
    """200 packets a second from one source, and an agent."""
    agent = on.run()
    with generator(pair, pair.udp(SOURCE), 200):
        yield on, agent


def readers(agent):
    """The pids of the processes of `weir top --by` of the agent."""
    found = []
    for pid in pathlib.Path("/proc", str(agent.pid), "task", str(agent.pid), "children").read_text(encoding="ascii").split():
        with contextlib.suppress(OSError):  # it has ended
            if b"--by" in pathlib.Path("/proc", pid, "cmdline").read_bytes().split(b"\0"):
                found.append(int(pid))
    return found


def test_commands_beside_each_other(sampled):
    """Each has its keys, and all have the same numbers; the datapath is read once, and not after the last one has left."""
    on, agent = sampled
    assert not readers(agent)
    commands = [on.start("-j", "top", "--by", by, "-c", "4") for by in ("source", "source,port", "length,destination")]
    until(lambda: readers(agent), 10, "a reader")
    table = on("top", "--by", "source", "--for", "2s", timeout=30).stdout
    assert table.startswith("SOURCE") and SOURCE in table
    found = [documents(command.communicate(timeout=60)[0]) for command in commands]
    assert [len(one) for one in found] == [4, 4, 4]
    rates = [row(one[-1], "sources", "source", SOURCE)["packets_per_s"] for one in found[:2]]
    assert rates == [ABOUT(200, rel=0.1)] * 2 and "ports" not in found[0][0] and "sources" not in found[2][0]
    assert found[1][-1]["ports"][0]["port"].startswith("udp") and found[2][-1]["lengths"][0]["length"] == "36"
    until(lambda: not readers(agent) and not still_written(on), 10, "no reader")


def test_the_api(sampled):
    on, agent = sampled
    client = Client(Api(on.name).path)
    client.request("GET", "/v1/samples")
    answer = client.getresponse()
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/x-ndjson"
    lines = [json.loads(answer.readline()) for _ in range(3)]
    assert lines[-1]["samples"] > 100 and row(lines[-1], "sources", "source", SOURCE)["share_percent"] > 90
    assert set(lines[-1]) >= {"sources", "destinations", "ports", "lengths", "ttls", "flags", "span_us", "lost"}
    assert "countries" not in lines[-1]
    client.close()
    assert Api(on.name)("POST", "/v1/samples", {})[0] == 405
    until(lambda: not readers(agent), 10, "no reader")


def test_places_of_the_agent(pair, on, tmp_path):
    (tmp_path / "country.mmdb").write_bytes(mmdb.build({f"{SOURCE}/32": "country DE"}))
    assert "no database" in on.fails(1, "top", "--by", "country")
    agent = on.run("--geo", tmp_path)
    with generator(pair, pair.udp(SOURCE), 200):
        last = documents(on("-j", "top", "--by", "country", "-c", "2", timeout=30).stdout)[-1]
        assert row(last, "countries", "country", "DE")["share_percent"] > 90
        assert "the agent has no database for the key 'asn'" in on.fails(1, "top", "--by", "asn")
    assert "weir:" not in agent.said().replace("weir: notice", "")


def test_the_agent_ends_and_comes_back(sampled):
    on, agent = sampled
    command = on.start("-j", "top", "--by", "source")
    assert json.loads(command.stdout.readline())["sources"] is not None
    agent.process.send_signal(signal.SIGTERM)
    assert "the agent has ended" in command.communicate(timeout=20)[0] and command.returncode == 2
    agent.process.wait(timeout=20)
    # Without it, the ring has one reader.
    command = on.start("-j", "top", "--by", "source")
    command.stdout.readline()
    other = on.run()
    assert f"already sampled (pid {command.pid})" in on.fails(3, "top", "--by", "source")
    command.send_signal(signal.SIGINT)
    command.wait(timeout=10)
    assert SOURCE in on("top", "--by", "source", "--for", "2s", timeout=30).stdout
    assert "samples are not read" in other.said()


def test_another_instance_of_the_name(sampled):
    on, _ = sampled
    command = on.start("-j", "top", "--by", "source")
    command.stdout.readline()
    on("detach")
    on("attach", "near0", "--max-entries", "1000")

    def sees():
        return row(json.loads(command.stdout.readline()), "sources", "source", SOURCE)

    until(sees, 20, "samples of the new instance")


def test_views_of_samples(sampled, view):  # pylint: disable=redefined-outer-name
    on, agent = sampled
    with subprocess.Popen(on.argv("-j", "top", "--by", "port"), stdout=subprocess.PIPE, text=True) as command:
        command.stdout.readline()
        one = view("--all")
        one.shows("q quit")
        for key, text in (("8", SOURCE), ("9", on.pair.near4), ("0", "udp 9")):
            one.type(key)
            one.shows(text)
            one.shows("% ±")
            one.inside()
        assert len(readers(agent)) == 1
        one.type("q")
        one.ended()
        command.send_signal(signal.SIGINT)
    until(lambda: not readers(agent), 10, "no reader")


def test_a_view_without_an_agent(pair, on, view):  # pylint: disable=redefined-outer-name
    """Packets are sampled while the view is shown."""
    with generator(pair, pair.udp(SOURCE), 200):
        one = view()
        one.shows("q quit")
        assert not written(on)
        one.type("8")
        one.shows(SOURCE)
        assert written(on)
        one.type("1")
        one.shows("TOTAL")
        until(lambda: not still_written(on), 5, "no samples")
        command = on.start("-j", "top", "--by", "port")
        command.stdout.readline()
        one.type("8")
        one.shows("already sampled")
        command.send_signal(signal.SIGINT)
        command.wait(timeout=10)
        one.shows("% ±")


def still_written(on):
    at = written(on)
    time.sleep(0.3)
    return written(on) != at
