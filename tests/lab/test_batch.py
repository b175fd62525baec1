# SPDX-License-Identifier: GPL-2.0-only
"""weir batch: several commands as one change, or each as it comes."""

import json
import subprocess
import time

import pytest

from labnet import run, unique

GOOD = """
# bans of the day
block 203.0.113.7 203.0.113.8 --for 1h --note "abuse '4711'"
block --to 2001:db8::/64 --origin ids   # a comment

allow 203.0.113.9
\tunblock 198.51.100.1
"""


def batch(weir, text, *args, **options):
    return weir("batch", *args, input=text, **options)


def kinds(weir):
    return {(entry["address"], entry["kind"]) for entry in weir.json("list")["entries"]}


def test_several_commands(on):
    on("block", "198.51.100.1")
    done = batch(on, GOOD)
    assert done.stdout == "4 commands: 4 entries added, 0 extended, 1 removed on near0; saved\n"
    assert done.stderr.count("\n") == 1 and "does not forward" in done.stderr
    assert kinds(on) == {("203.0.113.7", "block-from"), ("203.0.113.8", "block-from"),
                         ("2001:db8::/64", "block-to"), ("203.0.113.9", "allow-from")}
    entry = on.entries()["203.0.113.7"]
    assert entry["holders"][0]["note"] == "abuse '4711'" and 3500 < entry["left_s"] <= 3600
    assert on.entries()["2001:db8::/64"]["holders"][0]["origin"] == "ids"


def test_a_file_and_the_line_of_each_command(on, tmp_path):
    path = tmp_path / "bans"
    path.write_bytes(b"\xef\xbb\xbfblock 203.0.113.7\r\nunblock 203.0.113.99\r\nblock 203.0.113.7")
    done = on("-v", "batch", "-f", path)
    assert done.stdout.splitlines() == [
        f"{path}:1: blocked packets from 203.0.113.7",
        f"{path}:2: nothing to remove for 203.0.113.99",
        f"{path}:3: blocked packets from 203.0.113.7; no change",
        "3 commands: 1 entry added, 0 extended, 0 removed on near0; saved"]
    assert on("-q", "batch", "-f", path).stdout == ""


def test_json(on):
    found = on.json("batch", input="block 203.0.113.7\nunblock 203.0.113.8 --both\n")
    assert found["errors"] == [] and found["interfaces"] == ["near0"] and found["kept"] == "attach"
    assert (found["changed"], found["added"], found["removed"]) == (1, 1, 0)
    first, second = found["commands"]
    assert (first["line"], first["command"], first["what"], first["added"]) == (1, "block", ["203.0.113.7"], 1)
    assert (second["line"], second["command"], second["removed"], second["stays"]) == (2, "unblock", 0, [])


def test_in_the_order_of_the_lines(on):
    batch(on, "block 203.0.113.7 --for 1h\nunblock 203.0.113.7\nblock 203.0.113.7 --for 2m\n"
              "block 203.0.113.8\nunblock 203.0.113.8\n")
    assert set(on.entries()) == {"203.0.113.7"} and on.entries()["203.0.113.7"]["left_s"] <= 120


def test_lists_of_lines(on, tmp_path):
    feed = tmp_path / "feed"
    feed.write_text("198.51.100.0/28\n198.51.100.77 for 1h\n")
    batch(on, f"block -f '{feed}' --sync feed\nblock 203.0.113.1-203.0.113.3\n")
    assert set(on.entries()) == {"198.51.100.0/28", "198.51.100.77", "203.0.113.1", "203.0.113.2/31"}
    batch(on, "unblock --sync feed\nunblock --all\n")
    assert not on.entries()


# One commit


def epoch(weir):
    """knobs.epoch, with which packets follow a commit."""
    dump = json.loads(run(["bpftool", "-j", "map", "dump", "pinned", weir.bpffs / "knobs"]).stdout)
    value = bytes(int(byte, 16) for byte in dump[0]["value"])
    return int.from_bytes(value[16:24], "little")


def test_all_lines_are_one_commit(on):
    before = epoch(on)
    on("block", "203.0.113.0")
    assert epoch(on) == before + 1
    batch(on, "".join(f"block 203.0.113.{i}\n" for i in range(1, 200)) + "unblock 203.0.113.0\n")
    assert epoch(on) == before + 2 and len(on.entries()) == 199
    batch(on, "block 203.0.113.300\nblock 198.51.100.1\n", check=False)
    assert epoch(on) == before + 2


def test_packets_follow_together(pair, on):
    one, other = "203.0.113.10", "203.0.113.20"
    on("block", one)
    for _ in range(3):
        batch(on, f"unblock {one}\nblock {other}\n")
        assert pair.free(one, other) == [True, False]
        batch(on, f"block {one}\nunblock {other}\n")
        assert pair.free(one, other) == [False, True]


BAD = """block 203.0.113.7
block 203.0.113.300
blok 203.0.113.8
block 203.0.113.9 --fr 1h
block 203.0.113.9 --note "open
unblock
"""


def test_nothing_changes_if_a_line_is_bad(on):
    done = batch(on, BAD, check=False)
    assert done.returncode == 1 and done.stdout == "" and not on.entries()
    lines = done.stderr.splitlines()
    assert [line.split(": ")[1] for line in lines[:-1]] == [f"standard input, line {n}" for n in range(2, 7)]
    assert "203.0.113.300" in lines[0] and "did you mean 'block'?" in lines[1]
    assert "unknown option '--fr'" in lines[2] and "closing quote" in lines[3] and "missing WHAT" in lines[4]
    assert lines[-1] == "weir: 5 of 6 commands failed; nothing was changed"
    found = on.json("batch", input=BAD, status=1)
    assert [error["line"] for error in found["errors"]] == [2, 3, 4, 5, 6]
    assert found["error"]["text"] == "5 of 6 commands failed; nothing was changed"


@pytest.mark.parametrize("line, status, said", [
    ("weir block 203.0.113.7", 1, "unknown command 'weir' (a line begins with block, allow"),
    ("apply edge.weir", 1, "'apply' is not a command of a batch (the commands are block, allow"),
    ("block 203.0.113.7 -n other", 1, "option '--instance' does not belong on a line (write it before"),
    ("block 203.0.113.7 --live", 1, "a batch cannot have --live (run weir block --live by itself)"),
    ("block 203.0.113.7 -i near0", 1, "a batch cannot have --iface (attach first"),
    ("block 203.0.113.7 --set x", 1, "a batch cannot have --set"),
    ("block 203.0.113.7 --dry-run", 1, "a batch cannot have --dry-run (weir batch --dry-run"),
    ("block -f -", 1, "standard input is the batch itself"),
    ("block -f /nonexistent/list", 1, "/nonexistent/list"),
    ("block 203.0.113.7 --for 1", 1, "'1' is not a time"),
    ("unblock 203.0.113.7 -i near0", 1, "unknown option '-i' (entries apply to all interfaces"),
    ("block 203.0.113.7 \\", 1, "backslash at the end of the line (a command is one line)"),
    ("block 10.77.0.1", 3, "would cut off 10.77.0.1"),
    ("block none.invalid --resolver 10.77.0.2", 1, "none.invalid"),
    ("block name.test --resolver nowhere", 1, "nowhere"),
])
def test_mistakes(on, line, status, said):
    done = batch(on, f"block 198.51.100.1\n{line}\n", check=False)
    assert done.returncode == status and said in done.stderr, done.stderr
    assert done.stderr.startswith("weir: standard input, line 2: ")
    assert "1 of 2 commands failed; nothing was changed" in done.stderr
    assert not on.entries()


@pytest.mark.parametrize("args, text, said", [
    (["bans"], "", "unexpected argument 'bans' (weir batch -f bans reads a file)"),
    (["-f", "/nonexistent/bans"], "", "/nonexistent/bans"),
    ([], "# nothing\n\n", "standard input contains no command (did the program that wrote it fail?)"),
    (["--force"], "block 203.0.113.7", "unknown option '--force' (a line has its own"),
    (["--each", "--dry-run"], "", "--each cannot be combined with --dry-run"),
])
def test_mistakes_of_the_command(on, args, text, said):
    assert said in on.fails(1, "batch", *args, input=text)


def test_errors_of_a_list(on, tmp_path):
    feed = tmp_path / "feed"
    feed.write_text("198.51.100.1\nx y\n198.51.100.999\n")
    done = batch(on, f"block -f {feed}", check=False)
    assert done.returncode == 1 and f"standard input, line 1: {feed}:3: " in done.stderr
    assert "1 of 1 command failed" in done.stderr


def test_an_allowed_address_is_not_guarded(on):
    batch(on, "block 203.0.113.7\nallow 10.77.0.1\n")
    assert set(on.entries()) == {"203.0.113.7", "10.77.0.1"}


def test_a_refusal_while_applying_changes_nothing(on):
    on("block", "-f", "-", "--sync", "feed", input="\n".join(f"203.0.113.{i}" for i in range(10)))
    short = "block 198.51.100.1\nblock 203.0.113.1 --sync feed\n"
    done = batch(on, short, check=False)
    assert done.returncode == 3 and "would shrink from 10 to 1" in done.stderr and "input, line 2: " in done.stderr
    assert len(on.entries()) == 10
    batch(on, short.replace("--sync", "--force --sync"))
    assert set(on.entries()) == {"198.51.100.1", "203.0.113.1"}


def test_what_stays_blocked(on):
    on("block", "203.0.113.0/24", "203.0.113.7")
    done = batch(on, "unblock 203.0.113.8\nblock 198.51.100.1\n", check=False)
    assert done.returncode == 3 and "198.51.100.1" in on.entries()
    assert "standard input, line 1: 203.0.113.8 stays blocked: block from 203.0.113.0/24" in done.stderr
    assert done.stderr.endswith("weir: 1 of 2 commands left an address covered by another entry\n")


def test_dry_run(on):
    on("block", "203.0.113.1")
    done = batch(on, "block 203.0.113.7\nunblock --all\n", "--dry-run")
    assert done.stdout == "2 commands: would have 1 entry added, 0 extended, 2 removed on near0; saved\n"
    assert set(on.entries()) == {"203.0.113.1"}


def test_not_attached(weir):
    done = batch(weir, "block 203.0.113.7\n", check=False)
    assert done.returncode == 1 and "not attached" in done.stderr


def test_names_of_all_lines_in_parallel(on, dns):
    names = [f"n{i}.test" for i in range(40)]
    for i, name in enumerate(names):
        dns(name, f"198.51.100.{i}")
    lines = [f"block {name} {names[-1]} --resolver 10.77.0.2" for name in names]
    batch(on, "\n".join(lines + ["block blocked.lab --resolver 10.77.0.2:53"]))
    entries = on.entries()
    assert len(entries) == 42 and entries["198.51.100.3"]["holders"][0]["name"] == "n3.test"
    done = batch(on, "\n".join(lines + ["block gone.invalid --resolver 10.77.0.2"]), check=False)
    assert done.returncode == 1 and "standard input, line 41: 'gone.invalid'" in done.stderr
    assert done.stderr.count("\n") == 2


def test_ten_thousand_lines(weir):
    weir("attach", "near0", "--max-entries", "16384")
    text = "".join(f"block 10.{i >> 8}.{i & 255}.1 --for {i + 60}s\n" for i in range(10000))
    begin = time.monotonic()
    batch(weir, text)
    took = time.monotonic() - begin
    assert len(weir.entries()) == 10000
    begin = time.monotonic()
    batch(weir, text.replace("block", "unblock").replace(" --for", " # "))
    assert not weir.entries()
    assert max(took, time.monotonic() - begin) < 5  # on a busy machine


# --each


class Feeder:
    """weir batch --each with its pipe open."""

    def __init__(self, weir, *options):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            weir.argv(*options, "batch", "--each"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def end(self):
        rest, errors = self.process.communicate(timeout=10)
        return self.process.returncode, rest, errors


def test_each_line_is_answered_and_in_effect(pair, on):
    feeder = Feeder(on)
    assert pair.free("203.0.113.7") == [True]
    assert feeder.ask("block 203.0.113.7 --note 'it is bad'") == "ok blocked packets from 203.0.113.7 on near0\n"
    assert pair.free("203.0.113.7") == [False]
    on("block", "203.0.113.8")  # no lock is held between lines
    feeder.process.stdin.write("# a comment\n\n")
    assert feeder.ask("blok 203.0.113.9") == "error unknown command 'blok' (did you mean 'block'?)\n"
    assert feeder.ask("unblock 203.0.113.7") == "ok unblocked 203.0.113.7 on near0\n"
    assert pair.free("203.0.113.7", "203.0.113.8") == [True, False]
    assert feeder.ask("block 10.77.0.1").startswith("error blocking 10.77.0.1 would cut off")
    assert feeder.end() == (1, "", "weir: 2 of 4 commands failed\n")


def test_each_in_json(on):
    feeder = Feeder(on, "-j")
    first = json.loads(feeder.ask("block 203.0.113.7"), object_pairs_hook=unique)
    assert (first["line"], first["command"], first["added"], first["interfaces"]) == (1, "block", 1, ["near0"])
    second = json.loads(feeder.ask("block 203.0.113.300"))
    assert second["line"] == 2 and "203.0.113.300" in second["error"]["text"]
    status, rest, _ = feeder.end()
    last = json.loads(rest, object_pairs_hook=unique)
    assert status == 1 and last["end"] and (last["commands"], last["failed"]) == (2, 1)
    assert last["error"]["text"] == "1 of 2 commands failed"


def test_each_says_what_has_no_effect(on):
    on("block", "203.0.113.0/24")
    feeder = Feeder(on)
    assert feeder.ask("unblock 203.0.113.7").startswith("error 203.0.113.7 stays blocked")
    on.cut()
    assert "not attached to near0" in feeder.ask("block 203.0.113.9")
    assert feeder.end()[0] == 3


def test_each_ends_with_its_reader(on):
    done = run(["sh", "-c", "yes 'block 203.0.113.7' | head -2000 | \"$@\" | head -1", "sh",
                *on.argv("batch", "--each")])
    assert done.stdout.startswith("ok blocked") and done.stdout.count("\n") == 1


def commits(weir):
    return (weir.state / "overlay").read_text(encoding="utf-8").count("\nchange bytes")


def each_at_once(weir, *lines, status=0):
    """The answers to lines that wait when the command looks for them."""
    done = weir("-j", "batch", "--each", input="".join(f"{line}\n" for line in lines), check=False)
    assert done.returncode == status, done.stderr
    answers = [json.loads(line, object_pairs_hook=unique) for line in done.stdout.splitlines()]
    assert [answer["line"] for answer in answers[:-1]] == list(range(1, len(lines) + 1))
    return answers[:-1]


def test_lines_for_themselves_do_not_keep_the_instance_open(on):
    """A line for an origin is not applied together with others, and an instance has 20 descriptors and more."""
    lines = "".join(f"unblock --origin jail{n}\n" for n in range(30))
    done = run(["prlimit", "--nofile=200", *on.argv("batch", "--each")], input=lines, check=False)
    assert done.returncode == 0 and done.stdout.count("ok ") == 30, done.stdout[-500:]



def test_lines_that_wait_share_a_commit(pair, on):
    on("block", "203.0.113.1")
    before = commits(on)
    answers = each_at_once(on, *(f"block 198.51.100.{n}" for n in range(1, 51)), "block 10.77.0.1 --origin x",
                           "unblock 198.51.100.50", "block 198.51.100.50 --to", "blok", "block 198.51.100.51", status=3)
    assert [n for n, answer in enumerate(answers) if "error" in answer] == [50, 53]
    assert [answer["status"] for answer in answers[49:]] == [0, 3, 0, 0, 1, 0]
    assert "would cut off" in answers[50]["error"]["text"] and answers[51]["removed"] == 1
    assert commits(on) - before <= 3
    assert len(kinds(on)) == 52 and ("198.51.100.50", "block-to") in kinds(on)
    assert pair.free("198.51.100.1", "198.51.100.50", "198.51.100.51") == [False, True, False]


def test_a_line_without_room_leaves_the_others_theirs(weir):
    weir("attach", "near0", "--max-entries", "10")
    answers = each_at_once(weir, *(f"block 198.51.100.{n}" for n in range(1, 15)), "unblock 198.51.100.1", "block 203.0.113.1",
                           status=3)
    assert [answer["status"] for answer in answers] == [0] * 10 + [3] * 4 + [0, 0]
    assert "limit of 10" in answers[10]["error"]["text"]
    assert set(weir.entries()) == {f"198.51.100.{n}" for n in range(2, 11)} | {"203.0.113.1"}


def test_a_volatile_line_among_others_without_a_disk(on):
    on("block", "203.0.113.1")
    file = on.state / "overlay"
    run(["chattr", "+i", file], check=False)
    if run(["sh", "-c", f"echo >> {file}"], check=False).returncode == 0:
        pytest.skip("the file system has no immutable files")
    try:
        answers = each_at_once(on, "block 203.0.113.2", "block 203.0.113.3 --volatile", status=2)
    finally:
        run(["chattr", "-i", file])
    assert [answer["status"] for answer in answers] == [2, 0]
    assert set(on.entries()) == {"203.0.113.1", "203.0.113.3"}


def test_a_last_line_without_an_end(on):
    done = on("batch", "--each", input="block 203.0.113.7\nblock 203.0.113.8")
    assert done.stdout.count("ok blocked") == 2 and set(on.entries()) == {"203.0.113.7", "203.0.113.8"}
