# SPDX-License-Identifier: GPL-2.0-only
"""States of backends by checks: backends that flap, wait and fail together; what commands, applies and trials do
meanwhile."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from balancerlab import crowd_of, failed

from healthlab import (CHECK, FAILS, ONE, THREE, TWO, all_fail, all_ok, health, killed_web, silent, slots,
                       states)
from labnet import PATIENCE, WEIR, run, until

BALANCER = {"mode": "ipip"}


def test_flapping(balancer, node, serve):
    """A backend that changes faster than `rise` and `fall` does not move a slot."""
    serve(f'check http "/name" port 80 every {200 * PATIENCE}ms timeout {100 * PATIENCE}ms rise 3 fall 4')
    agent = node.run()
    until(lambda: all_ok(node))
    before = node.json("service", "web")["services"][0]["fingerprint"]
    for _ in range(4):
        with killed_web(balancer, "backend2"):
            time.sleep(0.3 * PATIENCE)
        time.sleep(0.4 * PATIENCE)
    assert node.json("service", "web")["services"][0]["fingerprint"] == before
    assert "fails its checks" not in agent.said()


def test_ramp(balancer, node, serve):
    serve(CHECK, "ramp 4s")
    node.run()
    until(lambda: all_ok(node))
    full = slots(node)[TWO]
    with killed_web(balancer, "backend2"):
        until(lambda: states(node)[TWO] == "failing")
    until(lambda: states(node)[TWO] == "up")
    seen = []
    while "ramp" in health(node)[TWO]:
        seen.append(slots(node)[TWO])
    assert seen == sorted(seen) and 0 < seen[0] < full / 4 and len(set(seen)) > 5
    assert slots(node)[TWO] == full


KEPT = "service 'web': {} new flows although {} checks fail, {}"
OPEN = KEPT.format("{} backends get", "their", "because no backend passes its checks")


def test_keep(balancer, node, serve):
    """So much of the weight stays as the policy says; those that failed last stay."""
    serve(CHECK, "keep 50%", "lost 1s")
    agent = node.run()
    until(lambda: all_ok(node))
    with contextlib.ExitStack() as dead:
        dead.enter_context(killed_web(balancer, "backend1"))
        until(lambda: states(node)[ONE] == "failing")
        dead.enter_context(killed_web(balancer, "backend3"))
        until(lambda: ", kept: connection refused" in health(node)[THREE])
        assert states(node)[ONE] in ("failing", "down") and states(node)[THREE] == "up"
        assert slots(node)[ONE] == 0 and slots(node)[THREE] > 5000
        until(lambda: states(node)[ONE] == "down")
        status = node.json("status", status=2)
        assert (status["services"][0]["down"], status["services"][0]["kept"]) == (1, 1)
        assert FAILS.format(2) in status["alarms"]
        assert KEPT.format("1 backend gets", "its", "because of 'keep 50%'") in status["alarms"]
        node("drain", THREE)  # 10.78.2.1 and 10.78.2.2 are left, of which half is up
        assert states(node)[THREE] == "drain, override, checks fail" and slots(node)[THREE] == 0
        said = node("undrain", THREE).stdout
        assert f"the checks of {THREE} fail (" in said and "gets new flows all the same, because of 'keep 50%'" in said
        assert slots(node)[THREE] > 5000  # at once: the command decides as the agent does
        until(lambda: health(node)[THREE].startswith("down for "))
        said = agent.said()
        assert f"{THREE} fails its checks, kept: connection refused" in said and f"{ONE} is down" in said
        assert f"{THREE} is down" not in said
    until(lambda: all_ok(node))
    assert node.json("status")["alarms"] == []


@pytest.mark.parametrize("keep", ["0%", "50%"])
def test_a_backup_is_better_than_a_dead_one(balancer, node, serve, keep):
    """Whatever `keep` says and the backends weigh; among backends without a backup a dead one is never better."""
    serve(CHECK, f"keep {keep}", weights={1: 1, 2: 9, 3: 4}, backups=(3,))
    node.run()
    until(lambda: all_ok(node))
    assert slots(node)[THREE] == 0
    with contextlib.ExitStack() as dead:
        dead.enter_context(killed_web(balancer, "backend2"))
        until(lambda: slots(node)[TWO] == 0)
        assert slots(node)[ONE] > 16000 and slots(node)[THREE] == 0 and states(node)[TWO] == "failing"
        assert FAILS.format(1) in node.json("status", status=2)["alarms"]
        dead.enter_context(killed_web(balancer, "backend1"))
        until(lambda: slots(node)[THREE] > 16000)
        assert (slots(node)[ONE], slots(node)[TWO]) == (0, 0)
        assert {one.split()[0] for one in (states(node)[ONE], states(node)[TWO])} <= {"failing", "down"}
        assert node.json("status", status=2)["services"][0]["kept"] == 0
        with crowd_of(balancer, 0, 1, 1, 0.05, 60) as crowd:
            results = crowd.results(newcomers=True)
        assert not failed(results), failed(results)
        assert {one["backend"] for one in results} == {"backend3"}
    until(lambda: all_ok(node) and slots(node)[THREE] == 0)


def exec_check(tmp_path):
    """Fails for those backends for which there is a file bad-ADDRESS, although they are well."""
    program = tmp_path / "check"
    program.write_text(f"#!/bin/sh\ntest ! -e {tmp_path}/bad-$WEIR_BACKEND\n")
    program.chmod(0o755)
    return f'check exec "{program}" every 300ms timeout 200ms rise 2 fall 2'


def test_a_wrong_check_empties_no_service(balancer, node, serve, tmp_path):
    """Where all fail, all get new flows again: one server alone could not carry them. The first that is well again
    is the only one."""
    check = exec_check(tmp_path)
    serve(check, "lost 1s")
    agent = node.run()
    until(lambda: all_ok(node))
    for one in ONE, TWO, THREE:
        (tmp_path / f"bad-{one}").touch()
        until(lambda bad=one: "the program exited with status 1" in health(node)[bad])
    until(lambda: min(slots(node).values()) > 5000)
    assert all(", kept: " in one for one in health(node).values()) and set(states(node).values()) == {"up"}
    status = node.json("status", status=2)
    assert status["services"][0]["kept"] == 3
    assert FAILS.format(3) in status["alarms"] and OPEN.format(3) in status["alarms"]
    until(lambda: all(one.startswith("down for ") for one in health(node).values()))  # after `lost`, too
    assert min(slots(node).values()) > 5000
    with crowd_of(balancer, 0, 1, 1, 0.05, 60) as crowd:
        results = crowd.results(newcomers=True)
    assert not failed(results) and {one["backend"] for one in results} == set(balancer.backends)
    agent.kill()  # packets do not know of it, nor does an apply
    serve(check, "lost 1s", "ramp 1s")
    assert min(slots(node).values()) > 5000
    agent = node.run()
    (tmp_path / f"bad-{TWO}").unlink()
    until(lambda: health(node)[TWO] == "ok")
    assert slots(node) == {ONE: 0, TWO: 16381, THREE: 0}
    assert {states(node)[ONE], states(node)[THREE]} <= {"failing", "down"}
    until(lambda: f"{TWO} is up again" in agent.said())
    assert f"{ONE} is down" in agent.said()


def test_drain_beside_failing_ones(balancer, node, serve, tmp_path):
    """The command prints the consequence, and its exit status shows it."""
    check = exec_check(tmp_path)
    serve(check)
    node.run()
    until(lambda: all_ok(node))
    for one in ONE, TWO:
        (tmp_path / f"bad-{one}").touch()
    until(lambda: slots(node) == {ONE: 0, TWO: 0, THREE: 16381})
    meant = (f"no backend of service 'web' that passes its checks is left: {ONE}, {TWO} get new flows although "
             "their checks fail")
    assert meant in node.fails(3, "drain", THREE, "--dry-run") and slots(node)[THREE] == 16381
    assert meant in node.fails(3, "drain", THREE)
    assert slots(node)[THREE] == 0 and min(slots(node)[ONE], slots(node)[TWO]) > 8000
    assert meant in node.fails(3, "drain", THREE, "--wait=1s")
    assert "no backend of service 'web' accepts new flows" not in node.fails(3, "weight", THREE, 0)
    assert "new flows all the same" in node("undrain", ONE).stdout
    node("undrain", THREE)
    assert slots(node) == {ONE: 0, TWO: 0, THREE: 16381}
    assert "it gets no new flows before they succeed" in node("undrain", ONE).stdout


def test_all_dead_in_both_rings(balancer, node, serve, tmp_path):
    """The ring of a trial and the one before open."""
    check = exec_check(tmp_path)
    serve(check)
    node.run()
    until(lambda: all_ok(node))
    serve(check, weights={1: 2}, options=["--confirm=4s", "--force"])
    for one in ONE, TWO, THREE:
        (tmp_path / f"bad-{one}").touch()
    until(lambda: all_fail(node))
    assert slots(node)[ONE] > 8000 and min(slots(node).values()) > 4000
    assert "trial" in node("status", check=False).stdout
    until(lambda: "trial" not in node("status", check=False).stdout)
    assert 5000 < min(slots(node).values()) and max(slots(node).values()) < 6000


def test_commands_win(balancer, node, serve):
    serve(CHECK, "lost 1s")
    node.run()
    until(lambda: all_ok(node))
    node("drain", TWO)
    with killed_web(balancer, "backend2"):
        until(lambda: health(node)[TWO].startswith("down for "))
        assert states(node)[TWO] == "drain, override, checks fail"  # its flows stay
        said = node("undrain", TWO).stdout
        assert f"{TWO} of web: down, weight 1\n" in said
        assert f"the checks of {TWO} fail (down for " in said and "it gets no new flows before they succeed" in said
        assert slots(node)[TWO] == 0
        node("backend", "down", TWO)
        node("backend", "up", TWO)
        assert states(node)[TWO] == "down"
        drains = pathlib.Path(node.state, "drains")
        assert not drains.exists() or TWO not in drains.read_text(encoding="ascii")
    until(lambda: all_ok(node))
    assert states(node)[TWO] == "up"


def test_a_restart_changes_nothing(balancer, node, serve):
    """An agent that is killed, or ended, leaves the states; the next one continues with them."""
    serve(CHECK, "lost 1h")
    agent = node.run()
    until(lambda: all_ok(node))
    with killed_web(balancer, "backend2"):
        until(lambda: states(node)[TWO] == "failing")
        mark = node.json("service", "web")["services"][0]["fingerprint"]
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            assert agent.stop(number) == (0 if number == signal.SIGTERM else -number)
            assert node.json("service", "web")["services"][0]["fingerprint"] == mark
            assert health(node)[TWO] == "not checked"
            agent = node.run()
            until(lambda: health(node)[TWO].startswith("failing for "))
            time.sleep(0.3)
            assert node.json("service", "web")["services"][0]["fingerprint"] == mark
            assert "fails its checks" not in agent.said() and "up again" not in agent.said()
        pathlib.Path(f"/run/weir/{node.name}/health").unlink()
        agent.stop(signal.SIGKILL)
        agent = node.run()  # without the file, the kernel tells
        until(lambda: health(node)[TWO].startswith("failing for "))
        assert node.json("service", "web")["services"][0]["fingerprint"] == mark
        assert "up again" not in agent.said()
    until(lambda: all_ok(node))


def test_applies_go_on_with_the_states(balancer, node, serve):
    serve(CHECK)
    node.run()
    until(lambda: all_ok(node))
    with killed_web(balancer, "backend2"):
        until(lambda: states(node)[TWO] == "failing")
        serve(CHECK, backends=(2, 3))
        assert states(node)[TWO] == "failing"
        serve(CHECK, backends=(1, 2, 3))
        until(lambda: health(node)[ONE] == "ok")
        assert states(node)[TWO] == "failing"
        serve()  # nothing checks them any more
        assert set(states(node).values()) == {"up"} and health(node)[TWO] == ""
        assert node.json("status")["alarms"] == []


def test_a_new_backend_gets_nothing_before_its_first_check(balancer, node, serve):
    """It is dead when an apply adds it: no connection fails. One good check is enough, whatever `rise` says."""
    check = 'check http "/name" port 80 every 300ms timeout 250ms rise 99 fall 2'
    serve(check, backends=(1, 3))
    agent = node.run()
    until(lambda: all_ok(node))
    with killed_web(balancer, "backend2"), crowd_of(balancer, 0, 1, 1, 0.01, 300) as crowd:
        serve(check)
        until(lambda: health(node)[TWO].endswith(": connection refused"))
        assert states(node)[TWO] == "failing" and slots(node)[TWO] == 0
        results = crowd.results(newcomers=True)
    assert len(results) >= 300 and not failed(results), failed(results)
    until(lambda: health(node)[TWO] == "ok", 8)
    assert slots(node)[TWO] > 5000
    until(lambda: f"{TWO} is up\n" in agent.said())


def stop_without_lock(agent):
    """A process that is stopped while it holds a lock keeps it: then it runs for a moment, and is stopped again."""
    def stopped():
        os.kill(agent.pid, signal.SIGSTOP)
        if locks(agent.pid) <= 1:  # its own, /run/weir/NAME/agent
            return True
        os.kill(agent.pid, signal.SIGCONT)
        return False

    until(stopped, 5)


def locks(pid):
    lines = pathlib.Path("/proc/locks").read_text().splitlines()
    return sum("->" not in line and line.split()[4] == str(pid) for line in lines)


@contextlib.contextmanager
def hung(agent):
    stop_without_lock(agent)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(agent.pid, signal.SIGCONT)


def waits(node, *backends):
    assert {states(node)[one] for one in backends} == {"waiting"}
    assert {health(node)[one] for one in backends} == {"not checked yet"}
    assert not any(slots(node)[one] for one in backends)


def test_a_hung_agent_while_all_wait(node, serve):
    """A new service gets no flows, which is an alarm before it is known that the agent hangs."""
    def alarms():
        return json.loads(node("-j", "status", check=False).stdout)["alarms"]

    node("attach", "net0")
    with hung(node.run()):
        serve(CHECK)
        waits(node, ONE, TWO, THREE)
        until(lambda: "service 'web': 3 backends get no new flows before a first check, which the agent does not make" in alarms(), 8)
    until(lambda: all_ok(node) and alarms() == [])


@pytest.mark.parametrize("how", ["command", "agent"])
def test_an_agent_that_dies_while_one_waits(balancer, node, serve, how):
    """The next command after the wait ends it, and so does the next agent, by a check."""
    serve(CHECK, backends=(1, 2))
    agent = node.run()
    until(lambda: all_ok(node))
    with hung(agent):
        serve(CHECK)
        waits(node, THREE)
        status = node.json("status", status=0)["services"][0]
        assert (status["up"], status["waiting"], status["drained"]) == (2, 1, 0)
        assert "1 not checked yet" in node("status").stdout
        agent.kill()
    assert states(node)[THREE] == "waiting" and health(node)[THREE] == "not checked"
    if how == "agent":
        node.run()
        until(lambda: all_ok(node))
    else:
        time.sleep(3.5)  # 3 s and `timeout`
        node("service", "--refresh")
        assert states(node)[THREE] == "up"
    assert slots(node)[THREE] > 5000 and balancer.answers(balancer.vip4)


def test_a_new_service_waits_three_seconds(balancer, node, serve, tmp_path):
    """Then its backends get flows as without checks. Those that an agent finds keep their flows."""
    nothing = tmp_path / "nothing.weir"
    nothing.write_text("interface net0\ndefault pass\n")
    node("apply", nothing)
    agent = node.run()
    with contextlib.ExitStack() as dead:
        for host in balancer.backends:
            dead.enter_context(silent(balancer, host))
        serve('check tcp port 80 every 20s timeout 20s', "lost 1s")
        began = time.monotonic()
        waits(node, ONE, TWO, THREE)
        assert node.json("status")["alarms"] == []
        until(lambda: min(slots(node).values()) > 5000)
        assert 2 < time.monotonic() - began < 6
        assert set(states(node).values()) == {"up"} and set(health(node).values()) == {"not checked yet"}
    agent.stop()
    node.run()
    assert set(states(node).values()) == {"up"} and min(slots(node).values()) > 5000
    node("apply", nothing)
    serve(CHECK)
    until(lambda: all_ok(node), 2.5)  # no wait where checks end sooner


def test_health_changes_both_rings_of_a_trial(balancer, node, serve):
    """After the trial the previous ring has what the checks have said meanwhile."""
    serve(CHECK)
    node.run()
    until(lambda: all_ok(node))
    serve(CHECK, weights={1: 2}, options=["--confirm=2s"])
    with killed_web(balancer, "backend2"):
        until(lambda: slots(node)[TWO] == 0)
        assert states(node)[TWO] == "failing" and "trial" in node("status", check=False).stdout
        until(lambda: "trial" not in node("status", check=False).stdout)
        assert node.backend(ONE)["weight"] == 1
        assert states(node)[TWO] == "failing" and slots(node)[TWO] == 0
        assert balancer.answers(balancer.vip4)
    until(lambda: all_ok(node))
    assert slots(node)[TWO] > 5000


@contextlib.contextmanager
def without_carrier(balancer):
    """Of net0 of the balancer. The router's end is down, which costs the router its routes."""
    ip, end = ["ip", "-n", balancer.netns("router")], ["dev", "balancer1"]
    routes = {family: run([*ip, family, "route", "show", *end]).stdout.splitlines() for family in ("-4", "-6")}
    run([*ip, "link", "set", *end, "down"])
    try:
        yield
    finally:
        run([*ip, "link", "set", *end, "up"])
        for family, lines in routes.items():
            for line in lines:
                run([*ip, family, "route", "replace", *line.split(), *end], check=False)


def test_a_dead_link(balancer, node, serve):
    """A device without carrier is a state, not evidence: its backends are down at once."""
    serve(CHECK)
    node.run()
    until(lambda: all_ok(node))
    with without_carrier(balancer):
        until(lambda: set(states(node).values()) == {"down"}, 1)
        until(lambda: all(one.endswith(": its link is dead") for one in health(node).values()), 1)
        time.sleep(0.5)  # checks that fail for it do not hide the reason
        assert all(one.endswith(": its link is dead") for one in health(node).values()), health(node)
    until(lambda: all_ok(node), 20)


MANY = "10.99.0.0/22"


@pytest.fixture(name="many")
def many_backends(balancer):
    """The web server of backend1 has a thousand more addresses."""
    at = ["ip", "-n", balancer.netns("backend1"), "route"]
    to = ["ip", "-n", balancer.netns("router"), "route"]
    run([*at, "add", "local", MANY, "dev", "lo"])
    run([*to, "add", MANY, "via", ONE, "dev", "backend1"], check=False)
    decap = [WEIR, "-N", balancer.netns("backend1"), "decap", "net0"]
    run([*decap, "--off"])  # it takes the addresses that the host has when it starts
    run([*decap, "--from", "10.78.0.0/16"])
    yield lambda count: [f"10.99.{n // 250}.{n % 250 + 1}" for n in range(count)]
    run([*to, "del", MANY])
    run([*at, "del", "local", MANY, "dev", "lo"])


def write_many(path, balancer, addresses, *lines):
    backends = "".join(f"\tbackend {address}\n" for address in addresses)
    inside = "".join(f"\t{line}\n" for line in lines)
    path.write_text(f'interface net0\nseed "lab"\nservice web {{\n\tvip {balancer.vip4}\n\tport 80\n\tmode ipip\n'
                    f"{inside}{backends}}}\n")


def cpu_s(agent):
    fields = pathlib.Path(f"/proc/{agent.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("keep, left", [("0%", 1), ("50%", 32)])
def test_one_survivor_of_64(balancer, node, many, tmp_path, keep, left):
    """All but one die at once: one rewrite of the ring."""
    addresses = many(64)
    path = tmp_path / "many.weir"
    write_many(path, balancer, addresses, 'check http "/name" every 500ms timeout 200ms rise 2 fall 2', f"keep {keep}")
    node("apply", path)
    node.run()
    until(lambda: all_ok(node))
    balancer.on("backend1", ["nft", "add", "table", "ip", "dead"])
    try:
        chain = "{ type filter hook prerouting priority -300; }"
        balancer.on("backend1", ["nft", "add", "chain", "ip", "dead", "in", chain])
        rule = f"ip daddr {MANY} ip daddr != {addresses[40]} drop"
        balancer.on("backend1", ["nft", "add", "rule", "ip", "dead", "in", *rule.split()])
        until(lambda: sum(one.startswith("failing") for one in health(node).values()) == 63)
        until(lambda: sum(count > 0 for count in slots(node).values()) == left, 2)
        assert slots(node)[addresses[40]] >= 16381 // left
        assert "checks fail for 63 of 64 backends" in node("status", check=False).stdout
    finally:
        balancer.on("backend1", ["nft", "delete", "table", "ip", "dead"])
    until(lambda: all_ok(node))


# The same checks in a loop of Python, spread over some seconds as the checks of the agent are: each begins with the caches as other
# processes have left them. Prints the seconds of processor time that one takes.
PLAIN = """
import socket, ssl, sys, time
kind, port, seconds = sys.argv[1:]
addresses = sys.stdin.read().split()
context = ssl._create_unverified_context()
began = time.process_time()
for address in addresses:
    time.sleep(float(seconds) / len(addresses))
    with socket.create_connection((address, int(port))) as sock:
        if kind == "tcp":
            continue
        if kind == "https":
            sock = context.wrap_socket(sock)
        sock.sendall(b"GET /name HTTP/1.1\\r\\nHost: web\\r\\nConnection: close\\r\\n\\r\\n")
        while sock.recv(4096):
            pass
print((time.process_time() - began) / len(addresses))
"""


def plain_s(balancer, addresses, check, seconds):
    kind = check.split()[0]
    port = 443 if kind == "https" else 80
    argv = [sys.executable, "-c", PLAIN, kind, str(port), str(seconds)]
    return float(balancer.on("balancer1", argv, input="\n".join(addresses)).stdout)


@pytest.mark.parametrize("count, check, most", [
    (1000, "tcp", 0.8), (1000, 'http "/name"', 1.1), (1000, 'http "/name" via path', 1.2),
    (200, 'https "/name" port 443 insecure', 1.3),  # a handshake each: see docs/balancer.md
])
def test_a_thousand_backends(balancer, node, many, tmp_path, count, check, most):
    """A check costs at most that many times what a loop of Python costs, at the same time on the same machine. The history of
    rates is measured by test_history."""
    path, addresses = tmp_path / "many.weir", many(count)
    write_many(path, balancer, addresses, f"check {check} every 2s timeout 1s")
    node("apply", path)
    agent = node.run("--no-history")
    until(lambda: all_ok(node), 30)
    before, began = cpu_s(agent), time.monotonic()
    loop_s = sum(plain_s(balancer, addresses, check, 5) for _ in range(2)) / 2
    used_s = (cpu_s(agent) - before) / (time.monotonic() - began)
    each_s = used_s * 2 / count
    print(f"{count} by {check}: {used_s:.1%} of one core, {each_s / loop_s:.2f} of a plain loop")
    assert each_s < most * loop_s
    assert not {address: one for address, one in health(node).items() if one != "ok"}


def test_this_host_as_a_backend(balancer, node, tmp_path):
    """It is checked over lo, at the VIP. The other one is checked from an address whose answers are not balanced."""
    path = tmp_path / "here.weir"
    path.write_text(f'interface net0\nseed "lab"\nservice web {{\n\tvip {balancer.vip4}\n\tport any\n\tmode ipip\n'
                    f'\tbackend here\n\tbackend {TWO}\n\tcheck tcp port 80 every 300ms timeout 200ms fall 2\n}}\n')
    own = ["ip", "-n", balancer.netns("balancer1")]
    run([*own, "address", "add", f"{balancer.vip4}/32", "dev", "lo"])
    # The kernel would choose the VIP as the source.
    via = run([*own, "route", "get", TWO]).stdout.split(" via ")[1].split()[0]
    run([*own, "route", "add", f"{TWO}/32", "via", via, "dev", "net0", "src", balancer.vip4])
    try:
        node("apply", path)
        node.run()
        until(lambda: health(node).get("here", "").endswith(": connection refused"))
        until(lambda: health(node)[TWO] == "ok")
        listen = "import socket; s = socket.create_server(('', 80)); [s.accept() for _ in iter(int, 1)]"
        argv = ["nsenter", f"--net=/run/netns/{balancer.netns('balancer1')}", "--", "/usr/bin/python3", "-c", listen]
        with subprocess.Popen(argv) as server:
            try:
                until(lambda: health(node)["here"] == "ok")
            finally:
                server.kill()
        until(lambda: health(node)["here"].startswith("failing"))
    finally:
        run([*own, "route", "del", f"{TWO}/32", "via", via, "dev", "net0"])
        run([*own, "address", "del", f"{balancer.vip4}/32", "dev", "lo"])


def test_killed_agents_under_load(balancer, node, serve):
    """No connection notices, and the ring does not change, however often agents are killed and started."""
    serve(CHECK, "lost 1h")
    agent = node.run()
    until(lambda: all_ok(node))
    with killed_web(balancer, "backend2"):
        until(lambda: states(node)[TWO] == "failing")
        mark = node.service()["fingerprint"]
        with crowd_of(balancer, 0, 1, 1, 0.02, 600) as crowd:
            for number in range(25):
                agent.kill()
                agent = node.run()
                time.sleep(number * 0.02)  # at any point of its work
                assert node.service()["fingerprint"] == mark
            results = crowd.results(newcomers=True)
        assert not failed(results), failed(results)
        assert {one["backend"] for one in results} <= {"backend1", "backend3"}
    until(lambda: all_ok(node))
