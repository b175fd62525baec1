# SPDX-License-Identifier: GPL-2.0-only
"""Interfaces are attached and detached with the policy that names them; those of weir attach stay."""

import json
import time

import pytest

from labnet import second_link

BOTH, NINE = "near0, near1", "drop proto udp to port 9"


@pytest.fixture(scope="module", name="second", autouse=True)
def link_of_its_own(pair):
    with second_link(pair):
        yield


def attached(weir):
    said = weir("-j", "status", check=False).stdout  # with or without alarms
    return sorted(one["name"] for one in json.loads(said)["interfaces"])


def test_what_is_named_no_more_is_detached(weir, apply):
    apply(NINE, devices=BOTH)
    assert attached(weir) == ["near0", "near1"]
    assert "detached from near1" in apply(NINE).stdout
    assert attached(weir) == ["near0"]
    apply(NINE, devices="near1")
    assert attached(weir) == ["near1"]


def test_what_weir_attach_attached_stays(weir, apply):
    weir("attach", "near1")
    apply(NINE, devices=BOTH)
    apply(NINE)
    assert attached(weir) == ["near0", "near1"]


def test_weir_attach_adopts(weir, apply):
    apply(NINE, devices=BOTH)
    weir("attach", "near1")
    apply(NINE)
    assert attached(weir) == ["near0", "near1"]


def test_a_policy_for_what_is_attached_detaches_nothing(weir, apply):
    apply(NINE)
    apply.path.write_text(f"{NINE}\n")
    weir("apply", apply.path)
    assert attached(weir) == ["near0"]


def test_a_trial_detaches_when_it_is_confirmed(weir, apply):
    apply(NINE, devices=BOTH)
    apply(NINE, "--confirm=60s")
    assert attached(weir) == ["near0", "near1"]
    assert "detached from near1" in weir("confirm").stdout
    assert attached(weir) == ["near0"]


def test_a_trial_takes_along_what_it_brought(weir, apply):
    apply(NINE)
    apply(NINE, "--confirm=60s", devices=BOTH)
    assert attached(weir) == ["near0", "near1"]
    assert "detached from near1" in weir("rollback").stdout
    assert attached(weir) == ["near0"]


def test_a_trial_that_ran_out_does_too(weir, apply):
    apply(NINE)
    apply(NINE, "--confirm=1s", devices=BOTH)
    time.sleep(1.2)
    assert "trial has expired" in weir.fails(3, "confirm")
    assert attached(weir) == ["near0"]


@pytest.mark.parametrize("command", [["drain", "10.77.0.2"], ["weight", "10.77.0.2", "2"],
                                     ["service", "--refresh"]])
def test_a_trial_that_ran_out_does_before_the_pool_changes(weir, apply, command):
    service = ("service www { vip 192.0.2.10; proto tcp; port 80; mode ipip; source 10.77.0.77; "
               "backend 10.77.0.2 }")
    apply(service)
    apply(service, "--confirm=1s", devices=BOTH)
    assert attached(weir) == ["near0", "near1"]
    time.sleep(1.2)
    assert weir(*command, check=False).returncode == (3 if command[0] == "drain" else 0)  # it is the last backend
    assert attached(weir) == ["near0"]


def test_the_end_of_the_first_trial_leaves_a_host_without_weir(weir, apply):
    apply(NINE, "--confirm=60s", devices=BOTH)
    assert "the empty policy" in weir("rollback").stdout
    assert not weir.bpffs.exists()
