# SPDX-License-Identifier: GPL-2.0-only
"""Lists are loaded and synchronized as a whole or not at all, up to the limits of the tables."""

import resource
import sys
import time

import pytest

from blocklab import BLOCKED4, BLOCKED6, MANY, OTHER4, OTHER6, everything, nothing
from labnet import run


def test_sync_makes_the_list_exactly_the_file(pair, on):
    def sync(first, last, *options, **how):
        text = "".join(f"192.0.2.{i}\n" for i in range(first, last))
        return on("block", "-f", "-", "--sync", "feed", *options, input=text, **how)

    on("block", "192.0.2.1")
    assert "list feed (9 entries: 9 added, 0 removed)" in sync(1, 10).stdout
    assert "list feed (7 entries: 2 added, 4 removed)" in sync(5, 12).stdout
    assert nothing(pair, "192.0.2.1", "192.0.2.5", "192.0.2.11") and everything(pair, "192.0.2.2")
    for last in 8, 5:  # less than half, an empty list
        refused = sync(5, last, check=False)
        assert refused.returncode == 3 and "--force" in refused.stderr
    assert len(on.entries()) == 8
    assert "3 entries: 0 added, 4 removed" in sync(5, 8, "--force").stdout
    assert "0 entries: 0 added, 3 removed" in sync(5, 5, "--force").stdout
    assert list(on.entries()) == ["192.0.2.1"]


def test_a_list_as_a_whole(pair, on):
    on("block", "-f", "-", "--sync", "feed", input="192.0.2.1\nmany.lab\n198.51.100.0/24 # all\n")
    assert nothing(pair, "192.0.2.1", *MANY, "198.51.100.77")
    on("unblock", "--sync", "feed")
    assert everything(pair, "192.0.2.1", *MANY, "198.51.100.77")


LIST = """\
# a list
203.0.113.10   # with a comment
198.51.100.0/24 for 1h note "abuse 4711"

2001:db8:113::10 to
192.0.2.5-192.0.2.9 both
many.lab
"""


def untils(weir):
    """When the entries expire, by address and kind."""
    return {(e["address"], e["kind"]): e["holders"][0].get("until") for e in weir.json("list")["entries"]}


def test_lists_from_files_and_standard_input(pair, on, tmp_path):
    file = tmp_path / "list"
    file.write_text(LIST)
    added = on.json("block", "-f", file)["added"]
    assert added == 1 + 1 + 1 + 2 * 3 + 8
    before = untils(on)
    again = on.json("block", "-f", "-", input=LIST)
    # The hour begins anew: in a later second that extends its entry, and no other.
    later = {key for key, until in untils(on).items() if until != before.get(key)}
    assert later <= {("198.51.100.0/24", "block-from")}
    assert again["extended"] == again["changed"] == len(later) and again["unchanged"] == added - len(later)
    assert pair.passes(
        pair.udp(BLOCKED4), pair.udp("198.51.100.200"), pair.udp(BLOCKED6),
        pair.udp(pair.near6, BLOCKED6), pair.udp("192.0.2.9"), pair.udp(pair.near4, "192.0.2.9"),
        pair.udp("2001:db8:100::4"), pair.udp(OTHER4),
    ) == [False, False, True, False, False, False, False, True]
    entry = on.entries()["198.51.100.0/24"]
    assert entry["holders"][0]["note"] == "abuse 4711" and 3500 < entry["left_s"] <= 3600


def test_lists_from_pipes(on, tmp_path):
    argv = " ".join(on.argv("block", "-f"))
    text = f"{argv} <(sleep 0.2; echo {BLOCKED4}; sleep 0.2; echo {OTHER4}) -f <(echo {BLOCKED6})"
    run(["bash", "-c", text])
    assert set(on.entries()) == {BLOCKED4, OTHER4, BLOCKED6}
    run(["mkfifo", tmp_path / "fifo"])
    waiting = on.start("unblock", "-f", tmp_path / "fifo")
    time.sleep(0.2)
    (tmp_path / "fifo").write_text(f"{BLOCKED4}\n{OTHER4}\n")
    assert waiting.wait(timeout=10) == 0 and set(on.entries()) == {BLOCKED6}
    done = run(["bash", "-c", f"{argv} <(true)"], check=False)
    assert done.returncode == 1 and "contains no address, prefix or host name" in done.stderr


def test_bad_lines_are_all_named_and_nothing_is_loaded(pair, on):
    text = f"{BLOCKED4}\n1.2.3\n\nbad bad\n{OTHER4} for years\n2001:db8::/129\n{OTHER6}\n"
    done = on("block", "-f", "-", input=text, check=False)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert [line.split(": ")[1] for line in lines[:-1]] == [f"standard input, line {n}" for n in (2, 4, 5, 6)]
    assert "nothing was changed" in lines[-1]
    assert on.entries() == {}
    assert everything(pair, BLOCKED4, OTHER4, OTHER6)
    errors = on.json("block", "-f", "-", input=text, status=1)["errors"]
    assert [error["line"] for error in errors] == [2, 4, 5, 6]


def test_keep_going_loads_the_good_lines(pair, on):
    text = f"{BLOCKED4}\n1.2.3\n{OTHER6}\n"
    done = on("block", "-f", "-", "--keep-going", input=text, check=False)
    assert done.returncode == 1 and "line 2: '1.2.3'" in done.stderr
    assert set(on.entries()) == {BLOCKED4, OTHER6}
    assert nothing(pair, BLOCKED4, OTHER6)
    on("unblock", "--all")
    document = on.json("block", "-f", "-", "--keep-going", input=text, status=1)
    assert (document["added"], document["bad"]) == (2, 1)


def test_what_list_prints_is_what_block_reads(on):
    on("block", "-f", "-", input=LIST)
    on("allow", OTHER4, "--note", "ours")
    before, plain = essence(on), on("list", "--plain").stdout
    allowed = on("list", "--plain", "--allowed").stdout
    assert allowed == f'{OTHER4} note "ours"\n' and f"{OTHER4}\n" not in plain
    on("unblock", "--all")
    on("unallow", "--all")
    assert essence(on) == []
    on("block", "-f", "-", input=plain)
    on("allow", "-f", "-", input=allowed)
    assert essence(on) == before
    assert on.json("block", "-f", "-", input=plain)["added"] == 0


def essence(weir):
    return [(e["address"], e["kind"], "left_s" in e, e["holders"][0]["note"])
            for e in weir.json("list")["entries"]]


def test_dry_run_changes_nothing(pair, on):
    state = sorted(on.state.rglob("*"))
    document = on.json("block", "--dry-run", BLOCKED4, "many.lab", "--for", "1h")
    assert (document["dry_run"], document["added"]) == (True, 9)
    assert on.entries() == {} and sorted(on.state.rglob("*")) == state
    assert everything(pair, BLOCKED4, *MANY)
    on("block", BLOCKED4)
    assert on.json("unblock", "--dry-run", BLOCKED4)["removed"] == 1
    assert nothing(pair, BLOCKED4)


# Limits, size, load


@pytest.mark.parametrize(
    "form, what",
    [("192.0.2.{}", "IPv4 host"), ("2001:db8::{}", "IPv6 host"),
     ("198.18.{}.0/24", "IPv4 prefix"), ("2001:db8:{}::/48", "IPv6 prefix")],
)
def test_a_full_table_refuses_and_takes_nothing_in(pair, weir, form, what):
    weir("attach", "near0", "--max-entries", "10")
    lines = [form.format(i) + "\n" for i in range(1, 12)]
    line = weir.fails(3, "block", "-f", "-", input=BLOCKED4 + "\n" + "".join(lines))
    assert f"11 {what}" in line or f"12 {what}" in line
    assert "limit of 10" in line and "--max-entries" in line
    assert weir.entries() == {} and everything(pair, BLOCKED4)
    weir("block", "-f", "-", input="".join(lines[:10]))
    weir.fails(3, "block", form.format(99))
    assert len(weir.entries()) == 10
    weir("unblock", "--all")
    weir("block", form.format(99))  # removed entries have made room


@pytest.fixture(scope="module")
def hundred_thousand(tmp_path_factory):
    file = tmp_path_factory.mktemp("lists") / "100k"
    numbers = range(100000)
    file.write_text("".join(f"198.{18 + (i >> 16)}.{i >> 8 & 255}.{i & 255}\n" for i in numbers))
    return file


def children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command, *args):
    """Processor seconds of a command."""
    began = children_s()
    command(*args)
    return children_s() - began


# The same addresses read, sorted, and written out by Python. Prints the processor seconds.
PLAIN = """
import socket, sys, time
began = time.process_time()
addresses = sorted({socket.inet_aton(line.strip()) for line in open(sys.argv[1])})
text = "".join(socket.inet_ntoa(address) + "\\n" for address in addresses)
print(time.process_time() - began)
"""


def test_hundred_thousand_addresses(pair, weir, hundred_thousand, capsys):
    """They cost a few times what a plain loop over them costs, at the same time on the same machine."""
    weir("attach", "near0")
    first, last, beyond = "198.18.0.0", "198.19.134.159", "198.19.134.160"
    block, unblock, plain = [], [], []
    for _ in range(3):
        plain.append(float(run([sys.executable, "-c", PLAIN, hundred_thousand]).stdout))
        block.append(timed(weir, "block", "-f", hundred_thousand))
        assert pair.free(first, last, beyond) == [False, False, True]
        unblock.append(timed(weir, "unblock", "-f", hundred_thousand))
        assert everything(pair, first, last)
    with capsys.disabled():
        print(f" [100,000: block {min(block):.2f} s, unblock {min(unblock):.2f} s, plain {min(plain):.2f} s] ", end="")
    assert min(block) < 4 * min(plain) and min(unblock) < 6 * min(plain)
