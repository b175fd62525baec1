# SPDX-License-Identifier: GPL-2.0-only
"""Floods from unused sources: no state grows while the ring is stable, and no real client is harmed while it
changes."""

import contextlib
import json
import time

import pytest
from balancerlab import FULL, Flood, apply_web, crowd_of, failed, running_node
from labnet import run

BALANCER = {"backends": 4}
IDLE_S = 4
COUNT, SECONDS, RATE = (500, 30, 6000) if FULL else (100, 6, 6000)
NEWCOMERS, NEWCOMERS_S = (1000, 10) if FULL else (300, 3)
FLOOD_S = 8 if FULL else 1.5
FLOOD_RATE = 1_100_000 if FULL else 500_000  # packets per second
# The flood with backends, on the same CPUs. With more packets a handshake may take longer than `idle`, and a client
# that is silent for that long is forgotten.
UNSHIELDED_RATE = 300_000


@pytest.fixture(name="node")
def served_node(node, tmp_path):
    """With the default number of pins: the pin of a new connection has to last until its second packet
    arrives, which takes longer on a busy machine; 65,536 pins last 0.15 s in a flood."""
    apply_web(node, tmp_path, [1, 2, 3, 4], f"idle {IDLE_S}s")
    return node


@pytest.fixture(name="small")
def node_with_few_pins(balancer, tmp_path):
    with running_node(balancer) as node:
        apply_web(node, tmp_path, [1, 2, 3, 4], f"idle {IDLE_S}s", "pins 65536")
        yield node


@contextlib.contextmanager
def flood(node, flags, rate=FLOOD_RATE, **options):
    """Yields a function that ends the flood and prints what reached the balancer."""
    before, flow = node.service()["packets"], Flood(node.lab, flags, rate, **options)

    def end():
        sent, seconds = flow.stop()
        arrived = node.service()["packets"] - before
        print(f"\n{'SYN' if flags == 'S' else 'ACK'} flood: {sent / seconds / 1000:.0f} thousand packets "
              f"a second for {seconds:.1f} s, {arrived} of {sent} met the balancer"
              f"{'' if flow.shield else ', and the backends'}")
        assert arrived >= sent  # and the packets of real clients
        if FULL and rate == FLOOD_RATE:
            assert sent / seconds >= 1_000_000

    try:
        yield end
    finally:
        flow.close()


def events(node):
    return {one["event"]: one["times"] for one in node.service()["events"]}


def newcomers(balancer, count=NEWCOMERS, seconds=NEWCOMERS_S, meanwhile=None):
    """All of them, however late they arrive in the noise. meanwhile: called once per second until then."""
    with crowd_of(balancer, 0, 1, 1, seconds, count) as crowd:
        for turn in range(int(seconds) if meanwhile else 0):
            meanwhile(turn)
            time.sleep(1)
        results = crowd.results(newcomers=True)
    print(f"{len(results)} new connections, {sum(bool(one['error']) for one in results)} failed")
    assert len(results) == count and not failed(results), failed(results)


@pytest.mark.parametrize("flags", ["S", "A"])
def test_nothing_grows_in_a_stable_ring(balancer, node, flags):
    with flood(node, flags) as end:
        newcomers(balancer, 100, FLOOD_S)
        end()
    service = node.service()
    assert node.pinned() == 0 and service["slots_stable"] == service["slots"]
    assert not any(times for event, times in events(node).items() if event != "opened")


@pytest.mark.parametrize("shield", [True, False] if FULL else [True])
def test_syn_flood_while_the_ring_changes(balancer, node, shield):
    rate = FLOOD_RATE if shield else UNSHIELDED_RATE

    def change(turn):
        node("weight", "web", f"10.78.2.{1 + turn % 4}", 2 + turn)
        changing.append(node.service()["slots_changing"])

    changing = []
    with crowd_of(balancer, COUNT, SECONDS * RATE, RATE) as crowd:
        with flood(node, "S", rate, shield=shield) as end:
            newcomers(balancer, meanwhile=change)
            end()
        service = node.service()
        results = crowd.results()
    print(f"pins {service['pins_half']} half open, {service['pins_found']} found, {service['pins_talks']} "
          f"talking, of {service['pins_max']}; slots changing {changing}; {events(node)}")
    assert not failed(results), failed(results)
    assert min(changing) > 0 and events(node)["pinned-half"] > 1000
    assert events(node)["pushed-talks"] == 0


def test_ack_flood_while_the_ring_changes(balancer, small):
    """Pins of established flows that have been silent since are replaced, so the transition lasts longer,
    provided that a command checks once per `idle`."""
    held = []
    with crowd_of(balancer, COUNT, SECONDS * RATE, RATE) as crowd:
        small("weight", "web", "10.78.2.1", 4)
        with flood(small, "A") as end:
            for turn in range(10):
                if turn % 4 == 3:
                    small("weight", "web", "10.78.2.3", turn)
                else:
                    small("service", "--refresh")
                held.append(small.service()["hold"])
                time.sleep(FLOOD_S / 10)
            end()
        service = small.service()
        results = crowd.results()
    print(f"hold {held}; pins {service['pins_half']} half open, {service['pins_found']} found, "
          f"{service['pins_talks']} talking, of {service['pins_max']}; {events(small)}")
    assert not failed(results), failed(results)
    assert held[-1] == 16
    assert events(small)["pushed-found"] > 0 and events(small)["pushed-talks"] == 0
    small("service", "--refresh")  # the check: no new pin was replaced since an earlier moment
    time.sleep(IDLE_S + 0.5)
    small("service", "--refresh")
    assert small.service()["hold"] == 1


def slots(node):
    """The words of the ring of the active policy."""
    folder = max(node.bpffs.glob("gen/*"), key=lambda path: int(path.name))
    [row] = json.loads(run(["bpftool", "-j", "map", "dump", "pinned", folder / "rings"]).stdout)
    return [row["value"][at:at + 8] for at in range(0, len(row["value"]), 8)]


def test_no_slot_ends_while_the_time_grows(balancer, small):
    """Slots that are about to expire are extended before all slots get a longer hold. Otherwise they would
    expire, flows would open without a pin, and the slots would change again."""
    small("service", "--refresh")
    small("weight", "web", "10.78.2.1", 4)
    with flood(small, "A") as end:
        time.sleep(IDLE_S - 0.9)
        before = slots(small)
        small("service", "--refresh")
        after = slots(small)
        end()
    assert small.service()["hold"] > 1
    assert sum(was != now for was, now in zip(before, after)) > 1000
