# SPDX-License-Identifier: GPL-2.0-only
"""weir status: exit status 0 without alarms, 2 with any alarm."""

import json
import re

import pytest

from labnet import WEIR, read_only, run

BLOCKED = "192.0.2.201"


def alarms(weir):
    """The alarms; exit status and text must agree with them."""
    text = weir("status", check=False)
    found = weir.json("status", status=text.returncode)["alarms"]
    assert text.returncode == (2 if found else 0)
    shown = re.findall(r"^alarm +(.*)", text.stdout, re.MULTILINE)
    assert [without_time(alarm) for alarm in shown] == [without_time(alarm) for alarm in found]
    return found


def without_time(alarm):
    return re.sub(r"for \w+ more", "", alarm)


def test_all_is_well(pair, on):
    assert alarms(on) == []
    row = on.json("status")["interfaces"][0]
    assert (row["name"], row["mode"], row["mtu"]) == ("near0", "native", 1500) and row["attached"]
    assert "native" in on("status").stdout
    pair.ping4(pair.far4)
    assert alarms(on) == []


def test_the_program_was_taken_away(pair, on):
    on.cut()
    assert "'near0' does not run Weir: every packet passes (weir attach near0)" in alarms(on)
    on("attach", "near0")  # as the alarm says
    assert alarms(on) == [] and pair.xdp_attached()


def test_another_program_took_its_place(pair, on):
    on.cut()
    pair.attach_foreign()
    try:
        assert len(alarms(on)) == 1
        assert "other XDP: lab_pass" in on("status", check=False).stdout
    finally:
        pair.detach_foreign()


def test_the_device_is_gone(pair, on):
    pair.link("add", "near7", "type", "veth", "peer", "name", "far7")
    on("attach", "near7")
    pair.link("del", "near7")
    assert alarms(on) == ["'near7' no longer exists (weir detach near7 removes it)"]
    on("detach", "near7")
    assert alarms(on) == []


def test_a_device_made_anew_under_its_name(pair, on):
    near7 = ["near7", "type", "veth", "peer", "name", "far7"]
    pair.link("add", *near7)
    try:
        on("attach", "near7")
        pair.link("del", "near7")
        pair.link("add", *near7)
        assert len(alarms(on)) == 1
        on("attach", "near7")
        assert alarms(on) == [] and pair.xdp_names()["near7"] == "weir_root"
    finally:
        pair.link("del", "near7")


def test_bypass_is_an_alarm(on):
    on("bypass")
    assert len(alarms(on)) == 1
    on("bypass", "--off")
    assert alarms(on) == []


def test_the_instance_that_is_not_there(weir):
    assert "nothing is attached" in weir.fails(1, "status")


def test_all_instances(pair, on):
    """From any network namespace, each in its own; one that cannot be shown does not hide the others."""
    other = f"{on.name}b"
    there = [str(WEIR), "-N", pair.far_netns, "-n", other]
    run(["ip", "-n", pair.far_netns, "link", "add", "other0", "type", "veth", "peer", "name", "other1"])
    try:
        run([*there, "attach", "other0"])
        found = json.loads(run([str(WEIR), "-j", "status", "--all"], check=False).stdout)["instances"]
        names = [one.get("instance") for one in found]
        assert names.index(on.name) < names.index(other)
        for name, device in (on.name, "near0"), (other, "other0"):
            shown = found[names.index(name)]
            assert [(row["name"], row["state"]) for row in shown["interfaces"]] == [(device, "held")], shown
        on.cut()
        done = run([str(WEIR), "status", "--all"], check=False)
        assert done.returncode == 2 and re.search(f"^{other} +no policy: ", done.stdout, re.MULTILINE)
        assert re.search(f"^{on.name} +no policy: .*^alarm +'near0' does not run Weir", done.stdout, re.MULTILINE | re.DOTALL)
        assert re.search("[0-9]+ alarms?$", done.stderr)
    finally:
        run([*there, "detach"], check=False)
        run(["ip", "-n", pair.far_netns, "link", "del", "other0"])


def test_a_state_folder_that_cannot_be_written(on):
    on("block", BLOCKED)
    with read_only(on.state):
        assert f"'{on.state}' cannot be written: the file system is read-only; nothing is saved (--volatile changes only the kernel)" in alarms(on)
        assert "the file system is read-only" in on("doctor", check=False).stdout
    assert alarms(on) == []


def test_a_full_disk(on, tmp_path):
    on("block", BLOCKED)
    run(["cp", "-a", on.state, tmp_path / "copy"])
    run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", on.state])
    try:
        run(["cp", "-a", f"{tmp_path}/copy/.", on.state])
        assert alarms(on) == []
        run(["sh", "-c", f"cat /dev/zero >{on.state}/filler 2>/dev/null || :"])
        before = sorted(on.state.iterdir())
        assert f"'{on.state}' cannot be written: no space left; nothing is saved (--volatile changes only the kernel)" in alarms(on)
        assert sorted(on.state.iterdir()) == before
    finally:
        run(["umount", on.state])


def test_limits(on):
    on("block", "-f", "-", input="192.0.2.1\n192.0.2.2\n198.51.100.0/24\n2001:db8::1\n")
    rows = on.json("status", "--limits")["limits"]
    assert [(row["table"], row["used"], row["max"]) for row in rows] == [
        ("IPv4 hosts", 2, 1000), ("IPv6 hosts", 1, 1000), ("IPv4 prefixes", 1, 1000),
        ("IPv6 prefixes", 0, 1000), ("outgoing IPv4", 0, 1000), ("outgoing IPv6", 0, 1000),
    ]


@pytest.mark.parametrize("drops", [True, False])
def test_rates(pair, on, drops):
    """Packets per second, over a quarter of a second during which frames keep arriving."""
    if drops:
        on("block", BLOCKED)
    status = on.start("-j", "status")
    frame = pair.udp(BLOCKED)
    while status.poll() is None:
        pair.send_from_far(*[frame] * 20)
    row = json.loads(status.communicate()[0])["interfaces"][0]
    assert row["in_pps"] > 100
    assert (row["dropped_pps"] > 100) == drops
