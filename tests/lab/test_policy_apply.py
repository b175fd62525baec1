# SPDX-License-Identifier: GPL-2.0-only
"""Switching policies: what is refused, what is kept, trials, the guard, names and lists."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import time

import pytest

from labnet import Pair, WEIR, read_only, run, until
from policylab import (
    MARK, OTHER4, OTHER6, SOURCE4, SOURCE6, Policies, in_force, logged_in, ping, programs, udp,
)

BLOCKED4, BLOCKED6 = "203.0.113.10", "2001:db8:113::10"  # blocked.lab
NINE, TEN = "drop proto udp to port 9", "drop proto udp to port 10"
PASSES_TEN, PASSES_NINE, PASSES_ALL = [False, True], [True, False], [True, True]


@pytest.fixture(name="apply")
def policies(on, tmp_path):
    return Policies(on, tmp_path)


def ports(pair):
    """Whether packets to port 9 and to port 10 pass, without any Weir process."""
    return pair.passes(udp(9), udp(10))


# A failure changes nothing.


@pytest.mark.parametrize(
    "text, words",
    [
        ("drop frm any", ["lab.weir:2:6: error"]),
        ("drop from @nothing\ndrop from 10.0.0.5/8", ["lab.weir:2:11", "lab.weir:3:11"]),
        (f"{TEN}\nexpect pass udp from 192.0.2.1 to 10.77.0.1 port 10",
         ["lab.weir:3:1: error: expect: got drop", "expected pass", "lab.weir:2"]),
        ("drop from 203.0.113.9 to 10.77.0.1\nexpect drop from 203.0.113.0/28 to 10.77.0.1",
         ["expect: got pass (default"]),
        ('drop from @x\nset x { file "none.txt" }', ["none.txt"]),
        ("expect pass udp from 192.0.2.1 to 10.77.0.1 length 10\n"
         "expect pass 43 from 2001:db8::1 to 2001:db8::2\ndefault pass",
         ["lab.weir:2:1: error: expect: length 10 is too small", "lab.weir:3:1", "extension header"]),
        ('include "none.weir"', ["none.weir"]),
        ("service w {\nvip 192.0.2.1\nproto tcp\nport 80\nmode nat\nbackend 10.0.0.1\n}",
         ["lab.weir:2:9", "mode nat is not supported yet"]),
        ("drop on near1 from any", ["near1"]),
        ("interface nera0\ndefault pass", ["lab.weir:2:11: no interface 'nera0'", "did you mean 'near0'"]),
        ("drop from nowhere.lab", ["lab.weir:2:11: error: 'nowhere.lab'", "NXDOMAIN"]),
    ],
)
def test_a_failure_changes_nothing(pair, on, apply, text, words):
    apply(NINE)
    before = in_force(on)
    printed = apply.fails(1, text, "--resolver", Pair.resolver)
    assert all(word in printed for word in words), printed
    assert in_force(on) == before and ports(pair) == PASSES_TEN


def test_a_failure_on_a_fresh_host_leaves_nothing(pair, weir, tmp_path):
    apply = Policies(weir, tmp_path)
    apply.fails(1, f"{NINE}\nexpect pass udp from {SOURCE4} to {Pair.near4} port 9")
    assert "near9" in apply.fails(1, NINE, devices="near9")
    assert not weir.bpffs.exists() and not pair.xdp_attached()


def test_all_errors_of_a_file_in_one_run(apply):
    printed = apply.fails(1, "drop frm any\ndrop proto tpc\ndrop from 1.2.3.4.5")
    assert [f"lab.weir:{line}:" in printed for line in (2, 3, 4)] == [True] * 3


def test_apply_attaches_what_is_new(pair, weir, tmp_path):
    apply = Policies(weir, tmp_path)
    said = apply(f"{NINE}\nexpect drop udp from {SOURCE4} to {Pair.near4} port 9").stdout
    assert "1 rule, 1 of 1 expectation holds" in said and "attached to near0" in said
    assert ports(pair) == PASSES_TEN
    assert "attached" not in apply(TEN).stdout


def test_optional_interfaces_and_patterns_may_match_nothing(pair, apply):
    done = apply(f"interface wlan9 optional\ninterface tap*\n{NINE}")
    assert "wlan9" in done.stderr and "tap*" in done.stderr
    assert ports(pair) == PASSES_TEN
    apply(TEN, devices="near*")
    assert ports(pair) == PASSES_NINE


def test_dry_run_does_nothing(pair, on, apply):
    apply(NINE)
    before = in_force(on)
    assert "would apply" in apply(TEN, "--dry-run").stdout
    assert in_force(on) == before and ports(pair) == PASSES_TEN


def test_if_revision(pair, on, apply):
    assert "no policy is active" in apply.fails(3, NINE, "--if-revision", "0000")
    apply(NINE)
    revision = on.json("history")["current"]
    assert revision in apply.fails(3, TEN, "--if-revision", "0000x")
    assert ports(pair) == PASSES_TEN
    apply(TEN, "--if-revision", revision)
    assert "another apply came first" in apply.fails(3, NINE, "--if-revision", revision)
    assert ports(pair) == PASSES_NINE


def test_hidden_tags_refuse_a_policy_with_vlan(pair, on, apply):
    """On veth the sender hides the tags: the sender of v1 is v2, that of near0 cannot be seen."""
    pair.link("add", "v1", "type", "veth", "peer", "v2")
    try:
        printed = apply.fails(3, "drop vlan 7", devices="near0, v1")
        assert "'v1'" in printed and "ethtool -K v2 txvlan off" in printed
        apply("drop port 7", devices="near0, v1")
        apply("drop vlan 7", "--force", devices="near0, v1")
        pair.near(["ethtool", "-K", "v2", "txvlan", "off"])
        printed = apply("drop vlan 7", devices="near0, v1").stderr
        assert "'near0' shows VLAN tags only after" in printed and "v1" not in printed
    finally:
        on("detach", "v1", "--force", check=False)
        pair.link("del", "v1")


def test_the_text_of_one_file_as_the_text_of_another(pair, on, tmp_path):
    """--as: what the policy names lies beside the file that it will be, and the next apply of this one changes nothing."""
    staged, target = tmp_path / "new", tmp_path / "etc" / "edge.weir"
    target.parent.mkdir()
    (target.parent / "hosts.txt").write_text(f"{SOURCE4}\n")
    staged.write_text('interface near0\nset hosts { file "hosts.txt" }\ndrop from @hosts\n')
    assert f"applied {target}" in on("apply", staged, "--as", target).stdout
    assert pair.passes(udp(9)) == [False]
    assert on.json("status")["path"] == str(target) and not target.exists()
    target.write_text(staged.read_text())
    assert not on.json("apply", target)["changed"]
    assert not on.json("apply", staged, "--as", target)["changed"]
    staged.write_text("interface near0\nnonsense\n")
    refused = on("apply", staged, "--as", target, check=False)
    assert refused.returncode == 1 and f"{target}:2:" in refused.stderr
    for wrong in (["apply", staged, "--as", "-"], ["apply", staged, "--as="], ["apply", "--again", "--as", target],
                  ["apply", staged, "--as", "http://192.0.2.1/edge.weir"]):
        refused = on(*wrong, check=False)
        assert refused.returncode == 1 and "--as" in refused.stderr
    assert on.json("apply", target)["changed"] is False


def test_a_path_is_as_long_as_its_record(on, tmp_path):
    """The rules of a policy are compiled again from the path of its record, so all of that must be there."""
    staged = tmp_path / "new"
    staged.write_text('interface near0\n"ten" drop proto udp to any port 10\n')
    at_most = "/" + "x" * 254
    on("apply", staged, "--as", at_most)
    assert on.json("status")["path"] == at_most and "ten" in on("stats").stdout
    refused = on("apply", staged, "--as", at_most + "x", check=False)
    assert refused.returncode == 1 and "at most 255 bytes" in refused.stderr
    assert on.json("status")["path"] == at_most


# History.


def test_history_keeps_ten_and_rollback_applies_any_of_them(pair, on, apply):
    for number in range(12):
        apply(f"{NINE if number % 2 else TEN}\n# {number}", "--note", f"number {number}")
    kept = on.json("history")["revisions"]
    assert [one["note"] for one in kept] == [f"number {number}" for number in range(11, 1, -1)]
    assert ports(pair) == PASSES_TEN
    old = kept[-1]["revision"]
    on("rollback", old)
    assert ports(pair) == PASSES_NINE and on("show").stdout.endswith("# 2\n")
    assert on("show", kept[0]["revision"]).stdout.endswith("# 11\n")
    assert on.json("history")["current"] == on.json("history")["revisions"][0]["revision"] != old
    assert "0000x" in on.fails(1, "rollback", "0000x")


def test_rollback_goes_to_the_one_before(pair, on, apply):
    apply(NINE)
    apply(TEN)
    on("rollback")
    assert ports(pair) == PASSES_TEN and NINE in on("show").stdout


def test_a_rolled_back_policy_can_be_explained_and_restored(pair, on, apply):
    apply(NINE)
    apply(TEN)
    on("rollback")
    history = on.json("history")["revisions"]
    assert history[0]["path"] == history[1]["path"]  # the name of its file, not that of an older revision
    assert on.json("stats")["rules"]
    on("detach")
    assert ports(pair) == PASSES_ALL
    on("attach", "near0")
    assert ports(pair) == PASSES_TEN


def test_volatile_is_not_accepted(pair, on, apply):
    apply(NINE)
    before = on.json("history")
    apply(TEN, "--volatile")
    assert ports(pair) == PASSES_NINE
    assert on.json("history") == before and NINE in on("show").stdout


def test_rollback_needs_neither_the_file_nor_its_lists(pair, on, apply):
    (apply.folder / "bad.txt").write_text(f"{SOURCE4}\n{SOURCE6}\n")
    apply('drop from @bad\nset bad { file "bad.txt" }')
    apply(NINE)
    (apply.folder / "bad.txt").unlink()
    on("rollback")
    assert pair.free(SOURCE4, SOURCE6, OTHER4, OTHER6) == [False, False, True, True]


def test_diff(on, apply):
    (apply.folder / "bad.txt").write_text(f"{SOURCE4}\n")
    apply('drop from @bad\nset bad { file "bad.txt" }')
    assert on("diff", apply.path).returncode == 0
    (apply.folder / "bad.txt").write_text(f"{SOURCE4}\n{SOURCE6}\n")
    done = on("diff", apply.path, check=False)
    assert done.returncode == 3 and f"+{SOURCE6}" in done.stdout
    assert "differs from revision" in on.json("diff", apply.path, status=3)["error"]["text"]


def test_diff_says_what_is_not_in_force_here(on, apply):
    """The accepted policy and the policy that packets meet can differ."""
    def what():
        return [(one["what"], one["name"]) for one in on.json("diff", apply.path, status=3)["differences"]]

    apply(NINE)
    assert on.json("diff", apply.path)["differences"] == []
    accepted = on.json("history")["current"]
    apply(TEN, "--volatile")
    apply.write(NINE)
    in_force = on.json("status")["revision"]
    assert in_force != accepted and what() == [("in-force", f"revision {in_force} is")]
    assert on.json("diff", apply.path, "--revision", accepted)["differences"] == []
    on("apply", apply.path)
    apply(TEN, "--confirm=60s")
    apply.write(NINE)
    assert [("trial" in name) for _, name in what()] == [True]
    on("rollback")
    assert on("diff", apply.path).returncode == 0
    on("detach")
    assert what() == [("in-force", f"instance '{on.name}' is not attached to any interface")]


def test_a_policy_without_an_interface_says_that_no_packet_meets_it(weir, tmp_path):
    path = tmp_path / "lab.weir"
    path.write_text(NINE + "\n")
    for _ in range(2):  # first new, then unchanged
        assert "no interface is attached: no packet meets the policy" in weir("apply", path).stderr
    assert weir.json("diff", path, status=3)["differences"][0]["what"] == "in-force"
    weir("attach", "near0")
    assert weir("apply", path).stderr == "" and weir("diff", path).returncode == 0


# The same policy again.


def lasting(on):
    """in_force(), without objects of the previous policy in bpffs and records that are not accepted."""
    shown, status, running, _, state, rows, history = in_force(on)
    state = {path: text for path, text in state.items() if ".new/" not in path}
    return shown, status, running, state, rows, history


def same(on, apply, *options):
    """An apply that must not change anything, by its message and by everything visible."""
    before = lasting(on)
    dry = on.json("apply", apply.path, "--dry-run", *options)
    assert (dry["changed"], dry["dry_run"]) == (False, True)
    done = on.json("apply", apply.path, *options)
    assert (done["changed"], done["attached"], done["detached"]) == (False, [], [])
    assert done["revision"] == before[1]["revision"] and done["trial_ms"] == 0
    assert on("apply", apply.path, *options).stdout.startswith(f"unchanged: {apply.path} is active, ")
    assert lasting(on) == before


def changes(on, apply, *options, revision_stays=False):
    dry = on.json("apply", apply.path, "--dry-run", *options)
    revision = on.json("status")["revision"]
    done = on.json("apply", apply.path, *options)
    assert dry["changed"] and done["changed"] and (done["revision"] == revision) == revision_stays


def test_options_that_say_nothing_of_a_set(on, apply):
    """No option is ignored silently: --dry-run together with --set would add the address."""
    def seen():
        return [one["address"] for one in on.json("list", "--set", "seen")["addresses"]]

    apply("set seen dynamic\ndrop from @seen")
    on("block", "--set", "seen", SOURCE4, "--for", "1h", "--force")
    for words in ["--dry-run"], ["--note", "x"], ["--origin", "ids"], ["--to"], ["-i", "near0"], ["--volatile"]:
        assert "--set excludes --" in on.fails(1, "block", "--set", "seen", "192.0.2.99", *words)
    for words in ["--dry-run"], ["--origin", "ids"], ["--all"]:
        assert "--set excludes --" in on.fails(1, "unblock", "--set", "seen", SOURCE4, *words)
    assert seen() == [SOURCE4]
    on("unblock", "--set", "seen", SOURCE4)
    assert seen() == []


def test_times_of_lines_for_a_set(on, apply, tmp_path):
    """A line's time counts; what a set cannot have is refused with its line, and nothing is added."""
    apply("set seen dynamic expire 2h\ndrop from @seen")
    path = tmp_path / "list"
    path.write_text("192.0.2.1\n192.0.2.2 for 10m\n192.0.2.3 for 10m\n192.0.2.4 for 1d\n")

    def left():
        return {one["address"]: one["left_s"] for one in on.json("list", "--set", "seen")["addresses"]}

    on("block", "--set", "seen", "-f", path)
    for address, seconds in ("192.0.2.1", 7200), ("192.0.2.2", 600), ("192.0.2.3", 600), ("192.0.2.4", 86400):
        assert seconds - 10 <= left()[address] <= seconds
    on("block", "--set", "seen", "-f", path, "--for", "1h")  # for the lines that say nothing
    assert 3590 <= left()["192.0.2.1"] <= 3600 and left()["192.0.2.2"] <= 600
    for words, what in ('note "x"', "note"), ("to", "direction"), ("both", "direction"):
        path.write_text(f"192.0.2.8\n192.0.2.9 {words}\n")
        assert f"line 2: an address of a set has no {what}" in on.fails(1, "block", "--set", "seen", "-f", path)
        assert "192.0.2.8" not in left()
    path.write_text('192.0.2.2 for 1h note "x"\n')
    on("unblock", "--set", "seen", "-f", path)  # reads the addresses only
    assert "192.0.2.2" not in left()


def test_apply_of_what_is_in_force_starts_no_trial(on, apply):
    apply("default pass")
    done = on("apply", apply.path, "--confirm=30s")
    assert done.returncode == 0 and done.stdout.startswith("unchanged: ") and done.stdout.endswith("; no trial was started\n")
    assert on.json("apply", apply.path, "--confirm=30s")["trial_ms"] == 0 and on.json("status")["trial_ms_left"] == 0
    assert "no trial" in on.fails(3, "confirm")


def test_the_same_file_by_another_path_changes_nothing(on, apply, monkeypatch):
    """Nor do the lists and includes beside it; one of another folder does."""
    (apply.folder / "bad.txt").write_text(f"{SOURCE4}\n")
    (apply.folder / "more.weir").write_text("drop proto udp to port 11\n")
    apply('include "more.weir"\nset bad { file "bad.txt" }\ndrop from @bad')
    apply.folder.joinpath("link").symlink_to(".")
    monkeypatch.chdir(apply.folder)
    for path in "lab.weir", "./lab.weir", apply.folder / "link/lab.weir", "link/link/lab.weir":
        assert not on.json("apply", path)["changed"], path
    (apply.folder / "other").mkdir()
    for name, text in ("lab.weir", None), ("more.weir", None), ("bad.txt", "192.0.2.1\n"):
        (apply.folder / "other" / name).write_text(text or (apply.folder / name).read_text())
    assert on.json("apply", "other/lab.weir")["changed"]


def test_apply_of_what_is_in_force_changes_nothing(pair, on, apply, dns):
    (apply.folder / "bad.txt").write_text(f"{SOURCE4}\n")
    (apply.folder / "more.weir").write_text("drop proto udp to port 11\n")
    dns("blocked.lab", BLOCKED4, BLOCKED6)
    apply("""include "more.weir"
        define friends = self
        set bad { file "bad.txt" }
        set seen dynamic max 1k expire 1h
        "bad" drop from @bad
        "slow" drop proto udp to port 9 over 1/min burst 1
        "note" count proto udp to port 7 add source @seen
        drop from blocked.lab
        pass from $friends""", "--resolver", Pair.resolver)
    resolver = "--resolver", Pair.resolver
    assert pair.passes(udp(7, OTHER4), udp(9, OTHER4), udp(9, OTHER4, size=9)) == [True, True, False]
    seen = [one["address"] for one in on.json("list", "--set", "seen")["addresses"]]
    assert seen == [OTHER4]
    same(on, apply, *resolver)
    same(on, apply, *resolver, "--confirm=60s")
    same(on, apply, *resolver, "--volatile", "--note", "once more")
    assert pair.passes(udp(9, OTHER4)) == [False]  # the bucket of its rate is unchanged
    assert [one["address"] for one in on.json("list", "--set", "seen")["addresses"]] == seen
    changes(on, apply, *resolver, "--force", revision_stays=True)
    assert pair.passes(udp(9, OTHER4)) == [False]  # nor is it by another generation
    for change in (lambda: (apply.folder / "bad.txt").write_text(f"{SOURCE6}\n"),
                   lambda: (apply.folder / "more.weir").write_text("drop proto udp to port 12\n"),
                   lambda: dns("blocked.lab", BLOCKED4),
                   lambda: pair.near(["ip", "addr", "add", "192.0.2.77/32", "dev", "near0"])):
        change()
        changes(on, apply, *resolver)
        same(on, apply, *resolver)
    pair.near(["ip", "addr", "del", "192.0.2.77/32", "dev", "near0"])
    changes(on, apply, *resolver)


def test_only_what_is_whole_counts_as_in_force(pair, on, apply):
    """Other text, volatile, on trial, after a trial, after a rollback, after a new attach."""
    apply(NINE)
    apply(TEN, "--volatile")
    apply.write(NINE)
    changes(on, apply)
    apply(TEN, "--volatile")
    changes(on, apply)  # not accepted yet
    same(on, apply)
    apply(NINE, "--confirm=60s")
    assert "trial" in on.fails(3, "apply", apply.path)
    on("confirm")
    same(on, apply)
    on("detach")
    assert on.json("apply", apply.path)["attached"] == ["near0"]
    same(on, apply)
    assert ports(pair) == PASSES_TEN


def test_an_interface_that_lost_its_program_gets_it_again(pair, on, apply):
    """"Unchanged" refers to the active policy: without the program, no policy is active."""
    apply(NINE)
    revision = on.json("history")["current"]
    on.cut()
    assert not pair.xdp_attached() and ports(pair) == PASSES_ALL
    dry = on.json("apply", apply.path, "--dry-run")
    assert dry["changed"] and dry["attached"] == ["near0"] and not pair.xdp_attached()
    assert "would attach to near0" in on("apply", apply.path, "--dry-run").stdout
    done = on.json("apply", apply.path)
    assert done["changed"] and done["attached"] == ["near0"] and done["revision"] == revision
    assert ports(pair) == PASSES_TEN


def test_a_killed_apply_is_not_taken_for_whole(on, apply):
    """Killed between the switch and the end of the command: the next apply of the same policy repeats
    everything."""
    for text in TEN, NINE:  # twice, so that as many objects must be removed as later
        apply(text)
    apply.write(TEN)
    log = apply.folder / "calls"
    trace = ["strace", "-f", "-qq", "-o", log, "-e", "trace=bpf"]
    run([*trace, *on.argv("apply", apply.path)])
    calls = [line for line in log.read_text().splitlines() if "bpf(" in line]
    writes = [n for n, line in enumerate(calls, 1) if "BPF_MAP_UPDATE_ELEM" in line]
    seen = set()
    for count in writes[-16:]:
        apply(NINE)
        before = programs(on)[0]
        apply.write(TEN)
        inject = f"inject=bpf:signal=KILL:when={count}"
        died = run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", inject, *on.argv("apply", apply.path)],
                   check=False)
        assert died.returncode == -9
        switched = programs(on)[0] != before
        seen.add((switched, on.json("apply", apply.path)["changed"]))
        same(on, apply)
    assert (True, True) in seen and (False, False) not in seen, seen


def calls_of(on, apply, *args):
    log = apply.folder / "calls"
    strace = ["strace", "-f", "-qq", "-o", log, "-e", "trace=bpf"]

    def traced(*inject):
        done = run([*strace, *inject, *on.argv(*args)], check=False)
        return done, [line for line in log.read_text().splitlines() if "bpf(" in line]

    return traced


def refused(on, apply, program, *args, which=0, before=lambda: None):
    """The finished command, the `which`-th load of whose program the kernel refuses: libbpf asks twice, the second time for
    the reason. before: what makes the command do the same once more."""
    traced = calls_of(on, apply, *args)
    _, calls = traced()
    number = [n for n, line in enumerate(calls, 1) if f'prog_name="{program}"' in line][which]
    before()
    done, calls = traced("-e", f"inject=bpf:error=E2BIG:when={number}..{number + 1}")
    lines = [line for line in calls if "(INJECTED)" in line]
    assert len(lines) == 2 and all(f'prog_name="{program}"' in line for line in lines), lines
    return done


def refused_apply(on, apply, program, which=0):
    def before():
        apply(NINE)
        apply.write(TEN)

    return refused(on, apply, program, "apply", apply.path, which=which, before=before)


def test_a_kernel_that_refuses_the_short_program(pair, on, apply):
    """The general one takes every packet, and the operator is told."""
    for text in TEN, NINE:
        apply(text)
    apply.write(TEN)
    done = refused_apply(on, apply, "weir_short")
    assert done.returncode == 0 and "the kernel refuses the short program of this policy: every packet " \
        "takes the general program, which is slower: E2BIG" in done.stderr, done.stderr
    assert ports(pair) == PASSES_NINE
    assert on.json("status")["short_refused"] and "refuses the short program" in on("status").stdout
    assert on.json("explain", "203.0.113.1")
    apply(NINE)
    assert ports(pair) == PASSES_TEN and not on.json("status")["short_refused"]
    assert "short program" not in on("status").stdout


AS_A_TEST = "the kernel refuses the short program as a test program: the general program answers for it: E2BIG"


def test_a_kernel_that_refuses_the_short_program_as_a_test_program(pair, on, apply):
    """Packets take it; its answers come from the general one, and the operator is told."""
    for text in TEN, NINE:
        apply(text)
    apply.write(f"{TEN}\nexpect drop udp from 192.0.2.1 to 10.77.0.1 port 10")
    done = refused_apply(on, apply, "weir_short", which=1)
    assert done.returncode == 0 and AS_A_TEST in done.stderr and "every packet" not in done.stderr, done.stderr
    assert ports(pair) == PASSES_NINE and not on.json("status")["short_refused"]
    asked = refused(on, apply, "weir_short", "explain", *"udp from 192.0.2.1 to 10.77.0.1 port 10".split())
    assert asked.returncode == 0 and "drop" in asked.stdout and AS_A_TEST in asked.stderr, asked.stderr


def test_a_kernel_that_refuses_the_short_program_of_a_restored_policy(on, apply):
    apply(NINE)
    on("detach")
    done = refused(on, apply, "weir_short", "attach", "near0", which=1, before=lambda: on("detach"))
    assert done.returncode == 0 and "the kernel refuses the short program of this policy" in done.stderr, done.stderr


def test_a_kernel_that_refuses_the_general_program(pair, on, apply):
    for text in TEN, NINE:
        apply(text)
    apply.write(TEN)
    done = refused_apply(on, apply, "weir_policy")
    assert done.returncode == 2 and "the kernel refuses the policy program (E2BIG)" in done.stderr, done.stderr
    assert ports(pair) == PASSES_TEN and not on.json("status")["short_refused"]


def test_an_unchanged_apply_clears_away_what_a_killed_one_left(on, apply):
    apply(NINE)
    left = on.state / "accepted" / "0abc.new"
    left.mkdir()
    same(on, apply, "--dry-run")
    assert left.exists()
    assert not on.json("apply", apply.path)["changed"] and not left.exists()


def test_rollback_goes_past_what_was_applied_twice(pair, on, apply):
    apply(NINE)
    apply(TEN)
    apply(TEN)
    assert len(on.json("history")["revisions"]) == 2
    on("rollback")
    assert ports(pair) == PASSES_TEN and NINE in on("show").stdout
    on("rollback")
    assert ports(pair) == PASSES_NINE


def test_rollback_goes_past_what_was_forced(pair, on, apply):
    """Also past revisions of the same files that differ in a note."""
    apply(NINE, "--force")
    apply(TEN, "--force")
    first = on.json("history")
    apply(TEN, "--force", "--note", "once more")
    assert on.json("history") == first
    on("apply", apply.path, "--force", "--confirm=60s")
    on("confirm")
    assert len(on.json("history")["revisions"]) == 3
    on("rollback")
    assert ports(pair) == PASSES_TEN and NINE in on("show").stdout
    on("rollback")
    assert ports(pair) == PASSES_NINE


def test_rollback_without_another_text(on, apply):
    apply(NINE)
    assert "no earlier revision exists" in on.fails(3, "rollback")
    on("apply", apply.path, "--force", "--confirm=60s")
    on("confirm")
    assert len(on.json("history")["revisions"]) == 2
    before = lasting(on)
    assert "no earlier revision has other files" in on.fails(3, "rollback")
    assert lasting(on) == before


def test_force_switches_under_the_same_revision(pair, on, apply):
    apply(NINE)
    before, revisions = programs(on), on.json("history")
    done = on.json("apply", apply.path, "--force")
    assert done["changed"] and done["revision"] == revisions["current"]
    assert programs(on) != before and on.json("history") == revisions and ports(pair) == PASSES_TEN
    same(on, apply)
    on("detach")
    assert on.json("attach", "near0")["interfaces"] and ports(pair) == PASSES_TEN
    apply(TEN, "--volatile")
    apply(NINE, "--force")  # the accepted text, which is not active
    assert on.json("history")["current"] != revisions["current"] and ports(pair) == PASSES_TEN


def test_a_policy_without_a_rule(on, apply):
    """What is cut off to nothing, and a pipe in which nothing comes; who wants it writes 'default pass'."""
    apply(NINE)
    before = lasting(on)
    for text in "", "version 1\n", "interface near0\nset s { 192.0.2.1 }\nmalformed pass\n":
        apply.path.write_text(text)
        for command in ["apply", apply.path], ["apply", apply.path, "--force"], ["check", apply.path], ["apply", "-"], ["diff", apply.path]:
            done = on(*command, check=False, input=text)
            assert done.returncode == 1 and "error: the policy has no rule, no 'default' and no 'service'" in done.stderr, command
            assert "write 'default pass' if nothing shall be filtered" in done.stderr
    assert lasting(on) == before
    apply("default pass")


def test_unattended(pair, on, apply):
    """What a person applies is not compared."""
    apply("\n".join(f"drop proto udp to port {port}" for port in (9, 11, 12, 13)))
    before = lasting(on)
    apply.write(NINE)
    why = f"lab.weir has 1 rule, the active policy 4: 'weir -n {on.name} apply {apply.path}' applies it"
    for dry in [], ["--dry-run"]:
        assert why in on.fails(3, "apply", apply.path, "--unattended", *dry)
    assert lasting(on) == before
    apply(TEN, "--volatile")
    apply.write(NINE)
    assert "lab.weir has 1 rule, the accepted policy 4" in on.fails(3, "apply", apply.path, "--unattended")
    on("apply", apply.path, "--unattended", "--force")
    apply("\n".join(f"drop proto udp to port {port}" for port in (9, 11, 12, 13)))
    on("apply", apply.write(NINE))
    assert ports(pair) == PASSES_TEN


# Trials.


def wait_until(deadline):
    time.sleep(max(0, deadline - time.monotonic()))


def test_a_trial_takes_itself_back(pair, on, apply):
    apply(NINE)
    before, shown = on.json("history"), on("show").stdout
    said = apply(TEN, "--confirm=3s").stdout
    end = time.monotonic() + 3
    assert "on trial for 3s: 'weir confirm' keeps it" in said
    assert ports(pair) == PASSES_NINE
    assert on.json("history") == before and on("show").stdout == shown  # accepted only by confirm
    wait_until(end - 0.5)
    assert ports(pair) == PASSES_NINE
    wait_until(end + 0.1)
    assert ports(pair) == PASSES_TEN
    assert "trial has expired" in on.fails(3, "confirm")
    assert "no trial" in on.fails(3, "confirm")
    assert ports(pair) == PASSES_TEN and on.json("history") == before


def test_confirm_keeps_it(pair, on, apply):
    apply(NINE)
    apply(TEN, "--confirm=1s")
    on("confirm")
    time.sleep(1.2)
    assert ports(pair) == PASSES_NINE and TEN in on("show").stdout
    assert len(on.json("history")["revisions"]) == 2


def test_one_trial_at_a_time(pair, on, apply):
    apply(NINE)
    apply(TEN, "--confirm=60s")
    there = programs(on)
    printed = apply.fails(3, "drop from any")
    assert "trial by root (" in printed and "ends in" in printed and "weir confirm" in printed
    assert programs(on) == there and ports(pair) == PASSES_NINE
    on("confirm")
    apply(NINE)
    assert ports(pair) == PASSES_TEN


def test_rollback_ends_a_trial(pair, on, apply):
    apply(NINE)
    apply(TEN, "--confirm=60s")
    assert "ended the trial" in on("rollback").stdout
    assert ports(pair) == PASSES_TEN
    assert "no trial" in on.fails(3, "confirm")
    apply(TEN)
    assert ports(pair) == PASSES_NINE
    on("rollback")  # to the accepted policy, not to the one on trial
    assert ports(pair) == PASSES_TEN


def test_a_rollback_may_be_a_trial(pair, on, apply):
    apply(NINE)
    apply(TEN)
    on("rollback", "--confirm=1s")
    assert ports(pair) == PASSES_TEN
    time.sleep(1.2)
    assert ports(pair) == PASSES_NINE


def test_the_first_policy_on_trial(pair, weir, tmp_path):
    Policies(weir, tmp_path)(NINE, "--confirm=1s")
    assert ports(pair) == PASSES_TEN
    time.sleep(1.2)
    assert ports(pair) == PASSES_ALL


def weir_processes(name):
    """Ids of all processes of an instance."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if name.encode() in file.read().split(b"\0"):
                yield int(pid)


def test_a_trial_ends_though_everything_is_killed(pair, on, apply):
    apply(NINE)
    running = [on.start("watch"), on.start("block", "--live", BLOCKED4)]
    time.sleep(0.3)
    apply(TEN, "--confirm=2s")
    end = time.monotonic() + 2
    victims = [pid for pid in weir_processes(on.name) if pid != os.getpid()]
    assert {process.pid for process in running} <= set(victims)
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    for process in running:
        process.wait(timeout=2)
    assert list(weir_processes(on.name)) == []
    assert ports(pair) == PASSES_NINE
    wait_until(end + 0.1)
    assert ports(pair) == PASSES_TEN
    apply("pass from any")  # the next command finds a consistent state
    assert ports(pair) == PASSES_ALL


def test_a_command_during_and_after_a_trial_keeps_the_overlay(pair, on, apply):
    apply(NINE)
    apply(TEN, "--confirm=1s")
    on("block", OTHER4)
    time.sleep(1.2)
    on("block", OTHER6)
    assert pair.free(OTHER4, OTHER6) == [False, False] and ports(pair) == PASSES_TEN
    assert set(on.entries()) == {OTHER4, OTHER6}


# The login of the operator.

@pytest.mark.parametrize("peer", [SOURCE4, SOURCE6])
def test_a_policy_that_cuts_off_the_own_login_is_refused(pair, on, apply, peer):
    apply(NINE)
    before = in_force(on)
    network = "198.51.100.0/24, 2001:db8:100::/48"
    command = [WEIR, "-n", on.name, "apply", apply.write(f'"cut" drop from {network}')]
    status, printed = logged_in(pair, peer, command)
    assert status == 3 and peer in printed and '"cut"' in printed and "always pass" in printed
    assert in_force(on) == before
    status, printed = logged_in(pair, OTHER6 if ":" in peer else OTHER4, command)
    assert status == 0, printed  # not of this login
    assert not any(pair.free(SOURCE4, SOURCE6))
    on("rollback")
    status, printed = logged_in(pair, peer, [*command, "--force"])
    assert status == 0 and not any(pair.free(SOURCE4, SOURCE6)), printed


def test_default_drop_needs_a_way_in_for_the_login(pair, on, apply):
    command = [WEIR, "-n", on.name, "apply"]
    status, printed = logged_in(pair, SOURCE4, [*command, apply.write("default drop")])
    assert status == 3 and "default" in printed
    way_in = f"default drop\n{MARK}always pass from {SOURCE4}"
    status, printed = logged_in(pair, SOURCE4, [*command, apply.write(way_in)])
    assert status == 0, printed
    assert f"ssh {SOURCE4}" in on.json("history")["revisions"][0]["by"]
    assert pair.passes(udp(), udp(src=OTHER4), ping()) == [True, False, True]


def test_only_a_policy_on_the_logins_interface_can_cut_it_off(pair, weir, tmp_path):
    apply = Policies(weir, tmp_path)
    command = [WEIR, "-n", weir.name, "apply"]
    pair.link("add", "v1", "type", "veth", "peer", "v2")
    try:
        drop = "drop from any", "v1"
        status, printed = logged_in(pair, SOURCE4, [*command, apply.write(*drop)])
        assert status == 0, printed
        drop = "drop on v1 from any", "near*, v1"
        status, printed = logged_in(pair, SOURCE4, [*command, apply.write(*drop)])
        assert status == 0, printed
        drop = "drop on near* from any", "v1, near*"
        status, printed = logged_in(pair, SOURCE4, [*command, apply.write(*drop)])
        assert status == 3 and SOURCE4 in printed
    finally:
        weir("detach", "--force", check=False)
        pair.link("del", "v1")


def test_a_login_that_cannot_be_placed_demands_a_trial(pair, on, apply):
    nowhere = {**os.environ, "SSH_CONNECTION": "UNKNOWN 65535 UNKNOWN 65535"}
    command = [WEIR, "-n", on.name, "apply", apply.write(NINE)]
    done = pair.near(command, check=False, env=nowhere)
    assert done.returncode == 3 and "--confirm" in done.stderr
    assert ports(pair) == PASSES_ALL
    pair.near([*command, "--confirm=60s"], env=nowhere)
    assert ports(pair) == PASSES_TEN


def test_what_else_would_be_cut_off_is_warned_about(apply):
    printed = apply(f"drop proto udp from {Pair.resolver} port 53 to any").stderr
    assert "resolver" in printed and Pair.resolver in printed
    assert "gateway" in apply("drop type nd-neighbor-advert").stderr
    told = apply.weir.json("apply", apply.path, "--force")["warnings"]
    assert len(told) == 1 and Pair.far6 in told[0]


# Names and lists.


def test_names_follow_the_resolver_and_outlive_it(pair, apply, dns):
    text = '"named" drop from blocked.lab'
    apply(text, "--resolver", Pair.resolver)
    assert pair.free(BLOCKED4, BLOCKED6, SOURCE4) == [False, False, True]
    dns("blocked.lab", SOURCE4)
    apply(text, "--resolver", Pair.resolver)
    assert pair.free(BLOCKED4, BLOCKED6, SOURCE4) == [True, True, False]
    dead = "--resolver", "10.99.0.1", "--resolver-timeout", "300ms"
    printed = apply(f"{text}\n{TEN}", *dead).stderr
    assert "warning" in printed and "'blocked.lab'" in printed and "last good answer" in printed
    assert pair.free(SOURCE4, BLOCKED4) == [False, True]
    assert "lab.weir:4:11: error: 'other.lab'" in apply.fails(
        1, f"{text}\n{TEN}\ndrop from other.lab", *dead)


def test_answers_that_would_cut_off_the_host_are_not_loaded(pair, apply, dns):
    dns("blocked.lab", "127.0.0.1", Pair.near4, Pair.far4, BLOCKED4)
    printed = apply("drop from blocked.lab", "--resolver", Pair.resolver).stderr
    assert Pair.far4 in printed or "gateway" in printed
    assert pair.free(Pair.far4, BLOCKED4) == [True, False]


def test_a_list_that_is_too_short_keeps_the_last_good_one(pair, apply):
    lines = apply.folder / "bad.txt"
    text = 'drop from @bad\nset bad { file "bad.txt" min 3 }'
    lines.write_text(f"{SOURCE4}\n")
    assert "bad.txt" in apply.fails(1, text)
    lines.write_text(f"# three\n{SOURCE4}\n{SOURCE6}\r\n{OTHER6} ; the third\n")
    apply(text)
    assert pair.free(SOURCE4, SOURCE6, OTHER6, OTHER4) == [False] * 3 + [True]
    lines.write_text(f"{OTHER4}\n")
    assert "bad.txt" in apply(text).stderr
    assert pair.free(SOURCE4, SOURCE6, OTHER6, OTHER4) == [False] * 3 + [True]
    lines.write_text(f"{OTHER4}\n" * 2 + f"{OTHER6}\n300.1.2.3\n")
    assert "300.1.2.3" in apply(text).stderr
    assert pair.free(SOURCE4, SOURCE6, OTHER6, OTHER4) == [False] * 3 + [True]


MILLION = 1_000_000
REACH_S, REACH_KB = 2, 600 * 1024  # the test accepts twice that


def million_lines(seed=1):
    """Even addresses in even networks and, every fourth, a /28 in odd ones: their neighbours are not listed."""
    draw = random.Random(seed)
    hosts, nets = set(), set()
    while len(hosts) < MILLION * 3 // 4:
        number = draw.getrandbits(32) & ~0x00010001
        if 11 <= number >> 24 <= 99:
            hosts.add(number)
    while len(nets) < MILLION // 4:
        number = (draw.getrandbits(32) | 0x00010000) & ~0x1F
        if 11 <= number >> 24 <= 99:
            nets.add(number)
    return sorted(hosts), sorted(nets)


def dotted(number):
    return socket.inet_ntoa(number.to_bytes(4, "big"))


def test_a_million_prefixes(pair, on, apply):
    hosts, nets = million_lines()
    (apply.folder / "million.txt").write_text(
        "".join(f"{dotted(one)}\n" for one in hosts)
        + "".join(f"{dotted(one)}/28\n" for one in nets))
    apply.write('set m { file "million.txt" min 1M }\n"m" drop from @m')
    start = time.monotonic()
    argv = on.argv("apply", apply.path)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds, busy = time.monotonic() - start, usage.ru_utime + usage.ru_stime
    print(f"\napply of {MILLION:,} prefixes: {seconds:.2f} s ({busy:.2f} s of processor time), "
          f"{usage.ru_maxrss // 1024} MB at most")
    assert process.returncode == 0, printed
    assert busy <= 2 * REACH_S and usage.ru_maxrss <= 2 * REACH_KB
    draw = random.Random(2)
    some_hosts, some_nets = draw.sample(hosts, 200), draw.sample(nets, 200)
    assert not any(pair.free(*map(dotted, some_hosts)))
    assert not any(pair.free(*(dotted(one + draw.randrange(16)) for one in some_nets)))
    assert all(pair.free(*(dotted(one + 1) for one in some_hosts)))
    assert all(pair.free(*(dotted(one + 16) for one in some_nets)))


def test_no_empty_revision_where_the_record_cannot_be_written(on, apply):
    """--volatile works on a full or read-only disk; the policy then has no record, and so no name."""
    with read_only(on.state):
        done = apply(TEN, "--volatile")
        assert ", revision" not in done.stdout and f", instance {on.name}" in done.stdout, done.stdout


def test_a_load_that_takes_long_is_repeated(on, tmp_path):
    """As on a machine whose verifier takes a minute: the plan of the services is too old by then, so there is another one,
    which may take longer."""
    path, trace = tmp_path / "slow.weir", tmp_path / "trace"
    words = ["interface near0", "service www {", "vip 192.0.2.10", "proto tcp", "port 80", "mode ipip", "source 10.77.0.77",
             f"backend {Pair.far4}", "}"]

    def apply(port, *strace, file=(path,)):
        path.write_text("\n".join(words).replace("port 80", f"port {port}"))
        with path.open() as text:
            return subprocess.Popen(
                ["strace", "-f", "-qq", "-o", trace, "-e", "trace=bpf", *strace, *on.argv("apply", *file)],
                stdin=text, stderr=subprocess.PIPE, text=True)

    for port in 80, 81:
        apply(port).communicate(timeout=30)
    calls = trace.read_text().splitlines()
    last = max(n for n, call in enumerate(calls) if "BPF_PROG_LOAD, {prog_type=BPF_PROG_TYPE_XDP" in call)

    def slowly(port, *file):
        slow = apply(port, "-e", f"inject=bpf:signal=STOP:when={last}", file=file)
        until(lambda: "stopped by SIGSTOP" in trace.read_text(), what="the load")
        time.sleep(31)
        os.kill(int(trace.read_text().split()[0]), signal.SIGCONT)
        said = slow.communicate(timeout=60)[1]
        assert slow.returncode == 0 and "took more than 30 s to load: loading it once more" in said, said
        assert f"port {port}" in on("show").stdout

    slowly(82, path)
    slowly(83, "-", "--as", path)  # standard input is at its end then


def test_a_warning_of_many_services_is_one_line(on, tmp_path):
    """The document has a warning for each of them."""
    path = tmp_path / "many.weir"
    path.write_text("default pass\n" + "".join(
        f"service s{n} {{\n vip 192.0.2.{n}\n port 80\n mode ipip\n backend 10.77.0.2\n}}\n" for n in range(1, 4)))
    said = on("apply", path).stderr.splitlines()
    text = "packets above 1480 bytes do not fit into the tunnel through near0, and are answered with 'too big': " \
           "ip link set near0 mtu 1520"
    assert [line for line in said if "tunnel" in line] == [f"weir: warning: service 's1' and 2 others: {text}"]
    assert on.json("apply", path, "--force")["warnings"] == [f"service 's{n}': {text}" for n in range(1, 4)]
