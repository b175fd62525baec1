# SPDX-License-Identifier: GPL-2.0-only
"""weir capture --service: packets to the addresses of a service, also those that are dropped, and none else."""

import json

import pytest

from balancerlab import apply_web, running_balancer
from labnet import run
from test_capture import ended, needs_tshark, started, tshark

pytestmark = needs_tshark
HEADERS = {"ipip": 20, "gue": 28}


@pytest.fixture(scope="module", name="balancer", params=HEADERS)
def shared_lab(request):
    with running_balancer(mode=request.param) as lab:
        lab.mode = request.param
        yield lab


def test_packets_to_a_service(balancer, node, tmp_path):
    apply_web(node, tmp_path, [1, 2, 3])
    path = tmp_path / "web.pcapng"
    route = json.loads(balancer.on("client", ["ip", "-j", "route", "get", balancer.vip4]).stdout)
    client = route[0]["prefsrc"]
    process = started(node, path, "--service", "web")
    assert balancer.answers(balancer.vip4) and balancer.answers(balancer.vip6)
    node.lab.on("client", ["ping", "-c1", "-W1", balancer.vip4], check=False)  # no protocol of the service
    node("block", client, "-q")
    balancer.curl(balancer.vip4, "/name", "--max-time", "1", check=False)
    assert "0 lost" in ended(process)
    found = tshark(path, "frame.comment", "ip.proto", "ipv6.nxt")
    sent = [one for one in found if one[0] == f"pass service, {HEADERS[balancer.mode]} bytes of headers added, share 1 of 1"]
    dropped = [one for one in found if one[0].startswith(f"drop block-from, entry {client}")]
    assert len(sent) > 8 and dropped and len(sent) + len(dropped) == len(found), found

    explained = node.json("explain", "--pcap", path)["packets"]
    verdicts = [(one["verdict"], one["packet"]) for one in explained]
    assert all(f" {balancer.vip4}" in packet or f" {balancer.vip6}" in packet for _, packet in verdicts), verdicts
    node("unblock", client, "-q")
    explained = node.json("explain", "--pcap", path)["packets"]
    assert {one["reason"] for one in explained} == {"service"}, explained

    destinations = node.json("top", "-r", path, "--by", "destination,port")
    assert {one["destination"] for one in destinations["destinations"]} == {balancer.vip4, "fd78:80::/64"}
    assert [one["port"] for one in destinations["ports"]] == ["tcp 80"]
    tuples = run(["capinfos", "-M", path]).stdout
    assert f"Number of packets:   {len(found)}" in tuples


def test_an_unknown_service(node, balancer, tmp_path):
    apply_web(node, tmp_path, [1])
    assert "has no service 'wob'" in node.fails(1, "capture", "-w", tmp_path / "x", "--service", "wob")
