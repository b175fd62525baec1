# SPDX-License-Identifier: GPL-2.0-only
"""Where a policy applies: on the interfaces that it names; if it names none, on all interfaces of the
instance."""

import contextlib
import json
import os
import socket
import time

import pytest
from scapy.layers.inet import ICMP
from scapy.packet import Raw

from labnet import WEIR, run, second_link, socket_in
from policylab import (
    MARK, OTHER4, SOURCE4, SOURCE6, logged_in, packet, tcp, udp,
)

NEAR1, FAR1 = "10.78.0.1", "10.78.0.2"
VIP = "192.0.2.10"
STRICT = f"""default drop
{MARK}
fragments drop
"nine"   always drop proto udp to port 9
"ten"    drop proto udp to port 10
service www {{ vip {VIP}; port 80; mode dr; backend 10.77.0.2 }}"""


@pytest.fixture(scope="module", name="second")
def link_of_its_own(pair):
    """The same two hosts over another link with addresses of its own: the path of the operator's login."""
    with second_link(pair, [("near", f"{NEAR1}/24"), ("far", f"{FAR1}/24")]) as link:
        yield link


@contextlib.contextmanager
def connection(pair):
    """A TCP connection over near1: works() returns whether bytes pass in both directions."""
    server = socket_in(pair.near_netns, socket.AF_INET, socket.SOCK_STREAM)
    client = socket_in(pair.far_netns, socket.AF_INET, socket.SOCK_STREAM)
    with server, client:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((NEAR1, 2222))
        server.listen()
        client.connect((NEAR1, 2222))
        accepted, _ = server.accept()

        def works():
            for end in (client, accepted):
                end.settimeout(0.7)
            try:
                client.send(b"?")
                accepted.send(accepted.recv(1))
                return client.recv(1) == b"?"
            except TimeoutError:
                return False

        with accepted:
            yield works


def later(**fields):
    return packet(Raw(b"f" * 16), frag=1, proto=17, **fields)


def passed_by_default(stats):
    return sum(row["packets"] for row in stats["counters"] if row["reason"] == "default")


# On an interface that the policy does not name.


def test_other_interfaces_keep_their_connections(pair, second, weir, apply):
    apply(STRICT)
    with connection(pair) as works:
        assert works()
        weir("attach", "near1")
        assert works()
        weir("detach", "near1")
        weir("block", "-i", "near1", OTHER4)
        assert works()
        assert second.free(OTHER4, SOURCE4) == [False, True]
        weir("detach", "near1")
        weir("attach", "near1")
        assert works()
        weir("detach")  # all interfaces, and restored from the record
        weir("attach", "near1", "near0")
        assert works()
    assert second.free(OTHER4, SOURCE4) == [False, True]
    assert pair.free(SOURCE4, SOURCE6) == [False, False]


def test_no_part_of_a_policy_holds_there(pair, second, weir, apply):
    apply(STRICT)
    weir("attach", "near1")
    frames = [udp(9), udp(10), udp(11), udp(9, SOURCE6), later(), tcp(80, dst=VIP),
              packet(ICMP(), dst=VIP)]
    assert pair.passes(*frames) == [False] * len(frames)
    before = weir.json("stats")
    assert second.passes(*frames) == [True] * len(frames)
    after = weir.json("stats")
    assert after["rules"] == before["rules"] and after["backends"] == before["backends"]
    assert passed_by_default(after) >= passed_by_default(before) + len(frames)


def test_entries_and_the_check_for_malformed_packets_hold_there(second, weir, apply):
    apply(f"{STRICT}\n\"own\" always pass from 203.0.113.0/24")
    weir("attach", "near1")
    weir("block", "203.0.113.0/24", "2001:db8:100::/48")
    weir("allow", "203.0.113.77")
    assert second.free(OTHER4, "203.0.113.77", SOURCE6, SOURCE4) == [False, True, False, True]
    broken = bytes(udp(10))[:30]
    assert second.passes(broken) == [False]
    apply(f"malformed pass\n{STRICT}")  # settings apply to the instance, not to its interfaces
    assert second.passes(broken) == [True]


def test_a_policy_without_names_holds_everywhere(pair, second, weir, apply):
    weir("attach", "near0", "near1")
    apply.path.write_text("default drop\npass ethertype 0x88b5\npass proto udp to port 10\n")
    weir("apply", apply.path)
    assert pair.passes(udp(9), udp(10)) == second.passes(udp(9), udp(10)) == [False, True]


# Every command reports it.


def policy_on(weir):
    return {one["name"]: one["policy"] for one in weir.json("status")["interfaces"]}


def test_attach_and_status_say_where_it_holds(second, weir, apply):
    said = weir("attach", "near0").stdout
    assert "policy" not in said and "policy  " not in weir("status").stdout
    apply(STRICT)
    assert "; the policy does not name it: only entries apply" in weir("attach", "near1").stdout
    assert "; the policy applies to it" in weir("attach", "near0").stdout
    assert "policy    applies to near0; only entries apply to near1\n" in weir("status").stdout
    assert policy_on(weir) == {"near0": True, "near1": False}
    weir("detach", "near1")
    said = weir.json("block", "-i", "near1", OTHER4)["attached"]
    assert [(one["name"], one["policy"]) for one in said] == [("near1", False)]
    apply(STRICT, devices="near*")
    assert "policy    applies to near0 near1\n" in weir("status").stdout
    apply.path.write_text("drop from 192.0.2.77\n")
    weir("apply", apply.path)
    assert "policy    applies to all interfaces\n" in weir("status").stdout
    assert policy_on(weir) == {"near0": True, "near1": True}


def test_apply_says_where_it_does_not_hold(second, weir, apply):
    weir("attach", "near0", "near1")
    done = apply(STRICT)
    assert "; only entries apply to near1\n" in done.stdout
    assert weir.json("apply", apply.path)["only_entries_on"] == ["near1"]
    assert "only entries" not in apply(STRICT, devices="near0, near1").stdout


def test_explain_on_an_interface(second, weir, apply):
    apply(STRICT)
    weir("attach", "near1")
    udp_nine = f"udp from {SOURCE4} to 10.77.0.1 port 9"
    assert 'dropped: rule "nine"' in weir("explain", *f"{udp_nine} on near0".split()).stdout
    said = weir("explain", *f"{udp_nine} on near1".split()).stdout
    assert "passed: the policy does not name near1: only entries apply to it" in said
    document = weir.json("explain", *f"{udp_nine} on near1".split())["packets"][0]
    assert (document["verdict"], document["by"], document["policy"]) == ("pass", "default", False)
    weir("block", SOURCE4)
    said = weir("explain", *f"{udp_nine} on near1".split()).stdout
    assert f"dropped: overlay block {SOURCE4} from" in said
    frame = bytes(udp(9, OTHER4)).hex()
    assert "only entries apply" in weir("explain", "--hex", frame, "--on", "near1").stdout
    assert "near9" in weir.fails(1, "explain", *f"{udp_nine} on near9".split())
    said = weir("explain", OTHER4).stdout
    assert "is dropped: default drop" in said
    assert "policy:   applies to near0; only entries apply to near1" in said
    document = weir.json("explain", OTHER4)
    assert (document["holds_on"], document["only_entries_on"]) == (["near0"], ["near1"])


def test_explain_of_an_address_with_an_open_device(second, weir, apply):
    """Nothing of Weir applies to a device that is open: neither the policy nor entries."""
    apply("default drop")
    weir("attach", "near1")
    weir("block", SOURCE4)
    weir.cut("near1")
    done = weir("explain", OTHER4, check=False)
    assert done.returncode == 3 and "only entries apply" not in done.stdout
    assert "near1" in done.stdout + done.stderr
    document = weir.json("explain", OTHER4, status=3)
    assert (document["holds_on"], document["only_entries_on"]) == (["near0"], [])
    weir("attach", "near1")
    assert weir.json("explain", OTHER4)["only_entries_on"] == ["near1"]


def test_explain_with_an_interface_pattern(second, weir, apply):
    apply("default pass on near*\ndefault drop", devices="near*, other optional")
    words = f"udp from {SOURCE4} to 10.77.0.1 port 9 on near1".split()
    said = weir("explain", *words).stdout
    assert "is passed: default pass, " in said and "lab.weir:2" in said


# The login of the operator is on near1.


def everywhere(weir, apply, text):
    """Applies a policy that names no interface, where Weir is attached."""
    apply.path.write_text(f"{text}\n")
    weir("apply", apply.path)


def from_afar(pair, weir, *words, peer=FAR1):
    """Runs a command as an operator who is logged in over near1: (status, output)."""
    return logged_in(pair, peer, [WEIR, "-n", weir.name, *words], NEAR1)


def on_near1(pair):
    return pair.xdp_names()["near1"]


WAYS = [["attach", "near1"], ["block", "-i", "near1", OTHER4], ["allow", "-i", "near1", OTHER4],
        ["block", "--live", "-i", "near1", OTHER4]]


@pytest.mark.parametrize("words", WAYS)
def test_no_way_of_attaching_cuts_off_the_own_login(pair, second, weir, apply, words):
    weir("attach", "near0")
    everywhere(weir, apply, '"cut" drop proto tcp')
    status, printed = from_afar(pair, weir, *words)
    assert status == 3 and f"your own login from {FAR1}" in printed and '"cut"' in printed, printed
    assert "weir attach near1 --confirm" in printed and "lab.weir:1" in printed
    assert on_near1(pair) is None and OTHER4 not in weir.entries()
    assert "near1" not in policy_on(weir)


def test_attach_demands_a_trial_where_routers_share_the_mac_address(pair, second, weir, apply):
    shared = "00:00:5e:00:01:0a"
    weir("attach", "near0")
    everywhere(weir, apply, f'"mac" drop mac not {shared}')
    before, = json.loads(run(["ip", "-j", "-n", pair.far_netns, "link", "show", "far1"]).stdout)
    try:
        for mac, wanted in (before["address"], "cut off your own login"), (shared, f"routers share the MAC address {shared}"):
            run(["ip", "-n", pair.far_netns, "link", "set", "far1", "address", mac])
            pair.near(["ip", "neigh", "replace", FAR1, "lladdr", mac, "dev", "near1"])
            status, printed = from_afar(pair, weir, "attach", "near1")
            assert status == 3 and wanted in printed and "weir attach near1 --confirm" in printed, printed
            assert on_near1(pair) is None
        status, printed = from_afar(pair, weir, "attach", "near1", "--confirm=60s")
        assert status == 0 and on_near1(pair), printed
        assert f"cannot check that rules with mac pass the login from {FAR1} on near1: routers share" in printed
    finally:
        run(["ip", "-n", pair.far_netns, "link", "set", "far1", "address", before["address"]])
        pair.near(["ip", "neigh", "replace", FAR1, "lladdr", before["address"], "dev", "near1"])


def test_attach_accepts_rules_with_mac_that_cannot_drop_the_login(pair, second, weir, apply):
    shared = "00:00:5e:00:01:0a"
    weir("attach", "near0")
    everywhere(weir, apply, f'drop proto udp mac not {shared}')
    before, = json.loads(run(["ip", "-j", "-n", pair.far_netns, "link", "show", "far1"]).stdout)
    try:
        run(["ip", "-n", pair.far_netns, "link", "set", "far1", "address", shared])
        pair.near(["ip", "neigh", "replace", FAR1, "lladdr", shared, "dev", "near1"])
        status, printed = from_afar(pair, weir, "attach", "near1")
        assert status == 0 and "cannot check" not in printed, printed
    finally:
        run(["ip", "-n", pair.far_netns, "link", "set", "far1", "address", before["address"]])
        pair.near(["ip", "neigh", "replace", FAR1, "lladdr", before["address"], "dev", "near1"])


def test_force_attaches_all_the_same(pair, second, weir, apply):
    weir("attach", "near0")
    everywhere(weir, apply, "default drop")
    status, printed = from_afar(pair, weir, "attach", "near1", "--force")
    assert status == 0 and on_near1(pair), printed


def test_other_logins_are_not_checked(pair, second, weir, apply):
    weir("attach", "near0")
    everywhere(weir, apply, f"default drop\npass from {SOURCE4}")
    status, printed = logged_in(pair, SOURCE4, [WEIR, "-n", weir.name, "attach", "near1"])
    assert status == 0, printed  # this operator is logged in over near0
    weir("detach", "near1")
    weir("attach", "near1")  # no login on the console is checked


def test_a_restore_cuts_off_no_login(pair, second, weir, apply):
    weir("attach", "near0")
    everywhere(weir, apply, "default drop")
    weir("detach")
    status, printed = from_afar(pair, weir, "attach", "near0", "near1")
    assert status == 3 and "default" in printed, printed
    assert on_near1(pair) is None and not weir.bpffs.exists()
    everywhere(weir("attach", "near0") and weir, apply, f"default drop\npass from {FAR1}")
    weir("detach")
    status, printed = from_afar(pair, weir, "attach", "near1")
    assert status == 0 and on_near1(pair), printed


def test_a_policy_for_other_interfaces_refuses_nothing(pair, second, weir, apply):
    apply("default drop")
    for words in WAYS[:3]:
        status, printed = from_afar(pair, weir, *words)
        assert status == 0 and on_near1(pair), printed
        weir("detach", "near1")
    apply("default drop", devices="near0, near1 optional", check=False)
    weir("detach", "near1")
    status, printed = from_afar(pair, weir, "attach", "near1")
    assert status == 3, printed  # because the policy names it


def test_entries_and_sets_are_asked_too(pair, second, weir, apply):
    weir("attach", "near0")
    weir("block", "10.78.0.0/24", "--force")
    status, printed = from_afar(pair, weir, "attach", "near1")
    assert status == 3 and "block" in printed and on_near1(pair) is None
    everywhere(weir, apply, "default drop")
    weir("allow", FAR1)
    status, printed = from_afar(pair, weir, "attach", "near1")
    assert status == 0, printed
    weir("detach", "near1")
    weir("unblock", "--all")
    weir("unallow", "--all")
    everywhere(weir, apply, "set trap dynamic\ndrop from @trap\ndrop probability 99.9%")
    status, printed = from_afar(pair, weir, "attach", "near1")
    assert status == 0, printed
    weir("detach", "near1")
    weir("block", "--set", "trap", FAR1)
    status, printed = from_afar(pair, weir, "attach", "near1")
    assert status == 3 and "@trap" in printed, printed


def test_attaching_an_attached_interface_checks_no_login(pair, second, weir, apply):
    weir("attach", "near1", "near0")
    apply.path.write_text("default drop\n")
    command = f"{WEIR} -n {weir.name}"
    argv = ["sh", "-c", f"{command} apply {apply.path} --force && {command} attach near1"]
    status, printed = logged_in(pair, FAR1, argv, NEAR1)
    assert status == 0 and "already attached" in printed, printed


def test_attaching_under_a_new_name_asks_the_guard(pair, second, weir, apply):
    """Attached interfaces get their new name only with attach, so the login is in danger only then."""
    apply("default drop", devices="near0, wall optional")
    weir("attach", "near1")

    def rename(old, new):
        for words in (old, "down"), (old, "name", new), (new, "up"):
            pair.link("set", *words)

    rename("near1", "wall")
    try:
        status, printed = from_afar(pair, weir, "attach", "wall")
        assert status == 3 and f"your own login from {FAR1}" in printed, printed
        with connection(pair) as works:
            assert works() and pair.xdp_names()["wall"]
            weir("attach", "wall")  # an operator on the console may
            assert not works()
    finally:
        rename("wall", "near1")


def test_a_login_that_cannot_be_placed(pair, second, weir, apply):
    nowhere = {**os.environ, "SSH_CONNECTION": "UNKNOWN 65535 UNKNOWN 65535"}
    attach = [WEIR, "-n", weir.name, "attach", "near1"]
    weir("attach", "near0")
    pair.near(attach, env=nowhere)  # without a policy
    weir("detach", "near1")
    apply("default drop")
    pair.near(attach, env=nowhere)  # with a policy that does not apply there
    weir("detach", "near1")
    everywhere(weir, apply, "drop port 9")
    done = pair.near(attach, check=False, env=nowhere)
    assert done.returncode == 3 and "--confirm" in done.stderr and on_near1(pair) is None


def test_a_login_through_a_bridge(pair, second, weir, apply):
    """The address is on the bridge, the packets arrive on its port."""
    try:
        pair.link("add", "bridge1", "type", "bridge")
        pair.link("set", "near1", "master", "bridge1")
        pair.near(["ip", "addr", "del", f"{NEAR1}/24", "dev", "near1"])
        pair.near(["ip", "addr", "add", f"{NEAR1}/24", "dev", "bridge1"])
        pair.link("set", "bridge1", "up")
        weir("attach", "near0")
        everywhere(weir, apply, "default drop")
        status, printed = from_afar(pair, weir, "attach", "near1")
        assert status == 3 and FAR1 in printed, printed
        status, printed = from_afar(pair, weir, "apply", apply.write("default drop"))
        assert status == 0, printed
        status, printed = from_afar(pair, weir, "apply", apply.write("default drop", "near0, near1"))
        assert status == 3 and "'near1'" in printed, printed
    finally:
        pair.link("del", "bridge1")
        pair.near(["ip", "addr", "add", f"{NEAR1}/24", "dev", "near1"])


# attach --confirm.


def shell(*commands):
    """An argv that runs commands one after the other, each a list of words; a number is a pause."""
    words = [f"sleep {one}" if isinstance(one, (int, float)) else " ".join(map(str, one)) for one in commands]
    return ["sh", "-c", "; ".join(words)]


def test_an_attach_on_trial_takes_itself_back(pair, second, weir, apply):
    """No Weir process is needed: the connection that it cuts recovers by itself."""
    weir("attach", "near0")
    everywhere(weir, apply, f"default drop\n{MARK}pass proto udp")
    with connection(pair) as works:
        done = weir("attach", "near1", "--confirm=2s")
        end = time.monotonic() + 2
        assert "on trial for 2s: 'weir confirm' keeps it attached" in done.stdout
        assert second.passes(tcp(), udp()) == [False, True]
        said = weir("status").stdout
        assert "trial     of near1 ends in" in said and "'weir confirm' keeps it attached" in said
        time.sleep(max(0, end + 0.1 - time.monotonic()))
        assert works()
    assert second.passes(tcp()) == [True] and pair.passes(tcp()) == [False]
    said = weir("status", check=False).stdout
    assert "policy    applies to near0; nothing applies to near1\n" in said
    status = json.loads(weir("-j", "status", check=False).stdout)
    assert status["trial_brought"] == ["near1"] and status["trial_ms_left"] == 0
    assert [one["policy"] for one in status["interfaces"]] == [True, False]
    assert any("'near1' was attached by a trial that has expired" in one for one in status["alarms"])
    assert "the trial has expired: near1 is detached" in weir.fails(3, "confirm")
    assert on_near1(pair) is None and policy_on(weir) == {"near0": True}
    assert pair.passes(tcp(), udp()) == [False, True]


def test_a_confirmed_attach_stays(pair, second, weir, apply):
    weir("attach", "near0")
    everywhere(weir, apply, f"default drop\n{MARK}pass proto udp")
    weir("attach", "near1", "--confirm=1s")
    assert "confirmed: near1 stays attached" in weir("confirm").stdout
    time.sleep(1.2)
    assert second.passes(tcp(), udp()) == [False, True]
    assert "no trial is running" in weir.fails(3, "confirm")
    assert weir.json("status")["trial_brought"] == []


def test_rollback_detaches_what_is_on_trial(pair, second, weir, apply):
    weir("attach", "near0")
    everywhere(weir, apply, f"default drop\n{MARK}")
    before = weir.json("history")
    weir("attach", "near1", "--confirm")
    said = weir("rollback").stdout
    assert "ended the trial" in said and "detached from near1" in said
    assert on_near1(pair) is None and policy_on(weir) == {"near0": True}
    assert weir.json("history") == before and pair.passes(udp()) == [False]


def test_a_restore_on_trial(pair, second, weir, apply):
    weir("attach", "near0")
    everywhere(weir, apply, f"default drop\n{MARK}")
    weir("detach")
    command = [WEIR, "-n", weir.name]
    argv = shell([*command, "attach", "near1", "--confirm=1s"], 1.2, [*command, "confirm"])
    status, printed = logged_in(pair, FAR1, argv, NEAR1)
    assert status == 3 and f"your own login from {FAR1} is now cut off on 'near1'" in printed, printed
    assert "near1 is detached" in printed
    assert on_near1(pair) is None and not weir.bpffs.exists()


def test_one_trial_at_a_time(pair, second, weir, apply):
    weir("attach", "near0")
    everywhere(weir, apply, "drop port 9")
    weir("attach", "near1", "--confirm")
    assert "trial of near1 ends in" in apply.fails(3, "drop port 10")
    weir("rollback")
    apply("drop port 10", "--confirm", devices="near0")
    assert "trial by root" in weir.fails(3, "attach", "near1", "--confirm")
    assert on_near1(pair) is None


def test_nothing_to_try(pair, second, weir, apply):
    weir("attach", "near0", "near1")
    everywhere(weir, apply, "drop port 9")
    said = weir("attach", "near1", "--confirm").stdout
    assert "already attached" in said and "on trial" not in said
    assert "no trial was started: all interfaces were attached already" in said
    apply("drop port 10", devices="near0, near1")
    assert weir.json("attach", "near1", "--confirm")["trial_ms"] == 0
    assert "24h" in weir.fails(1, "attach", "near1", "--confirm=25h")


def test_detach_and_attach_end_a_trial(pair, second, weir, apply):
    weir("attach", "near0")
    everywhere(weir, apply, f"default drop\n{MARK}")
    weir("attach", "near1", "--confirm=60s")
    weir("detach", "near1")
    assert weir.json("status")["trial_ms_left"] == 0
    apply("drop port 9", devices="near0")
    weir("detach")
    weir("attach", "near0")
    weir("attach", "near1", "--confirm=1s")
    weir("attach", "near1")  # permanently
    time.sleep(1.2)
    assert on_near1(pair) and "trial_ms_left" in weir.json("status")


def test_a_block_after_a_trial_does_not_name_an_open_interface(pair, second, weir, apply):
    weir("attach", "near1", "--confirm=1s")
    time.sleep(1.2)
    assert "not attached to any interface" in weir.fails(1, "block", OTHER4)
    assert on_near1(pair) is None
    assert "on near1;" in weir("block", "-i", "near1", OTHER4).stdout
    assert second.free(OTHER4) == [False]


def test_a_rollback_leaves_interfaces_of_the_trial_open(pair, second, weir, apply):
    """The previous policy names no interface: without its bit in the knobs it would apply on near1 then."""
    weir("attach", "near0")
    everywhere(weir, apply, f"default drop\n{MARK}")
    with connection(pair) as works:
        apply("pass from any", "--confirm=1s", devices="near0, near1")
        assert works() and on_near1(pair)
        time.sleep(1.2)
        assert works() and pair.passes(udp()) == [False]
        assert "'near1'" in weir("status", check=False).stdout
        weir.fails(3, "confirm")
        assert works() and on_near1(pair) is None


def test_weir_attach_during_a_trial_checks_the_previous_policy(pair, second, weir, apply):
    weir("attach", "near0")
    everywhere(weir, apply, f"default drop\n{MARK}")
    apply("pass from any", "--confirm=60s", devices="near0, near1")
    status, printed = from_afar(pair, weir, "attach", "near1")
    assert status == 3 and "default" in printed, printed
    status, printed = from_afar(pair, weir, "attach", "near1", "--force")
    assert status == 0, printed
    assert "detached" not in weir("rollback").stdout and on_near1(pair)
