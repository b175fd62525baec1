# SPDX-License-Identifier: GPL-2.0-only
"""weir capture: whole frames with what became of them, read by tshark and capinfos."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest
from labnet import until
from test_top_by import flood

SOURCE, OTHER = "198.51.100.7", "198.51.101.8"
POLICY = '"dns" drop proto udp from any port 53\n"seen" count from any\n'

needs_tshark = pytest.mark.skipif(not shutil.which("tshark") or not shutil.which("capinfos"),
                                  reason="tshark is not installed (scripts/setup test)")


def started(weir, path, *args):
    """A capture that runs: its file has been made, and the datapath has its wish."""
    process = weir.start("capture", "-w", path, *args)
    until(lambda: Path(path).exists(), what="the file")
    time.sleep(1)
    return process


def ended(process):
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=20)[0]
    assert process.returncode == 0, output
    return output


def tshark(path, *fields):
    """A tuple for each packet."""
    argv = ["tshark", "-r", path, "-T", "fields", "-E", "separator=|"] + [word for f in fields for word in ("-e", f)]
    lines = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    return [tuple(line.split("|")) for line in lines]


def capinfos(path):
    return subprocess.run(["capinfos", "-M", path], check=True, capture_output=True, text=True, timeout=60).stdout


def packets(pair, n=3, source=SOURCE, payload=b"weir-lab", sport=None):
    frame = pair.udp(source, payload=payload)
    if sport:
        frame.getlayer("UDP").sport = sport
    pair.send_from_far(*[frame] * n)


@needs_tshark
def test_frames_and_comments(pair, on, tmp_path):
    path = tmp_path / "all.pcapng"
    on("block", "198.51.100.0/24", "-q")
    process = started(on, path, "udp")
    packets(pair, 3)
    packets(pair, 2, OTHER, b"x" * 1400)
    assert "5 packets written, 0 lost" in ended(process)
    found = tshark(path, "ip.src", "frame.len", "frame.cap_len", "frame.interface_name", "frame.comment")
    assert found == [(SOURCE, "50", "50", "near0", "drop block-from, entry 198.51.100.0/24, share 1 of 1")] * 3 + \
        [(OTHER, "1442", "1442", "near0", "pass default, share 1 of 1")] * 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    about = capinfos(path)
    assert "Number of packets:   5" in about and "pcapng" in about
    times = [float(one[0]) for one in tshark(path, "frame.time_epoch")]
    assert times == sorted(times) and abs(times[-1] - time.time()) < 60


@needs_tshark
def test_rules_and_reasons(pair, on, apply, tmp_path):
    apply(POLICY)
    rule, reason, drops = (tmp_path / f"{name}.pcapng" for name in ("rule", "reason", "drops"))
    for path, options in ((rule, ["--rule", "dns"]), (drops, ["--drops"]), (reason, ["--reason", "default", "udp"])):
        process = started(on, path, *options)
        packets(pair, 2, sport=53)
        packets(pair, 3, sport=54)
        ended(process)
    comment = 'drop rule-drop, rule "dns", share 1 of 1'
    assert tshark(rule, "udp.srcport", "frame.comment") == [("53", comment)] * 2
    assert tshark(drops, "udp.srcport", "frame.comment") == [("53", comment)] * 2
    assert tshark(reason, "udp.srcport", "frame.comment") == [("54", "pass default, share 1 of 1")] * 3


@needs_tshark
def test_count_snap_and_pipe(pair, on, tmp_path):
    path = tmp_path / "short.pcapng"
    process = started(on, path, "-c", "2", "-s", "40", "-i", "near0", "host", SOURCE)
    packets(pair, 3)
    assert "2 packets written" in process.communicate(timeout=20)[0] and process.returncode == 0
    assert tshark(path, "frame.len", "frame.cap_len") == [("50", "40")] * 2

    with subprocess.Popen(on.argv("capture", "-w", "-", "-c", "2", "udp"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until(lambda: Path("/run/weir", on.name, "captured").exists())
        time.sleep(1)
        packets(pair, 3)
        captured, said = process.communicate(timeout=20)
    assert b"2 packets written, 0 lost" in said
    path.write_bytes(captured)
    assert len(tshark(path, "frame.len")) == 2


@pytest.mark.parametrize("n", [0, 3])
def test_a_pipe_that_is_closed(pair, on, n):
    """Its reader may end while no packet arrives."""
    with subprocess.Popen(on.argv("capture", "-w", "-", "udp"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(28)  # the section
        process.stdout.close()
        packets(pair, n)
        assert process.wait(timeout=20) == 0
        assert b"written" in process.stderr.read()


@needs_tshark
def test_a_ring_of_files(pair, on, tmp_path):
    """Two files of a million bytes, of which the oldest is replaced."""
    path = tmp_path / "ring"
    with flood(pair, pair.udp(SOURCE, payload=b"x" * 1400), 20_000):
        said = on("-j", "capture", "-w", path, "-C", "1", "-W", "2", "-c", "3000", "udp", timeout=60)
    assert json.loads(said.stdout)["files"] > 3
    files = sorted(tmp_path.iterdir())
    assert [one.name for one in files] == ["ring0", "ring1"]
    assert any(1_000_000 <= one.stat().st_size < 1_010_000 for one in files)
    assert all(tshark(one, "frame.comment") for one in files)
    assert "'" + str(path) + "0' exists" in on.fails(3, "capture", "-w", path, "-C", "1", "-W", "2", "-c", "1")


def dropped(weir):
    return sum(int(n) for n in re.findall(r'^weir_packets_total{.*reason="block-from"} (\d+)$', weir("metrics").stdout, re.M))


@needs_tshark
def test_a_flood_is_counted(pair, on, tmp_path):
    """1 M drops/s, or what this machine sends: the command takes a core at most, and each packet is in the file, lost, or left
    out by a share that the comments have."""
    path = tmp_path / "flood.pcapng"
    on("block", SOURCE, "-q")
    before, start = dropped(on), time.monotonic()
    process = started(on, path, "--drops")
    with flood(pair, pair.udp(SOURCE, payload=b"x" * 22), 1_000_000):
        time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    wall_s, cpu_s, counted = time.monotonic() - start, usage.ru_utime + usage.ru_stime, dropped(on) - before
    print(f"{counted / 1.5:.0f} drops/s, {cpu_s:.2f} s of processor time in {wall_s:.2f} s: {said}")
    assert status == 0 and cpu_s < wall_s, said
    written, lost = (int(n.replace(",", "")) for n in re.search(r"([\d,]+) packets written, (\d+) lost", said).groups())
    assert written > 1000
    lines = tshark(path, "frame.comment")
    assert len(lines) == written
    assert all(one[0].startswith(f"drop block-from, entry {SOURCE}, share 1 of ") for one in lines), lines[0]
    found = on.json("top", "-r", path, "--by", "source")
    assert found["lost"] == lost and found["shared"] == sum(not re.search(r"share 1 of 1(\.000)?$", one[0]) for one in lines)
    assert found["sources"][0]["packets"] * (1 + lost / written) == pytest.approx(counted, rel=0.05 + lost / written)
    assert capinfos(path)


def test_rate(pair, on, tmp_path):
    with flood(pair, pair.udp(SOURCE), 50_000):
        time.sleep(0.5)
        found = on.json("capture", "-w", tmp_path / "few.pcapng", "--rate", "100/s", "--for", "3s")
    assert 20 < found["packets"] < 1500 and found["least_share_percent"] < 50, found


def test_one_reader_and_a_killed_one(pair, on, tmp_path):
    process = started(on, tmp_path / "a")
    assert f"already captured (pid {process.pid})" in on.fails(3, "capture", "-w", tmp_path / "b")
    assert not (tmp_path / "b").exists()
    process.kill()
    process.wait()
    packets(pair, 2)
    found = on.json("capture", "-w", tmp_path / "c", "--for", "300ms", "udp")
    assert found["packets"] == 0


def test_existing_files(on, tmp_path):
    path = tmp_path / "old"
    path.write_text("precious")
    path.chmod(0o644)
    assert f"'{path}' exists (--force replaces it)" in on.fails(3, "capture", "-w", path, "--for", "100ms")
    assert path.read_text() == "precious"
    os.chown(path, 65534, 65534)
    on("capture", "-w", path, "--for", "100ms", "--force")
    assert path.stat().st_uid == 0
    assert path.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a" and stat.S_IMODE(path.stat().st_mode) == 0o600
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    on.fails(3, "capture", "-w", link, "--for", "100ms")
    on.fails(3, "capture", "-w", link, "--for", "100ms", "--force")
    assert not (tmp_path / "target").exists()
    on("capture", "-w", "/dev/null", "--for", "100ms")
    assert stat.S_IMODE(os.stat("/dev/null").st_mode) == 0o666


@pytest.mark.parametrize("options, wanted", [
    ([], "missing -w FILE"),
    (["-w", "x", "-W", "2"], "-W requires -C"),
    (["-w", "-", "-C", "2"], "-C cannot be combined with -w -"),
    (["-w", "x", "-C", "0"], "--file-size '0' is not a number of millions of bytes"),
    (["-w", "x", "-c", "0"], "--count '0' is not a count of 1 or more"),
    (["-w", "x", "-s", "300000"], "--snap '300000' is not a number of bytes from 1 to 262144"),
    (["-w", "x", "--rate", "100"], "--rate '100' is not a number of packets per second"),
    (["-w", "x", "--for", "0"], "--for '0' is not a time of at most a week"),
    (["-w", "x", "--drops", "--rule", "a"], "--drops cannot be combined with --rule"),
    (["-w", "x", "--reason", "block-form"], "did you mean 'block-from'?"),
    (["-w", "x", "-i", "lo"], "Weir is not attached to 'lo'"),
    (["-w", "x", "--rule", "a"], "no policy is active"),
    (["-w", "x", "udp", "prot", "53"], "the filter 'udp prot 53' is refused: "),
])
def test_refusals(on, tmp_path, options, wanted):
    options = [str(tmp_path / one) if one == "x" else one for one in options]
    assert wanted in on.fails(1, "capture", *options)
    assert not (tmp_path / "x").exists()


def test_names_of_the_policy(on, apply, tmp_path):
    apply(POLICY)
    assert "has no rule 'a'" in on.fails(1, "capture", "-w", tmp_path / "x", "--rule", "a")
    assert "the rule 'seen' only counts" in on.fails(1, "capture", "-w", tmp_path / "x", "--rule", "seen")
    assert "has no service 'a'" in on.fails(1, "capture", "-w", tmp_path / "x", "--service", "a")


def test_a_terminal_is_refused(on):
    done = subprocess.run(["script", "-qec", " ".join(map(str, on.argv("capture", "-w", "-"))), "/dev/null"], capture_output=True,
                          text=True, timeout=20, check=False)
    assert "packets are not written to a terminal" in done.stdout
