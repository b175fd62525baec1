# SPDX-License-Identifier: GPL-2.0-only
"""Connections of fullnat in what commands show, and how they end: drain, down, a former source, the agent."""

import contextlib
import json
import re
import socket
import subprocess
import time

import pytest
from labnet import run, socket_in, until
from test_cli import documented, keys_of

BALANCER = {"mode": "dr", "backends": 2}
ONE, TWO = "10.78.2.1", "10.78.2.2"
SOURCE, OTHER = "10.78.2.201", "10.78.2.211"
PINS = {"pins_half", "pins_found", "pins_talks", "pins_closed", "pins_max", "hold", "slots_stable",
        "slots_changing", "slots_pins_only"}


def policy(source=SOURCE, idle="30s", more=""):
    return f"""interface net0
service web {{
	vip 10.78.80.1; port 80; mode fullnat; source {source}; idle {idle}; check none
	backend {ONE}; backend {TWO}
}}
{more}"""


@pytest.fixture(name="path")
def policy_file(tmp_path):
    return tmp_path / "web.weir"


@pytest.fixture(name="nat")
def translating_node(balancer, node, path):
    with added(balancer, OTHER):
        path.write_text(policy())
        node("apply", path)
        yield node


def change_address(balancer, verb, address):
    balancer.on("balancer1", ["ip", "address", verb, f"{address}/24", "dev", "net0"])


@contextlib.contextmanager
def added(balancer, address):
    change_address(balancer, "add", address)
    try:
        yield
    finally:
        change_address(balancer, "del", address)


@contextlib.contextmanager
def removed(balancer, address):
    change_address(balancer, "del", address)
    try:
        yield
    finally:
        change_address(balancer, "add", address)


def ask(sock):
    """The name of the backend that answers over this connection."""
    sock.sendall(b"GET /name HTTP/1.1\r\nHost: x\r\n\r\n")
    return re.search(rb"backend(\d)\n$", sock.recv(4096)).group(1).decode()


@contextlib.contextmanager
def connection(balancer):
    """An open connection of the client, and the address of its backend."""
    with socket_in(balancer.netns("client"), socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(3)
        sock.connect((balancer.vip4, 80))
        yield sock, f"10.78.2.{ask(sock)}"


def place(balancer, backend):
    """The port of the source that the backend sees."""
    host = f"backend{backend[-1]}"
    lines = balancer.on(host, ["ss", "-tnH", "state", "established", "sport", "80"]).stdout
    return re.search(rf"{re.escape(SOURCE)}\]?:(\d+)", lines).group(1)


def test_what_commands_show(balancer, nat):
    with connection(balancer) as (_, backend):
        document = nat.json("service")
        web = document["services"][0]
        assert web["connections"] == 1 and web["connections_opening"] == 0
        assert not PINS & set(web)
        shown = {one["backend"]: one for one in web["backends"]}
        assert shown[backend]["connections"] == 1 and shown[backend]["back_packets"] > 1
        assert sum(one["connections"] for one in shown.values()) == 1
        assert "pins" not in shown[backend]
        assert web["back_packets"] == shown[backend]["back_packets"]
        assert document["nat_blocks"] == [{"mode": "fullnat", "family": "ipv4", "block": 0, "source": SOURCE,
                                           "connections": 1, "takes_new": True}]
        assert document["nat_connections"] == document["nat_fullest_group"] == document["nat_peers"] == 1
        status = nat.json("status")
        assert status["services"][0]["connections"] == status["nat_connections"] == 1
        limits = {one["table"]: one for one in nat.json("status", "--limits")["limits"]}
        assert limits["connections of fullnat IPv4"] == {"table": "connections of fullnat IPv4", "used": 1, "max": 53000}
        assert "1 connection, 0 opening, fingerprint" in nat("status", check=False).stdout
        stats = {one["backend"]: one for one in nat.json("stats")["backends"]}
        assert stats[backend]["connections"] == 1
        metrics = nat("metrics").stdout
        assert re.search(r'weir_service_connections\{.*service="web",state="all"\} 1\n', metrics)
        assert re.search(rf'weir_nat_connections\{{.*block="0",source="{SOURCE}"\}} 1\n', metrics)
        assert re.search(rf'weir_backend_connections\{{.*backend="{backend}"\}} 1\n', metrics)


def test_every_key_is_documented(balancer, nat):
    commands = [("service",), ("service", "--tidy"), ("status",), ("stats",), ("backend", "up", ONE)]
    packet = f"tcp from {balancer.client4} port 9 to {balancer.vip4} port 80".split()
    with connection(balancer):
        for words in commands:
            assert not keys_of(nat.json(*words)) - documented(words[0]), words
        assert not keys_of(nat.json("explain", *packet)) - documented("explain PACKET")


def test_a_connection_that_is_opening(balancer, nat, path):
    """In nat, with backends whose answers take another way."""
    text = policy().replace(f"mode fullnat; source {SOURCE}", "mode nat; connections 60000")
    path.write_text(text)
    nat("apply", "--force", path)
    with socket_in(balancer.netns("client"), socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(0.3)
        with pytest.raises(TimeoutError):
            sock.connect((balancer.vip4, 80))
    document = nat.json("service")
    web = document["services"][0]
    assert web["mode"] == "nat" and web["connections"] == web["connections_opening"] == 1
    assert document["nat_opening"] == 1
    blocks = [one for one in document["nat_blocks"] if one["takes_new"]]
    assert [one["mode"] for one in blocks] == ["nat", "nat"] and not any("source" in one for one in blocks)


def test_explain_and_expect(balancer, nat, path):
    with connection(balancer) as (_, backend):
        words = ["tcp", "from", backend, "port", "80", "to", SOURCE, "port"]
        answer = nat.json("explain", *words, place(balancer, backend), "flags", "ack")["packets"][0]
        assert answer["verdict"] == "service" and answer["reason"] == "service-answer-nat"
        assert answer["service"]["backend"] == backend and answer["service"]["connection"]
        assert answer["leaves"].startswith(f"tcp {balancer.vip4} port 80 > {balancer.client4} port ")
        other = nat.json("explain", *words, "1024", "flags", "ack")["packets"][0]
        assert other["verdict"] == "pass" and "service" not in other
    there = nat.json("explain", *f"tcp from 198.18.0.1 port 9 to {balancer.vip4} port 80".split())["packets"][0]
    assert there["service"]["name"] == "web" and there["service"]["connection"] is False
    path.write_text(policy(more=f"expect web answer from {ONE} to {SOURCE}\n"))
    assert "1 of 1 expectation" in nat("check", path).stdout
    path.write_text(policy(more=f"expect web answer from {ONE} to {OTHER}\n"))
    refused = nat("check", path, check=False)
    assert refused.returncode == 1 and "does not go to a source of the service" in refused.stderr


def test_down_ends_connections(balancer, nat):
    with connection(balancer) as (sock, backend):
        done = nat.json("backend", "down", backend)
        assert done["connections_ended"] == 1
        assert nat.backend(backend)["connections"] == 0
        with pytest.raises(OSError):
            ask(sock)
        with connection(balancer) as (_, next_one):
            assert next_one != backend
    assert nat.json("backend", "up", backend)["connections_ended"] == 0


def test_a_drain_waits_for_connections(balancer, nat):
    with connection(balancer) as (sock, backend):
        command = nat.argv("drain", "--wait=1s", backend)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as drain:
            time.sleep(2.5)
            assert drain.poll() is None
            assert f"10.78.2.{ask(sock)}" == backend
            sock.close()
            assert drain.wait(timeout=5) == 0
            assert "no connection is left" in drain.stdout.read()
    with connection(balancer) as (_, other):
        assert other != backend


def test_a_former_source(balancer, nat, path):
    with connection(balancer) as (sock, backend):
        path.write_text(policy(source=OTHER))
        nat("apply", path)
        assert f"10.78.2.{ask(sock)}" == backend
        blocks = {one["source"]: one for one in nat.json("service")["nat_blocks"]}
        assert blocks[SOURCE]["connections"] == 1 and not blocks[SOURCE]["takes_new"]
        assert blocks[OTHER]["takes_new"]
        assert f"former source {SOURCE}: 1 connection;" in nat("status", check=False).stdout
        assert nat.json("service", "--tidy")["blocks_removed"] == 0
        assert f"10.78.2.{ask(sock)}" == backend
        nat("backend", "down", backend)
    assert nat.json("service", "--tidy")["blocks_removed"] == 1
    assert [one["source"] for one in nat.json("service")["nat_blocks"]] == [OTHER]
    assert balancer.answers(balancer.vip4)


def test_a_source_that_is_no_address(balancer, nat, path):
    def findings():
        done = nat("-j", "doctor", "net0", check=False)
        return [one["text"] for one in json.loads(done.stdout)["findings"] if "the source" in one["text"]]

    path.write_text(policy(source=OTHER))
    nat("apply", path)
    assert not findings()
    with removed(balancer, OTHER):
        assert findings() == [f"the source {OTHER} of fullnat is not an address of this host: answers of backends arrive "
                              "only if a router sends them here"]


def test_a_source_that_this_host_uses(balancer, nat, path):
    idle = iter(range(10, 30))  # an apply of the same policy warns of nothing

    def said(source=OTHER):
        path.write_text(policy(source=source, idle=f"{next(idle)}s"))
        return (nat.json("check", path)["warnings"], nat.json("apply", path)["warnings"],
                [one["text"] for one in nat.json("doctor", "net0")["findings"] if one["text"].startswith("source ")])

    def is_bound(kind, port):
        with socket_in(balancer.netns("balancer1"), socket.AF_INET, kind) as sock:
            sock.bind((OTHER, port))
            if kind == socket.SOCK_STREAM:
                sock.listen()
            return said()

    assert said() == ([], [], [])
    for kind, name in (socket.SOCK_STREAM, "TCP"), (socket.SOCK_DGRAM, "UDP"):
        text = [f"source {OTHER}: a socket of this host has its {name} port 8080, which a client may get too: "
                "use another source"]
        assert is_bound(kind, 8080) == (text, text, text)
        assert is_bound(kind, 80) == ([], [], [])
    text = [f"source {SOURCE}: this host sends from it to {ONE} too, and can draw the same port as a client: use an "
            "address as source that this host does not send from"]
    assert said(SOURCE) == (text, text, text)
    path.write_text(policy(source="10.78.2.212"))
    checked = nat.json("check", path)["warnings"]
    assert checked == ["source 10.78.2.212 is not an address of this host: answers of backends arrive only "
                       "if a router sends them here (ip address add 10.78.2.212/32 dev IFACE)"]


def test_the_agent_walks(balancer, nat, path):
    def sources():
        return [one["source"] for one in nat.json("service")["nat_blocks"]]

    path.write_text(policy(idle="1s"))
    nat("apply", path)
    with connection(balancer):
        path.write_text(policy(idle="1s", source=OTHER))
        nat("apply", path)
        until(lambda: nat.service()["connections"] == 0)
        assert sources() == [SOURCE, OTHER]  # it has expired, and still has its place
        nat.run("--no-history")
        until(lambda: sources() == [OTHER])


def test_the_connections_of_a_backend_that_checks_call_down_end(balancer, nat, path):
    def shown(backend):
        return nat.backend(backend)

    path.write_text(policy().replace("check none", "check tcp every 200ms timeout 100ms fall 1; lost 1s"))
    nat("apply", path)
    nat.run("--no-history")
    until(lambda: all(one["health"] == "ok" for one in nat.service()["backends"]))
    with connection(balancer) as (_, backend):
        assert shown(backend)["connections"] == 1
        device = ["ip", "-n", balancer.netns("router"), "link", "set", f"backend{backend[-1]}"]
        run([*device, "down"])
        try:
            until(lambda: shown(backend)["state"] == "down")
            until(lambda: shown(backend)["connections"] == 0, seconds=5)
        finally:
            run([*device, "up"])


def test_detach_is_refused_while_there_are_connections(balancer, nat):
    with connection(balancer) as (sock, _):
        done = nat("detach", check=False)
        assert done.returncode == 3 and "1 connection of nat and fullnat would end" in done.stderr
        assert "detach --force" in done.stderr
        assert ask(sock)
    until(lambda: not nat("detach", check=False).returncode, 30)
