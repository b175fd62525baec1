# SPDX-License-Identifier: GPL-2.0-only
"""An apply of the active policy changes only what is missing, unless it is forced."""

import pytest

from labnet import Pair, run
from policylab import (
    NINE, OTHER4, PASSES_ALL, PASSES_NINE, PASSES_TEN, SOURCE4, SOURCE6, TEN, Policies, in_force, ports, programs,
    udp,
)

BLOCKED4, BLOCKED6 = "203.0.113.10", "2001:db8:113::10"  # blocked.lab


@pytest.fixture(name="apply")
def policies(on, tmp_path):
    return Policies(on, tmp_path)


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
