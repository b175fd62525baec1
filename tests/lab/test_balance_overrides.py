# SPDX-License-Identifier: GPL-2.0-only
"""drain, undrain, weight, backend down: overrides, how long they last and what they survive; with
decapsulation at the backends."""

import shutil
import subprocess
import time

import pytest
from balancerlab import apply_web, crowd_of, failed, policy
from labnet import run
from statefile import read_rows, write_old_drains

BALANCER = {"mode": "ipip"}
IDLE_S = 2
LEVELS = ("pins_half", "pins_found", "pins_talks", "pins_closed")
ONE, TWO, THREE = "10.78.2.1", "10.78.2.2", "10.78.2.3"


@pytest.fixture(name="path")
def policy_file(tmp_path):
    return tmp_path / "web.weir"


@pytest.fixture(name="node")
def served_node(node, tmp_path):
    apply_web(node, tmp_path, [1, 2, 3], f"idle {IDLE_S}s", "pins 65536")
    return node


def states(node):
    return {one["backend"]: (one["state"].split(",")[0], one["weight"])
            for one in node.service()["backends"]}


def share(node):
    service = node.service()
    return {one["backend"]: one["slots"] / service["slots"] for one in service["backends"]}


def who_answers(balancer, count=60):
    """The backends of new connections."""
    with crowd_of(balancer, 0, 1, 1, 0.3, count) as crowd:
        results = crowd.results(newcomers=True)
    assert not failed(results), failed(results)
    return {one["backend"] for one in results}


def check_levels(service):
    """The pins of the backends by level add up to the pins of the service."""
    backends = service["backends"]
    assert sum(one["pins"] for one in backends) > 0
    assert all(one["pins"] == sum(one[level] for level in LEVELS) for one in backends)
    assert all(service[level] == sum(one[level] for one in backends) for level in LEVELS)


def test_drain_and_undrain(balancer, node):
    with crowd_of(balancer, 30, 18000, 6000) as crowd:
        done = node.json("drain", TWO)
        assert done["changed"] == 1 and done["slots_changed"] > 5000 and not done["last_ring_kept"]
        assert node.json("drain", TWO)["changed"] == 0
        assert states(node)[TWO] == ("drain", 1) and share(node)[TWO] == 0
        assert who_answers(balancer) == {"backend1", "backend3"}
        check_levels(node.service())
        assert node.json("undrain", TWO)["changed"] == 1
        assert who_answers(balancer) == set(balancer.backends)
        results = crowd.results()
    assert not failed(results), failed(results)


def test_drain_waits_for_silence(balancer, node):
    """--wait returns ten seconds after the last packet; a download and its last packet come before."""
    start = time.monotonic()
    with crowd_of(balancer, 20, 12000, 6000) as crowd:
        waiting = subprocess.Popen(  # pylint: disable=consider-using-with
            node.argv("-j", "drain", TWO, "--wait"), stdout=subprocess.PIPE, text=True)
        results = crowd.results()
        ended = time.monotonic()
    out, _ = waiting.communicate(timeout=30)
    now = time.monotonic()
    print(f"\ndownloads {ended - start:.1f} s, drained after {now - start:.1f} s")
    assert waiting.returncode == 0 and '"quiet":true' in out
    assert now - start > 10 and now - ended < 14
    assert not failed(results), failed(results)


def test_how_long_drain_waits(node):
    """The message names the time without a packet. It does not claim that no connection is left."""
    start = time.monotonic()
    said = node("drain", TWO, "--wait=2s").stdout
    assert 2 <= time.monotonic() - start < 6
    assert "no packet for 2s" in said and "drained" not in said
    for text in ("0", "25h", "soon"):
        assert f"--wait '{text}' is not a time" in node.fails(1, "drain", TWO, f"--wait={text}")


def test_the_wait_ends_with_an_undrain(node):
    with subprocess.Popen(node.argv("-j", "drain", TWO, "--wait"), stdout=subprocess.PIPE,
                          text=True) as waiting:
        time.sleep(0.5)
        node("undrain", TWO)
        assert '"quiet":false' in waiting.communicate(timeout=5)[0]
    assert waiting.returncode == 3


def test_drain_for_a_time(balancer, node):
    node("drain", TWO, "--for", "1s")
    assert states(node)[TWO][0] == "drain"
    time.sleep(2)
    node("service", "--refresh")  # a command that changes the pool ends it
    assert states(node)[TWO] == ("up", 1)
    assert share(node)[TWO] > 0.3
    assert who_answers(balancer) == set(balancer.backends)


def test_weight_zero_is_a_drain(balancer, node):
    with crowd_of(balancer, 30, 18000, 6000) as crowd:
        node("weight", "web", ONE, 0)
        assert share(node)[ONE] == 0
        assert who_answers(balancer) == {"backend2", "backend3"}
        node("weight", "web", ONE, 2)
        assert abs(share(node)[ONE] - 0.5) < 0.001
        results = crowd.results()
    assert not failed(results), failed(results)


def test_the_last_backend_keeps_the_ring(balancer, node, path):
    """With no backend left for new flows, the current ring stays in use, and every command that causes it
    reports that."""
    node("drain", ONE)
    node("drain", TWO)
    before = share(node)
    done = node.json("drain", THREE, status=3)
    assert done["last_ring_kept"] and not done["fail_open"] and share(node) == before
    last = f"no backend of service 'web' accepts new flows: the current ring stays in use, and {THREE} still gets new flows"
    assert last in node.fails(3, "drain", THREE, "--wait")
    assert last in node.fails(3, "backend", "down", THREE)
    assert who_answers(balancer) == {"backend3"}
    for one in ONE, TWO, THREE:
        node("undrain", one)
    path.write_text(policy(balancer, [1, 2, 3], "idle 2s", "pins 65536",
                           weights={1: 0, 2: 0, 3: 0}))
    said = [one["text"] for one in node.json("apply", path)["diagnostics"]]
    assert any("ring" in text for text in said), said
    assert who_answers(balancer) == set(balancer.backends)
    path.write_text(policy(balancer, [], "idle 2s", "pins 65536"))
    assert node("apply", path, check=False).returncode == 1
    assert who_answers(balancer) == set(balancer.backends)


def set_some(node):
    node("drain", ONE)
    node("weight", "web", TWO, 3)
    return {ONE: ("drain", 1), TWO: ("up", 3), THREE: ("up", 1)}


def test_overrides_survive_apply(balancer, node, path):
    wanted = set_some(node)
    mark = node.service()["fingerprint"]
    node("apply", path)
    assert states(node) == wanted and node.service()["fingerprint"] == mark
    path.write_text(policy(balancer, [3, 2], "idle 2s", "pins 65536"))
    node("apply", path)
    path.write_text(policy(balancer, [1, 2, 3], "idle 2s", "pins 65536"))
    node("apply", path)
    # The drain was removed with the line of its backend.
    assert states(node) == {ONE: ("up", 1), TWO: ("up", 3), THREE: ("up", 1)}
    assert who_answers(balancer) <= {f"backend{i}" for i in (1, 2, 3)}


def test_words_that_are_not_meant(node):
    assert "weir drain" in node.fails(1, "backend", "drain", TWO)
    assert "'-1' is not a weight" in node.fails(1, "weight", TWO, "-1")


def test_explain_shows_where_it_goes(balancer, node):
    packet = ["tcp", "from", "192.0.2.77", "port", "40000", "to", balancer.vip4, "port", "80"]
    said = node.json("explain", *packet)["packets"][0]
    hop = node.backend(said["service"]["backend"])["next_hop"]
    assert said["next_hop"] in hop.split() and f"next hop {said['next_hop']}" in node("explain", *packet).stdout
    assert said["leaves_hex"].startswith(said["next_hop"].replace(":", ""))


def reboot(node):
    """What a reboot leaves: the state folder."""
    run(["ip", "-n", node.pair.near_netns, "link", "set", "dev", "net0", "xdpdrv", "off"], check=False)
    run(["ip", "-n", node.pair.near_netns, "-force", "link", "set", "dev", "net0", "xdp", "off"],
        check=False)
    for folder in [node.bpffs, *node.bpffs.parent.glob(f"{node.name}+*"), f"/run/weir/{node.name}"]:
        shutil.rmtree(folder, ignore_errors=True)


def test_detach_breaks_no_connection(balancer, node):
    """Pins are removed with the instance: detach waits for them, or breaks the connections with --force."""
    node("drain", TWO)
    with crowd_of(balancer, 20, 12000, 6000) as crowd:
        for argv in ("detach",), ("detach", "net0"):
            said = node.fails(3, *argv)
            assert "service 'web'" in said and "are not stable" in said and "detach --force" in said
            assert "detach again after " in said
        assert node.service()["slots_stable"] < node.service()["slots"]
        results = crowd.results()
    assert not failed(results), failed(results)
    time.sleep(IDLE_S * 2 + 3)
    node("detach")  # tidies
    node("attach", "net0")
    assert who_answers(balancer) == {"backend1", "backend3"}


def test_detach_keeps_what_attach_cannot_bring_back(balancer, node):
    node("drain", TWO, "--volatile")
    time.sleep(IDLE_S * 2 + 3)
    said = node.fails(3, "detach")
    assert "attach would give" in said and "--volatile" in said
    node("drain", TWO)
    node("backend", "down", ONE)
    node.fails(3, "backend", "down", THREE)
    time.sleep(IDLE_S * 2 + 3)
    said = node.fails(3, "detach")
    assert "no backend accepts new flows" in said
    node("detach", "--force")
    assert not balancer.answers(balancer.vip4)


@pytest.mark.parametrize("how", ["detach", "reboot"])
def test_overrides_survive_a_new_instance(balancer, node, how):
    wanted = set_some(node)
    node("weight", "web", THREE, 7, "--volatile")
    mark = node.service()["fingerprint"]
    assert {(hand["backend"], hand["volatile"]) for hand in node.json("status")["services"][0]["by_hand"]
            if hand["volatile"]} == {(THREE, True)}
    if how == "detach":
        node("detach", "--force")
    else:
        reboot(node)
    assert not balancer.answers(balancer.vip4)
    node("attach", "net0")
    assert states(node) == wanted
    service = node.service()
    assert service["slots_stable"] == service["slots"] and share(node)[ONE] == 0
    assert who_answers(balancer) == {"backend2", "backend3"}
    node("weight", "web", THREE, 7)
    assert node.service()["fingerprint"] == mark


def test_the_seed_survives_a_new_instance(balancer, node, path):
    """Without `seed` in the policy, a seed is generated once."""
    path.write_text(path.read_text().replace('seed "lab"\n', ""))
    assert node("apply", path, check=False).returncode != 0  # every connection would move
    node("apply", path, "--force")
    mark = node.service()["fingerprint"]
    reboot(node)
    node("attach", "net0")
    assert node.service()["fingerprint"] == mark
    assert who_answers(balancer) == set(balancer.backends)


def damaged(path):
    """All ways in which some bytes can differ; the last one is a truncation that parses as a file without
    checksum."""
    whole = path.read_bytes()
    for at in sorted({0, 1, 7, len(whole) // 3, len(whole) // 2, len(whole) - 20, len(whole) - 2}):
        yield whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:]
    yield whole[:12]


@pytest.mark.parametrize("name", ["seed", "drains"])
def test_a_damaged_file_is_refused(balancer, node, path, name):
    """A damaged file is neither used nor treated as absent. Restoring the file restores all overrides."""
    path.write_text(path.read_text().replace('seed "lab"\n', ""))
    node("apply", path, "--force")
    node("drain", "web", ONE)
    mark = node.service()["fingerprint"]
    file = node.state / name
    whole = file.read_bytes()
    rows = read_rows(file, "override") if name == "drains" else []
    assert whole.splitlines()[-1].startswith(b"sum ")
    for content in damaged(file):
        node("detach", "--force", check=False)
        file.write_bytes(content)
        assert f"/{name}'" in node.fails(2, "attach", "net0"), content
        assert not node.bpffs.exists()
    if name == "drains":
        write_old_drains(file, rows)
    else:
        file.write_bytes(whole.rpartition(b"sum ")[0])  # as older versions wrote it
    node("attach", "net0")
    assert node.service()["fingerprint"] == mark
    node("detach")
    file.write_bytes(whole)
    node("attach", "net0")
    assert node.service()["fingerprint"] == mark and states(node)[ONE][0] == "drain"


def test_decapsulation_is_what_backends_need(balancer, node):
    """Set and removed again at one backend."""
    host = "backend1"
    node("weight", "web", TWO, 0)
    node("weight", "web", THREE, 0)
    assert balancer.answers(balancer.vip4)
    weir = [node.argv()[0], "-N", balancer.netns(host), "decap", "net0"]
    run([*weir, "--off"])
    assert not balancer.answers(balancer.vip4)
    run([*weir, "--from", "10.78.1.0/24,fd78:1::/64"])
    assert balancer.answers(balancer.vip4) and balancer.answers(balancer.vip6)


def test_who_has_drained_a_backend(node):
    node("drain", TWO)
    node("weight", THREE, "7")
    by = {one["backend"]: one.get("drained_by") for one in node.service()["backends"]}
    assert by[ONE] is None and by[TWO].startswith("root (") and by[THREE] == by[TWO]
    assert f", by {by[TWO]}" in node("service").stdout
    changes = node.json("changes")["changes"]
    assert [(one["verb"], one["result"]) for one in changes[-2:]] == [("drain", "done"), ("weight", "done")]
    node("undrain", TWO)
    assert "drained_by" not in {one["backend"]: one for one in node.service()["backends"]}[TWO]
