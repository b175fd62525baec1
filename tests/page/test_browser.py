# SPDX-License-Identifier: GPL-2.0-only
"""The page in a browser: what it shows, that it stays current, and that nothing from outside becomes markup."""

import contextlib
import http.server
import os
import pathlib
import re
import socket
import threading
import time

import pytest

from labnet import until
from test_page import Page
from test_top import generator

SOURCE, NOTED, FRIEND = "198.51.100.7", "198.51.100.9", "198.51.100.20"
HOSTILE = "<img src=x onerror=\"document.title='hacked'\"> \u202egnp.exe \u2066a\u200bb"
POLICY = """interface near0
set slow dynamic max 1k expire 1h
"scanners of port 23" drop proto tcp to port 23
"social" drop proto udp from 198.51.100.0/28 to port 9 add source @slow log 5/s
"ssh" pass proto tcp to port 22
service www {
    vip 192.0.2.10
    proto tcp, udp
    port 80, 8000-8010
    mode ipip
    source 10.77.0.77
    check tcp port 80 every 1s
    backend 10.77.0.2
    backend 203.0.113.20 weight 2
}
"""
PICTURES = os.environ.get("PICTURES")  # a folder for them


@pytest.fixture(name="filled")
def filled_instance(pair, weir, tmp_path):
    """A policy, entries with owners and notes, a quick rule, and traffic of several kinds."""
    path = tmp_path / "edge.weir"
    if PICTURES:  # shorter names
        weir.name, path = "edge", pathlib.Path(PICTURES, "edge.weir")
    path.write_text(POLICY)
    weir("apply", path)
    weir("block", SOURCE, "--origin", "fail2ban", "--note", "sshd, 5 failures", "--for", "2h")
    weir("block", NOTED, "--note", "port scan" if PICTURES else HOSTILE)
    weir("block", "other.lab")  # a backend
    weir("allow", FRIEND)
    weir("rule", "add", "--name", "flood", "--for", "1h", "drop proto udp to port 5353")
    with contextlib.ExitStack() as stack:
        for source, rate in (SOURCE, 40), (NOTED, 8), (FRIEND, 90), ("198.51.100.3", 20), ("198.51.100.40", 60):
            stack.enter_context(generator(pair, pair.udp(source), rate))
        yield path


def picture(browser, folder, name):
    """The page as with a policy at its usual path."""
    browser.run("""const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        for (let node = all.nextNode(); node; node = all.nextNode())
            if (node.data.includes(arguments[0]))
                node.data = node.data.replaceAll(arguments[0], "/etc/weir");""", str(folder))
    browser.picture(pathlib.Path(PICTURES, name))


def shows(browser, pattern, seconds=15, selector="main"):
    until(lambda: re.search(pattern, browser.text(selector)), seconds=seconds, what=f"'{pattern}'")


def figure(browser, kind):
    return float(browser.text(f"#figures .{kind}").replace(" k", "e3").replace("–", "nan") or "nan")


def test_what_it_shows(weir, filled, browser):
    weir.run(filled)
    page = Page(weir)
    browser.open(page.url)
    shows(browser, "scanners of port 23")
    shows(browser, f"{SOURCE}[^\n]*fail2ban[^\n]*sshd, 5 failures")
    until(lambda: figure(browser, "drop") > 30, what="a rate of drops")
    shows(browser, "near0")
    shows(browser, r"drop near0 udp 198.51.100.3 port 53 > [^\n]*\n?[^\n]*rule social", selector="#events")
    for text in ("revision", filled.name, "block-from", "default", "quick", "flood", "www: 192.0.2.10", "203.0.113.20",
                 "list", "1h"):
        assert text.lower() in browser.text().lower(), (text, browser.text())
    assert browser.run("return location.href") == f"http://127.0.0.1:{page.port}/"
    assert page.token not in browser.run("return document.documentElement.outerHTML")
    assert browser.run("return sessionStorage.token") == page.token
    shows(browser, "203.0.113.20[^\n]*this host drops the answers: [^\n]*203.0.113.20")
    shows(browser, rf"checks fail for [12] of 2 backends[^\n]*\n.*\ncommand: weir -n {weir.name} service www", selector="#alarms")
    assert "alarm" in browser.text("#state")
    before = browser.text("#clock")
    until(lambda: browser.text("#clock") != before, seconds=3, what="another second")
    browser.driver.refresh()  # the token is kept for this tab
    shows(browser, "scanners of port 23")


def test_rates_are_those_of_the_generator(pair, on, browser):
    on.run()
    on("block", SOURCE)
    page = Page(on)
    browser.open(page.url)
    with generator(pair, pair.udp(SOURCE), 300):
        until(lambda: 270 < figure(browser, "drop") < 330, what="the rate")
        label = browser.run("return document.getElementById('chart').getAttribute('aria-label')")
        assert re.search(r"Dropped: now (2[789]\d|3[012]\d), at most", label), label
        shows(browser, r"drop: block-from")
    until(lambda: figure(browser, "drop") == 0, what="the end of the rate")
    browser.run("document.getElementById('span-24h').click()")
    until(lambda: "24 h ago" in browser.all_text("#chart"), what="the day")
    assert browser.run("return document.getElementById('span-24h').getAttribute('aria-pressed')") == "true"


def test_a_trial_and_its_end(weir, filled, browser):
    weir.run(filled)
    browser.open(Page(weir).url)
    shows(browser, "scanners of port 23")
    other = filled.with_name("other.weir")  # the agent applies the first one itself
    other.write_text(POLICY + '"new" drop proto tcp to port 2323\n')
    weir("apply", other, "--confirm=2m")
    shows(browser, r"Trial: ends in 1m [1-5]\ds", selector="#alarms")
    assert f"weir -n {weir.name} confirm" in browser.text("#alarms")
    first = browser.text("#alarms")
    until(lambda: browser.text("#alarms") != first, seconds=4, what="the countdown")
    weir("confirm")
    until(lambda: "Trial" not in browser.text("#alarms"), what="the end of the trial")
    shows(browser, "new")


def test_a_bypass(on, browser):
    browser.open(Page(on).url)
    shows(browser, "near0")
    until(lambda: "no alarm" in browser.text("#state"), what="no alarm")
    on("bypass", "--for", "5m")
    until(lambda: "BYPASSED" in browser.text("#state"), what="the bypass")
    shows(browser, r"near0 is bypassed for 4m \d+s more", selector="#alarms")
    on("bypass", "--off")
    until(lambda: "no alarm" in browser.text("#state"), what="no alarm")


def test_the_agent_is_killed_and_comes_back(on, browser):
    agent = on.run()
    browser.open(Page(on).url)
    until(lambda: "no alarm" in browser.text("#state"), what="the page")
    browser.run("window.stays = 1")
    agent.kill()
    shows(browser, r"no data since \d\d:\d\d:\d\d; the filter in the kernel is not affected")
    shows(browser, "HTTP status 503")
    assert "no data" in browser.text("#state") and browser.run("return document.title").startswith("✕")
    on.run()
    until(lambda: "no data" not in browser.text("#state") and browser.run("return document.getElementById('gone').hidden"), what="data")
    assert browser.run("return window.stays") == 1
    # The connection that was refused meanwhile is the only thing that may be said.
    assert all("v1/" in line and "503" in line or "ERR_" in line for line in browser.console())


def test_text_from_outside_is_text(weir, filled, browser):
    assert filled.exists()
    browser.open(Page(weir).url)
    shows(browser, "<img src=x onerror=")
    assert browser.run("return document.querySelectorAll('img, script:not(body > script), iframe').length") == 0
    shown = browser.all_text("#entries")
    assert "gnp.exe" in shown and "a\\u200bb" in shown and not re.search("[\u202a-\u202e\u2066-\u2069\u200b]", shown)
    assert "hacked" not in browser.run("return document.title")


def test_a_wrong_token(on, browser):
    page = Page(on)
    browser.open(page.url.replace(page.token, "0" * 32))
    shows(browser, "the token is wrong, or no longer valid: open the address that weir page prints")
    assert browser.run("return sessionStorage.token ?? null") is None  # so a reloaded tab does not ask with it
    time.sleep(5)  # it does not try again: ten would end the command
    assert page.process.poll() is None
    browser.run(f"location.hash = '{page.token}'")
    shows(browser, "near0")
    browser.run("location.hash = 'traffic'")  # no token
    before = browser.text("#clock")
    until(lambda: browser.text("#clock") != before, what="another second")
    assert browser.run("return sessionStorage.token") == page.token
    browser.open(f"http://localhost:{page.port}/")  # another origin: another session
    shows(browser, "the address has no token")
    assert all("401" in line for line in browser.console())


def test_a_detached_interface(on, browser):
    """The connection is not lost, and the filter is affected."""
    browser.open(Page(on).url)
    until(lambda: "no alarm" in browser.text("#state"), what="the page")
    on("detach", "near0")
    shows(browser, r"no rates since \d\d:\d\d:\d\d: \w+", seconds=30)
    assert "not affected" not in browser.text("main")


def test_a_state_that_is_old(on, browser):
    browser.open(Page(on).url)
    until(lambda: "no alarm" in browser.text("#state"), what="the page")
    assert "no alarm" in browser.run("stateAt -= 80000; showHead(); return by('state').textContent")
    assert re.search(r"state unknown since \d\d:\d\d:\d\d", browser.run("stateAt -= 20000; showHead(); return by('state').textContent"))
    until(lambda: "no alarm" in browser.text("#state"), what="the next state")
    assert "unknown" in browser.run("takeLine('{\"error\":{\"text\":\"killed\",\"hint\":null}}'); return by('state').textContent")
    shows(browser, "killed", selector="#alarms")
    until(lambda: "no alarm" in browser.text("#state"), what="the next state")


def test_countdowns(on, browser):
    """They begin at the time of the document, end at zero, and are not read aloud each second."""
    browser.open(Page(on).url)
    until(lambda: "no alarm" in browser.text("#state"), what="the page")
    script = """state.status.time = new Date(wall() - 40000).toISOString();
        state.status.trial_ms_left = 70200;
        state.status.interfaces[0].bypass_ms = arguments[0];
        showHead();
        showAlarms();
        return [by("state").textContent, by("alarm-list").textContent, by("said").textContent];"""
    state, alarms, said = browser.run(script, 50200)
    assert "BYPASSED" in state and "ends in 30s" in alarms and "bypassed for 10s more" in alarms
    assert said == "trial; bypass near0" and not re.search(r"\d+s", said)
    state, alarms, said = browser.run(script, 39000)
    assert "on trial" in state and "bypassed" not in alarms and said == "trial"
    assert browser.run("return document.querySelectorAll('[aria-live] #alarm-list, #alarm-list[aria-live]').length") == 0


def test_seconds_without_documents_are_gaps(on, browser):
    browser.open(Page(on).url)
    until(lambda: "no alarm" in browser.text("#state"), what="the page")
    values, spark, area, label = browser.run("""const document = {...rates, span_us: 1e6, totals: [{total: "dropped", packets_per_s: 5, bytes_per_s: 9}]};
        series = new Map();
        readUs = 0;
        for (const [at, before] of [[100, 0], [101, 0], [111, 1], [112, 1]])
            takeRates({...document, monotonic_us: at * 1e6});
        chart();
        const found = [past("totals/dropped").slice(-13), line(past("totals/dropped"), 84, 18, 5), window.document.querySelector("#chart .area.drop").getAttribute("d")];
        chosen = "24h";
        day = new Map(["passed", "sent", "dropped"].map(key => ["totals/" + key, [1, 2]]));
        chart();
        found.push(by("chart").getAttribute("aria-label"));
        chosen = "5m";
        return found;""")
    assert values == [5, 5] + [None] * 9 + [5, 5]
    assert spark.count("M") == 2 and area.count("M") == 2
    assert "Dropped: last 5 minutes" in label


class Proxy:
    """Passes connections on; stall() makes those that exist silent, as a lost peer does."""

    def __init__(self, port):
        self.port, self.silent, self.sockets = port, threading.Event(), []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                other, silent = socket.create_connection(("127.0.0.1", self.port)), self.silent
                self.sockets += [client, other]
                for one, two in (client, other), (other, client):
                    threading.Thread(target=self.pump, args=(one, two, silent), daemon=True).start()

    @staticmethod
    def pump(one, two, silent):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if silent.is_set():
                    return
                two.sendall(data)
            two.shutdown(socket.SHUT_WR)

    def stall(self):
        self.silent.set()
        self.silent = threading.Event()

    def close(self):
        for one in [self.server, *self.sockets]:
            one.close()


def test_a_connection_that_is_lost_without_a_sign(on, browser):
    page = Page(on)
    with contextlib.closing(Proxy(page.port)) as proxy:
        browser.open(f"http://127.0.0.1:{proxy.address}/#{page.token}")
        until(lambda: "no alarm" in browser.text("#state"), what="the page")
        proxy.stall()
        until(lambda: "no data" in browser.text("#state"), what="the loss")
        until(lambda: "no alarm" in browser.text("#state"), seconds=25, what="another connection")


class Foreign(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><link rel=icon href='data:,'><title>foreign</title>")

    def log_message(self, *_):
        pass


ATTACKS = """(async () => {
    const url = "http://127.0.0.1:PORT", out = {}, token = "TOKEN";
    const tell = async (name, promise) => { try { out[name] = await promise; } catch { out[name] = "refused"; } };
    const load = (element, attribute, value) => new Promise((done, fail) => {
        const one = document.createElement(element);
        one.onload = () => done("loaded");
        one.onerror = () => fail(Error());
        one[attribute] = value;
        document.body.append(one);
    });
    for (const path of ["/", "/v1/history", "/v1/live"]) {
        await tell("fetch " + path, fetch(url + path).then(r => r.text()));
        await tell("token " + path, fetch(url + path, {headers: {Authorization: "Bearer " + token}}).then(r => r.text()));
        await tell("opaque " + path, fetch(url + path, {mode: "no-cors"}).then(r => "loaded"));
        await tell("script " + path, load("script", "src", url + path));
        await tell("image " + path, load("img", "src", url + path));
    }
    const frame = document.createElement("iframe");
    frame.src = url + "/";
    await new Promise(done => { frame.onload = done; document.body.append(frame); });
    await tell("frame", (async () => frame.contentDocument ? "readable" : "refused")());
    return out;
})()"""


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])  # another site, and another port of the same site
def test_a_page_of_another_origin(on, browser, host):
    """It reads nothing, not even with the token, and shows the page in no frame."""
    page = Page(on)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Foreign) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.open(f"http://{host}:{server.server_port}/")
        found = browser.run_async(ATTACKS.replace("PORT", str(page.port)).replace("TOKEN", page.token))
        server.shutdown()
    assert len(found) == 16 and set(found.values()) == {"refused"}, found
    assert any("frame-ancestors" in line for line in browser.console())
    assert page.process.poll() is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_axe_finds_nothing(pair, weir, filled, browser, axe, scheme):
    weir.run(filled)
    other = filled.with_name("edge-2.weir")
    other.write_text(POLICY + '"new" drop proto tcp to port 2323\n')
    weir("apply", other, "--confirm=10m", "--note", "stop the scan")
    page = Page(weir)
    browser.prefer(prefers_color_scheme=scheme)
    browser.cdp("Page.setBypassCSP", enabled=True)  # for axe-core only
    browser.open(page.url)
    shows(browser, "scanners of port 23")
    shows(browser, "Trial")
    if PICTURES:
        time.sleep(40)
        with generator(pair, pair.udp(SOURCE), 500):  # for the picture
            time.sleep(12)
        time.sleep(25)
    for width in 390, 1440:
        browser.size(width, 900)
        time.sleep(1.2)
        assert browser.width_of_content() <= width
        if PICTURES:
            picture(browser, other.parent, f"page-{width}-{scheme}.png")
        browser.cdp("Runtime.evaluate", expression=axe)
        results = browser.run_async("axe.run(document, {resultTypes: ['violations', 'incomplete']})")
        assert results["violations"] == [], "\n".join(f"{one['id']}: {one['nodes'][0]['html'][:300]} {one['nodes'][0].get('failureSummary')}" for one in results["violations"])


def test_long_names_fit(pair, weir, browser, tmp_path):
    """They also have rates, whose documents cut the names."""
    path = tmp_path / ("f" * 100 + ".weir")
    path.write_text('interface near0\n"' + "W" * 255 + '" drop proto udp to port 9\n')
    weir("apply", path)
    weir("block", SOURCE, "--note", "n" * 200, "--origin", "o" * 20)
    browser.open(Page(weir).url)
    shows(browser, "WWWWW")
    with generator(pair, pair.udp(FRIEND), 300):
        until(lambda: re.search(r"^2\d\d|^3\d\d", browser.run(
            "return [...document.querySelectorAll('#rules tr')].find(row => row.innerText.includes('WWWWW')).cells[3].innerText")),
            what="the rate of the rule")
    for width in 390, 800, 1440:
        browser.size(width, 900)
        time.sleep(0.5)
        assert browser.width_of_content() <= width


def test_the_keyboard_reaches_what_can_be_pressed(on, browser):
    browser.open(Page(on).url)
    shows(browser, "near0")
    browser.cdp("Input.dispatchKeyEvent", type="rawKeyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
    browser.cdp("Input.dispatchKeyEvent", type="rawKeyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert browser.run("return document.activeElement.id") == "span-24h"
    browser.cdp("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    assert browser.run("return document.activeElement.getAttribute('aria-pressed')") == "true"
