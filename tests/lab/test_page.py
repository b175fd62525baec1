# SPDX-License-Identifier: GPL-2.0-only
"""The page: who may read it, on the port of weir page and on the socket of the agent, and what comes from there. The page
itself is tested in a browser: tests/page."""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import threading
import time

import pytest

from apiclient import Api, Client
from labnet import plain, until
from policylab import Policies, udp
from test_top import OTHER, SOURCE, generator

HIDDEN = "/v1/live", "/v1/history", "/v1/status", "/metrics", "/favicon.ico", "/index.html"


class Page:
    """A running weir page."""

    def __init__(self, weir, *options):
        self.process = weir.start("page", *options)
        self.url = self.process.stdout.readline().strip()
        self.lines = [self.process.stdout.readline()]
        self.port, self.token = int(re.search(r":(\d+)/#", self.url)[1]), self.url.split("#")[1]

    def ask(self, method="GET", target="/", token=None, **headers):
        """Status, headers and text."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            client.putrequest(method, target, skip_host="Host" in headers)
            for name, value in headers.items():
                for one in value if isinstance(value, list) else [value]:
                    client.putheader(name.replace("_", "-"), one)
            if token is not None:
                client.putheader("Authorization", f"Bearer {token}")
            client.endheaders()
            answer = client.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            client.close()

    def live(self, count, target="/v1/live"):
        """The first documents of a new client."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        client.request("GET", target, headers={"Authorization": f"Bearer {self.token}"})
        answer = client.getresponse()
        assert answer.status == 200, answer.read()
        documents = [json.loads(answer.readline()) for _ in range(count)]
        client.close()
        return documents


@pytest.fixture(name="page")
def page_of(on):
    return Page(on)


def hash_of(text, tag):
    part = re.search(f"<{tag}>(.*?)</{tag}>", text, re.S)[1]
    return "sha256-" + base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()


def test_the_file_and_its_headers(page):
    status, headers, text = page.ask()
    assert status == 200 and len(text.encode()) < 40000 and headers["Content-Type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == f"'{hash_of(text, 'script')}'" and policy["style-src"] == f"'{hash_of(text, 'style')}'"
    assert policy["connect-src"] == "'self'"
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "http://" not in re.sub(r'"http://www.w3.org/\S+"', "", text) and "https://" not in text
    assert "innerHTML" not in text and " style=" not in text and not re.search(r"<[^>]* on[a-z]+=", text)
    assert page.ask("HEAD")[2] == "" and page.ask("POST")[0] == 405


def test_all_but_the_file_requires_the_token(page):
    for target in HIDDEN:
        status, headers, text = page.ask(target=target)
        assert status == 401 and headers["WWW-Authenticate"] == "Bearer" and page.token not in text, target
        assert "nosniff" in headers["X-Content-Type-Options"] and "'none'" in headers["Content-Security-Policy"]
    assert page.ask(target="/v1/history", token=page.token)[0] == 200
    for target in HIDDEN[2:]:
        assert page.ask(target=target, token=page.token)[0] == 404, target
    assert page.ask("POST", "/v1/live", page.token)[0] == 405
    assert page.process.poll() is None


def test_ten_wrong_tokens_end_it(page):
    wrong = ["0" * 32, "", page.token[:-1], page.token + "0", page.token.upper() if page.token.upper() != page.token else "A", "x" * 7000]
    for token in wrong:
        assert page.ask(target="/v1/history", token=token)[0] == 401, token
    assert page.ask(target="/v1/history", Authorization=[f"Bearer {page.token}"] * 2)[0] == 401
    assert page.ask(target="/v1/history", Authorization=f"Basic {page.token}")[0] == 401
    assert page.ask(target="/v1/history", token=page.token)[0] == 200  # the eight are not enough
    assert page.ask(target="/v1/history", token="y")[0] == 401
    page.ask(target="/v1/history", token="z")
    assert page.process.wait(timeout=10) == 3
    assert "10 requests had a wrong token" in page.process.stdout.read()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.2", "localhost.evil:80", "localhost:",
                                  "127.0.0.1:80x", "", "[::1]x", "127.0.0.1@evil", ["127.0.0.1", "127.0.0.1"]])
def test_wrong_hosts(page, host):
    """The DNS name of a foreign page may be an address of this machine."""
    for target in "/", "/v1/history":
        assert page.ask(target=target, token=page.token, Host=host)[0] in (400, 403), host


def test_right_hosts_and_sites(page):
    for host in "127.0.0.1", "localhost", "LOCALHOST:8080", "[::1]:9", f"127.0.0.1:{page.port}":
        assert page.ask(target="/v1/history", token=page.token, Host=host)[0] == 200, host
    for site, status in ("none", 200), ("same-origin", 200), ("cross-site", 403), ("Cross-Site", 403):
        for target in "/", "/v1/history":
            assert page.ask(target=target, token=page.token, Sec_Fetch_Site=site)[0] == status, site
    assert page.ask(target=f"http://evil.example/v1/history", token=page.token)[0] == 403


def test_without_an_agent_it_measures(pair, on, page):
    assert "ssh -L" in page.lines[0] and "no agent runs" in page.process.stdout.readline()
    on("block", SOURCE)
    with generator(pair, pair.udp(SOURCE), 200):
        documents = page.live(6, "/v1/live?state")
    rates = [one for one in documents if "span_us" in one]
    states = [one for one in documents if "status" in one]
    assert len(rates) >= 3 and states and not states[0]["status"]["agent"]["running"]
    assert 150 < next(row for row in rates[-1]["totals"] if row["total"] == "dropped")["packets_per_s"] < 250
    assert states[-1]["instance"] == on.name and states[-1]["services"] is None
    assert {"stats", "quick", "entries", "history"} <= set(states[-1])
    history = json.loads(page.ask(target="/v1/history", token=page.token)[2])
    assert history["interval_s"] == 1
    page.process.send_signal(signal.SIGINT)
    assert page.process.wait(timeout=10) == 0 and "ended" in page.process.stdout.read()
    assert not pathlib.Path("/run/weir", on.name, "agent.json").exists()  # it is not the agent


def test_with_an_agent_it_asks_the_agent(on):
    agent = on.run()
    api = Api(on.name)
    page = Page(on)
    first = page.live(3, "/v1/live?state")
    assert any("status" in one and one["status"]["agent"]["pid"] == agent.pid for one in first)
    own = [one["time"] for one in page.live(2)]
    client = Client(api.path)
    client.request("GET", "/v1/live")
    assert json.loads(client.getresponse().readline())["time"] >= own[-1]
    client.close()
    status, _, text = page.ask(target="/v1/history?series=rules/none", token=page.token)
    assert (status, json.loads(text)["error"]["text"]) == (404, "there is no series 'rules/none'")
    agent.kill()
    status, _, text = page.ask(target="/v1/live", token=page.token)
    assert status == 503 and "the filter in the kernel is not affected" in text
    on.run()
    assert page.live(1)[0]["span_us"]
    assert page.process.poll() is None


@pytest.mark.parametrize("agent", [False, True])
def test_the_last_logged_packets(on, tmp_path, agent):
    Policies(on, tmp_path)('"seven" pass proto udp to port 7 log 1000/s')
    if agent:
        on.run()
    for port in range(1, 15):
        on.pair.send_from_far(udp(7, sport=port))
        time.sleep(0.03)
    page = Page(on)
    state = next(one for one in page.live(4, "/v1/live?state") if "status" in one)
    assert [one["from_port"] for one in state["events"]] == list(range(3, 15))
    assert {one["rule"] for one in state["events"]} == {"seven"} and all(one["at"] and one["logged"] for one in state["events"])
    assert page.ask(target="/v1/events", token=page.token)[0] == 404


def counts(documents):
    """What was counted at last, by part and labels. Packets of the link itself, such as ARP, arrive at any time."""
    labels = {"interfaces": ("interface", "verdict", "reason"), "rules": ("rule",), "origins": ("origin", "verb")}
    return {(part, *(row[key] for key in keys)): (row["packets"], row["bytes"]) for document in documents
            for part, keys in labels.items() for row in document[part] if row["packets"] and row.get("verdict") != "pass"}


def test_top_page_and_metrics_show_the_same(pair, weir, tmp_path):
    path = tmp_path / "near.weir"
    path.write_text('interface near0\n"seven" drop from 198.51.100.7\n"eight" pass from 198.51.100.8\n')
    weir("apply", path)
    weir("block", "203.0.113.9", "--origin", "me")
    weir.run()
    page = Page(weir)
    frames = [pair.udp(SOURCE)] * 7 + [pair.udp(OTHER)] * 8 + [pair.udp("203.0.113.9")] * 9
    sender = threading.Timer(2, pair.send_from_far, frames)
    sender.start()
    shown = counts(page.live(13))  # a document has what moved; origins every ten seconds
    sender.join()
    top = counts([json.loads(weir("-j", "top", "-c", "1", "--all").stdout.splitlines()[0])])
    assert shown == top
    assert {key: packets for key, (packets, _) in top.items()} == {
        ("interfaces", "near0", "drop", "rule-drop"): 7, ("interfaces", "near0", "drop", "block-from"): 9,
        ("rules", "seven"): 7, ("rules", "eight"): 8, ("origins", "me", "block"): 9}
    metrics = Client(Api(weir.name).path).ask("GET", "/metrics")[1]
    for (part, *labels), (packets, size) in top.items():
        name, suffix, keys = {"interfaces": ("weir", "_total", ("interface", "verdict", "reason")),
                              "rules": ("weir_rule", "_total", ("rule",)), "origins": ("weir_origin", "", ("origin", "verb"))}[part]
        what = ",".join(f'{key}="{label}"' for key, label in zip(keys, labels))
        assert re.search(rf"^{name}_packets{suffix}{{.*{what}}} {packets}$", metrics, re.M), (labels, packets)
        assert re.search(rf"^{name}_bytes{suffix}{{.*{what}}} {size}$", metrics, re.M), (labels, size)


def test_only_the_agent_measures(on):
    """A page that asks the agent starts no weir top itself."""
    on.run()
    page = Page(on)
    children = pathlib.Path("/proc", str(page.process.pid), "task", str(page.process.pid), "children")
    assert len(page.live(3)) == 3
    assert children.read_text(encoding="ascii") == ""


def test_an_agent_that_hangs(on):
    """It accepts connections, and is silent."""
    agent = on.run()
    page = Page(on)
    agent.process.send_signal(signal.SIGSTOP)
    try:
        begin = time.monotonic()
        status, _, text = page.ask(target="/v1/history", token=page.token)
    finally:
        agent.process.send_signal(signal.SIGCONT)
    assert status == 503 and "the agent does not answer" in text and 8 < time.monotonic() - begin < 15
    assert page.ask(target="/v1/history", token=page.token)[0] == 200


def test_an_agent_without_the_page(on):
    """As an older one."""
    on.run()
    pathlib.Path("/run/weir", on.name, "page").unlink()
    page = Page(on)
    assert "the agent does not serve the page" in page.process.stdout.readline()


def test_a_state_that_cannot_be_read(on):
    """The command for it is killed."""
    agent = on.run()
    client = Client(Api(on.name).path)
    client.request("GET", "/v1/live?state")
    answer = client.getresponse()
    children = pathlib.Path("/proc", str(agent.pid), "task", str(agent.pid), "children")
    stop = threading.Event()

    def kill():
        while not stop.wait(0.005):
            for pid in children.read_text(encoding="ascii").split():
                with contextlib.suppress(OSError):
                    if b"--document" in pathlib.Path("/proc", pid, "cmdline").read_bytes():
                        os.kill(int(pid), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        documents = (json.loads(answer.readline()) for _ in range(40))
        assert "cannot be read" in next(one["error"]["text"] for one in documents if "error" in one)
    finally:
        stop.set()
        killer.join()
        client.close()


def test_a_closed_terminal_ends_it(on):
    page = Page(on)
    assert page.ask()[0] == 200  # it handles signals now
    page.process.send_signal(signal.SIGHUP)
    assert page.process.wait(timeout=10) == 0


def test_nohup(on):
    process = start_words(on, ["nohup", *on.argv("page", "--for", "3s")])
    until(lambda: "http://127.0.0.1" in process.stdout.readline(), what="its address")
    process.send_signal(signal.SIGHUP)
    output, _ = process.communicate(timeout=15)
    assert process.returncode == 0 and "--for has expired" in output


def test_an_answer_ends_with_the_agent(on):
    agent = on.run()
    page = Page(on)
    client = http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)
    client.request("GET", "/v1/live", headers={"Authorization": f"Bearer {page.token}"})
    answer = client.getresponse()
    assert json.loads(answer.readline())["span_us"]
    agent.kill()
    answer.read()  # to its end
    client.close()


def test_the_state_follows_a_command(on):
    on.run()
    client = Client(Api(on.name).path)
    client.request("GET", "/v1/live?state")
    answer = client.getresponse()

    def states():
        while True:
            document = json.loads(answer.readline())
            if "status" in document:
                yield document

    documents = states()
    next(documents)
    on("block", "198.51.100.77", "--note", "at once")
    begin = time.monotonic()
    found = next(one for one in documents if one["entries"]["entries"])
    assert time.monotonic() - begin < 4
    assert found["entries"]["entries"][0]["holders"][0]["note"] == "at once"
    client.close()


@pytest.mark.parametrize("query", ["state=1", "state=", "states", "state&state", "count=3"])
def test_refused_queries(on, query):
    on.run()
    assert Api(on.name)("GET", f"/v1/live?{query}")[0] == 400


def test_no_state_without_a_reader(on):
    """The command runs only for who asks for the state."""
    agent = on.run()
    children = pathlib.Path("/proc", str(agent.pid), "task", str(agent.pid), "children")

    def pages():
        found = 0
        for pid in children.read_text(encoding="ascii").split():
            try:
                found += b"--document" in pathlib.Path("/proc", pid, "cmdline").read_bytes()
            except OSError:
                continue
        return found

    seen = []
    watcher = threading.Thread(target=lambda: [seen.append(pages()) or time.sleep(0.01) for _ in range(300)])
    watcher.start()
    client = Client(Api(on.name).path)
    client.request("GET", "/v1/live")
    assert json.loads(client.getresponse().readline())
    on("block", "198.51.100.78")
    watcher.join()
    client.close()
    assert not any(seen)


def test_pages_leave_room_for_the_api(on):
    """64 pages read, and no more; a client of the API still does."""
    on.run()
    page, clients = pathlib.Path("/run/weir", on.name, "page"), []

    def reads(path):
        clients.append(Client(path))
        clients[-1].request("GET", "/v1/live")
        return clients[-1].getresponse().status

    try:
        assert [reads(page) for _ in range(65)] == [200] * 64 + [503]
        assert reads(Api(on.name).path) == 200 and Api(on.name)("GET", "/v1/history")[0] == 200
        clients.pop(0).close()
        until(lambda: reads(page) == 200, 10, "the place of a page that has left")
    finally:
        for client in clients:
            client.close()


def test_a_page_without_history(on):
    """No error in the console of a browser; the API has the reason."""
    agent = on.run("--no-history")
    assert Client(pathlib.Path("/run/weir", on.name, "page")).ask("GET", "/v1/history?span=5m") == (204, "")
    assert Api(on.name)("GET", "/v1/history")[0] == 404
    page = Page(on)
    assert page.ask(target="/v1/history?span=24h", token=page.token)[0] == 204
    agent.kill()


def test_the_socket_of_the_agent(on):
    on.run()
    path = pathlib.Path("/run/weir", on.name, "page")
    assert stat.S_IMODE(path.stat().st_mode) == 0o660 and path.stat().st_gid == 0
    client = Client(path)
    for target, status in ("/", 200), ("/v1/history", 200), ("/v1/status", 404), ("/metrics", 404), ("/v1/block", 404):
        client.request("GET", target, headers={"Host": "weir.example.com"})
        answer = client.getresponse()
        assert (answer.status, "nosniff" in answer.headers["X-Content-Type-Options"]) == (status, True), target
        answer.read()
    client.request("GET", "/v1/history", headers={"Sec-Fetch-Site": "cross-site"})
    assert client.getresponse().status == 403
    client.close()
    assert Client(path).ask("POST", "/v1/block", {"what": "192.0.2.1"})[0] == 413  # no request has a body
    assert Api(on.name)("GET", "/")[0] == 404  # the API does not serve the page


def test_the_group_of_the_socket(on):
    agent = on.run("--page-group", "www-data")
    path = pathlib.Path("/run/weir", on.name, "page")
    assert (path.group(), stat.S_IMODE(path.stat().st_mode)) == ("www-data", 0o660)
    part = next(part for part in on.json("status")["agent"]["parts"] if part["name"] == "page")
    assert part["group"] == "www-data" and part["socket"] == str(path)
    assert agent.stop() == 0 and not path.exists()


def start_words(on, words):
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # pylint: disable=consider-using-with
    on.started.append(process)
    return process


def test_a_group_without_the_capability(on):
    """As in the packaged unit: the group must be one of the process."""
    words = on.argv("run", "--page-group", "www-data")
    drop = ["setpriv", "--bounding-set", "-chown", "--inh-caps", "-chown"]
    folder = pathlib.Path("/run/weir", on.name)
    folder.chmod(0o700)  # UMask=0077
    process = start_words(on, [*drop, "--clear-groups", *words])
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 2 and "SupplementaryGroups=www-data" in output, output
    process = start_words(on, [*drop, "--groups", "www-data", *words])
    path = folder / "page"
    until(lambda: path.exists() and path.group() == "www-data", what="the socket")
    assert (folder.group(), stat.S_IMODE(folder.stat().st_mode)) == ("www-data", 0o710)
    process.terminate()
    assert process.wait(timeout=10) == 0


def test_bad_input(on):
    assert "there is no group 'nosuch'" in on.fails(1, "run", "--page-group", "nosuch")
    for option in ("--port", "0"), ("--port", "65536"), ("--port", "x"), ("--for", "0"), ("--for", "8d"), ("word",):
        assert on("page", *option, check=False).returncode == 1, option
    assert "--document requires -j" in on.fails(1, "page", "--document")
    assert on("-j", "page", "--document", "--port", "7", check=False).returncode == 1
    page = Page(on)
    assert "another --port" in on.fails(2, "page", "--port", page.port)


def test_its_time_ends(on):
    page = Page(on, "--for", "1s")
    assert page.process.wait(timeout=10) == 0 and "--for has expired" in page.process.stdout.read()


def test_as_documents(on):
    process = on.start("-j", "page", "--for", "1s")
    output, _ = process.communicate(timeout=15)
    first, last = [plain(json.loads(line)) for line in output.splitlines()]
    assert first["url"].startswith(f"http://127.0.0.1:{first['port']}/#") and first["for_ms"] == 1000 and not first["agent"]
    assert last == {"end": True} and process.returncode == 0


def test_a_removed_instance(weir):
    assert weir.name in weir.fails(1, "page")

NGINX = """daemon off;
user www-data;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    server {{
        listen unix:{folder}/web;
        auth_basic "Weir";
        auth_basic_user_file {folder}/users;
        location /{name}/ {{
            proxy_pass http://unix:/run/weir/{name}/page:/;
            proxy_http_version 1.1;
            proxy_set_header Host $host;
            proxy_set_header Connection "";
            proxy_set_header Authorization "";
            proxy_buffering off;
            proxy_read_timeout 1h;
        }}
    }}
}}
"""


def test_behind_nginx(on, tmp_path):
    """As docs/monitoring.md has it; the password is nginx's."""
    on.run("--page-group", "www-data")
    folder = tmp_path / "nginx"
    folder.mkdir()
    (folder / "users").write_text("alice:{PLAIN}secret\n", encoding="ascii")
    (folder / "conf").write_text(NGINX.format(folder=folder, name=on.name), encoding="ascii")
    for path in [folder, *folder.parents][:5]:  # one more in a worker
        path.chmod(path.stat().st_mode | 0o011)
    process = start_words(on, ["nginx", "-e", "stderr", "-c", str(folder / "conf")])
    until((folder / "web").exists, what="nginx")
    assert process.poll() is None
    client = Client(folder / "web")

    def get(target, user="alice:secret"):
        client.request("GET", target, headers={"Authorization": "Basic " + base64.b64encode(user.encode()).decode()})
        return client.getresponse()

    answer = get(f"/{on.name}/", "alice:wrong")
    assert answer.status == 401 and b"weir" not in answer.read()
    answer = get(f"/{on.name}/")
    assert answer.status == 200 and "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert b"<title>Weir</title>" in answer.read()
    assert json.loads(get(f"/{on.name}/v1/history").read())["interval_s"] == 1
    answer = get(f"/{on.name}/v1/live?state")
    begin = time.monotonic()
    assert sum("span_us" in json.loads(answer.readline()) for _ in range(5)) >= 3
    assert time.monotonic() - begin < 6  # a line as soon as it is made
    client.close()
    process.send_signal(signal.SIGQUIT)
