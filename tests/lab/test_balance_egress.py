# SPDX-License-Identifier: GPL-2.0-only
"""Backends on another device than the clients, or on the same one: what arrives, and what is reported when
frames are lost."""

import contextlib
import json

import pytest
from balancerlab import policy, running_balancer, running_node, transfers
from labnet import BUILD, run
from policylab import Policies

SIZE = 3_000_000


@pytest.fixture(name="served")
def serving(tmp_path):
    """served({"nics": 2}, OPTION of attach...): a lab, and Weir with the service web on it."""
    with contextlib.ExitStack() as stack:

        def serve(options, *attach, number=2):
            lab = stack.enter_context(running_balancer(backends=number, **options))
            node = stack.enter_context(running_node(lab))
            path = tmp_path / "web.weir"
            path.write_text(policy(lab, range(1, number + 1)))
            if attach:
                node("attach", "net0", *attach)
            node.applied = node.json("apply", path)
            return lab, node

        yield serve


def reach_all(lab, node, folder):
    for vip in lab.vips:
        got = {lab.curl(vip, "/name").strip() for _ in range(10)}
        assert got and got <= set(lab.backends)
    transfers(lab, folder, SIZE)
    assert not any(one["packets"] for one in node.service()["drops"])
    assert all(device["lost"] == 0 for device in devices(node).values() if "lost" in device)


def devices(node):
    return {one["device"]: one for one in node.json("service")["devices"]}


def alarms(node):
    done = node("-j", "status", check=False)
    found = node.json("status", status=done.returncode)["alarms"]
    assert (done.returncode == 2) == bool(found)
    return "\n".join(found)


def doctor(node):
    """{about: texts} of the problems."""
    done = node("-j", "doctor", "net0", check=False)
    found = {}
    for one in node.json("doctor", "net0", status=done.returncode)["findings"]:
        if one["level"] == "problem":
            found.setdefault(one["about"], []).append(one["text"])
    return found


@pytest.mark.parametrize("mode, v6", [("dr", False), ("ipip", False), ("gue", False), ("gue", True)])
def test_a_second_device(served, tmp_path, mode, v6):
    lab, node = served({"mode": mode, "nics": 2, **({"v6": True} if v6 else {})})
    reach_all(lab, node, tmp_path)
    assert all(one["next_hop"].startswith("back0 ") for one in node.service()["backends"])
    assert [(one["carries"], one.get("mode")) for one in devices(node).values()] == [
        ("in", "native"), ("out", None)]
    assert not node.applied["warnings"] and not alarms(node) and not doctor(node)
    # Once: 'too big' from a router on back0 arrives there, where Weir is not attached.
    unseen = [text for text in node.applied["notices"] if "routers beyond 'back0'" in text]
    assert node.applied["notices"] == unseen and len(unseen) == (mode != "dr")
    assert node.json("apply", changed(tmp_path))["notices"] == []
    assert node.json("service", "--refresh")["notices"] == unseen


@pytest.mark.parametrize("mode", ["dr", "gue"])
def test_a_second_device_in_generic_mode(served, tmp_path, mode):
    lab, node = served({"mode": mode, "nics": 2}, "--mode", "generic")
    lab.on("balancer1", ["ethtool", "-K", "net0", "gro", "off"])
    reach_all(lab, node, tmp_path)
    assert not any("lost" in device for device in devices(node).values())


def test_generic_mode_needs_nothing_at_the_other_end(served, tmp_path):
    """The stack sends: a device that does not accept XDP frames neither matters nor raises an alarm."""
    lab, node = served({"mode": "dr", "nics": 2}, "--mode", "generic")
    lab.on("balancer1", ["ethtool", "-K", "net0", "gro", "off"])
    other_end(lab, "balancer1-back", program=False)
    again = node.json("service", "--refresh")
    assert not again["warnings"] and not again["notices"]
    assert not alarms(node) and not doctor(node)
    assert all("LOSES" not in one["next_hop"] for one in node.service()["backends"])
    reach_all(lab, node, tmp_path)


@pytest.mark.parametrize("options", [{"mode": "dr", "nics": 2}, {"mode": "gue", "v6": True}])
def test_partial_checksums_are_completed(served, tmp_path, options):
    """As a client on the same machine sends them: no device on the path completes the checksum."""
    lab, node = served(options)
    before = node.events()["checksum-completed"]
    assert before == 0
    lab.on("client", ["ethtool", "-K", "net0", "tx", "on"])
    lab.on("router", ["ethtool", "-K", "balancer1", "tx", "on"])
    reach_all(lab, node, tmp_path)
    assert node.events()["checksum-completed"] > SIZE // 1500


def other_end(lab, device, program):
    """With an XDP program, or with neither a program nor GRO."""
    link = ["ip", "-n", lab.netns("router"), "link", "set", "dev", device, "xdpdrv"]
    run([*link, *(["obj", BUILD / "lab" / "pass.bpf.o", "sec", "xdp.frags"] if program else ["off"])])
    if not program:
        lab.on("router", ["ethtool", "-K", device, "gro", "off"])


def test_what_a_redirect_loses_is_told(served):
    lab, node = served({"mode": "dr", "nics": 2}, number=1)
    assert lab.answers(lab.vip4) and not alarms(node)
    other_end(lab, "balancer1-back", program=False)
    assert not lab.answers(lab.vip4)
    told = alarms(node)
    assert "'net0' lost " in told and "rx_queue_0_drops" in told
    assert "'back0' does not transmit XDP frames" in told and "gro on" in told
    found = doctor(node)
    assert "does not transmit XDP frames" in found["back0"][0]
    assert found["net0"][0].startswith("lost ")
    assert devices(node)["net0"]["lost"] > 0
    assert "lost_counter" not in devices(node)["back0"]
    assert "LOSES FRAMES" not in node.service()["backends"][0]["next_hop"]  # the packet is sent there nevertheless
    warned = node.json("service", "--refresh")["warnings"]
    assert len(warned) == 1 and "gro on" in warned[0]
    assert "LOSES FRAMES" in node.service()["backends"][0]["next_hop"]
    assert devices(node)["net0"]["lost"] == 0  # resets the count
    lab.on("router", ["ethtool", "-K", "balancer1-back", "gro", "on"])
    assert node.json("service", "--refresh") == {
        "instance": node.name, "changed": 1, "warnings": [], "notices": []}
    assert lab.answers(lab.vip4) and not alarms(node) and not doctor(node)


def test_what_goes_back_into_nothing_is_told(served):
    lab, node = served({"mode": "dr"}, number=1)
    assert not node.applied["warnings"] and "'net0'" in node.applied["notices"][0]
    assert lab.answers(lab.vip4) and not alarms(node) and not doctor(node)
    other_end(lab, "balancer1", program=False)
    assert not lab.answers(lab.vip4)
    told = alarms(node)
    assert "'net0' lost " in told and "rx_queue_0_xdp_tx_errors" in told
    assert "has no XDP program" in told and "gro on" not in told
    wrong, lost = doctor(node)["net0"]
    assert "has no XDP program" in wrong and lost.startswith("lost ")
    assert "has no XDP program" in node.json("service", "--refresh")["warnings"][0]


def changed(folder):
    """The policy with another text and the same meaning."""
    path = folder / "web.weir"
    path.write_text(path.read_text() + "# again\n")
    return path


def test_what_may_be_wrong_is_told_once(served, tmp_path):
    """Not at every apply; doctor and service --refresh always report it."""
    _, node = served({"mode": "dr"}, number=1)
    assert "'net0'" in node.applied["notices"][0]
    done = node("-j", "apply", changed(tmp_path))
    assert json.loads(done.stdout)["notices"] == [] and "peer of this veth" not in done.stderr
    assert "'net0'" in node.json("service", "--refresh")["notices"][0]
    found = json.loads(node("-j", "doctor", "net0", check=False).stdout)["findings"]
    assert any("peer of this veth" in one["text"] for one in found)
    assert node.json("apply", changed(tmp_path))["notices"] == []


def test_a_silent_backend_is_an_alarm(served):
    """status raises an alarm for each finding of doctor, and service --refresh does not end with success."""
    lab, node = served({"mode": "dr"})
    assert not alarms(node) and not doctor(node)
    address = node.service()["backends"][0]["backend"]
    before = node.backend(address)["next_hop"]
    run(["ip", "-n", lab.netns("backend1"), "link", "set", "net0", "down"])
    try:
        run(["ip", "-n", lab.netns("balancer1"), "neigh", "flush", "to", address])
        told = alarms(node)
        assert f"'{address}' does not answer ARP on 'net0'" in told, told
        done = node("-j", "service", "--refresh", check=False)
        assert done.returncode == 3 and "1 backend" in done.stderr
        assert any(f"'{address}' does not answer" in text for text in json.loads(done.stdout)["warnings"])
        assert node.backend(address)["next_hop"] == before  # it has not moved
        node("drain", address)
        assert not alarms(node)  # no alarm for it
        assert any(address in text for text in node.json("service", "--refresh")["warnings"])
    finally:
        run(["ip", "-n", lab.netns("backend1"), "link", "set", "net0", "up"])


def test_another_next_hop_is_an_alarm(served):
    lab, node = served({"mode": "dr"})
    address = node.service()["backends"][0]["backend"]
    here = ["ip", "-n", lab.netns("balancer1"), "neigh"]
    run([*here, "replace", address, "lladdr", "02:00:00:00:00:77", "dev", "net0"])
    assert "the next hop of 1 backend has changed" in alarms(node)
    assert node.json("service", "--refresh")["changed"] == 1
    assert not alarms(node)


def test_the_route_is_named_that_limits_packets(served, tmp_path):
    lab, node = served({"mode": "ipip"})
    address = node.service()["backends"][0]["backend"]
    here = ["ip", "-n", lab.netns("balancer1"), "route"]
    way = run([*here, "get", address]).stdout.split()
    via = way[1 : way.index("src")] if "src" in way else way[1:]
    run([*here, "replace", address, *via, "mtu", "1501"])
    warned = [text for text in node.json("apply", changed(tmp_path))["warnings"] if "bytes" in text]
    assert len(warned) == 1 and "above 1481 bytes" in warned[0], warned
    assert f"the route to {address} has mtu 1501" in warned[0] and "ip link set" not in warned[0]
    assert f"ip route get {address}" in warned[0]


def test_a_program_at_the_other_end_is_not_mistaken_for_gro(served):
    """With GRO only, the kernel accepts such frames and leaves them in the queue until something else wakes
    the device. No counter shows them, and this end is not told."""
    lab, node = served({"mode": "dr"}, number=1)
    run(["ip", "-n", lab.netns("router"), "link", "set", "dev", "balancer1", "xdpdrv", "off"])
    again = node.json("service", "--refresh")
    assert not again["warnings"] and "cannot be seen from here" in again["notices"][0]


def test_a_second_weir_serves_as_the_program_at_the_other_end(served):
    lab, node = served({"mode": "dr"}, number=1)
    other_end(lab, "balancer1", program=False)
    assert not lab.answers(lab.vip4)
    with running_node(lab, "router") as peer:
        peer("attach", "balancer1", "--mode", "native")
        assert lab.answers(lab.vip4)
        assert not node.json("service", "--refresh")["warnings"]
    assert node.service()["packets"]


BACK = """service web {
	vip 192.0.2.10
	proto tcp
	port 80
	mode dr
	backend 10.9.0.2
}"""


def test_the_other_end_is_seen_in_the_same_namespace(pair, weir, tmp_path):
    pair.link("add", "v0", "type", "veth", "peer", "name", "v1")
    try:
        for device in "v0", "v1":
            pair.link("set", device, "up")
        pair.near(["ip", "address", "add", "10.9.0.1/24", "dev", "v0"])
        pair.near(["ip", "neigh", "add", "10.9.0.2", "lladdr", "02:00:00:00:00:02", "dev", "v0"])
        apply = Policies(weir, tmp_path)
        path = apply.write(BACK, "v0")
        warned = weir.json("apply", path)["warnings"]
        assert len(warned) == 1 and "has no XDP program" in warned[0] and "attach v1" in warned[0]
        pair.link("set", "dev", "v1", "xdpdrv", "obj", BUILD / "lab" / "pass.bpf.o", "sec", "xdp.frags")
        again = weir.json("apply", path)
        assert not again["warnings"] and not again["notices"]
    finally:
        weir.remove()
        pair.link("del", "v0")
