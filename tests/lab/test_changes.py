# SPDX-License-Identifier: GPL-2.0-only
"""weir changes: who changed what, for each kind of command; two writers, damage, a full disk."""

import concurrent.futures
import contextlib
import json
import threading
import time

from apiclient import Api

from labnet import run, until
from policylab import Policies


def listed(on, *words):
    return [(one["verb"], one["result"]) for one in on.json("changes", *words)["changes"]]


def test_each_command_is_one_line(on, tmp_path):
    apply = Policies(on, tmp_path)
    before = len(listed(on))
    on("block", "203.0.113.9", "203.0.113.10", "--origin", "guard")
    on("allow", "203.0.113.11")
    on("unblock", "203.0.113.9", "--origin", "guard")
    on("rule", "add", "drop proto udp to any port 9")
    on("rule", "list")  # changes nothing
    on("list")
    on("block", "203.0.113.12", "--dry-run", check=False)
    apply('"nine" drop proto udp to port 9')
    apply('"ten" drop proto udp to port 10', "--dry-run")
    on("bypass", "--for", "2s")
    on("bypass", "--off")
    assert listed(on)[before:] == [(verb, "done") for verb in
                                   ("block", "allow", "unblock", "rule", "apply", "bypass", "bypass")]
    block = on.json("changes")["changes"][before]
    assert (block["added"], block["origin"], block["by"][:4], block["uid"]) == (2, "guard", "root", 0)
    assert "block 203.0.113.9 203.0.113.10" in block["command"]


def test_an_attached_interface_is_no_change(on):
    before = len(listed(on))
    on("attach", on.pair.near_device)
    on.fails(1, "attach", "none0")
    assert [verb for verb, _ in listed(on)[before:]] in ([], ["attach"])
    assert ("attach", "done") not in listed(on)[before:]


def test_a_port_makes_a_change_of_rules(on):
    before = len(listed(on))
    on("block", "192.0.2.7", "port", "22")
    on("unblock", "192.0.2.7", "port", "22")
    on("unblock", "192.0.2.7", "port", "22")  # changes nothing
    assert listed(on)[before:] == [("block", "done"), ("unblock", "done")]
    assert "block 192.0.2.7 port 22" in on.json("changes")["changes"][before]["command"]


def test_a_refusal_has_its_reason(on):
    on("block", "127.0.0.1", check=False)
    on.fails(3, "block", "0.0.0.0/0")
    refused = on.json("changes")["changes"][-1]
    assert (refused["verb"], refused["result"]) == ("block", "refused") and refused["text"]


def test_since_by_and_wrong_values(on):
    on("block", "203.0.113.9", "--origin", "guard")
    on("block", "203.0.113.10", "--origin", "other")
    assert listed(on, "--by", "guard") == [("block", "done")]
    assert len(listed(on, "--by", "root")) == len(listed(on, "--by", "roo*")) == len(listed(on)) > 1
    assert not listed(on, "--by", "roo") and not listed(on, "--by", "someone-else")
    time.sleep(1.1)
    assert not listed(on, "--since", "1s") and listed(on, "--since", "1h")
    assert "--since 'soon' is not a time" in on.fails(1, "changes", "--since", "soon")


def test_what_changes_nothing_is_no_change(on):
    on("block", "203.0.113.9")
    before = listed(on)
    on("block", "203.0.113.9")
    on("unblock", "203.0.113.10", check=False)
    assert listed(on) == before


def test_a_failure_after_the_commit_has_a_line(on):
    on("block", "203.0.113.0/24", "203.0.113.9")
    before = len(listed(on))
    on.fails(3, "unblock", "203.0.113.9")
    done, failed = on.json("changes")["changes"][before:]
    assert (done["result"], done["removed"], failed["result"]) == ("done", 1, "failed")
    assert failed["text"].startswith("after the change: ") and "203.0.113.0/24" in failed["text"]


def test_forget_keeps_the_record(on):
    on("block", "203.0.113.9")
    on("detach")
    on("forget", "--all")
    assert {path.name for path in on.state.iterdir()} == {"changes", "changes.entries"}
    assert listed(on)[-2:] == [("detach", "done"), ("forget", "done")]
    on("forget", "--all")
    assert listed(on)[-1] == ("forget", "done") and len([one for one in listed(on) if one[0] == "forget"]) == 1


def test_secrets_are_not_stored(on):
    on("block", "--file", "http://user:secret@127.0.0.1:9/list?key=secret", "--sync", "feed", check=False)
    for path in on.state.glob("changes*"):
        assert "secret" not in path.read_text(encoding="ascii")


def test_one_origin_within_a_second_is_one_line(on):
    with on.state.joinpath("changes.entries").open("a", encoding="ascii") as file:
        for n in range(3):
            file.write(json.dumps({"n": n + 1, "at_ms": 1790000000000 + n, "verb": "block", "by": "x", "origin": "o",
                                   "result": "done", "added": 2, "removed": 0}) + "\n")
    first = on.json("changes")["changes"][0]
    assert (first["changes"], first["added"]) == (3, 6)


def test_damage_is_skipped_and_counted(on):
    on("block", "203.0.113.9")
    path = on.state / "changes.entries"
    path.write_bytes(path.read_bytes() + b'foreign\n\0\0\n{"n":7,"at_ms":1,"verb":"a\\u001b[31m\\nb"}\n{"n":8,"at')
    on("block", "203.0.113.10")
    document = on.json("changes")
    assert document["damaged"] == 3
    assert [one.get("command", "") for one in document["changes"]][-1].endswith("block 203.0.113.10")
    assert document["changes"][0]["verb"] == "a?[31m?b"
    assert "\x1b" not in on("changes").stdout


def test_two_writers_mix_no_lines(on):
    before = len(listed(on))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: on("block", f"203.0.113.{n}"), range(20, 60)))
    document = on.json("changes")
    assert (len(document["changes"]) - before, document["damaged"], document["lost"]) == (40, 0, 0)


def test_the_file_is_bounded(on):
    path = on.state / "changes.entries"
    line = '{"n":10000,"at_ms":1790000000000,"verb":"block","by":"x","result":"done"}\n'
    path.write_text(line)
    on("block", "203.0.113.9")
    assert (on.state / "changes.entries.old").read_text() == line
    assert path.read_text().count("\n") == 1 and path.read_text().startswith('{"n":1,')


def test_a_record_that_fails_is_counted(on):
    run(["rm", "-f", str(on.state / "changes.entries")])
    (on.state / "changes.entries").mkdir()
    on("block", "203.0.113.9")
    assert "203.0.113.9" in on.entries()
    (on.state / "changes.entries").rmdir()
    document = on.json("changes")
    assert document["lost"] == 1
    assert "1 change could not be recorded" in on("changes").stderr


def test_the_agents_own_work_is_recorded(on):
    on.run()
    on("block", "203.0.113.9", "203.0.113.10", "--for", "1s")
    until(lambda: listed(on, "--by", "agent (entries)") == [("expire", "done")])
    assert on.json("changes", "--by", "agent (entries)")["changes"][0]["removed"] == 2


def test_what_the_agent_applies_is_recorded(on, tmp_path):
    policy = Policies(on, tmp_path)
    on.run(policy.write('"nine" drop proto udp to port 9'))
    assert listed(on, "--by", "agent (file)") == [("apply", "done")]
    policy.write('"ten" drop proto udp to port 10')
    until(lambda: listed(on, "--by", "agent (file)") == [("apply", "done")] * 2)


def test_a_trial_that_ends_is_recorded(on, tmp_path):
    apply = Policies(on, tmp_path)
    on.run()
    apply('"nine" drop proto udp to port 9', "--confirm=1s")
    until(lambda: listed(on, "--by", "agent (trials)") == [("trial", "done")])
    assert "active again" in on.json("changes", "--by", "agent (trials)")["changes"][0]["text"]


def test_follow_prints_new_changes_through_a_rename(on):
    on("block", "203.0.113.9")
    reader = on.start("-j", "changes", "--follow")
    lines = []
    threading.Thread(target=lambda: lines.extend(reader.stdout), daemon=True).start()
    until(lambda: any("203.0.113.9" in line for line in lines))
    (on.state / "changes.entries").rename(on.state / "changes.entries.old")
    on("block", "203.0.113.10")
    on("allow", "203.0.113.11")
    until(lambda: any("203.0.113.11" in line for line in lines))
    reader.terminate()
    assert reader.wait(10) == 0
    commands = [json.loads(line).get("command", "") for line in lines]
    assert sum("203.0.113.10" in one for one in commands) == 1 and json.loads(lines[-1])["end"]


def test_a_full_disk_refuses_nothing(on, tmp_path):
    """Changes that need no room are made; their records soon have none, which is counted."""
    run(["cp", "-a", on.state, tmp_path / "copy"])
    run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", on.state])
    try:
        run(["cp", "-a", f"{tmp_path}/copy/.", on.state])
        with contextlib.suppress(OSError), open(on.state / "filler", "wb", buffering=0) as filler:
            while filler.write(b"x" * 512):
                pass
        addresses = [f"203.0.113.{n}" for n in range(1, 41)]
        for address in addresses:  # more lines than a page has room for
            on("block", address, "--volatile")
        assert set(addresses) <= set(on.entries())
        document = on.json("changes")
        assert document["lost"] > 0 and document["damaged"] == 0
        assert len([one for one in document["changes"] if "--volatile" in one["command"]]) == 40 - document["lost"]
        assert on.json("status", status=2)["changes_lost"] == document["lost"]
        assert f"{document['lost']} changes that could not be recorded" in on("status", check=False).stdout
        (on.state / "filler").unlink()
        on("block", "203.0.113.77")
        assert listed(on)[-1] == ("block", "done")
    finally:
        run(["umount", on.state])


def test_kinds_of_commands(on, tmp_path):
    """Those that change the policy, a trial or interfaces."""
    apply = Policies(on, tmp_path)
    apply('"nine" drop proto udp to port 9')
    before = len(listed(on))
    apply('"ten" drop proto udp to port 10', "--confirm=60s")
    on("confirm")
    apply('"nine" drop proto udp to port 9', "--confirm=60s")
    on("rollback")
    on("detach", "near0")
    on("attach", "near0")
    (tmp_path / "list").write_text("203.0.113.1\n203.0.113.2\n", encoding="ascii")
    on("block", "-f", tmp_path / "list", "--sync", "drop")
    assert listed(on)[before:] == [(verb, "done") for verb in
                                   ("apply", "confirm", "apply", "rollback", "detach", "attach", "block")]
    sync = on.json("changes")["changes"][-1]
    assert (sync["list"], sync["added"]) == ("drop", 2)


def test_bans_through_the_api_name_their_client(on):
    """A process of the agent makes them together; each has its client, and a refusal its reason."""
    on.run()
    api = Api(on.name)
    before = len(listed(on))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: api("POST", "/v1/block", {"what": f"203.0.113.{n}"})[0], range(20, 40)))
    assert answers == [200] * 20
    assert api("POST", "/v1/block", {"what": "0.0.0.0/0", "origin": "guard"})[0] == 409
    changes = on.json("changes")["changes"][before:]
    assert {one["by"] for one in changes} == {"agent (api, python3)"}, changes
    assert sum(one["added"] for one in changes) == 20 and sum(one["changes"] for one in changes) == 21
    assert changes[0]["command"].startswith("block ") and "203.0.113." in changes[0]["command"]
    assert (changes[-1]["result"], changes[-1]["verb"], changes[-1]["origin"]) == ("refused", "block", "guard")
    assert "0.0.0.0/0" in changes[-1]["command"] and changes[-1]["text"]
    assert on.entries()["203.0.113.20"]["holders"][0]["by"] == "agent (api, python3)"
    status, document = api("GET", "/v1/changes?by=guard")
    assert status == 200 and [one["result"] for one in document["changes"]] == ["refused"]


def test_lines_of_a_batch_that_are_answered_each(on):
    """Also where one of those that are applied together is refused."""
    before = len(listed(on))
    lines = "block 203.0.113.9 --origin a\nblock 0.0.0.0/0\nblock 203.0.113.10 --origin b\nblock 203.0.113.11 --origin a\n"
    on("batch", "--each", input=lines, check=False)
    changes = on.json("changes")["changes"][before:]
    assert {"203.0.113.9", "203.0.113.10", "203.0.113.11"} <= set(on.entries())
    assert sorted((one["origin"], one["result"], one["added"]) for one in changes) == [
        ("", "refused", 0), ("a", "done", 2), ("b", "done", 1)]
    assert changes[0]["by"].startswith("root (")


def test_one_command_with_lines_of_two_origins(on):
    before = len(listed(on))
    on("batch", input="block 203.0.113.9 --origin a\nblock 203.0.113.10 --origin b\nunblock 203.0.113.9 --origin a\n")
    changes = on.json("changes")["changes"][before:]
    assert [(one["verb"], one["origin"]) for one in changes] == [("block", "a"), ("block", "b"), ("unblock", "a")]


def test_follow_repeats_no_combined_change(on):
    for n in range(3):
        on("block", f"203.0.113.{n + 1}", "--origin", "guard")
    reader = on.start("-j", "changes", "--follow")
    lines = []
    threading.Thread(target=lambda: lines.extend(reader.stdout), daemon=True).start()
    until(lambda: lines)
    on("allow", "203.0.113.77")
    until(lambda: any("203.0.113.77" in line for line in lines))
    reader.terminate()
    assert reader.wait(10) == 0
    of_guard = [one for one in map(json.loads, lines) if one.get("origin") == "guard"]
    assert sum(one["changes"] for one in of_guard) == sum(one["added"] for one in of_guard) == 3


def test_the_page_reads_the_end_of_a_long_record(on):
    """Not the whole of it each time: measured in bytes that are read."""
    with on.state.joinpath("changes").open("a", encoding="ascii") as file:
        for n in range(50000):
            file.write(json.dumps({"n": n + 1, "at_ms": 1790000000000 + n, "verb": "apply", "command": "apply edge.weir",
                                   "by": "x", "result": "done"}) + "\n")
    log = on.state / "log"
    run(["strace", "-o", str(log), "-e", "trace=pread64", *on.argv("-j", "changes", "--last", "12")])
    read = sum(int(line.rsplit("= ", 1)[1]) for line in log.read_text().splitlines() if "pread64" in line)
    assert 12 * 80 < read < 65536, read
    assert len(on.json("changes", "--last", "12")["changes"]) == 12
