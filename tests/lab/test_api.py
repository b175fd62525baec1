# SPDX-License-Identifier: GPL-2.0-only
"""The API of the agent: its responses are the documents of the commands, and no client delays it."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import socket
import stat
import subprocess
import threading
import time

import pytest

import mmdb
from apiclient import Api, Client

from labnet import plain, run, socket_in, until
from policylab import login, udp

BLOCKED, OTHER = "203.0.113.10", "203.0.113.77"


@pytest.fixture(name="agent")
def running_agent(on):
    return on.run()


@pytest.fixture(name="api")
def api_of(on, agent):
    api = Api(on.name)
    assert stat.S_IMODE(api.path.stat().st_mode) == 0o600 and agent.pid
    return api


def test_documents_are_those_of_the_commands(on, api):
    on("block", BLOCKED)
    for target, words in ("/v1/overlay", ["list"]), ("/v1/rules", ["stats"]):
        status, document = api("GET", target)
        assert status == 200 and set(plain(document)) == set(on.json(*words)), target
    status, document = api("GET", "/v1/status?limits")
    assert document["agent"]["running"] and document["limits"]
    assert status == 200
    on.cut()
    status, document = api("GET", "/v1/status")
    assert status == 200 and document["alarms"], document
    status, document = api("GET", "/v1/services")
    assert (status, plain(document)) == (400, on.json("service", status=1))
    status, document = api("GET", f"/v1/overlay?what={BLOCKED}&sort=packets")
    assert status == 200 and [entry["address"] for entry in document["entries"]] == [BLOCKED], document


def test_blocks_and_batches(pair, on, api):
    status, document = api("POST", "/v1/block", {"what": [BLOCKED, OTHER], "for": "1h", "note": "--force", "origin": "api"})
    assert status == 200 and document["added"] == 2
    assert on.entries()[BLOCKED]["holders"][0]["note"] == "--force"
    assert pair.free(BLOCKED, OTHER) == [False, False]
    assert api("POST", "/v1/unblock", {"what": OTHER, "origin": "api"})[0] == 200
    assert pair.free(BLOCKED, OTHER) == [False, True]
    status, document = api("POST", "/v1/batch", f"block {OTHER}\nunblock {BLOCKED} --origin api\n")
    assert status == 200, document
    assert pair.free(BLOCKED, OTHER) == [True, False]


NINE = "drop proto udp to any port 9"


def test_quick_rules(pair, on, api):
    """They are the documents of `rule add`, `rule list` and `rule delete`."""
    status, document = api("POST", "/v1/rules", {"rule": NINE, "for": "1h", "note": "--force", "name": "nine", "origin": "api"})
    assert (status, document["id"], document["rule"], document["changed"]) == (200, 1, NINE, True) and document["until"]
    assert not pair.passes(udp(9))[0] and pair.passes(udp(10))[0]
    assert api("POST", "/v1/rules", {"rule": "drop proto udp to any port 10".split(), "before": 1})[0] == 200
    status, document = api("GET", "/v1/rules/quick")
    assert status == 200 and [rule["id"] for rule in document["rules"]] == [2, 1]
    nine = document["rules"][1]
    assert (nine["name"], nine["note"], nine["origin"], nine["packets"]) == ("nine", "--force", "api", 1)
    assert [rule["id"] for rule in api("GET", "/v1/rules/quick?origin=api")[1]["rules"]] == [1]
    assert [rule["rule"] for rule in api("GET", "/v1/rules")[1]["rules"]] == ["quick 2", "nine"]
    status, document = api("DELETE", "/v1/rules?id=nine&dry-run")
    assert (status, document["deleted"], document["dry_run"]) == (200, 1, True) and not pair.passes(udp(9))[0]
    assert api("DELETE", "/v1/rules?id=nine")[1]["deleted"] == 1 and pair.passes(udp(9))[0]
    assert api("DELETE", "/v1/rules?all&origin=api")[1]["deleted"] == 0
    assert api("DELETE", "/v1/rules?all")[1]["deleted"] == 1 and pair.passes(udp(10))[0]


def test_a_blocked_port_is_a_quick_rule(pair, on, api):
    source = "203.0.113.1"
    for what in [[f"{source}:9"], [source, "port", "9"], [source, "proto", "udp", "port", "9"]]:
        status, document = api("POST", "/v1/block", {"what": what, "for": "1h"})
        assert status == 200 and document["rule"].startswith("drop proto "), document
        assert not pair.passes(udp(9, source))[0] and on.entries() == {}
        status, document = api("POST", "/v1/unblock", {"what": what})
        assert status == 200 and document["deleted"] == 1 and pair.passes(udp(9, source))[0]


def test_a_quick_rule_that_cuts_off_a_login(pair, on, api):
    """Exit status 3 is 409."""
    with login(pair, pair.far4):
        body = {"rule": f"drop from {pair.far4}"}
        status, document = api("POST", "/v1/rules", body)
        assert status == 409 and f"login from {pair.far4}" in document["error"]["text"], document
        assert api("POST", "/v1/rules", body | {"dry-run": True})[0] == 409
        assert on.json("rule", "list")["rules"] == []
        assert api("POST", "/v1/rules", body | {"force": True})[0] == 200
    assert pair.passes(udp(9, pair.far4)) == [False]


BAD_RULES = [
    ("POST", "", {}, 400, "missing the words of a rule"),
    ("POST", "", {"rule": ""}, 400, "missing the words of a rule"),
    ("POST", "", {"rule": []}, 400, "missing the words of a rule"),
    ("POST", "", {"rule": {"drop": "any"}}, 400, "must be a string, or an array of strings"),
    ("POST", "", {"rule": ["drop", 7]}, 400, "must be a string, or an array of strings"),
    ("POST", "", {"rule": None}, 400, "must be a string, or an array of strings"),
    ("POST", "", {"rule": NINE, "text": NINE}, 400, "/v1/rules has no 'text'"),
    ("POST", "", {"rule": NINE, "id": 7}, 400, "/v1/rules has no 'id'"),
    ("POST", "", {"rule": NINE, "all": True}, 400, "/v1/rules has no 'all'"),
    ("POST", "", {"rule": NINE, "note=": "x"}, 400, "/v1/rules has no 'note='"),
    ("POST", "", {"rule": NINE, "for": [1]}, 400, "must be a string, a number"),
    ("POST", "", {"rule": NINE, "for": "soon"}, 400, "soon"),
    ("POST", "", {"rule": NINE, "for": True}, 400, "'for' of /v1/rules must be a string or a number"),
    ("POST", "", {"rule": NINE, "before": -1}, 400, "before"),
    ("POST", "", {"rule": NINE, "before": 7}, 400, "no quick rule 7"),
    ("POST", "", {"rule": NINE, "before": 7, "first": True}, 400, "mutually exclusive"),
    ("POST", "", {"rule": NINE, "name": "7"}, 400, "not a number"),
    ("POST", "", {"rule": NINE, "name": "x" * 256}, 400, "at most 255 bytes"),
    ("POST", "", {"rule": NINE, "origin": "a\nb"}, 400, "origin"),
    ("POST", "", {"rule": NINE + "\ndrop from any"}, 400, "one line"),
    ("POST", "", {"rule": NINE + " { }"}, 400, "one line"),
    ("POST", "", {"rule": "--force"}, 400, "--force"),
    ("POST", "", {"rule": "drop from 1.2.3"}, 400, "the rule has errors"),
    ("POST", "", {"rule": "always drop from any"}, 400, "always"),
    ("POST", "", {"rule": "drop from " + "1.2.3.4, " * 2000 + "1.2.3.4"}, 400, "at most 16384 bytes"),
    ("POST", "", {"rule": ["drop"] * 65536}, 400, "limited to"),
    ("POST", "", '{"rule": "drop from any", "rule": "drop to any"}', 400, "duplicate"),
    ("POST", "", b'{"rule": "drop from \xff"}', 400, "unable to decode byte"),
    ("POST", "", '{"rule": "drop from 1.2.3.4\\u0000"}', 400, "u0000"),
    ("POST", "", "[" * 100000, 400, "depth"),
    ("POST", "/quick", {"rule": NINE}, 405, "wants GET"),
    ("PUT", "", {"rule": NINE}, 405, "wants GET, POST, DELETE"),
    ("DELETE", "", None, 400, "missing the number or name of a rule"),
    ("DELETE", "", {"id": 1}, 400, "no body"),
    ("DELETE", "?all", {"origin": "x"}, 400, "no body"),
    ("DELETE", "?all=0", None, 400, "all"),
    ("DELETE", "?id=1&id=2", None, 400, "has 'id' twice"),
    ("DELETE", "?id=1%00&force", None, 400, "zero byte"),
    ("DELETE", "?id=7", None, 400, "no quick rule '7'"),
    ("DELETE", "?id=1&all", None, 400, "--all"),
    ("DELETE", "?id", None, 400, "must be a string"),
    ("DELETE", "?id=1&name=x", None, 400, "/v1/rules has no 'name'"),
    ("DELETE", "/quick?all", None, 405, "wants GET"),
]


def test_bad_quick_rules(pair, on, api):
    on("rule", "add", "drop proto udp to any port 11")
    for method, target, body, status, text in BAD_RULES:
        got, document = api(method, f"/v1/rules{target}", body)
        said = json.dumps(document)
        assert got == status and text in said, (method, target, str(body)[:80], got, said[:400])
        assert set(document) >= {"schema", "error"} and document["error"]["text"]
    assert [rule["id"] for rule in on.json("rule", "list")["rules"]] == [1] and not pair.passes(udp(11))[0]


def test_applies(pair, on, api, tmp_path):
    path = tmp_path / "p.weir"
    path.write_text("interface near0\ndrop from 198.51.100.1\n")
    assert api("POST", "/v1/apply", {"file": str(path)})[0] == 200
    assert pair.free("198.51.100.1") == [False]
    path.write_text("interface near0\ndrop form 198.51.100.1\n")
    status, document = api("POST", "/v1/apply", {"file": str(path)})
    assert status == 400 and "has errors" in document["error"]["text"]
    assert on.json("show")


def test_applies_read_no_standard_input(pair, on, api, tmp_path):
    """A request has none: what an empty one is must not replace the policy."""
    path = tmp_path / "p.weir"
    path.write_text("interface near0\ndrop from 198.51.100.1\n")
    assert api("POST", "/v1/apply", {"file": str(path)})[0] == 200
    before = on.json("show")
    for body, text in ({"file": "-"}, "'file' of /v1/apply must be a path"), ({"file": "/dev/stdin"}, "has errors"):
        status, document = api("POST", "/v1/apply", body | {"force": True})
        assert status == 400 and text in document["error"]["text"], document
    assert on.json("show") == before and pair.free("198.51.100.1") == [False]


@pytest.mark.parametrize("method, target, body, status, text", [
    ("GET", "/v1/nothing", None, 404, "no such path"),
    ("POST", "/v1/status", {}, 405, "wants GET"),
    ("GET", "/v1/block", None, 405, "wants POST"),
    ("DELETE", "/v1/block", None, 405, "wants POST"),
    ("PUT", "/v1/status", {}, 405, "wants GET"),
    ("PATCH", "/metrics", {}, 405, "wants GET"),
    ("POST", "/v1/block", "what=1.2.3.4", 400, "the body is not JSON: line 1"),
    ("POST", "/v1/block", "[]", 400, "must be an object"),
    ("POST", "/v1/block", {"what": [7]}, 400, "string"),
    ("POST", "/v1/block", {"what": "1.2.3.4", "file": "/etc/shadow"}, 400, "has no 'file'"),
    ("POST", "/v1/block", {"what": "1.2.3.4", "for": {}}, 400, "must be a string"),
    ("POST", "/v1/block", {"what": "--file=/etc/hosts", "note": True}, 400, "'note' of /v1/block must be a string or a number"),
    ("POST", "/v1/block", {"what": "1.2.3.4", "both": "yes"}, 400, "both"),
    ("GET", "/v1/overlay?origin", None, 400, "'origin' of /v1/overlay must be a string or a number"),
    ("GET", "/v1/overlay?origin=a&origin=b", None, 400, "has 'origin' twice"),
    ("POST", "/v1/block", {"what": "--file=/etc/shadow"}, 400, ""),
    ("POST", "/v1/block", {"what": "1.2.3"}, 400, "1.2.3"),
    ("POST", "/v1/block", {"what": "-"}, 400, "'-' is not a range"),
    ("GET", "/v1/overlay?sort=nothing", None, 400, "sort"),
])
def test_bad_requests(api, method, target, body, status, text):
    got, document = api(method, target, body)
    assert got == status, document
    assert text in json.dumps(document)
    assert api("GET", "/v1/overlay")[1]["entries"] == []


GUARDED = [("POST", "/v1/block"), ("GET", "/v1/overlay"), ("GET", "/metrics")]


def raw(path, request):
    """Status, headers and body of the answer to these bytes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(30)
        sock.connect(str(path))
        sock.sendall(request.encode())
        return answer_on(sock, request.split()[0])


def answer_on(sock, method):
    answer = http.client.HTTPResponse(sock, method=method)
    answer.begin()
    return answer.status, answer.headers, answer.read()


def request_of(method, target, headers, version="1.1"):
    body = json.dumps({"what": BLOCKED})
    lines = [f"{method} {target} HTTP/{version}", *headers, "Content-Type: text/plain", "Connection: close"]
    lines += [f"Content-Length: {len(body)}", "", body] if method == "POST" else ["", ""]
    return "\r\n".join(lines)


@pytest.mark.parametrize("headers", [
    ["Host: localhost:8080", "Origin: http://evil.example"],
    ["Host: localhost:8080", "origin: null"],
    ["Host: localhost:8080", "Origin: "],
    ["Host: localhost:8080", "Sec-Fetch-Site: cross-site"],
    ["Host: localhost:8080", "Sec-Fetch-Site: same-origin"],
    ["Host: localhost:8080", "Sec-Fetch-Site: none", "Sec-Fetch-Site: same-site"],
    ["Host: rebound.evil.example:8080"],
    ["Host: localhost", "Host: rebound.evil.example"],
    ["Host: localhost", "Host: localhost"],
    ["Host: "],
    ["Host: localhost", " .evil.example"],
    [],
], ids=str)
def test_pages_are_refused(on, api, headers):
    """What a browser sends for a page, where the socket is forwarded to a port: no command runs."""
    for method, target in GUARDED:
        status, got, body = raw(api.path, request_of(method, target, headers))
        assert status == 403 and got["Content-Type"] == "application/json", (target, status, body)
        assert json.loads(body)["error"]["text"], body
    status, _, _ = raw(api.path, request_of("GET", "http://rebound.evil.example/v1/overlay", headers))
    assert status == 403
    assert on.entries() == {}


@pytest.mark.parametrize("headers, version", [
    (["Host: localhost:8080"], "1.1"), (["Host: weir"], "1.1"), (["Host: 127.0.0.1:8080"], "1.1"), (["Host: [::1]:8080"], "1.1"),
    (["Host: localhost", "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"], "1.1"), ([], "1.0"),
], ids=str)
def test_programs_are_not_refused(on, api, headers, version):
    for method, target in GUARDED:
        status, _, body = raw(api.path, request_of(method, target, headers, version))
        assert status == 200, (target, status, body)
    assert set(on.entries()) == {BLOCKED}


@pytest.mark.parametrize("request_line, headers, status", [
    ("GET /v1/status HTTP/9.9", "Host: x", 400),
    ("GET /v1/status HTTP/1.1", "no header", 400),
    ("GET /v1/status HTTP/1.1", "X: " + "y" * 9000, 400),
    ("POST /v1/batch HTTP/1.1", "Host: x\r\nContent-Length: 99999999999", 413),
    ("POST /v1/batch HTTP/1.1", "Host: x\r\nContent-Length: 5\r\nExpect: nothing", 417),
    ("BREW /v1/status HTTP/1.1", "Host: x", 501),
    ("TRACE /v1/status HTTP/1.1", "Host: x", 501),
    ("GET /v1/status HTTP/1.0", "no header", 400),
])
def test_errors_are_documents(on, request_line, headers, status):
    """Also errors of libevent, on both addresses."""
    agent = on.run("--metrics", "127.0.0.1:9117")
    api = Api(on.name)
    for door in "socket", "address":
        with socket.socket(socket.AF_UNIX) if door == "socket" else socket_in(on.pair.near_netns) as sock:
            sock.settimeout(30)
            sock.connect(str(api.path) if door == "socket" else ("127.0.0.1", 9117))
            sock.sendall(f"{request_line}\r\n{headers}\r\n\r\n".encode())
            got, kinds, body = answer_on(sock, request_line.split()[0])
        assert got == status and kinds["Content-Type"] == "application/json", (door, got, body)
        assert set(plain(json.loads(body))) == {"error"} and sock, body
    assert api("GET", "/v1/overlay")[0] == 200 and agent.process.poll() is None


def test_refused_methods_name_the_others(api):
    for method, target, allowed in ("GET", "/v1/block", "POST"), ("HEAD", "/v1/status", "GET"), ("PUT", "/metrics", "GET, HEAD"):
        status, headers, body = raw(api.path, request_of(method, target, ["Host: x"]))
        assert (status, headers["Allow"], bool(body)) == (405, allowed, method != "HEAD")


def test_messages_name_the_api(on, agent, api):
    assert api("POST", "/v1/unblock", {"what": "1.2.3"})[0] == 400
    until(lambda: "weir: api: '1.2.3' is not an address" in agent.said())
    on.fails(1, "unblock", "1.2.3")


def test_names_are_asked_of_the_resolver_of_the_agent(pair, on):
    """Not the server of resolv.conf, which does not answer here: block, a batch and a policy."""
    conf = pathlib.Path(f"/etc/netns/{pair.near_netns}/resolv.conf")
    before = conf.read_text(encoding="ascii")
    agent, api = on.run("--resolver", pair.resolver), Api(on.name)
    conf.write_text("nameserver 10.99.0.1\noptions timeout:1 attempts:1\n", encoding="ascii")
    try:
        for target, body in ("/v1/block", {"what": "blocked.lab"}), ("/v1/batch", "block other.lab\n"):
            status, document = api("POST", target, body)
            assert status == 200 and document["added"], document
    finally:
        conf.write_text(before, encoding="ascii")
    assert pair.free(BLOCKED, "203.0.113.20") == [False, False]
    assert agent.stop() == 0


def test_a_request_that_only_looks_logs_no_alarm(on, agent, api):
    on.cut()
    for _ in range(3):
        status, document = api("GET", "/v1/status")
        assert status == 200 and document["alarms"], document
    assert api("GET", "/v1/overlay?what=1.2.3")[0] == 400
    assert api("POST", "/v1/unblock", {"what": "1.2.3"})[0] == 400  # after them
    until(lambda: "weir: api: '1.2.3' is not an address" in agent.said())
    assert agent.said().count("api: ") == 1, agent.said()


def test_a_country_as_answers_print_it(pair, on, tmp_path):
    geo = tmp_path / "country.mmdb"
    geo.write_bytes(mmdb.build({f"{BLOCKED}/32": "country FR", f"{OTHER}/32": "country DE"}))
    api, agent = Api(on.name), on.run("--geo", tmp_path)
    status, document = api("POST", "/v1/block", {"what": ["country FR", "country", "DE"]})
    assert status == 200 and pair.free(BLOCKED, OTHER) == [False, False], document
    printed = {holder["name"] for entry in on.entries().values() for holder in entry["holders"]}
    assert printed == {"country FR", "country DE"}
    assert api("POST", "/v1/unblock", {"what": sorted(printed)})[0] == 200
    assert pair.free(BLOCKED, OTHER) == [True, True]
    for what in "country  FR", "country FR DE", "country ZZ", "host FR":
        status, document = api("POST", "/v1/block", {"what": what})
        assert status == 400 and what.split()[0] in str(document), document
    assert agent.stop() == 0


def watching(on):
    """Processes of `weir watch drops` of the instance."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            words = path.read_bytes().split(b"\0")
            if b"watch" in words and b"drops" in words and on.name.encode() in words:
                found.append(int(path.parent.name))
    return found


def test_events_stream_until_the_client_leaves(pair, on, api):
    on("block", BLOCKED)
    client = Client(api.path)
    client.request("GET", "/v1/events")
    got = []

    def read():
        answer = client.getresponse()
        got.append(json.loads(answer.readline()))

    reader = threading.Thread(target=read)
    reader.start()
    until(lambda: pair.free(BLOCKED) == [False] and got, what="an event")
    reader.join(timeout=10)
    assert got[0]["schema"] == 1
    # Commands for clients leave the processor to the loop.
    assert [os.getpriority(os.PRIO_PROCESS, pid) for pid in watching(on)] == [10]
    client.close()
    until(lambda: not watching(on), what="the end of weir watch")


def test_many_callers_at_once(on, api):
    def ban(number):
        begin = time.monotonic()
        status, document = api("POST", "/v1/block", {"what": f"198.18.{number // 250}.{number % 250 + 1}"})
        return status, document, time.monotonic() - begin

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = list(pool.map(ban, range(200)))
    assert {status for status, _, _ in done} == {200}, done
    assert len(on.entries()) == 200


def test_metrics_on_an_address(on):
    on.run("--metrics", "127.0.0.1:9117")
    text = run(["nsenter", f"--net=/run/netns/{on.pair.near_netns}", "curl", "-sS", "http://127.0.0.1:9117/metrics"]).stdout
    assert "weir_build_info{" in text
    refused = run(["nsenter", f"--net=/run/netns/{on.pair.near_netns}", "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}",
                   "http://127.0.0.1:9117/v1/status"]).stdout
    assert refused == "404"


def test_the_address_answers_whoever_reads_metrics(on):
    """Prometheus may use any name for it; nothing but GET and HEAD of one path is answered."""
    on.run("--metrics", "127.0.0.1:9117")
    for method, target, status in (("GET", "/metrics", 200), ("HEAD", "/metrics", 200), ("POST", "/metrics", 405),
                                   ("DELETE", "/metrics", 405), ("GET", "/metrics/", 404), ("GET", "/v1/overlay", 404)):
        with socket_in(on.pair.near_netns) as sock:
            sock.settimeout(30)
            sock.connect(("127.0.0.1", 9117))
            sock.sendall(f"{method} {target} HTTP/1.1\r\nHost: edge.example:9117\r\nConnection: close\r\n\r\n".encode())
            head, _, body = b"".join(iter(lambda: sock.recv(65536), b"")).decode().partition("\r\n\r\n")  # pylint: disable=cell-var-from-loop
        assert head.startswith(f"HTTP/1.1 {status}"), (method, target, head)
        assert ("weir_build_info{" in body) == (method == "GET" and status == 200)
        assert method != "HEAD" or (not body and int(head.partition("Content-Length: ")[2].split()[0]) > 1000)


def test_a_bad_address(on):
    done = subprocess.run(on.argv("run", "--metrics", "nonsense"), capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1 and "invalid --metrics" in done.stderr
