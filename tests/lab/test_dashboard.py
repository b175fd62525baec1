# SPDX-License-Identifier: GPL-2.0-only
"""The Grafana dashboard: its layout is sound, and Prometheus has a series for each of its queries."""
import contextlib
import json
import re
import shutil
import subprocess

import pytest

from feedserver import Feed
from labnet import ROOT, until
from test_top import SOURCE, generator

DASHBOARD = json.loads((ROOT / "docs/monitoring/weir.dashboard.json").read_text())
PORT, METRICS = 9190, "127.0.0.1:9117"
PLAIN = 'interface near0\n"odd" drop from 198.51.100.7\n'
SERVICE = ('service www {{\n vip 192.0.2.10\n proto tcp\n port 80\n mode ipip\n source 10.77.0.77\n backend {far}\n'
           ' check exec "/bin/true" every 300ms timeout 200ms rise 1 fall 2\n}}\n')
ROWS_ALWAYS = {"Overview", "What is dropped"}


def panels():
    """(row, panel) of each panel that is not itself a row."""
    row = None
    for panel in DASHBOARD["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
        else:
            yield row, panel


def expressions():
    """(row, expression), as Grafana sends it with all hosts and instances chosen."""
    for row, panel in panels():
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "10s").replace("$host", ".*").replace("$weir", ".*")
            assert "$" not in expression, expression
            yield row, expression


def test_layout():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids) and DASHBOARD["schemaVersion"] >= 36 and not DASHBOARD.get("id")
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and cells and not cells & taken, panel["title"]
        taken |= cells
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    text = json.dumps(DASHBOARD["panels"])
    assert variables == set(re.findall(r"\$\{?(\w+)", text)) - {"__rate_interval"} == {"datasource", "host", "weir"}
    for _, panel in panels():
        assert panel["type"] in ("timeseries", "stat") and panel["datasource"]["uid"] == "${datasource}"
        assert [target["refId"] for target in panel["targets"]] == list("ABC")[:len(panel["targets"])] != []


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed (scripts/setup test)")
def test_promtool_accepts_each_expression(tmp_path):
    rules = [{"record": f"panel:{number}", "expr": expression} for number, (_, expression) in enumerate(expressions())]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"{len(rules)} rules" in done.stdout, done.stdout + done.stderr


@contextlib.contextmanager
def prometheus(pair, folder):
    """ask(EXPRESSION): the series that a Prometheus has which scrapes the agent each second."""
    enter = ["nsenter", f"--net=/run/netns/{pair.near_netns}", "--"]
    (folder / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "weir", "static_configs": [{"targets": [METRICS]}]}]}))

    def ask(expression):
        done = subprocess.run([*enter, "curl", "-s", "--data-urlencode", f"query={expression}",
                               f"http://127.0.0.1:{PORT}/api/v1/query"], capture_output=True, text=True, check=False)
        return json.loads(done.stdout)["data"]["result"] if done.returncode == 0 and done.stdout.startswith("{") else []

    with subprocess.Popen([*enter, "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                           f"--web.listen-address=127.0.0.1:{PORT}", "--log.level=error"]) as process:
        try:
            yield ask
        finally:
            process.terminate()


@pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed (scripts/setup test)")
@pytest.mark.parametrize("full", [False, True], ids=["plain", "services"])
def test_each_query_has_a_series(pair, weir, tmp_path, full):
    path = tmp_path / "p.weir"
    with contextlib.ExitStack() as stack:
        text = PLAIN
        if full:
            feed = Feed(pair, tmp_path)
            stack.callback(feed.stop)
            feed.lines(10)
            text += f'set list {{ url "{feed.url}" ca "{feed.ca}" every 1h }}\n"list" drop from @list\n' + SERVICE.format(far=pair.far4)
        path.write_text(text)
        weir("apply", path)
        weir("block", "203.0.113.9", "--origin", "me")
        weir.run("--metrics", METRICS)
        stack.enter_context(generator(pair, pair.udp(SOURCE), 50))
        ask = stack.enter_context(prometheus(pair, tmp_path))
        until(lambda: ask("weir_alarms") and ask("rate(weir_packets_total[10s])"), 30, "two scrapes")
        for row, expression in expressions():
            if full or row in ROWS_ALWAYS:
                until(lambda expression=expression: ask(expression), 20, expression)
        dropped = next(expression for _, expression in expressions() if "by (reason)" in expression)
        until(lambda: any(series["metric"] == {"reason": "rule-drop"} and 40 < float(series["value"][1]) < 60
                          for series in ask(dropped)), 20, "the rate of the generator")
        for variable in DASHBOARD["templating"]["list"][1:]:
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
            assert all(series["metric"].get(label) for series in ask(metric)), metric
