# SPDX-License-Identifier: GPL-2.0-only
"""weir block --out: calls to an address fail at once, in this network namespace, by each way a process has."""

import json
import pathlib
import subprocess
import sys
import time
import uuid

import pytest

from labnet import run, until

BLOCKED4, BLOCKED6 = "203.0.113.10", "2001:db8:113::10"  # blocked.lab
OTHER4, OTHER6 = "203.0.113.20", "2001:db8:113::20"

# Run by a process in the namespace; prints the errno of each way, 0 where the call was not refused.
CALLS = r"""
import json, socket as S, sys
four, six = sys.argv[1:]
ECHO4, ECHO6 = b"\x08\0\0\0\0\1\0\1", b"\x80\0\0\0\0\1\0\1"
def connect(family, kind, address, proto=0):
    with S.socket(family, kind, proto) as s:
        s.settimeout(2)
        s.connect(address)
def send(family, kind, address, proto=0, data=b"x", flags=0):
    with S.socket(family, kind, proto) as s:
        s.sendto(data, flags, address)
def send_elsewhere(address):
    with S.socket(S.AF_INET, S.SOCK_DGRAM) as s:
        s.connect(("10.77.0.2", 9))
        s.sendto(b"x", address)
T, U, R = S.SOCK_STREAM, S.SOCK_DGRAM, S.SOCK_RAW
mapped = "::ffff:" + four
calls = {
    "tcp4": lambda: connect(S.AF_INET, T, (four, 80)),
    "tcp6": lambda: connect(S.AF_INET6, T, (six, 80)),
    "tcp mapped": lambda: connect(S.AF_INET6, T, (mapped, 80)),
    "tcp fast open": lambda: send(S.AF_INET, T, (four, 80), flags=S.MSG_FASTOPEN),
    "tcp6 fast open": lambda: send(S.AF_INET6, T, (six, 80), flags=S.MSG_FASTOPEN),
    "udp4 connected": lambda: connect(S.AF_INET, U, (four, 53)),
    "udp6 connected": lambda: connect(S.AF_INET6, U, (six, 53)),
    "udp mapped connected": lambda: connect(S.AF_INET6, U, (mapped, 53)),
    "udp4": lambda: send(S.AF_INET, U, (four, 53)),
    "udp6": lambda: send(S.AF_INET6, U, (six, 53)),
    "udp mapped": lambda: send(S.AF_INET6, U, (mapped, 53)),
    "udp connected elsewhere": lambda: send_elsewhere((four, 53)),
    "ping4 connected": lambda: connect(S.AF_INET, U, (four, 0), S.IPPROTO_ICMP),
    "ping6 connected": lambda: connect(S.AF_INET6, U, (six, 0), S.IPPROTO_ICMPV6),
    "ping4": lambda: send(S.AF_INET, U, (four, 0), S.IPPROTO_ICMP, ECHO4),
    "ping6": lambda: send(S.AF_INET6, U, (six, 0), S.IPPROTO_ICMPV6, ECHO6),
    "raw4": lambda: send(S.AF_INET, R, (four, 0), S.IPPROTO_ICMP, ECHO4),
    "raw6": lambda: send(S.AF_INET6, R, (six, 0), S.IPPROTO_ICMPV6, ECHO6),
}
answers = {}
for name, call in calls.items():
    try:
        call()
        answers[name] = 0
    except OSError as error:
        answers[name] = error.errno or -1
print(json.dumps(answers))
"""
# What the command says that it does not cover: the calls succeed.
OPEN = {"ping4", "ping6", "raw4", "raw6"}
EPERM, ECONNREFUSED, EHOSTUNREACH = 1, 111, 113


def calls(enter, four=BLOCKED4, six=BLOCKED6):
    return json.loads(enter([sys.executable, "-c", CALLS, four, six]).stdout)


def fails(enter, address=BLOCKED4, how="connect", port=80):
    """The errno of one call of a UDP socket: nothing on the wire decides about it."""
    family = "AF_INET6" if ":" in address else "AF_INET"
    call = f"connect(({address!r}, {port}))" if how == "connect" else f"sendto(b'x', ({address!r}, {port}))"
    script = (f"import socket as S\ntry: S.socket(S.{family}, S.SOCK_DGRAM).{call}; print(0)\n"
              "except OSError as error: print(error.errno)")
    return int(enter([sys.executable, "-c", script]).stdout)


def hooks():
    """Numbers of links of cgroups on this machine."""
    links = json.loads(run(["bpftool", "-j", "link"]).stdout)
    return {link["id"] for link in links if link["type"] == "cgroup"}


@pytest.fixture(name="near")
def near_with_ping(pair):
    """Calls of processes on the near side, where each user may open ping sockets."""
    pair.near(["sysctl", "-wq", "net.ipv4.ping_group_range=0 2147483647"])
    return pair.near


def test_each_way_of_a_process(on, near):
    before = calls(near)
    assert set(before.values()) == {0}
    done = on("block", "--out", "blocked.lab", "--resolver", "10.77.0.2")
    assert done.stdout == ("blocked outgoing connections to and packets from blocked.lab "
                           f"({BLOCKED4} {BLOCKED6}) on near0; saved\n")
    assert "not blocked: raw sockets" in done.stderr and "except by their answers" in done.stderr
    assert calls(near) == {name: 0 if name in OPEN else EPERM for name in before}
    assert set(calls(near, OTHER4, OTHER6).values()) == {0}
    kinds = {(entry["address"], entry["kind"]) for entry in on.json("list")["entries"]}
    assert kinds == {(address, kind) for address in (BLOCKED4, BLOCKED6) for kind in ("block-from", "block-out")}
    assert sum(entry["packets"] for entry in on.json("list", "--out")["entries"]) >= len(before) - len(OPEN)
    on("unblock", "--out", "blocked.lab")
    assert set(calls(near).values()) == {0} and not on.json("list")["entries"]


@pytest.mark.parametrize("word, number", [("denied", EPERM), ("refused", ECONNREFUSED), ("unreachable", EHOSTUNREACH)])
def test_the_error(on, near, word, number):
    on("block", "--out", BLOCKED4, BLOCKED6)
    on("block", "--out", BLOCKED4, BLOCKED6, "--errno", word)
    answers = calls(near)
    assert answers == {name: 0 if name in OPEN else number for name in answers}
    assert len(on.json("list", "--out")["entries"]) == 2, "the second command has replaced the first"


def test_answers_and_only_calls(pair, on, near):
    on("block", "--out-only", BLOCKED4)
    assert fails(near) == EPERM and pair.free(BLOCKED4) == [True]
    on("block", "--out", BLOCKED4)
    assert pair.free(BLOCKED4) == [False]
    on("unblock", "--out-only", BLOCKED4)
    assert fails(near) == 0 and pair.free(BLOCKED4) == [False]
    on("block", "--out", BLOCKED4)
    on("unblock", BLOCKED4)
    assert fails(near) == 0 and pair.free(BLOCKED4) == [True] and not on.json("list")["entries"]


def test_an_open_connection_gets_no_answer(pair, on, near):
    """It was open before: only its answers are dropped."""
    script = ("import socket, sys\ns = socket.create_connection(('203.0.113.10', 80), 5)\nprint('open', flush=True)\n"
              "sys.stdin.readline()\ns.settimeout(2)\ns.send(b'GET / HTTP/1.0\\r\\n\\r\\n')\n"
              "try: print('answer', len(s.recv(100)))\nexcept TimeoutError: print('nothing')\n")
    argv = ["ip", "netns", "exec", pair.near_netns, sys.executable, "-c", script]
    for words, said in ((("--out-only",), "answer"), (("--out",), "nothing")):
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout.readline() == "open\n"
            on("block", *words, BLOCKED4)
            out, _ = client.communicate("\n", timeout=20)
        assert out.startswith(said)
        on("unblock", BLOCKED4)


def test_other_namespaces(pair, on, near):
    """The far side, as a container, is another network namespace under the same root of cgroup 2."""
    on("block", "--out", OTHER4)
    assert (fails(near, OTHER4), fails(pair.far, OTHER4)) == (EPERM, 0)
    done = on("block", "--out", OTHER4, "--all-namespaces", check=False)
    assert done.returncode == 3 and "cannot tell from this network namespace" in done.stderr
    assert (fails(near, OTHER4), fails(pair.far, OTHER4)) == (EPERM, 0)
    on("block", "--out", OTHER4, "--all-namespaces", "--force")
    assert (fails(near, OTHER4), fails(pair.far, OTHER4)) == (EPERM, EPERM)
    done = on("block", "--out", OTHER4)
    assert "1 former entry is saved, wider or longer, and remains" in done.stdout
    assert (fails(near, OTHER4), fails(pair.far, OTHER4)) == (EPERM, EPERM), "a narrower block widens nothing"
    on("unblock", "--out", OTHER4)
    assert (fails(near, OTHER4), fails(pair.far, OTHER4)) == (0, 0)


def test_a_repetition_loses_nothing(on, near):
    """A permanent, saved block stays what it is when it is repeated for a time, or volatile."""
    on("block", "--out-only", BLOCKED4)
    done = on("block", "--out-only", BLOCKED4, "--errno", "refused", "--for", "1h")
    assert "1 entry with another error or for fewer namespaces replaced" in done.stdout
    [entry] = on.json("list", "--out")["entries"]
    assert "left_s" not in entry and fails(near) == ECONNREFUSED
    on("block", "--out-only", BLOCKED4, "--volatile")
    on("detach")
    on("attach", "near0", "--max-entries", "1000")
    assert fails(near) == ECONNREFUSED


def part_of_cgroups(group, argv):
    """As in a container: the visible root of cgroup 2 is the group."""
    script = (f'echo $$ > {group}/cgroup.procs; exec unshare --cgroup --mount sh -c \'umount -a -l -t cgroup2; '
              'mount -t cgroup2 none /sys/fs/cgroup && exec "$@"\' sh "$@"')
    return run(["sh", "-c", script, "sh", *argv])


@pytest.fixture(name="group")
def group_of_the_test():
    mounts = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    root = next(line.split()[4] for line in mounts if " - cgroup2 " in line)
    group = pathlib.Path(root, f"weir-test-{uuid.uuid4().hex[:8]}")
    group.mkdir()
    yield group
    until(lambda: not (group / "cgroup.procs").read_text(encoding="ascii"))
    group.rmdir()


def test_links_of_a_container(on, near, group):
    """Links to a container's cgroup are an alarm on the machine, which replaces them, and never the reverse."""
    done = part_of_cgroups(group, on.argv("block", "--out", BLOCKED4))
    assert "only processes of this container are covered" in done.stderr and fails(near) == 0
    assert json.loads(part_of_cgroups(group, on.argv("-j", "status")).stdout)["alarms"] == []
    alarms = on.json("status", status=2)["alarms"]
    assert any("only for processes of a container" in alarm for alarm in alarms)
    findings = json.loads(on("-j", "doctor", check=False).stdout)["findings"]
    assert any((one["about"], one["level"]) == ("outgoing", "problem") for one in findings)
    on("attach", "near0")
    assert fails(near) == EPERM and not on.json("status")["alarms"]
    done = part_of_cgroups(group, on.argv("block", "--out", OTHER4))
    assert "container" not in done.stderr and fails(near, OTHER4) == EPERM


def test_attach_restores_a_lost_program(on, near):
    on("block", "--out", BLOCKED4)
    (on.bpffs / "out" / "connect4").unlink()
    until(lambda: fails(near) == 0)
    on("attach", "near0")
    assert fails(near) == EPERM and not on.json("status")["alarms"]


def test_directions_of_a_list(on, near, tmp_path):
    lines = tmp_path / "lines"
    for word in ("to", "both"):
        lines.write_text(f"{OTHER4}\n{BLOCKED4} {word}\n")
        for option in ("--out", "--out-only"):
            done = on("block", option, "-f", lines, check=False)
            assert done.returncode == 1 and f"line 2: '{word}' cannot be combined with --out" in done.stderr
    assert not on.json("list")["entries"] and fails(near) == 0


def test_an_allow_entry_beats_its_half(pair, on, near):
    """allow --out permits calls and passes no packets, and the reverse; a warning names the half."""
    on("block", "--out", BLOCKED4)
    on("allow", "--out", BLOCKED4)
    assert fails(near) == 0 and pair.free(BLOCKED4) == [False]
    done = on("block", "--out", BLOCKED4)
    assert f"outgoing connections to {BLOCKED4} are also allowed" in done.stderr and "packets from" not in done.stderr
    assert "also allowed" not in on("block", BLOCKED4).stderr
    on("unallow", "--out", BLOCKED4)
    on("allow", BLOCKED4)
    assert fails(near) == EPERM and pair.free(BLOCKED4) == [True]
    assert f"packets from {BLOCKED4} are also allowed" in on("block", "--out", BLOCKED4).stderr
    assert "also allowed" not in on("block", "--out-only", BLOCKED4).stderr


def test_an_allow_entry_ends_no_group(on):
    on("block", "203.0.113.1", "203.0.113.2", "--origin", "jail", "--group", "2")
    on("allow", "--out", BLOCKED4)
    on("block", "203.0.113.3", "--origin", "jail", "--group", "2")
    assert "203.0.113.0/24" in {entry["address"] for entry in on.json("list")["entries"]}


def test_programs_only_for_blocks(on):
    before = hooks()
    on("allow", "--out", BLOCKED4)
    assert hooks() == before and not on.json("status")["alarms"]


def test_limits_in_a_batch(on, near, group, tmp_path):
    """Each command that blocks calls prints once what is not covered, and -q leaves the warning."""
    lines = tmp_path / "lines"
    lines.write_text(f"block 192.0.2.1\nblock --out {BLOCKED4}\nblock --out-only {OTHER4}\n")
    for argv in (("batch", "-f", lines), ("batch", "--each", "-f", lines)):
        assert on(*argv).stderr.count("not blocked: raw sockets") == 1
    on("unblock", "--all")
    for argv in (("-q", "batch", "-f", lines), ("-q", "block", "--out", BLOCKED4)):
        done = part_of_cgroups(group, on.argv(*argv))
        assert "only processes of this container are covered" in done.stderr and "raw sockets" not in done.stderr
        on("unblock", "--all")
    lines.write_text("block 192.0.2.1\n")
    assert "raw sockets" not in on("batch", "-f", lines).stderr


def test_a_process_in_another_cgroup(pair, on, group):
    """A container's processes are in a cgroup below the root, and may have its cgroup namespace."""
    on("block", "--out", BLOCKED4)
    script = (f"echo $$ > {group}/cgroup.procs; exec unshare --cgroup nsenter --net=/run/netns/{pair.near_netns} "
              f"{sys.executable} -c \"import socket; socket.socket().connect(('{BLOCKED4}', 80))\"")
    done = run(["sh", "-c", script], check=False)
    assert "Operation not permitted" in done.stderr


def test_prefixes_allow_and_expiry(on, near):
    on("block", "--out", "203.0.113.0/24", "2001:db8:113::/48")
    assert fails(near) == fails(near, BLOCKED6) == fails(near, OTHER4) == EPERM
    on("allow", "--out", OTHER4)
    assert (fails(near), fails(near, OTHER4)) == (EPERM, 0)
    on("unallow", "--out", OTHER4)
    assert fails(near, OTHER4) == EPERM
    on("unblock", "--all")
    on("block", "--out", BLOCKED4, "--for", "2s")
    assert fails(near) == EPERM
    until(lambda: fails(near) == 0, seconds=5)


def test_an_expired_entry_hides_no_wider_one(on, near):
    on("block", "--out", "203.0.113.0/24", "--for", "1h")
    on("block", "--out", BLOCKED4, "--for", "1s")
    time.sleep(2)
    assert fails(near) == EPERM
    on("unblock", "--out", "203.0.113.0/24")
    assert fails(near) == 0


def test_a_list_with_directions(on, near, tmp_path):
    lines = tmp_path / "lines"
    lines.write_text(f"{BLOCKED4} for 1h\n{BLOCKED6}\n")
    on("block", "--out", "-f", lines, "--sync", "c2")
    assert fails(near) == fails(near, BLOCKED6) == EPERM
    lines.write_text(f"{BLOCKED4}\n{OTHER4}\n{OTHER6}\n")
    on("block", "--out", "-f", lines, "--sync", "c2")
    assert (fails(near), fails(near, BLOCKED6), fails(near, OTHER6)) == (EPERM, 0, EPERM)
    plain = on("list", "--out", "--plain").stdout
    assert set(plain.split()) == {BLOCKED4, OTHER4, OTHER6}
    on("unblock", "--sync", "c2")
    assert fails(near) == 0 and not on.json("list")["entries"]


def kinds_by_address(on):
    found = {}
    for entry in on.json("list")["entries"]:
        found.setdefault(entry["address"], []).append(entry["kind"])
    return found


@pytest.mark.parametrize("scope", [("--all",), ("--origin", "ids"), ("--sync", "c2")], ids=" ".join)
def test_all_entries_of_the_option(on, near, tmp_path, scope):
    """Entries without --out remain, also of the same owner and of another owner of the address."""
    lines = tmp_path / "lines"
    lines.write_text(f"{BLOCKED4}\n{BLOCKED6}\n")
    owner = scope if scope[0] == "--origin" else ()
    on("block", "192.0.2.1", *owner)
    on("block", OTHER4, "--origin", "other")
    on("block", BLOCKED4, "--origin", "other")
    on("block", "--to", "192.0.2.2", *owner)
    on("block", "--out", "-f", lines, *([] if scope[0] == "--all" else scope))
    assert fails(near) == fails(near, BLOCKED6) == EPERM
    on("unblock", "--out", *scope)
    assert fails(near) == fails(near, BLOCKED6) == 0
    assert kinds_by_address(on) == {"192.0.2.1": ["block-from"], OTHER4: ["block-from"], BLOCKED4: ["block-from"],
                                    "192.0.2.2": ["block-to"]}
    entry = next(e for e in on.json("list")["entries"] if e["address"] == BLOCKED4)
    assert [holder["origin"] for holder in entry["holders"]] == ["other"]


def test_a_name_whose_address_changes(on, near, dns):
    dns("moving.lab", BLOCKED4)
    on("block", "--out", "moving.lab", "--resolver", "10.77.0.2")
    assert (fails(near, BLOCKED4), fails(near, OTHER4)) == (EPERM, 0)
    dns("moving.lab", OTHER4)
    on("refresh", "--resolver", "10.77.0.2")
    assert fails(near, OTHER4) == EPERM
    kinds = [entry["kind"] for entry in on.json("list", OTHER4)["entries"]]
    assert kinds == ["block-from", "block-out"]
    left = on.json("list", "--out", BLOCKED4)["entries"][0]["left_s"]
    assert 0 < left <= 3600, "the former address has a grace time"


def test_the_agent_follows_a_name(on, near, dns):
    """No command: calls to a new address are refused once the agent has asked, and the former ones until their grace time."""
    dns("moving.lab", BLOCKED4)
    on("block", "--out", "moving.lab", "--resolver", "10.77.0.2")
    on.run("--resolver", "10.77.0.2")
    assert (fails(near, BLOCKED4), fails(near, OTHER4), fails(near, OTHER6)) == (EPERM, 0, 0)
    dns("moving.lab", OTHER4, OTHER6)
    until(lambda: fails(near, OTHER4) == fails(near, OTHER6) == EPERM, seconds=60, what="the new addresses")
    for address in OTHER4, OTHER6:
        assert [entry["kind"] for entry in on.json("list", address)["entries"]] == ["block-from", "block-out"]
    assert on.json("list", "--out", BLOCKED4)["entries"][0]["left_s"] <= 3600, "the former address has a grace time"
    dns("moving.lab", BLOCKED4)
    until(lambda: on.json("list", "--out", BLOCKED4)["entries"][0].get("left_s") is None, seconds=60, what="the first one again")
    assert fails(near, BLOCKED4) == EPERM


def test_hooks_live_as_long_as_entries(on, near):
    before = hooks()
    on("block", "203.0.113.99")
    assert hooks() == before
    on("block", "--out", BLOCKED4)
    assert len(hooks() - before) == 4
    on("unblock", BLOCKED4)
    assert hooks() == before
    on("block", "--out", BLOCKED4)
    on("detach")
    assert hooks() == before and fails(near) == 0
    on("attach", "near0", "--max-entries", "1000")
    assert len(hooks() - before) == 4 and fails(near) == EPERM
    on("detach", "--force")
    assert hooks() == before
    on("forget", "--all")
    on("attach", "near0", "--max-entries", "1000")
    assert hooks() == before and fails(near) == 0


def test_two_instances(pair, on, near, weir_on):
    """Each has its own links, and leaves the other links in place."""
    second = weir_on(pair)
    pair.link("add", "near7", "type", "veth", "peer", "near8")
    try:
        second("attach", "near7", "--max-entries", "1000", "--mode", "generic")
        on("block", "--out", BLOCKED4)
        second("block", "--out", OTHER4)
        assert (fails(near), fails(near, OTHER4)) == (EPERM, EPERM)
        on("unblock", BLOCKED4)
        assert (fails(near), fails(near, OTHER4)) == (0, EPERM)
        second("detach")
        assert fails(near, OTHER4) == 0
    finally:
        second("detach", "--force", check=False)
        pair.link("delete", "near7")


def test_a_lost_program_is_an_alarm(on, near):
    on("block", "--out", BLOCKED4)
    assert not on.json("status")["alarms"]
    (on.bpffs / "out" / "connect4").unlink()
    until(lambda: fails(near) == 0)
    alarms = on.json("status", status=2)["alarms"]
    assert any("3 of 4 programs are attached" in alarm for alarm in alarms)
    findings = json.loads(on("-j", "doctor", check=False).stdout)["findings"]
    assert any((one["about"], one["level"]) == ("outgoing", "problem") for one in findings)
    on("block", "--out", BLOCKED4)
    assert fails(near) == EPERM and not on.json("status")["alarms"]


def test_explain(on):
    on("block", "--out", "203.0.113.0/24", "--errno", "refused", "--note", "c2")
    out = on("explain", BLOCKED4).stdout
    assert f"outgoing connections to {BLOCKED4} are refused: overlay block 203.0.113.0/24 out" in out
    assert on.json("explain", BLOCKED4)["out"] == "refuse"
    on("allow", "--out-only", BLOCKED4)
    assert on.json("explain", BLOCKED4)["out"] == "pass"
    assert on.json("explain", "192.0.2.1")["out"] is None


def test_watch(on, near):
    on("block", "--out", BLOCKED4, BLOCKED6, "--errno", "refused")
    watch = on.start("-j", "watch", "--out", "-c", "2")
    ours = "import ctypes; ctypes.CDLL(None).prctl(15, b'a\\x1bb\\nc', 0, 0, 0);"
    tries = 0
    while watch.poll() is None and tries < 100:
        tries += 1
        near([sys.executable, "-c", f"{ours}\nimport socket\ntry: socket.socket().connect(('{BLOCKED4}', 4711))\n"
              "except OSError: pass"])
        time.sleep(0.05)
    events = [json.loads(line) for line in watch.communicate()[0].splitlines()]
    assert events[-1]["end"] and len(events) == 3
    one = events[0]
    assert (one["to"], one["to_port"], one["proto"], one["result"]) == (BLOCKED4, 4711, "tcp", "refused")
    assert one["command"] == "a?b?c" and one["uid"] == 0 and one["pid"] > 1 and one["other_namespace"] is False


def without_cgroups(argv):
    """In a mount namespace of its own, where no cgroup 2 is mounted."""
    script = 'umount -a -l -t cgroup2 2>/dev/null; ! grep -q " - cgroup2 " /proc/self/mountinfo && exec "$@"'
    return run(["unshare", "--mount", "sh", "-c", script, "sh", *argv], check=False)


def test_without_cgroup_2(on, near):
    done = without_cgroups(on.argv("block", "--out", BLOCKED4))
    assert done.returncode == 2 and "cgroup 2 is not mounted" in done.stderr and "mount -t cgroup2" in done.stderr
    assert not on.json("list")["entries"] and fails(near) == 0
    on("block", "--out", BLOCKED4)
    done = without_cgroups(on.argv("attach", "near0"))
    assert done.returncode == 0 and "outgoing" not in done.stderr, "the programs are attached"
    on("detach")
    done = without_cgroups(on.argv("attach", "near0", "--max-entries", "1000"))
    assert done.returncode == 0 and "outgoing connections are not blocked: cgroup 2 is not mounted" in done.stderr
    assert fails(near) == 0 and on.json("status", status=2)["alarms"]


@pytest.mark.alone
def test_the_time_of_a_refused_call(on, near, tmp_path):
    """A refused connect() takes 0.02 ms, also among 100,000 entries."""
    on("detach")
    on("attach", "near0", "--max-entries", "150000")
    entries = tmp_path / "entries"
    entries.write_text("".join(f"100.{64 + n // 65536}.{n // 256 % 256}.{n % 256}\n" for n in range(100000)))
    on("block", "--out-only", "-f", entries, timeout=60)
    on("block", "--out-only", BLOCKED4)
    script = ("import socket, time\nbest = 1\nfor _ in range(20):\n s = [socket.socket() for _ in range(100)]\n"
              " begun = time.monotonic()\n for one in s:\n  try: one.connect(('203.0.113.10', 80))\n"
              "  except PermissionError: pass\n best = min(best, (time.monotonic() - begun) / 100)\nprint(best * 1e3)")
    assert float(near([sys.executable, "-c", script]).stdout) < 0.02
