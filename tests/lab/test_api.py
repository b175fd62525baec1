# SPDX-License-Identifier: GPL-2.0-only
"""The API of the agent: its answers are those of the commands, and no client holds it up."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import stat
import subprocess
import threading
import time

import pytest

from apiclient import Api, Client

from labnet import run, until

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
        assert status == 200 and set(document) == set(on.json(*words)) | {"schema"}, target
    status, document = api("GET", "/v1/status?limits")
    assert document["agent"]["running"] and document["limits"]
    assert status == 200
    on.cut()
    status, document = api("GET", "/v1/status")
    assert status == 200 and document["alarms"], document
    assert api("GET", "/v1/services") == (400, {"schema": 1} | on.json("service", status=1))
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


def test_applies(pair, on, api, tmp_path):
    path = tmp_path / "p.weir"
    path.write_text("interface near0\ndrop from 198.51.100.1\n")
    assert api("POST", "/v1/apply", {"file": str(path)})[0] == 200
    assert pair.free("198.51.100.1") == [False]
    path.write_text("interface near0\ndrop form 198.51.100.1\n")
    status, document = api("POST", "/v1/apply", {"file": str(path)})
    assert status == 400 and "has errors" in document["error"]["text"]
    assert on.json("show")


@pytest.mark.parametrize("method, target, body, status, text", [
    ("GET", "/v1/nothing", None, 404, "no such path"),
    ("POST", "/v1/status", {}, 405, "wants GET"),
    ("GET", "/v1/block", None, 405, "wants POST"),
    ("DELETE", "/v1/block", None, 405, "wants POST"),
    ("PUT", "/v1/status", {}, 405, "wants GET"),
    ("PATCH", "/metrics", {}, 405, "wants GET"),
    ("POST", "/v1/block", "{", 400, ""),
    ("POST", "/v1/block", "[]", 400, "must be an object"),
    ("POST", "/v1/block", {"what": [7]}, 400, "string"),
    ("POST", "/v1/block", {"what": "1.2.3.4", "file": "/etc/shadow"}, 400, "has no 'file'"),
    ("POST", "/v1/block", {"what": "1.2.3.4", "for": {}}, 400, "must be a string"),
    ("POST", "/v1/block", {"what": "--file=/etc/shadow"}, 400, ""),
    ("POST", "/v1/block", {"what": "1.2.3"}, 400, "1.2.3"),
    ("GET", "/v1/overlay?sort=nothing", None, 400, "sort"),
])
def test_bad_requests(api, method, target, body, status, text):
    got, document = api(method, target, body)
    assert got == status, document
    assert text in json.dumps(document)
    assert api("GET", "/v1/overlay")[1]["entries"] == []


def test_messages_name_the_api(on, agent, api):
    assert api("POST", "/v1/unblock", {"what": "1.2.3"})[0] == 400
    until(lambda: "weir: api: '1.2.3' is not an address" in agent.said())
    on.fails(1, "unblock", "1.2.3")


def watching(on):
    """Processes of `weir watch` of the instance."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            words = path.read_bytes().split(b"\0")
            if b"watch" in words and on.name.encode() in words:
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


def test_a_bad_address(on):
    done = subprocess.run(on.argv("run", "--metrics", "nonsense"), capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1 and "invalid --metrics" in done.stderr
