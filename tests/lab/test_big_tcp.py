# SPDX-License-Identifier: GPL-2.0-only
"""BIG TCP in generic mode: packets that the kernel has merged beyond the maximum of a length field."""
import json
import os
import socket
import struct
import subprocess
import time

import pytest

from labnet import run, socket_in

SIZE = 185000
NEAR = {4: "10.77.20.1", 6: "fd77:20::1"}
FAR = {4: "10.77.20.2", 6: "fd77:20::2"}
SECONDS = 1
# Attributes unknown to Debian's ip: IFLA_GSO_IPV4_MAX_SIZE, IFLA_GRO_IPV4_MAX_SIZE (6.3).
IPV4_SIZES = 63, 64
LEAST = 1e9  # bit/s; if the packets are dropped, it is a hundredth of that


def set_ipv4_sizes(netns, device, size):
    """False: this kernel has no BIG TCP for IPv4."""
    index = int(run(["ip", "-n", netns, "-o", "link", "show", "dev", device]).stdout.split(":")[0])
    attributes = b"".join(struct.pack("HHI", 8, kind, size) for kind in IPV4_SIZES)
    message = struct.pack("BxHiII", socket.AF_UNSPEC, 0, index, 0, 0) + attributes
    with socket_in(netns, socket.AF_NETLINK, socket.SOCK_RAW) as netlink:
        # RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK
        netlink.send(struct.pack("IHHII", 16 + len(message), 16, 5, 1, 0) + message)
        return struct.unpack_from("i", netlink.recv(65536), 16)[0] == 0


@pytest.fixture(name="big")
def cable_with_big_tcp(pair):
    """near1 and far1 with BIG TCP, and the families for which the kernel has it."""
    run(["ip", "-n", pair.near_netns, "link", "add", "near1", "type", "veth", "peer", "name", "far1",
         "netns", pair.far_netns])
    families = [6]
    for netns, device, addresses in ((pair.near_netns, "near1", NEAR), (pair.far_netns, "far1", FAR)):
        run(["ip", "-n", netns, "link", "set", "dev", device, "up", "gso_max_size", SIZE, "gro_max_size",
             SIZE])
        run(["ip", "-n", netns, "address", "add", f"{addresses[4]}/24", "dev", device])
        run(["ip", "-n", netns, "address", "add", f"{addresses[6]}/64", "dev", device, "nodad"])
        families += [4] * set_ipv4_sizes(netns, device, SIZE)
    yield set(families)
    pair.link("del", "near1")


def throughput(pair, family):
    """Bits per second that arrive at near from far over one TCP connection."""
    port = str(25300 + family)
    server = subprocess.Popen([*pair.enter(pair.near_netns), "iperf3", "-s", "-1", "-p", port],
                              stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 5
        while port not in pair.near(["ss", "-Hltn"]).stdout:
            assert time.monotonic() < deadline, "iperf3 does not listen"
            time.sleep(0.05)
        done = pair.far(["iperf3", "-J", "-c", NEAR[family], "-p", port, "-t", str(SECONDS)])
        return json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]
    finally:
        server.kill()
        server.wait()


def reasons(weir):
    return {row["reason"]: row for row in weir.json("stats")["counters"] if row["packets"]}


@pytest.mark.parametrize("family", [4, 6])
def test_what_the_kernel_has_merged_passes(pair, weir, big, family):
    if family not in big:
        pytest.skip(f"kernel {os.uname().release} has no BIG TCP for IPv4")
    weir("attach", "near1", "--mode", "generic")
    got = throughput(pair, family)
    found = reasons(weir)
    assert set(found) <= {"default", "not-ip", "neighbour"}, found
    assert got > LEAST, f"{got / 1e9:.3f} Gbit/s"
    assert found["default"]["bytes"] > 65535 * found["default"]["packets"], "nothing was merged"


@pytest.mark.parametrize("family", [4, 6])
def test_rules_see_what_was_merged(pair, weir, big, tmp_path, family):
    """Ports, length and rates of a packet whose length field does not hold its length."""
    if family not in big:
        pytest.skip(f"kernel {os.uname().release} has no BIG TCP for IPv4")
    policy = tmp_path / "big.weir"
    policy.write_text(f"""interface near1 mode generic
        default drop
        pass proto icmp6, icmp
        pass proto tcp from {FAR[family]} to port 25300-25310 length 20-9000
        "large" pass proto tcp from {FAR[family]} to port 25300-25310 length 9001-65535 under 100gbit/s
    """)
    weir("apply", "--force", policy)
    assert throughput(pair, family) > LEAST
    assert set(reasons(weir)) <= {"rule-pass", "neighbour", "essential-arp"}, reasons(weir)
    large = next(rule for rule in weir.json("stats")["rules"] if rule["rule"] == "large")
    assert large["bytes"] > 65535 * large["packets"] > 0


def test_it_is_told(weir, big):
    assert big
    done = weir("attach", "near1", "--mode", "generic")
    assert f"gro_max_size {SIZE}" in done.stderr and "BIG TCP" in done.stderr
    weir("detach")
    assert weir.json("attach", "near1", "--mode", "generic")["interfaces"][0]["big_tcp_bytes"] == SIZE
    note = next(f for f in weir.json("doctor", "near1")["findings"] if "BIG TCP" in f["text"])
    assert note["level"] == "note" and note["mend"].startswith("ip link set dev near1 gro_max_size 65536")
    weir("detach")
    assert "BIG TCP" not in weir("attach", "near1", "--mode", "native").stderr
    assert not [f for f in weir.json("doctor", "near1")["findings"] if "BIG TCP" in f["text"]]
