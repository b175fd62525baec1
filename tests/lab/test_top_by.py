# SPDX-License-Identifier: GPL-2.0-only
"""weir top --by: rates and shares from samples."""

import ctypes
import json
import mmap
import os
import random
import re
import signal
import struct
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from labnet import until

SOURCE, OTHER = "198.51.100.7", "198.51.101.8"
FLOOD = Path(__file__).with_name("flood.py")
libbpf = ctypes.CDLL("libbpf.so.1", use_errno=True)


def program(pair):
    return json.loads(pair.near(["ip", "-j", "link", "show", "near0"]).stdout)[0]["xdp"]["prog"]["id"]


@contextmanager
def flood(pair, frame, rate):
    process = subprocess.Popen(
        ["nsenter", f"--net=/run/netns/{pair.near_netns}", "--", "/usr/bin/python3", "-ES", FLOOD, "frame", "near0",
         str(program(pair)), str(rate), bytes(frame).hex()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.stdin.close()
        process.wait()


def documents(output):
    return [json.loads(line) for line in output.splitlines() if line.startswith("{") and '"end"' not in line]


def row(document, array, key, value):
    return next((one for one in document[array] if one[key] == value), None)


def written(weir):
    """Bytes that the datapath has written to the ring of samples."""
    fd = libbpf.bpf_obj_get(os.fsencode(weir.bpffs / "samples"))
    assert fd >= 0
    try:
        with mmap.mmap(fd, 2 * mmap.PAGESIZE, prot=mmap.PROT_READ) as ring:
            return struct.unpack_from("=Q", ring, mmap.PAGESIZE)[0]
    finally:
        os.close(fd)


def test_every_packet_is_sampled_at_a_low_rate(pair, on):
    """Then rows have no error."""
    process = on.start("-j", "top", "--by", "source,port,length,ttl,destination,flags", "--for", "4s")
    until(lambda: Path("/run/weir", on.name, "samples").exists())
    time.sleep(0.5)
    frames = [pair.udp(SOURCE)] * 40 + [pair.udp(OTHER, payload=b"longer than the others")] * 60
    random.shuffle(frames)
    pair.send_from_far(*frames)
    last = documents(process.communicate(timeout=20)[0])[-1]
    assert last["lost"] == 0 and last["sampled_percent"] == pytest.approx(100)
    first, second = row(last, "sources", "source", SOURCE), row(last, "sources", "source", OTHER)
    assert (first["samples"], second["samples"]) == (40, 60) and first["error_percent"] < 0.1
    assert second["packets_per_s"] == pytest.approx(60e6 / last["span_us"], rel=0.01)
    assert first["share_percent"] * 1.5 == pytest.approx(second["share_percent"], abs=0.01)
    assert row(last, "sources", "source", "198.51.0.0/16")["samples"] == 100
    assert not row(last, "sources", "source", "198.51.100.0/24")
    assert {one["length"] for one in last["lengths"]} >= {"36", "50"}
    assert row(last, "flags", "flags", "(not TCP)")["samples"] >= 100
    assert row(last, "ttls", "ttl", "64")["samples"] >= 100
    assert [one["destination"] for one in last["destinations"]][0] == pair.near4
    assert [one["port"] for one in last["ports"]][0].startswith("udp ")


def test_a_flood_is_named_within_two_seconds(pair, on):
    """1 M packets/s: source, port and length, about 2,000 samples/s, none lost."""
    frame = pair.udp(SOURCE, payload=b"x" * 22)
    frame.getlayer("UDP").dport = 4711
    with flood(pair, frame, 1_000_000):
        time.sleep(1)
        process = on.start("-j", "top", "--by", "source,port,length", "-c", "6")
        found = documents(process.communicate(timeout=30)[0])
    assert found[0]["span_us"] < 2e6
    for one in found[:2]:
        assert one["sources"][0]["source"] == SOURCE and one["sources"][0]["share_percent"] > 99
        assert one["ports"][0]["port"] == "udp 4711" and one["lengths"][0]["length"] == "50"
    last = found[-1]
    assert 200_000 < last["sources"][0]["packets_per_s"] < 1_300_000
    assert last["lost"] == 0 and 1000 < last["samples"] / last["span_us"] * 1e6 < 3000


def test_rates_are_those_of_the_counters(pair, on):
    def passed():
        return sum(int(n) for n in re.findall(r'^weir_packets_total{.*reason="default"} (\d+)$', on("metrics").stdout, re.M))

    with flood(pair, pair.udp(SOURCE), 100_000):
        time.sleep(1.5)
        before, start = passed(), time.monotonic()
        last = documents(on("-j", "top", "--by", "source", "-c", "5", timeout=30).stdout)[-1]
        rate = (passed() - before) / (time.monotonic() - start)
    assert last["sources"][0]["packets_per_s"] == pytest.approx(rate, rel=0.07)  # three deviations of 10,000 samples


def test_a_reader_that_is_killed(pair, on):
    """No record after three seconds; the next reader begins without the old ones."""
    with flood(pair, pair.udp(SOURCE), 50_000):
        process = on.start("-j", "top", "--by", "source")
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        at = written(on)
        time.sleep(0.5)
        assert written(on) > at
        time.sleep(2.7)
        at = written(on)
        time.sleep(0.5)
        assert written(on) == at
        assert on("top", "--by", "source", "--for", "1s").stdout.startswith("SOURCE")
        at = written(on)
        time.sleep(0.3)
        assert written(on) == at


def test_one_reader(on):
    process = on.start("-j", "top", "--by", "source")
    until(lambda: Path("/run/weir", on.name, "samples").exists())
    time.sleep(0.3)
    error = on.fails(3, "top", "--by", "port")
    assert f"already sampled (pid {process.pid})" in error
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=10)[0]
    assert json.loads(output.splitlines()[-1])["end"] is True


@pytest.mark.parametrize("options, wanted", [
    (["--by", "sauce"], "--by 'sauce' is not a key"),
    (["--by", "source,"], "--by '' is not a key"),
    (["--by", "source", "--every", "2s"], "--every cannot be combined with --by"),
    (["--by", "source", "--batch"], "--batch cannot be combined with --by"),
    (["--by", "source", "--for", "10ms"], "--for '10ms' is not a time from 1s to 1d"),
    (["--for", "5s"], "--for requires --by"),
    (["--by", "source", "--top", "0"], "--top '0' is not a number of rows"),
])
def test_errors(on, options, wanted):
    assert wanted in on.fails(1, "top", *options)


def test_too_few(on):
    assert "too few" in on("top", "--by", "port", "--for", "1s").stdout
