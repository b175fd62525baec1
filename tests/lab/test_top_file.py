# SPDX-License-Identifier: GPL-2.0-only
"""weir top -r: the tables of weir top --by, from capture files of weir capture and of others."""

import json
import re
import subprocess

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.utils import wrpcap

import mmdb
from labnet import run
from test_capture import OTHER, SOURCE, ended, needs_tshark, packets, started
from test_top_by import flood, row


@pytest.fixture(name="file")
def capture_of_others(tmp_path):
    """Ten packets in two seconds."""
    path = tmp_path / "others.pcap"
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    frames = [ether / IP(src=SOURCE, dst="192.0.2.1", ttl=57) / UDP(sport=1, dport=53) / (b"x" * 72)] * 6 + \
        [ether / IP(src=OTHER, dst="192.0.2.2") / TCP(sport=2, dport=443, flags="SA")] * 3 + [ether / ARP()]
    for n, frame in enumerate(frames):
        frames[n] = frame.copy()
        frames[n].time = 1790000000 + n * 2 / 9
    wrpcap(str(path), frames)
    return path


def test_a_file_of_another_program(weir, file):
    found = weir.json("top", "-r", file, "--by", "source,destination,port,length,ttl,flags")
    assert found["samples"] == 10 and found["span_us"] == 2_000_000 and found["lost"] == found["shared"] == 0
    assert found["from"] == "2026-09-21T14:13:20+00:00"
    first = row(found, "sources", "source", SOURCE)
    assert (first["packets"], first["bytes"], first["packets_per_s"], first["share_percent"], first["error_percent"]) == (6, 600, 3, 60, 0)
    assert row(found, "sources", "source", OTHER)["packets"] == 3 and row(found, "sources", "source", "(not IP)")["packets"] == 1
    assert row(found, "sources", "source", "198.51.0.0/16")["packets"] == 9
    assert [one["port"] for one in found["ports"]] == ["udp 53", "tcp 443", "(not IP)"]
    assert row(found, "flags", "flags", "syn,ack")["packets"] == 3 and row(found, "ttls", "ttl", "57")["packets"] == 6


def test_the_table(weir, file):
    """Sources, destinations and ports if no key is given; the file needs neither an instance nor privileges."""
    said = weir("top", "-r", file, "--top", "1").stdout
    assert re.search(r"^SOURCE +PACKETS +BYTES +PACKETS/S +BYTES/S +SHARE$", said, re.M), said
    assert re.search(r"^udp 53 +6 +600 +3 +300 +60.0 % ±0.0$", said, re.M), said
    assert said.count("%") == 3


def test_one_packet_has_no_rate(weir, tmp_path):
    path = tmp_path / "one.pcap"
    wrpcap(str(path), [Ether() / IP(src=SOURCE) / UDP()])
    found = weir.json("top", "-r", path, "--by", "source")["sources"][0]
    assert found["packets"] == 1 and "packets_per_s" not in found
    wrpcap(str(path), [])
    empty = weir.json("top", "-r", path, "--by", "source")
    assert empty["samples"] == 0 and empty["from"] is None and empty["sources"] == []
    assert weir("top", "-r", path).stdout == f"'{path}' contains no packet\n"


def test_countries_and_networks(weir, file, tmp_path):
    (tmp_path / "geo").mkdir()
    (tmp_path / "geo" / "country.mmdb").write_bytes(mmdb.build({"198.51.100.0/24": "country DE", "2001:db8::/32": "country FR"}))
    (tmp_path / "geo" / "asn.mmdb").write_bytes(mmdb.build({"198.51.101.0/24": "asn 64500"}))
    found = weir.json("--geo", tmp_path / "geo", "top", "-r", file, "--by", "country,asn")
    assert {one["country"]: one["packets"] for one in found["countries"]} == {"DE": 6, "(unknown)": 3, "(not IP)": 1}
    assert {one["asn"]: one["packets"] for one in found["asns"]} == {"(unknown)": 6, "64500": 3, "(not IP)": 1}
    assert "no database of countries" in weir.fails(1, "--geo", tmp_path, "top", "-r", file, "--by", "country")


@needs_tshark
def test_a_file_of_weir_capture(pair, on, tmp_path):
    """Read by top and explained: on the interface of the capture, with the verdict of its comments."""
    path = tmp_path / "all.pcapng"
    on("block", "198.51.100.0/24", "-q")
    process = started(on, path, "udp")
    packets(pair, 3)
    packets(pair, 2, OTHER)
    ended(process)
    found = on.json("top", "-r", path)
    assert {one["source"]: one["packets"] for one in found["sources"]} == {SOURCE: 3, OTHER: 2, "198.51.0.0/16": 5}
    explained = on.json("explain", "--pcap", path)["packets"]
    assert [one["verdict"] for one in explained] == ["drop"] * 3 + ["pass"] * 2
    assert [one["reason"] for one in explained] == ["block-from"] * 3 + ["default"] * 2
    assert "captured" not in explained[0]


@needs_tshark
def test_shares_count(pair, on, tmp_path):
    """A file with a share of the packets tells how many there were, and the error follows from the share."""
    path = tmp_path / "few.pcapng"
    on("block", SOURCE, "-q")

    def dropped():
        return sum(int(n) for n in re.findall(r'^weir_packets_total{.*reason="block-from"} (\d+)$', on("metrics").stdout, re.M))

    before = dropped()
    process = started(on, path, "--drops", "--rate", "2000/s")
    with flood(pair, pair.udp(SOURCE), 50_000):
        subprocess.run(["sleep", "2"], check=True)
    said = ended(process)
    found = on.json("top", "-r", path, "--by", "source")
    counted = dropped() - before
    lost = int(re.search(r"(\d+) lost", said)[1])
    assert found["shared"] > 1000 and found["lost"] == lost, (found, said)
    assert found["sources"][0]["packets"] * (1 + lost / found["samples"]) == pytest.approx(counted, rel=0.1)
    assert "captured by a share: the counts are estimated" in on("top", "-r", path, "--by", "source").stdout


@pytest.mark.parametrize("options, wanted", [
    (["--for", "3s"], "--for cannot be combined with --read"),
    (["-c", "1"], "--count cannot be combined with --read"),
    (["--by", "sauce"], "--by 'sauce' is not a key"),
    (["--top", "0"], "--top '0' is not a number of rows"),
])
def test_errors(weir, file, options, wanted):
    assert wanted in weir.fails(1, "top", "-r", file, *options)


def test_files_that_are_none(weir, file, tmp_path):
    path = tmp_path / "bad"
    path.write_bytes(b"a text\n" * 10)
    assert "is not a pcap or pcapng file" in weir.fails(1, "top", "-r", path)
    path.write_bytes(file.read_bytes()[:-3])
    assert "damaged after packet 9" in weir.fails(1, "top", "-r", path)
    assert "it does not exist" in weir.fails(1, "top", "-r", tmp_path / "none")
    assert json.loads(weir("-j", "top", "-r", path, check=False).stdout)["error"]["text"]


@needs_tshark
def test_pcapng_of_others(weir, file, tmp_path):
    path = tmp_path / "others.pcapng"
    run(["editcap", "-F", "pcapng", "-a", "1:share 1 of 9", "-a", "2:drop rule-drop, share 1 of 2", file, path])
    found = weir.json("top", "-r", path, "--by", "source")
    assert found["shared"] == 1 and row(found, "sources", "source", OTHER)["packets"] == 3
