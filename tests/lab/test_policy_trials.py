# SPDX-License-Identifier: GPL-2.0-only
"""A trial returns to the previous policy, and no policy cuts off the login of the operator."""

import contextlib
import os
import signal
import time

import pytest

from labnet import Pair, WEIR
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
