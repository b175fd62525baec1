# SPDX-License-Identifier: GPL-2.0-only
"""Frames to other stations: frames that a switch has flooded are neither balanced nor answered."""

import contextlib
import itertools
import os
import socket
import types

import pytest
from scapy.layers.inet import ICMP, IP, TCP
from scapy.layers.l2 import Dot1Q, Ether

from labnet import BUILD, Sniffer, Weir, run, socket_in
from policylab import SOURCE4, Policies, tcp

ABOVE, STRANGER = "02:77:00:00:0a:01", "02:77:00:00:0b:01"
VIP, DEAD = "10.88.9.9", "10.88.0.66"
REJECT = "reject proto tcp to port 23"


@pytest.fixture(name="apply")
def policies(on, tmp_path):
    return Policies(on, tmp_path)


def to_station(mac, frame):
    frame[Ether].dst = mac
    return frame


def answers(pair, *frames):
    """The resets that these frames cause, by source MAC address."""
    with pair.sniff_far() as sniffer:
        pair.send_from_far(*frames)
        got = sniffer.received(lambda data: TCP in Ether(data) and Ether(data)[TCP].sport == 23)
    return [Ether(data).src for data in got]


def foreign(weir):
    return {row["event"]: row["times"] for row in weir.json("stats", "--all")["events"]}["foreign-frame"]


def test_a_reset_is_not_sent_in_a_strangers_name(pair, on, apply):
    """It would teach the switch that the unknown station is on this port."""
    apply(REJECT)
    assert answers(pair, to_station(STRANGER, tcp(23))) == []
    assert foreign(on) == 1
    assert answers(pair, tcp(23)) == [pair.near_mac]
    assert foreign(on) == 1


def test_rules_hold_for_all_frames(pair, on, apply):
    apply(f"drop from {SOURCE4}")
    assert pair.passes(to_station(STRANGER, tcp())) == [False]
    apply("default pass")
    assert pair.passes(to_station(STRANGER, tcp())) == [True]
    on("block", SOURCE4)
    assert pair.passes(to_station(STRANGER, tcp()), to_station(STRANGER, tcp(src="192.0.2.1"))) == [False, True]
    assert foreign(on) == 0


@pytest.mark.parametrize("kind", [["macvlan"], ["vlan", "id", "7"]])
def test_a_device_above_has_frames_of_its_own(pair, on, apply, kind):
    """Until a command has updated the addresses, status reports that services do not see the frames."""
    apply(REJECT)
    made = run(["ip", "-n", pair.near_netns, "link", "add", "above0", "link", "near0", "address", ABOVE,
                "type", *kind], check=False)
    if "Unknown device type" in made.stderr:
        pytest.skip(f"this kernel has no {kind[0]}")
    try:
        assert answers(pair, to_station(ABOVE, tcp(23))) == []
        alarms = on.json("status", status=2)["alarms"]
        assert ["above it" in alarm for alarm in alarms] == [True]
        on("attach", "near0")
        assert on.json("status")["alarms"] == []
        assert answers(pair, to_station(ABOVE, tcp(23)), tcp(23)) == [ABOVE, pair.near_mac]
        assert answers(pair, to_station(STRANGER, tcp(23))) == []
    finally:
        pair.link("del", "above0")
    on("block", "192.0.2.99")  # any command that writes updates them
    assert answers(pair, to_station(ABOVE, tcp(23))) == []
    assert on.json("status")["alarms"] == []


def test_the_device_may_change_its_address(pair, on, apply):
    apply(REJECT)
    pair.link("set", "near0", "address", ABOVE)
    try:
        on("block", "192.0.2.99")
        assert answers(pair, tcp(23)) == []
        assert answers(pair, to_station(ABOVE, tcp(23))) == [ABOVE]
    finally:
        pair.link("set", "near0", "address", pair.near_mac)


def test_a_bridge_port_answers_for_its_bridge(lab, weir_on, tmp_path):
    pair = lab()
    weir = weir_on(pair)
    pair.link("add", "br0", "address", ABOVE, "type", "bridge")
    pair.link("set", "br0", "up")
    pair.link("set", "near0", "master", "br0")
    pair.link("add", "vm0", "link", "br0", "address", "02:77:00:00:0a:02", "type", "macvlan")
    weir("attach", "near0", "--max-entries", "1000")
    Policies(weir, tmp_path)(REJECT)
    own = [pair.near_mac, ABOVE, "02:77:00:00:0a:02"]
    assert answers(pair, *(to_station(mac, tcp(23)) for mac in own)) == own
    assert answers(pair, to_station(STRANGER, tcp(23))) == []
    pair.link("set", "near0", "nomaster")
    weir("unblock", "--all")
    assert answers(pair, *(to_station(mac, tcp(23)) for mac in own)) == [pair.near_mac]


# Two balancers on a switch

numbers = itertools.count(1)


class Hub:
    """A switch that knows no station yet, with hosts on it, each with eth0."""

    def __init__(self, stack, hosts):
        self.stack = stack
        self.prefix = f"t{os.getpid()}-hub{next(numbers)}"
        self.switch = self.netns("switch")
        run(["ip", "-n", self.switch, "link", "add", "br0", "type", "bridge",
             "forward_delay", "0"])
        run(["ip", "-n", self.switch, "link", "set", "br0", "up"])
        for number, host in enumerate(hosts, 1):
            self.join(host, number)

    def netns(self, host):
        name = f"{self.prefix}-{host}"
        run(["ip", "netns", "add", name])
        self.stack.callback(run, ["ip", "netns", "del", name])
        return name

    def name(self, host):
        return f"{self.prefix}-{host}"

    @staticmethod
    def mac(number):
        return f"02:88:00:00:00:{number:02x}"

    def join(self, host, number):
        netns, port = self.netns(host), f"port{number}"
        run(["ip", "-n", self.switch, "link", "add", port, "type", "veth", "peer", "eth0",
             "address", self.mac(number), "netns", netns])
        run(["ip", "-n", self.switch, "link", "set", port, "master", "br0", "up"])
        run(["ip", "-n", self.switch, "link", "set", port, "xdpdrv", "obj", BUILD / "lab" / "pass.bpf.o",
             "sec", "xdp.frags"])  # otherwise veth loses what XDP sends
        run(["ip", "-n", netns, "addr", "add", f"10.88.0.{number}/24", "dev", "eth0"])
        run(["ip", "-n", netns, "link", "set", "eth0", "up"])


@pytest.fixture(name="hub")
def two_balancers(tmp_path):
    """Both have a service whose only backend is a station that has left and is on no port of the switch."""
    with contextlib.ExitStack() as stack:
        hub = Hub(stack, ["client", "one", "two"])
        hub.weirs = []
        policy = tmp_path / "hub.weir"
        policy.write_text(f'interface eth0\nseed "hub"\nreject proto udp to 10.88.9.0/24\n'
                          f"service web {{ vip {VIP}; port 80; mode dr; backend {DEAD} }}\n")
        for host in "one", "two":
            netns = hub.name(host)
            run(["ip", "-n", netns, "neigh", "add", DEAD, "lladdr", "02:88:00:00:00:66", "dev", "eth0",
                 "nud", "permanent"])
            weir = Weir(types.SimpleNamespace(near_netns=netns, near_device="eth0"))
            stack.callback(weir.remove)
            weir("attach", "eth0", "--max-entries", "1000")
            weir("apply", policy)
            hub.weirs.append(weir)
        yield hub


def seen_by_client(hub, *frames):
    """What the switch sends to the client, which is the station of none of these frames."""
    netns = hub.name("client")
    with contextlib.closing(Sniffer(netns, "eth0")) as sniffer:
        send_raw(netns, frames)
        got = sniffer.received(lambda data: IP in Ether(data) and VIP in (Ether(data)[IP].src,
                                                                          Ether(data)[IP].dst))
    return [Ether(data) for data in got]


def send_raw(netns, frames):
    with socket_in(netns, socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
        sock.bind(("eth0", 0))
        for frame in frames:
            sock.send(bytes(frame))


def ask(mac, inner, **fields):
    return Ether(dst=mac, src=Hub.mac(1)) / IP(src="10.88.0.1", dst=VIP, **fields) / inner


def test_one_syn_to_a_dead_backend_stays_one(hub):
    """The switch floods frames for the dead station; neither balancer forwards them again."""
    syn = TCP(sport=4000, dport=80, flags="S")
    for tags in (), (7,):
        frame = ask(Hub.mac(2), syn)
        if tags:
            frame = Ether(dst=frame.dst, src=frame.src) / Dot1Q(vlan=tags[0]) / frame[IP]
        got = seen_by_client(hub, frame)
        assert [(one.dst, one[IP].ttl) for one in got] == [("02:88:00:00:00:66", 63)]
    services = [weir.json("service", "web")["services"][0] for weir in hub.weirs]
    assert [service["packets"] for service in services] == [2, 0]
    # The second one received the client's frames, which the switch flooded too, and those of the first one.
    assert foreign(hub.weirs[0]) == 0 and foreign(hub.weirs[1]) >= 2


def test_a_ping_is_answered_by_its_station_alone(hub):
    got = seen_by_client(hub, ask(Hub.mac(2), ICMP()), ask(Hub.mac(3), ICMP()),
                         ask(STRANGER, ICMP()))
    assert [one.src for one in got] == [Hub.mac(2), Hub.mac(3)]
