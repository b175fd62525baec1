# SPDX-License-Identifier: GPL-2.0-only
"""weir list: which entries, in which order, in which form; and that a long list is printed in parts."""

import json
import re
import subprocess
import time

import pytest

from labnet import run, until

FEED = "198.51.100.0/28\n198.51.100.77\n2001:db8:100::/64\n"
LONG = 3000  # several blocks of the table


@pytest.fixture(name="full")
def entries_of_all_kinds(on):
    """Entries of several owners, in both directions, allowed and blocked, with an end and without."""
    on("block", "-f", "-", "--sync", "feed", "--origin", "cron", input=FEED)
    on("block", "203.0.113.0/24", "--for", "2h", "--note", "wide")
    on("block", "203.0.113.10", "--origin", "ids", "--for", "10m")
    on("block", "203.0.113.10", "198.51.100.77")
    on("block", "203.0.113.11", "--to", "--for", "1h")
    on("allow", "203.0.113.12")
    return on


def listed(weir, *args, **options):
    """The addresses and directions, in order."""
    return [(e["address"], e["kind"]) for e in weir.json("list", *args, **options)["entries"]]


def addresses(weir, *args):
    return [address for address, _ in listed(weir, *args)]


@pytest.mark.parametrize("args, want", [
    (["203.0.113.10"], ["203.0.113.0/24", "203.0.113.10"]),
    (["203.0.113.99"], ["203.0.113.0/24"]),
    (["203.0.113.0/30"], ["203.0.113.0/24"]),
    (["203.0.113.8/29"], ["203.0.113.0/24", "203.0.113.10", "203.0.113.11", "203.0.113.12"]),
    (["203.0.0.0/16"], ["203.0.113.0/24", "203.0.113.10", "203.0.113.11", "203.0.113.12"]),
    (["198.51.100.70-198.51.100.80"], ["198.51.100.77"]),
    (["2001:db8:100::1"], ["2001:db8:100::/64"]),
    (["2001:db8:100::1", "198.51.100.3"], ["198.51.100.0/28", "2001:db8:100::/64"]),
    (["--origin", "cron"], ["198.51.100.0/28", "198.51.100.77", "2001:db8:100::/64"]),
    (["--list", "feed"], ["198.51.100.0/28", "198.51.100.77", "2001:db8:100::/64"]),
    (["--list", "feed", "--origin", "ids"], []),
    (["--origin", "ids"], ["203.0.113.10"]),
    (["--origin", "unknown"], []),
    (["198.51.100.0/24", "--list", "feed"], ["198.51.100.0/28", "198.51.100.77"]),
    (["203.0.113.0/24", "--allowed"], ["203.0.113.12"]),
    (["--blocked", "--top", "2", "--sort", "left"], ["203.0.113.11", "203.0.113.0/24"]),
    (["::/0"], ["2001:db8:100::/64"]),
])
def test_which_entries(full, args, want):
    assert addresses(full, *args) == want


def test_the_owners_of_an_entry_are_all_shown(full):
    entry, = full.json("list", "--origin", "ids")["entries"]
    assert sorted(holder["origin"] for holder in entry["holders"]) == ["", "ids"]
    assert "left_s" not in entry  # the latest of both: permanent


def test_a_name_lists_what_it_was_blocked_by(on, dns):
    dns("named.test", "203.0.113.50", "2001:db8:113::50")
    on("block", "named.test", "203.0.113.51", "--resolver", on.pair.resolver)
    dns("named.test", "203.0.113.99")  # not asked again
    assert addresses(on, "NAMED.test.") == ["203.0.113.50", "2001:db8:113::50"]
    assert addresses(on, "named.test", "203.0.113.51") == [
        "203.0.113.50", "203.0.113.51", "2001:db8:113::50"]


def test_the_reference_of_the_command_line_beside_that_of_a_name(on):
    """FOR has both, in either order; alone the command's says nothing."""
    on("block", "203.0.113.20")
    assert re.search(r"^203.0.113.20 .* \d+s *$", on("list").stdout, re.MULTILINE)
    on("block", "other.lab")
    line = next(line for line in on("list", "203.0.113.20").stdout.splitlines() if line.startswith("203.0.113.20 "))
    assert "by root (" in line and "other.lab" in line and line.count("; ") == 1, line
    on("unblock", "other.lab", check=False)  # the other reference stays
    assert "by root" not in on("list").stdout


def test_what_without_an_entry(full):
    assert full.fails(1, "list", "192.0.2.1") == f"weir: no entry for '192.0.2.1' in instance {full.name}"
    done = full("list", "192.0.2.1", "203.0.113.99", "unknown.test", check=False)
    assert done.returncode == 1 and "203.0.113.0/24" in done.stdout
    assert "'192.0.2.1'" in done.stderr and "1 more" in done.stderr
    found = full.json("list", "203.0.113.12", "--blocked")
    assert [e["address"] for e in found["entries"]] == ["203.0.113.0/24"]
    missed = full.json("list", "192.0.2.1", status=1)
    assert missed["entries"] == [] and "no entry for" in missed["error"]["text"]
    assert full("list", "--origin", "unknown").stdout == f"no such entries in instance {full.name}\n"


# Order


def test_order_by_packets_and_bytes(pair, on):
    sources = [f"203.0.113.{i}" for i in range(1, 8)]
    on("block", *sources)
    for source, times, size in zip(sources, (3, 1, 0, 5, 3, 0, 2), (1, 400, 0, 1, 200, 0, 100)):
        if times:
            pair.passes(*[pair.udp(source, payload=b"x" * size)] * times)
    packets = ["203.0.113.4", "203.0.113.1", "203.0.113.5", "203.0.113.7", "203.0.113.2",
               "203.0.113.3", "203.0.113.6"]
    assert addresses(on, "--sort", "packets") == packets  # equal ones by address
    for top in range(1, 9):
        assert addresses(on, "--top", str(top)) == packets[:top]
    assert addresses(on, "--sort", "bytes", "--top", "3") == [
        "203.0.113.5", "203.0.113.2", "203.0.113.7"]
    lines = on("list", "--top", "2").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["ADDRESS", "203.0.113.4", "203.0.113.1"]
    assert on("list", "--top", "2", "--plain").stdout == "203.0.113.4\n203.0.113.1\n"


def test_order_by_time(on):
    on("block", "203.0.113.5", "--for", "1h")
    on("block", "203.0.113.4")
    time.sleep(1.1)
    on("block", "203.0.113.9", "--for", "2h")
    on("block", "203.0.113.3", "--for", "1m")
    assert addresses(on, "--sort", "left") == ["203.0.113.3", "203.0.113.5", "203.0.113.9", "203.0.113.4"]
    assert addresses(on, "--sort", "age") == ["203.0.113.3", "203.0.113.9", "203.0.113.4", "203.0.113.5"]


# A long list


@pytest.fixture(name="long")
def long_list(weir):
    weir("attach", "near0")
    lines = [f"198.51.{i >> 8}.{i & 255} for {i + 100}s note \"line {i}\"" for i in range(LONG)]
    weir("block", "-f", "-", input="\n".join(lines) + "\n2001:db8:ffff:ffff:ffff:ffff:ffff:fff1\n")
    return weir


def test_a_long_list_is_complete(long):
    entries = long.json("list")["entries"]
    assert len(entries) == LONG + 1
    pretty = json.loads(long("-p", "list").stdout)
    assert [entry["address"] for entry in pretty["entries"]] == [entry["address"] for entry in entries]
    lines = long("list").stdout.splitlines()
    assert len(lines) == LONG + 2 and lines[0].startswith("ADDRESS")
    assert [line.split()[0] for line in lines[1:]] == [entry["address"] for entry in entries]
    assert len(long("list", "--plain").stdout.splitlines()) == LONG + 1
    newest = json.loads(long("-j", "list", "--sort", "left", "--top", "1000").stdout)["entries"]
    assert [e["address"] for e in newest] == [e["address"] for e in entries[:1000]]


def calls(weir, tmp_path, *args):
    """How many calls for maps and memory a command makes."""
    log = tmp_path / "trace"
    run(["strace", "-f", "-qq", "-o", log, "-e", "trace=bpf,mmap", *weir.argv(*args)])
    return len(log.read_text("ascii").splitlines())


def test_a_long_list_maps_the_counters_once(long, tmp_path):
    """Also after thousands of changes, and while thousands of entries expire."""
    lines = [f"block 203.0.{i >> 8}.{i & 255}\n" for i in range(LONG)]
    lines += [f"unblock 198.51.0.{i}\n" for i in range(255, 0, -1)]
    lines += [f"block 203.1.0.{i}\n" for i in range(255)]
    long("batch", input="".join(lines))
    few = calls(long, tmp_path, "list", "198.51.1.1")
    for args in [], ["--sort", "packets"], ["--top", "2000"], ["--json"]:
        assert calls(long, tmp_path, "list", *args) < few + 100, args
    assert calls(long, tmp_path, "stats") < few + 200
    long("block", "-f", "-", "--for", "1s", input="".join(f"192.0.{i >> 8}.{i & 255}\n" for i in range(LONG)))
    assert calls(long, tmp_path, "list") < few + 100


def test_columns_are_even_within_a_block(long):
    lines = long("list").stdout.splitlines()
    assert len({line.index("block-from") for line in lines[1:500]}) == 1
    assert lines[-1].startswith("2001:db8:ffff:ffff:ffff:ffff:ffff:fff1  block-from  ")


@pytest.mark.parametrize("form", [["list"], ["list", "--plain"], ["-j", "list"], ["list", "--top", "2000"]])
def test_a_reader_that_leaves(long, form):
    """head ends the command quietly, with SIGPIPE or without."""
    for trap in "", "trap '' PIPE; ":
        done = run(["sh", "-c", f"{trap}\"$@\" | head -c 300 | wc -c", "sh", *long.argv(*form)])
        assert done.stdout.strip() == "300"
        assert not trap and not done.stderr or trap and re.fullmatch(
            r"weir: cannot write to standard output\n", done.stderr)


def test_a_full_disk_is_an_error(long):
    with open("/dev/full", "w", encoding="ascii") as full:
        for form in ["list"], ["list", "--plain"], ["-j", "list"]:
            done = subprocess.run(long.argv(*form), stdout=full, stderr=subprocess.PIPE, check=False)
            assert done.returncode == 2 and b"standard output" in done.stderr


# Mistakes


@pytest.mark.parametrize("args, said", [
    (["--top", "0"], "--top '0' is not a number of entries (write 1 or more, for example --top 10)"),
    (["--top", "ten"], "--top 'ten' is not a number of entries"),
    (["--top", "-1"], "--top '-1' is not a number of entries"),
    (["--sort", "packts"], "invalid --sort 'packts': packets, bytes, age or left (did you mean 'packets'?)"),
    (["--sort", "address"], "invalid --sort 'address': packets, bytes, age or left"),
    (["--sort", "age", "--sort", "left"], "duplicate option '--sort'"),
    (["--origin", ""], "--origin is empty"),
    (["203.0.113.300"], "203.0.113.300"),
    (["--sync", "feed"], "unknown option '--sync' (--list NAME shows the entries of a list)"),
    (["--set", "x", "--top", "3"], "--set cannot be combined with --top"),
    (["--set", "x", "203.0.113.1"], "unexpected argument '203.0.113.1'"),
])
def test_mistakes(on, args, said):
    assert said in on.fails(1, "list", *args)


# Sums by owner, in weir stats


def sums(weir, key):
    name = {"origins": lambda row: row["origin"], "lists": lambda row: (row["list"], row["origin"])}[key]
    return {(name(row), row["verb"]): (row["entries"], row["packets"]) for row in weir.json("stats")[key]}


def test_sums_by_owner(pair, full):
    """203.0.113.10 and 198.51.100.77 have two owners: they count for both."""
    for source, times in (("203.0.113.10", 3), ("198.51.100.77", 2), ("198.51.100.1", 4),
                          ("203.0.113.99", 1), ("203.0.113.12", 5)):
        pair.passes(*[pair.udp(source)] * times)
    assert sums(full, "origins") == {
        ("", "block"): (4, 3 + 2 + 1), ("", "allow"): (1, 5), ("cron", "block"): (3, 2 + 4),
        ("ids", "block"): (1, 3)}
    assert sums(full, "lists") == {(("feed", "cron"), "block"): (3, 6)}
    rows = [line.split() for line in full("stats").stdout.splitlines()]
    heads = [n for n, row in enumerate(rows) if row and row[0] in ("EVENT", "ORIGIN", "LIST")]
    assert len(heads) == 3 and not any(rows[n - 1] for n in heads), "a blank line before each table"
    assert ["ids", "block", "1", "3"] == [row for row in rows if row and row[0] == "ids"][0][:4]
    assert [row[:2] for row in rows if row and row[0] == "(none)"] == [["(none)", "block"], ["(none)", "allow"]]
    assert [row for row in rows if row and row[0] == "feed"][0][:4] == ["feed", "cron", "block", "3"]


def test_two_references_of_one_origin_count_once(pair, on, dns):
    dns("both.test", "203.0.113.50")
    on("block", "both.test", "203.0.113.50", "--origin", "ids", "--resolver", pair.resolver)
    pair.passes(pair.udp("203.0.113.50"))
    assert len(on.entries()["203.0.113.50"]["holders"]) == 2
    assert sums(on, "origins") == {("ids", "block"): (1, 1)}


def test_no_entries_no_sums(on):
    found = on.json("stats")
    assert found["origins"] == found["lists"] == []
    assert "ORIGIN" not in on("stats").stdout


def test_plain_can_always_be_read_back(on):
    """What a list refuses without --wide is left out, with a notice, or read with it."""
    on("block", "::1", "127.0.0.2", "0.0.0.0", "--force")
    on("block", "198.0.0.0/7", "3000::/15", "--to")
    on("block", "198.51.100.7", "--for", "10m", "--note", 'said "hi"')
    plain = on("list", "--plain")
    assert plain.stdout.splitlines() == ["198.51.100.7 for 600s note \"said 'hi'\""] or "for 599s" in plain.stdout
    assert "5 entries are left out, which need --wide to be read back: 0.0.0.0, …" in plain.stderr
    before = essence(on)
    for words in ["list", "--plain"], ["list", "--plain", "--wide"]:
        # The list has whole seconds: in a later one the same line lengthens the block.
        until(lambda: "no change" in on("block", "-f", "-", "--dry-run", *words[2:], input=on(*words).stdout).stdout)  # pylint: disable=cell-var-from-loop
    wide = on("list", "--plain", "--wide")
    assert wide.stderr == "" and len(wide.stdout.splitlines()) == 6
    on("unblock", "--all")
    on("block", "-f", "-", "--wide", "--force", input=wide.stdout)
    assert essence(on) == before


def essence(on):
    return {(entry["address"], entry["kind"]) for entry in on.json("list")["entries"]}


def test_an_invalid_line_of_standard_input_is_named(on):
    refused = on("block", "-f", "-", input="192.0.2.1\n::1\n", check=False)
    assert refused.returncode == 1
    assert "standard input, line 2: '::1' is loopback (--wide allows it)" in refused.stderr
