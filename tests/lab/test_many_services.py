# SPDX-License-Identifier: GPL-2.0-only
"""Policies of many services: what pins take, what a change of one backend costs, and that it leaves nothing undone in
other services."""

import re
import time

import pytest

from labnet import run

SHARED = re.compile(r"mmap\(NULL, (\d+), [^,]*, MAP_SHARED, .* = (0x[0-9a-f]+)$")
UNMAPPED = re.compile(r"munmap\((0x[0-9a-f]+), ")


def service(number, *options):
    lines = [f"vip 192.0.2.{number + 1}", "proto tcp", "port 80", "mode ipip", "source 10.77.0.77", *options,
             f"backend 10.77.1.{number + 1}", f"backend 10.77.2.{number + 1}"]
    return f"service s{number} {{\n    " + "\n    ".join(lines) + "\n}"


def services(count, *options):
    return "\n".join(service(number, *options) for number in range(count))


def shown(weir, number):
    """The backends of a service: state and slots."""
    document, = weir.json("service", f"s{number}")["services"]
    return [(one["state"].split(",")[0], one["slots"]) for one in document["backends"]]


def cost(weir, log, *args):
    """How many bpf calls a command makes, and how many bytes of maps it has mapped at once."""
    run(["strace", "-f", "-qq", "-o", log, "-e", "trace=bpf,mmap,munmap", *weir.argv(*args)])
    mapped, most, calls = {}, 0, 0
    for line in log.read_text("ascii").splitlines():
        calls += " bpf(" in line
        if found := SHARED.search(line):
            mapped[found[2]] = int(found[1])
            most = max(most, sum(mapped.values()))
        elif found := UNMAPPED.search(line):
            mapped.pop(found[1], None)
    return calls, most


def test_a_change_costs_as_much_as_it_touches(weir, apply, tmp_path):
    """However many services there are beside the one that is changed or shown."""
    costs = []
    for count in 3, 90:
        apply(services(count, "pins 64k"))
        costs.append([cost(weir, tmp_path / "log", *command) for command in (
            ("drain", "s1", "10.77.1.2"), ("undrain", "s1", "10.77.1.2"), ("weight", "s1", "10.77.2.2", 3),
            ("service", "s1"), ("drain", "s1", "10.77.2.2", "--wait=1s"))])
        weir("undrain", "s1", "10.77.2.2")
    for few, many in zip(*costs):
        assert many[0] <= few[0] + 10, costs
        assert many[1] <= few[1] + (128 << 10), costs
        assert 0 < few[1] < 1 << 20, costs
    _, most = cost(weir, tmp_path / "log", "service")
    assert most < 90 * (16381 * 8 + 4096) + (2 << 20), "the pins of all services are mapped at once"


@pytest.mark.parametrize("count, each", [(1, 1 << 20), (8, 1 << 20), (9, 1 << 19), (16, 1 << 19), (17, 1 << 18),
                                         (207, 1 << 15)])
def test_the_default_of_pins_follows_the_number_of_services(weir, apply, count, each):
    path = apply.write(services(count))
    document = weir.json("check", path)
    assert document["pin_bytes"] == count * each * 8
    assert document["ring_bytes"] == count * 16381 * 8
    assert re.search(f"^{count} services?, rings [0-9.]+ [kM]B, pins [0-9.]+ MB$", weir("check", path).stdout, re.M)


def test_pins_that_the_policy_gives_stay(weir, apply):
    text = services(20).replace("proto tcp", "proto tcp\n    pins 2048", 1)
    assert weir.json("check", apply.write(text))["pin_bytes"] == 8 * (2048 + 19 * (1 << 18))


def test_an_override_elsewhere_ends_with_the_next_change(weir, apply):
    apply(services(3, "pins 4096"))
    weir("drain", "s0", "10.77.1.1", "--for", "1s")
    assert shown(weir, 0)[0] == ("drain", 0)
    time.sleep(2.1)
    weir("drain", "s2", "10.77.2.3")
    state, slots = shown(weir, 0)[0]
    assert state == "up" and slots > 8000
    assert [slots > 8000 for _, slots in shown(weir, 1)] == [True, True]
    assert shown(weir, 2)[1] == ("drain", 0)


def test_a_killed_drain_is_finished_by_the_next_change_elsewhere(weir, apply, tmp_path):
    """Its ring and its members agree, whichever of the two the command had written."""
    apply(services(2, "pins 4096"))
    weir("drain", "s0", "10.77.1.1")  # the first one writes more
    weir("undrain", "s0", "10.77.1.1")
    last, _ = cost(weir, tmp_path / "log", "drain", "s0", "10.77.1.1")
    torn = 0
    for count in range(last - 8, last + 1):
        weir("undrain", "s0", "10.77.1.1")
        run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject=bpf:signal=KILL:when={count}",
             *weir.argv("drain", "s0", "10.77.1.1")], check=False)
        state, slots = shown(weir, 0)[0]
        torn += (state == "drain") != (slots == 0)
        weir("drain", "s1", "10.77.1.2")
        state, slots = shown(weir, 0)[0]
        assert (state, slots == 0) in (("drain", True), ("up", False)), f"killed at call {count} of {last}"
    assert torn, "no kill came between the ring and its members"
