# SPDX-License-Identifier: GPL-2.0-only
"""The command line: help, JSON, exit status and suggestions, for every command."""

import json
import os
import pathlib
import re

import pytest

from labnet import ROOT, WEIR, plain, run

GLOBAL = {"geo", "instance", "netns", "json", "pretty", "color", "quiet", "verbose", "version", "help"}
ADD = {"file", "url", "every", "ca", "wide", "mask", "to", "both", "for", "note", "origin", "group", "sync", "set", "iface", "mode", "live", "out", "out-only", "errno", "all-namespaces",
       "resolver", "resolver-timeout", "keep-going", "volatile", "force", "dry-run"}
TAKE = {"file", "wide", "mask", "to", "both", "out", "out-only", "origin", "sync", "set", "all", "volatile", "dry-run"}
NAMES = {"resolver", "resolver-timeout"}
SWITCH = {"confirm", "note", "if-revision", "iface", "volatile", "force", "dry-run"} | NAMES
POOL = {"all", "volatile", "dry-run"}
RULESET = str(pathlib.Path(__file__).parent / "rulesets" / "fail2ban.nft")
OPTIONS = {
    "block": ADD, "unblock": TAKE, "allow": ADD, "unallow": TAKE,
    "list": {"plain", "set", "blocked", "allowed", "out", "wide", "origin", "list", "sort", "top"},
    "batch": {"file", "each", "dry-run"},
    "rule": {"for", "note", "name", "first", "before", "origin", "all", "force", "dry-run"}, "refresh": {"file", "list", "entries", "policy", "places"} | NAMES,
    "attach": {"confirm", "force", "max-entries", "mode"}, "detach": {"force"}, "restore": NAMES,
    "forget": {"policy", "entries", "all", "agent", "dry-run"},
    "check": {"iface", "dump", "offline"} | NAMES, "apply": SWITCH | {"as", "offline", "again", "unattended"}, "confirm": set(), "rollback": SWITCH,
    "diff": {"revision", "offline"} | NAMES, "show": {"all"}, "history": {"wide"}, "changes": {"follow", "last", "since", "by", "wide"},
    "import": {"iface", "forward", "strict", "ipv4", "ipv6", "set", "column"},
    "service": {"refresh", "tidy", "wide"}, "drain": {"wait", "for"} | POOL, "undrain": POOL, "weight": POOL,
    "backend": POOL,
    "explain": {"policy", "hex", "pcap", "packet", "on", "over", "established", "unroutable"} | NAMES,
    "status": {"all", "limits", "wide"}, "stats": {"interfaces", "all", "wide"}, "metrics": set(), "top": {"count", "batch", "every", "top", "all", "by", "for", "read", "wide"}, "page": {"port", "for", "document"},
    "watch": {"count", "out", "since", "wide"},
    "capture": {"write", "interface", "snap", "rule", "reason", "drops", "service", "count", "for", "rate", "file-size", "files", "force"},
    "bypass": {"for", "off"}, "doctor": {"drivers", "wide"}, "decap": {"from", "forward", "port", "mode", "off"},
    "run": {"events", "force", "hook", "keep-drops", "metrics", "no-history", "page-group"} | NAMES,
}


def weir_alone(*args):
    return run([WEIR, *args], check=False)


def options_in(text):
    return set(re.findall(r"^ +(?:-\w, )?--([\w-]+)", text, re.MULTILINE))


# Help


def test_help_names_every_command():
    done = weir_alone("help")
    assert done.returncode == 0 and done.stderr == ""
    named = re.findall(r"^  ([a-z]+) ", done.stdout, re.MULTILINE)
    assert named[0] == "block" and named[-1] == "help" and sorted(named[:-1]) == sorted(OPTIONS)
    alone = weir_alone()
    assert (alone.returncode, alone.stdout, alone.stderr) == (1, done.stdout, "weir: missing command\n")
    assert options_in(done.stdout) == GLOBAL
    assert weir_alone("--help").stdout == weir_alone("-h").stdout == done.stdout
    assert weir_alone("help", "help").stdout == done.stdout


@pytest.mark.parametrize("command", OPTIONS)
def test_help_of_a_command(command):
    done = weir_alone(command, "--help")
    assert done.returncode == 0 and done.stderr == ""
    assert re.match(rf"usage: weir \[GLOBAL OPTIONS\] {command}\b", done.stdout)
    assert options_in(done.stdout) == OPTIONS[command] | GLOBAL
    assert max(len(line) for line in done.stdout.splitlines()) <= 100
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())
    helps = [match.end() for match in re.finditer(r"^  .{4}--[a-z-]+(?:\S| \S+)*  +(?=\S)", done.stdout, re.MULTILINE)]
    assert {end - done.stdout.rfind("\n", 0, end) - 1 for end in helps} == {26}
    for same in ["help", command], [command, "-h"], ["-h", command], [command, "x", "y", "--help"]:
        assert weir_alone(*same).stdout == done.stdout


@pytest.mark.parametrize("words", [["-V"], ["--version"], ["-V", "list"]])
def test_version(words):
    done = weir_alone(*words)
    assert re.fullmatch(r"weir \d+\.\S+\n", done.stdout) and done.returncode == 0


@pytest.mark.parametrize("words", [["-j", "-V"], ["-V", "-j"], ["-V", "list", "--json"], ["list", "-jV"]])
def test_version_is_a_document_too(words):
    done = weir_alone(*words)
    assert done.returncode == 0 and set(plain(json.loads(done.stdout))) == {"version"}


def test_help_is_a_document_too():
    def document(*words):
        done = weir_alone(*words)
        assert done.returncode == 0 and done.stderr == ""
        found = json.loads(done.stdout)
        plain(found)
        return found

    overview = document("-j", "help")
    assert sorted(one["name"] for one in overview["commands"]) == sorted(OPTIONS)
    groups = {}
    for part in weir_alone("help").stdout.split("\n\n"):
        title, *lines = part.splitlines()
        groups.update({line.split()[0]: title.removesuffix(":") for line in lines if line[:2] == "  "})
    assert all(one["group"] == groups[one["name"]] for one in overview["commands"])
    assert len({one["group"] for one in overview["commands"]}) == 6
    assert {one["name"] for one in overview["global_options"]} == GLOBAL
    for command, options in OPTIONS.items():
        for words in ["help", command, "-j"], [command, "-p", "--help"]:
            found = document(*words)
            assert (found["command"], {one["name"] for one in found["options"]}) == (command, options)
    assert document("--help", "-j") == overview


# JSON: exactly one document. Weir.json fails on none or more than one.


@pytest.mark.parametrize(
    "words",
    [["attach", "near0"], ["block", "203.0.113.1"], ["block", "--dry-run", "blocked.lab"], ["block", "--out", "203.0.113.1"], ["list", "--out"],
     ["unblock", "203.0.113.1"], ["allow", "203.0.113.1"], ["unallow", "203.0.113.1"], ["list"],
     ["list", "--plain"], ["rule", "add", "drop to any port 9"], ["rule", "list"], ["rule", "delete", "--all"], ["explain", "203.0.113.1"], ["status"], ["status", "--limits"], ["stats"],
     ["stats", "--interfaces"], ["bypass"], ["bypass", "--off"], ["doctor"], ["doctor", "near0"], ["doctor", "--drivers"],
     ["detach", "near0"], ["detach"], ["detach", "--force"], ["-p", "list"], ["-q", "list"], ["decap"],
     ["import", "nft", RULESET]],
    ids=" ".join,
)
def test_json_of_success(on, words):
    on("block", "203.0.113.9", "198.51.100.0/24", "--for", "1h", "--note", "it's a \\ note")
    document = on.json(*words)
    assert isinstance(document, dict) and document and "error" not in document


@pytest.mark.parametrize(
    "command", sorted(OPTIONS.keys() - {"attach", "detach", "doctor", "history", "changes", "decap", "forget", "run"}))
def test_json_without_an_instance(weir, command):
    words = ["192.0.2.1"] if command.endswith(("block", "allow", "explain")) else []
    assert "error" in weir.json(command, *words, status=1)
    assert "error" not in weir.json("detach")
    assert not weir.bpffs.exists()


FAILURES = [
    (["block"], 1, "missing WHAT to block"), (["unblock"], 1, "missing WHAT to unblock"), (["allow"], 1, "missing WHAT to allow"),
    (["rule"], 1, "missing 'add', 'list' or 'delete'"), (["rule", "remove"], 1, "'remove' is neither 'add', 'list' nor 'delete'"),
    (["rule", "delete", "7"], 1, "no quick rule '7'"), (["rule", "add", "--for", "soon", "drop"], 1, "'soon'"),
    (["attach"], 1, "missing interface"), (["explain"], 1, "missing address or packet"),
    (["explain", "blocked.lab"], 1, "not an address"), (["stats", "more"], 1, "unexpected argument 'more'"),
    (["list", "more"], 1, "no entry for 'more'"),
    (["block", "1.2.3"], 1, "'1.2.3'"), (["block", "nothing.lab"], 1, "no such name"),
    (["block", "--for", "soon", "192.0.2.1"], 1, "'soon'"),
    (["block", "--for", "0s", "192.0.2.1"], 1, "'0s'"),
    (["block", "--to", "--both", "192.0.2.1"], 1, "mutually exclusive"),
    (["block", "--out", "--both", "192.0.2.1"], 1, "--out cannot be combined with --both"),
    (["block", "--out-only", "--live", "192.0.2.1"], 1, "--out cannot be combined with --live"),
    (["block", "--errno", "refused", "192.0.2.1"], 1, "--errno requires --out"),
    (["block", "--out", "--errno", "lost", "192.0.2.1"], 1, "'lost': denied, refused or unreachable"),
    (["allow", "--out", "--errno", "refused", "192.0.2.1"], 1, "--errno requires weir block --out"),
    (["block", "--out", "192.0.2.1", "port", "80"], 1, "--out cannot be combined with a port"),
    (["block", "--out", "127.0.0.0/8"], 3, "cut off this host from itself"),
    (["block", "--origin", "a\tb", "192.0.2.1"], 1, "control character"),
    (["block", "--origin", "x" * 256, "192.0.2.1"], 1, "longer than"),
    (["block", "-f", "/nonexistent"], 1, "'/nonexistent'"), (["block", "-f", "/"], 1, "folder"),
    (["block", "-f", "-"], 1, "standard input contains no address"),
    (["block", "--sync", "x"], 1, "missing WHAT to block"), (["allow", "--sync", "x"], 1, "missing WHAT to allow"),
    (["block", "2001:db8::g"], 1, "'2001:db8::g' is not an IPv6 address"),
    (["block", "x.lab", "--resolver", "192.0.2.1,nowhere"], 1, "'nowhere' is not the address of a name serverwrite 192.0.2.53"),
    (["rule", "list", "--for", "1h"], 1, "'list' has no option --for"),
    (["rule", "delete", "1", "--for", "1h"], 1, "'delete' has no option --for"),
    (["rule", "add", "drop from 192.0.2.1", "--all"], 1, "'add' has no option --all"),
    (["import"], 1, "missing form: nft, iptables"), (["import", "nft"], 1, "missing file, or - for standard input"),
    (["unblock", "--all", "192.0.2.1"], 1, "--all can be combined with"),
    (["allow", "1.2.3.4:80"], 1, "write 1.2.3.4; a port needs a rule: weir rule add … from 1.2.3.4 to any port 80"),
    (["allow", "[2001:db8::1]:80"], 1, "write 2001:db8::1; a port needs a rule"),
    (["block", "1.2.3.4:80", "--sync", "x"], 1, "--sync cannot be combined with a port"),
    (["block", "22"], 1, "'22' is not an addressa port: weir block port 22, or weir block 22/tcp"),
    (["unblock", "192.0.2.1", "22"], 1, "'22' is not an addressa port: weir unblock port 22, or weir unblock 22/tcp"),
    (["block", "22/sctp"], 1, "'22/sctp' is not an addressa port: weir block proto sctp port 22"),
    (["block", "ssh/udp"], 1, "'ssh/udp': the service 'ssh' has no port of udpweir block ssh, or weir block 22/udp"),
    (["block", "22/icmp"], 1, "'22/icmp' is not an addressrules have ports of tcp, udp and sctp only"),
    (["block", "22/24"], 1, "'22/24' is not an address"),
    (["block", "65536"], 1, "'65536' is not an address (an IPv4 address has four parts"),
    (["block", "1.2.3.4:"], 1, "'1.2.3.4:'"), (["block", "1.2.3.4", "port"], 1, "the value after 'port' is missing"),
    (["block", "2001:db8::1%eth0"], 1, "an entry applies to all interfaces of the instance: write 2001:db8::1"),
    (["block", "https://example.org/x"], 1, "is a URL (write only its host name)"),
    (["block", "example.org:443"], 1, "an entry matches all of its addresses: write example.org"),
    (["block", "1.2.3.4,", "1.2.3.5"], 1, "ends in a comma"),
    (["block", "1.2.3.4,5.6.7.8"], 1, "contains a comma (separate items with blanks)"),
    (["block", "AS13335"], 1, "'AS13335' is an autonomous system (write asn 13335)"),
    (["block", "1.2.3.4", "for", "10m"], 1, "unexpected 'for' (write --for 10m)"),
    (["allow", "1.2.3.4", "port", "80"], 1, "a port needs a rule: weir rule add … from 1.2.3.4 to any port 80"),
    (["block", "blocked.lab", "proto", "tcp"], 1, "a proto needs a rule: weir rule add … from blocked.lab proto tcp"),
    (["block", "1.2.3.4", "note", "abuse"], 1, "unexpected 'note' (write --note abuse)"),
    (["block", "1.2.3.4", "both"], 1, "unexpected 'both' (write --both)"),
    (["block", "near0", "1.2.3.4"], 1, "'near0' is an interface: write -i near0"),
    (["block", "1.2.3.4", "--timeout", "10m"], 1, "unknown option '--timeout'--for TIME lets the entries expire"),
    (["block", "1.2.3.4", "-t", "10m"], 1, "unknown option '-t'--for TIME lets the entries expire"),
    (["block", "1.2.3.4", "--comment=x"], 1, "--note TEXT records a reason"),
    (["allow", "1.2.3.4", "--reason", "x"], 1, "--note TEXT records a reason"),
    (["unblock", "all"], 1, "'all' is not an addressweir unblock --all removes all entries"),
    (["unallow", "all"], 1, "weir unallow --all removes all entries"),
    (["unblock", "-i", "near0"], 1, "weir detach IFACE detaches one"),
    (["unblock", "--iface=near0"], 1, "weir detach IFACE detaches one"),
    (["list", "-x"], 1, "weir help list lists the options"),
    (["attach", "near0", "--mode", "quick"], 1, "'quick'"),
    (["attach", "near0", "--max-entries", "0"], 1, "'0'"), (["attach", "nope0"], 1, "'nope0'"),
    (["attach", "lo"], 3, "loopback"), (["block", "10.77.0.2"], 3, "would cut off"),
    (["block", "blocked.lab", "--resolver", "10.99.0.1", "--resolver-timeout", "50ms"], 2, "in time"),
    (["block", "blocked.lab", "--resolver", "near.lab"], 1, "near.lab"),
    (["bypass", "nope0"], 1, "'nope0'"), (["watch", "-c", "x"], 1, "'x'"),
    (["watch", "-c", "0"], 1, "'0' is not a count of 1 or more"),
    (["attach", "near0", "--confirm", "5s"], 1, "write --confirm=5s"),
    (["drain", "--wait", "10s", "192.0.2.1"], 1, "write --wait=10s"),
    (["doctor", "nope0"], 1, "'nope0'"),
]


@pytest.mark.parametrize("words, status, said", FAILURES, ids=lambda value: str(value)[:40])
def test_failures_in_json_and_in_words(on, words, status, said):
    before = on.json("list")
    document = on.json(*words, status=status, input="")
    text = document["error"]["text"] + (document["error"]["hint"] or "")
    assert said in text
    line = on.fails(status, *words, input="")
    assert document["error"]["text"] in line
    assert on.json("list")["entries"] == before["entries"]


@pytest.mark.parametrize(
    "words",
    [[], ["blok"], ["block", "--bad"], ["-n", "bad/name", "list"], ["-N", "no-such-netns", "list"],
     ["block", "--for"], ["help", "blok"]],
    ids=" ".join,
)
def test_mistakes_before_the_command_are_a_document_too(words):
    done = weir_alone("-j", *words)
    assert done.returncode == 1
    assert list(plain(json.loads(done.stdout))) == ["error"]


def test_unblock_of_the_covered_is_a_document_with_its_result(on):
    on("block", "198.51.100.0/24", "198.51.100.7")
    document = on.json("unblock", "198.51.100.7", status=3)
    assert document["removed"] == 1 and "stays blocked" in document["error"]["text"]


def test_times_are_rfc_3339(on):
    on("block", "192.0.2.1", "--for", "1h")
    holder = on.entries()["192.0.2.1"]["holders"][0]
    for key in "since", "until":
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d", holder[key])


# Names and suggestions


@pytest.mark.parametrize(
    "name", ["bad/name", "../x", "", ".", "0a", "-x", "a b", "x" * 32, "main+new", "ü"]
)
def test_bad_instance_names(name):
    for words in ["-n", name, "list"], [f"--instance={name}", "attach", "near0"]:
        done = weir_alone(*words)
        assert done.returncode == 1 and "is not an instance name" in done.stderr


@pytest.mark.parametrize(
    "words, hint",
    [(["blok"], "'block'"), (["attch"], "'attach'"), (["lst"], "'list'"),
     (["frobnicate"], "weir help"), (["help", "blok"], "'block'"),
     (["ban", "192.0.2.1"], "weir block WHAT"), (["drop", "192.0.2.1"], "weir block WHAT"), (["ls"], "weir list"),
     (["unban", "192.0.2.1"], "weir unblock WHAT"), (["flush"], "weir unblock --all"), (["version"], "weir -V"),
     (["start"], "systemctl start weir@main"), (["stop"], "weir detach"), (["reload"], "weir apply FILE"),
     (["enable"], "systemctl enable --now weir@main"),
     (["list", "--plian"], "'--plain'"), (["block", "--dryrun"], "'--dry-run'"),
     (["--jsn", "list"], "'--json'"), (["list", "--jsno"], "'--json'")],
)
def test_suggestions(words, hint):
    done = weir_alone(*words)
    assert done.returncode == 1 and done.stdout == ""
    assert hint in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "words, said",
    [(["list", "--frobnicate"], "unknown option '--frobnicate'"),
     (["list", "-z"], "unknown option '-z'"), (["list", "--plain=1"], "takes no argument"),
     (["block", "192.0.2.1", "--for"], "needs TIME"), (["-n"], "needs NAME"),
     (["block", "--for", "1h", "--for", "2h", "x"], "duplicate option '--for'")],
)
def test_options_that_are_wrong(words, said):
    done = weir_alone(*words)
    assert done.returncode == 1 and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_options_stand_anywhere(on):
    netns = on.pair.near_netns
    for words in (["-n", on.name, "-N", netns, "-j", "list"],
                  ["list", "-jN", netns, f"--instance={on.name}"],
                  [f"-n{on.name}", "list", f"--netns={netns}", "--json"]):
        assert json.loads(run([WEIR, *words]).stdout)["instance"] == on.name


def test_what_begins_with_a_dash_after_two_dashes(on):
    assert "'-x'" in on.fails(1, "block", "--", "-x")


# Text


@pytest.mark.parametrize("when, colored", [("always", True), ("never", False), ("auto", False)])
def test_color(on, when, colored):
    on("bypass")
    assert ("\033[" in on("--color", when, "status", check=False).stdout) == colored
    assert "\033[" not in on("-j", f"--color={when}", "status", check=False).stdout


def test_color_on_a_terminal(on):
    """script provides a terminal."""
    command = " ".join(on.argv("status"))
    assert "\033[" in run(["script", "-qec", command, "/dev/null"]).stdout
    assert "\033[" not in run(["env", "NO_COLOR=1", "script", "-qec", command, "/dev/null"]).stdout


def test_color_that_is_none():
    assert "invalid --color 'red': auto, always or never" in weir_alone("--color", "red", "list").stderr


def test_quiet_says_nothing_when_all_is_done(on):
    for words in (["block", "192.0.2.1"], ["unblock", "192.0.2.1"], ["allow", "192.0.2.2"],
                  ["bypass"], ["detach"], ["detach"]):
        done = on("-q", *words)
        assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("words", [["list"], ["status"], ["-j", "list"], ["block", "192.0.2.1"]])
def test_output_that_cannot_be_written_is_a_failure(on, words):
    shell = ["sh", "-c", '"$@" >/dev/full', "sh"]
    done = run([*shell, *on.argv(*words)], check=False)
    assert done.returncode == 2 and "cannot write" in done.stderr


def test_each_change_ends_in_one_line(on):
    line = on("block", "203.0.113.7", "--for", "1h", "--note", "abuse 4711").stdout
    until = r"(\d{4}-\d\d-\d\d )?\d\d:\d\d \(1h\)"
    assert re.fullmatch(f"blocked packets from 203.0.113.7 until {until} on near0; saved.*\n", line)
    assert on("unblock", "203.0.113.7").stdout == f"unblocked 203.0.113.7 in instance {on.name}\n"
    named = "blocked packets from blocked.lab (203.0.113.10 2001:db8:113::10) on near0; "
    assert on("block", "blocked.lab").stdout.startswith(named)


# explain


def test_explain(pair, on):
    on("block", "198.18.113.0/24", "--note", "abuse 4711", "--for", "1h")
    on("block", "198.18.0.0/16")
    on("allow", "198.18.113.9")
    assert pair.free("198.18.113.7", "198.18.113.7") == [False, False]
    text = on("explain", "198.18.113.7").stdout
    first = text.splitlines()[0]
    assert first.startswith("from 198.18.113.7 is dropped: overlay block 198.18.113.0/24 from, by ")
    assert '"abuse 4711"' in first and "2 packets" in first and "left" in first
    assert "also in:  overlay block 198.18.0.0/16 from" in text and "(not reached)" in text
    assert "to 198.18.113.7 is passed" in text
    assert on.json("explain", "198.18.113.7")["from"] == "drop"
    assert on.json("explain", "198.18.113.9")["from"] == "pass"
    unknown = {"address": "192.0.2.1", "from": "pass", "to": "pass", "entries": []}
    assert on.json("explain", "192.0.2.1").items() >= unknown.items()


def texts_of_sources():
    """Every string of the sources, adjacent ones joined."""
    for path in sorted((ROOT / "ctl").rglob("*.c")):
        for joined in re.findall(r'(?:"(?:[^"\\]|\\.)*"\s*)+', path.read_text()):
            yield path, "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', joined))


def test_every_command_that_a_text_names_has_the_options_named(weir):
    helps = {}
    for path, text in texts_of_sources():
        for verb, rest in re.findall(r"weir (?:-[nN] \S+ )?([a-z]+)((?: [^;,:()|]*)?)", text):
            options = re.findall(r"--[a-z][a-z-]*", rest)
            if options and verb not in helps:
                helps[verb] = weir("help", verb).stdout
            for option in options:
                assert option in helps[verb], f"{path.relative_to(ROOT)}: weir {verb} {option}: {text}"
    assert len(helps) > 5


def test_the_runner_of_tests_says_what_to_do_first(tmp_path):
    done = run([ROOT / "tests" / "run", "base/num"], check=False, env={**os.environ, "O": str(tmp_path)})
    assert done.returncode == 1 and "is not built: run 'sudo make check' first" in done.stderr
    done = run([ROOT / "tests" / "run", "nonsense"], check=False)
    assert done.returncode == 1 and "no part has 'nonsense' in its name" in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""


# Every option is in the section of its command in the manual page, and no other.

SAME_OPTIONS = {"allow": "block", "unallow": "unblock", "rollback": "apply"}


def described_options(command):
    page = (ROOT / "docs" / "weir.8.scd").read_text()
    sections = re.findall(rf"\n## weir {SAME_OPTIONS.get(command, command)}\b.*?(?=\n#)", page, re.DOTALL)
    heads = "".join(re.findall(r"^(\*-.*\n)\t", "".join(sections), re.MULTILINE))
    return set(re.findall(r"\*--([a-z0-9-]+)\*", heads))


@pytest.mark.parametrize("command", OPTIONS)
def test_every_option_is_described(command):
    left = {"as", "offline", "again", "unattended"} if command == "rollback" else set()
    assert described_options(command) - left == OPTIONS[command]


def test_the_synopsis_has_no_option_of_its_own():
    page = (ROOT / "docs" / "weir.8.scd").read_text()
    synopsis = page[page.index("# SYNOPSIS"):page.index("# DESCRIPTION")]
    assert sorted(set(re.findall(r"^\*weir ([a-z]+)\*", synopsis, re.MULTILINE))) == sorted([*OPTIONS, "help"])
    for command, rest in re.findall(r"^\*weir ([a-z]+)\*(.*)", synopsis, re.MULTILINE):
        assert set(re.findall(r"\*--([a-z0-9-]+)\*", rest)) <= OPTIONS.get(command, set()), command


# Every key that is printed is in the manual page, in the paragraph of its command.

POLICY = """interface near0
set slow dynamic max 1k expire 1h
"one" drop from 198.51.100.1 to 10.77.0.1
"two" drop proto udp to port 9 add source @slow
service www {
    vip 192.0.2.10, 192.0.2.16/28
    proto tcp, udp
    port 80, 8000-8010
    mode ipip
    source 10.77.0.77
    backend 10.77.0.2
}
expect drop via "one" from 198.51.100.1 to 10.77.0.1
"""


def documented(command):
    """The keys that weir.8 lists for a command."""
    page = (ROOT / "docs" / "weir.8.scd").read_text()
    found = set()
    for paragraph in re.split(r"\n\n", page[page.index("# JSON"):page.index("# NOTES")]):
        head = paragraph.split("\n", 1)[0]
        if command in re.findall(r"\*([^*]+)\*", head):
            found |= set(re.findall(r"\*([a-z0-9_]+)\*", paragraph))
            for other in re.findall(r"\bas (?:\*\w+\* )?of ([a-z]+)", paragraph):
                found |= documented(other)
    return found


def keys_of(value):
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def test_every_key_is_documented(pair, weir, tmp_path):
    path = tmp_path / "lab.weir"
    path.write_text(POLICY)
    packet = "udp from 198.51.100.7 port 5 to 10.77.0.1 port 9".split()
    commands = [
        ("check", path), ("check", path, "--dump"), ("apply", path), ("apply", path, "--dry-run"),
        ("diff", path), ("show",), ("show", "--all"), ("history",), ("block", "203.0.113.10", "203.0.113.0/24"),
        ("block", "-i", "near0", "blocked.lab"), ("block", "1.2.3", "4.5.6"),
        ("rule add", "rule", "add", "--name", "x", "--for", "1h", "--note", "y", "--origin", "z", "drop to any port 9"),
        ("rule list", "rule", "list"), ("rule delete", "rule", "delete", "1"),
        ("unblock", "203.0.113.10"), ("allow", "203.0.113.20"), ("unallow", "203.0.113.20"), ("list",),
        ("block --set", "block", "--set", "slow", "192.0.2.1"), ("list --set", "list", "--set", "slow"),
        ("explain PACKET", "explain", *packet), ("explain", "198.51.100.1"), ("explain", "203.0.113.7"),
        ("explain PACKET", "explain", *"tcp from 198.51.100.7 port 5 to 192.0.2.10 port 80".split()),
        ("explain PACKET", "explain", *"icmp from 198.51.100.7 to 192.0.2.10 type echo-request".split()),
        ("service",), ("service", "--refresh"), ("service", "--tidy"), ("drain", "10.77.0.2"), ("undrain", "10.77.0.2"),
        ("weight", "10.77.0.2", "2"), ("backend", "down", "10.77.0.2"), ("status",), ("status", "--limits"), ("status", "--all"),
        ("refresh", "--list"), ("refresh",), ("top", "top", "-c", "1"), ("top --by", "top", "--by", "source,destination,port,length,ttl,flags", "-c", "1"), ("page --document", "page", "--document"), ("stats",), ("stats", "-i"), ("bypass",), ("bypass", "--off"), ("doctor",),
        ("doctor", "--drivers"), ("decap",), ("import", "nft", RULESET),
        ("rollback",), ("confirm",), ("detach",), ("attach", "near0"), ("detach", "--force"), ("forget",),
    ]
    missing = {}
    weir("apply", path)
    weir.run(path)
    for name, *words in commands:
        words = words if " " in name or name in words else [name, *words]
        document = json.loads(weir("-j", *words, check=False).stdout.splitlines()[0])
        plain(document)
        document.pop("error", None)
        if unknown := keys_of(document) - documented(name):
            missing[" ".join(map(str, words))] = sorted(unknown)
        if words[0] == "apply":
            pair.passes(pair.udp("198.51.100.1"))
    assert not missing, "\n".join(f"{words}: {keys}" for words, keys in missing.items())


def test_check_dump_is_a_document_and_service_says_what_it_serves(weir, tmp_path):
    path = tmp_path / "lab.weir"
    path.write_text(POLICY)
    dump = weir.json("check", path, "--dump")["dump"]
    assert dump and dump == weir("check", path, "--dump").stdout
    weir("apply", path)
    [service] = weir.json("service")["services"]
    assert service["vips"] == ["192.0.2.10", "192.0.2.16/28"] and service["protocols"] == ["tcp", "udp"]
    assert service["ports"] == ["80", "8000-8010"]
    said = weir("service").stdout
    assert "vip:         192.0.2.10, 192.0.2.16/28; tcp, udp port 80, 8000-8010\n" in said
