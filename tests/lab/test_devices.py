# SPDX-License-Identifier: GPL-2.0-only
"""Devices are not their names: what happens to them while Weir is attached, and the promised number of them."""

import contextlib
import json
import signal
import time

import pytest

from labnet import Sniffer, run
from policylab import Policies

INTERFACES = 63
MULTIPLIER = 0x9E3779B1  # of ctl/datapath/iface_table.c


def worst_indexes():
    """Equal in their last eight bits, and in their bucket under the first multiplier."""
    place = (7 * MULTIPLIER & 0xFFFFFFFF) >> 24
    indexes = range(7 + 65536, 1 << 31, 256)
    same = (one for one in indexes if (one * MULTIPLIER & 0xFFFFFFFF) >> 24 == place)
    return [next(same) for _ in range(INTERFACES)]


def test_as_many_interfaces_as_promised_whatever_their_indexes(lab, weir_on):
    pair = lab()
    weir = weir_on(pair)
    names = [f"many{n}" for n in range(INTERFACES)]
    near, far = f"netns {pair.near_netns}", f"netns {pair.far_netns}"
    lines = [f"link add {name} index {index} {near} up type veth peer name {name} {far}"
             for name, index in zip(names, worst_indexes())]
    run(["ip", "-batch", "-"], input="\n".join(lines))
    run(["ip", "-n", pair.far_netns, "-batch", "-"],
        input="\n".join(f"link set {name} up" for name in names))
    assert len(weir.json("attach", *names)["interfaces"]) == INTERFACES
    assert "already has 63 interfaces" in weir.fails(3, "attach", "near0")
    weir("block", "192.0.2.7")
    for name in names:
        pair.far_device = name
        pair.send_from_far(pair.udp("192.0.2.7"))
    counters = weir.json("stats", "--interfaces")["counters"]
    drops = {row["interface"]: row["packets"] for row in counters if row["reason"] == "block-from"}
    assert drops == {name: 1 for name in names}
    weir("detach", *names[1::2])
    weir("attach", *names[1::4])
    pair.send_from_far(pair.udp("192.0.2.7"))
    weir("detach")
    assert set(pair.xdp_names().values()) == {None}


BLOCKED = "192.0.2.7"


@pytest.fixture(name="two", params=["native", "generic"])
def two_devices(weir, pair, request):
    """Devices one and two on near, each with its peer on far, with Weir attached and an address blocked."""
    for name in "one", "two":
        make(pair, name)
    weir("attach", "one", "two", "--mode", request.param, "--max-entries", "1000")
    weir("block", BLOCKED)
    yield weir
    weir("detach", "--force", check=False)
    for name in "one", "two", "three", "four":
        for host in "near", "far":
            pair_ip(pair, host, "link", "del", name)


def make(pair, name, *words, peer=None):
    near, far = ["netns", pair.near_netns], ["netns", pair.far_netns]
    peer = peer or f"far-{name}"
    run(["ip", "link", "add", name, *words, *near, "type", "veth", "peer", peer, *far])
    pair.link("set", name, "up")
    pair.link("set", peer, "up", host="far")


def pair_ip(pair, host, *words):
    return run(["ip", "-n", f"{pair.name}-{host}", *words], check=False)


def rename(pair, old, new):
    pair.link("set", old, "down")
    pair.link("set", old, "name", new)
    pair.link("set", new, "up")


def states(weir):
    rows = json.loads(weir("-j", "status", check=False).stdout)["interfaces"]
    return {row["name"]: row["state"] for row in rows}


def alarms(weir):
    done = weir("-j", "status", check=False)
    found = json.loads(done.stdout)["alarms"]
    assert done.returncode == (2 if found else 0), done.stdout
    return found


def blocks(pair, name, peer=None, netns=None):
    """True if the device drops blocked packets and no others."""
    frames = [bytes(pair.udp(source)) for source in (BLOCKED, "192.0.2.8")]
    sniffer = Sniffer(netns or pair.near_netns, name)
    with contextlib.closing(sniffer):
        far = pair.far_device
        pair.far_device = f"far-{peer or name}"
        pair.send_from_far(*frames)
        pair.far_device = far
        got = sniffer.until(lambda data: data == frames[1])
    return frames[0] not in got


def test_xdp_off_does_not_take_weir_away(two, pair):
    for mode in "xdp", "xdpdrv", "xdpgeneric":
        pair_ip(pair, "near", "link", "set", "dev", "one", mode, "off")
    assert alarms(two) == [] and blocks(pair, "one")
    two("detach", "one")
    assert pair.xdp_names()["one"] is None and pair.xdp_names()["two"] == "weir_root"


def test_a_renamed_device_keeps_its_row(two, pair):
    rename(pair, "one", "three")
    assert states(two) == {"three": "held", "two": "held"} and alarms(two) == []
    assert blocks(pair, "three", "one")
    assert "on three two;" in two("block", "192.0.2.9").stdout
    assert two.json("block", "192.0.2.10")["interfaces"] == ["three", "two"]
    assert "already attached to three" in two("attach", "three").stdout
    make(pair, "one", peer="far-four")
    try:
        assert "attached to one" in two("attach", "one").stdout
        assert states(two) == {"three": "held", "two": "held", "one": "held"}
    finally:
        pair.link("del", "one")
    assert "detached from three" in two("detach", "three").stdout
    assert pair.xdp_names()["three"] is None and states(two) == {"two": "held", "one": "gone"}


def test_two_devices_swap_names(two, pair):
    rename(pair, "one", "three")
    rename(pair, "two", "one")
    rename(pair, "three", "two")
    assert states(two) == {"one": "held", "two": "held"} and alarms(two) == []
    assert blocks(pair, "one", "two") and blocks(pair, "two", "one")
    two("detach", "one")
    assert pair.xdp_names()["one"] is None and pair.xdp_names()["two"] == "weir_root"
    assert states(two) == {"two": "held"}
    pair.send_from_far()
    two("detach")
    assert not two.bpffs.exists() and pair.xdp_names()["two"] is None


@pytest.mark.parametrize("same_index", [False, True])
def test_a_device_made_anew_is_open_until_it_is_attached(two, pair, same_index):
    index = json.loads(pair.near(["ip", "-j", "link", "show", "one"]).stdout)[0]["ifindex"]
    pair.link("del", "one")
    assert states(two) == {"one": "gone", "two": "held"}
    assert alarms(two) == ["'one' no longer exists (weir detach one removes it)"]
    make(pair, "one", *(["index", str(index)] if same_index else []))
    assert len(alarms(two)) == 1 and "every packet passes (weir attach one)" in alarms(two)[0]
    assert not blocks(pair, "one")
    said = two.json("block", "192.0.2.9", status=3)
    assert said["interfaces"] == ["two"] and said["open"] == ["one"]
    assert said["error"]["text"] == "Weir is not attached to one: everything passes there"
    assert "192.0.2.9" in two.entries()
    two(*alarms(two)[0].rpartition("(weir ")[2].rstrip(")").split())  # the command in the alarm
    assert alarms(two) == [] and blocks(pair, "one") and states(two) == {"one": "held", "two": "held"}


@pytest.mark.parametrize("index", [None, 7000])
def test_a_device_moved_to_another_namespace(two, pair, index):
    """If the index is in use there, the device gets another one."""
    netns = f"{pair.name}-far"
    pair_ip(pair, "near", "link", "set", "one", "name", "three")
    if index:
        have = json.loads(pair.near(["ip", "-j", "link", "show", "three"]).stdout)[0]["ifindex"]
        run(["ip", "-n", netns, "link", "add", "four", "index", str(have), "type", "bridge"])
    pair.link("set", "three", "netns", netns)
    pair_ip(pair, "far", "link", "set", "three", "up")
    row = next(r for r in json.loads(two("-j", "status", check=False).stdout)["interfaces"]
               if r["name"] == "one")
    assert (row["state"], row["netns"], row["attached"]) == ("moved", netns, True)
    assert f"moved to network namespace {netns}, as three" in two("status", check=False).stdout
    assert blocks(pair, "three", "one", netns=netns)
    assert f"on one (in network namespace {netns}, as three)" in two("block", "192.0.2.9", check=False).stdout
    assert f"detached from one in network namespace {netns}, as three" in two("detach", "three").stdout
    shown = run(["ip", "-n", netns, "-d", "link", "show", "three"]).stdout
    assert "prog/xdp" not in shown and not blocks(pair, "three", "one", netns=netns)


@pytest.mark.parametrize("alone", [True, False])
def test_a_policy_follows_a_device_that_gets_another_index(two, pair, tmp_path, alone):
    """A single one is unambiguous. With several, status reports that packet counts are unknown."""
    if alone:
        two("detach", "two")
    two("unblock", BLOCKED)
    Policies(two, tmp_path)(f"drop from {BLOCKED}", devices="one" if alone else "one, two")
    have = json.loads(pair.near(["ip", "-j", "link", "show", "one"]).stdout)[0]["ifindex"]
    pair_ip(pair, "far", "link", "add", "four", "index", str(have), "type", "bridge")
    pair.link("set", "one", "netns", pair.far_netns)
    pair_ip(pair, "far", "link", "set", "one", "up")
    if not alone:
        assert ["another index" in alarm for alarm in alarms(two)] == [True]
        two("block", "192.0.2.9", check=False)
    assert alarms(two) == [] and blocks(pair, "one", netns=pair.far_netns)


def test_a_moved_device_shares_its_index(two, pair, tmp_path):
    """An index is unique in a namespace only. Status names both devices, until one of them is detached."""
    two("unblock", BLOCKED)
    Policies(two, tmp_path)(f"drop from {BLOCKED} on one", devices="one, two")
    have = json.loads(pair.near(["ip", "-j", "link", "show", "one"]).stdout)[0]["ifindex"]
    pair.link("set", "one", "netns", pair.far_netns)
    pair_ip(pair, "far", "link", "set", "one", "up")
    assert alarms(two) == [] and blocks(pair, "one", netns=pair.far_netns)
    make(pair, "three", "index", str(have))
    two("attach", "three")
    assert alarms(two) == ["'one' has the index that 'three' has in another network namespace: its packets are treated "
                           "and counted as those of 'three' (weir detach one)"]
    assert not blocks(pair, "one", netns=pair.far_netns) and not blocks(pair, "three")
    two("detach", "three")
    two("block", "192.0.2.9", check=False)
    assert alarms(two) == [] and blocks(pair, "one", netns=pair.far_netns)


def test_a_device_that_moved_without_a_link(two, pair):
    """If the kernel provides no link, the program stays on the device as well and is found there."""
    if json.loads(two("-j", "status").stdout)["interfaces"][0]["shared"]:
        pytest.skip("in libxdp's dispatcher")
    held = f"/sys/fs/bpf/{two.name}-held"
    mode = {"native": "xdpdrv", "generic": "xdpgeneric"}[mode_of(two, "one")]
    details = json.loads(pair.near(["ip", "-j", "-d", "link", "show", "one"]).stdout)[0]
    run(["bpftool", "prog", "pin", "id", str(details["xdp"]["prog"]["id"]), held])
    try:
        (two.bpffs / "links" / "1").unlink()
        wait_until(lambda: pair.xdp_names()["one"] is None)
        pair.near(["bpftool", "net", "attach", mode, "pinned", held, "dev", "one"])
    finally:
        run(["rm", held])
    assert alarms(two) == [] and blocks(pair, "one")
    rename(pair, "one", "three")
    assert states(two) == {"three": "held", "two": "held"} and blocks(pair, "three", "one")
    pair.link("set", "three", "netns", pair.far_netns)
    pair_ip(pair, "far", "link", "set", "three", "up")
    assert states(two) == {"one": "moved", "two": "held"}
    assert f"detached from one in network namespace {pair.far_netns}" in two("detach", "one").stdout
    assert not blocks(pair, "three", "one", netns=pair.far_netns) and blocks(pair, "two")


def test_detach_force_finds_what_has_moved(two, pair):
    pair.link("set", "one", "netns", pair.far_netns)
    pair_ip(pair, "far", "link", "set", "one", "up")
    assert "detached from 2 interfaces" in two("detach", "--force").stdout
    assert not blocks(pair, "one", netns=pair.far_netns) and pair.xdp_names()["two"] is None


def mode_of(weir, name):
    rows = json.loads(weir("-j", "status", check=False).stdout)["interfaces"]
    return next(row["mode"] for row in rows if row["name"] == name)


def wait_until(condition, seconds=5):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


# What commands report about interfaces is true


OPEN = "Weir is not attached to near0: everything passes there"


@pytest.mark.parametrize("command", [["block", "192.0.2.9"], ["allow", "192.0.2.9"], ["bypass"],
                                     ["bypass", "--off", "near0"], ["explain", "192.0.2.9"],
                                     ["explain", "udp from 192.0.2.9 to 10.77.0.1 port 9 on near0".split()]],
                         ids=str)
def test_an_open_interface_is_named_with_the_way(on, command):
    words = [word for one in command for word in (one if isinstance(one, list) else [one])]
    on(*words)
    on.cut()
    done = on(*words, check=False)
    assert done.returncode == 3 and f"weir: {OPEN} (weir attach near0)" in done.stderr, done.stderr
    assert on.json(*words, status=3)["error"]["text"] == OPEN
    on("attach", "near0")
    on(*words)


def test_live_says_it_at_once_and_in_the_end(on):
    on.cut()
    live = on.start("block", "--live", "192.0.2.9")
    wait_until(lambda: "192.0.2.9" in on.entries())
    time.sleep(0.3)
    live.send_signal(signal.SIGINT)
    assert live.wait(10) == 3 and OPEN in live.stdout.read()
    assert on.entries() == {}


def test_apply_says_it_of_interfaces_that_it_does_not_attach(pair, weir, tmp_path):
    apply = Policies(weir, tmp_path)
    weir("attach", "near0")
    make(pair, "one")
    try:
        weir.cut()
        assert OPEN in apply.fails(3, NINE, devices="one")  # and it is active
        assert "attached to near0" in apply(NINE).stdout  # it is named, so it is attached
    finally:
        pair.link("del", "one")


# Policies name interfaces and apply to devices


NINE = "drop proto udp to port 9"


@pytest.fixture(name="apply")
def policies(pair, weir, tmp_path):
    yield Policies(weir, tmp_path)
    weir("detach", "--force", check=False)
    for name in "one", "two", "three":
        pair_ip(pair, "near", "link", "del", name)


def passes_nine(pair, name, peer=None):
    """Frames to UDP port 9 and to another port."""
    frames = [bytes(pair.udp("192.0.2.8")), bytes(pair.ether())[:12] + b"\x88\xb5" + b"end".ljust(60)]
    with contextlib.closing(Sniffer(pair.near_netns, name)) as sniffer:
        far, pair.far_device = pair.far_device, f"far-{peer or name}"
        pair.send_from_far(*frames)
        pair.far_device = far
        return frames[0] in sniffer.until(lambda data: data == frames[1])


def test_a_policy_holds_on_a_device_until_it_is_applied_again(pair, weir, apply):
    make(pair, "one")
    make(pair, "two")
    weir("attach", "two")
    apply(NINE, "--confirm=60s", devices="one")
    rename(pair, "one", "three")
    rename(pair, "two", "one")
    rename(pair, "three", "two")
    assert not passes_nine(pair, "two", "one") and passes_nine(pair, "one", "two")
    found = alarms(weir)
    assert len(found) == 2 and found[0].startswith("'one' had another name") and \
        "treats it as an unnamed interface" in found[0] and "treats it as 'one'" in found[1], found
    assert "detached" not in weir("confirm").stdout
    assert not passes_nine(pair, "two", "one")
    done = apply(NINE, devices="one")  # the same text, and other devices
    assert alarms(weir) == [] and "detached from two" in done.stdout, done.stdout
    assert not passes_nine(pair, "one", "two") and passes_nine(pair, "two", "one")


def test_a_name_of_the_policy_that_is_gone(pair, weir, apply):
    """The command in the alarm works."""
    make(pair, "one")
    apply(NINE, devices="one")
    rename(pair, "one", "two")
    found = alarms(weir)
    assert len(found) == 1 and "treats it as 'one' (change the name to 'two' in" in found[0], found
    assert "no interface 'one'" in apply.fails(1, NINE, devices="one")
    apply(NINE, devices="two")
    assert alarms(weir) == [] and not passes_nine(pair, "two", "one")


@pytest.mark.parametrize("devices", ["one?", "on*"])
def test_a_device_that_need_not_be_there_is_no_alarm(pair, weir, apply, devices):
    make(pair, "one")
    apply(NINE, devices=f"near0, {devices.replace('?', ' optional')}")
    assert alarms(weir) == [] and states(weir) == {"near0": "held", "one": "held"}
    pair.link("del", "one")
    assert alarms(weir) == [] and states(weir) == {"near0": "held", "one": "gone"}
    assert weir.json("block", "192.0.2.9")["interfaces"] == ["near0"]
    make(pair, "one")
    assert len(alarms(weir)) == 1
    apply(NINE, devices=f"near0, {devices.replace('?', ' optional')}")
    assert alarms(weir) == [] and states(weir) == {"near0": "held", "one": "held"}


def test_a_device_that_must_be_there_is_an_alarm(pair, weir, apply):
    make(pair, "one")
    apply(NINE, devices="near0, one")
    pair.link("del", "one")
    assert alarms(weir) == ["'one' no longer exists (weir detach one removes it)"]


def test_nothing_but_gone_devices_is_nowhere(pair, weir, apply):
    make(pair, "one")
    weir("attach", "one")
    pair.link("del", "one")
    done = weir("block", "192.0.2.9", check=False)
    assert done.returncode == 3 and "on no interface;" in done.stdout
    assert "Weir is not attached to any interface" in done.stderr
