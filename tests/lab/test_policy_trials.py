# SPDX-License-Identifier: GPL-2.0-only
"""A trial returns to the previous policy, and no policy cuts off the login of the operator."""

import concurrent.futures
import contextlib
import os
import signal
import time

import pytest

from labnet import Pair, WEIR, until
from policylab import (
    MARK, NINE, OTHER4, OTHER6, PASSES_ALL, PASSES_NINE, PASSES_TEN, SOURCE4, SOURCE6, TEN, Policies, in_force,
    logged_in, ping, ports, programs, udp,
)

BLOCKED4 = "203.0.113.10"  # blocked.lab


@pytest.fixture(name="apply")
def policies(on, tmp_path):
    return Policies(on, tmp_path)


# The end of a trial.


def wait_until(deadline):
    time.sleep(max(0, deadline - time.monotonic()))


def test_a_trial_takes_itself_back(pair, on, apply):
    apply(NINE)
    before, shown = on.json("history"), on("show").stdout
    said = apply(TEN, "--confirm=3s").stdout
    end = time.monotonic() + 3
    assert "on trial for 3s: 'weir confirm' keeps it" in said
    assert ports(pair) == PASSES_NINE
    assert on.json("history") == before and on("show").stdout == shown  # accepted only by confirm
    wait_until(end - 0.5)
    assert ports(pair) == PASSES_NINE
    wait_until(end + 0.1)
    assert ports(pair) == PASSES_TEN
    assert "trial has expired" in on.fails(3, "confirm")
    assert "no trial" in on.fails(3, "confirm")
    assert ports(pair) == PASSES_TEN and on.json("history") == before


def test_confirm_keeps_it(pair, on, apply):
    apply(NINE)
    apply(TEN, "--confirm=1s")
    on("confirm")
    time.sleep(1.2)
    assert ports(pair) == PASSES_NINE and TEN in on("show").stdout
    assert len(on.json("history")["revisions"]) == 2


def test_one_trial_at_a_time(pair, on, apply):
    apply(NINE)
    apply(TEN, "--confirm=60s")
    there = programs(on)
    printed = apply.fails(3, "drop from any")
    assert "trial by root (" in printed and "ends in" in printed and "weir confirm" in printed
    assert programs(on) == there and ports(pair) == PASSES_NINE
    on("confirm")
    apply(NINE)
    assert ports(pair) == PASSES_TEN


def test_rollback_ends_a_trial(pair, on, apply):
    apply(NINE)
    apply(TEN, "--confirm=60s")
    assert "ended the trial" in on("rollback").stdout
    assert ports(pair) == PASSES_TEN
    assert "no trial" in on.fails(3, "confirm")
    apply(TEN)
    assert ports(pair) == PASSES_NINE
    on("rollback")  # to the accepted policy, not to the one on trial
    assert ports(pair) == PASSES_TEN


def test_a_rollback_may_be_a_trial(pair, on, apply):
    apply(NINE)
    apply(TEN)
    on("rollback", "--confirm=1s")
    assert ports(pair) == PASSES_TEN
    time.sleep(1.2)
    assert ports(pair) == PASSES_NINE


def test_the_first_policy_on_trial(pair, weir, tmp_path):
    Policies(weir, tmp_path)(NINE, "--confirm=1s")
    assert ports(pair) == PASSES_TEN
    time.sleep(1.2)
    assert ports(pair) == PASSES_ALL


def weir_processes(name):
    """Ids of all processes of an instance."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if name.encode() in file.read().split(b"\0"):
                yield int(pid)


def test_a_trial_ends_though_everything_is_killed(pair, on, apply):
    apply(NINE)
    running = [on.start("watch"), on.start("block", "--live", BLOCKED4)]
    time.sleep(0.3)
    apply(TEN, "--confirm=2s")
    end = time.monotonic() + 2
    victims = [pid for pid in weir_processes(on.name) if pid != os.getpid()]
    assert {process.pid for process in running} <= set(victims)
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    for process in running:
        process.wait(timeout=2)
    assert list(weir_processes(on.name)) == []
    assert ports(pair) == PASSES_NINE
    wait_until(end + 0.1)
    assert ports(pair) == PASSES_TEN
    apply("pass from any")  # the next command finds a consistent state
    assert ports(pair) == PASSES_ALL


def test_a_command_during_and_after_a_trial_keeps_the_overlay(pair, on, apply):
    apply(NINE)
    apply(TEN, "--confirm=1s")
    on("block", OTHER4)
    time.sleep(1.2)
    on("block", OTHER6)
    assert pair.free(OTHER4, OTHER6) == [False, False] and ports(pair) == PASSES_TEN
    assert set(on.entries()) == {OTHER4, OTHER6}


# The login of the operator.

@pytest.mark.parametrize("peer", [SOURCE4, SOURCE6])
def test_a_policy_that_cuts_off_the_own_login_is_refused(pair, on, apply, peer):
    apply(NINE)
    before = in_force(on)
    network = "198.51.100.0/24, 2001:db8:100::/48"
    command = [WEIR, "-n", on.name, "apply", apply.write(f'"cut" drop from {network}')]
    status, printed = logged_in(pair, peer, command)
    assert status == 3 and peer in printed and '"cut"' in printed and "always pass" in printed
    assert in_force(on) == before
    status, printed = logged_in(pair, OTHER6 if ":" in peer else OTHER4, command)
    assert status == 0, printed  # not of this login
    assert not any(pair.free(SOURCE4, SOURCE6))
    on("rollback")
    status, printed = logged_in(pair, peer, [*command, "--force"])
    assert status == 0 and not any(pair.free(SOURCE4, SOURCE6)), printed


@pytest.mark.parametrize("peer", [SOURCE4, SOURCE6])
def test_a_login_is_asked_about_with_its_mac_address(pair, on, apply, peer):
    command = [WEIR, "-n", on.name, "apply"]
    status, printed = logged_in(pair, peer, [*command, apply.write(f'"mac" drop mac {pair.far_mac}')])
    assert status == 3 and '"mac"' in printed, printed
    status, printed = logged_in(pair, peer, [*command, apply.write(f"default drop\n{MARK}always pass mac {pair.far_mac}")])
    assert status == 0, printed
    assert pair.passes(udp()) == [True]
    status, printed = logged_in(pair, peer, [*command, apply.write(f"default drop\n{MARK}always pass mac {pair.near_mac}")])
    assert status == 3 and "default" in printed, printed
    apply(f'{MARK}"mac" drop mac not 02:77:00:00:00:03 to any port 9')
    assert pair.passes(udp()) == [False]


@contextlib.contextmanager
def far_has(pair, mac):
    """far has this MAC address, and near knows it; None: near does not know any."""
    try:
        pair.far(["ip", "link", "set", "far0", "address", mac or pair.far_mac])
        for address in pair.far4, pair.far6:
            pair.near(["ip", "neigh", "replace", address, "lladdr", mac or pair.far_mac, "dev", "near0"])
        yield
    finally:
        pair.far(["ip", "link", "set", "far0", "address", pair.far_mac])
        for address in pair.far4, pair.far6:
            pair.near(["ip", "neigh", "replace", address, "lladdr", pair.far_mac, "dev", "near0"])


@pytest.mark.parametrize("peer", [SOURCE4, SOURCE6])
def test_a_mac_address_that_routers_share_proves_nothing(pair, on, apply, peer):
    """Routers with VRRP answer with one address and send from others."""
    shared = "00:00:5e:00:01:0a"
    rule = f'"mac" drop mac not {shared}'
    apply("pass from any")
    command = [WEIR, "-n", on.name, "apply"]
    with far_has(pair, shared):
        status, printed = logged_in(pair, peer, [*command, apply.write(rule)])
        assert status == 3 and f"routers share the MAC address {shared}" in printed and "--confirm" in printed, printed
        status, printed = logged_in(pair, peer, [*command, apply.write(rule), "--force"])
        assert status == 0, printed
        warned = apply("pass from any").stderr + apply(rule, "--force").stderr
        assert f"mac pass answers of the resolver {pair.resolver}: routers share" in warned
        assert "gateway" not in warned  # only rules with type are for neighbour discovery
        on("rollback", "--force")
        status, printed = logged_in(pair, peer, [*command, apply.write(f"{MARK}always pass from {peer}\n{rule}")])
        assert status == 0, printed  # no rule with mac decides
        status, printed = logged_in(pair, peer, [*command, apply.write(f"{MARK}drop from {peer}\n{rule}")])
        assert status == 3 and "would cut off" in printed, printed
        status, printed = logged_in(pair, peer, [*command, apply.write(rule), "--confirm=60s"])
        assert status == 0, printed


SHARED = "00:00:5e:00:01:0a"

UNDECIDED = [
    'count mac not 00:00:5e:00:01:0a',
    'drop proto udp mac not 00:00:5e:00:01:0a',
    'drop to any port 9 mac not 00:00:5e:00:01:0a',
    'drop vlan 5 mac not 00:00:5e:00:01:0a',
    'drop ethertype arp mac not 00:00:5e:00:01:0a',
    'drop on near9 mac not 00:00:5e:00:01:0a',
    'drop to self from 203.0.113.0/24 mac not 00:00:5e:00:01:0a',
    'pass to any port 22\ndrop mac not 00:00:5e:00:01:0a to any port 22',
    'pass from 198.51.100.0/24, 2001:db8:100::/48\ndrop mac not 00:00:5e:00:01:0a',
    'pass mac 02:77:00:00:00:03',
]


@pytest.mark.parametrize("rules", UNDECIDED)
def test_a_rule_with_mac_that_cannot_drop_the_login_is_accepted(pair, on, apply, rules):
    head = "interface near0\ninterface near9 optional\n" if "near9" in rules else ""
    with far_has(pair, SHARED):
        for peer in SOURCE4, SOURCE6:
            status, printed = logged_in(pair, peer, [WEIR, "-n", on.name, "apply", apply.write(head + rules)])
            assert status == 0, printed


DECIDED = ['drop mac 02:77:00:00:00:03', 'default drop\npass mac 00:00:5e:00:01:0a',
           'pass mac 00:00:5e:00:01:0a\ndrop proto tcp', 'drop mac 02:77:00:00:00:03 length 1000-65535']


@pytest.mark.parametrize("rules", DECIDED)
def test_a_rule_with_mac_that_may_drop_the_login_is_refused(pair, on, apply, rules):
    with far_has(pair, SHARED):
        for peer in SOURCE4, SOURCE6:
            status, printed = logged_in(pair, peer, [WEIR, "-n", on.name, "apply", apply.write(rules)])
            assert status == 3 and f"routers share the MAC address {SHARED}" in printed, printed


@pytest.mark.parametrize("rules, wanted", [("pass from any", 0), ("drop proto tcp", 3), (f"drop mac not {SHARED}", 3)])
def test_an_old_quick_rule_with_mac_refuses_no_policy(pair, on, apply, rules, wanted):
    """Only what the command brings counts, where the MAC address is not certain."""
    apply("pass from any")
    on("rule", "add", "drop mac 02:77:00:00:00:03", "--force")
    with far_has(pair, SHARED):
        status, printed = logged_in(pair, SOURCE4, [WEIR, "-n", on.name, "apply", apply.write(rules)])
        assert status == wanted, printed


def test_the_router_is_the_one_of_the_own_address(pair, on, apply):
    """Packets to the peer leave by a table for this source, not by the main one."""
    routes = [["route", "add", SOURCE4, "via", pair.far4, "dev", "near0", "table", "77"],
              ["rule", "add", "from", pair.near4, "lookup", "77"],
              ["neigh", "replace", "10.77.0.99", "lladdr", "02:77:00:00:00:63", "dev", "near0"],
              ["route", "add", SOURCE4, "via", "10.77.0.99", "dev", "near0"]]
    for words in routes:
        pair.near(["ip", *words])
    try:
        command = [WEIR, "-n", on.name, "apply"]
        status, printed = logged_in(pair, SOURCE4, [*command, apply.write(f'"mac" drop mac {pair.far_mac}')])
        assert status == 3 and '"mac"' in printed, printed
        status, printed = logged_in(pair, SOURCE4, [*command, apply.write('"mac" drop mac 02:77:00:00:00:63')])
        assert status == 0, printed
    finally:
        for words in reversed(routes):
            pair.near(["ip", words[0], "del", *words[2:]], check=False)


def test_several_next_hops_are_not_certain(pair, on, apply):
    """The kernel picks one of the routers, and packets may come from the other one."""
    other = ["neigh", "replace", "10.77.0.99", "lladdr", "02:77:00:00:00:63", "dev", "near0"]
    route = ["route", "add", SOURCE4, "nexthop", "via", pair.far4, "dev", "near0", "weight", "200",
             "nexthop", "via", "10.77.0.99", "dev", "near0"]
    path = apply.write(f'"mac" drop mac not {pair.far_mac}')
    command = f"ip {' '.join(route)}; exec {WEIR} -n {on.name} apply {path}"
    pair.near(["ip", *other])
    try:
        status, printed = logged_in(pair, SOURCE4, ["sh", "-c", command])
        assert status == 3 and "several next hops" in printed, printed
    finally:
        pair.near(["ip", "route", "del", SOURCE4], check=False)
        pair.near(["ip", "neigh", "del", *other[2:]], check=False)


def test_a_neighbour_is_asked_before_the_lock(pair, on, apply):
    """While another command has the lock, apply has already asked for the router of the login."""
    route = ["route", "add", SOURCE4, "via", "10.77.0.98", "dev", "near0"]
    path = apply.write(f'"mac" drop mac not {pair.far_mac}')
    command = f"ip {' '.join(route)}; exec {WEIR} -n {on.name} apply {path}"
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            with on.locked():
                answer = pool.submit(logged_in, pair, SOURCE4, ["sh", "-c", command])
                until(lambda: "10.77.0.98" in pair.near(["ip", "neigh", "show", "10.77.0.98"]).stdout, 5, "the question")
                assert not answer.done()
            status, printed = answer.result()
        assert status == 3 and "no MAC address of 10.77.0.98" in printed, printed
    finally:
        pair.near(["ip", "route", "del", SOURCE4], check=False)
        pair.near(["ip", "neigh", "del", "10.77.0.98", "dev", "near0"], check=False)


def test_packets_from_a_tunnel_have_no_mac_address(pair, on, apply):
    pair.near(["ip", "tuntap", "add", "tun0", "mode", "tun"])
    try:
        pair.near(["ip", "link", "set", "tun0", "up"])
        for rules, status in ((f'drop mac not {SHARED}', 0), (f"default drop\n{MARK}always pass mac {SHARED}", 0),
                              (f'drop mac {SHARED}\n"cut" drop proto tcp', 3)):
            apply("pass from any")
            words = f"ip route replace {SOURCE4} dev tun0; exec {WEIR} -n {on.name} apply {apply.write(rules)}"
            got, printed = logged_in(pair, SOURCE4, ["sh", "-c", words])
            pair.near(["ip", "route", "del", SOURCE4, "dev", "tun0"])
            assert got == status, printed
        assert "would cut off" in printed, printed
    finally:
        pair.near(["ip", "link", "del", "tun0"])


def test_a_refresh_brings_no_rule_with_mac(pair, on, apply):
    """The policy is active already: its names follow their addresses."""
    shared = "00:00:5e:00:01:0a"
    with far_has(pair, shared):
        apply(f'drop from other.lab\n"mac" drop mac not {shared}', "--resolver", pair.resolver, "--force")
        pair.dns("other.lab", "203.0.113.99")
        command = [WEIR, "-n", on.name, "-j", "refresh", "--policy", "--resolver", pair.resolver]
        status, printed = logged_in(pair, SOURCE4, command)
        assert status == 0 and '"switched":true' in printed, printed


def test_warnings_are_about_the_mac_address_of_the_host(pair, apply):
    warned = apply(f'"mac" drop mac {pair.far_mac}', "--force").stderr
    assert f"drop answers of the resolver {pair.resolver}" in warned and "gateway" not in warned
    warned = apply(f'"mac" drop type nd-neighbor-advert mac {pair.far_mac}').stderr
    assert f"drop neighbour discovery of the gateway {pair.far6}" in warned and "resolver" not in warned
    assert "warning" not in apply('"mac" drop mac 02:00:00:00:00:01').stderr


def test_default_drop_needs_a_way_in_for_the_login(pair, on, apply):
    command = [WEIR, "-n", on.name, "apply"]
    status, printed = logged_in(pair, SOURCE4, [*command, apply.write("default drop")])
    assert status == 3 and "default" in printed
    way_in = f"default drop\n{MARK}always pass from {SOURCE4}"
    status, printed = logged_in(pair, SOURCE4, [*command, apply.write(way_in)])
    assert status == 0, printed
    assert f"ssh {SOURCE4}" in on.json("history")["revisions"][0]["by"]
    assert pair.passes(udp(), udp(src=OTHER4), ping()) == [True, False, True]


def test_only_a_policy_on_the_logins_interface_can_cut_it_off(pair, weir, tmp_path):
    apply = Policies(weir, tmp_path)
    command = [WEIR, "-n", weir.name, "apply"]
    pair.link("add", "v1", "type", "veth", "peer", "v2")
    try:
        drop = "drop from any", "v1"
        status, printed = logged_in(pair, SOURCE4, [*command, apply.write(*drop)])
        assert status == 0, printed
        drop = "drop on v1 from any", "near*, v1"
        status, printed = logged_in(pair, SOURCE4, [*command, apply.write(*drop)])
        assert status == 0, printed
        drop = "drop on near* from any", "v1, near*"
        status, printed = logged_in(pair, SOURCE4, [*command, apply.write(*drop)])
        assert status == 3 and SOURCE4 in printed
    finally:
        weir("detach", "--force", check=False)
        pair.link("del", "v1")


def test_a_login_that_cannot_be_placed_demands_a_trial(pair, on, apply):
    nowhere = {**os.environ, "SSH_CONNECTION": "UNKNOWN 65535 UNKNOWN 65535"}
    command = [WEIR, "-n", on.name, "apply", apply.write(NINE)]
    done = pair.near(command, check=False, env=nowhere)
    assert done.returncode == 3 and "--confirm" in done.stderr
    assert ports(pair) == PASSES_ALL
    pair.near([*command, "--confirm=60s"], env=nowhere)
    assert ports(pair) == PASSES_TEN


def test_what_else_would_be_cut_off_is_warned_about(apply):
    printed = apply(f"drop proto udp from {Pair.resolver} port 53 to any").stderr
    assert "resolver" in printed and Pair.resolver in printed
    assert "gateway" in apply("drop type nd-neighbor-advert").stderr
    told = apply.weir.json("apply", apply.path, "--force")["warnings"]
    assert len(told) == 1 and Pair.far6 in told[0]
