# SPDX-License-Identifier: GPL-2.0-only
"""contrib/crowdsec: the program; Debian's crowdsec-custom-bouncer that calls it, fed by a server that speaks the stream of
decisions of CrowdSec's local API; and all of Debian's CrowdSec, which reads a log."""
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time

import pytest

import mmdb
from labnet import ROOT, WEIR, run, until

PROGRAM = ROOT / "contrib" / "crowdsec" / "weir-crowdsec"
BANNED4, BANNED6, OTHER4, NET4, COUNTRY4 = "203.0.113.10", "2001:db8:113::10", "203.0.113.20", "198.51.100.0/24", "192.0.2.0/24"
KEY = "0123456789abcdef"
HUB = pathlib.Path("/usr/share/crowdsec/hub")


def environment(on, *options):
    return {**os.environ, "WEIR": " ".join(map(str, [WEIR, "-N", on.pair.near_netns, *options])), "WEIR_INSTANCE": on.name}


@pytest.fixture(name="call")
def program(on, tmp_path):
    """The program; databases of countries are in tmp_path."""
    def call(*words):
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=20,
                              env=environment(on, "--geo", tmp_path), check=False)
    return call


def left(on, address):
    return on.entries()[address]["left_s"]


def test_a_ban_and_its_end(pair, on, call):
    on("block", OTHER4)
    done = call("add", BANNED4, "3h59m57.4s", "crowdsecurity/ssh-bf", '{"type":"ban"}')
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    holder = on.entries()[BANNED4]["holders"][0]
    assert (holder["origin"], holder["note"]) == ("crowdsec", "crowdsec: crowdsecurity/ssh-bf")
    assert 14390 <= left(on, BANNED4) <= 14398
    assert pair.free(BANNED4) == [False]
    assert call("del", BANNED4, "-1s", "crowdsecurity/ssh-bf").returncode == 0
    assert set(on.entries()) == {OTHER4} and pair.free(BANNED4) == [True]
    assert call("del", BANNED4, "-1s", "again").returncode == 0


@pytest.mark.parametrize("duration, seconds", [
    ("3600", 3600), ("500ms", 1), ("1m0.5s", 61), ("1.5h", 5400), ("24h", 86400), ("2562047h47m16.85s", 315360000)])
def test_durations(on, call, duration, seconds):
    assert call("add", BANNED4, duration, "x").returncode == 0
    entry = on.entries().get(BANNED4)
    if seconds > 1:  # else it may be over by now
        assert seconds - 5 <= entry["left_s"] <= seconds


@pytest.mark.parametrize("words", [
    ("DE", "1h", "x"), ("deadbeef", "1h", "x"), ("host.example", "1h", "x"), (BANNED4, "-3s", "x"), (BANNED4, "-3", "x"), (BANNED4, "0s", "x"),
    (BANNED4, "1h", "x", '{"type":"captcha","scenario":"\\"type\\":\\"ban\\""}'),
    (BANNED4, "1h", "x", '{"meta": {"type": "ban"}, "type" : "captcha"}'),
    ("root", "1h", "x", '{"type":"ban","scope":"Username"}'), ("10.1", "1h", "x", '{"type":"ban","scope":"session"}')])
def test_what_is_no_ban(on, call, words):
    assert call("add", *words).returncode == 0 and on.entries() == {}


def test_what_is_wrong(on, call):
    for words in ("add", BANNED4, "soon", "x"), ("add", BANNED4, "", "x"), ("add", BANNED4), ("set", BANNED4, "1h", "x"), ():
        done = call(*words)
        assert done.returncode == 1 and done.stderr.startswith("weir-crowdsec: "), words
    done = call("add", on.pair.near4, "1h", "x")
    assert done.returncode == 3 and "would cut off" in done.stderr and on.entries() == {}


@pytest.mark.parametrize("reason, note", [
    ("--force\n; $(reboot) \x1b[31m", "--force?; $(reboot) ?[31m"), ('with "quotes"', "with 'quotes'"), ("", ""),
    ("ü" * 300, "ü" * 122), ("x" + "ü" * 300, "x" + "ü" * 122), (b"ab\xff\xc3", "ab??"), ("a\u202eb", "a???b"), ("x" * 70000, "x" * 245)],
    ids=range(8))
def test_no_reason_loses_a_ban(on, call, reason, note):
    done = call("add", BANNED4, "1h", reason)
    assert done.returncode == 0, done.stderr
    assert on.entries()[BANNED4]["holders"][0]["note"] == "crowdsec: " + note


@pytest.mark.parametrize("value, entry", [("203.0.113.17/24", "203.0.113.0/24"), ("2001:db8:113::1:2/64", "2001:db8:113::/64"),
                                          ("::ffff:203.0.113.17/120", "203.0.113.0/24")])
def test_host_bits_lose_no_ban(on, call, value, entry):
    assert call("add", value, "1h", "x", '{"type": "ban", "scope": "Range"}').returncode == 0
    assert set(on.entries()) == {entry}
    assert call("del", value, "-1s", "x", '{"type": "ban", "scope": "Range"}').returncode == 0
    assert on.entries() == {}


@pytest.mark.parametrize("scope, value, name, net", [
    ("Country", "CN", "country CN", "203.0.113.0/24"), ("AS", "64500", "asn 64500", "198.51.100.0/24"),
    ("as", "AS64500", "asn 64500", "198.51.100.0/24")])
def test_countries_and_autonomous_systems(on, call, tmp_path, scope, value, name, net):
    (tmp_path / "country.mmdb").write_bytes(mmdb.build({"203.0.113.0/24": "country CN"}))
    (tmp_path / "network.mmdb").write_bytes(mmdb.build({"198.51.100.0/24": "asn 64500"}))
    decision = json.dumps({"scenario": 'said "ban"', "type": "ban", "scope": scope, "value": value})
    done = call("add", value, "1h", "x", decision)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    holder = on.entries()[net]["holders"][0]
    assert (holder["name"], holder["origin"]) == (name, "crowdsec") and 3590 <= left(on, net) <= 3600
    assert call("del", value, "-1s", "x", decision).returncode == 0 and on.entries() == {}


class Decisions(http.server.ThreadingHTTPServer):
    """The first answer has all decisions, as after a start; each later one what has changed since."""

    daemon_threads = True

    def __init__(self):
        self.news, self.asked, self.number = {"new": [], "deleted": []}, [], 0
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def change(self, kind, value, duration="1h", scope="Ip", scenario="crowdsecurity/ssh-bf", what="ban"):
        self.number += 1
        self.news[kind].append({"id": self.number, "origin": "crowdsec", "type": what, "scope": scope, "value": value,
                                "duration": duration, "scenario": scenario})

    def take(self):
        news, self.news = self.news, {"new": [], "deleted": []}
        return {kind: found or None for kind, found in news.items()}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        self.server.asked.append((self.path, self.headers.get("X-Api-Key")))
        body = json.dumps(self.server.take() if "/decisions/stream" in self.path else {}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):  # pylint: disable=arguments-differ
        pass


@contextlib.contextmanager
def running_bouncer(on, folder, url, key):
    """Debian's bouncer with our program; its log. Databases of countries are in the folder."""
    if not shutil.which("crowdsec-custom-bouncer"):
        pytest.skip("no crowdsec-custom-bouncer (apt-cache policy crowdsec-custom-bouncer)")
    config, log = folder / "bouncer.yaml", folder / "bouncer.log"
    config.write_text(
        f"bin_path: {PROGRAM}\npiddir: {folder}\nupdate_frequency: 1s\ncache_retention_duration: 1s\ndaemonize: false\n"
        f"log_mode: stdout\nlog_level: info\nscopes: [Ip, Range, Country, AS]\napi_url: {url}\napi_key: {key}\nprometheus:\n  enabled: false\n")
    with started(["crowdsec-custom-bouncer", "-c", config], log, env=environment(on, "--geo", folder)):
        yield log


@contextlib.contextmanager
def started(argv, log, **options):
    with open(log, "w", encoding="utf-8") as out, subprocess.Popen(argv, stdout=out, stderr=out, **options) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=20)


@pytest.fixture(name="bouncer")
def debians_bouncer(on, tmp_path):
    """Debian's bouncer; the server of decisions."""
    (tmp_path / "country.mmdb").write_bytes(mmdb.build({COUNTRY4: "country CN"}))
    server = Decisions()
    server.change("new", BANNED4)
    with running_bouncer(on, tmp_path, f"http://127.0.0.1:{server.server_port}/", KEY) as server.log:
        yield server
    server.shutdown()


def test_debians_bouncer(pair, on, bouncer):
    until(lambda: BANNED4 in on.entries(), seconds=20, what="the first ban")
    assert ("startup=true" in bouncer.asked[0][0], bouncer.asked[0][1]) == (True, KEY)
    assert on.entries()[BANNED4]["holders"][0]["note"] == "crowdsec: crowdsecurity/ssh-bf"
    assert 3500 <= left(on, BANNED4) <= 3600 and pair.free(BANNED4, OTHER4) == [False, True]
    bouncer.change("new", BANNED6, "2h0m30.5s", scenario='manual "ban" from "admin"')
    bouncer.change("new", NET4.replace(".0/", ".17/"), scope="Range")
    bouncer.change("new", "CN", scope="Country")
    bouncer.change("new", OTHER4, what="captcha")
    until(lambda: set(on.entries()) == {BANNED4, BANNED6, NET4, COUNTRY4}, seconds=20, what="what came later")
    assert on.entries()[BANNED6]["holders"][0]["note"] == "crowdsec: manual 'ban' from 'admin'"
    assert 7200 <= left(on, BANNED6) <= 7231 and pair.free(BANNED6, OTHER4) == [False, True]
    bouncer.change("deleted", BANNED4, "-2s")
    bouncer.change("deleted", NET4, "-2s", scope="Range")
    bouncer.change("deleted", "CN", "-2s", scope="Country")
    until(lambda: set(on.entries()) == {BANNED6}, seconds=20, what="the ends")
    assert pair.free(BANNED4) == [True]
    text = bouncer.log.read_text()
    assert "level=error" not in text and "level=fatal" not in text, text


class CrowdSec:
    """Debian's engine with its own parser and scenario for logins over SSH, alone: without the vendor's servers."""

    ITEMS = ("parsers/s00-raw/crowdsecurity/syslog-logs.yaml", "parsers/s01-parse/crowdsecurity/sshd-logs.yaml",
             "parsers/s02-enrich/crowdsecurity/dateparse-enrich.yaml", "scenarios/crowdsecurity/ssh-bf.yaml")

    def __init__(self, folder):
        self.folder, self.log, self.auth = folder, folder / "crowdsec.log", folder / "auth.log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        for item in map(pathlib.Path, self.ITEMS):
            target = folder.joinpath(*item.parts[:-2])  # without the vendor
            target.mkdir(parents=True, exist_ok=True)
            (target / item.name).symlink_to(HUB / item)
        shutil.copytree("/etc/crowdsec/patterns", folder / "patterns")
        (folder / "data").mkdir()
        self.auth.touch()
        self.write("acquis.yaml", {"filename": str(self.auth), "labels": {"type": "syslog"}})
        self.write("simulation.yaml", {"simulation": False})
        self.write("profiles.yaml", {
            "name": "ban", "filters": ['Alert.Remediation == true && Alert.GetScope() == "Ip"'],
            "decisions": [{"type": "ban", "duration": "4h"}], "on_success": "break"})
        self.write("config.yaml", {
            "common": {"daemonize": False, "log_media": "stdout", "log_level": "info", "working_dir": "."},
            "config_paths": {
                "config_dir": str(folder), "data_dir": str(folder / "data"), "simulation_path": str(folder / "simulation.yaml"),
                "hub_dir": str(HUB), "index_path": str(HUB / ".index.json")},
            "crowdsec_service": {"acquisition_path": str(folder / "acquis.yaml"), "parser_routines": 1},
            "db_config": {"type": "sqlite", "db_path": str(folder / "crowdsec.db")},
            "api": {"client": {"credentials_path": str(folder / "local.yaml")},
                    "server": {"listen_uri": self.address, "profiles_path": str(folder / "profiles.yaml")}},
            "prometheus": {"enabled": False}})
        (folder / "local.yaml").touch()
        self.client("machines", "add", "lab", "--password", "lab", "--url", f"http://{self.address}", "--force")
        self.key = self.client("bouncers", "add", "weir", "-o", "raw").strip()

    def write(self, name, document):
        (self.folder / name).write_text(json.dumps(document))  # JSON is YAML

    def client(self, *words):
        return run(["cscli", "-c", self.folder / "config.yaml", *words]).stdout

    def failures(self, address, times):
        with open(self.auth, "a", encoding="ascii") as file:
            for number in range(times):
                stamp = time.strftime("%b %e %H:%M:%S")
                file.write(f"{stamp} lab sshd[{number + 100}]: Failed password for root from {address} port {50000 + number} ssh2\n")


@pytest.fixture(name="crowdsec")
def debians_crowdsec(tmp_path):
    if not shutil.which("crowdsec"):
        pytest.skip("no crowdsec (apt-cache policy crowdsec)")
    engine = CrowdSec(tmp_path)
    with started(["crowdsec", "-c", tmp_path / "config.yaml"], engine.log):
        until(lambda: "Starting processing data" in engine.log.read_text(), seconds=30, what="the engine")
        yield engine


def test_all_of_debians_crowdsec(pair, on, crowdsec):
    """Lines of a log become a ban, and the end of the decision ends it."""
    with running_bouncer(on, crowdsec.folder, f"http://{crowdsec.address}/", crowdsec.key):
        crowdsec.failures(OTHER4, 2)
        crowdsec.failures(BANNED4, 10)
        until(lambda: BANNED4 in on.entries(), seconds=30, what="the ban")
        assert on.entries()[BANNED4]["holders"][0]["note"] == "crowdsec: crowdsecurity/ssh-bf"
        assert 14300 <= left(on, BANNED4) <= 14400 and pair.free(BANNED4, OTHER4) == [False, True]
        (crowdsec.folder / "country.mmdb").write_bytes(mmdb.build({COUNTRY4: "country CN"}))
        crowdsec.client("decisions", "add", "--scope", "Country", "--value", "CN", "--reason", 'they said "no"')
        crowdsec.client("decisions", "add", "--range", NET4)
        until(lambda: set(on.entries()) == {BANNED4, COUNTRY4, NET4}, seconds=30, what="the decisions of cscli")
        assert on.entries()[COUNTRY4]["holders"][0]["note"] == "crowdsec: they said 'no'"
        crowdsec.client("decisions", "delete", "--all")
        until(lambda: on.entries() == {}, seconds=30, what="the end of the bans")
        assert pair.free(BANNED4) == [True]


def test_the_program_is_installed(tmp_path):
    rules = (ROOT / "contrib" / "debian" / "rules").read_text()
    path = next(word for line in PROGRAM.read_text().splitlines() if "bin_path:" in line for word in line.split() if word.startswith("/"))
    assert f"contrib/crowdsec/weir-crowdsec debian/weir{path}\n" in rules
    assert run(["sh", "-n", PROGRAM]).returncode == 0
