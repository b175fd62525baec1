# SPDX-License-Identifier: GPL-2.0-only
"""Switching policies: what is refused, what is kept, names and lists."""

import os
import random
import signal
import socket
import subprocess
import time

import pytest

from labnet import Pair, read_only, until
from policylab import (
    NINE, OTHER4, OTHER6, PASSES_ALL, PASSES_NINE, PASSES_TEN, SOURCE4, SOURCE6, TEN, Policies, in_force, ports, udp,
)

BLOCKED4, BLOCKED6 = "203.0.113.10", "2001:db8:113::10"  # blocked.lab


@pytest.fixture(name="apply")
def policies(on, tmp_path):
    return Policies(on, tmp_path)


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
        ("service w {\nvip 192.0.2.1\nproto tcp\nport 80\nmode nat\nidle 4h\nbackend 10.0.0.1\n}",
         ["lab.weir:7:1", "in this mode 'idle' must be at most 3h"]),
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


def test_diff_with_a_file_of_another_name(on, apply):
    apply("interface near0\ndefault pass\ndrop from 203.0.113.7")
    other = apply.folder / "other.weir"
    other.write_text("interface near0\nservice www { vip 192.0.2.10; port 80; mode ipip; backend 10.77.0.2 }\n")
    done = on("diff", other, check=False)
    assert done.returncode == 3 and "-drop from 203.0.113.7\n" in done.stdout and "+service www" in done.stdout
    assert "+interface" not in done.stdout and "is not active here" not in done.stdout, done.stdout


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
